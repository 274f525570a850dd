"""Ports for servers that are killed and restarted: no other program takes them meanwhile.

The system assigns ports of its ephemeral range to outgoing connections. While a broker on such a port is down, any
connection may get the port, even that of the client that tries to reach the broker and then talks to itself; and the
broker cannot listen there again. These ports are outside that range. And a port is chosen before its server listens,
so each test process reserves its ports: by locks on the bytes of a file that all test processes share.
"""

import fcntl
import functools
import os
import random
import socket
import tempfile
from pathlib import Path

_LOWEST, _HIGHEST = 10_000, 65_535
_random = random.SystemRandom()  # not the seeded one, which is the same in all processes of pytest-xdist


def _outside() -> list[range]:
    """Ports that no outgoing connection gets; empty if the system does not tell its range."""
    try:
        low, high = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    except (OSError, ValueError):
        return []
    return [each for each in (range(_LOWEST, low), range(high + 1, _HIGHEST + 1)) if len(each) > 100]


@functools.cache
def _reservations() -> int:
    """The file of reservations, which stays open: the locks end with the process."""
    path = os.path.join(tempfile.gettempdir(), f"tidelog-test-ports-{os.getuid()}")
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


_mine: set[int] = set()


def _reserve(port: int) -> bool:
    """False if this process or another one has reserved it."""
    if port in _mine:
        return False
    try:
        fcntl.lockf(_reservations(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    _mine.add(port)
    return True


def lasting_port() -> int:
    """A free port of 127.0.0.1 that stays free; 0 (any port) if there is no port outside that range."""
    ranges = _outside()
    if not ranges:
        return 0
    while True:
        port = _random.choice(_random.choices(ranges, weights=[len(each) for each in ranges])[0])
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if _reserve(port):
            return port


def free_port() -> int:
    """The same, or a port that may be taken by another program before it is used."""
    if port := lasting_port():
        return port
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
