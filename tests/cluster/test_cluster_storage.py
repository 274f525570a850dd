"""`tidelog cluster check` and `gc`, beside brokers that write."""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Command, tidelog  # noqa: F401  (a fixture)
from tests.support.brokers import eventually, unique
from tests.support.clusters import ClusterProcesses, cluster_of

SECONDS = 60.0
OFTEN = {"cluster.merge-fan-in": "4", "cluster.merge-interval-ms": "100"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcesses]:
    with cluster_of(2, tmp_path_factory.mktemp("cluster"), OFTEN) as running:
        yield running


@pytest.fixture
def command(tidelog: Command, cluster: ClusterProcesses, monkeypatch: pytest.MonkeyPatch) -> Command:  # noqa: F811
    monkeypatch.setenv("TIDELOG_BOOTSTRAP", cluster.bootstrap)
    monkeypatch.setenv("TIDELOG_CLUSTER_STORAGE", cluster.storage)
    database = cluster.brokers[0].environment["TIDELOG_CLUSTER_METADATA"]
    monkeypatch.setenv("TIDELOG_CLUSTER_METADATA", database)
    return tidelog


def objects_of(cluster: ClusterProcesses, prefix: str = "") -> list[Path]:
    root = Path(cluster.storage.removeprefix("file://"))
    return sorted(path for path in root.glob(f"{prefix}*/**/*") if path.is_file())


def write(cluster: ClusterProcesses, topic: str, count: int = 20) -> None:
    with cluster.client() as client:
        for number in range(count):
            client.produce(topic, f"value {number}" * 10)


@pytest.fixture
def topic(cluster: ClusterProcesses) -> str:
    name = unique("topic")
    with cluster.client() as client:
        client.create_topic(name, partitions=2)
    write(cluster, name)
    return name


@pytest.mark.timeout(300)
def test_a_running_cluster_is_found_well(command: Command, cluster: ClusterProcesses, topic: str) -> None:
    ending = threading.Event()

    def keep_writing() -> None:
        with cluster.client() as client:
            while not ending.is_set():
                client.produce(topic, "value")

    writer = threading.Thread(target=keep_writing)
    writer.start()
    try:
        for _ in range(3):
            for options in ([], ["--deep"]):
                code, out, err = command("cluster", "check", *options)
                assert code == 0, out + err
                assert "nothing is wrong" in out
            command("cluster", "gc", "--set", "cluster.garbage-grace-ms=1000")
    finally:
        ending.set()
        writer.join()
    (summary,) = command("cluster", "check", "--deep", "--json").rows_of("summary")
    assert summary["partitions"] >= 2
    assert summary["used_objects"] > 0
    assert (summary["errors"], summary["deep"]) == (0, True)


@pytest.mark.timeout(300)
def test_planted_damage_is_found_and_the_advice_mends_it(command: Command, cluster: ClusterProcesses) -> None:
    before = set(objects_of(cluster, "b"))
    alone = unique("alone")  # one extent is never merged
    with cluster.client() as client:
        client.create_topic(alone)
        client.produce(alone, "x" * 10_000)
    (path,) = set(objects_of(cluster, "b")) - before
    key = str(path.relative_to(cluster.storage.removeprefix("file://")))
    content = path.read_bytes()

    def findings(*options: str) -> list[tuple[str, str]]:
        outcome = command("cluster", "check", "--json", *options)
        found = [(row["kind"], row["key"]) for row in outcome.rows_of("finding")]
        assert outcome.code == (1 if found else 0)
        assert all(row["advice"] and row["topic"] for row in outcome.rows_of("finding"))
        return found

    path.unlink()
    assert set(findings()) == {("missing", key)}
    path.write_bytes(content[:100])
    assert set(findings()) == {("short", key)}
    path.write_bytes(content[:80] + bytes([content[80] ^ 1]) + content[81:])
    assert findings() == []
    assert set(findings("--deep")) == {("damaged", key)}
    code, out, _ = command("cluster", "check", "--deep")
    assert code == 1
    assert "1 error" in out
    assert "bring the object back" in out
    path.write_bytes(content)
    assert findings("--deep") == []


@pytest.mark.timeout(300)
def test_orphans_and_dead_objects_are_removed_in_two_steps(
    command: Command, cluster: ClusterProcesses, topic: str
) -> None:
    now = ["--set", "cluster.garbage-grace-ms=1000", "--json"]
    orphan = Path(cluster.storage.removeprefix("file://")) / "b" / "2020010100" / unique("orphan")
    orphan.parent.mkdir(parents=True)
    orphan.write_bytes(b"x" * 1000)
    hours_ago = time.time() - 3 * 3600
    os.utime(orphan, (hours_ago, hours_ago))

    (summary,) = command("cluster", "check", "--json").rows_of("summary")
    assert (summary["orphans_objects"], summary["orphans_size_bytes"], summary["errors"]) == (1, 1000, 0)
    assert "orphans: 1 object" in command("cluster", "check").out
    (dry,) = command("cluster", "gc", "--dry-run", *now).rows
    assert (dry["declared_dead_objects"], dry["declared_dead_size_bytes"], dry["dry_run"]) == (1, 1000, True)
    assert orphan.exists()
    (first,) = command("cluster", "gc", *now).rows
    assert first["declared_dead_objects"] == 1
    assert orphan.exists(), "it is only declared dead"

    def removed_bytes() -> int:
        (collected,) = command("cluster", "gc", *now).rows
        return int(collected["removed_size_bytes"])

    eventually(removed_bytes, within=SECONDS, until=lambda _: not orphan.exists())
    with cluster.client() as client:
        client.delete_topic(topic)

    def garbage() -> int:
        (found,) = command("cluster", "gc", "--dry-run", *now).rows
        return int(found["removed_size_bytes"])

    size = eventually(garbage, within=SECONDS, until=bool)
    assert removed_bytes() >= size
    assert garbage() == 0
    assert command("cluster", "check", "--deep").code == 0


def test_a_store_of_another_cluster_is_not_touched(command: Command, tmp_path: Path) -> None:
    for name in ("check", "gc"):
        code, _, err = command("cluster", name, "--set", f"cluster.storage=file://{tmp_path}")
        assert code == 1
        assert "has never been used by a cluster" in err
    (tmp_path / "cluster-id").write_text("another")
    for name in ("check", "gc"):
        code, _, err = command("cluster", name, "--set", f"cluster.storage=file://{tmp_path}")
        assert code == 1
        assert "belongs to the cluster 'another'" in err


def test_without_the_settings_of_a_cluster_the_command_tells_which(
    tidelog: Command,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("TIDELOG_CLUSTER_METADATA", "TIDELOG_CLUSTER_STORAGE"):
        monkeypatch.delenv(name, raising=False)
    code, _, err = tidelog("cluster", "check")
    assert code == 1
    assert "set cluster.metadata and cluster.storage" in err
