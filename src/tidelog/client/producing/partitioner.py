"""Chooses the partition of a record, as Kafka's Java client does.

A key always goes to the same partition, as long as the number of partitions does not change: murmur2 of its bytes.
Records without a key go to one partition for a whole batch and then to another one at random, so that batches are
full (`Sticky`).
"""

import random
from collections.abc import Sequence
from struct import Struct

_WORDS = Struct("<I")
_M = 0x5BD1E995
_SEED = 0x9747B28C
_MASK = 0xFFFF_FFFF


def murmur2(data: bytes) -> int:
    """Kafka's murmur2, as an unsigned number of 32 bits."""
    length = len(data)
    h = _SEED ^ length
    whole = length & ~3
    for (k,) in _WORDS.iter_unpack(data[:whole]):
        k = k * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        h = h * _M & _MASK ^ k
    if length != whole:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


def partition_of_key(key: bytes, partitions: int) -> int:
    return (murmur2(key) & 0x7FFF_FFFF) % partitions


class Sticky:
    """The partition of records without a key, per topic."""

    def __init__(self, source: random.Random) -> None:
        self._random = source
        self._current: dict[str, int] = {}

    def current(self, topic: str) -> int | None:
        return self._current.get(topic)

    def move_on(self, topic: str, candidates: Sequence[int]) -> int:
        """Another one of the candidates, of which there is at least one; the same only if there is no other."""
        before = self._current.get(topic)
        others = [candidate for candidate in candidates if candidate != before] or candidates
        chosen = self._current[topic] = self._random.choice(others)
        return chosen
