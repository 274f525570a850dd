"""What every `PartitionLog` keeps to, whatever engine is behind it. What is true of files alone: test_log.py."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.support.logs import EPOCH, NOW_MS, batch, stored
from tests.support.memory_files import MemoryFiles
from tests.support.shared_store import Services
from tests.support.slow_engine import Pace, SlowStore
from tidelog.errors import (
    CorruptBatch,
    InvalidProducerEpoch,
    OffsetOutOfRange,
    OutOfOrderSequence,
    RecordTooLarge,
    TidelogError,
)
from tidelog.model import LeaderEpoch, ProducerEpoch, ProducerId
from tidelog.promise import result_of
from tidelog.records.batch import iterate
from tidelog.records.record import decode
from tidelog.settings import LogSettings, StorageSettings
from tidelog.storage.local.store import LocalStore
from tidelog.storage.log import Appended, LogStore, PartitionLog, ReadResult

Story = Callable[[PartitionLog], Coroutine[Any, Any, None]]
Play = Callable[..., None]

ENGINES = [
    *("files", "files in memory", "without a tail", "cold", "slow", "very slow"),
    *("shared in memory", "shared in memory, without a tail", "shared in s3, without a tail"),
]


@pytest.fixture(params=ENGINES)
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Play:
    """Runs a story with a new log."""
    files = MemoryFiles()

    async def open_store() -> LogStore:
        no_tail = StorageSettings(tail_cache_bytes=0)
        if request.param.startswith("shared"):
            kind = request.param.removeprefix("shared in ").removesuffix(", without a tail")
            settings = no_tail if request.param.endswith("without a tail") else None
            return await Services(kind, str(tmp_path)).open(settings)
        match request.param:
            case "files":
                return LocalStore(str(tmp_path))
            case "without a tail":
                return LocalStore(str(tmp_path), no_tail)
            case "slow" | "very slow":
                return SlowStore(str(tmp_path), pace=Pace(0.0005 if request.param == "slow" else 0.01))
            case _:
                return LocalStore("/data", no_tail, files=files)

    async def main(story: Story, settings: LogSettings) -> None:
        store = await open_store()
        log = await result_of(store.open(stored("t"), settings, NOW_MS))
        cooling = asyncio.ensure_future(cool()) if request.param == "cold" else None
        try:
            await story(log)
        finally:
            if cooling is not None:
                cooling.cancel()
            assert await store.close() == {}

    async def cool() -> None:
        """What was read leaves memory again at once."""
        while True:
            files.cold = {path for path, inode in files.names.items() if inode is not None}
            await asyncio.sleep(0)

    def run(story: Story, settings: LogSettings | None = None) -> None:
        asyncio.run(asyncio.wait_for(main(story, settings or LogSettings()), 60))

    return run


async def append(log: PartitionLog, data: bytearray, *, durable: bool = True) -> Appended:
    return await result_of(log.append(data, now_ms=NOW_MS, leader_epoch=EPOCH, durable=durable))


async def read(
    log: PartitionLog, offset: int = 0, max_bytes: int = 1 << 20, *, committed: bool = False
) -> ReadResult:
    return await result_of(log.read(offset, max_bytes, committed=committed))


def values(result: ReadResult) -> list[bytes | None]:
    return [record.value for view in iterate(result.read()) for record in decode(view) if not view.header.is_control]


def of_producer(value: bytes, sequence: int, *, epoch: int = 0, transactional: bool = False) -> bytearray:
    return batch(value, producer_id=7, producer_epoch=epoch, sequence=sequence, transactional=transactional)


async def end(log: PartitionLog, *, committed: bool, epoch: int = 0) -> Appended:
    ended = log.end_transaction(
        ProducerId(7),
        ProducerEpoch(epoch),
        committed=committed,
        coordinator_epoch=3,
        now_ms=NOW_MS,
        leader_epoch=EPOCH,
    )
    return await result_of(ended)


@pytest.mark.parametrize("durable", [True, False])
def test_offsets_are_given_in_the_order_of_the_calls(play: Play, durable: bool) -> None:
    async def story(log: PartitionLog) -> None:
        begun = [
            log.append(batch(b"%d" % n, b"again"), now_ms=NOW_MS, leader_epoch=EPOCH, durable=durable)
            for n in range(20)
        ]
        kept = [await result_of(each) for each in begun]
        assert [(each.base_offset, each.last_offset, each.duplicate) for each in kept] == [
            (2 * n, 2 * n + 1, False) for n in range(20)
        ]
        assert (log.start_offset, log.end_offset, log.last_stable_offset) == (0, 40, 40)
        assert values(await read(log))[::2] == [b"%d" % n for n in range(20)]

    play(story)


def test_readers_may_see_what_was_kept(play: Play) -> None:
    async def story(log: PartitionLog) -> None:
        for number in range(10):
            appended = await append(log, batch(b"%d" % number))
            assert log.end_offset > appended.last_offset
            assert values(await read(log, appended.base_offset)) == [b"%d" % number]

    play(story)


def test_the_stamp_of_the_leader_and_of_the_time_is_in_the_batches(play: Play) -> None:
    async def story(log: PartitionLog) -> None:
        stamped = log.append(
            batch(b"a", timestamp=5), now_ms=NOW_MS, leader_epoch=LeaderEpoch(9), durable=True, stamp=True
        )
        assert (await result_of(stamped)).append_time_ms == NOW_MS
        (view,) = iterate((await read(log)).read())
        assert (view.header.leader_epoch, view.header.max_timestamp) == (9, NOW_MS)

    play(story)


def test_whole_batches_within_the_bound_and_the_first_one_anyway(play: Play) -> None:
    async def story(log: PartitionLog) -> None:
        size = len(batch(b"x" * 100))
        for _ in range(5):
            await append(log, batch(b"x" * 100))
        assert (await read(log, 0, 2 * size + 1)).size == 2 * size
        assert (await read(log, 1, 1)).size == size
        nothing = await result_of(log.read(1, size - 1, at_least_one=False))
        assert (nothing.size, list(nothing.parts)) == (0, [])
        assert (await read(log, 5)).size == 0

    play(story)


def test_an_offset_outside_the_log_is_refused(play: Play) -> None:
    async def story(log: PartitionLog) -> None:
        await append(log, batch(b"a"))
        for offset in (-1, 2):
            with pytest.raises(OffsetOutOfRange):
                await read(log, offset)

    play(story)


def test_what_is_wrong_with_a_batch_is_said_and_nothing_is_appended(play: Play) -> None:
    async def story(log: PartitionLog) -> None:
        damaged = batch(b"value")
        damaged[-1] ^= 1
        wrong: list[tuple[bytearray, type[TidelogError]]] = [
            (damaged, CorruptBatch),
            (batch(b"x" * 3000), RecordTooLarge),
        ]
        for data, error in wrong:
            with pytest.raises(error):
                await append(log, data)
        assert (await append(log, batch(b"good"))).base_offset == 0

    play(story, LogSettings(max_message_bytes=2000))


def test_a_repetition_is_answered_with_the_offsets_of_the_first(play: Play) -> None:
    async def story(log: PartitionLog) -> None:
        first = log.append(of_producer(b"a", 0), now_ms=NOW_MS, leader_epoch=EPOCH, durable=True)
        again = log.append(of_producer(b"a", 0), now_ms=NOW_MS, leader_epoch=EPOCH, durable=True)
        repeated, original = await result_of(again), await result_of(first)
        assert (original.base_offset, original.duplicate) == (0, False)
        assert (repeated.base_offset, repeated.last_offset, repeated.duplicate) == (0, 0, True)
        assert log.end_offset == 1, "what is answered can be read"
        with pytest.raises(OutOfOrderSequence):
            await append(log, of_producer(b"c", 2))
        assert (await append(log, of_producer(b"b", 1))).base_offset == 1

    play(story)


@pytest.mark.parametrize("committed", [True, False])
def test_readers_of_committed_records_wait_for_the_end_of_a_transaction(play: Play, committed: bool) -> None:
    async def story(log: PartitionLog) -> None:
        await append(log, batch(b"before"))
        await append(log, of_producer(b"in it", 0, transactional=True))
        await append(log, batch(b"after"))
        assert log.open_transactions() == {7: 1}
        assert (log.last_stable_offset, log.end_offset) == (1, 3)
        assert values(await read(log, committed=True)) == [b"before"]
        assert values(await read(log)) == [b"before", b"in it", b"after"]
        ended = await end(log, committed=committed)
        assert (ended.base_offset, ended.duplicate) == (3, False)
        assert (log.last_stable_offset, log.end_offset, log.open_transactions()) == (4, 4, {})
        result = await read(log, committed=True)
        assert len(values(result)) == 3
        aborted = [(each.producer_id, each.first_offset) for each in result.aborted]
        assert aborted == ([] if committed else [(7, 1)])
        assert (await end(log, committed=committed)).duplicate, "to end it twice is harmless"
        assert log.end_offset == 4

    play(story)


def test_every_aborted_transaction_of_what_was_read_is_told(play: Play) -> None:
    async def story(log: PartitionLog) -> None:
        for number in range(5):
            await append(log, batch(b"plain"))
            await append(log, of_producer(b"aborted", number, transactional=True))
            await end(log, committed=False)
        result = await read(log, committed=True)
        assert [each.first_offset for each in result.aborted] == [1, 4, 7, 10, 13]
        assert len(list(iterate(result.read()))) == 15
        some = await read(log, 4, 1, committed=True)
        assert [each.first_offset for each in some.aborted] == [4]

    play(story)


def test_a_marker_of_an_older_epoch_is_refused(play: Play) -> None:
    async def story(log: PartitionLog) -> None:
        await append(log, of_producer(b"a", 0, epoch=5, transactional=True))
        with pytest.raises(InvalidProducerEpoch):
            await end(log, committed=True, epoch=4)
        assert log.open_transactions() == {7: 0}

    play(story)


def test_a_record_is_found_by_its_time(play: Play) -> None:
    async def story(log: PartitionLog) -> None:
        assert await result_of(log.max_timestamp()) is None
        for number in range(30):
            await append(log, batch(b"x" * 200, timestamp=1000 + 10 * number))
        for wanted, offset in ((0, 0), (1005, 1), (1290, 29)):
            found = await result_of(log.offset_for_time(wanted))
            assert found is not None
            assert found.offset == offset
        assert await result_of(log.offset_for_time(1291)) is None
        newest = await result_of(log.max_timestamp())
        assert newest is not None
        assert (newest.timestamp, newest.offset) == (1290, 29)

    play(story, LogSettings(segment_bytes=2000, index_interval_bytes=300))


def test_the_start_moves_up_and_never_back(play: Play) -> None:
    async def story(log: PartitionLog) -> None:
        for number in range(10):
            await append(log, batch(b"%d" % number))
        assert await log.delete_before(4) == 4
        assert await log.delete_before(2) == 4
        assert log.start_offset == 4
        with pytest.raises(OffsetOutOfRange):
            await read(log, 3)
        assert values(await read(log, 4))[0] == b"4"
        with pytest.raises(OffsetOutOfRange):
            await log.delete_before(11)
        assert await log.delete_before(10) == 10
        assert (await read(log, 10)).size == 0

    play(story)


def test_progress_is_told_for_all_that_readers_may_see_and_only_then(play: Play) -> None:
    async def story(log: PartitionLog) -> None:
        told: list[tuple[int, int, int, int]] = []

        def progressed(size: int) -> None:
            told.append((size, log.start_offset, log.last_stable_offset, log.end_offset))

        log.on_progress = progressed
        plain, in_it = batch(b"a"), of_producer(b"b", 0, transactional=True)
        sizes = len(plain), len(in_it)
        await append(log, plain)
        await append(log, in_it)
        await append(log, of_producer(b"b", 0, transactional=True))  # again: nothing new
        assert told == [(sizes[0], 0, 1, 1), (sizes[1], 0, 1, 2)]
        await end(log, committed=True)
        assert told[2][1:] == (0, 3, 3)
        assert told[2][0] > 0
        await log.delete_before(1)
        assert told[3:] == [(0, 1, 3, 3)]
        log.on_progress = None
        await append(log, batch(b"c"))
        assert len(told) == 4

    play(story)


def test_what_was_read_stays_readable_when_it_is_deleted(play: Play) -> None:
    async def story(log: PartitionLog) -> None:
        for number in range(20):
            await append(log, batch(b"%d" % number * 100))
        held = await read(log, 0, 300)
        await log.delete_before(20)
        assert values(held)[0] == b"0" * 100

    play(story, LogSettings(segment_bytes=1024))


def test_producers_and_sizes_are_told(play: Play) -> None:
    async def story(log: PartitionLog) -> None:
        await append(log, of_producer(b"a", 0, epoch=2, transactional=True))
        (producer,) = log.active_producers()
        assert (producer.producer_id, producer.epoch, producer.last_sequence) == (7, 2, 0)
        assert producer.transaction_start == 0
        assert log.knows_producer(ProducerId(7))
        assert not log.knows_producer(ProducerId(8))
        assert log.stats().size_bytes > 0

    play(story)
