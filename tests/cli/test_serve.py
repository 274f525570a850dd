"""`tidelog serve` and `tidelog config` as processes."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kafka import KafkaProducer  # type: ignore[import-untyped,unused-ignore]


def tidelog(*arguments: str, cwd: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "tidelog", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=cwd,
        env={**os.environ, **environment},
    )


@contextmanager
def serving(directory: Path, *arguments: str, shell: str = "") -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A broker, started by a shell that runs the line `shell` before."""
    process = subprocess.Popen(
        [
            "sh",
            "-ec",
            f'{shell}\nexec "$@"',
            "sh",
            sys.executable,
            "-m",
            "tidelog",
            "serve",
            "--listen",
            "127.0.0.1:0",
            *arguments,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=directory,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("Tidelog listens on 127.0.0.1:"), line
        yield process, line.split()[3].rstrip(",")
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_it_takes_more_connections_than_the_shell_gave_it_files(tmp_path: Path) -> None:
    """As long as the hard limit allows."""
    with serving(tmp_path, shell="ulimit -S -n 256") as (process, bootstrap):
        host, port = bootstrap.split(":")
        connections = [socket.create_connection((host, int(port)), timeout=20) for _ in range(400)]
        producer = KafkaProducer(bootstrap_servers=bootstrap)
        producer.send("t", b"x").get(timeout=20)
        producer.close(timeout=5)
        for connection in connections:
            connection.close()
        assert process.poll() is None


def test_sigterm_stops_it_cleanly_and_quickly_and_the_data_is_in_the_default_directory(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, bootstrap):
        producer = KafkaProducer(bootstrap_servers=bootstrap)
        producer.send("t", b"x").get(timeout=20)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert time.monotonic() - began < 10
        producer.close(timeout=1)
    assert list(tmp_path.glob("tidelog-data/logs/t~*/0/checkpoint"))


def test_a_broker_that_waits_for_its_database_can_be_stopped(tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        database = f"postgresql://tidelog:secret@127.0.0.1:{nobody.getsockname()[1]}/tidelog"
        process = subprocess.Popen(
            [sys.executable, "-m", "tidelog", "serve", "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=tmp_path,
            env={
                **os.environ,
                "TIDELOG_CLUSTER_METADATA": database,
                "TIDELOG_CLUSTER_STORAGE": f"file://{tmp_path}/objects",
            },
        )
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert "there is no connection to PostgreSQL; trying again" in said
            process.send_signal(signal.SIGTERM)
            said += process.communicate(timeout=30)[0]
        finally:
            process.kill()
            process.communicate()
    assert process.returncode == 0, said
    assert "stopping" in said
    assert "Traceback" not in said
    assert "secret" not in said


def test_a_second_broker_on_the_same_data_gets_one_clear_line(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, _):
        second = tidelog("serve", "--listen", "127.0.0.1:0", cwd=tmp_path)
        assert second.returncode == 1
        assert second.stderr.strip() == (
            f"tidelog: error: tidelog-data is in use by process {process.pid}; "
            "stop it, or choose another data directory"
        )


def test_a_port_that_is_taken_gets_one_clear_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = tidelog("serve", "--listen", f"127.0.0.1:{port}", cwd=tmp_path)
    assert result.returncode == 1
    assert len(result.stderr.strip().splitlines()) == 1
    assert f"cannot listen on 127.0.0.1:{port}" in result.stderr


def test_wrong_settings_are_shown_line_by_line_and_nothing_starts(tmp_path: Path) -> None:
    result = tidelog("serve", "--set", "node-id=x", "--set", "nonsense=1", cwd=tmp_path)
    assert result.returncode == 1
    assert len(result.stderr.strip().splitlines()) == 2
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "tidelog-data").exists()


def test_config_shows_values_and_sources(tmp_path: Path) -> None:
    (tmp_path / "tidelog.toml").write_text("node-id = 3\n")
    result = tidelog("config", "--json", "--data-dir", "elsewhere", cwd=tmp_path, TIDELOG_LOG_LEVEL="debug")
    assert result.returncode == 0
    rows = {row["name"]: (str(row["value"]), row["source"]) for row in json.loads(result.stdout)}
    assert rows["node-id"] == ("3", "tidelog.toml")
    assert rows["data-dir"] == ("elsewhere", "flag")
    assert rows["log-level"] == ("debug", "TIDELOG_LOG_LEVEL")
    assert rows["tail-cache-bytes"][1] == "default"
    table = tidelog("config", cwd=tmp_path)
    assert "tidelog.toml" in table.stdout
