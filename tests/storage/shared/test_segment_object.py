"""Segments: built from a stream, found by offset and time, refused when damaged."""

import asyncio
import random
from collections.abc import AsyncIterator
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.faulty_objects import MemoryObjects
from tests.support.logs import NOW_MS, batch
from tidelog.errors import CorruptLog
from tidelog.model import LeaderEpoch, ProducerEpoch, ProducerId
from tidelog.records.batch import iterate, place, read_header
from tidelog.records.crc import crc32c
from tidelog.records.record import build_marker
from tidelog.storage.log import AbortedTransaction
from tidelog.storage.producers import Producers
from tidelog.storage.shared.footer import END_SIZE, TAIL_SIZE, seal
from tidelog.storage.shared.producer_facts import pack_snapshot, read_snapshot
from tidelog.storage.shared.segment_object import (
    INDEX_INTERVAL,
    KIND,
    Segment,
    SegmentWriter,
    load_segment,
    load_segment_after,
    new_key,
    read_segment,
)

TOPIC_ID = bytes(range(16))
KEY = "s/t/0/x"


def placed(content: bytearray, offset: int) -> bytearray:
    place(content, 0, read_header(content), offset, LeaderEpoch(4))
    return content


def some_log(batches: int, *, base: int = 100, value_size: int = 1000, step: int = 1) -> bytes:
    """Batches of two records, with timestamps that mostly grow."""
    dice = random.Random(7)
    log = bytearray()
    for number in range(batches):
        timestamp = NOW_MS + 10 * number + dice.randrange(-50, 50)
        values = [dice.randbytes(value_size), b"second"]
        log += placed(batch(*values, timestamp=timestamp), base + (1 + step) * number)
    return bytes(log)


def built(log: bytes, pieces: int = 0, producers: Producers | None = None) -> bytes:
    writer = SegmentWriter(TOPIC_ID, 3, producers or Producers(), NOW_MS)
    step = pieces or len(log)
    for at in range(0, len(log), step):
        writer.add(log[at : at + step])
    return log + writer.finish()


def test_a_segment_is_its_batches_and_what_is_known_about_them() -> None:
    log = some_log(10)
    content = built(log)
    segment = read_segment(content, len(content), KEY)
    assert content.startswith(log)
    assert (segment.topic_id, segment.partition) == (TOPIC_ID, 3)
    assert (segment.base_offset, segment.last_offset) == (100, 119)
    assert (segment.data_size, segment.crc) == (len(log), crc32c(log))
    assert segment.max_timestamp == max(each.header.max_timestamp for each in iterate(log))
    assert segment.aborted == []
    assert not len(read_snapshot(segment.producers))


@given(st.integers(1, 3000))
def test_pieces_may_be_cut_anywhere(size: int) -> None:
    log = some_log(8, value_size=200)
    assert built(log, size) == built(log)


@pytest.mark.parametrize("step", [1, 5])
def test_every_offset_and_time_is_found_in_the_range_that_the_index_names(step: int) -> None:
    log = some_log(600, step=step)
    content = built(log)
    segment = read_segment(content, len(content), KEY)
    batches = list(iterate(log))
    starts = {each.position for each in batches} | {len(log)}
    assert len(segment.index) == pytest.approx(len(log) / INDEX_INTERVAL, abs=2)
    for each in batches:
        for offset in (each.header.base_offset, each.header.last_offset):
            position, size = segment.index.around(offset)
            assert position <= each.position < position + size
            assert {position, position + size} <= starts
            assert size < 2 * INDEX_INTERVAL
    for timestamp in range(NOW_MS - 100, NOW_MS + 6100, 7):
        first = next((each for each in batches if each.header.max_timestamp >= timestamp), None)
        position, size = segment.index.around_time(timestamp)
        if first is not None:
            assert position <= first.position < position + size
    assert sum(segment.index.around(segment.last_offset + 10)) == len(log)


def transactional_log() -> bytes:
    def data(producer: int, sequence: int, offset: int) -> bytes:
        made = batch(b"v", producer_id=producer, producer_epoch=0, sequence=sequence, transactional=True)
        return bytes(placed(made, offset))

    def marker(producer: int, offset: int, *, committed: bool) -> bytes:
        made = build_marker(
            committed=committed,
            producer_id=ProducerId(producer),
            producer_epoch=ProducerEpoch(0),
            coordinator_epoch=6,
            timestamp=NOW_MS,
        )
        return bytes(placed(made, offset))

    return b"".join(
        [
            data(1, 0, 50),
            data(2, 0, 51),
            marker(7, 52, committed=False),  # began before the segment
            marker(1, 53, committed=True),
            data(1, 1, 54),
            marker(2, 55, committed=False),
            data(3, 0, 56),
        ]
    )


def test_aborted_transactions_and_producers_are_told() -> None:
    before = Producers()
    header = read_header(batch(b"v", producer_id=7, producer_epoch=0, sequence=0, transactional=True))
    before.update(header, 40, NOW_MS)
    content = built(transactional_log(), producers=before)
    segment = read_segment(content, len(content), KEY)
    assert segment.aborted == [
        AbortedTransaction(ProducerId(7), 40, 52, 50),
        AbortedTransaction(ProducerId(2), 51, 55, 54),
    ]
    after = read_snapshot(segment.producers)
    assert after.open == {1: 54, 3: 56}
    known = after.get(ProducerId(1))
    assert known is not None
    assert (known.coordinator_epoch, known.last_sequence) == (6, 1)
    assert segment.producers == pack_snapshot(before)


def test_a_segment_is_stored_as_a_stream_and_its_footer_fetched_with_one_request() -> None:
    async def run() -> None:
        log = some_log(4000)  # its footer alone is small, its data is not

        async def pieces() -> AsyncIterator[bytes]:
            for at in range(0, len(log), 100_000):
                yield log[at : at + 100_000]

        objects = MemoryObjects()
        writer = SegmentWriter(TOPIC_ID, 3, Producers(), NOW_MS)
        size = await objects.put_stream(KEY, writer.parts(pieces()))
        assert objects.objects[KEY] == built(log)
        by_size = await load_segment(objects, KEY, size)
        assert objects.reads == 1
        by_data = await load_segment_after(objects, KEY, len(log))
        assert objects.reads == 2
        assert (by_size.crc, by_size.last_offset) == (by_data.crc, by_data.last_offset)
        assert by_size.last_offset == 100 + 2 * 4000 - 1
        assert sum(asked for _, _, asked in objects.ranges) < 2 * (TAIL_SIZE + 2000)

    asyncio.run(run())


def test_a_very_large_footer_is_fetched_with_a_second_request() -> None:
    async def run() -> None:
        producers = Producers()
        header = read_header(batch(b"v", producer_id=0, producer_epoch=0, sequence=0))
        for number in range(2000):
            producers.update(header._replace(producer_id=ProducerId(number)), number, NOW_MS)
        log = some_log(2, base=5000)
        objects = MemoryObjects()
        await objects.put(KEY, [built(log, producers=producers)])
        for segment in (
            await load_segment(objects, KEY, len(objects.objects[KEY])),
            await load_segment_after(objects, KEY, len(log)),
        ):
            assert len(read_snapshot(segment.producers)) == 2000
        assert objects.reads == 4

    asyncio.run(run())


def test_damaged_or_misplaced_batches_do_not_get_into_a_segment() -> None:
    log = some_log(3)
    damaged = bytearray(log)
    damaged[200] ^= 1
    two = some_log(2)
    for wrong, reason in (
        (damaged, "CRC mismatch"),
        (two + two, "base offset 100 after 103"),
        (log[:-1], "the last batch is cut off"),
        (log + b"\0" * 61, "magic 0"),
        (log + b"\xff" * 100, "magic -1"),
        (log + log[:8] + b"\x7f\xff\xff\xff" + log[12:], "truncated batch"),
    ):
        with pytest.raises(CorruptLog, match=reason):
            built(bytes(wrong), 500)


def test_every_damaged_byte_of_the_footer_is_noticed() -> None:
    log = transactional_log()
    content = built(log)
    for position in range(len(log), len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 0x41
        with pytest.raises(CorruptLog):
            read_segment(damaged, len(damaged), KEY)


def test_a_truncated_segment_is_refused() -> None:
    content = built(transactional_log())
    for size in range(len(content)):
        with pytest.raises(CorruptLog):
            read_segment(content[:size], size, KEY)


def test_footers_with_a_right_crc_that_claim_the_impossible_are_refused() -> None:
    log = some_log(300)
    content = built(log)
    inner = bytearray(content[len(log) : -END_SIZE])
    dice = random.Random(3)
    refused = 0
    for _ in range(3000):
        wrong = bytearray(inner)
        for _ in range(dice.randrange(1, 4)):
            wrong[dice.randrange(len(wrong))] = dice.randrange(256)
        whole = log + seal(KIND, bytes(wrong[: dice.choice([len(wrong), dice.randrange(len(wrong))])]))
        try:
            segment = read_segment(whole, len(whole), KEY)
        except CorruptLog:
            refused += 1
        else:
            assert isinstance(segment, Segment)
            position, size = segment.index.around(dice.randrange(2000))
            assert 0 <= position < position + size <= len(log)
    assert refused > 1000


def test_keys_name_the_log_and_sort_by_offset() -> None:
    key = new_key(TOPIC_ID, 3, 1234, UUID(int=1))
    assert key == f"s/{TOPIC_ID.hex()}/3/00000000000000001234-{1:032x}"
    assert key < new_key(TOPIC_ID, 3, 99_999, UUID(int=0))
