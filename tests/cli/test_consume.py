"""`tidelog consume` against a real broker."""

import signal
import subprocess
from datetime import UTC, datetime

import click
import pytest

from tests.cli.conftest import Command
from tests.cli.processes import TIDELOG, Put, Shown, produced
from tests.support.brokers import unique
from tidelog.cli.consume import compile_format
from tidelog.client import ConsumedRecord

pytest_plugins = ("tests.cli.serving",)

RECORD = ConsumedRecord("t", 2, 7, 1234, b"\xffk", None, [("a", b"\xfe"), ("b", None)])


@pytest.mark.parametrize(
    ("template", "written"),
    [
        (rb"%t/%p/%o %T\n", b"t/2/7 1234\n"),
        (rb"%k|%v|%s|%h", b"\xffk|NULL|NULL|a=\xfe,b=NULL"),
        (rb"%K %S 100%%", b"2 -1 100%"),
        (rb"\t\0\x41\\\q", b"\t\0A\\\\q"),
        (b"", b""),
    ],
)
def test_formats_are_kcats(template: bytes, written: bytes) -> None:
    assert b"".join(piece(RECORD) for piece in compile_format(template, b"NULL")) == written


def test_a_directive_that_is_not_known_is_a_usage_error(tidelog: Command) -> None:
    with pytest.raises(click.UsageError, match="unknown directive %q"):
        compile_format(b"%q", b"")
    assert tidelog("consume", "t", "-f", "%q").code == 2


def test_records_are_shown_from_where_it_was_said(topic: str, put: Put, shown: Shown) -> None:
    put(topic, "0", "1", "2", "3", "4", partition=1)
    assert shown(topic) == "0\n1\n2\n3\n4\n"
    assert shown(topic, "--from", "3") == "3\n4\n"
    assert shown(topic, "--from", "-2") == "3\n4\n"
    assert shown(topic, "--from", "latest") == ""
    assert shown(topic, "--from", "-1h", "-n", "1") == "0\n"
    assert shown(topic, "--from", datetime(2020, 1, 1, tzinfo=UTC).isoformat(), "--max", "2") == "0\n1\n"
    assert shown(topic, "--from", "2100-01-01") == ""
    assert shown(topic, "--partition", "0") == ""
    assert shown(topic, "--partition", "1", "-n", "0") == ""


def test_json_keeps_text_and_bytes_apart(tidelog: Command, topic: str) -> None:
    produced(topic, b"k\xff\tv\n", "-K", "\\t", "-H", "h=1")
    (row,) = tidelog("consume", topic, "--exit", "--json").rows
    assert (row["topic"], row["offset"], row["key"], row["value"]) == (topic, 0, {"hex": "6bff"}, "v")
    assert row["headers"] == [["h", "1"]]
    assert row["timestamp"] > 1_700_000_000_000


def test_several_topics_are_read_together(tidelog: Command, topic: str, put: Put) -> None:
    other = unique("other")
    tidelog("topic", "create", other)
    put(topic, "1")
    put(other, "2")
    assert sorted(tidelog("consume", topic, other, "--exit").out.split()) == ["1", "2"]


def test_following_shows_what_comes_and_ends_on_ctrl_c(topic: str, put: Put) -> None:
    put(topic, "before")
    reader = subprocess.Popen([*TIDELOG, "consume", topic], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert reader.stdout is not None
    assert reader.stdout.readline() == b"before\n"
    put(topic, "after")
    assert reader.stdout.readline() == b"after\n"
    reader.send_signal(signal.SIGINT)
    _, err = reader.communicate(timeout=20)
    assert (reader.returncode, err.strip()) == (130, b"")


def test_a_reader_that_has_seen_enough_is_no_error(topic: str, put: Put) -> None:
    put(topic, *["x" * 1000] * 1000)
    reader = subprocess.Popen(
        [*TIDELOG, "consume", topic], stdout=subprocess.PIPE, stderr=subprocess.PIPE, pipesize=4096
    )
    assert reader.stdout is not None
    reader.stdout.read(1)
    reader.stdout.close()
    _, err = reader.communicate(timeout=20)
    assert (err, reader.returncode) == (b"", 1)


def test_a_group_shows_every_record_once(topic: str, put: Put, shown: Shown) -> None:
    put(topic, "0", "1", "2", "3", "4", "5")
    group = unique("group")
    assert shown(topic, "--group", group, "-n", "4") == "0\n1\n2\n3\n"
    assert shown(topic, "--group", group) == "4\n5\n"
    assert shown(topic, "--group", group) == ""


def test_a_group_that_is_interrupted_has_committed_what_was_shown(topic: str, put: Put, shown: Shown) -> None:
    put(topic, "1", "2")
    group = unique("group")
    command = [*TIDELOG, "consume", topic, "--group", group]
    reader = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert reader.stdout is not None
    assert [reader.stdout.readline() for _ in range(2)] == [b"1\n", b"2\n"]
    put(topic, "3")
    assert reader.stdout.readline() == b"3\n"  # so the first two count as consumed
    reader.send_signal(signal.SIGINT)
    reader.communicate(timeout=20)
    assert reader.returncode == 130
    assert shown(topic, "--group", group) in ("", "3\n")


def test_what_cannot_be_read_is_one_line(tidelog: Command, topic: str) -> None:
    assert tidelog("consume", topic, "--partition", "9", "--exit").err == (
        f"tidelog: error: reading {topic}-9: the topic has 3 partitions (UNKNOWN_TOPIC_OR_PARTITION)\n"
    )
    assert tidelog("consume", topic, "--group", "g", "--partition", "1").code == 2
    assert tidelog("consume", topic, "--from", "tomorrow").code == 2
    name = unique("nowhere")
    assert f"create it with: tidelog topic create {name}" in tidelog("consume", name, "--exit").err
