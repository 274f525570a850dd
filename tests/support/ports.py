"""Ports for servers that are killed and restarted: no other program takes them meanwhile.

The system assigns ports of its ephemeral range to outgoing connections. While a broker on such a port is down, any
connection may get the port, even that of the client that tries to reach the broker and then talks to itself; and the
broker cannot listen there again. These ports are outside that range.
"""

import random
import socket
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
            return port
