"""`PendingOffsets`: which offsets of groups are in open transactions that another coordinator has.

A group's coordinator marks offsets before it asks the coordinator of the transaction to take them, so that from its
own check on nobody is told that they are stable. What the store has is what counts: the marks of a transaction are
replaced by what was read there (`found`).
"""

from collections import Counter
from collections.abc import Iterable
from typing import TypeAlias

Place: TypeAlias = tuple[str, int]
"""Topic and partition."""


class PendingOffsets:
    def __init__(self) -> None:
        self._stored: dict[tuple[str, str], frozenset[Place]] = {}  # by transactional id and group
        self._marks: Counter[tuple[str, str, int]] = Counter()  # group, topic, partition
        self._groups: Counter[str] = Counter()

    def has(self, group: str, topic: str, partition: int) -> bool:
        return (group, topic, partition) in self._marks

    def has_any(self, group: str) -> bool:
        return group in self._groups

    def of(self, transactional_id: str, group: str) -> frozenset[Place]:
        """The offsets of the group that the transaction had when the store was last read."""
        return self._stored.get((transactional_id, group), frozenset())

    def found(self, transactional_id: str, group: str, places: Iterable[Place]) -> None:
        """The store has these offsets in the transaction, and no others of the group."""
        self._unmark(group, self._stored.pop((transactional_id, group), frozenset()))
        stored = frozenset(places)
        if stored:
            self._stored[transactional_id, group] = stored
            self._mark(group, stored)

    def asked(self, group: str, places: frozenset[Place]) -> None:
        """The coordinator of a transaction is being asked to take these. Call `answered` when that is known."""
        self._mark(group, places)

    def answered(self, group: str, places: frozenset[Place]) -> None:
        self._unmark(group, places)

    def _mark(self, group: str, places: frozenset[Place]) -> None:
        if places:
            self._groups[group] += 1
            self._marks.update((group, *place) for place in places)

    def _unmark(self, group: str, places: frozenset[Place]) -> None:
        if not places:
            return
        self._groups[group] -= 1
        if not self._groups[group]:
            del self._groups[group]
        for place in places:
            mark = (group, *place)
            self._marks[mark] -= 1
            if not self._marks[mark]:
                del self._marks[mark]
