"""`tidelog txn` against a real broker."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.support.brokers import BrokerProcess, unique
from tidelog.client import BlockingTransactionalProducer, Client, FetchOptions, connect


@pytest.fixture
def serving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path) as broker:
        monkeypatch.setenv("TIDELOG_BOOTSTRAP", broker.bootstrap)
        yield broker


def opened(client: Client, id_: str, topic: str) -> BlockingTransactionalProducer:
    producer = client.transactional_producer(id_)
    producer.init()
    producer.begin()
    producer.send(topic, "open").result(10)
    return producer


def test_transactions_are_listed_described_and_aborted(serving: BrokerProcess, tidelog: Command) -> None:
    topic, id_ = unique("topic"), unique("id")
    with connect(serving.bootstrap) as client:
        client.create_topic(topic)
        opened(client, id_, topic)
        idle = client.transactional_producer(f"idle-{id_}")
        idle.init()

        listed = [json.loads(line) for line in tidelog("txn", "list", "--json").out.splitlines()]
        assert {row["transactional_id"]: row["state"] for row in listed} == {id_: "Ongoing", f"idle-{id_}": "Empty"}
        for options in (["--state", "ongoing"], ["--longer-than", "0ms"], ["--pattern", "id-.*"]):
            shown = tidelog("txn", "list", *options).out
            assert id_ in shown
            assert "idle" not in shown
        described = json.loads(tidelog("txn", "describe", id_, "--json").out)
        assert (described["state"], described["partitions"]) == ("Ongoing", [f"{topic}-0"])
        assert f"{topic}-0" in tidelog("txn", "describe", id_).out
        assert tidelog("txn", "list", "--hanging", "--json").out == ""

        code, out, _ = tidelog("txn", "abort", id_)
        assert code == 0
        assert id_ in out
        assert client.transaction(id_).state == "Empty"
        client.produce(topic, "after")
        seen = [r.value for r in client.consume(topic, follow=False, fetch=FetchOptions(read_committed=True))]
        assert seen == [b"after"]


def test_a_transaction_that_hangs_is_found_and_ended(serving: BrokerProcess, tidelog: Command) -> None:
    topic = unique("topic")
    with connect(serving.bootstrap) as client:
        client.create_topic(topic, partitions=2)
        opened(client, "lost", topic)
        known = opened(client, "known", topic)
        held = client.transaction("known").partitions[0]
        serving.stop()
        with sqlite3.connect(serving.data_dir / "metadata.sqlite") as rows:  # the coordinator forgets
            rows.execute("delete from \"transaction\" where transactional_id = 'lost'")
        rows.close()
        serving.start()
        assert "hangs" in serving.log

        (line,) = tidelog("txn", "list", "--hanging", "--json").out.splitlines()
        found = json.loads(line)
        assert found["topic"] == topic
        assert str(found["producer_id"]) in tidelog("txn", "list", "--hanging").out
        code, _, err = tidelog("txn", "abort", "--partition", f"{topic}-{1 - found['partition']}")
        assert code == 1
        assert "hang" in err
        place = f"{topic}-{found['partition']}"
        assert tidelog("txn", "abort", "--partition", place, "--start-offset", "77").code == 1
        code, out, _ = tidelog("txn", "abort", "--partition", place, "--start-offset", str(found["start_offset"]))
        assert code == 0
        assert place in out
        assert tidelog("txn", "list", "--hanging", "--json").out == ""
        assert client.transaction("known").partitions == [held]
        known.commit()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["abort"], "Give transactional ids"),
        (["abort", "id", "--hanging"], "Give transactional ids"),
        (["abort", "--partition", "orders"], "TOPIC-N"),
        (["abort", "id", "--start-offset", "1"], "--partition"),
        (["list", "--longer-than", "soon"], "not a duration"),
        (["list", "--state", "odd"], "odd"),
        (["list", "--hanging", "--pattern", "x"], "--hanging"),
    ],
)
def test_what_makes_no_sense_is_refused(
    serving: BrokerProcess, tidelog: Command, arguments: list[str], said: str
) -> None:
    code, _, err = tidelog("txn", *arguments)
    assert code == 2
    assert said in err


def test_an_unknown_id_is_neither_described_nor_made(serving: BrokerProcess, tidelog: Command) -> None:
    for command in ("describe", "abort"):
        code, _, err = tidelog("txn", command, "nobody")
        assert code == 1
        assert "no such transactional id" in err
    assert tidelog("txn", "list", "--json").out == ""
