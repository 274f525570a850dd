"""Facts about producers: a leader that replays them knows what one knows that saw every batch."""

import random
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.logs import NOW_MS, batch
from tidelog.errors import CorruptLog, MetadataTooNew, OutOfOrderSequence
from tidelog.model import ProducerEpoch, ProducerId
from tidelog.records.batch import BatchHeader, iterate, place, read_header
from tidelog.records.record import build_marker
from tidelog.storage.producers import MOST_PRODUCERS, Producers
from tidelog.storage.shared.producer_facts import Facts, pack_snapshot, read_snapshot, replay

LAST = 2**31 - 1


class Event(NamedTuple):
    producer: int
    epoch: int
    sequence: int
    records: int
    transactional: bool
    marker: bool | None  # committed?


def header_of(event: Event) -> BatchHeader:
    if event.marker is not None:
        return read_header(
            build_marker(
                committed=event.marker,
                producer_id=ProducerId(event.producer),
                producer_epoch=ProducerEpoch(event.epoch),
                coordinator_epoch=event.sequence,
                timestamp=NOW_MS,
            )
        )
    values = [b"v"] * event.records
    return read_header(
        batch(
            *values,
            producer_id=event.producer,
            producer_epoch=event.epoch,
            sequence=event.sequence,
            transactional=event.transactional,
            timestamp=NOW_MS + event.sequence,
        )
    )


def apply(producers: Producers, header: BatchHeader, event: Event, offset: int, now_ms: int) -> None:
    """As a leader does at each append."""
    producers.update(header, offset, now_ms)
    if event.marker is not None:
        producers.saw_marker(header.producer_id, event.sequence)
        producers.ended(header, offset, event.marker)


def gather(facts: Facts, header: BatchHeader, event: Event, offset: int) -> None:
    if event.marker is not None:
        facts.marker(header, offset, committed=event.marker, coordinator_epoch=event.sequence)
    else:
        facts.batch(header, offset)


def known(producers: Producers) -> tuple[dict[ProducerId, object], list[tuple[ProducerId, int]]]:
    return dict(producers), list(producers.open.items())


events = st.builds(
    Event,
    producer=st.integers(1, 3),
    epoch=st.integers(0, 2),
    sequence=st.sampled_from([0, 1, 7, LAST - 1, LAST]),
    records=st.integers(1, 4),
    transactional=st.booleans(),
    marker=st.sampled_from([None, None, None, True, False]),
)


@given(st.lists(st.lists(events, max_size=25), max_size=4), st.integers(0, 4))
def test_replaying_facts_equals_seeing_every_batch(extents: list[list[Event]], covered: int) -> None:
    """`covered` extents are folded into a snapshot, as merging does."""
    seen, replayed = Producers(), Producers()
    offset = 0
    for number, extent in enumerate(extents):
        facts = Facts()
        for event in extent:
            header = header_of(event)
            apply(seen, header, event, offset, NOW_MS + number)
            gather(facts, header, event, offset)
            offset += header.last_offset_delta + 1
        if number == covered:
            replayed = read_snapshot(pack_snapshot(replayed))
        replay(facts.packed(NOW_MS + number), replayed)
        assert known(replayed) == known(seen)
    assert known(read_snapshot(pack_snapshot(replayed))) == known(seen)


def test_sequences_that_wrap_are_known_after_a_change_of_leader() -> None:
    facts, leader = Facts(), Producers()
    header = header_of(Event(9, 0, LAST - 1, 4, False, None))
    facts.batch(header, 100)
    replay(facts.packed(NOW_MS), leader)
    repeated = leader.check(header)
    assert repeated is not None
    assert (repeated.base_offset, repeated.last_sequence) == (100, 1)
    assert leader.check(header_of(Event(9, 0, 2, 1, False, None))) is None
    with pytest.raises(OutOfOrderSequence, match="sent sequence 3, expected 2"):
        leader.check(header_of(Event(9, 0, 3, 1, False, None)))


def test_a_thousand_batches_of_one_producer_take_as_much_as_six() -> None:
    facts, seen, replayed = Facts(), Producers(), Producers()
    for number in range(1000):
        header = header_of(Event(9, 0, number, 1, True, None))
        facts.batch(header, number)
        seen.update(header, number, NOW_MS)
    packed = facts.packed(NOW_MS)
    assert len(packed) < 6 * 40
    replay(packed, replayed)
    assert known(replayed) == known(seen)
    assert replayed.open == {9: 0}


def test_batches_without_a_producer_leave_no_facts() -> None:
    facts = Facts()
    facts.batch(read_header(batch(b"one", b"two")), 0)
    assert facts.packed(NOW_MS) == b""
    replay(b"", producers := Producers())
    assert not len(producers)
    assert not len(read_snapshot(b""))


def test_stored_batches_tell_the_same_facts_as_the_leader() -> None:
    events = [
        Event(1, 0, 0, 2, True, None),
        Event(2, 0, 5, 1, False, None),
        Event(1, 0, 3, 1, True, False),
        Event(1, 0, 2, 1, True, None),
        Event(1, 0, 4, 1, True, True),
    ]
    told, stored, log, offset = Facts(), Facts(), bytearray(), 0
    for event in events:
        header = header_of(event)
        gather(told, header, event, offset)
        if event.marker is None:
            content = batch(
                *[b"v"] * event.records,
                producer_id=event.producer,
                producer_epoch=event.epoch,
                sequence=event.sequence,
                transactional=event.transactional,
                timestamp=NOW_MS + event.sequence,
            )
        else:
            content = build_marker(
                committed=event.marker,
                producer_id=ProducerId(event.producer),
                producer_epoch=ProducerEpoch(event.epoch),
                coordinator_epoch=event.sequence,
                timestamp=NOW_MS,
            )
        place(content, 0, header, offset, header.leader_epoch)
        log += content
        offset += header.last_offset_delta + 1
    for each in iterate(log):
        stored.saw(each)
    assert stored.packed(NOW_MS) == told.packed(NOW_MS)


def test_as_many_producers_as_a_partition_remembers_fit_into_a_snapshot() -> None:
    producers = Producers()
    header = header_of(Event(0, 0, 0, 1, False, None))
    for number in range(MOST_PRODUCERS + 100):
        own = header._replace(producer_id=ProducerId(number))
        for sequence in range(2):
            producers.update(own._replace(base_sequence=sequence), 2 * number + sequence, NOW_MS + number)
    snapshot = pack_snapshot(producers)
    assert len(snapshot) < 100 * MOST_PRODUCERS
    assert known(read_snapshot(snapshot)) == known(producers)


def some_facts() -> bytes:
    facts = Facts()
    facts.batch(header_of(Event(9, 0, 0, 1, True, None)), 0)
    return facts.packed(NOW_MS)


def some_snapshot() -> bytes:
    replay(some_facts(), producers := Producers())
    return pack_snapshot(producers)


def test_a_newer_version_asks_for_an_upgrade() -> None:
    for packed, read in ((some_facts(), lambda it: replay(it, Producers())), (some_snapshot(), read_snapshot)):
        with pytest.raises(MetadataTooNew, match="of version 2: this Tidelog reads version 1; upgrade this broker"):
            read(b"\2" + packed[1:])
        with pytest.raises(CorruptLog, match="unknown version 0"):
            read(b"\0" + packed[1:])


def test_damaged_bytes_are_refused_in_words() -> None:
    facts, snapshot = some_facts(), some_snapshot()
    for size in range(1, len(facts)):
        if size != 9:  # facts without entries
            with pytest.raises(CorruptLog, match="is not complete"):
                replay(facts[:size], Producers())
    for size in range(1, len(snapshot)):
        with pytest.raises(CorruptLog):
            read_snapshot(snapshot[:size])
    with pytest.raises(CorruptLog, match="bytes after its end"):
        read_snapshot(snapshot + b"\0")
    with pytest.raises(CorruptLog, match="kind 7"):
        replay(facts[:9] + b"\7" + facts[10:], Producers())


def test_random_bytes_never_crash_the_reader() -> None:
    dice = random.Random(1)
    for _ in range(2000):
        content = b"\1" + dice.randbytes(dice.randrange(0, 120))
        for read in (read_snapshot, lambda it: replay(it, Producers())):
            try:
                read(content)
            except CorruptLog:
                pass
