"""A database in memory with the contract of `Order`, for tests and simulations of several brokers.

    database = FakeDatabase()
    first, second = FakeOrder(database), FakeOrder(database, faults)     # what two brokers hold
    ...
    database.check()                                                     # all invariants

Each operation takes effect at one instant, between two calls of the broker's hook: `await hook(call)` with
`Moment.BEFORE` and with `Moment.AFTER`. The hook may wait in either (delays; reordering between brokers), be
cancelled there (the broker crashed), or raise:

    BEFORE   StorageUnavailable      the database refused: nothing was changed
             OutcomeUnknown          the request was lost: nothing was changed, and the caller cannot know
             StillOnItsWay(arrival)  the caller gets OutcomeUnknown now; the change takes effect after `arrival`
    AFTER    OutcomeUnknown          the reply was lost: the change took effect

There are no clocks and no randomness here: the same calls and the same hook give the same history.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import NamedTuple, TypeAlias, TypeVar

from tidelog.errors import OffsetOutOfRange, OutcomeUnknown
from tidelog.model import NO_LEADER_EPOCH, LeaderEpoch, Offset, PartitionIdentity, TimestampMs
from tidelog.storage.log import AbortedTransaction
from tidelog.storage.shared.order import (
    FORGOTTEN_AFTER_MS,
    Cleaned,
    Extent,
    KnownLog,
    Leader,
    LogId,
    LogPart,
    NotTheLeader,
    Order,
    ProducerSnapshot,
    UnknownLog,
)

T = TypeVar("T")
NOBODY = -1
REFUSALS = (NotTheLeader, UnknownLog, OffsetOutOfRange)


class Moment(Enum):
    BEFORE = "before"
    AFTER = "after"


class Call(NamedTuple):
    operation: str
    """The name of the method of `Order`."""
    arguments: tuple[object, ...]
    moment: Moment


Hook: TypeAlias = Callable[[Call], Awaitable[None]]


class StillOnItsWay(Exception):
    def __init__(self, arrival: Awaitable[None]) -> None:
        super().__init__("the connection was lost, and the request is still on its way")
        self.arrival = arrival


@dataclass
class _Log:
    log_id: LogId
    partition: PartitionIdentity
    leader: int = NOBODY
    epoch: LeaderEpoch = NO_LEADER_EPOCH
    start_offset: Offset = 0
    high_watermark: Offset = 0
    stable_offset: Offset = 0
    extents: list[Extent] = field(default_factory=list)
    snapshot: ProducerSnapshot | None = None
    aborted: list[AbortedTransaction] = field(default_factory=list)
    epochs: list[tuple[LeaderEpoch, Offset]] = field(default_factory=list)
    cleaned: Cleaned = field(default_factory=Cleaned)
    exchanged: list[tuple[Offset, Offset]] = field(default_factory=list)
    """The ranges of offsets, with their last ones, in which compaction may have left gaps."""

    def is_led_by(self, leader: Leader) -> bool:
        return (self.leader, self.epoch) == leader


@dataclass
class _Object:
    number: int
    size: int
    counted: frozenset[LogId]
    """The logs whose parts of it counted when it was added: the answer to a repetition."""
    dead_since: TimestampMs | None = None
    removed_since: TimestampMs | None = None


class FakeDatabase:
    """The tables, and every operation as one synchronous step."""

    def __init__(self) -> None:
        self.clock: Callable[[], TimestampMs] = lambda: time.time_ns() // 1_000_000
        self._logs: dict[LogId, _Log] = {}
        self._by_partition: dict[tuple[bytes, int], _Log] = {}
        self._objects: dict[str, _Object] = {}
        self._next_log = 1
        self._next_object = 1
        self._seen: dict[LogId, tuple[LeaderEpoch, Offset, Offset]] = {}

    def create(self, partitions: Sequence[PartitionIdentity]) -> None:
        for partition in partitions:
            place = (partition.topic.topic_id, partition.number)
            if place not in self._by_partition:
                log = _Log(LogId(self._next_log), partition)
                self._next_log += 1
                self._logs[log.log_id] = self._by_partition[place] = log

    def take_over(self, partitions: Sequence[PartitionIdentity], broker_id: int) -> list[LeaderEpoch]:
        logs = [self._of(partition) for partition in partitions]
        for log in {log.log_id: log for log in logs}.values():
            log.leader, log.epoch = broker_id, LeaderEpoch(log.epoch + 1)
        return [log.epoch for log in logs]

    def load(self, partition: PartitionIdentity, leader: Leader) -> KnownLog:
        log = self._led(self._of(partition).log_id, leader)
        return KnownLog(
            log.log_id,
            log.start_offset,
            log.high_watermark,
            tuple(log.extents),
            log.snapshot,
            tuple(log.aborted),
            tuple(log.epochs),
            log.cleaned,
        )

    def commit(
        self, key: str, size: int, broker_id: int, parts: Sequence[LogPart], now_ms: TimestampMs
    ) -> frozenset[LogId]:
        assert key
        assert parts, "a bundle without parts"
        assert len({part.log_id for part in parts}) == len(parts), "two parts of one log"
        known = self._objects.get(key)
        if known is not None:
            return known.counted
        passed = [part for part in parts if self._fits(part, broker_id)]
        counted = frozenset(part.log_id for part in passed)
        self._add_object(key, size, counted, None if passed else now_ms)
        for part in passed:
            assert part.base_offset <= part.last_offset
            log = self._logs[part.log_id]
            if not log.epochs or log.epochs[-1][0] != part.leader_epoch:
                log.epochs.append((part.leader_epoch, part.base_offset))
            log.extents.append(
                Extent(
                    part.base_offset,
                    part.last_offset,
                    key,
                    part.position,
                    part.size,
                    part.max_timestamp,
                    part.producers,
                )
            )
            log.aborted.extend(part.aborted)
            log.high_watermark = part.last_offset + 1
            log.stable_offset = part.stable_offset
        return counted

    def replace(
        self,
        log_id: LogId,
        leader: Leader,
        key: str,
        size: int,
        old: Sequence[Extent],
        new: Sequence[Extent],
        snapshot: ProducerSnapshot | None,
        now_ms: TimestampMs,
    ) -> bool:
        assert key
        assert old, "nothing to replace"
        assert all(extent.key == key for extent in new)
        assert not new or (old[0].base_offset <= new[0].base_offset and new[-1].last_offset <= old[-1].last_offset)
        known = self._objects.get(key)
        if known is not None:
            return log_id in known.counted
        log = self._led(log_id, leader)
        first, last = old[0].base_offset, old[-1].last_offset
        there = [extent for extent in log.extents if first <= extent.last_offset <= last]
        if [extent[:5] for extent in there] != [extent[:5] for extent in old]:
            self._add_object(key, size, frozenset(), now_ms)
            return False
        self._add_object(key, size, frozenset([log_id]), None if new else now_ms)
        at = log.extents.index(there[0])
        log.extents[at : at + len(there)] = new
        log.exchanged.append((first, last))
        if snapshot is not None and (log.snapshot is None or log.snapshot.offset <= snapshot.offset):
            log.snapshot = snapshot
        self._bury({extent.key for extent in old}, now_ms)
        return True

    def keep_snapshot(self, log_id: LogId, leader: Leader, snapshot: ProducerSnapshot) -> None:
        log = self._led(log_id, leader)
        if log.snapshot is None or log.snapshot.offset <= snapshot.offset:
            log.snapshot = snapshot

    def keep_cleaned(self, log_id: LogId, leader: Leader, cleaned: Cleaned, void_aborts: Sequence[Offset]) -> None:
        log = self._led(log_id, leader)
        log.cleaned = cleaned._replace(offset=max(log.cleaned.offset, cleaned.offset))
        log.aborted = [one for one in log.aborted if one.last_offset not in void_aborts]

    def move_start(self, log_id: LogId, leader: Leader, start_offset: Offset, now_ms: TimestampMs) -> None:
        log = self._led(log_id, leader)
        if start_offset > log.high_watermark:
            raise OffsetOutOfRange(f"offset {start_offset} is after the high watermark, {log.high_watermark}")
        log.start_offset = start = max(start_offset, log.start_offset)
        gone = {extent.key for extent in log.extents if extent.last_offset < start}
        log.extents = [extent for extent in log.extents if extent.last_offset >= start]
        log.aborted = [one for one in log.aborted if one.last_offset >= start]
        ended = sum(1 for _, (_, end) in pairwise(log.epochs) if end <= start)
        del log.epochs[:ended]
        self._bury(gone, now_ms)

    def delete(self, topic_id: bytes, now_ms: TimestampMs) -> None:
        gone = [log for log in self._logs.values() if log.partition.topic.topic_id == topic_id]
        for log in gone:
            del self._logs[log.log_id], self._by_partition[topic_id, log.partition.number]
        self._bury({extent.key for log in gone for extent in log.extents}, now_ms)

    def topics(self) -> list[tuple[bytes, str, bool]]:
        unused: dict[tuple[bytes, str], bool] = {}
        for log in self._logs.values():
            topic = (log.partition.topic.topic_id, log.partition.topic.name)
            unused[topic] = unused.get(topic, True) and log.high_watermark == 0
        return sorted((topic_id, name, is_unused) for (topic_id, name), is_unused in unused.items())

    def dead_objects(self, before_ms: TimestampMs, limit: int) -> list[str]:
        dead = sorted(
            (one.dead_since, one.number, key)
            for key, one in self._objects.items()
            if one.dead_since is not None and one.removed_since is None and one.dead_since < before_ms
        )
        return [key for _, _, key in dead[:limit]]

    def declare_dead(self, keys: Iterable[str], now_ms: TimestampMs) -> list[str]:
        unknown = sorted(set(keys) - self._objects.keys())
        for key in unknown:
            self._add_object(key, 0, frozenset(), now_ms)
        return unknown

    def forget_objects(self, keys: Iterable[str], now_ms: TimestampMs) -> None:
        for key in keys:
            one = self._objects.get(key)
            if one is not None and one.dead_since is not None and one.removed_since is None:
                one.removed_since = now_ms
        self._objects = {
            key: one
            for key, one in self._objects.items()
            if one.removed_since is None or one.removed_since > now_ms - FORGOTTEN_AFTER_MS
        }

    def _of(self, partition: PartitionIdentity) -> _Log:
        log = self._by_partition.get((partition.topic.topic_id, partition.number))
        if log is None:
            raise UnknownLog(f"there is no log of {partition.name}")
        return log

    def _led(self, log_id: LogId, leader: Leader) -> _Log:
        log = self._logs.get(log_id)
        if log is None:
            raise UnknownLog(f"there is no log {log_id}")
        if not log.is_led_by(leader):
            raise NotTheLeader(
                f"broker {leader.broker_id} does not lead {log.partition.name} at epoch {leader.epoch}"
            )
        return log

    def _fits(self, part: LogPart, broker_id: int) -> bool:
        log = self._logs.get(part.log_id)
        return (
            log is not None
            and log.is_led_by(Leader(broker_id, part.leader_epoch))
            and log.high_watermark == part.base_offset
        )

    def _add_object(self, key: str, size: int, counted: frozenset[LogId], dead_since: TimestampMs | None) -> None:
        self._objects[key] = _Object(self._next_object, size, counted, dead_since)
        self._next_object += 1

    def _bury(self, keys: set[str], now_ms: TimestampMs) -> None:
        for key in keys - {extent.key for log in self._logs.values() for extent in log.extents}:
            self._objects[key].dead_since = now_ms

    def check(self) -> None:
        """Assert what must always hold, and that nothing went back since the last call."""
        used: dict[str, list[tuple[int, int]]] = {}
        for log in self._logs.values():
            self._check_log(log)
            for extent in log.extents:
                used.setdefault(extent.key, []).append((extent.position, extent.position + extent.size))
                assert log.log_id in self._objects[extent.key].counted, f"{extent} never counted"
        for key, ranges in used.items():
            one = self._objects[key]
            assert one.dead_since is None, f"{key} is dead, and a log has it"
            ranges.sort()
            assert ranges[0][0] >= 0
            assert ranges[-1][1] <= one.size, f"an extent is not within its object {key}"
            assert all(before[1] <= after[0] for before, after in pairwise(ranges)), f"extents of {key} overlap"
        for key, one in self._objects.items():
            assert one.dead_since is not None or key in used, f"no log has {key}, and it is not dead"
            assert one.removed_since is None or one.dead_since is not None

    def _check_log(self, log: _Log) -> None:
        assert 0 <= log.start_offset <= log.high_watermark
        for extent in log.extents:
            assert extent.base_offset <= extent.last_offset
            assert extent.size > 0
            assert extent.last_offset >= log.start_offset, f"{extent} is before the start"
        for before, after in pairwise(log.extents):
            assert before.last_offset < after.base_offset, f"{before} and {after} overlap"
        end = log.start_offset
        for base, last in [*((one.base_offset, one.last_offset) for one in log.extents), (log.high_watermark, -1)]:
            for missing in range(end, base):
                assert any(a <= missing <= b for a, b in log.exchanged), f"offset {missing} of {log.log_id} is lost"
            end = last + 1
        assert all(before[0] < after[0] and before[1] < after[1] for before, after in pairwise(log.epochs))
        assert all(epoch <= log.epoch and first < log.high_watermark for epoch, first in log.epochs)
        assert bool(log.epochs) == (log.high_watermark > 0)
        assert all(log.start_offset <= one.last_offset < log.high_watermark for one in log.aborted)
        assert log.cleaned.offset <= log.high_watermark
        assert log.snapshot is None or log.snapshot.offset <= log.high_watermark
        now = (log.epoch, log.start_offset, log.high_watermark)
        before_ = self._seen.get(log.log_id, now)
        assert all(was <= is_ for was, is_ in zip(before_, now, strict=True)), f"log {log.log_id} went back"
        self._seen[log.log_id] = now


class FakeOrder(Order):
    """What one broker holds: its connections to the database, with its own faults."""

    def __init__(self, database: FakeDatabase | None = None, hook: Hook | None = None) -> None:
        self.database = FakeDatabase() if database is None else database
        self.hook = hook
        self._commits = asyncio.Lock()
        self._others = asyncio.Lock()
        self._arrivals: set[asyncio.Task[None]] = set()

    async def create(self, partitions: Sequence[PartitionIdentity]) -> None:
        await self._call("create", self.database.create, partitions)

    async def take_over(self, partitions: Sequence[PartitionIdentity], broker_id: int) -> list[LeaderEpoch]:
        return await self._call("take_over", self.database.take_over, partitions, broker_id)

    async def load(self, partition: PartitionIdentity, leader: Leader) -> KnownLog:
        async with self._commits:
            pass
        return await self._call("load", self.database.load, partition, leader)

    async def commit(
        self, key: str, size: int, broker_id: int, parts: Sequence[LogPart], now_ms: TimestampMs
    ) -> frozenset[LogId]:
        return await self._call("commit", self.database.commit, key, size, broker_id, parts, now_ms)

    async def replace(
        self,
        log_id: LogId,
        leader: Leader,
        key: str,
        size: int,
        old: Sequence[Extent],
        new: Sequence[Extent],
        snapshot: ProducerSnapshot | None,
        now_ms: TimestampMs,
    ) -> bool:
        return await self._call(
            "replace", self.database.replace, log_id, leader, key, size, old, new, snapshot, now_ms
        )

    async def keep_snapshot(self, log_id: LogId, leader: Leader, snapshot: ProducerSnapshot) -> None:
        await self._call("keep_snapshot", self.database.keep_snapshot, log_id, leader, snapshot)

    async def keep_cleaned(
        self, log_id: LogId, leader: Leader, cleaned: Cleaned, void_aborts: Sequence[Offset]
    ) -> None:
        await self._call("keep_cleaned", self.database.keep_cleaned, log_id, leader, cleaned, void_aborts)

    async def move_start(self, log_id: LogId, leader: Leader, start_offset: Offset, now_ms: TimestampMs) -> None:
        await self._call("move_start", self.database.move_start, log_id, leader, start_offset, now_ms)

    async def delete(self, topic_id: bytes, now_ms: TimestampMs) -> None:
        await self._call("delete", self.database.delete, topic_id, now_ms)

    async def topics(self) -> list[tuple[bytes, str, bool]]:
        return await self._call("topics", self.database.topics)

    async def dead_objects(self, before_ms: TimestampMs, limit: int) -> list[str]:
        return await self._call("dead_objects", self.database.dead_objects, before_ms, limit)

    async def clock_ms(self) -> TimestampMs:
        return await self._call("clock_ms", self.database.clock)

    async def declare_dead(self, keys: Iterable[str], now_ms: TimestampMs) -> list[str]:
        return await self._call("declare_dead", self.database.declare_dead, list(keys), now_ms)

    async def forget_objects(self, keys: Iterable[str], now_ms: TimestampMs) -> None:
        await self._call("forget_objects", self.database.forget_objects, list(keys), now_ms)

    async def close(self) -> None:
        """Returns when everything that is still on its way has arrived."""
        await asyncio.gather(*self._arrivals)

    async def _call(self, operation: str, apply: Callable[..., T], *arguments: object) -> T:
        """Calls of one broker go over two connections, as in PostgreSQL: one for commits, one for everything else.
        On each they take effect in the order of the calls."""
        connection = self._commits if operation == "commit" else self._others
        async with AsyncExitStack() as held:
            await held.enter_async_context(connection)
            try:
                await self._tell(Call(operation, arguments, Moment.BEFORE))
            except StillOnItsWay as lost:
                # What comes later over this connection waits for it.
                keep = held.pop_all()
                task = asyncio.ensure_future(_arrive(lost.arrival, apply, arguments, keep))
                self._arrivals.add(task)
                task.add_done_callback(self._arrivals.discard)
                raise OutcomeUnknown(str(lost)) from None
            answer = _answer(apply, arguments)
        await self._tell(Call(operation, arguments, Moment.AFTER))
        if isinstance(answer, REFUSALS):
            raise answer
        return answer

    async def _tell(self, call: Call) -> None:
        if self.hook is not None:
            await self.hook(call)


def _answer(
    apply: Callable[..., T], arguments: tuple[object, ...]
) -> T | NotTheLeader | UnknownLog | OffsetOutOfRange:
    try:
        return apply(*arguments)
    except REFUSALS as refused:
        return refused


async def _arrive(
    arrival: Awaitable[None], apply: Callable[..., object], arguments: tuple[object, ...], connection: AsyncExitStack
) -> None:
    async with connection:
        await arrival
        with suppress(*REFUSALS):  # nobody is there to hear it
            apply(*arguments)
