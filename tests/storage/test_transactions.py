"""Transactions in a log: the last stable offset, aborted transactions, their index file, and what survives."""

import struct

import pytest

from tests.support.logs import DIRECTORY, EPOCH, NOW_MS, append, at_once, batch, open_log, read_committed_records
from tests.support.memory_files import MemoryFiles
from tidelog.errors import InvalidProducerEpoch, InvalidTransactionState, OutOfOrderSequence
from tidelog.model import ProducerEpoch, ProducerId
from tidelog.records.batch import iterate
from tidelog.settings import LogSettings
from tidelog.storage.local.log import LocalLog
from tidelog.storage.local.repair import Repair
from tidelog.storage.local.verify import Kind, PartitionCheck
from tidelog.storage.log import Appended

SMALL = LogSettings(segment_bytes=1024, index_interval_bytes=100)
INDEX_0 = f"{DIRECTORY}/{0:020d}.txnindex"


def transact(log: LocalLog, producer: int, sequence: int, *values: bytes, epoch: int = 0) -> Appended:
    data = batch(
        *values or (b"in a transaction",),
        producer_id=producer,
        producer_epoch=epoch,
        sequence=sequence,
        transactional=True,
    )
    return append(log, data)


def end(log: LocalLog, producer: int, *, committed: bool, epoch: int = 0) -> Appended:
    return at_once(
        log.end_transaction(
            ProducerId(producer),
            ProducerEpoch(epoch),
            committed=committed,
            coordinator_epoch=0,
            now_ms=NOW_MS,
            leader_epoch=EPOCH,
        )
    )


def committed_offsets(log: LocalLog) -> list[int]:
    return [record.offset for record in read_committed_records(log, max_bytes=300)]


def test_the_last_stable_offset_stays_before_the_oldest_open_transaction() -> None:
    log = open_log(MemoryFiles())
    append(log, batch(b"plain"))
    assert log.last_stable_offset == 1
    transact(log, 1, 0)
    transact(log, 2, 0)
    append(log, batch(b"plain"))
    assert (log.last_stable_offset, log.end_offset) == (1, 4)
    end(log, 1, committed=True)
    assert log.last_stable_offset == 2
    end(log, 2, committed=False)
    assert log.last_stable_offset == log.end_offset == 6
    assert committed_offsets(log) == [0, 1, 3]


def test_a_read_of_committed_records_ends_before_the_open_transaction() -> None:
    log = open_log(MemoryFiles())
    append(log, batch(b"plain"))
    transact(log, 1, 0)
    result = log.read_now(0, 1 << 20, committed=True)
    assert [view.header.base_offset for view in iterate(result.read())] == [0]
    assert result.aborted == ()
    assert log.read_now(1, 1 << 20, committed=True).size == 0


def test_aborted_transactions_are_told_only_for_what_is_read() -> None:
    log = open_log(MemoryFiles(), SMALL)
    for number in range(40):
        transact(log, 1, number, b"x" * 50)
        end(log, 1, committed=number % 2 == 0)
    assert committed_offsets(log) == list(range(0, 80, 4))
    aborted = log.read_now(0, 1, committed=True).aborted
    assert list(aborted) == []
    aborted = log.read_now(42, 1, committed=True).aborted
    assert [entry[:3] for entry in aborted] == [(1, 42, 43)]


def test_open_and_aborted_transactions_survive_a_restart_with_and_without_a_clean_stop() -> None:
    files = MemoryFiles()
    log = open_log(files, SMALL)
    for number in range(20):
        transact(log, number % 3, number // 3, b"x" * 60)
        if number % 3:
            end(log, number % 3, committed=number % 3 == 1)
    expected = committed_offsets(log), log.open_transactions(), log.last_stable_offset
    assert expected[1] == {0: 0}
    again = open_log(files, SMALL)  # as after a kill
    assert (committed_offsets(again), again.open_transactions(), again.last_stable_offset) == expected
    again.close()
    clean = open_log(files, SMALL)
    assert clean.recovery.clean
    assert (committed_offsets(clean), clean.open_transactions(), clean.last_stable_offset) == expected
    end(clean, 0, committed=False)
    assert clean.last_stable_offset == clean.end_offset
    assert committed_offsets(clean)[:2] == [1, 6]


@pytest.mark.parametrize("damage", ["missing", "short", "garbage"])
def test_an_index_of_aborted_transactions_that_is_wrong_is_made_anew(damage: str) -> None:
    files = MemoryFiles()
    log = open_log(files, SMALL)
    for number in range(30):
        transact(log, 1, number, b"x" * 50)
        end(log, 1, committed=False)
        append(log, batch(b"plain"))
    expected = committed_offsets(log)
    log.close()
    whole = files.open(INDEX_0).pread(1 << 20, 0)
    assert whole
    if damage == "missing":
        files.remove(INDEX_0)
    elif damage == "short":
        files.open(INDEX_0).truncate(40)
    else:
        files.open(INDEX_0).pwrite(b"\xff" * 34, 0)
    findings = [finding for finding in PartitionCheck(files, DIRECTORY) if finding.is_error]
    assert {finding.kind for finding in findings} == {Kind.INDEX}
    again = open_log(files, SMALL)
    assert committed_offsets(again) == expected
    assert files.open(INDEX_0).pread(1 << 20, 0) == whole


def test_verify_finds_a_false_entry_and_repair_mends_it() -> None:
    files = MemoryFiles()
    log = open_log(files, SMALL)
    for number in range(30):
        transact(log, 1, number, b"x" * 50)
        end(log, 1, committed=False)
    log.close()
    assert not list(PartitionCheck(files, DIRECTORY))
    whole = files.open(INDEX_0).pread(1 << 20, 0)
    assert struct.unpack_from(">hqqqq", whole) == (0, 1, 0, 1, 2)
    files.open(INDEX_0).pwrite(struct.pack(">hqqqq", 0, 5, 0, 1, 2), 0)
    (finding,) = [finding for finding in PartitionCheck(files, DIRECTORY) if finding.is_error]
    assert "producer 5 aborted offsets 0 to 1" in finding.what
    Repair(files, DIRECTORY).apply(NOW_MS)
    assert not list(PartitionCheck(files, DIRECTORY))
    assert files.open(INDEX_0).pread(1 << 20, 0) == whole


def test_a_fresh_checkpoint_of_a_repair_knows_open_transactions() -> None:
    files = MemoryFiles()
    log = open_log(files, SMALL)
    for number in range(20):
        transact(log, 1, number, b"x" * 50)
        end(log, 1, committed=False)
    transact(log, 2, 0)
    expected = log.last_stable_offset, committed_offsets(log)
    log.close()
    files.remove(f"{DIRECTORY}/checkpoint")
    Repair(files, DIRECTORY).apply(NOW_MS)
    assert not [finding for finding in PartitionCheck(files, DIRECTORY) if finding.is_error]
    again = open_log(files, SMALL)
    assert again.recovery.clean
    assert (again.last_stable_offset, committed_offsets(again)) == expected
    assert again.open_transactions() == {2: expected[0]}


def test_deleting_records_moves_the_last_stable_offset_along_and_removes_the_index_files() -> None:
    files = MemoryFiles()
    log = open_log(files, SMALL)
    transact(log, 7, 0)
    for number in range(30):
        transact(log, 1, number, b"x" * 50)
        end(log, 1, committed=False)
    assert log.last_stable_offset == 0
    middle = log.end_offset // 2
    log.delete_before(middle)
    assert log.last_stable_offset == middle
    assert INDEX_0 not in {f"{DIRECTORY}/{entry.name}" for entry in files.list(DIRECTORY)}
    log.delete_before(log.end_offset)
    assert log.last_stable_offset == log.end_offset
    assert open_log(files, SMALL).open_transactions() == {7: 0}


def test_to_end_a_transaction_twice_writes_one_marker() -> None:
    log = open_log(MemoryFiles())
    transact(log, 1, 0)
    first = end(log, 1, committed=True)
    again = end(log, 1, committed=True)
    assert (first.duplicate, again.duplicate) == (False, True)
    assert log.end_offset == 2
    assert log.durable_offset == 2


def test_a_marker_of_a_newer_epoch_fences_the_producer_and_begins_its_sequence_anew() -> None:
    log = open_log(MemoryFiles())
    transact(log, 1, 0)
    end(log, 1, committed=True, epoch=1)
    with pytest.raises(InvalidProducerEpoch):
        transact(log, 1, 1, epoch=0)
    with pytest.raises(OutOfOrderSequence):
        transact(log, 1, 1, epoch=1)
    transact(log, 1, 0, epoch=1)
    with pytest.raises(InvalidProducerEpoch):
        end(log, 1, committed=True, epoch=0)
    assert log.open_transactions() == {1: 2}


def test_a_producer_in_a_transaction_cannot_write_outside_of_it() -> None:
    log = open_log(MemoryFiles())
    transact(log, 1, 0)
    with pytest.raises(InvalidTransactionState):
        append(log, batch(b"plain", producer_id=1, producer_epoch=0, sequence=1))


def test_a_producer_with_an_open_transaction_is_not_forgotten() -> None:
    log = open_log(MemoryFiles())
    transact(log, 1, 0)
    append(log, batch(b"plain", producer_id=2, producer_epoch=0, sequence=0))
    log.retain(NOW_MS + 10 * SMALL.producer_id_expiration_ms)
    assert [producer.producer_id for producer in log.active_producers()] == [1]
    assert log.active_producers()[0].transaction_start == 0
