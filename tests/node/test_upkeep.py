"""Retention goes on with the other partitions when one cannot be read, and says so once."""

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest
import structlog

from tests.gateways.raw import RawClient, produce_request
from tests.support.brokers import eventually
from tests.support.logs import batch
from tidelog.embedding import EmbeddedBroker
from tidelog.storage.local.files import OsFile

CONFIGS = {"log.retention.check.interval.ms": "20"}


def test_one_partition_that_cannot_be_read_does_not_end_retention(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unreadable = "nowhere"
    pread = OsFile.pread

    def faulty(file: OsFile, size: int, position: int) -> bytes:
        if file.path.startswith(unreadable) and file.path.endswith("index"):
            raise OSError(errno.EIO, os.strerror(errno.EIO), file.path)
        return pread(file, size, position)

    def produce(client: RawClient, partition: int) -> None:
        for _ in range(10):
            data = batch(b"x" * 400, timestamp=1_700_000_000_000)
            client.ask("Produce", 9, produce_request("topic", data, partition=partition, acks=-1))

    with EmbeddedBroker(str(tmp_path)) as first:
        first.create_topic("topic", 2, segment_bytes="1024", retention_ms="-1")
        with RawClient(int(first.bootstrap_servers.rpartition(":")[2])) as client:
            produce(client, 0)
            produce(client, 1)
        unreadable = first._node.broker.partition("topic", 0).log.directory  # type: ignore[attr-defined]
    monkeypatch.setattr(OsFile, "pread", faulty)
    with structlog.testing.capture_logs() as lines, EmbeddedBroker(str(tmp_path), kafka=CONFIGS) as broker:
        bad, good = (broker._node.broker.partition("topic", number).log for number in range(2))
        broker._loop.call_soon_threadsafe(expire, broker)
        eventually(lambda: good.start_offset == 10)
        with RawClient(int(broker.bootstrap_servers.rpartition(":")[2])) as client:
            produce(client, 1)
        eventually(lambda: good.start_offset == 20)
        assert bad.start_offset == 0
        failures = [entry for entry in lines if entry["event"] == "upkeep failed"]
        assert [entry["partition"] for entry in failures] == ["topic-0"]
        unreadable = "nowhere"
        eventually(lambda: bad.start_offset == 10)
        eventually(lambda: [entry for entry in lines if entry["event"] == "upkeep works again"])


def expire(broker: EmbeddedBroker) -> None:
    """From here on records are kept for a millisecond."""
    for number in range(2):
        log = broker._node.broker.partition("topic", number).log
        log.configure(replace(log.settings, retention_ms=1))  # type: ignore[attr-defined]
