"""Imports the modules with kernels when a thread first needs them, and compiles the kernels ahead of that. Run as a
program (`python -m tidelog.records.loading`), it compiles them."""

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
    """Import a module of this package, under a lock. If two threads import numba at the same time, each sees it
    half-initialised and both imports fail for good; so every thread that needs it must use this function.
    MissingExtra if it is not installed."""
    with _importing:
        return import_module(f"tidelog.records.{name}")


def compile_ahead(given_up: threading.Event) -> bool:
    """Compile the kernels that are not in this machine's cache yet. That takes ten seconds, during which this process
    could hardly serve requests and could not be stopped, so a child process does it and leaves the result in numba's
    cache. Blocks: do not call it on the event loop. False: `given_up` was set before it was done. True also if it
    failed: then the kernels are compiled when they are first used. MissingExtra if they are not installed."""
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
