"""Retention waits for the archive, if the topic says so."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.brokers import BrokerProcess, eventually
from tidelog.cli.main import run
from tidelog.client import Client


def start_of(client: Client, topic: str) -> int:
    return client.partitions(topic)[0].start_offset


def fill(client: Client, topic: str, records: int = 50) -> None:
    for _ in range(records):
        client.produce(topic, b"x" * 400, timestamp=1_000)


def test_nothing_is_deleted_before_it_is_archived(
    broker: BrokerProcess,
    client: Client,
    make_topic: Callable[..., str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    held = make_topic(segment_bytes="2048", retention_ms="1000000000000")
    free = make_topic(segment_bytes="2048", retention_ms="1000000000000")
    client.alter_topic_configs(held, {"tidelog.retention.wait.for.group": f"tidelog-archive.{held}"})
    for topic in (held, free):
        fill(client, topic)
        client.alter_topic_configs(topic, {"retention.ms": "1000"})
    eventually(lambda: start_of(client, free), until=lambda start: start > 0)
    assert start_of(client, held) == 0

    assert run(["archive", held, "--to", str(tmp_path / "lake"), "-b", broker.bootstrap]) == 0
    eventually(lambda: start_of(client, held), until=lambda start: start > 0)


def test_records_that_were_deleted_before_they_were_archived_are_not_passed_over_silently(
    broker: BrokerProcess,
    client: Client,
    make_topic: Callable[..., str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic = make_topic()
    fill(client, topic, 5)
    archive = ["archive", topic, "--to", str(tmp_path / "lake"), "-b", broker.bootstrap]
    assert run(archive) == 0
    fill(client, topic, 5)
    from tidelog.model import TopicPartition

    client.delete_records({TopicPartition(topic, 0): 8})
    assert run(archive) == 1
    assert "offsets 5 to 7 were deleted before they were archived" in capsys.readouterr().err
    assert run([*archive, "--skip-lost"]) == 0
    assert " 2 " in capsys.readouterr().out
