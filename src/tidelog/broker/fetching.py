"""Fetching: read from several partitions, with a long poll if requested. All gateways use it.

A fetch is answered when its partitions have `min_bytes` together, or after `max_wait_ms`, or at once when a partition
has an error or the broker stops. It returns whole batches, beginning with the one that contains the requested offset.
The first batch of the first partition with data is returned however large it is, so that a reader can always make
progress. A reader of committed records waits for transactions to end, not for their records. A fetch of very many
partitions reads some of them at a time, and lets the event loop run in between.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from tidelog.broker.admission import Operation, ResourceKind
from tidelog.broker.ownership import check_epoch
from tidelog.broker.partition import DataWait, Partition
from tidelog.broker.sessions import Session
from tidelog.broker.topics import UnknownTopicId
from tidelog.errors import TidelogError
from tidelog.model import Offset
from tidelog.promise import Continuation, Promise, after_all
from tidelog.storage.log import NOTHING, ReadResult

if TYPE_CHECKING:
    from tidelog.broker.broker import Broker

_MANY = 2000  # partitions; reading this many takes about 10 ms
_AT_ONCE = 500


class Target(Protocol):
    """A partition, and the offset to read from. The topic is None if its id is unknown."""

    topic: str | None
    index: int
    offset: Offset
    max_bytes: int
    leader_epoch: int
    """The leader epoch that the reader knows; -1: not given."""


@dataclass(slots=True)
class ReadFrom:
    """A target without any state of the reader."""

    topic: str | None
    index: int
    offset: Offset
    max_bytes: int
    leader_epoch: int = -1


T = TypeVar("T", bound=Target)


class FetchLimits(NamedTuple):
    min_bytes: int
    max_bytes: int
    max_wait_ms: int | None
    """None: wait until there is enough, even while the broker stops."""
    committed: bool


class Fetched(Generic[T]):
    """The result for one partition: batches (none if `result` is empty) or an error."""

    __slots__ = ("error", "high_watermark", "last_stable_offset", "result", "start_offset", "target")

    def __init__(
        self,
        target: T,
        error: TidelogError | None,
        high_watermark: Offset,
        last_stable_offset: Offset,
        start_offset: Offset,
        result: ReadResult = NOTHING,
    ) -> None:
        self.target = target
        self.error = error
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.start_offset = start_offset
        self.result = result


def fetch(
    broker: "Broker",
    session: Session | None,
    targets: Callable[[], Sequence[T]],
    limits: FetchLimits,
    is_quiet: Callable[[T], bool] | None = None,
) -> "list[Fetched[T]] | LongPoll[T]":
    """The data, or a `LongPoll` that waits for it. The session is the reader's; None: the broker itself reads.
    `targets` is called again for every read of the long poll; targets for which `is_quiet` is true are skipped."""
    look = _Look(broker, session, targets, limits, is_quiet)
    if len(look.targets) <= _MANY:
        look.read(look.targets)
        if not look.coming and (limits.max_wait_ms == 0 or look.is_enough):
            return look.found
    return LongPoll(look)


class LongPoll(Generic[T]):
    """A fetch that waits for new data, or for reads in progress. When enough data has been appended it reads again,
    at the end of that iteration of the event loop, so that it finds everything appended in it. When its time is over
    it reads a last time."""

    def __init__(self, look: "_Look[T]") -> None:
        self.answer: Promise[list[Fetched[T]]] = Promise()
        limits = look.limits
        self._broker = look.broker
        self._last = look
        self._is_over = limits.max_wait_ms == 0
        self._is_looking = False
        self._look_again = False  # more data was appended during a read
        self._is_ended = False
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._wait = DataWait(self._look_soon, look.missing_bytes, committed=limits.committed)
        self._partitions = [
            partition for target in look.targets if (partition := look.broker.find(target.topic, target.index))
        ]
        for partition in self._partitions:
            partition.add_wait(self._wait)
        self._timer: asyncio.TimerHandle | None = None
        if limits.max_wait_ms is not None:
            self._broker.waits.add(self._wait)
            self._timer = self._loop.call_later(limits.max_wait_ms / 1000, self.hurry)
        if not look.is_begun:
            self._start(look)
        elif look.coming:
            self._is_looking = True
            self._await_reads(look)

    def hurry(self) -> None:
        """Answer with what there is."""
        self._is_over = True
        self._look()

    def abandon(self) -> None:
        """The answer is no longer needed."""
        self._is_ended = True
        if self._timer is not None:
            self._timer.cancel()
        self._broker.waits.discard(self._wait)
        for partition in self._partitions:
            partition.remove_wait(self._wait)
        self._partitions = []

    def _look_soon(self) -> None:
        self._loop.call_soon(self._look)

    def _look(self) -> None:
        if self._is_ended:
            return
        if self._is_looking:
            self._look_again = True
            return
        self._start(self._last.again())

    def _start(self, look: "_Look[T]") -> None:
        self._is_looking = True
        self._wait.need(look.missing_bytes)  # counts data that is appended during the read
        if len(look.targets) > _MANY:
            task = self._loop.create_task(self._look_in_steps(look))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return
        try:
            look.read(look.targets)
        except Exception as bug:
            self._fail(bug)
        else:
            self._await_reads(look)

    async def _look_in_steps(self, look: "_Look[T]") -> None:
        try:
            await look.read_in_steps()
        except Exception as bug:
            self._fail(bug)
        else:
            self._await_reads(look)

    def _await_reads(self, look: "_Look[T]") -> None:
        if look.coming:
            after_all(look.coming, lambda: None).when_done(lambda _, bug: self._looked(look, bug))
        else:
            self._looked(look, None)

    def _looked(self, look: "_Look[T]", bug: Exception | None) -> None:
        self._is_looking = False
        if self._is_ended:
            return
        if bug is not None:
            self._fail(bug)
        elif look.is_enough or self._is_over:
            self.abandon()
            self.answer.settle(look.found)
        elif self._look_again:
            self._look_again = False
            self._look_soon()
        else:
            self._wait.need(look.missing_bytes)

    def _fail(self, bug: Exception) -> None:
        if not self._is_ended:
            self.abandon()
            self.answer.fail(bug)


class _Look(Generic[T]):
    """One read of the partitions, within the limits. Data that is not in memory is a promise in `coming`: the look is
    complete when all of them are kept."""

    __slots__ = (
        *("_ask", "_failed", "_is_quiet", "_session", "_total"),
        *("broker", "coming", "found", "is_begun", "limits", "targets"),
    )

    def __init__(
        self,
        broker: "Broker",
        session: Session | None,
        ask: Callable[[], Sequence[T]],
        limits: FetchLimits,
        is_quiet: Callable[[T], bool] | None,
    ) -> None:
        self.broker = broker
        self.limits = limits
        self.targets = ask()
        self.found: list[Fetched[T]] = []
        self.coming: list[tuple[Promise[ReadResult], Continuation[ReadResult]]] = []
        self.is_begun = False
        self._session = session
        self._ask = ask
        self._is_quiet = is_quiet
        self._total = 0
        self._failed = False

    def again(self) -> "_Look[T]":
        return _Look(self.broker, self._session, self._ask, self.limits, self._is_quiet)

    @property
    def missing_bytes(self) -> int:
        return min(self.limits.min_bytes, self.limits.max_bytes) - self._total

    @property
    def is_enough(self) -> bool:
        """The fetch can be answered: there is enough data, a partition has an error, or the broker stops."""
        if self._failed or self.missing_bytes <= 0:
            return True
        return self.broker.is_stopping and self.limits.max_wait_ms is not None

    async def read_in_steps(self) -> None:
        for first in range(0, len(self.targets), _AT_ONCE):
            if first:
                await asyncio.sleep(0)
            self.read(self.targets[first : first + _AT_ONCE])

    def read(self, targets: Sequence[T]) -> None:
        self.is_begun = True
        broker, found, is_quiet, session = self.broker, self.found, self._is_quiet, self._session
        guarded = session if broker.admission.authorizer is not None else None
        _, room, _, committed = self.limits
        total = self._total
        for target in targets:
            if is_quiet is not None and is_quiet(target):
                continue
            try:
                if target.topic is None:
                    raise UnknownTopicId("no topic has this id")
                partition = broker.partition(target.topic, target.index)
                if guarded is not None:
                    broker.admission.check(guarded, Operation.READ, ResourceKind.TOPIC, target.topic)
                if target.leader_epoch >= 0:
                    check_epoch(target.leader_epoch, partition.leader_epoch)
                log = partition.log
                limit = min(target.max_bytes, room - total)
                if limit > 0 or not total:
                    result = log.read(target.offset, max(limit, 0), committed=committed, at_least_one=total == 0)
                else:
                    result = NOTHING
            except TidelogError as error:
                self._failed = True
                found.append(Fetched(target, error, -1, -1, self._start_of(target)))
                continue
            end, stable, start = log.end_offset, log.last_stable_offset, log.start_offset
            if isinstance(result, Promise):
                fetched = Fetched(target, None, end, stable, start)
                reserved = max(limit, 1)  # the read may return this much, and counts as the first with data
                total += reserved
                self.coming.append((result, partial(self._arrived, fetched, partition, reserved)))
            else:
                fetched = Fetched(target, None, end, stable, start, result)
                total += result.size
            found.append(fetched)
        self._total = total

    def _arrived(
        self,
        fetched: Fetched[T],
        partition: Partition,
        reserved: int,
        result: ReadResult | None,
        error: Exception | None,
    ) -> None:
        self._total -= reserved
        if result is not None:
            fetched.result = result
            self._total += result.size
            log = partition.log  # there may be more by now, also in what was read
            fetched.high_watermark = log.end_offset
            fetched.last_stable_offset = log.last_stable_offset
            fetched.start_offset = log.start_offset
        elif isinstance(error, TidelogError):
            fetched.error, self._failed = error, True
            fetched.high_watermark = fetched.last_stable_offset = -1
            fetched.start_offset = self._start_of(fetched.target)
        elif error is not None:
            raise error

    def _start_of(self, target: T) -> Offset:
        """Readers are told where the log begins even if they cannot read from it; -1 if nobody knows."""
        known = self.broker.find(target.topic, target.index)
        return -1 if known is None else known.log.start_offset
