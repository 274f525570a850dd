"""Connections to PostgreSQL, for the engines of a cluster."""
