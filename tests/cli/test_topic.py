"""`tidelog topic` against a real broker."""

import socket

import pytest

from tests.cli.conftest import Command
from tests.cli.processes import Put
from tests.support.brokers import unique

pytest_plugins = ("tests.cli.serving",)


@pytest.mark.usefixtures("broker")
def test_a_topic_is_created_with_its_configs(tidelog: Command) -> None:
    name = unique("t")
    created = tidelog("topic", "create", name, "-p", "2", "-c", "retention.ms=60000")
    assert created == (0, f"{name} created\n", "")
    described = tidelog("topic", "describe", name)
    assert described.out.startswith(f"{name}: 2 partitions, id ")
    assert "retention.ms   60000   topic" in described.out


def test_creating_it_again_fails_unless_that_is_fine(tidelog: Command, topic: str) -> None:
    again = tidelog("topic", "create", topic)
    assert (again.code, again.out) == (1, "")
    assert again.err.startswith(f"tidelog: error: creating topic {topic!r}: ")
    assert again.err.endswith("(TOPIC_ALREADY_EXISTS)\n")
    assert tidelog("topic", "create", topic, "--if-not-exists") == (0, f"{topic} exists already\n", "")


@pytest.mark.usefixtures("broker")
def test_a_dry_run_only_looks(tidelog: Command) -> None:
    name = unique("t")
    assert tidelog("topic", "create", name, "--dry-run") == (0, f"{name} would be created\n", "")
    assert tidelog("topic", "describe", name).code == 1


@pytest.mark.usefixtures("broker")
def test_a_wrong_config_is_said_in_one_line(tidelog: Command) -> None:
    code, out, err = tidelog("topic", "create", unique("t"), "-c", "retention.ms=soon")
    assert (code, out) == (1, "")
    assert "retention.ms" in err
    assert err.count("\n") == 1
    assert tidelog("topic", "create", "t", "-c", "nonsense").code == 2


def test_topics_are_listed(tidelog: Command, topic: str) -> None:
    assert topic in tidelog("topic", "list").out
    (row,) = [row for row in tidelog("topic", "list", "--json").rows if row["topic"] == topic]
    assert (row["type"], row["partitions"], row["replicas"], row["internal"]) == ("topic", 3, 1, False)


def test_a_description_for_programs_has_everything(tidelog: Command, topic: str, put: Put) -> None:
    put(topic, "a", "b", partition=1)
    described = tidelog("topic", "describe", topic, "--json")
    assert described.rows_of("topic")[0]["partitions"] == 3
    ends = [(row["partition"], row["start_offset"], row["end_offset"]) for row in described.rows_of("partition")]
    assert ends == [(0, 0, 0), (1, 0, 2), (2, 0, 0)]
    assert "segment.bytes" in [row["name"] for row in described.rows_of("config")]


def test_configs_are_changed_and_taken_back(tidelog: Command, topic: str) -> None:
    changed = tidelog("topic", "alter", topic, "--set", "retention.ms=1000", "--json")
    assert [(row["name"], row["value"], row["source"]) for row in changed.rows] == [("retention.ms", "1000", "topic")]
    back = tidelog("topic", "alter", topic, "--unset", "retention.ms", "--json")
    assert back.rows[0]["source"] != "topic"
    assert tidelog("topic", "alter", topic).code == 2
    unknown = tidelog("topic", "alter", topic, "--unset", "retention")
    assert (unknown.code, "Unknown config: retention." in unknown.err) == (2, True)


def test_a_topic_grows(tidelog: Command, topic: str) -> None:
    assert tidelog("topic", "add-partitions", topic, "--to", "5") == (0, f"{topic} has 5 partitions now\n", "")
    assert tidelog("topic", "add-partitions", topic, "--to", "2").code == 1


def test_old_records_are_trimmed(tidelog: Command, topic: str, put: Put) -> None:
    put(topic, "0", "1", "2")
    put(topic, "0", partition=1)
    trimmed = tidelog("topic", "trim", topic, "--before", "2", "--json")
    assert [row["start_offset"] for row in trimmed.rows] == [2, 1, 0]
    everything = tidelog("topic", "trim", topic, "--before", "latest", "--partition", "0", "--json")
    assert [row["start_offset"] for row in everything.rows] == [3]
    wrong = tidelog("topic", "trim", topic, "--before", "1", "--partition", "9")
    assert wrong == (1, "", f"tidelog: error: {topic} has no partition 9; it has 3\n")
    assert tidelog("topic", "trim", topic, "--before", "whenever").code == 2


def test_a_topic_is_deleted(tidelog: Command, topic: str) -> None:
    assert tidelog("topic", "delete", topic) == (0, f"{topic} deleted\n", "")
    assert tidelog("topic", "delete", topic).code == 1
    assert tidelog("topic", "delete", topic, "--if-exists") == (0, f"{topic} does not exist\n", "")


def test_people_are_asked_before_something_is_deleted(
    tidelog: Command, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: "n")
    assert tidelog("topic", "delete", topic).code == 130
    assert tidelog("topic", "delete", topic, "--yes").code == 0


def test_nobody_there_is_one_line_with_what_to_do(tidelog: Command) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        code, out, err = tidelog("topic", "list", "--bootstrap", address)
    assert (code, out) == (1, "")
    assert err == (
        f"tidelog: error: cannot reach {address}: connection refused; is the broker running? "
        "start it with: tidelog serve\n"
    )


def test_an_address_that_is_none_is_a_usage_error(tidelog: Command) -> None:
    code, out, err = tidelog("topic", "list", "--bootstrap", "host:port")
    assert (code, out) == (2, "")
    assert "'host:port' is not an address" in err
