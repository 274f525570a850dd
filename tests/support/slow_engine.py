"""A second storage engine, to test that the broker works with any: it uses local logs, but all results are late.

    append   is kept after a delay, in order; readers see it from then on. Some appends fail after they have begun:
             "lost" ones were not appended, "unknown" ones were, but the producer gets an error.
    read     is answered later, and never returns records that are not kept yet.

`Pace` defines the delays and which appends fail. As a program this is `tidelog serve` with such an engine, with the
longest delay in SLOW_SECONDS and the share of failing appends in SLOW_FAILING.
"""

import asyncio
import os
import random
import runpy
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from tidelog.errors import OffsetOutOfRange, StorageUnavailable, TidelogError
from tidelog.model import (
    FIRST_LEADER_EPOCH,
    LeaderEpoch,
    Offset,
    PartitionIdentity,
    ProducerEpoch,
    ProducerId,
    TimestampMs,
)
from tidelog.promise import Promise
from tidelog.records.batch import WriteBuffer
from tidelog.settings import LogSettings, StorageSettings
from tidelog.storage.local.log import LocalLog
from tidelog.storage.local.store import LocalStore
from tidelog.storage.log import (
    ActiveProducer,
    Appended,
    LogStats,
    ReadResult,
    TimestampOffset,
)

T = TypeVar("T")


class NotKept(StorageUnavailable):
    """The error of an append that was lost or whose outcome is unknown."""

    kafka_code = 6  # NOT_LEADER_OR_FOLLOWER: find the leader and retry
    retriable = True


class Pace:
    """`longest_s` is the longest delay; `failing` is the share of appends that fail, 0 to 1."""

    def __init__(self, longest_s: float = 0.003, failing: float = 0.0, seed: int = 0) -> None:
        self._longest_s = longest_s
        self._failing = failing
        self._random = random.Random(seed)

    def delay_s(self) -> float:
        return self._random.uniform(0, self._longest_s)

    def fate(self) -> str:
        if self._random.random() >= self._failing:
            return "kept"
        return self._random.choice(["lost", "unknown"])


class SlowStore(LocalStore):
    """A `LogStore` whose logs are slow, and slow to open."""

    def __init__(self, data_dir: str, settings: StorageSettings | None = None, *, pace: Pace) -> None:
        super().__init__(data_dir, settings)
        self._pace = pace
        self._slow: dict[PartitionIdentity, SlowLog] = {}

    def open(  # type: ignore[override]  # what it gives is a PartitionLog, but no LocalLog
        self,
        partition: PartitionIdentity,
        settings: LogSettings,
        now_ms: TimestampMs,
        *,
        leader_epoch: LeaderEpoch = FIRST_LEADER_EPOCH,
    ) -> "SlowLog | Promise[SlowLog]":
        known = self._slow.get(partition)
        if known is not None:
            return known
        opened = super().open(partition, settings, now_ms)
        slow = self._slow[partition] = SlowLog(opened, self._pace)
        promise: Promise[SlowLog] = Promise()
        asyncio.get_running_loop().call_later(self._pace.delay_s(), promise.settle, slow)
        return promise

    def release(self, partitions: Iterable[PartitionIdentity]) -> None:
        released = list(partitions)
        for partition in released:
            self._slow.pop(partition, None)
        super().release(released)


class _Pending:
    """A pending append: `outcome` is settled when its result is known and all earlier appends are settled."""

    __slots__ = ("end", "outcome", "promise", "size")

    def __init__(self, end: Offset, size: int) -> None:
        self.end = end
        self.size = size
        self.outcome: Appended | TidelogError | None = None
        self.promise: Promise[Appended] = Promise()


class SlowLog:
    """A `PartitionLog`."""

    def __init__(self, inner: LocalLog, pace: Pace) -> None:
        self._inner = inner
        self._pace = pace
        self._visible = inner.end_offset
        self._pending: deque[_Pending] = deque()
        self.on_progress: Callable[[int], None] | None = None
        self.recovery = inner.recovery
        inner.on_progress = self._inner_progressed

    @property
    def start_offset(self) -> Offset:
        return self._inner.start_offset

    @property
    def end_offset(self) -> Offset:
        return self._visible

    @property
    def last_stable_offset(self) -> Offset:
        return min(self._inner.last_stable_offset, self._visible)

    def append(
        self,
        batches: WriteBuffer,
        *,
        now_ms: TimestampMs,
        leader_epoch: LeaderEpoch,
        durable: bool,
        stamp: bool = False,
    ) -> Appended | Promise[Appended]:
        fate = self._pace.fate()
        if fate == "lost":
            return self._later(_lost)
        size = len(batches)
        appended = self._inner.append(batches, now_ms=now_ms, leader_epoch=leader_epoch, durable=durable, stamp=stamp)
        return self._kept_in_order(appended, size, fate)

    def end_transaction(
        self,
        producer_id: ProducerId,
        epoch: ProducerEpoch,
        *,
        committed: bool,
        coordinator_epoch: int,
        now_ms: TimestampMs,
        leader_epoch: LeaderEpoch,
    ) -> Appended | Promise[Appended]:
        fate = self._pace.fate()
        if fate == "lost":
            return self._later(_lost)
        appended = self._inner.end_transaction(
            producer_id,
            epoch,
            committed=committed,
            coordinator_epoch=coordinator_epoch,
            now_ms=now_ms,
            leader_epoch=leader_epoch,
        )
        return self._kept_in_order(appended, 78, fate)

    def read(
        self, offset: Offset, max_bytes: int, *, committed: bool = False, at_least_one: bool = True
    ) -> ReadResult | Promise[ReadResult]:
        self._check(offset)

        def read() -> ReadResult:
            return self._inner.read_now(
                offset, max_bytes, committed=committed, at_least_one=at_least_one, up_to=self._visible
            )

        return self._later(read)

    def locate(self, start: Offset, end: Offset, *, committed: bool) -> None:
        return self._inner.locate(start, end, committed=committed)

    def open_transactions(self) -> dict[ProducerId, Offset]:
        return self._inner.open_transactions()

    def offset_for_time(self, timestamp: TimestampMs) -> Promise[TimestampOffset | None]:
        return self._later(lambda: self._if_visible(self._inner.offset_for_time_now(timestamp)))

    def max_timestamp(self) -> Promise[TimestampOffset | None]:
        return self._later(lambda: self._if_visible(self._inner.max_timestamp_now()))

    def delete_before(self, offset: Offset) -> Promise[Offset]:
        if offset > self._visible:
            self._check(offset)
        return self._inner.delete_before(offset)

    def configure(self, settings: LogSettings) -> None:
        self._inner.configure(settings)

    def is_in_transaction(self, producer_id: ProducerId, epoch: ProducerEpoch) -> bool:
        return self._inner.is_in_transaction(producer_id, epoch)

    def epochs(self) -> Sequence[tuple[LeaderEpoch, Offset]]:
        return self._inner.epochs()

    def knows_producer(self, producer_id: ProducerId) -> bool:
        return self._inner.knows_producer(producer_id)

    def active_producers(self) -> list[ActiveProducer]:
        return self._inner.active_producers()

    def stats(self) -> LogStats:
        return self._inner.stats()

    def _check(self, offset: Offset) -> None:
        if not self.start_offset <= offset <= self._visible:
            raise OffsetOutOfRange(f"offset {offset} is outside {self.start_offset} to {self._visible}")

    def _if_visible(self, found: TimestampOffset | None) -> TimestampOffset | None:
        return found if found is not None and found.offset < self._visible else None

    def _later(self, make: Callable[[], T]) -> Promise[T]:
        promise: Promise[T] = Promise()

        def keep() -> None:
            try:
                result = make()
            except Exception as failure:
                promise.fail(failure)
            else:
                promise.settle(result)

        asyncio.get_running_loop().call_later(self._pace.delay_s(), keep)
        return promise

    def _kept_in_order(self, appended: Appended | Promise[Appended], size: int, fate: str) -> Promise[Appended]:
        end = self._inner.end_offset  # after all earlier appends, also for a duplicate
        pending = _Pending(end, size)
        self._pending.append(pending)

        def known(result: Appended | None, error: Exception | None) -> None:
            if fate == "unknown":
                outcome: Appended | TidelogError = NotKept("it is not known whether the append was kept")
            elif result is not None:
                outcome = result
            else:
                outcome = error if isinstance(error, TidelogError) else NotKept(str(error))
            asyncio.get_running_loop().call_later(self._pace.delay_s(), self._decided, pending, outcome)

        if isinstance(appended, Promise):
            appended.when_done(known)
        else:
            known(appended, None)
        return pending.promise

    def _decided(self, pending: _Pending, outcome: Appended | TidelogError) -> None:
        pending.outcome = outcome
        while self._pending and (done := self._pending[0].outcome) is not None:
            first = self._pending.popleft()
            if first.end > self._visible:
                self._visible = first.end
                if self.on_progress is not None:
                    self.on_progress(first.size)
            if isinstance(done, Appended):
                first.promise.settle(done)
            else:
                first.promise.fail(done)

    def _inner_progressed(self, size: int) -> None:
        if size == 0 and self.on_progress is not None:
            self.on_progress(0)


def _lost() -> Appended:
    raise NotKept("the append was lost")


def _open_slow_store(data_dir: str, settings: StorageSettings) -> SlowStore:
    pace = Pace(float(os.environ.get("SLOW_SECONDS", "0.003")), float(os.environ.get("SLOW_FAILING", "0")))
    return SlowStore(data_dir, settings, pace=pace)


if __name__ == "__main__":
    from tidelog import node

    setattr(node, "open_log_store", _open_slow_store)  # noqa: B010  (it is not exported)
    runpy.run_path(str(Path(__file__).with_name("watchdog.py")), run_name="__main__")
