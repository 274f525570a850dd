"""Writing with delivery=exactly-once, with a real Spark and a real broker; crashes are in test_sink_crash."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tests.spark.topics import fill, numbered, options, save, stream
from tests.support.brokers import BrokerProcess, eventually, unique
from tidelog.client import BrokerError, Client, FetchOptions
from tidelog.client.producing.transactions import OpenTransaction
from tidelog.spark import sink
from tidelog.spark.exactly_once import NumberedBatch
from tidelog.spark.options import write_settings

pytestmark = pytest.mark.slow
MakeTopic = Callable[..., str]
ONCE = "exactly-once"


def committed(client: Client, topic: str) -> list[str]:
    fetch = FetchOptions(read_committed=True)
    return sorted((record.value or b"").decode() for record in client.consume(topic, follow=False, fetch=fetch))


def still_open(client: Client, stem: str = "tidelog-spark-") -> list[str]:
    """Of the ids that begin so; those that are being ended are waited for."""

    def ids(*states: str) -> list[str]:
        return [one.transactional_id for one in client.transactions(states=states, pattern=re.escape(stem) + ".*")]

    eventually(lambda: ids("PrepareCommit", "PrepareAbort"), until=lambda found: not found)
    return ids("Ongoing")


def test_a_job_writes_all_of_its_rows_or_none(
    spark: SparkSession, broker: BrokerProcess, client: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=3)
    rows = spark.range(0, 4000, 1, 4).selectExpr("cast(id as string) value")
    poison = rows.selectExpr("if(value = '3500', raise_error('on purpose'), value) value")
    with pytest.raises(PySparkException, match="on purpose"):
        save(poison, broker, topic=topic, delivery=ONCE, **{"kafka.transaction.timeout.ms": 15_000})
    assert committed(client, topic) == []
    # What was reported is aborted by the driver, and a task that Spark has killed, but that begins only then, notices
    # when it asks for its rows. One that is killed just after it did, and before it wrote, is left to the timeout.
    eventually(lambda: still_open(client), until=lambda left: not left, within=60)
    save(rows, broker, topic=topic, delivery=ONCE)
    assert committed(client, topic) == sorted(map(str, range(4000)))
    save(rows.limit(0), broker, topic=topic, delivery=ONCE)
    assert still_open(client) == []


def test_a_job_with_a_name_and_a_number_is_written_once(
    spark: SparkSession, broker: BrokerProcess, client: Client, make_topic: MakeTopic
) -> None:
    topic, name = make_topic(partitions=2), unique("nightly")

    def run(number: int, value: str) -> None:
        rows = spark.sql(f"SELECT '{value}' value")
        save(rows, broker, topic=topic, delivery=ONCE, txnAppId=name, txnVersion=number)

    run(1, "first")
    run(1, "first again")
    run(2, "second")
    run(1, "first, late")
    assert committed(client, topic) == ["first", "second"]


class Copy:
    """A query from one topic to another, started as often as one likes."""

    def __init__(self, spark: SparkSession, broker: BrokerProcess, client: Client, make: MakeTopic, at: Path) -> None:
        self._spark, self._broker, self.client = spark, broker, client
        self.checkpoint = at / "checkpoint"
        self.origin, self.copy = make(partitions=2), make(partitions=3)

    def run(self, shape: Callable[[DataFrame], DataFrame] = lambda rows: rows) -> StreamingQuery:
        rows = stream(self._spark, self._broker, subscribe=self.origin, startingOffsets="earliest")
        writer = shape(rows.selectExpr("key", "value")).writeStream.format("tidelog")
        return self._finish(writer.options(**options(self._broker, {"topic": self.copy, "delivery": ONCE})))

    def run_by_hand(self, write: Callable[[DataFrame, int], None]) -> None:
        rows = stream(self._spark, self._broker, subscribe=self.origin, startingOffsets="earliest")
        self._finish(rows.selectExpr("key", "value").writeStream.foreachBatch(write))

    def _finish(self, writer: DataStreamWriter) -> StreamingQuery:
        query = writer.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True).start()
        query.awaitTermination(60)
        return query

    def forget(self, batch: int) -> None:
        """As if the driver had died before Spark kept that the batch is done."""
        for file in (self.checkpoint / "commits").glob(f"*{batch}*"):
            file.unlink()


@pytest.fixture
def query(spark: SparkSession, broker: BrokerProcess, client: Client, make_topic: MakeTopic, tmp_path: Path) -> Copy:
    return Copy(spark, broker, client, make_topic, tmp_path)


def test_a_batch_that_was_decided_is_not_written_again(query: Copy, client: Client) -> None:
    fill(client, query.origin, numbered("v", 50), partition=0)
    scope = f"tidelog-spark-{query.run().id}"
    assert client.decision(scope) == 0
    query.forget(0)
    query.run()
    fill(client, query.origin, numbered("w", 50), partition=1)
    query.run()
    assert client.decision(scope) == 1
    assert committed(client, query.copy) == sorted(numbered("v", 50) + numbered("w", 50))
    assert len(list(client.consume(query.copy, follow=False))) == 100, "it was not even sent"


def test_a_batch_that_failed_is_not_seen_and_then_written_once(query: Copy, client: Client) -> None:
    fill(client, query.origin, numbered("v", 50), partition=0)
    fill(client, query.origin, numbered("w", 50), partition=1)
    poison = "if(cast(value as string) = 'w40', raise_error('on purpose'), value) value"
    with pytest.raises(StreamingQueryException, match="on purpose"):
        query.run(lambda rows: rows.selectExpr("key", poison))
    assert committed(client, query.copy) == []
    query.run()
    assert committed(client, query.copy) == sorted(numbered("v", 50) + numbered("w", 50))
    assert still_open(client) == []


def test_for_each_batch_several_topics_are_written_once(
    query: Copy, broker: BrokerProcess, client: Client, make_topic: MakeTopic
) -> None:
    names = {topic: unique("by-hand") for topic in (query.copy, make_topic())}
    second = list(names)[1]

    def both(rows: DataFrame, number: int) -> None:
        for topic, name in names.items():
            save(rows, broker, topic=topic, delivery=ONCE, txnAppId=name, txnVersion=number)
            if breaks and topic == query.copy:
                raise RuntimeError("between the two")

    breaks = True
    fill(client, query.origin, numbered("v", 20))
    with pytest.raises(StreamingQueryException, match="between the two"):
        query.run_by_hand(both)
    assert (len(committed(client, query.copy)), committed(client, second)) == (20, [])
    breaks = False
    query.run_by_hand(both)
    for topic in names:
        assert committed(client, topic) == sorted(numbered("v", 20))


def test_what_a_run_with_more_tasks_left_open_does_not_hold_readers_back(
    query: Copy, client: Client, make_topic: MakeTopic
) -> None:
    fill(client, query.origin, ["first"])
    scope = f"tidelog-spark-{query.run().id}"
    left = client.transactional_producer(f"{scope}-17")
    other = client.transactional_producer(f"{scope}-17-of-others")
    for producer in (left, other):
        producer.init()
        producer.begin()
        producer.send(query.copy if producer is left else make_topic(), b"left open", partition=0)
        producer.flush()
    fill(client, query.origin, ["second"], partition=1)
    query.run()
    assert committed(client, query.copy) == ["first", "second"]
    assert still_open(client) == [f"{scope}-17-of-others"], "what is not the query's is left alone"
    other.abort()


def test_a_batch_of_which_a_transaction_has_ended_is_not_committed_at_all(
    broker: BrokerProcess, client: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    settings = write_settings(options(broker, {"topic": topic, "delivery": ONCE}), streaming=True)
    batch = NumberedBatch(unique("scope"), 3)

    def opened(partition: int) -> OpenTransaction:
        producer = client.transactional_producer(batch.transactional_id(partition))
        producer.init()
        producer.begin()
        producer.send(topic, f"{partition}")
        return producer.hand_over()

    messages = [sink.TaskWritten(batch=batch, transaction=opened(partition)) for partition in range(3)]
    client.fence_producer(batch.transactional_id(1))
    with pytest.raises(BrokerError, match="another producer has taken over") as caught:
        sink.commit(settings, messages)
    assert "kafka.transaction.timeout.ms" in "".join(caught.value.__notes__)
    zombie = client.transactional_producer(batch.transactional_id(3))
    zombie.init()
    sink.abort(settings, [*messages, None])
    zombie.begin()
    with pytest.raises(BrokerError, match="INVALID_PRODUCER_EPOCH"):
        zombie.send(topic, b"too late").result()
    assert (client.decision(batch.scope), committed(client, topic), still_open(client, batch.scope)) == (-1, [], [])
    again = [sink.TaskWritten(batch=batch, transaction=opened(partition)) for partition in range(2)]
    sink.commit(settings, [*again, sink.TaskWritten()])
    sink.commit(settings, again)  # of a driver that was thought to be dead
    sink.abort(settings, again)
    late = sink.TaskWritten(batch=batch, transaction=opened(0))
    sink.commit(settings, [late, sink.TaskWritten(batch=batch)])  # a task found that the batch was decided
    assert (client.decision(batch.scope), committed(client, topic), still_open(client, batch.scope)) == (
        3,
        ["0", "1"],
        [],
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kafka.acks": "1"}, "delivery=exactly-once needs kafka.acks=all and kafka.enable.idempotence=true"),
        ({"txnAppId": "name"}, "give txnAppId, a name, and txnVersion, a number, together or not at all"),
        ({"txnAppId": "name", "txnVersion": "x"}, "txnVersion must be a whole number of at least 0, not 'x'"),
        ({"delivery": "at-least-once", "kafka.transaction.timeout.ms": "1000"}, "need delivery=exactly-once"),
        ({"kafka.transactional.id": "mine"}, "each task has its own; set delivery=exactly-once"),
        ({"delivery": "once"}, "delivery must be at-least-once or exactly-once, not 'once'"),
    ],
)
def test_options_that_contradict_are_refused(
    spark: SparkSession, broker: BrokerProcess, given: dict[str, str], said: str
) -> None:
    with pytest.raises(AnalysisException, match=re.escape(said)):
        save(spark.sql("SELECT 'a' value"), broker, **{"topic": "t", "delivery": ONCE, **given})


def test_a_timeout_that_the_broker_does_not_allow_is_said(
    spark: SparkSession, broker: BrokerProcess, make_topic: MakeTopic
) -> None:
    given = {"topic": make_topic(), "delivery": ONCE, "kafka.transaction.timeout.ms": "86400000"}
    with pytest.raises(PySparkException, match=re.escape("above the broker's transaction.max.timeout.ms")):
        save(spark.sql("SELECT 'a' value"), broker, **given)
