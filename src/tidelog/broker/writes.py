"""`Writes`: writes the decisions of an owner of rows to the metadata store, and repeats writes with unknown outcome.

The owner gets the result of a write when it is decided: the write is durable, or it is not and never will be. While
the outcome of a write is unknown (the connection to the store was lost), it is undecided; it is repeated until the
store reports an outcome. There are two methods:

*`write`*, for coordinators, whose writes build on one another. They take effect, and their results are reported, in
order. When the outcome of one is unknown, the results of later ones are held back too, and all of them are repeated
together, as one write: repeated one by one, the first would temporarily restore rows that the last had replaced. New
writes fail at once during that time, so that clients retry. Only `Put` and `Delete` may be used.

*`decided`*, for changes of topics and configs, which may expect a state (`Insert`, `Update`) and are independent of
each other. Each is repeated by itself; until it is decided, its caller must not start another write of the same rows.

With a `fence` the rows belong to this owner until the store reports `Fenced`. From then on nothing is written, and
every write fails with `Fenced`.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import structlog

from tidelog.errors import Fenced, OutcomeUnknown, StorageError, StorageUnavailable, StoreClosed, TidelogError, fresh
from tidelog.metadata.store import Change, Fence, MetadataStore

REPEAT_S = 0.5

log = structlog.get_logger("tidelog.broker")

Then: TypeAlias = Callable[[TidelogError | None], None]


class _Asked:
    """A write whose result has not been reported yet."""

    __slots__ = ("changes", "error", "is_answered", "then")

    def __init__(self, changes: Sequence[Change], then: Then) -> None:
        self.changes = changes
        self.then = then
        self.is_answered = False
        self.error: TidelogError | None = None


class Writes:
    """Belongs to the running event loop."""

    def __init__(self, store: MetadataStore, fence: Fence | None = None) -> None:
        self._store = store
        self._fence = fence
        self._lost: Fenced | None = None  # why the fence was lost
        self._asked: dict[_Asked, None] = {}  # in order
        self._is_undecided = False
        self._repeats: asyncio.TimerHandle | None = None
        self._refused = 0  # refused writes whose `then` has not been called yet
        self._is_draining = False
        self._drained: asyncio.Future[None] | None = None

    def write(self, changes: Sequence[Change], then: Then) -> None:
        """Calls `then(None)` when the changes are durable, or `then(error)`; never before this call returns."""
        if self._lost is not None:
            self._refuse(then, fresh(self._lost))
        elif self._is_undecided:
            self._refuse(then, StorageUnavailable("the outcome of an earlier metadata write is still unknown"))
        else:
            asked = _Asked(changes, then)
            self._asked[asked] = None
            self._store.write(changes, self._fence).when_done(partial(self._answered, asked))

    async def decided(self, changes: Sequence[Change]) -> None:
        """Returns when the changes are durable. Raises if they are not. If it raises OutcomeUnknown, the store was
        closed or the fence was lost before the outcome was known."""
        unknown: OutcomeUnknown | None = None
        while True:
            if self._lost is not None:
                raise unknown or fresh(self._lost)
            try:
                await self._store.write(changes, self._fence)
                break
            except Fenced as error:
                self._lose(error)
            except StorageError as error:
                if isinstance(error, OutcomeUnknown):
                    if unknown is None:
                        log.warning("the outcome of a metadata write is unknown; repeating it", reason=str(error))
                    unknown = fresh(error)
                elif unknown is None:
                    raise
                if isinstance(error, StoreClosed):
                    raise unknown from error
                await asyncio.sleep(REPEAT_S)

    async def drain(self) -> None:
        """Wait until no `write` is in progress, including writes that the results of earlier ones cause. A write
        whose outcome is unknown is repeated once more, and then reported as unknown. Call it last, before the store
        is closed."""
        self._is_draining = True
        if self._repeats is not None:
            self._repeats.cancel()
            self._repeat()
        if self._asked or self._refused:
            self._drained = asyncio.get_running_loop().create_future()
            await self._drained

    def _answered(self, asked: _Asked, _: None, error: Exception | None) -> None:
        if isinstance(error, Fenced):
            self._lose(error)
        if not self._is_undecided and not isinstance(error, OutcomeUnknown):
            self._tell(asked, error)
            return
        asked.is_answered = True
        asked.error = _explained(error)
        if not self._is_undecided:
            self._is_undecided = True
            log.warning("the outcome of a metadata write is unknown; repeating it", reason=str(error))
        if all(each.is_answered for each in self._asked):
            self._repeat_later()

    def _repeat_later(self) -> None:
        if self._is_draining:
            self._repeat()
        else:
            self._repeats = asyncio.get_running_loop().call_later(REPEAT_S, self._repeat)

    def _repeat(self) -> None:
        """Repeat everything that may have been written, in order, as one write."""
        self._repeats = None
        if self._lost is not None:
            self._repeated(None, fresh(self._lost))
            return
        again = [each for each in self._asked if each.error is None or isinstance(each.error, OutcomeUnknown)]
        changes = [change for each in again for change in each.changes]
        self._store.write(changes, self._fence).when_done(self._repeated)

    def _repeated(self, _: None, error: Exception | None) -> None:
        is_decided = not isinstance(error, StorageError)
        if not is_decided and not self._is_draining and not isinstance(error, StoreClosed):
            self._repeat_later()
            return
        if error is None:
            log.info("the metadata writes whose outcome was unknown are durable")
        if isinstance(error, Fenced):
            self._lose(error)
        self._is_undecided = False
        tell = asyncio.get_running_loop().call_soon  # so that an exception in one `then` does not affect the others
        for each in self._asked:
            was_unknown = isinstance(each.error, OutcomeUnknown)
            tell(self._tell, each, error if was_unknown and is_decided else each.error)

    def _lose(self, error: Fenced) -> None:
        if self._lost is None:
            self._lost = fresh(error)
            log.warning("another broker has taken over; this broker stops writing metadata", reason=str(error))

    def _refuse(self, then: Then, error: TidelogError) -> None:
        def refuse() -> None:
            self._refused -= 1
            try:
                then(error)
            finally:
                self._drain_if_done()

        self._refused += 1
        asyncio.get_running_loop().call_soon(refuse)

    def _tell(self, asked: _Asked, error: Exception | None) -> None:
        try:
            asked.then(_explained(error))
        finally:
            del self._asked[asked]
            self._drain_if_done()

    def _drain_if_done(self) -> None:
        if self._drained is not None and not self._asked and not self._refused:
            self._drained.set_result(None)
            self._drained = None


def _explained(error: Exception | None) -> TidelogError | None:
    if error is None or isinstance(error, TidelogError):
        return error
    log.error("a metadata write failed because of a bug", exc_info=error)
    return TidelogError(f"the metadata could not be written: {error!r}")
