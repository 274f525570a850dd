"""Topics of a cluster that Spark reads from the object store. The reader itself: tests/storage/shared/test_direct.py;
S3, and garbage: tests/cluster/test_spark_reading.py.

Most tests run the tasks in this process, which needs no JVM. Whether rows come from the store or from the broker is
seen by their values: `mark_objects` changes those in the store, and the readers do not check CRCs.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import ArrayType, StructType

from tests.e2e.test_compaction import COMPACTED, SETTINGS
from tests.spark.topics import load, options, texts
from tests.support.brokers import eventually, unique
from tests.support.clusters import cluster_of
from tidelog.client import Client, connect
from tidelog.client.errors import BrokerError
from tidelog.model import TopicPartition
from tidelog.records.compression import Codec
from tidelog.records.record import BatchBuilder
from tidelog.spark.source import TidelogDataSource
from tidelog.storage.shared import direct
from tidelog.storage.shared.object_stores.opening import open_object_store
from tidelog.testing.broker_process import BrokerProcess
from tidelog.wire.error_codes import ErrorCode

SECONDS = 90.0
BROKER, OBJECT = "from the broker", "from the object"

ROW = StructType()
for _name, _kind in {"key": "binary", "value": "binary", "topic": "string", "partition": "integer"}.items():
    ROW.add(_name, _kind)
ROW.add("offset", "long").add("timestamp", "timestamp").add("timestampType", "integer")
NARROW = StructType().add("offset", "long").add("value", "string")
WITH_HEADERS = StructType(ROW.fields).add(
    "headers", ArrayType(StructType().add("key", "string").add("value", "binary"))
)


@pytest.fixture(autouse=True)
def process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has met no store yet."""
    monkeypatch.setattr(direct, "_readers", {})
    monkeypatch.setattr(direct, "_left_alone", {})


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """The only broker of a cluster over PostgreSQL and a directory."""
    directory = tmp_path_factory.mktemp("cluster")
    with cluster_of(1, directory, SETTINGS) as cluster:
        yield cluster.brokers[0]


@pytest.fixture(scope="module")
def client(broker: BrokerProcess) -> Iterator[Client]:
    with connect(broker.bootstrap) as connected:
        yield connected


def objects_of(broker: BrokerProcess) -> Path:
    return Path(broker.settings["cluster.storage"].removeprefix("file://"))


def mark_objects(broker: BrokerProcess) -> None:
    for path in objects_of(broker).rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            if BROKER.encode() in content:
                path.write_bytes(content.replace(BROKER.encode(), OBJECT.encode()))


def task_rows(reader: DataSourceReader, task: InputPartition) -> Iterator[dict[str, Any]]:
    """What a task gives, run here."""
    for batch in reader.read(task):
        assert isinstance(batch, pa.RecordBatch)
        yield from batch.to_pylist()


def rows(broker: BrokerProcess, schema: StructType = ROW, /, **given: object) -> list[dict[str, Any]]:
    """What a query gives, in order."""
    reader = TidelogDataSource(options(broker, given)).reader(schema)
    found = [row for task in reader.partitions() for row in task_rows(reader, task)]
    return sorted(found, key=lambda row: (row.get("topic"), row.get("partition"), row.get("offset")))


def filled(client: Client, topic: str) -> None:
    """Transactions that overlap, committed and aborted; plain batches of all codecs; headers, and values that are
    null."""
    producers = [client.transactional_producer(unique("id")) for _ in range(3)]
    for producer in producers:
        producer.init()
    long, *short = producers
    long.begin()
    for number in range(12):
        long.send(topic, f"long {number}", partition=0)
        long.flush()
        for each, producer in enumerate(short):
            producer.begin()
            producer.send(topic, f"short {number}.{each}", key=f"{number}", partition=0)
            producer.flush()
            if (number + each) % 3:
                producer.commit()
            else:
                producer.abort()
        builder = BatchBuilder([Codec.NONE, Codec.GZIP, Codec.ZSTD, Codec.LZ4][number % 4])
        for row in range(50):
            content = None if row == 7 else f"plain {number} {row} ".encode() * 5
            builder.append(content, key=b"key", timestamp=1000 + row, headers=[("h", b"%d" % row)] if row % 5 else ())
        client.produce_batches(topic, 0, builder.build())
    long.abort()
    for producer in producers:
        producer.close()


def test_rows_from_the_store_are_those_of_the_broker(
    broker: BrokerProcess, client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    topic = unique("mixed")
    client.create_topic(topic, partitions=1, configs={"retention.ms": "-1"})
    filled(client, topic)
    client.delete_records({TopicPartition(topic, 0): 100})  # in the middle of a batch
    monkeypatch.setattr(direct, "_STRETCH_BYTES", 2000)
    for isolation in ("read_uncommitted", "read_committed"):
        given = {"subscribe": topic, "isolation": isolation, "includeHeaders": True}
        expected = rows(broker, WITH_HEADERS, read="broker", **given)
        assert 300 < len(expected) < 700
        assert expected[0]["offset"] == 100
        assert rows(broker, WITH_HEADERS, read="files", **given) == expected
        for more in ({"minPartitions": 7}, {"startingOffsets": f'{{"{topic}": {{"0": 333}}}}'}):
            several = rows(broker, WITH_HEADERS, read="files", **given, **more)
            assert several == [row for row in expected if row["offset"] >= several[0]["offset"]]
        narrow = rows(broker, NARROW, read="files", **given)
        assert [row["offset"] for row in narrow] == [row["offset"] for row in expected]
    assert not caplog.records


def written(client: Client, first: int, last: int, topic: str | None = None) -> str:
    """Records that say their number and where they come from, in two partitions."""
    if topic is None:
        topic = unique("origin")
        client.create_topic(topic, partitions=2)
    for number in range(first, last):
        client.produce(topic, f"{number} {BROKER}", partition=number % 2)
    return topic


def test_the_tail_comes_from_the_broker_and_everything_before_it_from_the_store(
    broker: BrokerProcess, client: Client
) -> None:
    topic = written(client, 0, 20)
    mark_objects(broker)

    def origins(**more: object) -> dict[int, str]:
        found = [row["value"].decode().split(" ", 1) for row in rows(broker, subscribe=topic, **more)]
        return {int(number): origin for number, origin in found}

    def all_from(origin: str) -> dict[int, str]:
        return dict.fromkeys(range(20), origin)

    unchecked = {"kafka.check.crcs": False}
    assert origins(read="broker", **unchecked) == all_from(BROKER)
    assert origins(**unchecked) == all_from(BROKER), "it is in the broker's memory"
    assert origins(read="files", **unchecked) == all_from(OBJECT)
    assert origins(read="files") == all_from(BROKER), "what is damaged is read from the broker"
    broker.restart()
    written(client, 20, 22, topic)
    assert origins(**unchecked) == {**all_from(OBJECT), 20: BROKER, 21: BROKER}


def test_spark_reads_from_the_store(broker: BrokerProcess, client: Client, spark: SparkSession) -> None:
    topic = written(client, 0, 20)
    mark_objects(broker)
    table = load(spark, broker, subscribe=topic, read="files", **{"kafka.check.crcs": False})
    assert texts(table.where("partition = 1 and offset >= 5")) == [
        f"{number} {OBJECT}" for number in range(11, 20, 2)
    ]


def test_a_compacted_topic_is_read_with_its_gaps(broker: BrokerProcess, client: Client) -> None:
    topic = unique("compacted")
    client.create_topic(topic, partitions=1, configs={**COMPACTED, "segment.ms": "100"})
    for number in range(60):
        client.produce(topic, f"value {number}", key=f"key {number % 7}" if number % 3 else f"own {number}")
    wanted = {"subscribe": topic}
    expected = eventually(
        lambda: rows(broker, read="broker", **wanted), until=lambda found: len(found) == 27, within=SECONDS
    )
    assert rows(broker, read="files", **wanted) == expected
    assert rows(broker, read="files", minPartitions=5, **wanted) == expected


def test_a_store_that_a_task_cannot_reach_is_said_and_the_broker_is_read(
    broker: BrokerProcess, client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    topic = unique("elsewhere")
    client.create_topic(topic, partitions=1)
    for number in range(5):
        client.produce(topic, f"{number}")
    monkeypatch.setattr(direct, "open_object_store", lambda place: open_object_store(f"{place}-of-another-machine"))
    for _ in range(2):
        assert [row["value"] for row in rows(broker, subscribe=topic, read="files")] == [b"%d" % n for n in range(5)]
    [said] = caplog.records
    assert "reading through the broker" in said.getMessage()


def test_only_the_topic_that_is_meant_is_located(broker: BrokerProcess, client: Client) -> None:
    topic = unique("located")
    client.create_topic(topic, partitions=1)
    client.produce(topic, "x")
    place, topic_id = TopicPartition(topic, 0), client.topic(topic).topic_id
    found = client.locate_records(place, 0, 10, topic_id=topic_id)
    assert (found.end_offset, found.tail_offset, len(found.pieces)) == (1, 0, 1)
    piece = found.pieces[0]
    assert (objects_of(broker) / piece.key).stat().st_size >= piece.position + piece.size
    with pytest.raises(BrokerError) as refused:
        client.locate_records(place, 2, 10, topic_id=topic_id)
    assert refused.value.kafka_code == ErrorCode.OFFSET_OUT_OF_RANGE
