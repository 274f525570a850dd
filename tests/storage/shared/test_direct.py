"""Logs of a cluster that are read from their objects, without the broker. With real brokers and Spark:
tests/spark/test_source_objects.py."""

import logging
import pickle
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.storage.shared.test_compaction import batches, compact, compacted_log, without_kernels, write_pairs
from tests.storage.shared.test_log import NO_TAIL, A, World, append, end, of_producer, opened, play
from tests.storage.shared.test_store import SMALL_MERGES, write
from tests.support.faulty_objects import Fault, MemoryObjects
from tests.support.logs import stored
from tidelog.errors import MissingExtra
from tidelog.model import Offset, ProducerId
from tidelog.records.batch import iterate
from tidelog.records.record import decode
from tidelog.storage.direct import LogLeader, Stretch
from tidelog.storage.engines import direct_log
from tidelog.storage.log import AbortedTransaction, Located
from tidelog.storage.shared import direct
from tidelog.storage.shared.direct import SharedDirectLog
from tidelog.storage.shared.extents import Extents
from tidelog.storage.shared.locating import located
from tidelog.storage.shared.log import SharedLog
from tidelog.storage.shared.objects import ObjectStore
from tidelog.storage.shared.order import Extent

__all__ = ["without_kernels"]
PLACE = "memory://objects"
LOG = SharedDirectLog(PLACE, with_tail=True)


class Leader(LogLeader):
    """Answers from the log itself, with a few pieces at a time."""

    def __init__(self, log: SharedLog, *, most_pieces: int = 500) -> None:
        self._log = log
        self._most = most_pieces
        self.asked: list[tuple[Offset, Offset]] = []

    def first_batch(self, offset: Offset) -> bytes | None:
        raise AssertionError("objects are not compared with what the broker has")

    def locate(self, start: Offset, end: Offset, *, committed: bool) -> Located | None:
        self.asked.append((start, end))
        found = self._log.locate(start, end, committed=committed)
        some = found.pieces[: self._most]
        if len(some) < len(found.pieces):
            return found._replace(pieces=some, end_offset=some[-1].last_offset + 1)
        return found


@pytest.fixture(autouse=True)
def process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has read nothing yet, and makes small requests."""
    monkeypatch.setattr(direct, "_readers", {})
    monkeypatch.setattr(direct, "_left_alone", {})
    monkeypatch.setattr(direct, "REQUEST_BYTES", 100)
    monkeypatch.setattr(direct, "BYTES_AT_ONCE", 250)
    monkeypatch.setattr(direct, "REQUESTS_AT_ONCE", 3)
    monkeypatch.setattr(direct, "_STRETCH_BYTES", 300)


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[ObjectStore], None]:
    def use(objects: ObjectStore) -> None:
        monkeypatch.setattr(direct, "open_object_store", lambda _place: objects)

    return use


Use = Callable[[ObjectStore], None]


def offsets(stretches: Sequence[Stretch], start: Offset, end: Offset) -> list[Offset]:
    """The offsets of the records in a range; the stretches must follow each other."""
    reached, found = start, []
    for stretch in stretches:
        assert reached <= stretch.end <= end
        found += [
            record.offset
            for view in iterate(stretch.records)
            if not view.header.is_control
            for record in decode(view)
            if reached <= record.offset < end
        ]
        assert not found or found[-1] < stretch.end
        reached = stretch.end
    return found


def test_every_range_is_read_as_it_was_written(use: Use) -> None:
    async def story(world: World) -> None:
        use(world.objects)
        log = await opened(world.broker(NO_TAIL))
        for number in range(30):
            await append(log, b"x" * 9 * number)  # some are larger than a request
        for most in (500, 4):
            for start, stop in ((0, 30), (0, 1), (7, 23), (29, 30), (5, 5)):
                leader = Leader(log, most_pieces=most)
                stretches = list(LOG.read(start, stop, leader))
                assert offsets(stretches, start, stop) == list(range(start, stop))
                assert [stretch.end for stretch in stretches[-1:]] == [stop][: len(stretches)]
                assert len(leader.asked) == -(-(stop - start) // most)

    play(story)


def test_a_task_begins_and_ends_in_the_middle_of_large_pieces(use: Use, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(world: World) -> None:
        use(world.objects)
        store = world.broker(NO_TAIL, merging=SMALL_MERGES)
        log = await opened(store)
        await write(log, 60)
        while await store.merger.merge(log):
            pass
        [largest] = [extent for extent in log.extents if extent.size > 2000][:1]
        read_before = len(world.objects.ranges)
        for start, stop in ((0, 60), (1, 2), (20, 41), (59, 60)):
            assert offsets(list(LOG.read(start, stop, Leader(log))), start, stop) == list(range(start, stop))
        read_before = len(world.objects.ranges)
        monkeypatch.setattr(direct, "BYTES_AT_ONCE", 10_000)
        monkeypatch.setattr(direct, "REQUESTS_AT_ONCE", 100)
        list(LOG.read(largest.base_offset, largest.base_offset + 1, Leader(log)))
        asked = world.objects.ranges[read_before:]
        assert sum(size for _, _, size in asked) < largest.size / 2, "more was fetched ahead than the task needs"

    play(story)


def test_what_the_leader_has_in_memory_is_left_to_it(use: Use) -> None:
    async def story(world: World) -> None:
        use(world.objects)
        writing = world.broker()
        log = await opened(writing)
        await write(log, 10)
        log._tail.drop_before(4)
        stretches = list(SharedDirectLog(PLACE).read(0, 10, Leader(log)))
        assert stretches[-1].end == 4
        assert offsets(stretches, 0, 4) == [0, 1, 2, 3]
        reads = world.objects.reads
        assert list(SharedDirectLog(PLACE).read(4, 10, Leader(log))) == []
        assert world.objects.reads == reads
        assert offsets(list(LOG.read(0, 10, Leader(log))), 0, 10) == list(range(10))

    play(story)


def test_readers_of_committed_records_do_not_get_what_was_aborted(use: Use) -> None:
    async def story(world: World) -> None:
        use(world.objects)
        log = await opened(world.broker(NO_TAIL))
        kept: list[Offset] = []
        for number in range(12):
            committed = number % 3 == 0
            placed = [await of_producer(log, 2 * number), await append(log), await of_producer(log, 2 * number + 1)]
            kept += [placed[1].base_offset]
            kept += [placed[0].base_offset, placed[2].base_offset] if committed else []
            await end(log, committed=committed)
        stable = log.end_offset
        await of_producer(log, 24)
        assert log.last_stable_offset == stable
        for start, stop in ((0, stable), (1, stable - 1), (5, 6), (5, 7), (stable // 3, stable // 2)):
            for most in (500, 3):
                stretches = list(LOG.read(start, stop, Leader(log, most_pieces=most), committed=True))
                expected = sorted(offset for offset in kept if start <= offset < stop)
                assert offsets(stretches, start, stop) == expected
                assert stretches[-1].end == stop
        everything = list(LOG.read(0, stable + 1, Leader(log)))
        assert len(offsets(everything, 0, stable + 1)) == 12 * 3 + 1
        open_too = list(LOG.read(0, stable + 1, Leader(log), committed=True))
        assert open_too[-1].end == stable, "nobody knows how it will end"
        assert list(LOG.read(stable, stable + 1, Leader(log), committed=True)) == []

    play(story)


def test_gaps_that_compaction_left_are_passed(use: Use) -> None:
    async def story(world: World) -> None:
        use(world.objects)
        store = world.broker(NO_TAIL)
        log = await compacted_log(store)
        await write_pairs(log, *((b"again" if n % 3 else b"%d" % n, b"v" * 50) for n in range(40)), (b"again", None))
        await compact(store, log)
        left = [view.header.base_offset for view in await batches(log)]
        assert len(left) < 20
        for start, stop in ((0, 41), (1, 40), (left[3] + 1, 41), (left[3] + 1, left[4])):
            stretches = list(LOG.read(start, stop, Leader(log)))
            assert offsets(stretches, start, stop) == [offset for offset in left if start <= offset < stop]
            assert stretches[-1].end == stop

    play(story)


def test_deleted_records_are_not_read(use: Use) -> None:
    async def story(world: World) -> None:
        use(world.objects)
        log = await opened(world.broker(NO_TAIL))
        await write(log, 10)
        await log.delete_before(4)
        assert offsets(list(LOG.read(4, 10, Leader(log))), 4, 10) == list(range(4, 10))

    play(story)


def test_a_merge_in_the_middle_of_a_task_neither_loses_nor_repeats_anything(
    use: Use, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(world: World) -> None:
        use(world.objects)
        store = world.broker(NO_TAIL, merging=SMALL_MERGES)
        log = await opened(store)
        await write(log, 40)
        leader = Leader(log)
        reading = LOG.read(0, 40, leader)
        stretches = [next(reading)]
        assert stretches[0].end < 20
        bundles = [extent.key for extent in log.extents]
        while await store.merger.merge(log):
            pass
        for key in set(bundles) - {extent.key for extent in log.extents}:
            world.objects.lose(key)  # the collection of garbage
        stretches += reading
        assert offsets(stretches, 0, 40) == list(range(40))
        assert stretches[-1].end == 40
        assert len(leader.asked) == 2
        assert not caplog.records

    play(story)


def test_an_object_that_is_lost_is_left_to_the_broker_and_said(use: Use, caplog: pytest.LogCaptureFixture) -> None:
    async def story(world: World) -> None:
        use(world.objects)
        log = await opened(world.broker(NO_TAIL))
        await write(log, 20)
        lost = log.extents[11]
        world.objects.lose(lost.key)
        stretches = list(LOG.read(0, 20, Leader(log)))
        reached = stretches[-1].end if stretches else 0
        assert reached <= 11
        assert offsets(stretches, 0, reached) == list(range(reached))
        [said] = caplog.records
        assert said.levelno == logging.WARNING
        assert lost.key in said.getMessage()
        assert PLACE in said.getMessage()

    play(story)


def test_an_object_that_holds_something_else_is_left_to_the_broker(
    use: Use, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(world: World) -> None:
        use(world.objects)
        log = await opened(world.broker(NO_TAIL))
        await write(log, 20)
        damaged = log.extents[11]
        world.objects.damage(damaged.key, damaged.position)  # in the base offset of its batch
        stretches = list(LOG.read(0, 20, Leader(log)))
        assert all(stretch.end <= 11 for stretch in stretches)
        [said] = caplog.records
        assert "not a batch of this log" in said.getMessage()

    play(story)


def test_a_store_that_does_not_answer_is_left_alone_for_a_while(
    use: Use, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(world: World) -> None:
        use(world.objects)
        log = await opened(world.broker(NO_TAIL))
        await write(log, 20)
        world.objects.fail("read", Fault.UNAVAILABLE, 100)
        assert list(LOG.read(0, 20, Leader(log))) == []
        world.objects.fail_no_more("read")
        reads, leader = world.objects.reads, Leader(log)
        assert list(LOG.read(0, 20, leader)) == []
        assert (world.objects.reads, leader.asked) == (reads, [])
        assert len(caplog.records) == 1
        monkeypatch.setattr(direct, "_LEFT_ALONE_S", 0.0)
        assert offsets(list(LOG.read(0, 20, Leader(log))), 0, 20) == list(range(20))

    play(story)


def test_a_process_without_the_library_reads_through_the_broker(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_place: str) -> ObjectStore:
        raise MissingExtra('run pip install "tidelog[cluster]"')

    async def story(world: World) -> None:
        monkeypatch.setattr(direct, "open_object_store", missing)
        log = await opened(world.broker(NO_TAIL))
        await write(log, 3)
        for _ in range(2):
            assert list(LOG.read(0, 3, Leader(log))) == []
        [said] = caplog.records
        assert "tidelog[cluster]" in said.getMessage()

    play(story)


def test_requests_run_ahead_of_the_reader_within_bounds(use: Use, monkeypatch: pytest.MonkeyPatch) -> None:
    class Counting(MemoryObjects):
        lock = threading.Lock()
        most_requests = most_bytes = requests = size = 0

        async def read(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
            size = sum(size for _, size in ranges)
            self.requests += 1
            self.size += size
            self.most_requests, self.most_bytes = (
                max(self.most_requests, self.requests),
                max(self.most_bytes, self.size),
            )
            try:
                return await super().read(key, ranges)
            finally:
                self.requests -= 1
                self.size -= size

    async def story(world: World) -> None:
        world.objects = counting = Counting()
        use(counting)
        log = await opened(world.broker(NO_TAIL))
        await write(log, 50, size=40)
        assert offsets(list(LOG.read(0, 50, Leader(log))), 0, 50) == list(range(50))
        assert 1 < counting.most_requests <= 3
        assert counting.most_bytes <= 250

    play(story)


def test_the_url_of_a_store_is_a_log_that_can_be_sent_to_another_process(tmp_path: Path) -> None:
    for place in ("s3://bucket/prefix", "file:///objects"):
        log = direct_log(place, A, with_tail=True)
        assert pickle.loads(pickle.dumps(log)) == log == SharedDirectLog(place, with_tail=True)
        assert log.is_worth_a_try(leader_is_here=False)
    assert not isinstance(direct_log(str(tmp_path), stored("x")), SharedDirectLog)


# What the leader answers

EXTENTS = Extents(Extent(base, base + 9, f"b/{base}", 5, 100, -1) for base in range(0, 100, 10))


def aborted(*rows: tuple[int, int, int]) -> list[AbortedTransaction]:
    """First offset, marker, and last stable offset; of a producer each."""
    return [AbortedTransaction(ProducerId(number), *row) for number, row in enumerate(rows)]


def test_an_answer_has_the_pieces_of_the_range_and_no_more_than_allowed() -> None:
    found = located(EXTENTS, (), 15, 42, 90)
    assert [piece.base_offset for piece in found.pieces] == [10, 20, 30, 40]
    assert (found.end_offset, found.tail_offset) == (42, 90)
    assert found.pieces[0] == (10, 19, "b/10", 5, 100)
    found = located(EXTENTS, (), 15, 100, 90, most_pieces=2)
    assert ([piece.base_offset for piece in found.pieces], found.end_offset) == ([10, 20], 30)
    assert located(EXTENTS, (), 50, 40, 90) == ([], 50, 90, [])


def test_an_answer_with_too_many_aborted_transactions_ends_where_all_are_known() -> None:
    some = aborted((3, 5, 6), (7, 12, 13), (14, 20, 18), (18, 31, 32), (33, 35, 36), (60, 70, 71))
    found = located(EXTENTS, some, 0, 50, 90)
    assert ([one.first_offset for one in found.aborted], found.end_offset) == ([3, 7, 14, 18, 33], 50)
    found = located(EXTENTS, some, 0, 50, 90, most_aborted=2)
    assert ([one.first_offset for one in found.aborted], found.end_offset) == ([3, 7, 14], 18)
    assert [piece.base_offset for piece in found.pieces] == [0, 10]
    found = located(EXTENTS, some, 18, 50, 90, most_aborted=2)
    assert ([one.first_offset for one in found.aborted], found.end_offset) == ([14, 18, 33], 36)
    found = located(EXTENTS, some, 36, 50, 90, most_aborted=2)
    assert (found.aborted, found.end_offset) == ([], 50)
    together = aborted(*((0, marker, 0) for marker in range(10, 20)))
    found = located(EXTENTS, together, 5, 50, 90, most_aborted=2)
    assert (found.pieces, found.end_offset) == ([], 5), "nothing can be told: the broker is read"
