"""Nothing that waits for the disk, or frees much of it, happens in the thread of the event loop."""

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gateways.raw import RawClient, produce_request
from tests.support.brokers import eventually
from tests.support.logs import batch
from tidelog.embedding import EmbeddedBroker
from tidelog.records.record import BatchBuilder
from tidelog.storage.local import files
from tidelog.wire.generated.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from tidelog.wire.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tidelog.wire.generated.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

LOOP = "tidelog-broker"
CONFIGS = {
    "log.retention.check.interval.ms": "100",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.enable": "true",
}


class Calls:
    """Which threads have made the calls of a kind."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.threads: dict[str, Counter[str]] = {}
        for owner, name in (
            (files, "_datasync"),
            (files, "_syncfs"),
            (os, "fsync"),
            (os, "unlink"),
            (os, "rmdir"),
        ):
            monkeypatch.setattr(owner, name, self._counted(name, getattr(owner, name)))

    def _counted(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        threads = self.threads[name] = Counter()

        def counted(*arguments: Any) -> Any:
            threads[threading.current_thread().name.rstrip("_0123456789")] += 1
            return call(*arguments)

        return counted

    def in_the_loop(self) -> dict[str, int]:
        return {name: threads[LOOP] for name, threads in self.threads.items() if threads[LOOP]}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    return Calls(monkeypatch)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(str(tmp_path), kafka=CONFIGS) as started:
        yield started


def start_of(client: RawClient, topic: str, partition: int = 0) -> int:
    wanted = ListOffsetsTopic(topic, [ListOffsetsPartition(partition, timestamp=-2)])
    offset: int = client.ask("ListOffsets", 5, ListOffsetsRequest(-1, 0, [wanted])).topics[0].partitions[0].offset
    return offset


def keyed(number: int) -> bytearray:
    builder = BatchBuilder()
    builder.append(b"v" * 500, key=b"%d" % (number % 3), timestamp=-1)
    return builder.build()


def error_of_produce(client: RawClient) -> int:
    reply = client.ask("Produce", 9, produce_request("compacted", keyed(0), acks=-1))
    code: int = reply.responses[0].partition_responses[0].error_code
    return code


def test_the_event_loop_never_syncs(
    calls: Calls, broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Topics come, are written, roll, are deleted from, compacted and removed; a full disk fails an append."""
    for threads in calls.threads.values():
        threads.clear()  # of the start
    with RawClient(int(broker.bootstrap_servers.rpartition(":")[2])) as client:
        client.create_topic("many", 100)
        client.create_topic("expiring", 1, segment_bytes="1024", retention_ms="1")
        client.create_topic(
            "compacted", 1, segment_bytes="2048", cleanup_policy="compact", min_cleanable_dirty_ratio="0.01"
        )
        for number in range(200):
            assert client.produce("many", b"x", partition=number % 100, acks=-1).error_code == 0
        for number in range(20):
            old = batch(b"x" * 200, timestamp=1_700_000_000_000)
            client.ask("Produce", 9, produce_request("expiring", old, acks=-1))
            client.ask("Produce", 9, produce_request("compacted", keyed(number), acks=-1))

        wanted = [DeleteRecordsPartition(partition, -1) for partition in range(100)]
        request = DeleteRecordsRequest([DeleteRecordsTopic("many", wanted)], timeout_ms=10_000)
        results = client.ask("DeleteRecords", 2, request).topics[0].partitions
        assert [(one.error_code, one.low_watermark) for one in results] == [(0, 2)] * 100
        assert {start_of(client, "many", partition) for partition in range(100)} == {2}
        eventually(lambda: start_of(client, "expiring"), until=lambda start: start == 20)
        compacted = broker._node.broker.partition("compacted", 0).log.directory  # type: ignore[attr-defined]
        eventually(lambda: (Path(compacted) / "compaction").exists(), within=120)

        fail_the_next_write(monkeypatch, compacted)
        assert error_of_produce(client) != 0
        eventually(lambda: error_of_produce(client) == 0)

        deleted = DeleteTopicsRequest([DeleteTopicState("many"), DeleteTopicState("compacted")], [], 10_000)
        assert [one.error_code for one in client.ask("DeleteTopics", 6, deleted).responses] == [0, 0]
        eventually(lambda: not Path(compacted).exists())
        eventually(lambda: not list(tmp_path.glob("logs/~deleted*")))
    assert calls.in_the_loop() == {}
    assert sum(calls.threads["_datasync"].values()) > 100
    assert sum(calls.threads["unlink"].values()) > 100


def fail_the_next_write(monkeypatch: pytest.MonkeyPatch, directory: str) -> None:
    write, is_left = files.OsFile.pwrite, [True]

    def failing(file: files.OsFile, data: Any, position: int) -> None:
        is_segment = file.path.endswith(".log") and ".cleaned." not in file.path
        if is_left and is_segment and os.path.dirname(file.path) == directory:
            is_left.clear()
            write(file, bytes(data)[: len(data) // 2], position)
            raise OSError(28, "No space left on device", file.path)
        write(file, data, position)

    monkeypatch.setattr(files.OsFile, "pwrite", failing)
