"""A bounded pool of open files: thousands of segments, a few hundred descriptors.

A segment opens its files when it is used, and the pool closes those that were not used for a while. A `File` that is
still referenced (a reply being sent, a flush under way) stays open until the last reference is gone.
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
        """Drop the open files; they are opened again on the next use."""


class HandlePool:
    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._holders: OrderedDict[Holder, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._holders)

    def open(self, holder: Holder, opening: Callable[[], T], action: str) -> T:
        """Make room, then run `opening` for a holder that has no open file. Errors say what the operator should
        do."""
        while len(self._holders) >= self._capacity:
            self._release_one()
        try:
            opened = self.open_another(opening)
        except OSError as error:
            raise storage_error(error, action) from error
        self._holders[holder] = None
        holder.recently_used = True
        return opened

    def open_another(self, opening: Callable[[], T]) -> T:
        """The same for one more file of a holder that is in the pool already. Raises OSError."""
        while True:
            try:
                return opening()
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._holders:
                    raise
                self._release_one()

    def forget(self, holder: Holder) -> None:
        """The holder is gone for good (deleted, closed)."""
        if holder.is_open:
            self._holders.pop(holder, None)
            holder.release()

    def _release_one(self) -> None:
        """Second chance: a holder that was used since the last check goes to the end of the queue."""
        while True:
            holder = next(iter(self._holders))
            if not holder.recently_used:
                del self._holders[holder]
                holder.release()
                return
            holder.recently_used = False
            self._holders.move_to_end(holder)
