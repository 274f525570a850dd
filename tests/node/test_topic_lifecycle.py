"""Topics come and go while the disk fails: over the wire, with a broker in this process whose file calls can fail."""

import errno
import gc
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from tests.gateways.raw import RawClient, produce_request
from tests.support.brokers import eventually
from tests.support.logs import batch
from tidelog.broker import broker as broker_module
from tidelog.client import connect
from tidelog.embedding import EmbeddedBroker
from tidelog.storage.local.files import Files, OsFiles
from tidelog.storage.local.layout import topic_of
from tidelog.storage.table import is_installed
from tidelog.wire.generated.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from tidelog.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.wire.generated.metadata import MetadataRequest, MetadataRequestTopic

STORAGE_ERROR, LEADER_NOT_AVAILABLE = 56, 5


class Disk:
    """Makes calls of the real file system fail. `fails(call, path)` is asked before each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.error: Callable[[str, str], int | None] = lambda _call, _path: None
        for call in ("open", "make_directories", "rename"):
            monkeypatch.setattr(OsFiles, call, self._checked(call, getattr(OsFiles, call)))

    def _checked(self, call: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def checked(files: Files, path: str, *args: Any, **named: Any) -> Any:
            number = self.error(call, path)
            if number is not None:
                raise OSError(number, os.strerror(number), path)
            return real(files, path, *args, **named)

        return checked

    def heal(self) -> None:
        self.error = lambda _call, _path: None

    def fail(self, call: str, number: int, *, at: str) -> None:
        self.error = lambda called, path: number if called == call and at in path else None


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition that could not be opened is tried again whenever somebody asks."""
    monkeypatch.setattr(broker_module, "_FIRST_RETRY_S", 0.0)
    monkeypatch.setattr(broker_module, "_LAST_RETRY_S", 0.0)


def raw(broker: EmbeddedBroker) -> RawClient:
    return RawClient(int(broker.bootstrap_servers.rpartition(":")[2]))


def values(broker: EmbeddedBroker, topic: str) -> list[bytes | None]:
    with connect(broker.bootstrap_servers) as client:
        return [record.value for record in client.consume(topic, follow=False)]


def produce(broker: EmbeddedBroker, topic: str, *records: bytes) -> None:
    with connect(broker.bootstrap_servers) as client:
        for record in records:
            client.produce(topic, record)


def directories(data: Path) -> list[str]:
    return sorted(name for name in os.listdir(data / "logs"))


def test_a_deleted_topic_whose_removal_failed_never_comes_back(tmp_path: Path, disk: Disk) -> None:
    with EmbeddedBroker(str(tmp_path)) as broker:
        with connect(broker.bootstrap_servers) as client:
            client.create_topic("t", partitions=1)
            produce(broker, "t", b"old")
            (old,) = directories(tmp_path)
            disk.fail("rename", errno.EIO, at=old)
            client.delete_topic("t")
            client.create_topic("t", partitions=1)
        assert values(broker, "t") == []
        produce(broker, "t", b"new")
        assert values(broker, "t") == [b"new"]
        assert old in directories(tmp_path), "the removal did not fail"
    disk.heal()
    with EmbeddedBroker(str(tmp_path)) as broker:
        assert values(broker, "t") == [b"new"]
        eventually(lambda: directories(tmp_path), until=lambda left: old not in left and len(left) == 1)


CANNOT_MAKE = [("make_directories", errno.ENOSPC), ("open", errno.EMFILE), ("open", errno.ENOSPC)]


@pytest.mark.parametrize(("call", "number"), CANNOT_MAKE, ids=["no inodes", "no descriptors", "no inode for a file"])
def test_a_topic_whose_directories_cannot_be_made_is_not_created(
    tmp_path: Path, disk: Disk, call: str, number: int
) -> None:
    new = CreateTopicsRequest([CreatableTopic("t", 3, 1)], timeout_ms=10_000)
    with EmbeddedBroker(str(tmp_path)) as broker, raw(broker) as client:
        disk.fail(call, number, at="/logs/t~")
        (answer,) = client.ask("CreateTopics", 5, new).topics
        assert answer.error_code == STORAGE_ERROR
        assert os.strerror(number) in answer.error_message
        assert client.ask("Metadata", 9, MetadataRequest(topics=None)).topics == []
        eventually(lambda: directories(tmp_path), until=lambda left: left == [])
        disk.heal()
        assert client.ask("CreateTopics", 5, new).topics[0].error_code == 0
        produce(broker, "t", b"x")
        assert values(broker, "t") == [b"x"]
    with EmbeddedBroker(str(tmp_path)) as broker:
        assert values(broker, "t") == [b"x"]


@pytest.mark.parametrize(("call", "number"), CANNOT_MAKE, ids=["no inodes", "no descriptors", "no inode for a file"])
def test_a_topic_whose_new_directories_cannot_be_made_does_not_grow(
    tmp_path: Path, disk: Disk, call: str, number: int
) -> None:
    def grow() -> int:
        request = CreatePartitionsRequest([CreatePartitionsTopic("t", 3, None)], timeout_ms=10_000)
        (answer,) = client.ask("CreatePartitions", 1, request).results
        return int(answer.error_code)

    with EmbeddedBroker(str(tmp_path)) as broker, raw(broker) as client:
        client.create_topic("t")
        topic = directories(tmp_path)[0]
        disk.fail(call, number, at=f"{topic}/2")
        assert grow() == STORAGE_ERROR
        (known,) = client.ask("Metadata", 9, MetadataRequest([MetadataRequestTopic(name="t")])).topics
        assert len(known.partitions) == 1
        disk.heal()
        assert grow() == 0
        for partition in range(3):
            assert client.produce("t", b"x", partition=partition).error_code == 0


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO])
def test_a_partition_that_could_not_be_opened_at_the_start_is_opened_when_the_cause_is_gone(
    tmp_path: Path, disk: Disk, number: int
) -> None:
    def described() -> list[int]:
        (topic,) = client.ask("Metadata", 9, MetadataRequest([MetadataRequestTopic(name="t")])).topics
        return [partition.error_code for partition in topic.partitions]

    with EmbeddedBroker(str(tmp_path)) as broker:
        produce_to(broker, tmp_path)
    disk.fail("open", number, at="/0/")
    with EmbeddedBroker(str(tmp_path)) as broker, raw(broker) as client:
        assert described() == [LEADER_NOT_AVAILABLE]
        assert client.produce("t", b"x").error_code == STORAGE_ERROR
        disk.heal()
        eventually(described, until=lambda errors: errors == [0])
        assert values(broker, "t") == [b"old"]
        produce(broker, "t", b"new")
        assert values(broker, "t") == [b"old", b"new"]


def produce_to(broker: EmbeddedBroker, data: Path) -> None:
    broker.create_topic("t")
    produce(broker, "t", b"old")
    assert len(directories(data)) == 1


def test_requests_for_a_partition_that_cannot_be_opened_leave_nothing_behind(tmp_path: Path, disk: Disk) -> None:
    """An error that was kept and raised again had the frames, and so the requests, of all who had met it."""

    def kept() -> int:
        gc.collect()
        return sum(isinstance(thing, TracebackType) for thing in gc.get_objects())

    with EmbeddedBroker(str(tmp_path)) as broker:
        produce_to(broker, tmp_path)
    disk.fail("open", errno.EIO, at="/0/")
    request = produce_request("t", batch(b"x" * 10_000))
    with EmbeddedBroker(str(tmp_path)) as broker, raw(broker) as client:
        counts = []
        for _ in range(3):
            for _ in range(50):
                (topic,) = client.ask("Produce", 7, request).responses
                assert topic.partition_responses[0].error_code == STORAGE_ERROR
            counts.append(kept())
        assert counts[2] - counts[0] < 50, counts
        disk.heal()


def test_a_data_directory_of_an_earlier_version_is_taken_over(tmp_path: Path) -> None:
    """Its directories were named after topics. One that belongs to no topic stays where it is, and what it holds is
    never a new topic's."""
    with EmbeddedBroker(str(tmp_path)) as broker, connect(broker.bootstrap_servers) as client:
        for topic in ("a", "b.c", "gone"):
            client.create_topic(topic, partitions=2)
            for partition in (0, 1):
                client.produce(topic, f"{topic} {partition}", partition=partition)
    for name in directories(tmp_path):
        known = topic_of(name)
        assert known is not None
        os.rename(tmp_path / "logs" / name, tmp_path / "logs" / known.name)
    with sqlite3.connect(tmp_path / "metadata.sqlite") as metadata:
        metadata.execute("DELETE FROM cluster WHERE name = 'logs.layout'")
        metadata.execute("DELETE FROM topic WHERE name = 'gone'")
    metadata.close()
    for _ in range(2):
        with EmbeddedBroker(str(tmp_path)) as broker:
            assert values(broker, "a") == [b"a 0", b"a 1"]
            assert values(broker, "b.c") == [b"b.c 0", b"b.c 1"]
    with EmbeddedBroker(str(tmp_path)) as broker:
        broker.create_topic("gone", 2)
        assert values(broker, "gone") == []
    with EmbeddedBroker(str(tmp_path)) as broker:
        assert values(broker, "gone") == []
    assert "gone" in directories(tmp_path)
    assert len(directories(tmp_path)) == 4


def test_a_start_that_cannot_take_over_an_earlier_version_s_logs_fails_and_changes_nothing(
    tmp_path: Path, disk: Disk
) -> None:
    with EmbeddedBroker(str(tmp_path)) as broker:
        produce_to(broker, tmp_path)
    (name,) = directories(tmp_path)
    os.rename(tmp_path / "logs" / name, tmp_path / "logs" / "t")
    with sqlite3.connect(tmp_path / "metadata.sqlite") as metadata:
        metadata.execute("DELETE FROM cluster WHERE name = 'logs.layout'")
    metadata.close()
    disk.fail("rename", errno.EROFS, at="/logs/t")
    with pytest.raises(Exception, match="read-only"):
        EmbeddedBroker(str(tmp_path))
    disk.heal()
    with EmbeddedBroker(str(tmp_path)) as broker:
        assert values(broker, "t") == [b"old"]


def test_the_records_of_a_topic_whose_metadata_is_lost_can_be_had_back_by_hand(tmp_path: Path) -> None:
    """As docs/formats/metadata.md says."""
    with EmbeddedBroker(str(tmp_path)) as broker:
        produce_to(broker, tmp_path)
    (old,) = directories(tmp_path)
    (tmp_path / "metadata.sqlite").unlink()
    with EmbeddedBroker(str(tmp_path)) as broker:
        broker.create_topic("t")
        assert values(broker, "t") == []
    (new,) = set(directories(tmp_path)) - {old}
    shutil.rmtree(tmp_path / "logs" / new / "0")
    os.rename(tmp_path / "logs" / old / "0", tmp_path / "logs" / new / "0")
    with EmbeddedBroker(str(tmp_path)) as broker:
        assert values(broker, "t") == [b"old"]


def test_topics_whose_names_differ_in_case_only_have_directories_that_do_not(tmp_path: Path) -> None:
    with EmbeddedBroker(str(tmp_path)) as broker:
        for topic in ("Foo", "foo", "FOO"):
            broker.create_topic(topic)
            produce(broker, topic, topic.encode())
        assert [values(broker, topic) for topic in ("Foo", "foo", "FOO")] == [[b"Foo"], [b"foo"], [b"FOO"]]
        assert len({name.lower() for name in directories(tmp_path)}) == 3


def test_nobody_else_may_read_what_a_broker_keeps(tmp_path: Path) -> None:
    data = tmp_path / "data"
    before = os.umask(0o022)
    try:
        with EmbeddedBroker(str(data)) as broker:
            produce_to(broker, data)
            modes = dict(_modes(data))
        modes |= dict(_modes(data))
    finally:
        os.umask(before)
    assert {"metadata.sqlite", "lock", "checkpoint", "00000000000000000000.log"} <= {
        Path(path).name for path in modes
    }
    assert {path: oct(mode) for path, mode in modes.items() if mode & 0o077} == {}


@pytest.mark.skipif(not is_installed(), reason="needs the extra table")
def test_nobody_else_may_look_into_the_directories_of_tables(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with EmbeddedBroker(str(tmp_path)) as broker:
        broker.create_topic("t", 1, **{"cleanup.policy": "compact", "tidelog.table": "true"})
        tables = tmp_path / "tables"
        eventually(lambda: list(tables.glob("*/0/CURRENT")), until=bool)
        found = [tables, *tables.glob("*"), *tables.glob("*/0")]
        assert [oct(path.stat().st_mode & 0o777) for path in found] == ["0o700"] * 3


def test_a_directory_that_was_opened_to_others_stays_so(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    with EmbeddedBroker(str(tmp_path)):
        pass
    assert tmp_path.stat().st_mode & 0o777 == 0o750


def _modes(path: Path) -> Iterator[tuple[str, int]]:
    yield str(path), path.stat().st_mode & 0o777
    if path.is_dir():
        for child in path.iterdir():
            yield from _modes(child)
