"""What batch and stream readers decide on the driver, asked of the readers themselves, which needs no JVM."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructType

from tests.spark.topics import fill, numbered, options
from tests.support.brokers import BrokerProcess
from tidelog.client import Client, connect
from tidelog.client.errors import Unreachable
from tidelog.errors import InvalidInput
from tidelog.model import TopicPartition
from tidelog.spark import clients
from tidelog.spark.jobs.profile import Unit, profile_unit
from tidelog.spark.jobs.ranges import Range
from tidelog.spark.offsets import DataLoss
from tidelog.spark.source import TaskRange, TidelogDataSource, TidelogReader, TidelogStreamReader

MakeTopic = Callable[..., str]
VALUE = StructType().add("value", "binary")


def batch_reader(broker: BrokerProcess, **given: object) -> TidelogReader:
    reader = TidelogDataSource(options(broker, given)).reader(VALUE)
    assert isinstance(reader, TidelogReader)
    return reader


def stream_reader(broker: BrokerProcess, **given: object) -> TidelogStreamReader:
    reader = TidelogDataSource(options(broker, given)).streamReader(VALUE)
    assert isinstance(reader, TidelogStreamReader)
    return reader


def planned(reader: TidelogReader) -> list[tuple[int, int]]:
    return [(task.range.start, task.range.end) for task in reader.partitions() if isinstance(task, TaskRange)]


# --- offsets outside of what there is ------------------------------------------------------------------------------

# The topic has offsets 4 to 9, at times 1004 to 1009. What Spark's Kafka connector (branch-4.3) does in each case was
# read from its source: checkOffsetLimitValidity of KafkaSourceProvider, KafkaOffsetReaderAdmin, KafkaSourceRDD and
# KafkaDataConsumer. It fails in all cases in which we fail with failOnDataLoss. With failOnDataLoss=false it still
# fails if a start beyond the end, or before it all, meets `latest` or `earliest`; we read what there is.
LOST, WRONG = DataLoss, InvalidInput
CASES = [
    # start, end, what it reads (or why it fails), what is read with failOnDataLoss=false
    ({}, {}, [(4, 10)], [(4, 10)]),
    ({"startingOffsets": 4}, {"endingOffsets": 10}, [(4, 10)], [(4, 10)]),
    ({"startingOffsets": 10}, {}, [], []),
    ({"startingOffsets": 11}, {}, LOST, []),
    ({"startingOffsets": 11}, {"endingOffsets": 15}, LOST, []),
    ({"startingOffsets": 11}, {"endingOffsets": -1}, LOST, []),
    ({"startingOffsets": 3}, {}, LOST, [(4, 10)]),
    ({"startingOffsets": 0}, {"endingOffsets": 2}, LOST, []),
    ({"startingOffsets": -2}, {"endingOffsets": 2}, LOST, []),
    ({}, {"endingOffsets": 2}, LOST, []),
    ({}, {"endingOffsets": 4}, [], []),
    ({}, {"endingOffsets": 11}, LOST, [(4, 10)]),
    ({"startingOffsets": 10}, {"endingOffsets": 11}, LOST, []),
    ({"startingOffsets": 7}, {"endingOffsets": 6}, WRONG, WRONG),
    ({"startingOffsets": 15}, {"endingOffsets": 11}, WRONG, WRONG),
    ({"startingTimestamp": 1006}, {}, [(6, 10)], [(6, 10)]),
    ({"startingTimestamp": 1}, {}, [(4, 10)], [(4, 10)]),
    ({"startingTimestamp": 2000}, {}, WRONG, WRONG),
    ({"startingTimestamp": 2000, "startingOffsetsByTimestampStrategy": "latest"}, {}, [], []),
    ({"startingTimestamp": 1006}, {"endingTimestamp": 1008}, [(6, 8)], [(6, 8)]),
    ({"startingTimestamp": 1006}, {"endingTimestamp": 2000}, [(6, 10)], [(6, 10)]),
    ({"startingTimestamp": 1008}, {"endingTimestamp": 1006}, WRONG, WRONG),
    ({"startingOffsetsByTimestamp": 1008}, {"endingOffsetsByTimestamp": 1006}, WRONG, WRONG),
    ({"startingOffsets": 8}, {"endingTimestamp": 1006}, WRONG, WRONG),
    ({"startingOffsets": 11}, {"endingTimestamp": 2000}, WRONG, WRONG),
    ({"startingTimestamp": 1006}, {"endingOffsets": 5}, WRONG, WRONG),
    ({"startingTimestamp": 1006}, {"endingOffsets": 11}, LOST, [(6, 10)]),
]


@pytest.fixture(scope="module")
def shortened(client: Client) -> str:
    topic = "planning-shortened"
    client.create_topic(topic, configs={"retention.ms": "-1"})
    fill(client, topic, numbered("v", 10), timestamp=1000)
    client.delete_records({TopicPartition(topic, 0): 4})
    return topic


@pytest.mark.filterwarnings("ignore:.*because failOnDataLoss is false")
@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(("start", "end", "expected", "leniently"), CASES, ids=str)
def test_a_batch_reads_what_it_was_asked_for_or_fails(
    broker: BrokerProcess,
    shortened: str,
    start: dict[str, object],
    end: dict[str, object],
    expected: list[tuple[int, int]] | type[Exception],
    leniently: list[tuple[int, int]] | type[Exception],
    strict: bool,
) -> None:
    given = {
        name: json.dumps({shortened: {"0": value}}) if "Offsets" in name and isinstance(value, int) else value
        for name, value in {**start, **end}.items()
    }
    reader = batch_reader(broker, subscribe=shortened, failOnDataLoss=strict, **given)
    wanted = expected if strict else leniently
    if isinstance(wanted, list):
        assert planned(reader) == wanted
    else:
        with pytest.raises(wanted) as raised:
            reader.partitions()
        assert ("failOnDataLoss" in str(raised.value)) == (wanted is LOST)


def test_one_partition_beyond_its_end_fails_the_batch_and_names_it(
    broker: BrokerProcess, client: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=2)
    fill(client, topic, numbered("v", 10), partition=0)
    fill(client, topic, numbered("v", 3), partition=1)
    reader = batch_reader(broker, subscribe=topic, startingOffsets=json.dumps({topic: {"0": 5, "1": 5}}))
    with pytest.raises(DataLoss, match=f"startingOffsets: {topic}-1 ends at 3, before 5"):
        reader.partitions()


# --- a broker that is away for a while -----------------------------------------------------------------------------


@pytest.fixture
def restarting(tmp_path: Path) -> Iterator[BrokerProcess]:
    """With the topic `t` of three records; not running."""
    with BrokerProcess(tmp_path / "data") as process:
        with connect(process.bootstrap) as client:
            client.create_topic("t", configs={"retention.ms": "-1"})
            fill(client, "t", numbered("v", 3))
        process.stop()
        yield process


def plan_a_batch(broker: BrokerProcess) -> object:
    return planned(batch_reader(broker, subscribe="t"))


def plan_a_stream(broker: BrokerProcess) -> object:
    reader = stream_reader(broker, subscribe="t", startingOffsets="earliest")
    try:
        start = reader.initialOffset()
        end = reader.latestOffset(start, ReadAllAvailable())
        tasks = [task.range for task in reader.partitions(start, end) if isinstance(task, TaskRange)]
        return [(task.start, task.end) for task in tasks]
    finally:
        reader.stop()


def do_a_unit_of_a_job(broker: BrokerProcess) -> object:
    _, facts = profile_unit(Unit(broker.bootstrap, Range("t", 0, 0, 3)))
    return [(0, facts.records)]


@pytest.mark.parametrize("work", [plan_a_batch, plan_a_stream, do_a_unit_of_a_job])
def test_planning_waits_for_a_broker_that_restarts(
    restarting: BrokerProcess, monkeypatch: pytest.MonkeyPatch, work: Callable[[BrokerProcess], object]
) -> None:
    was_refused = threading.Event()

    def observed(*where: object) -> Client:
        try:
            return connect(*where)  # type: ignore[arg-type]
        except Unreachable:
            was_refused.set()
            raise

    monkeypatch.setattr(clients, "connect", observed)
    found: list[object] = []
    worker = threading.Thread(target=lambda: found.append(work(restarting)))
    worker.start()
    assert was_refused.wait(30)
    restarting.start()
    worker.join(60)
    assert found == [[(0, 3)]]


@pytest.mark.parametrize(
    "work",
    [
        lambda broker, given: batch_reader(broker, **given).partitions(),
        lambda broker, given: stream_reader(broker, **given).initialOffset(),
    ],
    ids=["batch", "stream"],
)
def test_planning_gives_up_after_the_time_that_was_set(
    restarting: BrokerProcess, work: Callable[[BrokerProcess, dict[str, object]], object]
) -> None:
    given = {"subscribe": "t", "kafka.default.api.timeout.ms": 300}
    with pytest.raises(Unreachable, match=r"the broker running.*\(tried for 0.3 s: kafka.default.api.timeout.ms\)"):
        work(restarting, given)
