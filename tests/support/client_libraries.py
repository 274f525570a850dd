"""Closes what client libraries leak, in the test that used them.

A leak that is left to the garbage collector is reported in whichever test runs then. Filtering warnings by text would
hide our own leaks, too; so the sockets that kafka-python opens are recorded while a test runs, and closed at its end.

kafka-python 3.0.12   does not close the socket of a connection attempt that fails (`kafka/net/inet.py`), nor the
                      socket pair of a client whose constructor raises
aiokafka 0.14         may leave tasks and transports when its broker ends: `tests.e2e.clients.aio.Loop` ends them
confluent-kafka       leaks nothing in Python: its sockets and threads are librdkafka's

Threads of kafka-python must have ended, too: they draw random numbers, which hypothesis notices in other tests. They
still run only if a test did not close its client; that fails the test.
"""

import socket
import sys
import threading
import time
from types import ModuleType
from typing import Any

_MODULES = ("kafka.net.inet", "kafka.net.selector")  # in which kafka-python creates sockets
_THREAD_SECONDS = 10.0

_opened: list[socket.socket] = []
"""Opened by kafka-python. Referenced here, so that none is garbage-collected before it is closed."""


def remember_sockets() -> None:
    """Record kafka-python's sockets from now on, if it was imported. May be called repeatedly."""
    for name in _MODULES:
        module = sys.modules.get(name)
        if module is not None and vars(module)["socket"] is socket:
            vars(module)["socket"] = _remembering_socket_module()


def _remembering_socket_module() -> ModuleType:
    def socket_(*arguments: Any, **more: Any) -> socket.socket:
        made = socket.socket(*arguments, **more)
        _opened.append(made)
        return made

    def socketpair(*arguments: Any, **more: Any) -> tuple[socket.socket, socket.socket]:
        made = socket.socketpair(*arguments, **more)
        _opened.extend(made)
        return made

    module = ModuleType("socket")
    vars(module).update({**vars(socket), "socket": socket_, "socketpair": socketpair})
    return module


def clear_up() -> None:
    """At the end of a test: wait for the threads of closed clients, and close the sockets that they leaked."""
    if not _opened:
        return
    deadline = time.monotonic() + _THREAD_SECONDS
    while (left := _threads()) and time.monotonic() < deadline:
        time.sleep(0.005)
    while _opened:
        _opened.pop().close()
    assert not left, f"threads of a kafka-python client that was not closed: {left}"


def _threads() -> list[str]:
    return [
        thread.name
        for thread in threading.enumerate()
        if type(thread).__module__.startswith("kafka.") or thread.name.startswith("kafka-")
    ]
