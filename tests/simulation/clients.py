"""The clients of a simulated cluster. They retry as Kafka's clients do, and record what they were told."""

import asyncio
from collections import deque
from typing import NamedTuple

from tests.simulation.cluster import World
from tests.simulation.history import History, need, records_of
from tests.support.logs import batch
from tidelog.errors import OffsetOutOfRange, TidelogError
from tidelog.model import Offset, PartitionIdentity, ProducerEpoch, ProducerId
from tidelog.promise import Promise, result_of
from tidelog.records.batch import BatchView, iterate
from tidelog.records.record import decode, read_marker
from tidelog.storage.log import Appended, ReadResult
from tidelog.storage.shared.log import SharedLog

_EPOCH = ProducerEpoch(0)
_IN_FLIGHT = 4


class _Batch(NamedTuple):
    sequence: int
    values: list[bytes]


class Producer:
    """An idempotent producer of one partition: several batches in flight, and what was not acknowledged is sent
    again."""

    def __init__(self, world: World, producer_id: int, partition: PartitionIdentity) -> None:
        self._world = world
        self._id = ProducerId(producer_id)
        self._partition = partition
        self._next_sequence = 0
        self._waiting: deque[_Batch] = deque()
        self._is_transactional = False

    async def run(self, batches: int) -> None:
        while batches or self._waiting:
            while batches and len(self._waiting) < _IN_FLIGHT:
                self._add()
                batches -= 1
            await self._send()
            await self._pause()

    def _add(self) -> list[bytes]:
        first, count = self._next_sequence, self._world.chance.randint(1, 3)
        values = [b"%d:%d" % (self._id, number) for number in range(first, first + count)]
        self._waiting.append(_Batch(first, values))
        self._next_sequence += count
        return values

    async def _send(self) -> None:
        sent = list(self._waiting)

        async def ask(log: SharedLog) -> list[Appended | None]:
            begun = [self._append(log, each) for each in sent]
            return [await _result_or_none(each) for each in begun]

        try:
            results = await self._world.call(self._partition, ask)
        except (TidelogError, TimeoutError):
            return
        for each, result in zip(sent, results, strict=True):
            if result is not None:
                self._world.history.was_acknowledged(self._partition, result.base_offset, each.values)
        for result in results:
            if result is None:
                break
            self._waiting.popleft()

    def _append(self, log: SharedLog, each: _Batch) -> Appended | Promise[Appended] | None:
        data = batch(
            *each.values,
            producer_id=self._id,
            producer_epoch=_EPOCH,
            sequence=each.sequence,
            transactional=self._is_transactional,
            key_of=self._world.key_of,
        )
        try:
            return log.append(data, now_ms=self._world.now_ms(), leader_epoch=log.leader_epoch, durable=True)
        except TidelogError:
            return None

    async def _pause(self) -> None:
        await asyncio.sleep(self._world.chance.uniform(0, 0.5))


class TransactionalProducer(Producer):
    """Writes transactions, each to the end: what was not acknowledged is sent again, and so are the markers."""

    def __init__(self, world: World, producer_id: int, partition: PartitionIdentity) -> None:
        super().__init__(world, producer_id, partition)
        self._is_transactional = True

    async def run(self, batches: int) -> None:
        history = self._world.history
        while batches > 0:
            written: list[bytes] = []
            for _ in range(self._world.chance.randint(1, 3)):
                values = self._add()
                history.transactional.update(values)
                written += values
                batches -= 1
            while self._waiting:
                await self._send()
                await self._pause()
            committed = self._world.chance.random() < 0.5
            history.decided.update(dict.fromkeys(written, committed))
            while not await self._end(committed=committed):
                await self._pause()

    async def _end(self, *, committed: bool) -> bool:
        async def ask(log: SharedLog) -> Appended:
            return await result_of(
                log.end_transaction(
                    self._id,
                    _EPOCH,
                    committed=committed,
                    coordinator_epoch=0,
                    now_ms=self._world.now_ms(),
                    leader_epoch=log.leader_epoch,
                )
            )

        leader = self._world.leaders[self._partition]
        try:
            await self._world.call(self._partition, ask, may_be_old=False)
        except (TidelogError, TimeoutError):
            return False
        return self._world.leaders[self._partition] == leader


class PlainProducer:
    """Writes batches without a producer id: what was acknowledged must be there, and may be there twice."""

    def __init__(self, world: World, name: int, partition: PartitionIdentity) -> None:
        self._world = world
        self._name = name
        self._partition = partition

    async def run(self, batches: int) -> None:
        for number in range(batches):
            values = [b"plain %d:%d" % (self._name, number)]

            async def ask(log: SharedLog, values: list[bytes] = values) -> Appended:
                return await result_of(
                    log.append(
                        batch(*values, key_of=self._world.key_of),
                        now_ms=self._world.now_ms(),
                        leader_epoch=log.leader_epoch,
                        durable=False,
                    )
                )

            try:
                result = await self._world.call(self._partition, ask)
            except (TidelogError, TimeoutError):
                pass
            else:
                self._world.history.was_acknowledged(self._partition, result.base_offset, values)
            await asyncio.sleep(self._world.chance.uniform(0, 0.5))


class Reader:
    """Follows one partition for as long as the simulation runs."""

    def __init__(self, world: World, partition: PartitionIdentity, *, committed: bool) -> None:
        self._world = world
        self._partition = partition
        self._committed = committed
        self._offset: Offset = 0

    async def run(self) -> None:
        while True:
            try:
                await self._read()
            except OffsetOutOfRange:
                await self._go_to_start()
            except (TidelogError, TimeoutError):
                pass
            await asyncio.sleep(self._world.chance.uniform(0, 0.3))

    async def _read(self) -> None:
        offset, max_bytes = self._offset, self._world.chance.choice([1, 200, 100_000])

        async def ask(log: SharedLog) -> ReadResult:
            return await result_of(log.read(offset, max_bytes, committed=self._committed))

        result = await self._world.call(self._partition, ask)
        batches = list(iterate(result.read()))
        for each in batches:
            self._world.history.was_seen(self._partition, each, self._world.high_watermark(self._partition))
        if batches:
            need(batches[0].header.last_offset >= offset, f"asked for {offset}, got {batches[0].header}")
            self._offset = batches[-1].header.next_offset
        if self._committed:
            for value in committed_values(batches, result):
                self._world.history.was_seen_as_committed(value)

    async def _go_to_start(self) -> None:
        async def ask(log: SharedLog) -> Offset:
            return log.start_offset

        try:
            self._offset = max(self._offset, await self._world.call(self._partition, ask))
        except (TidelogError, TimeoutError):
            pass


def committed_values(batches: list[BatchView], result: ReadResult, start: Offset = 0) -> list[bytes]:
    """What is left for a reader of committed records, who skips what the aborted transactions say."""
    found: list[bytes] = []
    aborting: set[int] = set()
    upcoming = sorted(result.aborted, key=lambda entry: entry.first_offset)
    for each in batches:
        header = each.header
        while upcoming and upcoming[0].first_offset <= header.last_offset:
            aborting.add(upcoming.pop(0).producer_id)
        if header.is_control:
            if header.record_count and read_marker(each).name == "abort":  # compaction may leave it empty
                aborting.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborting):
            found += [record.value or b"" for record in decode(each) if record.offset >= start]
    return found


async def check_all(world: World, history: History) -> None:
    """Compare what everyone saw with what is there in the end, read by a broker that has nothing in memory."""
    for partition in world.partitions:
        log = await world.opened_anew(partition)
        whole, visible, offset = {}, [], log.start_offset
        need(log.last_stable_offset == log.end_offset, f"{partition.name}: a transaction never ended")
        while offset < log.end_offset:
            result = await result_of(log.read(offset, 10_000, committed=True))
            batches = list(iterate(result.read()))
            need(bool(batches), f"{partition.name}: nothing to read at {offset} of {log.end_offset}")
            if not world.plan.compacted:
                need(batches[0].header.base_offset <= offset, f"{partition.name}: nothing at {offset}")
            for each in batches:
                whole.update({at: one for at, one in records_of(each).items() if at >= log.start_offset})
            visible += committed_values(batches, result, log.start_offset)
            offset = batches[-1].header.next_offset
        history.check_final(partition, log.start_offset, whole, visible)


async def _result_or_none(begun: Appended | Promise[Appended] | None) -> Appended | None:
    try:
        return await begun if isinstance(begun, Promise) else begun
    except TidelogError:
        return None
