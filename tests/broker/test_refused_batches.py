"""A later batch of a producer must not be accepted before an earlier one that was refused for a moment."""

import pytest

from tests.support.logs import NOW_MS, batch, open_log
from tests.support.memory_files import MemoryFiles
from tidelog.broker.ownership import NotLeader
from tidelog.broker.refused_batches import KEPT_S, MOST, SOON_S, EarlierBatchAwaited, RefusedBatches
from tidelog.errors import InvalidRecord, StorageUnavailable
from tidelog.model import LeaderEpoch, TopicPartition

PLACE, OTHER = TopicPartition("topic", 0), TopicPartition("topic", 1)
NOT_YET = NotLeader("topic-0 is being opened")
EPOCH = LeaderEpoch(3)


def of(producer_id: int, sequence: int, *, epoch: int = 0) -> bytearray:
    return batch(b"1", b"2", producer_id=producer_id, producer_epoch=epoch, sequence=sequence)


def test_a_later_batch_waits_for_the_refused_one() -> None:
    refused, log = RefusedBatches(), open_log(MemoryFiles())
    assert not refused
    refused.note(PLACE, of(7, 0), NOT_YET)
    refused.note(PLACE, of(7, 2), NOT_YET)
    assert refused
    for sequence in (2, 4):
        with pytest.raises(EarlierBatchAwaited, match="its batch with sequence 0 was refused"):
            refused.check(PLACE, of(7, sequence), log, EPOCH)
    refused.check(PLACE, of(7, 0), log, EPOCH)
    assert not refused


def test_others_do_not_wait() -> None:
    refused, log = RefusedBatches(), open_log(MemoryFiles())
    refused.note(PLACE, of(7, 0), NOT_YET)
    refused.check(OTHER, of(7, 2), log, EPOCH)
    refused.check(PLACE, of(8, 2), log, EPOCH)
    refused.check(PLACE, of(7, 2, epoch=1), log, EPOCH)
    refused.check(PLACE, batch(b"without a producer"), log, EPOCH)
    refused.check(PLACE, bytearray(b"no batch"), log, EPOCH)
    assert refused


def test_a_producer_that_the_log_knows_is_left_to_the_log() -> None:
    """Its refused batch may have arrived at another leader meanwhile."""
    refused, log = RefusedBatches(), open_log(MemoryFiles())
    refused.note(PLACE, of(7, 0), NOT_YET)
    log.append(of(7, 0), now_ms=NOW_MS, leader_epoch=LeaderEpoch(0), durable=False)
    refused.check(PLACE, of(7, 2), log, EPOCH)
    assert not refused


def test_a_batch_that_the_new_leader_refused_is_awaited_even_if_the_log_knows_the_producer() -> None:
    """The log would see a gap, or a repetition, and the client would take either for something else."""
    now, log = 0.0, open_log(MemoryFiles())
    refused = RefusedBatches(lambda: now)
    log.append(of(7, 0), now_ms=NOW_MS, leader_epoch=LeaderEpoch(0), durable=False)
    for sequence in (2, 4):
        refused.note(PLACE, of(7, sequence), NOT_YET, EPOCH)
    with pytest.raises(EarlierBatchAwaited) as awaited:
        refused.check(PLACE, of(7, 4), log, EPOCH)
    assert (awaited.value.kafka_code, awaited.value.retriable) == (6, True)
    now = SOON_S - 1
    refused.note(PLACE, of(7, 4), awaited.value, EPOCH)  # that does not make it wait longer
    with pytest.raises(EarlierBatchAwaited):
        refused.check(PLACE, of(7, 4), log, EPOCH)
    refused.check(PLACE, of(7, 2), log, EPOCH)
    assert not refused


@pytest.mark.parametrize(
    ("error", "noted", "passed_s"),
    [
        (NOT_YET, LeaderEpoch(2), 0.0),  # it was about to lead the partition, and lost it again
        (NOT_YET, None, 0.0),  # it was not the leader
        (StorageUnavailable("full"), EPOCH, 0.0),  # the batch may be in the log
        (NOT_YET, EPOCH, SOON_S + 1),  # the client has given it up
    ],
)
def test_otherwise_the_log_decides(error: Exception, noted: LeaderEpoch | None, passed_s: float) -> None:
    now, log = 0.0, open_log(MemoryFiles())
    refused = RefusedBatches(lambda: now)
    log.append(of(7, 0), now_ms=NOW_MS, leader_epoch=LeaderEpoch(0), durable=False)
    refused.note(PLACE, of(7, 2), error, noted)
    now = passed_s
    refused.check(PLACE, of(7, 4), log, EPOCH)
    assert not refused


def test_only_what_clients_send_again_is_remembered() -> None:
    refused = RefusedBatches()
    refused.note(PLACE, of(7, 0), InvalidRecord("no key"))
    refused.note(PLACE, of(7, 0), RuntimeError("a bug"))
    refused.note(PLACE, batch(b"without a producer"), NOT_YET)
    refused.note(PLACE, None, NOT_YET)
    refused.note(PLACE, bytearray(b"no batch"), NOT_YET)
    refused.note(PLACE, bytearray(100), NOT_YET)
    refused.note(TopicPartition("t" * 250, 0), of(7, 0), NOT_YET)  # would take much memory
    assert not refused


def test_what_was_refused_long_ago_is_forgotten() -> None:
    now, log = 0.0, open_log(MemoryFiles())
    refused = RefusedBatches(lambda: now)
    refused.note(PLACE, of(7, 0), NOT_YET)
    now = KEPT_S + 1
    refused.check(PLACE, of(7, 2), log, EPOCH)
    assert not refused


def test_the_oldest_are_forgotten_when_there_are_many() -> None:
    refused, log = RefusedBatches(), open_log(MemoryFiles())
    for producer_id in range(MOST + 1):
        refused.note(PLACE, of(producer_id, 0), NOT_YET)
    refused.check(PLACE, of(0, 2), log, EPOCH)
    with pytest.raises(EarlierBatchAwaited):
        refused.check(PLACE, of(1, 2), log, EPOCH)
