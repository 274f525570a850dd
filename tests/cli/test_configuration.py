"""Settings: where they come from, which one wins, and that all problems are shown together."""

from pathlib import Path
from typing import Any

import pytest

from tidelog.cli.configuration import KEYS, load
from tidelog.errors import InvalidSettings
from tidelog.settings import ListenerSettings


def problems_of(file: str | None = None, flags: dict[str, Any] | None = None, **environment: str) -> list[str]:
    with pytest.raises(InvalidSettings) as caught:
        load(file, flags or {}, environment)
    return caught.value.problems


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_without_anything_the_defaults_are_in_force() -> None:
    configuration = load(None, {}, {})
    assert configuration.node.data_dir == "tidelog-data"
    assert configuration.node.listeners == (ListenerSettings("127.0.0.1", 9092),)
    assert {given.source for given in configuration.given.values()} == {"default"}


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "some.toml"
    file.write_text('data-dir = "from-file"\nnode-id = 1\nmax-pending-bytes = 5000\n')
    configuration = load(
        str(file), {"data-dir": "from-flag"}, {"TIDELOG_DATA_DIR": "from-env", "TIDELOG_NODE_ID": "2"}
    )
    assert configuration.node.data_dir == "from-flag"
    assert configuration.node.node_id == 2
    assert configuration.node.max_pending_bytes == 5000
    assert [
        configuration.given[name].source for name in ("data-dir", "node-id", "max-pending-bytes", "open-segments")
    ] == [
        "flag",
        "TIDELOG_NODE_ID",
        str(file),
        "default",
    ]


def test_tidelog_toml_in_the_current_directory_is_read(tmp_path: Path) -> None:
    (tmp_path / "tidelog.toml").write_text("node-id = 5\n")
    assert load(None, {}, {}).node.node_id == 5


def test_kafka_configs_come_from_all_three_places(tmp_path: Path) -> None:
    file = tmp_path / "k.toml"
    file.write_text('[kafka]\n"log.retention.ms" = 1000\nnum.partitions = 3\nauto.create.topics.enable = false\n')
    configuration = load(
        str(file), {"kafka.log.segment.bytes": "1048576"}, {"TIDELOG_KAFKA_MESSAGE_MAX_BYTES": "2000000"}
    )
    assert configuration.node.kafka == {
        "log.retention.ms": "1000",
        "num.partitions": "3",
        "auto.create.topics.enable": "false",
        "message.max.bytes": "2000000",
        "log.segment.bytes": "1048576",
    }


def test_listeners_may_advertise_another_address() -> None:
    configuration = load(
        None, {"listeners": "127.0.0.1:9092, [::1]:9093=broker.example:19093", "allow-anonymous": "true"}, {}
    )
    assert configuration.node.listeners == (
        ListenerSettings("127.0.0.1", 9092),
        ListenerSettings("::1", 9093, "broker.example", 19093),
    )


def test_all_problems_are_shown_together_unknown_names_included(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(
        'data-dri = "x"\nnode-id = "many"\nlisteners = ["here"]\nlog-level = "loud"\n[kafka]\n"num.partition" = 1\n'
    )
    problems = problems_of(str(file))
    assert len(problems) == 5
    text = "\n".join(problems)
    assert "unknown setting 'data-dri'" in text
    assert "did you mean data-dir?" in text
    assert "node-id must be a whole number, or auto in a cluster, not 'many'" in text
    assert "listeners must be HOST:PORT" in text
    assert "log-level must be debug or info or warning or error" in text
    assert "num.partition" in text


def test_listening_beyond_loopback_needs_a_plain_word() -> None:
    (problem,) = problems_of(flags={"listeners": "0.0.0.0:9092"})
    assert "reachable from other machines" in problem
    assert "allow-anonymous" in problem
    assert load(None, {"listeners": "0.0.0.0:9092", "allow-anonymous": "true"}, {}).node.allow_anonymous


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("127.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example", False),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
        ("::", False),
        ("", False),
    ],
)
def test_only_addresses_of_the_loopback_are_loopback(host: str, is_loopback: bool) -> None:
    assert ListenerSettings(host, 9092).is_loopback is is_loopback


@pytest.mark.parametrize(("content", "problem"), [("not toml [", "not valid TOML"), ("kafka = 3", "must be a table")])
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, content: str, problem: str) -> None:
    file = tmp_path / "x.toml"
    file.write_text(content)
    assert any(problem in each and "x.toml" in each for each in problems_of(str(file)))
    assert problems_of("missing.toml") == ["settings file missing.toml does not exist"]


def test_numbers_out_of_range_are_refused() -> None:
    assert (
        len(problems_of(flags={"max-pending-bytes": "0", "shutdown-grace-ms": "-1", "tail-cache-bytes": "-1"})) >= 1
    )


def test_the_timings_of_a_cluster_are_settings() -> None:
    environment = {
        "TIDELOG_CLUSTER_METADATA": "postgresql://me@here/db",
        "TIDELOG_CLUSTER_STORAGE": "file:///objects",
        "TIDELOG_CLUSTER_HEARTBEAT_MS": "200",
    }
    cluster = load(None, {"cluster.fence-after-ms": "1000", "cluster.dead-after-ms": 2000}, environment).node.cluster
    assert cluster is not None
    assert (cluster.heartbeat_ms, cluster.fence_after_ms, cluster.dead_after_ms) == (200, 1000, 2000)


def test_timings_of_a_cluster_that_contradict_each_other_are_refused() -> None:
    flags = {
        "cluster.metadata": "postgresql://me@here/db",
        "cluster.storage": "file:///objects",
        "cluster.heartbeat-ms": "3000",
        "cluster.dead-after-ms": "6000",
        "cluster.orphan-age-ms": "5000",
        "cluster.segment-bytes": str(1 << 31),
        "cluster.uploads": "0",
    }
    text = "\n".join(problems_of(flags=flags))
    assert "cluster.fence-after-ms (5000) must be at least twice cluster.heartbeat-ms (3000)" in text
    assert "cluster.dead-after-ms (6000) must be at least 5/4 of cluster.fence-after-ms (5000)" in text
    assert "cluster.orphan-age-ms (5000) must be at least cluster.append-timeout-ms (30000)" in text
    assert "cluster.segment-bytes must be at most 1073741824, not 2147483648" in text
    assert "cluster.uploads must be at least 1, not 0" in text


def test_every_setting_of_a_cluster_is_documented() -> None:
    documented = Path(__file__).parents[2].joinpath("docs/cluster.md").read_text()
    assert [name for name in KEYS if name.startswith("cluster.") and f"| `{name}` |" not in documented] == []
