"""Idempotent producers: each row of the table in `producers.py`, and that it survives stops, crashes and deletion."""

import random

import pytest

from tests.support.logs import NOW_MS, append, batch, open_log
from tests.support.memory_files import MemoryFiles, Mood
from tidelog.errors import InvalidProducerEpoch, InvalidRecord, OutOfOrderSequence
from tidelog.model import ProducerId
from tidelog.records.batch import BatchHeader, read_header
from tidelog.settings import LogSettings
from tidelog.storage.local.checkpoint import Checkpoint, decode_checkpoint
from tidelog.storage.local.log import LocalLog
from tidelog.storage.log import Appended
from tidelog.storage.producers import MOST_PRODUCERS, Producers

LAST = 2**31 - 1


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


@pytest.fixture
def log(files: MemoryFiles) -> LocalLog:
    return open_log(files)


def send(log: LocalLog, sequence: int, count: int = 1, *, epoch: int = 0, producer: int = 9) -> Appended:
    values = [b"%d" % (sequence + number) for number in range(count)]
    return append(log, batch(*values, producer_id=producer, producer_epoch=epoch, sequence=sequence))


def test_batches_in_sequence_are_accepted(log: LocalLog) -> None:
    assert [send(log, sequence, 2).base_offset for sequence in (0, 2, 4)] == [0, 2, 4]


def test_a_repeated_batch_is_answered_with_its_first_offsets(log: LocalLog) -> None:
    for sequence in range(0, 10, 2):
        send(log, sequence, 2)
    for sequence in range(0, 10, 2):
        again = send(log, sequence, 2)
        assert again.duplicate
        assert (again.base_offset, again.last_offset) == (sequence, sequence + 1)
    assert log.end_offset == 10


def test_only_the_last_five_batches_are_remembered(log: LocalLog) -> None:
    for sequence in range(6):
        send(log, sequence)
    assert send(log, 1).duplicate
    with pytest.raises(OutOfOrderSequence, match="sent sequence 0, expected 6"):
        send(log, 0)


def test_a_gap_is_refused(log: LocalLog) -> None:
    send(log, 0)
    with pytest.raises(OutOfOrderSequence, match="sent sequence 2, expected 1"):
        send(log, 2)
    assert send(log, 1).base_offset == 1


def test_a_repetition_with_another_length_is_refused(log: LocalLog) -> None:
    send(log, 0, 3)
    with pytest.raises(OutOfOrderSequence):
        send(log, 0, 2)


def test_sequences_wrap_around(log: LocalLog) -> None:
    send(log, LAST - 1, 2)
    assert send(log, 0).base_offset == 2
    send(log, 1, producer=10)  # an unknown producer may begin anywhere
    first = append(log, batch(b"x", b"y", b"z", producer_id=11, producer_epoch=0, sequence=LAST - 1))
    assert (first.base_offset, first.last_offset) == (4, 6)
    assert send(log, 1, producer=11).base_offset == 7


def test_an_older_epoch_is_fenced(log: LocalLog) -> None:
    send(log, 0, epoch=3)
    with pytest.raises(InvalidProducerEpoch, match="epoch 2 was fenced by epoch 3"):
        send(log, 1, epoch=2)


def test_a_newer_epoch_begins_with_sequence_zero(log: LocalLog) -> None:
    send(log, 0, epoch=0)
    with pytest.raises(OutOfOrderSequence, match="begins epoch 1 with sequence 1"):
        send(log, 1, epoch=1)
    assert not send(log, 0, epoch=1).duplicate
    with pytest.raises(InvalidProducerEpoch):
        send(log, 1, epoch=0)


@pytest.mark.parametrize(("epoch", "sequence"), [(-1, 0), (0, -1)])
def test_a_producer_id_needs_an_epoch_and_a_sequence(log: LocalLog, epoch: int, sequence: int) -> None:
    with pytest.raises(InvalidRecord, match="producer id 9 without"):
        append(log, batch(b"x", producer_id=9, producer_epoch=epoch, sequence=sequence))


def test_producers_do_not_disturb_each_other(log: LocalLog) -> None:
    for sequence in range(3):
        send(log, sequence, producer=1)
        send(log, sequence, producer=2)
    assert send(log, 2, producer=1).base_offset == 4
    assert send(log, 2, producer=2).base_offset == 5


@pytest.mark.parametrize("clean", [True, False], ids=["after a clean stop", "after a crash"])
def test_the_state_survives(files: MemoryFiles, clean: bool) -> None:
    log = open_log(files, LogSettings(segment_bytes=1024))
    for sequence in range(40):
        send(log, sequence, epoch=2)
    if clean:
        log.close()
    else:
        log.flush()
        files = files.after_crash(Mood.DROP, random.Random(0))
    again = open_log(files, LogSettings(segment_bytes=1024))
    assert again.recovery.clean == clean
    assert send(again, 36, epoch=2).duplicate
    assert send(again, 40, epoch=2).base_offset == 40
    with pytest.raises(InvalidProducerEpoch):
        send(again, 41, epoch=1)


def test_the_state_survives_the_deletion_of_what_it_stands_for(files: MemoryFiles, log: LocalLog) -> None:
    send(log, 0)
    log.delete_before(1)
    log.close()
    again = open_log(files)
    assert send(again, 0).duplicate
    assert send(again, 1).base_offset == 1


def test_a_producer_that_is_silent_for_long_is_forgotten(files: MemoryFiles) -> None:
    log = open_log(files, LogSettings(producer_id_expiration_ms=1000, retention_ms=-1))
    send(log, 0)
    log.retain(NOW_MS + 1000)
    assert log.stats().producers == 1
    log.retain(NOW_MS + 1001)
    assert log.stats().producers == 0
    assert send(log, 7).base_offset == 1


def header_of(producer: int, sequence: int = 0, *, transactional: bool = False) -> BatchHeader:
    data = batch(b"x", producer_id=producer, producer_epoch=0, sequence=sequence, transactional=transactional)
    return read_header(data)


def test_of_too_many_producers_those_that_were_silent_for_longest_are_forgotten() -> None:
    producers = Producers()
    producers.update(header_of(1, transactional=True), 0, 0)  # the oldest of all, but in a transaction
    header = header_of(2)
    for number in range(2, MOST_PRODUCERS + 2):
        producers.update(header._replace(producer_id=ProducerId(number)), number, number)
    known = {producer for producer, _ in producers}
    assert len(known) <= MOST_PRODUCERS
    assert len(known) > MOST_PRODUCERS * 8 // 10
    assert known == {1, *range(MOST_PRODUCERS + 3 - len(known), MOST_PRODUCERS + 2)}
    assert producers.check(header_of(MOST_PRODUCERS + 1)) is not None, "the newest are remembered"


def test_a_checkpoint_with_more_producers_than_are_remembered_can_be_read() -> None:
    rows = [[number, 0, number, [0, 0, number, number, 5]] for number in range(MOST_PRODUCERS + 5)]
    producers = Producers.from_rows(rows, [[3, 3]])
    assert len(producers) <= MOST_PRODUCERS + 1
    assert producers.get(ProducerId(3)) is not None
    assert producers.get(ProducerId(MOST_PRODUCERS + 4)) is not None


def test_what_a_checkpoint_tells_of_producers_does_not_change_while_it_is_written() -> None:
    producers = Producers()
    for sequence in range(7):
        producers.update(header_of(4, sequence), sequence, sequence)
    rows = producers.to_rows()
    expected = [[4, 0, 6, *([n, n, n, n, NOW_MS] for n in range(2, 7))]]
    producers.update(header_of(4, 7), 7, 7)
    producers.update(header_of(5), 8, 8)
    assert list(rows) == expected
    assert list(Producers.from_rows(expected).to_rows()) == expected


def test_many_producers_are_written_in_pieces_that_make_one_checkpoint() -> None:
    producers = Producers()
    header = header_of(1)
    for number in range(1, 1202):
        producers.update(header._replace(producer_id=ProducerId(number)), number, number)
    checkpoint = Checkpoint(offset=9, producers=producers.to_rows(), transactions=[[7, 7]])
    read = decode_checkpoint(checkpoint.encode())
    assert read is not None
    assert list(read.producers) == list(producers.to_rows())
    assert (read.offset, read.transactions) == (9, [[7, 7]])
