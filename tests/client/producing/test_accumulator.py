"""Records are gathered in order, within bounds, and a partition's batches never overtake each other."""

import threading

import pytest

from tidelog.client.errors import ClientClosed
from tidelog.client.producing.accumulator import Accumulator, Batch
from tidelog.client.producing.identity import Identity
from tidelog.client.producing.produce_requests import Placed
from tidelog.model import NO_TIMESTAMP, ProducerEpoch, ProducerId, TopicPartition
from tidelog.records.batch import check_integrity, iterate, read_header
from tidelog.records.compression import Codec
from tidelog.records.record import decode

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def accumulator(batch_bytes: int = 1000, buffer_bytes: int = 1 << 20, linger_s: float = 1.0) -> Accumulator:
    return Accumulator(codec=Codec.NONE, batch_bytes=batch_bytes, buffer_bytes=buffer_bytes, linger_s=linger_s)


def add(records: Accumulator, partition: TopicPartition, value: bytes, now: float = 0.0) -> bool:
    """Whether there was room."""
    return records.append(partition, value, None, 7, (), now) is not None


def values(batch: Batch) -> list[bytes | None]:
    return [record.value for view in iterate(batch.encoded()) for record in decode(view)]


def test_a_batch_waits_for_more_records_and_then_no_longer() -> None:
    records = accumulator()
    add(records, A, b"1", now=10.0)
    assert records.take(10.5) == []
    assert records.due_in_s(10.5) == pytest.approx(0.5)
    add(records, A, b"2", now=10.9)
    (batch,) = records.take(11.0)
    assert values(batch) == [b"1", b"2"]
    assert records.due_in_s(11.0) is None


def test_a_full_batch_goes_at_once() -> None:
    records = accumulator(batch_bytes=300)
    for number in range(4):
        add(records, A, b"%d" % number * 100)
    (batch,) = records.take(0.0)
    assert [value[:1] for value in values(batch) if value] == [b"0"]


def test_a_partition_has_one_batch_on_its_way_and_others_do_not_wait() -> None:
    records = accumulator(linger_s=0.0)
    add(records, A, b"1")
    (first,) = records.take(0.0)
    add(records, A, b"2")
    add(records, B, b"x")
    (other,) = records.take(0.0)
    assert other.partition == B
    records.settle(first)
    (second,) = records.take(0.0)
    assert values(second) == [b"2"]


def test_a_batch_that_comes_back_goes_before_those_behind_it() -> None:
    records = accumulator(linger_s=0.0)
    add(records, A, b"1")
    (first,) = records.take(0.0)
    add(records, A, b"2")
    records.put_back(first)
    assert records.take(0.0) == []  # not before its pause is over
    records.resume(A)
    assert records.take(0.0) == [first]
    assert records.take(0.0) == []


def test_memory_is_bounded_and_given_back() -> None:
    records = accumulator(buffer_bytes=500, linger_s=0.0)
    assert add(records, A, b"x" * 300)
    assert not add(records, A, b"y" * 300)
    assert not records.wait_for_room(400, 0.0)
    (batch,) = records.take(0.0)
    waiting = threading.Thread(target=records.wait_for_room, args=(400, 10.0))
    waiting.start()
    records.settle(batch)
    waiting.join(5)
    assert not waiting.is_alive()
    assert add(records, A, b"y" * 300)


def test_a_record_larger_than_the_buffer_is_let_in_alone() -> None:
    records = accumulator(buffer_bytes=10)
    assert add(records, A, b"x" * 1000)
    assert not add(records, B, b"y")


def test_a_flush_sends_what_is_still_open() -> None:
    records = accumulator(linger_s=100.0)
    add(records, A, b"1")
    add(records, B, b"2")
    records.seal_all()
    assert {batch.partition for batch in records.take(0.0)} == {A, B}
    assert len(records.unsettled()) == 2


def test_numbers_are_written_into_the_batch_and_its_crc() -> None:
    batch = Batch(A, Codec.ZSTD, 0.0)
    batch.append(b"v", b"k", 5, [("h", b"x")])
    batch.append(None, None, 6, ())
    batch.number(Identity(ProducerId(9), ProducerEpoch(2)), 17)
    header = read_header(batch.encoded())
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 2, 17)
    check_integrity(memoryview(batch.encoded()), 0, header)
    assert values(batch) == [b"v", None]


def test_a_receipt_says_where_its_record_stands() -> None:
    batch = Batch(A, Codec.NONE, 0.0)
    first, second = batch.append(b"", None, 5, ()), batch.append(b"", None, 6, ())
    assert not first.done()
    batch.delivered(Placed(100, NO_TIMESTAMP))
    assert first.result() == ("t", 0, 100, 5)
    assert second.result() == ("t", 0, 101, 6)


def test_a_receipt_has_the_brokers_time_if_it_set_one_and_no_offset_if_nobody_knows() -> None:
    batch = Batch(A, Codec.NONE, 0.0)
    receipt = batch.append(b"", None, 5, ())
    batch.delivered(Placed(-1, 99))
    assert receipt.result() == ("t", 0, -1, 99)


def test_a_receipt_raises_why_its_record_was_not_written() -> None:
    batch = Batch(A, Codec.NONE, 0.0)
    receipt = batch.append(b"", None, 5, ())
    batch.failed(ClientClosed("gone"))
    with pytest.raises(ClientClosed):
        receipt.result()
    assert batch.error_was_seen


def test_the_receipts_of_a_batch_that_failed_raise_errors_of_their_own() -> None:
    records = accumulator()
    receipts = [records.append(A, b"%d" % number, None, 7, (), 0.0) for number in range(3)]
    (batch,) = records.take(5.0)
    failure = ClientClosed("the client is closed")
    batch.failed(failure)
    errors = []
    for receipt in receipts:
        assert receipt is not None
        with pytest.raises(ClientClosed, match="the client is closed") as caught:
            receipt[0].result()
        errors.append(caught.value)
    assert len({id(error) for error in [*errors, failure]}) == 4
    assert failure.__traceback__ is None
