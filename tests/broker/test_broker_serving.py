"""A broker as gateways see it: partitions come, change and go with their topics, and are there after a restart."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.broker.brokers import NOW_MS, make_topic, run
from tests.support.logs import at_once, batch
from tidelog.broker.broker import Broker
from tidelog.broker.partition import DataWait
from tidelog.broker.topics import UnknownTopic
from tidelog.errors import TidelogError
from tidelog.model import ProducerId, TopicPartition
from tidelog.records.batch import iterate
from tidelog.records.compression import Codec
from tidelog.records.record import build_batch, decode


def append(broker: Broker, topic: str, index: int = 0) -> None:
    broker.partition(topic, index).append(batch(b"value"), durable=False, now_ms=NOW_MS)


def test_the_partitions_of_a_topic_are_there_and_no_others(tmp_path: Path) -> None:
    async def play(broker: Broker) -> None:
        await make_topic(broker, partitions=2)
        assert [broker.partition("topic", index).name for index in range(2)] == [("topic", 0), ("topic", 1)]
        assert len(broker.partitions_of("topic")) == 2
        for topic, index in (("topic", 2), ("topic", -1), ("other", 0)):
            with pytest.raises(UnknownTopic):
                broker.partition(topic, index)
            assert broker.find(topic, index) is None
        assert broker.find(None, 0) is None
        assert list(broker.partitions_of("other")) == []

    run(tmp_path, play)


def test_records_and_topics_outlive_a_restart(tmp_path: Path) -> None:
    async def write(broker: Broker) -> str:
        await make_topic(broker, partitions=2)
        await make_topic(broker, name="gone")
        for _ in range(3):
            append(broker, "topic", 1)
        await broker.topics.delete("gone")
        return broker.cluster_id

    async def look(broker: Broker) -> tuple[list[int], bool, str]:
        ends = [broker.partition("topic", index).high_watermark for index in range(2)]
        return ends, broker.find("gone", 0) is None, broker.cluster_id

    cluster_id = run(tmp_path, write)
    assert run(tmp_path, look) == ([0, 3], True, cluster_id)


def test_a_topic_that_grows_keeps_its_partitions(tmp_path: Path) -> None:
    async def play(broker: Broker) -> list[int]:
        first = await make_topic(broker)
        append(broker, "topic")
        await broker.topics.add_partitions("topic", 3)
        assert broker.partition("topic", 0) is first
        append(broker, "topic", 2)
        return [broker.partition("topic", index).high_watermark for index in range(3)]

    assert run(tmp_path, play) == [1, 0, 1]


def test_a_topic_that_is_created_again_begins_anew(tmp_path: Path) -> None:
    async def play(broker: Broker) -> None:
        before = await make_topic(broker)
        known = broker.topics.get("topic")
        append(broker, "topic")
        await broker.topics.delete("topic")
        assert broker.find("topic", 0) is None
        after = await make_topic(broker)
        assert after is not before
        assert after.high_watermark == 0
        assert broker.topic_name(known.topic_id) is None
        assert broker.topic_name(broker.topics.get("topic").topic_id) == "topic"
        with pytest.raises(TidelogError):
            before.append(batch(b"late"), durable=False, now_ms=NOW_MS)
        assert after.high_watermark == 0

    run(tmp_path, play)


def test_hanging_transactions_are_those_that_no_coordinator_knows(tmp_path: Path) -> None:
    async def play(broker: Broker) -> list[tuple[TopicPartition, ProducerId, int]]:
        partition = await make_topic(broker)
        append(broker, "topic")
        data = batch(b"a", producer_id=7, producer_epoch=0, sequence=0, transactional=True)
        partition.append(data, durable=False, now_ms=NOW_MS, transactional=True)
        return broker.hanging_transactions()

    assert run(tmp_path, play) == [(TopicPartition("topic", 0), ProducerId(7), 1)]


def test_retention_waits_for_the_group_that_the_topic_names(tmp_path: Path) -> None:
    async def play(broker: Broker) -> list[int | None]:
        await make_topic(broker, name="plain")
        await make_topic(broker, {"tidelog.retention.wait.for.group": "readers"}, name="waits")
        return [broker.needed_from(TopicPartition(topic, 0)) for topic in ("plain", "waits", "none")]

    assert run(tmp_path, play) == [None, 0, None]


def test_nobody_waits_for_a_broker_that_stops(tmp_path: Path) -> None:
    async def play(broker: Broker) -> tuple[list[str], bool]:
        woken: list[str] = []
        wait = DataWait(lambda: woken.append("woken"), 1)
        broker.waits.add(wait)
        assert not broker.is_stopping
        broker.stop_waiting()
        broker.waits.discard(wait)
        return woken, broker.is_stopping

    assert run(tmp_path, play) == (["woken"], True)


def test_brokers_of_one_process_do_not_decompress_into_the_memory_of_each_other(tmp_path: Path) -> None:
    async def play(broker: Broker) -> None:
        partition = await make_topic(broker, {"compression.type": "zstd"})
        mine = str(broker.cluster_id).encode() * 2000
        for number in range(150):
            sent = build_batch([(NOW_MS, None, mine, ())], Codec.LZ4)
            partition.append(sent, durable=False, now_ms=NOW_MS)
            stored = at_once(partition.log.read(number, 1 << 20)).read()
            assert [record.value for view in iterate(stored) for record in decode(view)] == [mine]

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(2) as threads:
            for played in [threads.submit(run, tmp_path / name, play) for name in "ab"]:
                played.result()
    finally:
        sys.setswitchinterval(before)
