"""Importing the modules with kernels when they are first needed, from whichever thread needs them, and having the
kernels compiled before that. As a program (`python -m tidelog.records.loading`) it compiles them."""

import subprocess
import sys
import threading
from importlib import import_module
from types import ModuleType

_MODULES = ("columnar", "compaction_columnar")
_LOOK_SECONDS = 0.05
_importing = threading.Lock()
_compiling = threading.Lock()


def load(name: str) -> ModuleType:
    """A module of this package. Two threads that begin to import numba at the same time see it half made, which
    neither gets over; so all threads of a program that need it come here. MissingExtra if it is not installed."""
    with _importing:
        return import_module(f"tidelog.records.{name}")


def compile_ahead(given_up: threading.Event) -> bool:
    """Have the kernels compiled that were not on this machine before. That takes ten seconds, in which this process
    could hardly serve and would not stop; so another one does it, and leaves them in numba's cache. Not for the event
    loop. False: `given_up` was set before it was done. True also if it failed: then they are compiled when they are
    first used. MissingExtra if they are not installed."""
    modules = [load(name) for name in _MODULES]
    while not _compiling.acquire(timeout=_LOOK_SECONDS):
        if given_up.is_set():
            return False
    try:
        if not sys.executable or all(module.is_compiled() for module in modules):
            return True
        silent = subprocess.DEVNULL
        command = [sys.executable, "-P", "-m", "tidelog.records.loading"]
        with subprocess.Popen(command, stdin=silent, stdout=silent, stderr=silent) as process:  # noqa: S603
            while process.poll() is None:
                if given_up.wait(_LOOK_SECONDS):
                    process.kill()
                    return False
        return True
    except OSError:  # no process could be started
        return True
    finally:
        _compiling.release()


if __name__ == "__main__":
    for _name in _MODULES:
        load(_name).warm_up()
