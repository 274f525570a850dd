"""Batch queries over topics, by a real Spark from a real broker."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from tests.spark.topics import fill, load, numbered, texts
from tests.support.brokers import BrokerProcess, unique
from tidelog.client import Client, ProducerOptions
from tidelog.model import TopicPartition
from tidelog.records.compression import Codec

pytestmark = pytest.mark.slow
MakeTopic = Callable[..., str]

KAFKA_COLUMNS = (
    StructType()
    .add("key", BinaryType())
    .add("value", BinaryType())
    .add("topic", StringType())
    .add("partition", IntegerType())
    .add("offset", LongType())
    .add("timestamp", TimestampType())
    .add("timestampType", IntegerType())
)
HEADERS = ArrayType(StructType().add("key", StringType()).add("value", BinaryType()))


@pytest.fixture
def make_topic(make_topic: MakeTopic) -> MakeTopic:
    """The records of the tests are from the seventies: nothing may be deleted for its age."""
    return partial(make_topic, retention_ms="-1")


def test_the_columns_are_those_of_spark_s_kafka_source(
    spark: SparkSession, broker: BrokerProcess, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    assert load(spark, broker, subscribe=topic).schema == KAFKA_COLUMNS
    with_headers = StructType(list(KAFKA_COLUMNS)).add("headers", HEADERS)
    assert load(spark, broker, subscribe=topic, includeHeaders=True).schema == with_headers
    assert load(spark, broker, subscribe=topic).count() == 0, "an empty topic is an empty table"


def test_records_come_back_as_they_were_written(
    spark: SparkSession, broker: BrokerProcess, client: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic(stem="dotted.and-dashed")
    at = datetime(2026, 3, 1, 12, 30, 15, 250_000, tzinfo=UTC)
    client.produce(topic, b"\x00\xff", key="k", headers=[("a", b"1"), ("a", None)], timestamp=at)
    client.produce(topic, None, key=b"", timestamp=at)
    client.produce(topic, "", timestamp=at)
    rows = load(spark, broker, subscribe=topic, includeHeaders=True).orderBy("offset").collect()
    assert [(bytes(row.key) if row.key is not None else None, row.value) for row in rows] == [
        (b"k", bytearray(b"\x00\xff")),
        (b"", None),
        (None, bytearray(b"")),
    ]
    assert [(header.key, header.value) for header in rows[0].headers] == [("a", bytearray(b"1")), ("a", None)]
    assert rows[1].headers is None
    assert [(row.topic, row.partition, row.offset, row.timestampType) for row in rows] == [
        (topic, 0, offset, 0) for offset in range(3)
    ]
    assert {row.timestamp.astimezone(UTC) for row in rows} == {at}


def test_a_schema_of_one_s_own_chooses_columns_in_any_order(
    spark: SparkSession, broker: BrokerProcess, client: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=2)
    fill(client, topic, ["a", "b"], partition=1)
    rows = load(spark, broker, "offset bigint, value string, partition int", subscribe=topic).orderBy("offset")
    assert rows.columns == ["offset", "value", "partition"]
    assert [tuple(row) for row in rows.collect()] == [(0, "a", 1), (1, "b", 1)]
    assert load(spark, broker, "topic string", subscribe=topic).distinct().collect() == [(topic,)]
    for wrong, said in {
        "value int": "the column value is binary or string, not int",
        "valeu binary": "a topic has no column 'valeu'",
    }.items():
        with pytest.raises(PySparkException, match=said):
            load(spark, broker, wrong, subscribe=topic).count()


def test_every_way_to_say_where_to_start_and_end(
    spark: SparkSession, broker: BrokerProcess, client: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=2)
    fill(client, topic, numbered("a", 5), partition=0, timestamp=1000)  # at 1000 to 1004
    fill(client, topic, numbered("b", 5), partition=1, timestamp=2000)

    def by_partition(first: int, second: int) -> str:
        return json.dumps({topic: {"0": first, "1": second}})

    cases: list[tuple[dict[str, object], list[str]]] = [
        ({"startingOffsets": "earliest", "endingOffsets": "latest"}, numbered("a", 5) + numbered("b", 5)),
        ({"startingOffsets": by_partition(3, -2), "endingOffsets": by_partition(-1, 1)}, ["a3", "a4", "b0"]),
        ({"startingTimestamp": 1003, "endingTimestamp": 2002}, ["a3", "a4", "b0", "b1"]),
        (
            {
                "startingOffsetsByTimestamp": by_partition(1004, 2003),
                "endingOffsetsByTimestamp": by_partition(9999, 2004),
                "startingOffsets": by_partition(0, 0),
            },
            ["a4", "b3"],
        ),
        ({"startingTimestamp": 1500, "startingOffsetsByTimestampStrategy": "latest"}, numbered("b", 5)),
    ]
    for given, expected in cases:
        assert texts(load(spark, broker, subscribe=topic, **given)) == expected, given
    with pytest.raises(PySparkException, match="has no record at or after that time; give an earlier"):
        load(spark, broker, subscribe=topic, startingTimestamp=1500).count()
    with pytest.raises(PySparkException, match=rf"startingOffsets must name every partition .* lacks {topic}-1"):
        load(spark, broker, subscribe=topic, startingOffsets=json.dumps({topic: {"0": 1}})).count()


def test_topics_by_names_by_pattern_and_by_partitions(
    spark: SparkSession, broker: BrokerProcess, client: Client, make_topic: MakeTopic
) -> None:
    stem = unique("family")
    topics = [make_topic(stem=stem, partitions=2) for _ in range(2)]
    stranger = make_topic()
    for name in (*topics, stranger):
        fill(client, name, [f"{name}/0"], partition=0)
    fill(client, topics[0], [f"{topics[0]}/1"], partition=1)
    of_both = sorted([f"{topics[0]}/0", f"{topics[1]}/0", f"{topics[0]}/1"])
    assert sorted(texts(load(spark, broker, subscribe=f"{topics[0]}, {topics[1]}"))) == of_both
    assert sorted(texts(load(spark, broker, subscribePattern=f"{re.escape(stem)}.*"))) == of_both
    assert texts(load(spark, broker, assign=json.dumps({topics[0]: [1]}))) == [f"{topics[0]}/1"]
    assert texts(load(spark, broker, subscribePattern="no-such-[a-z]+")) == []


def test_all_codecs_and_the_broker_s_timestamps(
    spark: SparkSession, broker: BrokerProcess, client: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic(message_timestamp_type="LogAppendTime")
    expected = []
    for codec in Codec:
        with client.producer(ProducerOptions(compression=codec)) as producer:
            for value in numbered(f"{codec.name} ", 50):
                producer.send(topic, value, timestamp=5)
                expected.append(value)
    rows = load(spark, broker, subscribe=topic)
    assert texts(rows) == expected
    assert rows.selectExpr("min(timestampType)", "min(timestamp) > '2026-01-01'").collect() == [(1, True)]


def test_files_and_broker_give_the_same(
    spark: SparkSession, broker: BrokerProcess, client: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=2, segment_bytes="20000")
    for start in range(0, 4000, 100):
        fill(client, topic, numbered("x" * 20, 100, start), partition=(start // 100) % 2)
    assert len(list((broker.data_dir / "logs").glob(f"{topic}~*/0/*.log"))) > 2
    one_way = load(spark, broker, subscribe=topic, read="broker").collect()
    other_way = load(spark, broker, subscribe=topic, read="files").collect()
    assert sorted(one_way) == sorted(other_way)
    assert len(one_way) == 4000


def test_large_partitions_are_shared_out_over_tasks(
    spark: SparkSession, broker: BrokerProcess, client: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=2)
    fill(client, topic, numbered("v", 900), partition=0)
    fill(client, topic, numbered("w", 100), partition=1)
    everything = sorted(numbered("v", 900) + numbered("w", 100))
    for given, tasks in (({}, 2), ({"minPartitions": 10}, 10), ({"maxRecordsPerPartition": 300}, 4)):
        rows = load(spark, broker, subscribe=topic, **given)
        assert rows.rdd.getNumPartitions() == tasks, given
        assert sorted(texts(rows)) == everything


def test_filters_on_offsets_and_times_are_right_and_read_less(
    spark: SparkSession, broker: BrokerProcess, client: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=3)
    for number in range(3):
        fill(client, topic, numbered(f"p{number}-", 10), partition=number, timestamp=1000 * (number + 1))
    rows = load(spark, broker, subscribe=topic)
    narrow = rows.where("partition = 1 and offset > 3 and offset <= 5")
    assert texts(narrow) == ["p1-4", "p1-5"]
    assert narrow.rdd.getNumPartitions() == 1, "two partitions are not read at all"
    late = rows.where("timestamp >= timestamp_millis(2008)")
    assert texts(late) == ["p1-8", "p1-9", *numbered("p2-", 10)]
    assert late.rdd.getNumPartitions() == 2
    assert texts(rows.where("offset in (0, 9) and partition <> 1")) == ["p0-0", "p0-9", "p2-0", "p2-9"]
    assert rows.where(f"topic = '{topic}x'").count() == 0


def test_records_that_are_gone_are_an_error_unless_told_otherwise(
    spark: SparkSession, broker: BrokerProcess, client: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    fill(client, topic, numbered("v", 10))
    client.delete_records({TopicPartition(topic, 0): 4})
    assert texts(load(spark, broker, subscribe=topic)) == numbered("v", 6, 4)
    given = {"subscribe": topic, "startingOffsets": json.dumps({topic: {"0": 1}})}
    with pytest.raises(PySparkException, match=r"begins at 4, not 1.*set the option failOnDataLoss to false"):
        load(spark, broker, **given).count()
    assert texts(load(spark, broker, failOnDataLoss=False, **given)) == numbered("v", 6, 4)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"subscirbe": "a"}, "unknown option subscirbe; did you mean subscribe?"),
        ({}, "give exactly one of subscribe, subscribePattern and assign; none is set"),
        ({"subscribe": "a", "assign": "{}"}, "subscribe and assign are set"),
        ({"subscribe": "a", "startingOffsets": "newest"}, "startingOffsets must be JSON such as earliest, latest or"),
        (
            {"subscribe": "a", "minPartitions": "none"},
            "minPartitions must be a whole number of at least 1, not 'none'",
        ),
        ({"subscribe": "a", "kafka.auto.offset.reset": "latest"}, "use startingOffsets"),
        ({"subscribe": "a", "kafka.security.protocol": "SASL_SSL"}, "client supports PLAINTEXT only, for now"),
        ({"subscribe": "a", "valueFormat": "json"}, "valueFormat=json needs the option schema"),
    ],
)
def test_wrong_options_are_refused_when_the_table_is_loaded(
    spark: SparkSession, broker: BrokerProcess, given: dict[str, str], said: str
) -> None:
    with pytest.raises(AnalysisException, match=re.escape(said)):
        load(spark, broker, **given)


def test_what_is_not_there_is_said_clearly(spark: SparkSession, broker: BrokerProcess) -> None:
    with pytest.raises(PySparkException, match="nowhere does not exist; list all topics with: tidelog topic list"):
        load(spark, broker, subscribe="nowhere").count()
    nobody = {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.default.api.timeout.ms": 200}
    with pytest.raises(PySparkException, match=r"refused; is the broker running.*\(tried for 0.2 s: kafka"):
        load(spark, broker, subscribe="nowhere", **nobody).count()


def test_json_values_become_structs_and_bad_ones_are_kept(
    spark: SparkSession, broker: BrokerProcess, client: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    fill(client, topic, ['{"id": 1, "at": "2026-01-02T03:04:05Z"}', "not json", '{"id": 3}'])
    given = {"subscribe": topic, "valueFormat": "json", "schema": "id bigint, at timestamp"}
    rows = load(spark, broker, **given).orderBy("offset")
    found = rows.selectExpr("value.id", "unix_seconds(value.at)", "cast(_corrupt as string)").collect()
    assert [tuple(row) for row in found] == [(1, 1767323045, None), (None, None, "not json"), (3, None, None)]
    with pytest.raises(PySparkException, match="a value is not JSON of this schema"):
        load(spark, broker, mode="FAILFAST", **given).collect()
