"""The configs of a topic take effect over the wire."""

import shutil
import time
from pathlib import Path

import pytest

from tests.e2e.clients import Client, ClientError, Confluent, Message
from tests.e2e.clients.base import SECONDS
from tests.e2e.clients.confluent import common
from tests.e2e.clients.confluent_admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from tests.e2e.conftest import MakeTopic, topic_maker
from tests.gateways.raw import RawClient
from tests.support.brokers import BrokerProcess, eventually
from tests.support.engines import Engine
from tidelog.records.batch import iterate
from tidelog.records.compression import Codec

MESSAGE_TOO_LARGE = 10
INVALID_TIMESTAMP = 32
INVALID_RECORD = 87
UNKNOWN = -1


@pytest.fixture
def confluent(broker: BrokerProcess) -> Confluent:
    return Confluent(broker.bootstrap)


def set_config(broker: BrokerProcess, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient(common(broker.bootstrap))
    (done,) = admin.incremental_alter_configs([resource]).values()
    done.result(SECONDS)


def segments(broker: BrokerProcess, topic: str) -> list[Path]:
    return sorted((broker.data_dir / "logs").glob(f"{topic}~*/0/*.log"))


@pytest.mark.local_engine(reason="it has segment files")
def test_segment_bytes_decide_when_a_new_segment_begins(
    broker: BrokerProcess, confluent: Confluent, make_topic: MakeTopic
) -> None:
    small, large = make_topic(configs={"segment.bytes": "5000"}), make_topic()
    for topic in (small, large):
        for _ in range(10):
            confluent.produce(topic, [Message(b"x" * 2000)])
    assert len(segments(broker, small)) == 5
    assert len(segments(broker, large)) == 1


@pytest.mark.parametrize("config", ["retention.bytes", "retention.ms"])
def test_retention_deletes_old_segments(
    broker: BrokerProcess, engine: Engine, confluent: Confluent, make_topic: MakeTopic, config: str
) -> None:
    topic = make_topic(configs={"segment.bytes": "5000"})
    old = int(time.time() * 1000) - 60_000
    for _ in range(10):
        confluent.produce(topic, [Message(b"x" * 2000, partition=0, timestamp_ms=old)])
    with confluent.reader(topic) as reader:
        assert reader.watermarks(0) == (0, 10)
        set_config(broker, topic, config, "5000" if config == "retention.bytes" else "30000")
        begin = eventually(lambda: reader.watermarks(0)[0], until=lambda begin: begin >= 6)
        assert reader.watermarks(0)[1] == 10
    confluent.produce(topic, [Message(b"new")])
    with confluent.reader(topic) as reader:  # who asks for what is gone is sent to what is left
        reader.assign({0: 0})
        records = reader.read(1)
        assert records[0].offset >= begin
    if engine is Engine.LOCAL:
        assert len(segments(broker, topic)) < 5


def test_max_message_bytes_is_the_topics_own(client: Client, broker: BrokerProcess, make_topic: MakeTopic) -> None:
    topic = make_topic(configs={"max.message.bytes": "10000"})
    with pytest.raises(ClientError) as refusal:
        client.produce(topic, [Message(b"x" * 20_000)])
    assert refusal.value.code == MESSAGE_TOO_LARGE
    set_config(broker, topic, "max.message.bytes", "5000000")
    assert client.produce(topic, [Message(b"x" * 4_000_000)]) == [(0, 0)]


def test_with_log_append_time_the_broker_dates_the_records(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic(configs={"message.timestamp.type": "LogAppendTime"})
    before = int(time.time() * 1000)
    client.produce(topic, [Message(b"%d" % number, partition=0, timestamp_ms=1000 + number) for number in range(5)])
    after = int(time.time() * 1000)
    for record in client.read(topic, 5):
        assert record.timestamp_type == 1
        assert before - 1 <= record.timestamp_ms <= after + 1


@pytest.mark.parametrize("codec", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_the_topics_compression_replaces_the_producers(
    broker: BrokerProcess, client: Client, make_topic: MakeTopic, codec: str
) -> None:
    topic = make_topic(configs={"compression.type": codec})
    values = [b"%d" % number * 100 for number in range(50)]
    messages = [Message(value, b"key", 0, (("header", b"content"),)) for value in values]
    client.produce(topic, messages, codec="gzip")
    client.produce(topic, messages)
    records = client.read(topic, 100)
    assert [record.value for record in records] == values * 2
    assert {(record.key, record.headers) for record in records} == {(b"key", (("header", b"content"),))}
    with RawClient(broker.port) as raw:
        stored = list(iterate(bytes(raw.fetch(topic).records or b"")))  # type: ignore[arg-type]
    wanted = Codec.NONE if codec == "uncompressed" else Codec.named(codec)
    assert {view.header.codec_id for view in stored} == {wanted}


def test_a_compacted_topic_wants_keys(client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic(configs={"cleanup.policy": "compact"})
    with pytest.raises(ClientError) as refusal:
        client.produce(topic, [Message(b"no key")])
    assert refusal.value.code == (UNKNOWN if client.name == "aiokafka" else INVALID_RECORD)  # it knows no such error
    assert client.produce(topic, [Message(b"value", b"key"), Message(None, b"key")]) == [(0, 0), (0, 1)]


@pytest.mark.parametrize(
    ("config", "offset_ms"),
    [("message.timestamp.before.max.ms", -60_000), ("message.timestamp.after.max.ms", 60_000)],
)
def test_timestamps_out_of_bounds_are_refused(
    client: Client, make_topic: MakeTopic, config: str, offset_ms: int
) -> None:
    topic = make_topic(configs={config: "30000"})
    now = int(time.time() * 1000)
    with pytest.raises(ClientError) as refusal:
        client.produce(topic, [Message(b"value", partition=0, timestamp_ms=now + offset_ms)])
    assert refusal.value.code == INVALID_TIMESTAMP
    assert client.produce(topic, [Message(b"value", partition=0, timestamp_ms=now)]) == [(0, 0)]


def test_min_insync_replicas_ask_for_no_more_than_there_are(client: Client, make_topic: MakeTopic) -> None:
    """As in Kafka, where a partition's own number of replicas is the most that can be asked for."""
    topic = make_topic(configs={"min.insync.replicas": "2"})
    assert client.produce(topic, [Message(b"value")], acks=-1) == [(0, 0)]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace, which counts the syncs, is not installed")
def test_flush_policies_sync_when_they_say(tmp_path: Path) -> None:
    calls = tmp_path / "syncs.txt"
    trace = ["strace", "-f", "-qq", "-e", "trace=fdatasync,fsync,syncfs,sync_file_range", "-o", str(calls)]

    with BrokerProcess(tmp_path / "broker", {"flush-threads": "1"}, under=trace) as broker:
        make, client = topic_maker(broker), Confluent(broker.bootstrap)

        def syncs(topic: str, acks: int) -> int:
            """How many there are for ten messages that are sent one by one."""
            client.produce(topic, [Message(b"first")], acks=acks)
            eventually(quiet)
            before = count()
            for _ in range(10):
                client.produce(topic, [Message(b"value")], acks=acks)
            eventually(quiet)  # strace writes down what it saw a moment later
            return count() - before

        def count() -> int:
            return sum(line.count("sync") > 0 for line in calls.read_text().splitlines())

        def quiet() -> bool:
            before = count()
            time.sleep(0.3)
            return count() == before

        assert syncs(make(), -1) >= 10
        assert syncs(make(), 1) == 0
        assert syncs(make(configs={"tidelog.flush": "always"}), 1) >= 10
        assert syncs(make(configs={"tidelog.flush": "os"}), -1) == 0
        interval = make(configs={"flush.messages": "5"})
        assert 1 <= syncs(interval, -1) <= 8
