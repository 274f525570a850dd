"""`tidelog cluster` against brokers that share a database and an object store."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command, tidelog  # noqa: F401  (a fixture)
from tests.support.brokers import eventually, unique
from tests.support.clusters import ClusterProcesses, cluster_of
from tidelog.client import connect

SECONDS = 60.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcesses]:
    with cluster_of(2, tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def command(tidelog: Command, cluster: ClusterProcesses, monkeypatch: pytest.MonkeyPatch) -> Command:  # noqa: F811
    monkeypatch.setenv("TIDELOG_BOOTSTRAP", cluster.bootstrap)
    return tidelog


@pytest.fixture
def topic(cluster: ClusterProcesses) -> str:
    """A topic with four partitions."""
    name = unique("topic")
    with cluster.client() as client:
        client.create_topic(name, partitions=4)
    return name


def test_the_brokers_and_what_they_lead_are_shown(command: Command, cluster: ClusterProcesses, topic: str) -> None:
    with cluster.client() as client:
        total = sum(len(each.partitions) for each in client.topics())

    def shown() -> list[dict[str, Any]]:
        return command("cluster", "brokers", "--json").rows_of("broker")

    def is_complete(rows: list[dict[str, Any]]) -> bool:
        led = [row["partitions"] for row in rows]
        return len(rows) == 2 and all(led) and sum(led) == total

    # A broker learns of leaders and of other brokers by its next beat, so it may know of a topic before that.
    rows = eventually(shown, within=SECONDS, until=is_complete)
    assert [row["address"] for row in rows] == [broker.bootstrap for broker in cluster.brokers]
    assert sorted(row["role"] for row in rows) == ["", "controller"]


def test_the_memory_of_the_cluster_is_part_of_the_budget(command: Command, topic: str, tmp_path: Path) -> None:
    rows = {row["setting"]: row for row in command("cluster", "info", "--json").rows_of("memory")}
    for setting in ("cluster.buffer-bytes", "cluster.cache-bytes"):
        assert rows[setting]["limit_bytes"] == 64 << 20
        assert 0 <= rows[setting]["used_bytes"] <= 64 << 20
    parts = sum(row["limit_bytes"] for setting, row in rows.items() if setting != "memory-budget-bytes")
    assert parts <= rows["memory-budget-bytes"]["limit_bytes"] == 3 << 30, "the defaults fit"
    too_much = ClusterProcesses(tmp_path, 1, {"cluster.cache-bytes": str(2 << 30)}).brokers[0]
    with pytest.raises(AssertionError, match=r"blocks of objects 2048 MiB \(cluster.cache-bytes\)"):
        too_much.start()


def test_a_partition_is_moved_there_and_back(command: Command, topic: str) -> None:
    epochs = []
    for target in (1, 2, 1):
        (moved,) = command("cluster", "move", f"{topic}:0", str(target), "--json").rows
        assert (moved["topic"], moved["partition"], moved["to_broker"]) == (topic, 0, target)
        row = command("cluster", "leaders", topic, "--json").rows[0]
        assert (row["partition"], row["leader"]) == (0, target)
        epochs.append(row["epoch"])
    assert epochs == sorted(set(epochs))


def test_a_partition_is_not_moved_to_a_broker_that_is_not_up(command: Command, topic: str) -> None:
    code, out, err = command("cluster", "move", f"{topic}:0", "9")
    assert (code, out) == (1, "")
    assert err.startswith("tidelog: error: broker 9 is not up; these are: ")


def test_a_table_follows_its_partition_from_leader_to_leader(command: Command) -> None:
    topic = unique("table")
    assert command("topic", "create", topic, "-p", "1", "-c", "tidelog.table=true").code == 0
    for number, target in enumerate((1, 2, 1)):
        assert command("cluster", "move", f"{topic}:0", str(target)).code == 0
        with connect(os.environ["TIDELOG_BOOTSTRAP"]) as client:
            client.produce(topic, f"value {number}", key="key")

        def value() -> str:
            return command("topic", "get", topic, "key", "--latest").out

        eventually(value, within=SECONDS, until=f"value {number}".__eq__)


def test_groups_and_transactions_of_all_brokers_are_listed(command: Command, topic: str) -> None:
    """Clients ask every broker, also those that coordinate none."""
    assert command("group", "list", "--json").code == 0
    assert command("txn", "list", "--json").code == 0
    (info,) = command("cluster", "info", "--json").rows_of("cluster")
    assert info["partitions"] >= 4


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_client_finds_the_new_controller(cluster: ClusterProcesses) -> None:
    with cluster.client() as client:
        client.create_topic(unique("before"))
        controller = cluster.broker(client.cluster_info().controller_id)
        controller.stop()
        client.create_topic(unique("after"))
        controller.start()
    for broker in cluster.brokers:  # other tests expect them to know each other
        with connect(broker.bootstrap) as client:
            eventually(client.cluster_info, within=SECONDS, until=lambda info: len(info.nodes) == 2)


@pytest.mark.timeout(300)
def test_a_drained_broker_leads_nothing_until_that_is_taken_back(
    command: Command, cluster: ClusterProcesses, topic: str
) -> None:
    with cluster.client() as client:
        controller = client.cluster_info().controller_id
    other = 3 - controller
    drained = command("cluster", "drain", str(controller), "--json")
    assert drained.rows[-1] == {"type": "drained", "broker": controller}
    assert all(row["broker"] == controller for row in drained.rows_of("draining"))

    def shown() -> dict[int, tuple[int, str, bool]]:
        rows = command("cluster", "brokers", "--json").rows_of("broker")
        return {row["id"]: (row["partitions"], row["role"], row["drained"]) for row in rows}

    def is_drained(rows: dict[int, tuple[int, str, bool]]) -> bool:
        return rows.get(controller) == (0, "", True) and rows[other][1:] == ("controller", False)

    eventually(shown, within=SECONDS, until=is_drained)
    assert "drained" in command("cluster", "brokers").out

    code, _, err = command("cluster", "move", f"{topic}:0", str(controller))
    assert code == 1
    assert f"broker {controller} is drained" in err
    code, _, err = command("cluster", "drain", str(other))
    assert code == 1
    assert err.startswith(f"tidelog: error: broker {other} cannot be drained: no other broker that is up")

    broker = cluster.broker(controller)
    broker.stop()
    broker.start()
    eventually(shown, within=SECONDS, until=is_drained)

    with cluster.client() as client:
        client.create_topic(unique("later"), partitions=4)
    assert shown()[controller] == (0, "", True)
    assert command("cluster", "drain", "--undo", str(controller), "--json").rows == [
        {"type": "undone", "broker": controller}
    ]
    eventually(shown, within=SECONDS, until=lambda rows: rows[controller][0] > 0 and not rows[controller][2])


def test_a_broker_that_is_not_up_is_not_drained(command: Command) -> None:
    for arguments in (["9"], ["--undo", "9"]):
        code, out, err = command("cluster", "drain", *arguments)
        assert (code, out) == (1, "")
        assert err.startswith("tidelog: error: broker 9 is not up; these are: ")
