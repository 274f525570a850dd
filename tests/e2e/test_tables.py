"""Keyed look-up, over the wire and from the command line."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tidelog
from tests.e2e.conftest import topic_maker
from tests.support.brokers import BrokerProcess, children, eventually, hide_modules
from tests.support.engines import Engine, broker_process, tables_of
from tidelog.client import AsyncClient, BrokerError, Client
from tidelog.model import TopicPartition

TABLE = {"tidelog.table": "true", "cleanup.policy": "compact"}


@pytest.fixture(scope="module")
def tabled(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with broker_process(engine, tmp_path_factory.mktemp("tables")) as process:
        yield process
        process.stop()
        assert "Traceback" not in process.log, process.log
        assert "a table could not be updated" not in process.log, process.log


@pytest.fixture
def client(tabled: BrokerProcess) -> Iterator[Client]:
    with tidelog.connect(tabled.bootstrap) as connected:
        yield connected


def run(broker: BrokerProcess, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "tidelog", *arguments, "--bootstrap", broker.bootstrap]
    return subprocess.run(command, capture_output=True, check=False)


def fill(client: Client, topic: str, count: int, keys: int = 100, prefix: str = "value") -> None:
    with client.producer() as producer:
        for number in range(count):
            producer.send(topic, f"{prefix} {number}", key=f"key {number % keys}")


def test_the_last_value_of_every_key_is_found(tabled: BrokerProcess, client: Client) -> None:
    topic = topic_maker(tabled)(partitions=3, configs=TABLE)
    fill(client, topic, 1000)
    written = client.produce(topic, "the last", key="key 7", timestamp=1_700_000_000_000)
    found = client.get(topic, "key 7", at_least="end")
    assert (found.value, found.offset, found.partition) == (b"the last", written.offset, written.partition)
    assert found.timestamp == 1_700_000_000_000
    assert found.applied_offset > written.offset
    many = client.get_many(topic, [f"key {number}" for number in range(100)], at_least="end")
    expected = {f"key {n}".encode(): f"value {900 + n}".encode() for n in range(100)} | {b"key 7": b"the last"}
    assert {one.key: one.value for one in many} == expected
    assert not client.get(topic, "no such key").found


def test_a_deleted_key_is_not_found(tabled: BrokerProcess, client: Client) -> None:
    topic = topic_maker(tabled)(configs=TABLE)
    client.produce(topic, "here", key="k")
    assert client.get(topic, "k", at_least="end").value == b"here"
    deleted = client.produce(topic, None, key="k")
    gone = client.get(topic, "k", at_least=deleted.offset + 1)
    assert (gone.found, gone.value, gone.applied_offset) == (False, None, deleted.offset + 1)


def test_waiting_for_an_offset_that_does_not_come_ends_with_a_clear_error(
    tabled: BrokerProcess, client: Client
) -> None:
    topic = topic_maker(tabled)(configs=TABLE)
    client.produce(topic, "v", key="k")
    assert client.get(topic, "k", at_least=1).value == b"v"
    with pytest.raises(BrokerError, match=r"is at offset 1, not at 99 after 0\.2 s"):
        client.get(topic, "k", at_least=99, timeout_ms=200)


def test_a_topic_without_a_table_says_how_to_make_one(tabled: BrokerProcess, client: Client) -> None:
    topic = topic_maker(tabled)()
    with pytest.raises(BrokerError, match=f"tidelog topic alter {topic} --set tidelog.table=true"):
        client.get(topic, "k")


def test_switching_it_on_builds_the_table_and_off_removes_it(tabled: BrokerProcess, client: Client) -> None:
    topic = topic_maker(tabled)()
    fill(client, topic, 5000)
    client.alter_topic_configs(topic, {"tidelog.table": "true"})
    assert client.get(topic, "key 42", at_least="end").value == b"value 4942"
    tables = tables_of(tabled) / client.topic(topic).topic_id.hex()
    assert tables.is_dir()
    client.alter_topic_configs(topic, {"tidelog.table": None})
    eventually(tables.exists, until=lambda there: not there)
    with pytest.raises(BrokerError, match="has no table"):
        client.get(topic, "key 42")
    client.alter_topic_configs(topic, {"tidelog.table": "true"})
    assert client.get(topic, "key 42", at_least="end").value == b"value 4942"
    client.delete_topic(topic)
    eventually(tables.exists, until=lambda there: not there)


def test_what_retention_deleted_is_not_found(tabled: BrokerProcess, client: Client) -> None:
    topic = topic_maker(tabled)(configs={"tidelog.table": "true"})
    client.produce(topic, "old", key="a")
    client.produce(topic, "new", key="b")
    assert client.get(topic, "a", at_least="end").found
    client.delete_records({TopicPartition(topic, 0): 1})
    assert not client.get(topic, "a", at_least="end").found
    assert client.get(topic, "b").value == b"new"


def test_the_command_line(tabled: BrokerProcess, client: Client) -> None:
    topic = topic_maker(tabled)(partitions=2, configs=TABLE)
    client.produce(topic, b"caf\xc3\xa9", key="k")
    client.produce(topic, b"\x00\xff", key=b"\x01\x02")
    one = run(tabled, "topic", "get", topic, "k", "--latest")
    assert (one.returncode, one.stdout) == (0, b"caf\xc3\xa9"), one.stderr
    assert b"offset 0" in one.stderr
    binary = run(tabled, "topic", "get", topic, "0102", "--key-format", "hex", "--latest")
    assert binary.stdout == b"\x00\xff"
    assert run(tabled, "topic", "get", topic, "AQI=", "--key-format", "base64").stdout == b"\x00\xff"
    bad = run(tabled, "topic", "get", topic, "xyz", "--key-format", "hex")
    assert (bad.returncode, b"not valid hex" in bad.stderr) == (2, True)
    missing = run(tabled, "topic", "get", topic, "nobody")
    assert (missing.returncode, missing.stdout) == (1, b"")
    assert b"no such key" in missing.stderr
    both = run(tabled, "topic", "get", topic, "k", "nobody", "--json")
    rows = [json.loads(line) for line in both.stdout.splitlines()]
    assert [(row["key"], row["value"], row["found"]) for row in rows] == [
        ("k", "café", True),
        ("nobody", None, False),
    ]
    assert rows[0]["applied_offset"] >= 1
    shown = run(tabled, "topic", "table", topic, "--json")
    assert sum(json.loads(line)["lag"] for line in shown.stdout.splitlines()) == 0
    assert b"applied offset" in run(tabled, "topic", "table", topic).stdout
    assert b"table: " in run(tabled, "topic", "describe", topic).stdout


def test_programs_with_an_event_loop(tabled: BrokerProcess) -> None:
    topic = topic_maker(tabled)(configs=TABLE)

    async def play() -> bytes | None:
        async with AsyncClient(tabled.bootstrap) as client:
            await client.produce(topic, "v", key="k")
            assert (await client.table(topic))[0].end_offset == 1
            return (await client.get(topic, "k", at_least="end")).value

    assert asyncio.run(play()) == b"v"


@pytest.mark.slow
def test_a_table_goes_on_after_a_kill_and_after_a_restart(
    engine: Engine, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with broker_process(engine, tmp_path_factory.mktemp("killed-table"), is_killed=True) as broker:
        topic = topic_maker(broker)(configs=TABLE)
        for round_ in range(3):
            with tidelog.connect(broker.bootstrap) as client:
                fill(client, topic, 20_000, 5000, f"round {round_}")
                if round_ == 1:
                    client.get(topic, "key 1", at_least="end")
            if round_ == 1:
                broker.restart()
            else:
                broker.kill()
                broker.start()
            with tidelog.connect(broker.bootstrap) as client:
                found = client.get_many(topic, [f"key {n}" for n in range(5000)], at_least="end")
                assert [one.value for one in found] == [f"round {round_} {15_000 + n}".encode() for n in range(5000)]
        broker.stop()
        assert "a table could not be updated" not in broker.log


def test_without_the_extra_the_config_is_refused_with_what_to_install(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide_modules(tmp_path, monkeypatch, "rocksdict")
    with broker_process(engine, tmp_path / "broker") as broker, tidelog.connect(broker.bootstrap) as client:
        client.create_topic("plain")
        with pytest.raises(BrokerError, match=r'pip install "tidelog\[table\]"'):
            client.alter_topic_configs("plain", {"tidelog.table": "true"})
        with pytest.raises(BrokerError, match=r'pip install "tidelog\[table\]"'):
            client.create_topic("other", configs={"tidelog.table": "true"})


def test_a_table_works_without_columns(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hide_modules(tmp_path, monkeypatch, "numba", "numpy", "pyarrow")
    with broker_process(engine, tmp_path / "broker") as broker, tidelog.connect(broker.bootstrap) as client:
        client.create_topic("plain", configs=TABLE)
        fill(client, "plain", 1000)
        assert client.get("plain", "key 42", at_least="end").value == b"value 942"


def test_it_answers_while_its_kernels_are_still_being_compiled(engine: Engine, tmp_path: Path) -> None:
    """Little is decoded without them; much waits, and is taken in when they are there."""
    broker = broker_process(engine, tmp_path)
    broker.environment["NUMBA_CACHE_DIR"] = str(tmp_path / "cache")
    with broker, tidelog.connect(broker.bootstrap) as client:
        topic = topic_maker(broker)(configs={"tidelog.table": "true"})
        (compiler,) = eventually(lambda: children(broker.pid))
        os.kill(compiler, signal.SIGSTOP)
        fill(client, topic, 1000)
        assert client.get(topic, "key 7", at_least="end").value == b"value 907"
        much = bytes(400_000)
        client.produce(topic, much, key="key 7")
        assert client.get(topic, "key 7").value == b"value 907"
        with pytest.raises(BrokerError, match="is at offset 1000, not at 1001"):
            client.get(topic, "key 7", at_least="end", timeout_ms=100)
        os.kill(compiler, signal.SIGCONT)
        assert client.get(topic, "key 7", at_least="end", timeout_ms=60_000).value == much
        broker.stop()
        assert "a table could not be updated" not in broker.log, broker.log
