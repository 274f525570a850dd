"""`tidelog cluster` against a real broker, and the words that all commands know."""

from datetime import UTC, datetime, timedelta
from typing import cast

import click
import pytest

from tests.cli.conftest import Command
from tidelog.cli.cluster import pairs, start_of
from tidelog.client import Start

pytest_plugins = ("tests.cli.serving",)


def start(text: str) -> Start:
    return start_of(cast("click.Context", None), cast("click.Parameter", None), text)


def test_the_cluster_is_shown(tidelog: Command, broker: str, topic: str) -> None:
    shown = tidelog("cluster", "info", "--json")
    (cluster,) = shown.rows_of("cluster")
    assert cluster["topics"] >= 1
    assert cluster["partitions"] >= 3
    (node,) = shown.rows_of("broker")
    assert (node["address"], node["role"]) == (broker, "controller")
    assert broker in tidelog("cluster", "info").out


def test_the_memory_budget_and_its_use_are_shown(tidelog: Command, broker: str, topic: str) -> None:
    rows = tidelog("cluster", "info", "--json").rows_of("memory")
    by_name = {row["memory"]: row for row in rows}
    whole = by_name.pop("whole process")
    assert whole["setting"] == "memory-budget-bytes"
    assert 20 << 20 < whole["used_bytes"] < whole["limit_bytes"]
    assert set(by_name) >= {"requests", "replies", "newest batches", "fetch sessions"}
    assert sum(row["limit_bytes"] for row in by_name.values()) <= whole["limit_bytes"]
    assert all(0 <= row["used_bytes"] <= row["limit_bytes"] for row in by_name.values())
    assert "max-total-pending-bytes" in tidelog("cluster", "info").out


def test_the_brokers_are_shown_with_the_number_of_their_partitions(tidelog: Command, broker: str, topic: str) -> None:
    (row,) = tidelog("cluster", "brokers", "--json").rows_of("broker")
    assert (row["address"], row["role"]) == (broker, "controller")
    assert row["partitions"] >= 3
    shown = tidelog("cluster", "brokers").out
    assert broker in shown
    assert "without a leader" not in shown


def test_leaders_are_shown_of_one_topic_or_of_all(tidelog: Command, topic: str) -> None:
    (broker,) = tidelog("cluster", "brokers", "--json").rows_of("broker")
    rows = tidelog("cluster", "leaders", topic, "--json").rows
    assert [(row["topic"], row["partition"], row["leader"]) for row in rows] == [
        (topic, number, broker["id"]) for number in range(3)
    ]
    assert all(row["epoch"] >= 0 for row in rows)
    assert all(row in tidelog("cluster", "leaders", "--json").rows for row in rows)
    assert topic in tidelog("cluster", "leaders").out


@pytest.mark.usefixtures("broker")
def test_leaders_of_a_topic_that_does_not_exist_are_an_error(tidelog: Command) -> None:
    code, out, err = tidelog("cluster", "leaders", "nonsense")
    assert (code, out) == (1, "")
    assert "tidelog topic create nonsense" in err


def test_a_broker_that_is_alone_keeps_its_partitions(tidelog: Command, topic: str) -> None:
    (broker,) = tidelog("cluster", "brokers", "--json").rows_of("broker")
    (moved,) = tidelog("cluster", "move", f"{topic}:1", str(broker["id"]), "--json").rows
    assert (moved["from_broker"], moved["to_broker"]) == (broker["id"], broker["id"])
    code, out, err = tidelog("cluster", "move", f"{topic}:1", "77")
    assert (code, out) == (1, "")
    assert err == f"tidelog: error: broker 77 is not up; these are: {broker['id']}\n"


def test_a_partition_that_does_not_exist_is_not_moved(tidelog: Command, topic: str) -> None:
    code, _, err = tidelog("cluster", "move", f"{topic}:3", "0")
    assert (code, f"topic {topic} has no partition 3" in err) == (1, True)
    for wrong in (topic, f"{topic}:one", ":1"):
        code, _, err = tidelog("cluster", "move", wrong, "0")
        assert (code, "such as orders:0" in err) == (2, True)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("earliest", "earliest"),
        ("latest", "latest"),
        ("12", 12),
        ("-12", -12),
        ("2026-07-01T08:00Z", datetime(2026, 7, 1, 8, tzinfo=UTC)),
        ("2026-07-01T08:00+02:00", datetime(2026, 7, 1, 6, tzinfo=UTC)),
    ],
)
def test_places_in_a_topic_are_said_in_words_numbers_and_times(text: str, meant: Start) -> None:
    assert start(text) == meant


def test_a_time_may_be_said_as_how_long_ago() -> None:
    meant = start("-2h")
    assert isinstance(meant, datetime)
    assert abs(datetime.now(UTC) - timedelta(hours=2) - meant) < timedelta(seconds=10)


@pytest.mark.parametrize("text", ["", "soon", "-2y", "1.5", "2026-13-01", "-99999999999d"])
def test_other_words_are_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        start(text)


def test_pairs_have_a_name_and_a_value() -> None:
    assert pairs(["a=b=c", "d="], "--x") == {"a": "b=c", "d": ""}
    for wrong in ("a", "=b"):
        with pytest.raises(click.UsageError):
            pairs([wrong], "--x")
