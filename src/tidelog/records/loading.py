"""Importing the modules with kernels when they are first needed, from whichever thread needs them."""

import threading
from importlib import import_module
from types import ModuleType

_one_at_a_time = threading.Lock()


def load(name: str) -> ModuleType:
    """A module of this package. Two threads that begin to import numba at the same time see it half made, which
    neither gets over; so all threads of a program that need it come here. MissingExtra if it is not installed."""
    with _one_at_a_time:
        return import_module(f"tidelog.records.{name}")
