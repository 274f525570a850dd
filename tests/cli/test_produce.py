"""`tidelog produce` against a real broker: bytes arrive as they went in."""

import io
import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.cli.processes import TIDELOG, Shown, consumed, produced
from tests.support.brokers import unique
from tidelog.cli.produce import _split

pytest_plugins = ("tests.cli.serving",)


def test_lines_are_records_byte_for_byte(topic: str) -> None:
    sent = b"plain\n\xff\xfe\x00binary\r\n\ncaf\xc3\xa9\nno newline at the end"
    done = produced(topic, sent, "--partition", "0")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert consumed(topic) == sent + b"\n"


def test_keys_headers_nulls_and_compression(tidelog: Command, topic: str) -> None:
    done = produced(topic, b"k1:v1\nk2:\n", "-K", ":", "-Z", "-H", "a=b", "-H", "c=d", "-z", "zstd", "--json")
    assert done.stdout == b'{"type": "produced", "topic": "%s", "records": 2}\n' % topic.encode()
    rows = tidelog("consume", topic, "--exit", "--json").rows
    assert sorted((row["key"], row["value"]) for row in rows if row["value"]) == [("k1", "v1")]
    assert [row["key"] for row in rows if row["value"] is None] == ["k2"]
    assert rows[0]["headers"] == [["a", "b"], ["c", "d"]]


def test_files_are_read_with_delimiters_of_ones_own(topic: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1\x002\n2\x003")
    (tmp_path / "b").write_bytes(b"4\x00")
    done = produced(topic, b"", "-f", str(tmp_path / "a"), "-f", str(tmp_path / "b"), "-d", "\\0", "-p", "0")
    assert done.returncode == 0
    assert consumed(topic, "-f", "%v|") == b"1|2\n2|3|4|"


def test_a_file_may_be_one_record(topic: str, tmp_path: Path) -> None:
    content = bytes(range(256)) * 10
    (tmp_path / "file").write_bytes(content)
    assert produced(topic, b"", "--whole", "--file", str(tmp_path / "file"), "--key", "k").returncode == 0
    assert consumed(topic, "-f", "%K %S %v") == b"1 2560 " + content


def test_a_line_without_its_key_is_an_error(topic: str) -> None:
    done = produced(topic, b"no key here\n", "-K", ":")
    assert done.returncode == 1
    assert done.stderr == b"tidelog: error: line without the key separator ':': b'no key here'\n"


@pytest.mark.parametrize("options", [["-K", ":", "-k", "x"], ["-d", ""], ["-a", "7"], ["-z", "rar"], ["-H", "x"]])
def test_options_that_make_no_sense_are_usage_errors(tidelog: Command, options: list[str]) -> None:
    code, out, err = tidelog("produce", "topic", *options)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1


@pytest.mark.usefixtures("broker")
def test_a_topic_that_is_not_there_is_said_with_what_to_do() -> None:
    name = unique("nowhere")
    done = produced(name, b"x\n")
    assert done.returncode == 1
    assert f"create it with: tidelog topic create {name}" in done.stderr.decode()


def test_a_missing_file_is_named(tidelog: Command, topic: str) -> None:
    code, _, err = tidelog("produce", topic, "--file", "/nowhere/at/all")
    assert code == 1
    assert "/nowhere/at/all" in err


def test_a_record_that_is_refused_fails_the_command(tidelog: Command, topic: str) -> None:
    tidelog("topic", "alter", topic, "--set", "max.message.bytes=100")
    done = produced(topic, b"x" * 500 + b"\n")
    assert done.returncode == 1
    assert done.stderr.startswith(b"tidelog: error: 1 record not delivered: ")
    assert done.stderr.count(b"\n") == 1


def test_every_acks_delivers(topic: str, shown: Shown) -> None:
    for acks in ("0", "1", "all"):
        assert produced(topic, acks.encode() + b"\n", "--acks", acks, "--partition", "0").returncode == 0
    assert sorted(shown(topic).split()) == ["0", "1", "all"]


def test_lines_of_a_slow_writer_do_not_wait_for_its_end(topic: str) -> None:
    writer = subprocess.Popen([*TIDELOG, "produce", topic], stdin=subprocess.PIPE)
    reader = subprocess.Popen([*TIDELOG, "consume", topic, "-n", "1"], stdout=subprocess.PIPE)
    assert writer.stdin is not None
    writer.stdin.write(b"now\n")
    writer.stdin.flush()
    assert reader.communicate(timeout=20)[0] == b"now\n"
    writer.stdin.close()
    assert (reader.returncode, writer.wait(20)) == (0, 0)


def test_a_large_file_shows_a_bar_to_whoever_looks(topic: str, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes((b"x" * 99_999 + b"\n") * 100)
    terminal, its_end = pty.openpty()
    command = [*TIDELOG, "produce", topic, "--file", str(tmp_path / "large")]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=its_end)
    os.close(its_end)
    shown = b""
    try:
        while some := os.read(terminal, 65536):
            shown += some
    except OSError:  # how a terminal says that the other end is closed
        pass
    os.close(terminal)
    assert process.communicate()[0] == b""
    assert process.returncode == 0
    assert b"large" in shown
    assert f"100 records written to {topic}".encode() in shown


def test_splitting_takes_any_delimiter_over_any_cut() -> None:
    class Bits(io.RawIOBase):
        def __init__(self, data: bytes) -> None:
            self.data = data

        def read(self, _: int = -1) -> bytes:
            some, self.data = self.data[:1], self.data[1:]
            return some

    read: list[int] = []
    parts = _split(Bits(b"a<>b<><>c<"), b"<>", read.append)  # type: ignore[arg-type]
    assert list(parts) == [b"a", b"b", b"", b"c<"]
    assert sum(read) == 10
