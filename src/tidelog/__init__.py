"""Tidelog: a log-based message broker in Python that speaks the Kafka protocol."""

__version__ = "0.1.0"
