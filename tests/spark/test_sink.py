"""Writing to topics with a real Spark and a real broker."""

import re
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from tests.spark.topics import fill, load, numbered, options, save, stream, texts
from tests.support.brokers import BrokerProcess, eventually
from tidelog.client import Client, connect
from tidelog.records.compression import Codec

pytestmark = pytest.mark.slow
MakeTopic = Callable[..., str]


def test_rows_come_back_as_records(
    spark: SparkSession, broker: BrokerProcess, client: Client, make_topic: MakeTopic
) -> None:
    first, second = make_topic(partitions=2), make_topic(partitions=2)
    rows = spark.sql(f"""
        SELECT * FROM VALUES
          ('k1', X'00FF', '{first}', 1, array(named_struct('key', 'h', 'value', X'01'))),
          (NULL, NULL, '{second}', 0, NULL),
          ('', X'', '{first}', NULL, array())
        AS rows (key, value, topic, partition, headers)""")
    save(rows, broker)
    found = {
        (row.topic, row.key if row.key is None else bytes(row.key)): row
        for row in load(spark, broker, subscribe=f"{first},{second}", includeHeaders=True).collect()
    }
    assert len(found) == 3
    assert (found[first, b"k1"].partition, bytes(found[first, b"k1"].value)) == (1, b"\x00\xff")
    assert [(h.key, bytes(h.value)) for h in found[first, b"k1"].headers] == [("h", b"\x01")]
    assert (found[second, None].partition, found[second, None].value, found[second, None].headers) == (0, None, None)
    assert (bytes(found[first, b""].value), found[first, b""].headers) == (b"", None)


def test_keys_go_where_the_java_client_puts_them(
    spark: SparkSession, broker: BrokerProcess, client: Client, make_topic: MakeTopic
) -> None:
    ours, theirs = make_topic(partitions=7), make_topic(partitions=7)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "partitioner": "murmur2_random"})
    for number in range(500):
        producer.produce(theirs, key=f"kéy {number}".encode(), value=b"")
    assert producer.flush(30) == 0
    save(spark.range(500).selectExpr("concat('kéy ', id) key", "'' value"), broker, topic=ours)

    def places(topic: str) -> dict[bytes, int]:
        rows = load(spark, broker, "key binary, partition int", subscribe=topic).collect()
        return {bytes(row.key): row.partition for row in rows}

    assert places(ours) == places(theirs)
    assert len(places(ours)) == 500


def test_rows_without_keys_are_spread_and_all_there(
    spark: SparkSession, broker: BrokerProcess, client: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=3)
    rows = spark.range(0, 60_000, 1, 2).selectExpr("rpad(cast(id as string), 50, '.') value")
    save(rows, broker, topic=topic, compression="zstd", **{"kafka.batch.size": "100000"})
    ends = [row.end_offset for row in client.partitions(topic)]
    assert sum(ends) == 60_000
    assert min(ends) > 10_000
    found = load(spark, broker, subscribe=topic).selectExpr("count(distinct value)").collect()
    assert found == [(60_000,)]
    chunk = next(client.read_range(topic, 0, 0, 1))
    assert chunk.records[22] & 7 == Codec.ZSTD


def test_a_copy_of_a_topic_may_keep_its_times(
    spark: SparkSession, broker: BrokerProcess, client: Client, make_topic: MakeTopic
) -> None:
    origin, now, then = make_topic(retention_ms="-1"), make_topic(), make_topic(retention_ms="-1")
    fill(client, origin, ["a"], timestamp=1000)
    rows = load(spark, broker, subscribe=origin)
    save(rows.drop("topic", "partition"), broker, topic=now)
    save(rows, broker, topic=then, keepTimestamp=True)
    times = load(spark, broker, subscribe=f"{now},{then}").selectExpr("topic", "unix_millis(timestamp) ms").collect()
    found = {row.topic: row.ms for row in times}
    assert found[then] == 1000
    assert found[now] > 1_700_000_000_000


def test_the_option_topic_wins_over_the_column(
    spark: SparkSession, broker: BrokerProcess, client: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    save(spark.sql("SELECT 'a' value, 'elsewhere' topic"), broker, topic=topic)
    assert texts(load(spark, broker, subscribe=topic)) == ["a"]


@pytest.mark.parametrize(
    ("query", "given", "said"),
    [
        ("SELECT 'a' value", {}, "no topic is named: set the option topic, or add a column topic"),
        ("SELECT 'a' key", {"topic": "t"}, "there is no column value"),
        ("SELECT 1 value", {"topic": "t"}, "the column value is int, it must be string or binary"),
        ("SELECT 'a' value, 1 amount", {"topic": "t"}, "the column amount cannot be written; topics have key"),
        ("SELECT 'a' value, 1L partition", {"topic": "t"}, "the column partition is bigint, it must be int"),
        (
            "SELECT 'a' value, array('x') headers",
            {"topic": "t"},
            "it must be array<struct<key: string, value: binary>>",
        ),
        ("SELECT 'a' value", {"topic": "no/name"}, "'no/name' is not a topic name"),
        (
            "SELECT 'a' value",
            {"topic": "t", "kafka.ack": "1"},
            "unknown option kafka.ack; did you mean kafka.acks?",
        ),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is(
    spark: SparkSession, broker: BrokerProcess, query: str, given: dict[str, str], said: str
) -> None:
    with pytest.raises(AnalysisException, match=re.escape(said)):
        save(spark.sql(query), broker, **given)


def test_a_topic_is_not_overwritten(spark: SparkSession, broker: BrokerProcess, make_topic: MakeTopic) -> None:
    writer = spark.sql("SELECT 'a' value").write.format("tidelog").mode("overwrite")
    with pytest.raises(PySparkException, match="cannot be overwritten, only appended to"):
        writer.options(**options(broker, {"topic": make_topic()})).save()


def test_rows_that_the_broker_refuses_fail_the_task(
    spark: SparkSession, broker: BrokerProcess, client: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=2, max_message_bytes="2000")
    for query, said in {
        "SELECT 'a' value, 7 partition": f"the partition of a row is 7, but {topic} has partitions 0 to 1",
        "SELECT repeat('a', 3000) value": f"producing 1 record to {topic}-",
        "SELECT 'a' value, CAST(NULL AS STRING) topic": "the topic of a row is null",
    }.items():
        with pytest.raises(PySparkException, match=re.escape(said)):
            save(spark.sql(query), broker, **({} if "topic" in query else {"topic": topic}))
    assert sum(row.end_offset for row in client.partitions(topic)) == 0


def test_a_stream_of_records_over_restarts_and_failures_of_the_query(
    spark: SparkSession, broker: BrokerProcess, client: Client, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """Everything at least once; what was written twice is of the one micro-batch that failed."""
    origin, copy = make_topic(partitions=2, retention_ms="-1"), make_topic(partitions=3)
    fill(client, origin, numbered("v", 300), partition=0)
    fill(client, origin, numbered("w", 300), partition=1)

    def run(rows: DataFrame) -> None:
        query = (
            rows.selectExpr("key", "value")
            .writeStream.format("tidelog")
            .options(**options(broker, {"topic": copy}))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(60)

    given = {"subscribe": origin, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 200}
    rows = stream(spark, broker, **given)
    poison = "if(cast(value as string) = 'w150', raise_error('on purpose'), value)"
    with pytest.raises(StreamingQueryException, match="on purpose"):
        run(rows.selectExpr("key", f"{poison} value"))
    run(rows)
    fill(client, origin, ["last"], partition=0)
    run(rows)
    times = Counter(texts(load(spark, broker, subscribe=copy)))
    assert set(times) == {*numbered("v", 300), *numbered("w", 300), "last"}
    twice = {value for value, count in times.items() if count > 1}
    assert twice <= {*numbered("v", 100, 100), *numbered("w", 100, 100)}
    assert max(times.values()) <= 2


def test_a_broker_that_goes_away_for_a_moment_costs_nothing_and_doubles_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = spark.range(0, 150_000, 1, 2).selectExpr("cast(id as string) key", "repeat(cast(id as string), 20) value")
    with BrokerProcess(tmp_path) as broker, connect(broker.bootstrap) as client:
        client.create_topic("out", partitions=4)

        def written() -> int:
            return sum(row.end_offset for row in client.partitions("out"))

        at_the_kill = []

        def kill_and_start() -> None:
            at_the_kill.append(eventually(written, within=60))
            broker.kill()
            broker.start()

        killer = threading.Thread(target=kill_and_start)
        killer.start()
        save(rows, broker, topic="out", **{"kafka.batch.size": "20000", "kafka.buffer.memory": str(1 << 20)})
        killer.join()
        assert at_the_kill[0] < 150_000, "the broker was killed too late to matter"
        assert written() == 150_000
        found = load(spark, broker, subscribe="out").selectExpr("count(distinct key)").collect()
        assert found == [(150_000,)]
