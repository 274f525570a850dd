"""Removing objects that no log needs.

An object whose last extent is gone is *dead*: the database says so, and never revives it. Dead objects are removed
after a grace, which is longer than any fetch, because a reader may still be about to read them.

An object that the database does not know is an *orphan*: its broker died between the upload and the commit, or has
not made the commit yet. Old orphans are first declared dead, so that a late commit of theirs is refused, and then
removed like the others. So clocks decide when an object is removed, never whether a log may need it. One thing needs
clocks that are about right: that an object is dead is remembered for an hour only after it was removed. So a broker
whose clock is far from the database's removes nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidelog.errors import StorageError
from tidelog.model import TimestampMs
from tidelog.storage.shared import bundle, segment_object
from tidelog.storage.shared.objects import ObjectStore
from tidelog.storage.shared.order import Order

MOST_SKEW_MS = 600_000
_AT_ONCE = 500  # objects


class WrongClock(StorageError):
    """The clock of this machine, or that of the database, is wrong."""


@dataclass(frozen=True, slots=True)
class GarbageSettings:
    grace_ms: int = 600_000
    """How long a dead object is kept."""
    orphan_ms: int = 3_600_000
    """Unknown objects of this age are declared dead."""


class Garbage:
    """All brokers may collect at the same time; one of them is enough."""

    def __init__(
        self, order: Order, objects: ObjectStore, settings: GarbageSettings, *, clock: Callable[[], TimestampMs]
    ) -> None:
        self._order = order
        self._objects = objects
        self._settings = settings
        self._clock = clock

    async def collect(self, on_removed: Callable[[Sequence[str]], None] = lambda _: None) -> int:
        """Remove what has been dead for long enough. Returns the number of objects; `on_removed` is told their
        keys."""
        await self._check_clock()
        removed = 0
        while keys := await self._order.dead_objects(self._clock() - self._settings.grace_ms, _AT_ONCE):
            await self._objects.remove(keys)
            await self._order.forget_objects(keys, self._clock())
            removed += len(keys)
            on_removed(keys)
        return removed

    async def sweep(self) -> int:
        """Look at every object of the store, and declare old orphans dead: they are removed after the grace. Returns
        their number."""
        await self._check_clock()
        found = 0
        for prefix in (bundle.PREFIX, segment_object.PREFIX):
            old: list[str] = []
            async for stored in self._objects.list(prefix):
                if stored.modified_ms < self._clock() - self._settings.orphan_ms:
                    old.append(stored.key)
                if len(old) == _AT_ONCE:
                    found += len(await self._order.declare_dead(old, self._clock()))
                    old = []
            if old:
                found += len(await self._order.declare_dead(old, self._clock()))
        return found

    async def _check_clock(self) -> None:
        ahead_s = (self._clock() - await self._order.clock_ms()) // 1000
        if abs(ahead_s) * 1000 > MOST_SKEW_MS:
            how = "ahead of" if ahead_s > 0 else "behind"
            raise WrongClock(
                f"the clock of this machine is {abs(ahead_s)} s {how} the database's:"
                " garbage is not removed until both are right"
            )
