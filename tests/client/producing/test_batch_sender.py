"""Ready-made batches, sent many at once, while the broker is killed and comes back."""

import threading
from pathlib import Path

import pytest

from tests.support.brokers import BrokerProcess
from tidelog.client import BrokerError, FetchOptions, ProducerOptions, connect
from tidelog.client.producing.blocking import BlockingBatchSender
from tidelog.errors import InvalidInput
from tidelog.model import TopicPartition
from tidelog.records.record import BatchBuilder, decode

COUNT, RECORDS = 400, 20


@pytest.mark.slow
def test_nothing_is_lost_or_doubled_when_the_broker_is_killed_in_between(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker, connect(broker.bootstrap) as client:
        client.create_topic("out", partitions=2, configs={"retention.ms": "-1"})
        half = threading.Event()

        def kill_and_start() -> None:
            half.wait(30)
            broker.kill()
            broker.start()

        killer = threading.Thread(target=kill_and_start)
        killer.start()
        with client.batch_sender(ProducerOptions(buffer_bytes=200_000)) as sender:
            for number in range(COUNT):
                place = TopicPartition("out", number % 2)
                assert sender.identity is not None
                builder = BatchBuilder(
                    producer_id=sender.identity.producer_id,
                    producer_epoch=sender.identity.epoch,
                    base_sequence=sender.next_sequence(place),
                )
                for record in range(RECORDS):
                    builder.append(b"%d/%d" % (number, record) + b"." * 500, timestamp=1)
                sender.send(place, [builder.build()])
                if number == COUNT // 2:
                    half.set()
            written = sender.flush()
        killer.join()
        assert {place.partition: done.records for place, done in written.items()} == {
            0: COUNT * RECORDS // 2,
            1: COUNT * RECORDS // 2,
        }
        with client.consume("out", follow=False) as records:
            found = [(record.partition, record.value.split(b".")[0]) for record in records if record.value]
        for partition in (0, 1):
            expected = [b"%d/%d" % (n, r) for n in range(partition, COUNT, 2) for r in range(RECORDS)]
            assert [value for place, value in found if place == partition] == expected


def test_what_the_broker_refuses_is_raised_by_flush(bootstrap: str) -> None:
    with connect(bootstrap) as client:
        client.create_topic("small", partitions=1, configs={"max.message.bytes": "100"})
        with client.batch_sender(ProducerOptions(idempotent=False, acks=1)) as sender:
            builder = BatchBuilder()
            builder.append(b"x" * 1000, timestamp=1)
            sender.send(TopicPartition("small", 0), [builder.build()])
            with pytest.raises(BrokerError, match="producing 1 record to small-0"):
                sender.flush()


def test_batches_are_handed_over_one_by_one(bootstrap: str) -> None:
    builder = BatchBuilder()
    builder.append(b"x", timestamp=1)
    with connect(bootstrap) as client, client.batch_sender(ProducerOptions(idempotent=False)) as sender:
        client.create_topic("one-by-one", partitions=1)
        with pytest.raises(InvalidInput, match="one by one"):
            sender.send(TopicPartition("one-by-one", 0), [builder.build() + builder.build()])
        sender.send(TopicPartition("one-by-one", 0), [builder.build(), builder.build()])
        assert sender.flush()[TopicPartition("one-by-one", 0)] == (2, 0, 1)


def test_a_range_is_read_as_it_is_stored(bootstrap: str) -> None:
    with connect(bootstrap) as client:
        client.create_topic("ranges", partitions=1, configs={"retention.ms": "-1"})
        for number in range(3):
            builder = BatchBuilder()
            for record in range(2):
                builder.append(b"%d" % (2 * number + record), timestamp=1)
            client.produce_batches("ranges", 0, builder.build())
        chunks = list(client.read_range("ranges", 0, 1, 4))
        assert (chunks[0].from_offset, chunks[-1].next_offset >= 4, chunks[-1].readable_end) == (1, True, 6)
        from tidelog.records.batch import iterate

        values = [record.value for chunk in chunks for batch in iterate(chunk.records) for record in decode(batch)]
        assert values[:4] == [b"0", b"1", b"2", b"3"], "whole batches"
        with pytest.raises(BrokerError, match="not in the log"):
            list(client.read_range("ranges", 0, 99, 100))
        with pytest.raises(BrokerError, match="deleted and created again"):
            list(client.read_range("ranges", 0, 0, 1, topic_id=b"x" * 16))


def test_batches_of_a_transaction_are_seen_when_somebody_else_has_committed_it(bootstrap: str) -> None:
    place = TopicPartition("together", 0)

    def send(sender: BlockingBatchSender, value: bytes) -> None:
        assert sender.identity is not None
        id_, epoch = sender.identity
        builder = BatchBuilder(
            producer_id=id_, producer_epoch=epoch, base_sequence=sender.next_sequence(place), transactional=True
        )
        builder.append(value, timestamp=1)
        sender.send(place, [builder.build()])

    with connect(bootstrap) as client, connect(bootstrap) as other:
        client.create_topic("together", partitions=1, configs={"retention.ms": "-1"})

        def seen() -> list[bytes | None]:
            fetch = FetchOptions(read_committed=True)
            return [record.value for record in other.consume("together", follow=False, fetch=fetch)]

        with client.batch_sender(transactional_id="sender") as sender:
            assert sender.transaction is None
            send(sender, b"one")
            send(sender, b"two")
            sender.flush()
            handed = sender.transaction
        assert handed is not None
        assert seen() == []
        assert other.decide_transactions("work", 1, [handed])
        assert seen() == [b"one", b"two"]
        with client.batch_sender(transactional_id="sender") as first:
            send(first, b"left behind")
            first.flush()
            with client.batch_sender(transactional_id="sender"):
                send(first, b"too late")
                with pytest.raises(BrokerError, match=r"INVALID_PRODUCER_EPOCH|PRODUCER_FENCED"):
                    first.flush()
        assert seen() == [b"one", b"two"], "who takes the id over aborts what was open"
        with pytest.raises(InvalidInput, match="acks='all'"):
            client.batch_sender(ProducerOptions(acks=1), transactional_id="sender")
