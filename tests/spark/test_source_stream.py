"""Streams over topics. What a stream decides is asked of the reader itself, which needs no JVM; that Spark and it get
along, over restarts too, is shown with real queries."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows
from pyspark.sql.types import StructType

from tests.spark.topics import fill, numbered, options, stream
from tests.support.brokers import BrokerProcess, eventually, unique
from tidelog.client import Client
from tidelog.model import TopicPartition
from tidelog.spark.offsets import DataLoss
from tidelog.spark.source import TaskRange, TidelogDataSource, TidelogStreamReader

MakeTopic = Callable[..., str]


@pytest.fixture
def make_topic(make_topic: MakeTopic) -> MakeTopic:
    return partial(make_topic, retention_ms="-1")


@contextmanager
def reading(broker: BrokerProcess, **given: object) -> Iterator[TidelogStreamReader]:
    reader = TidelogDataSource(options(broker, given)).streamReader(StructType().add("value", "binary"))
    assert isinstance(reader, TidelogStreamReader)
    try:
        yield reader
    finally:
        reader.stop()


def ranges(reader: TidelogStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[int, int, int]]:
    tasks = [task for task in reader.partitions(start, end) if isinstance(task, TaskRange)]
    return sorted((task.range.partition, task.range.start, task.range.end) for task in tasks)


def test_offsets_look_as_those_of_spark_s_kafka_source(
    broker: BrokerProcess, client: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=12)
    fill(client, topic, ["a", "b"], partition=10)
    with reading(broker, subscribe=topic, startingOffsets="earliest") as reader:
        start = reader.initialOffset()
        assert start == {topic: {str(number): 0 for number in range(12)}}
        assert list(start[topic]) == [str(number) for number in range(12)], "by number, not as text"
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        assert end[topic]["10"] == 2
        assert ranges(reader, start, end) == [(10, 0, 2)]
        assert json.dumps(reader.latestOffset(end, ReadAllAvailable())) == json.dumps(end), "nothing new"
        assert reader.reportLatestOffset() == end
    with reading(broker, subscribe=topic) as reader:
        assert reader.initialOffset() == end, "a stream begins at the end unless told otherwise"


def test_a_trigger_takes_its_share_of_each_partition(
    broker: BrokerProcess, client: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=3)
    fill(client, topic, numbered("v", 90), partition=0)
    fill(client, topic, numbered("v", 9), partition=1)
    fill(client, topic, ["v"], partition=2)
    with reading(broker, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=10) as reader:
        assert reader.getDefaultReadLimit() == ReadMaxRows(10)
        start = reader.initialOffset()
        assert reader.latestOffset(start, ReadMaxRows(10)) == {topic: {"0": 9, "1": 1, "2": 1}}
        assert reader.latestOffset(start, ReadAllAvailable()) == {topic: {"0": 90, "1": 9, "2": 1}}


def test_a_trigger_waits_for_enough_records_but_not_for_ever(
    broker: BrokerProcess, client: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    given = {"subscribe": topic, "startingOffsets": "earliest", "minOffsetsPerTrigger": 5}
    with reading(broker, **given) as reader:
        start = reader.initialOffset()
        fill(client, topic, numbered("v", 3))
        assert reader.latestOffset(start, ReadMinRows(5)) == start
        fill(client, topic, numbered("v", 2))
        assert reader.latestOffset(start, ReadMinRows(5)) == {topic: {"0": 5}}
    with reading(broker, maxTriggerDelay="100ms", **{**given, "minOffsetsPerTrigger": 100}) as reader:
        eventually(lambda: reader.latestOffset(start, ReadMinRows(100)), until=lambda end: end == {topic: {"0": 5}})
    with reading(broker, **{**given, "minOffsetsPerTrigger": 100}) as reader:
        reader.prepareForTriggerAvailableNow()
        fill(client, topic, ["too late"])
        assert reader.latestOffset(start, ReadMinRows(100)) == {topic: {"0": 5}}, "what was there, and no more"


def test_new_partitions_and_topics_are_read_from_their_beginning(
    broker: BrokerProcess, client: Client, make_topic: MakeTopic
) -> None:
    stem = unique("grows")
    topic = make_topic(stem=stem)
    with reading(broker, subscribePattern=f"{stem}.*") as reader:
        start = reader.initialOffset()
        client.add_partitions(topic, 2)
        fill(client, topic, ["a", "b"], partition=1)
        end = reader.latestOffset(start, ReadAllAvailable())
        assert end == {topic: {"0": 0, "1": 2}}
        assert ranges(reader, start, end) == [(1, 0, 2)]
        second = make_topic(stem=stem)
        assert set(reader.latestOffset(end, ReadAllAvailable())) == {topic, second}


@pytest.mark.parametrize("strict", [True, False])
def test_what_is_lost_stops_a_stream_only_if_it_may(
    broker: BrokerProcess, client: Client, make_topic: MakeTopic, strict: bool, recwarn: pytest.WarningsRecorder
) -> None:
    stem = unique("lost")
    gone, kept = make_topic(stem=stem), make_topic(stem=stem)
    fill(client, kept, numbered("v", 5))
    with reading(broker, subscribePattern=f"{stem}.*", startingOffsets="earliest", failOnDataLoss=strict) as reader:
        start = reader.initialOffset()
        client.delete_topic(gone)
        if strict:
            with pytest.raises(DataLoss, match=f"{gone}-0 was deleted while the query reads it"):
                reader.latestOffset(start, ReadAllAvailable())
        else:
            with pytest.warns(UserWarning, match="was deleted while the query reads it"):
                end = reader.latestOffset(start, ReadAllAvailable())
            assert end == {kept: {"0": 5}}
        client.delete_topic(kept)
        client.create_topic(kept, partitions=1)
        if strict:
            with pytest.raises(DataLoss, match="was deleted and created again"):
                reader.latestOffset({kept: {"0": 5}}, ReadAllAvailable())
        else:
            with pytest.warns(UserWarning, match="was deleted and created again"):
                assert reader.latestOffset(end, ReadAllAvailable()) == {kept: {"0": 0}}
            with pytest.warns(UserWarning, match="went back from offset 5 to 0"):
                assert ranges(reader, end, {kept: {"0": 0}}) == []


def test_a_stream_has_no_end(broker: BrokerProcess) -> None:
    with pytest.raises(Exception, match="endingOffsets is for batch queries; a stream has no end"):
        TidelogDataSource(options(broker, {"subscribe": "a", "endingOffsets": "latest"})).streamReader(
            StructType().add("value", "binary")
        )


# --- real queries ---------------------------------------------------------------------------------------------------


class Collected:
    """What a query gave, batch by batch."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def add(self, batch: DataFrame, _: int) -> None:
        self.batches.append([row.v for row in batch.selectExpr("cast(value as string) v").collect()])

    @property
    def values(self) -> list[str]:
        return sorted(value for batch in self.batches for value in batch)


@pytest.mark.slow
def test_a_query_goes_on_from_its_checkpoint(
    spark: SparkSession, broker: BrokerProcess, client: Client, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(partitions=2)
    fill(client, topic, numbered("a", 20), partition=0)
    fill(client, topic, numbered("b", 20), partition=1)

    def run(**more: object) -> tuple[Collected, Any]:
        seen = Collected()
        rows = stream(spark, broker, subscribe=topic, startingOffsets="earliest", **more)
        writer = rows.writeStream.foreachBatch(seen.add).option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(60)
        return seen, query

    first, query = run(maxOffsetsPerTrigger=16)
    assert first.values == sorted(numbered("a", 20) + numbered("b", 20))
    assert [len(batch) for batch in first.batches] == [16, 16, 8]
    source = query.lastProgress.sources[0]
    assert json.loads(source.endOffset) == json.loads(source.latestOffset) == {topic: {"0": 20, "1": 20}}
    fill(client, topic, numbered("c", 5), partition=0)
    client.add_partitions(topic, 3)
    fill(client, topic, numbered("d", 5), partition=2)
    second, _ = run()
    assert second.values == numbered("c", 5) + numbered("d", 5), "only what is new, a new partition included"
    client.delete_records({TopicPartition(topic, 0): 25})
    fill(client, topic, ["e"], partition=0)
    third, _ = run()
    assert third.values == ["e"]


@pytest.mark.slow
def test_a_running_query_sees_new_records_and_partitions_and_ends_when_the_topic_goes(
    spark: SparkSession, broker: BrokerProcess, client: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    seen = Collected()
    rows = stream(spark, broker, subscribe=topic, startingOffsets="earliest")
    query = rows.writeStream.foreachBatch(seen.add).trigger(processingTime="100 milliseconds").start()
    try:
        fill(client, topic, ["a"])
        eventually(lambda: seen.values, until=lambda values: values == ["a"], within=40)
        client.add_partitions(topic, 2)
        fill(client, topic, ["b"], partition=1)
        eventually(lambda: seen.values, until=lambda values: values == ["a", "b"], within=40)
        client.delete_topic(topic)
        with pytest.raises(StreamingQueryException, match="was deleted while the query reads it"):
            query.awaitTermination(40)
    finally:
        query.stop()


@pytest.mark.slow
def test_records_that_age_out_before_they_are_read(
    spark: SparkSession, broker: BrokerProcess, client: Client, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic()
    fill(client, topic, numbered("v", 10))

    def run(**more: object) -> list[str]:
        seen = Collected()
        rows = stream(spark, broker, subscribe=topic, startingOffsets=json.dumps({topic: {"0": 2}}), **more)
        query = (
            rows.writeStream.foreachBatch(seen.add)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(60)
        return seen.values

    client.delete_records({TopicPartition(topic, 0): 6})
    with pytest.raises(StreamingQueryException, match="the offset is not in the log"):
        run()
    assert run(failOnDataLoss=False) == numbered("v", 4, 6), "the same micro-batch, as far as it is still there"
