"""Readers of committed records: nothing of aborted transactions, nothing from the first open one on."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from tests.spark.test_jobs_archive import archive_once, content
from tests.spark.topics import load, stream, texts
from tests.support.brokers import BrokerProcess, unique
from tests.support.logs import LeaderWithFiles
from tidelog.client import LATEST, BlockingTransactionalProducer, Client, FetchOptions
from tidelog.errors import TidelogError
from tidelog.model import Offset, TopicPartition
from tidelog.records.batch import HEADER_SIZE, iterate
from tidelog.records.record import decode
from tidelog.spark.jobs.archive import ArchiveSettings
from tidelog.storage.local.direct import LocalDirectLog
from tidelog.storage.local.inspect import with_topic_id

pytestmark = pytest.mark.slow
MakeTopic = Callable[..., str]


class Mixed(NamedTuple):
    """A topic of one partition, and small segments, with transactions that overlap; the last one is open."""

    topic: str
    committed: list[str]
    behind: list[str]
    """Committed too, but after the open one began."""
    open: BlockingTransactionalProducer


@pytest.fixture
def mixed(client: Client, make_topic: MakeTopic) -> Iterator[Mixed]:
    topic = make_topic(segment_bytes="2000")
    producers = [client.transactional_producer(unique("id")) for _ in range(4)]
    for producer in producers:
        producer.init()
    long, *short, last = producers
    seen: list[str] = []
    long.begin()
    for number in range(40):
        write(long, topic, f"long {number}")
        for each, producer in enumerate(short):
            producer.begin()
            write(producer, topic, f"short {number}.{each}")
            write(producer, topic, f"short {number}.{each} again")
            if (number + each) % 3:
                producer.commit()
                seen += [f"short {number}.{each}", f"short {number}.{each} again"]
            else:
                producer.abort()
        client.produce(topic, f"plain {number}")
        seen.append(f"plain {number}")
    long.abort()
    last.begin()
    write(last, topic, "last")
    client.produce(topic, "behind")
    yield Mixed(topic, seen, ["last", "behind"], last)
    with suppress(TidelogError):  # most tests have ended it
        last.abort()
    for producer in producers:
        producer.close(flush=False)


def write(producer: BlockingTransactionalProducer, topic: str, value: str) -> None:
    producer.send(topic, value)
    producer.flush()


@pytest.mark.parametrize("read", ["broker", "files", "auto"])
def test_a_table_of_committed_records(spark: SparkSession, broker: BrokerProcess, mixed: Mixed, read: str) -> None:
    def seen(isolation: str) -> list[str]:
        return texts(load(spark, broker, subscribe=mixed.topic, isolation=isolation, read=read))

    assert seen("read_committed") == mixed.committed
    assert set(seen("read_uncommitted")) > {*mixed.committed, *mixed.behind}
    mixed.open.commit()
    assert seen("read_committed") == mixed.committed + mixed.behind


def test_a_stream_of_committed_records(
    spark: SparkSession, broker: BrokerProcess, mixed: Mixed, tmp_path: Path
) -> None:
    table = unique("table").replace("-", "_")
    given = {
        "subscribe": mixed.topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": 150,
        "kafka.isolation.level": "read_committed",
    }

    def seen() -> list[str]:
        rows = stream(spark, broker, **given).selectExpr("offset", "cast(value as string) v")
        written = rows.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = written.trigger(availableNow=True).start(str(tmp_path / table))
        query.awaitTermination(60)
        return [row.v for row in spark.read.parquet(str(tmp_path / table)).orderBy("offset").collect()]

    assert seen() == mixed.committed
    mixed.open.commit()
    assert seen() == mixed.committed + mixed.behind


def test_files_lead_to_the_end_of_what_is_committed(broker: BrokerProcess, client: Client, mixed: Mixed) -> None:
    """Also where a range begins or ends in the middle of a transaction; nothing is left to be asked of the broker."""
    place = TopicPartition(mixed.topic, 0)
    directory = with_topic_id(f"{broker.data_dir}/logs/{mixed.topic}/0")
    end = client.offsets({place: LATEST}, read_committed=True)[place].offset
    assert len(list(Path(directory).glob("*.log"))) > 10
    fetch = FetchOptions(read_committed=True, max_wait_ms=0)
    by_offset = {record.offset: record.value for record in client.consume(mixed.topic, follow=False, fetch=fetch)}

    def first_batch(offset: Offset) -> bytes | None:
        chunks = client.read_range(mixed.topic, 0, offset, offset + 1)
        return next((bytes(chunk.records[:HEADER_SIZE]) for chunk in chunks), None)

    leader = LeaderWithFiles(first_batch)
    for start, stop in ((0, end), (1, end - 1), (end // 3, end // 2), (end // 2, end // 2 + 1)):
        stretches = list(LocalDirectLog(directory).read(start, stop, leader, committed=True))
        assert stretches[-1].end == stop
        records = [
            record
            for stretch in stretches
            for batch in iterate(stretch.records)
            if not batch.header.is_control
            for record in decode(batch)
        ]
        wanted = {offset: value for offset, value in by_offset.items() if start <= offset < stop}
        assert {record.offset: record.value for record in records if start <= record.offset < stop} == wanted
    ends = [stretch.end for stretch in LocalDirectLog(directory).read(0, end + 2, leader, committed=True)]
    assert not ends or ends[-1] <= end, "what is open is not taken for ended"


def test_an_archive_gets_what_was_open_when_it_has_ended(broker: BrokerProcess, mixed: Mixed, tmp_path: Path) -> None:
    settings = ArchiveSettings(broker.bootstrap, mixed.topic, str(tmp_path / "archive"))
    archive_once(settings)

    def seen() -> list[str]:
        table = content(settings).sort_by("offset")
        return [value.decode() for value in table["value"].to_pylist()]

    assert seen() == mixed.committed
    mixed.open.commit()
    archive_once(settings)
    assert seen() == mixed.committed + mixed.behind
