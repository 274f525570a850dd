"""Bounded open files: thousands of segments, a few hundred descriptors.

A segment opens its files when it is used and the pool closes those that were not used for a while. Whoever holds
a `File` still (a reply being sent, a flush under way) keeps it open until it lets go.
"""

import errno
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol, TypeVar

from tidelog.storage.local.files import storage_error

T = TypeVar("T")


class Holder(Protocol):
    recently_used: bool

    @property
    def is_open(self) -> bool: ...

    def release(self) -> None:
        """Let go of the open files; they are opened again on the next use."""


class HandlePool:
    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._holders: OrderedDict[Holder, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._holders)

    def open(self, holder: Holder, opening: Callable[[], T], action: str) -> T:
        """Run `opening` for a holder that has nothing open, making room first; errors say what the user should do."""
        while len(self._holders) >= self._capacity:
            self._release_one()
        while True:
            try:
                opened = opening()
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE) and self._holders:
                    self._release_one()
                    continue
                raise storage_error(error, action) from error
            self._holders[holder] = None
            holder.recently_used = True
            return opened

    def forget(self, holder: Holder) -> None:
        """The holder is gone for good (deleted, closed)."""
        if holder.is_open:
            self._holders.pop(holder, None)
            holder.release()

    def _release_one(self) -> None:
        """Second chance: a holder that was used since the last look goes to the back of the queue."""
        while True:
            holder = next(iter(self._holders))
            if not holder.recently_used:
                del self._holders[holder]
                holder.release()
                return
            holder.recently_used = False
            self._holders.move_to_end(holder)
