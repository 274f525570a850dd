"""`tidelog metadata` on the directory of a real broker, while it runs and afterwards."""

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Command, Outcome
from tests.support.brokers import BrokerProcess
from tidelog.client import connect
from tidelog.model import TopicPartition


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """With something in every table but that of decisions."""
    with BrokerProcess(tmp_path_factory.mktemp("broker")) as process:
        with connect(process.bootstrap) as client:
            client.create_topic("orders", partitions=3, configs={"retention.ms": "1000"})
            client.alter_group_configs("kitchen", {"consumer.heartbeat.interval.ms": "300"})
            client.set_committed("kitchen", {TopicPartition("orders", 1): 7})
            with client.transactional_producer("till") as producer:
                producer.init()
                with producer.transaction():
                    producer.send("orders", "x", partition=2)
        yield process


def by_type(dumped: Outcome) -> dict[str, list[dict[str, object]]]:
    assert dumped.code == 0, dumped.err
    found: dict[str, list[dict[str, object]]] = {}
    for row in dumped.rows:
        found.setdefault(row["type"], []).append(row)
    return found


def files_in(directory: Path) -> dict[str, bytes]:
    return {name: (directory / name).read_bytes() for name in sorted(os.listdir(directory)) if "metadata" in name}


def test_everything_is_shown_while_the_broker_runs(tidelog: Command, broker: BrokerProcess) -> None:
    before = files_in(broker.data_dir)
    found = by_type(tidelog("metadata", "dump", broker.data_dir, "--json"))
    assert files_in(broker.data_dir) == before
    (topic,) = found["topic"]
    assert (topic["name"], topic["partitions"], len(str(topic["topic_id"]))) == ("orders", 3, 32)
    assert {(row["kind"], row["resource"], row["name"], row["value"]) for row in found["config"]} == {
        ("topic", "orders", "retention.ms", "1000"),
        ("group", "kitchen", "consumer.heartbeat.interval.ms", "300"),
    }
    (offset,) = found["offset"]
    assert (offset["group"], offset["topic"], offset["partition"], offset["offset"]) == ("kitchen", "orders", 1, 7)
    (transaction,) = found["transaction"]
    assert transaction["transactional_id"] == "till"
    assert transaction["state"] in ("PrepareCommit", "CompleteCommit")  # the second is stored at leisure
    facts = {row["name"]: row["value"] for row in found["fact"]}
    assert facts["cluster.id"]
    assert int(str(facts["next.producer.id"])) > int(str(transaction["producer_id"]))


def test_people_get_tables(tidelog: Command, broker: BrokerProcess) -> None:
    dumped = tidelog("metadata", "dump", broker.data_dir)
    assert dumped.code == 0
    for said in ("topics: 1", "configs that were set: 2", "committed offsets: 1", "kitchen", "till"):
        assert said in dumped.out
    only = tidelog("metadata", "dump", broker.data_dir, "--type", "topic")
    assert "orders" in only.out
    assert "kitchen" not in only.out


def test_members_are_shown_with_the_names_of_their_topics(tidelog: Command, broker: BrokerProcess) -> None:
    with connect(broker.bootstrap) as client, client.consume("orders", group="readers") as stream:
        stream.poll(1.0)
        (member,) = by_type(tidelog("metadata", "dump", broker.data_dir, "--json"))["member"]
    assert (member["group"], member["partitions"]) == ("readers", {"orders": [0, 1, 2]})


@pytest.mark.slow
def test_a_stopped_brokers_directory_shows_the_same_and_stays_as_it_is(tidelog: Command, tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "broker") as broker:
        with connect(broker.bootstrap) as client:
            client.create_topic("orders")
            client.set_committed("kitchen", {TopicPartition("orders", 0): 0})
        running = tidelog("metadata", "dump", broker.data_dir, "--json").rows
        broker.stop()
        before = files_in(broker.data_dir)
        assert tidelog("metadata", "dump", broker.data_dir, "--json").rows == running
        assert files_in(broker.data_dir) == before
        broker.start()
        broker.kill()
        assert (broker.data_dir / "metadata.sqlite-wal").exists()
        assert tidelog("metadata", "dump", broker.data_dir, "--json").rows == running


def test_what_is_not_a_data_directory_is_said_in_one_line(tidelog: Command, tmp_path: Path) -> None:
    missing = tidelog("metadata", "dump", tmp_path / "nowhere")
    assert (missing.code, missing.err.count("\n")) == (1, 1)
    assert "there is no directory" in missing.err
    empty = tidelog("metadata", "dump", tmp_path)
    assert (empty.code, "is not a data directory of Tidelog" in empty.err) == (1, True)
    (tmp_path / "metadata.sqlite").write_bytes(b"no database, but long enough to be taken for one" * 100)
    damaged = tidelog("metadata", "dump", tmp_path)
    assert (damaged.code, damaged.err.count("\n"), "damaged" in damaged.err) == (1, 1, True)
    assert str(tmp_path / "metadata.sqlite") in damaged.err
    (tmp_path / "metadata.sqlite").unlink()
    with sqlite3.connect(tmp_path / "metadata.sqlite") as other:
        other.execute("CREATE TABLE sheep (name TEXT)")
    other.close()
    foreign = tidelog("metadata", "dump", tmp_path)
    assert (foreign.code, "not a database of Tidelog" in foreign.err) == (1, True)
