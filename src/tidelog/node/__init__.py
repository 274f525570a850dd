"""The composition root: settings in, a running broker out."""

from tidelog.node.node import Node

__all__ = ["Node"]
