"""A partition as it is served: what it refuses, what it makes of a batch, and whom it wakes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker.brokers import NOW_MS, make_topic, run
from tests.support.logs import at_once, batch
from tidelog.broker.broker import Broker
from tidelog.broker.configs import Replace
from tidelog.broker.partition import DataWait, Partition
from tidelog.errors import InvalidRecord, InvalidTimestamp, TidelogError
from tidelog.model import ProducerEpoch, ProducerId, TimestampType
from tidelog.records.batch import iterate
from tidelog.records.compression import Codec
from tidelog.records.record import BatchBuilder, decode

HOUR_MS = 3_600_000


def keyed(**values: bytes) -> bytearray:
    builder = BatchBuilder()
    for key, value in values.items():
        builder.append(value, key=key.encode(), timestamp=NOW_MS)
    return builder.build()


def append(partition: Partition, data: bytearray, *, transactional: bool = False) -> int:
    appended = partition.append(data, durable=False, now_ms=NOW_MS, transactional=transactional)
    return at_once(appended).base_offset


def stored(partition: Partition) -> list[bytes | None]:
    read = at_once(partition.log.read(0, 1 << 20)).read()
    return [record.value for view in iterate(read) for record in decode(view)]


def of_transaction(value: bytes, sequence: int = 0) -> bytearray:
    return batch(value, producer_id=7, producer_epoch=0, sequence=sequence, transactional=True)


def end(partition: Partition, *, committed: bool) -> None:
    producer = ProducerId(7), ProducerEpoch(0)
    partition.end_transaction(*producer, committed=committed, coordinator_epoch=0, now_ms=NOW_MS)


# What is refused leaves nothing behind


@pytest.mark.parametrize(
    ("configs", "data", "error"),
    [
        ({}, lambda: batch(b"a", timestamp=NOW_MS + HOUR_MS + 1), InvalidTimestamp),
        ({"message.timestamp.after.max.ms": "10"}, lambda: batch(b"a", timestamp=NOW_MS + 11), InvalidTimestamp),
        ({"message.timestamp.before.max.ms": "10"}, lambda: batch(b"a", timestamp=NOW_MS - 11), InvalidTimestamp),
        ({"cleanup.policy": "compact"}, lambda: batch(b"no key"), InvalidRecord),
        ({}, lambda: of_transaction(b"nobody named it"), InvalidRecord),
    ],
    ids=["an hour ahead", "ahead of the config", "behind the config", "without a key", "of a transaction"],
)
def test_a_batch_that_the_topic_does_not_take_is_refused(
    tmp_path: Path, configs: dict[str, str], data: Callable[[], bytearray], error: type[TidelogError]
) -> None:
    async def play(broker: Broker) -> tuple[int, int]:
        partition = await make_topic(broker, configs)
        with pytest.raises(error):
            append(partition, data())
        return partition.high_watermark, append(partition, keyed(a=b"good"))

    assert run(tmp_path, play) == (0, 0)


def test_a_batch_at_the_bounds_is_taken(tmp_path: Path) -> None:
    async def play(broker: Broker) -> list[int]:
        bounds = {"message.timestamp.after.max.ms": "10", "message.timestamp.before.max.ms": "10"}
        partition = await make_topic(broker, bounds)
        return [append(partition, batch(b"a", timestamp=NOW_MS + away)) for away in (-10, 0, 10)]

    assert run(tmp_path, play) == [0, 1, 2]


# What the configs make of a batch


def test_configs_are_in_force_with_the_next_append(tmp_path: Path) -> None:
    async def play(broker: Broker) -> list[tuple[int, TimestampType]]:
        partition = await make_topic(broker)
        append(partition, batch(b"first", timestamp=NOW_MS - 5))
        await broker.topics.alter_configs("topic", Replace([("message.timestamp.type", "LogAppendTime")]))
        append(partition, batch(b"second", timestamp=NOW_MS - 5))
        read = at_once(partition.log.read(0, 1 << 20)).read()
        return [(view.header.max_timestamp, view.header.timestamp_type) for view in iterate(read)]

    assert run(tmp_path, play) == [(NOW_MS - 5, TimestampType.CREATE_TIME), (NOW_MS, TimestampType.LOG_APPEND_TIME)]


def test_batches_are_compressed_as_the_topic_says(tmp_path: Path) -> None:
    async def play(broker: Broker) -> tuple[list[int], list[bytes | None]]:
        partition = await make_topic(broker, {"compression.type": "gzip"})
        for codec in (Codec.NONE, Codec.GZIP, Codec.LZ4):
            append(partition, batch(b"a" * 1000, codec=codec))
        read = at_once(partition.log.read(0, 1 << 20)).read()
        return [view.header.codec_id for view in iterate(read)], stored(partition)

    assert run(tmp_path, play) == ([Codec.GZIP] * 3, [b"a" * 1000] * 3)


# Who waits


class Waiter:
    def __init__(self, missing_bytes: int, *, committed: bool = False) -> None:
        self.woken = 0
        self.wait = DataWait(self._wake, missing_bytes, committed=committed)

    def _wake(self) -> None:
        self.woken += 1


def test_a_fetch_is_woken_once_when_it_has_enough(tmp_path: Path) -> None:
    async def play(broker: Broker) -> list[int]:
        partition = await make_topic(broker)
        size = len(batch(b"a"))
        waiter = Waiter(size + 1)
        partition.add_wait(waiter.wait)
        woken = []
        for _ in range(3):
            append(partition, batch(b"a"))
            woken.append(waiter.woken)
        waiter.wait.need(1)
        append(partition, batch(b"a"))
        woken.append(waiter.woken)
        partition.remove_wait(waiter.wait)
        waiter.wait.need(1)
        append(partition, batch(b"a"))
        return [*woken, waiter.woken]

    assert run(tmp_path, play) == [0, 1, 1, 2, 2]


def test_what_was_written_before_wakes_nobody(tmp_path: Path) -> None:
    async def play(broker: Broker) -> tuple[int, list[bytes | None]]:
        partition = await make_topic(broker)
        append(partition, batch(b"a", producer_id=7, producer_epoch=0, sequence=0))
        waiter = Waiter(1)
        partition.add_wait(waiter.wait)
        append(partition, batch(b"a", producer_id=7, producer_epoch=0, sequence=0))
        return waiter.woken, stored(partition)

    assert run(tmp_path, play) == (0, [b"a"])


@pytest.mark.parametrize("committed", [True, False])
def test_a_reader_of_committed_records_is_woken_by_the_end_of_a_transaction(tmp_path: Path, committed: bool) -> None:
    async def play(broker: Broker) -> tuple[list[tuple[int, int]], int]:
        partition = await make_topic(broker)
        of_all, of_committed = Waiter(1), Waiter(1, committed=True)
        for waiter in (of_all, of_committed):
            partition.add_wait(waiter.wait)
        seen = []
        append(partition, of_transaction(b"a"), transactional=True)
        seen.append((of_all.woken, of_committed.woken))
        append(partition, batch(b"of somebody else"))
        seen.append((of_all.woken, of_committed.woken))
        end(partition, committed=committed)
        seen.append((of_all.woken, of_committed.woken))
        return seen, partition.last_stable_offset

    assert run(tmp_path, play) == ([(1, 0), (1, 0), (1, 1)], 3)


def test_readers_of_committed_records_see_up_to_the_first_open_transaction(tmp_path: Path) -> None:
    async def play(broker: Broker) -> list[tuple[int, int, int]]:
        partition = await make_topic(broker)
        seen = []

        def look() -> None:
            result = at_once(partition.log.read(0, 1 << 20, committed=True))
            seen.append((len(list(iterate(result.read()))), len(result.aborted), partition.high_watermark))

        append(partition, batch(b"plain"))
        append(partition, of_transaction(b"a"), transactional=True)
        append(partition, batch(b"plain"))
        look()
        end(partition, committed=False)
        look()
        return seen

    assert run(tmp_path, play) == [(1, 0, 3), (4, 1, 4)]


def test_whoever_waits_for_a_topic_that_is_deleted_is_woken(tmp_path: Path) -> None:
    async def play(broker: Broker) -> int:
        partition = await make_topic(broker)
        waiter = Waiter(1000)
        partition.add_wait(waiter.wait)
        await broker.topics.delete("topic")
        return waiter.woken

    assert run(tmp_path, play) == 1
