"""`tidelog group` against a real broker."""

import pytest

from tests.cli.conftest import Command
from tests.cli.processes import Put, Shown
from tests.support.brokers import unique
from tidelog.client import connect

pytest_plugins = ("tests.cli.serving",)


@pytest.fixture
def group(topic: str, put: Put, shown: Shown) -> str:
    """A group that has read 3 of the 5 records of partition 0."""
    put(topic, "0", "1", "2", "3", "4")
    name = unique("group")
    assert shown(topic, "--group", name, "-n", "3") == "0\n1\n2\n"
    return name


def test_groups_are_listed(tidelog: Command, group: str) -> None:
    assert group in tidelog("group", "list").out
    (row,) = [row for row in tidelog("group", "list", "--json").rows if row["group"] == group]
    assert row == {"type": "group", "group": group, "state": "Empty", "kind": "classic", "protocol": "consumer"}


def test_the_lag_is_what_was_not_read(tidelog: Command, topic: str, group: str) -> None:
    assert tidelog("group", "describe", group).out.startswith(f"{group}: Empty, 0 members, lag 2\n")
    described = tidelog("group", "describe", group, "--json")
    assert described.rows_of("group")[0]["lag"] == 2
    (row,) = described.rows_of("offset")
    assert (row["topic"], row["partition"], row["committed"], row["end_offset"], row["lag"]) == (topic, 0, 3, 5, 2)


def test_members_are_shown_with_their_partitions(tidelog: Command, broker: str, topic: str, group: str) -> None:
    with connect(broker) as client, client.consume(topic, group=group) as stream:
        stream.poll(1.0)
        rows = tidelog("group", "describe", group, "--json").rows_of("offset")
        assert [(row["partition"], row["client"]) for row in rows] == [(0, "tidelog"), (1, "tidelog"), (2, "tidelog")]
        busy = tidelog("group", "seek", group, topic, "--to", "earliest")
        assert (busy.code, busy.err.count("\n")) == (1, 1)
        assert tidelog("group", "delete", group).code == 1


def test_a_group_goes_on_where_it_is_sent(tidelog: Command, topic: str, group: str, shown: Shown) -> None:
    dry = tidelog("group", "seek", group, topic, "--to", "-1", "--dry-run", "--json")
    assert [(row["before"], row["committed"]) for row in dry.rows] == [(3, 4), (None, 0), (None, 0)]
    assert tidelog("group", "describe", group, "--json").rows_of("group")[0]["lag"] == 2
    assert tidelog("group", "seek", group, topic, "--to", "1", "--partition", "0").code == 0
    assert shown(topic, "--group", group) == "1\n2\n3\n4\n"
    beyond = tidelog("group", "seek", group, topic, "--to", "1000", "--json")
    assert [row["committed"] for row in beyond.rows] == [5, 0, 0]


def test_a_group_may_begin_by_being_sent_somewhere(tidelog: Command, topic: str, put: Put, shown: Shown) -> None:
    put(topic, "0", "1", partition=2)
    name = unique("group")
    assert tidelog("group", "seek", name, topic, "--to", "latest").code == 0
    assert shown(topic, "--group", name) == ""


def test_offsets_of_a_topic_and_groups_are_deleted(tidelog: Command, topic: str, group: str, shown: Shown) -> None:
    assert tidelog("group", "delete", group, "--topic", topic).out == f"1 offset of {group} deleted\n"
    assert shown(topic, "--group", group, "-n", "1") == "0\n"
    assert tidelog("group", "delete", group) == (0, f"{group} deleted\n", "")
    gone = tidelog("group", "describe", group)
    assert gone == (1, "", f"tidelog: error: no such group: {group!r}; see: tidelog group list\n")


def test_a_group_outlives_its_topic(tidelog: Command, topic: str, group: str) -> None:
    tidelog("topic", "delete", topic)
    described = tidelog("group", "describe", group, "--json")
    assert described.code in (0, 1)  # the broker may drop the offsets with the topic
    for row in described.rows_of("offset"):
        assert row["lag"] is None


@pytest.mark.usefixtures("broker")
def test_configs_of_a_group_are_set_shown_and_taken_back(tidelog: Command) -> None:
    name = unique("group")
    setting = ("--set", "consumer.heartbeat.interval.ms=300", "--set", "consumer.session.timeout.ms=3000")
    (heartbeat, session) = tidelog("group", "alter", name, *setting, "--json").rows_of("config")
    assert (heartbeat["value"], heartbeat["source"], session["value"]) == ("300", "group", "3000")
    shown = tidelog("group", "describe", name)
    assert shown.out.startswith(f"{name}: Dead, 0 members")
    assert "consumer.heartbeat.interval.ms" in shown.out
    unset = tidelog("group", "alter", name, "--unset", "consumer.session.timeout.ms", "--json").rows_of("config")
    assert unset[0]["source"] != "group"
    assert tidelog("group", "alter", name, "--unset", "session.timeout.ms").code == 2
    rows = tidelog("group", "describe", name, "--json").rows_of("config")
    assert [(row["name"], row["source"] == "group") for row in rows] == [
        ("consumer.heartbeat.interval.ms", True),
        ("consumer.session.timeout.ms", False),
    ]
    assert "consumer.session.timeout.ms" in tidelog("group", "describe", name, "--all-configs").out


@pytest.mark.usefixtures("broker")
def test_what_a_group_cannot_have_is_said_in_one_line(tidelog: Command) -> None:
    name = unique("group")
    for setting, said in (
        ("consumer.session.timeout.ms=1", "must be from"),
        ("share.session.timeout.ms=45000", "no share groups"),
        ("retention.ms=1", "unknown group config"),
    ):
        refused = tidelog("group", "alter", name, "--set", setting)
        assert (refused.code, refused.err.count("\n")) == (1, 1)
        assert said in refused.err
    assert tidelog("group", "alter", name).code == 2
    assert tidelog("group", "describe", name).code == 1
