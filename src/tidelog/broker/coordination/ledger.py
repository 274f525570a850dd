"""`Ledger`: the rows in which a coordinator's memory may be ahead of the store.

A decision changes memory at once and marks the rows that it changed. Every write for an owner (a group, a
transaction) contains all marked rows of that owner, including those that are also in an earlier write which has not
returned yet. A mark is removed when a write of exactly this state of the row has returned. So

- each write is complete by itself: even if others fail, a write that succeeds brings the store to a state that memory
  was in, and a reply that is sent after it describes such a state;
- a write that fails undoes nothing: its rows stay marked and are part of the next write.

Writes must take effect in the order in which their rows were collected.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple, TypeAlias, cast

from tidelog.metadata.store import Change

Render: TypeAlias = Callable[[str, Hashable], Change]


class Stamp(NamedTuple):
    """One state of one row of an owner, as it is written to the store. `mark` identifies the state."""

    owner: str
    row: Hashable
    mark: object
    change: Change


class _Touched:
    """The mark of a row that is rendered when it is collected. Each mark is a new object."""

    __slots__ = ()


class Ledger:
    """Owners, and the rows of an owner, are in the order in which they were first marked."""

    def __init__(self) -> None:
        self._marks: dict[str, dict[Hashable, object]] = {}  # owner -> row -> the change, or a `_Touched`
        self._waiting: dict[str, None] = {}

    def touch(self, owner: str, row: Hashable) -> None:
        """The row has changed, or is gone. The change to write is rendered each time the row is collected."""
        self._mark(owner, row, _Touched())

    def put(self, owner: str, row: Hashable, change: Change) -> None:
        """Write this change of the row, instead of any earlier one that is still marked."""
        self._mark(owner, row, change)

    def _mark(self, owner: str, row: Hashable, mark: object) -> None:
        rows = self._marks.get(owner)
        if rows is None:
            rows = self._marks[owner] = {}
        rows[row] = mark
        self._waiting[owner] = None

    def withdraw(self, owner: str, row: Hashable) -> None:
        """Write nothing for the row: remove its mark, if it has one."""
        rows = self._marks.get(owner)
        if rows is not None:
            rows.pop(row, None)
            if not rows:
                self.forget(owner)

    def forget(self, owner: str) -> None:
        """Write nothing for the owner: it is gone, with all its rows."""
        self._marks.pop(owner, None)
        self._waiting.pop(owner, None)

    def __contains__(self, owner: str) -> bool:
        """Whether any row of the owner is marked."""
        return owner in self._marks

    def is_marked(self, owner: str, row: Hashable) -> bool:
        return row in self._marks.get(owner, ())

    def owners(self) -> list[str]:
        return list(self._marks)

    def waiting(self) -> list[str]:
        """Owners with rows whose current state is not in any write in progress."""
        return list(self._waiting)

    def collect(self, owners: Iterable[str], render: Render | None = None) -> list[Stamp]:
        """All marked rows of these owners, to be written now. Report the result with `settle` or `failed`."""
        stamps = []
        for owner in owners:
            rows = self._marks.get(owner)
            if rows is None:
                continue
            self._waiting.pop(owner, None)
            for row, mark in rows.items():
                if isinstance(mark, _Touched):
                    assert render is not None
                    stamps.append(Stamp(owner, row, mark, render(owner, row)))
                else:
                    stamps.append(Stamp(owner, row, mark, cast("Change", mark)))
        return stamps

    def settle(self, stamps: Iterable[Stamp]) -> None:
        """These states of these rows are durable. A row that has changed since stays marked."""
        for owner, row, mark, _ in stamps:
            rows = self._marks.get(owner)
            if rows is not None and rows.get(row) is mark:
                del rows[row]
                if not rows:
                    self.forget(owner)

    def failed(self, stamps: Iterable[Stamp]) -> None:
        """The write failed: these rows have to be written again, in their current state."""
        for stamp in stamps:
            if stamp.owner in self._marks:
                self._waiting[stamp.owner] = None
