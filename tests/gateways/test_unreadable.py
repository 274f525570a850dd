"""A disk that cannot be read at one place: that concerns the partition that is stored there, and no other."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateways.raw import RawClient, fetch_request, partitions_of, produce_request, records_of
from tests.support.logs import NOW_MS, batch
from tidelog.embedding import EmbeddedBroker
from tidelog.records.batch import iterate
from tidelog.storage.local.files import OsFile
from tidelog.wire.generated.fetch import PartitionData
from tidelog.wire.generated.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

KAFKA_STORAGE_ERROR = 56
TOPIC, ROLLING = "topic", "rolling"
BATCHES = 20
ANYWHERE = range(1 << 62)


class Faults:
    """Where a file cannot be read, by whatever call."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = ""
        self.positions = ANYWHERE
        pread, sendfile = OsFile.pread, os.sendfile

        def faulty_pread(file: OsFile, size: int, position: int) -> bytes:
            self.check(file.path, position, size)
            return pread(file, size, position)

        def faulty_sendfile(out: int, in_: int, offset: int, count: int) -> int:
            path = os.readlink(f"/proc/self/fd/{in_}")
            if path == self.path and offset < self.positions.start:  # as far as it goes
                return sendfile(out, in_, offset, min(count, self.positions.start - offset))
            self.check(path, offset, count)
            return sendfile(out, in_, offset, count)

        monkeypatch.setattr(OsFile, "pread", faulty_pread)
        monkeypatch.setattr(os, "sendfile", faulty_sendfile)

    def check(self, path: str, position: int, size: int) -> None:
        if path == self.path and position < self.positions.stop and position + size > self.positions.start:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    return Faults(monkeypatch)


@pytest.fixture
def broker(tmp_path: Path, faults: Faults) -> Iterator[EmbeddedBroker]:
    """With three partitions of 20 batches in files: it has been started anew, and has nothing in memory."""
    with EmbeddedBroker(str(tmp_path)) as first, RawClient(port_of(first)) as client:
        client.create_topic(TOPIC, 3)
        client.create_topic(ROLLING, segment_bytes="100000")
        for topic, partition in ((TOPIC, 0), (TOPIC, 1), (TOPIC, 2), (ROLLING, 0)):
            for number in range(BATCHES):
                data = batch(b"x" * 20_000, timestamp=NOW_MS + number)
                client.ask("Produce", 9, produce_request(topic, data, partition=partition, acks=-1))
    with EmbeddedBroker(str(tmp_path)) as broker:
        yield broker


def port_of(broker: EmbeddedBroker) -> int:
    return int(broker.bootstrap_servers.rpartition(":")[2])


def log_file(broker: EmbeddedBroker, partition: int, topic: str = TOPIC) -> Path:
    log = broker._node.broker.partition(topic, partition).log
    return Path(log.directory) / f"{0:020d}.log"  # type: ignore[attr-defined]


def fetched(
    client: RawClient, offsets: dict[int, int], topic: str = TOPIC, **options: int
) -> dict[int, PartitionData]:
    return partitions_of(client.ask("Fetch", 12, fetch_request(topic, offsets, **options)))


def listed(client: RawClient, timestamp: int, topic: str = TOPIC, partitions: int = 3) -> dict[int, tuple[int, int]]:
    wanted = [ListOffsetsPartition(partition, timestamp=timestamp) for partition in range(partitions)]
    response = client.ask("ListOffsets", 5, ListOffsetsRequest(-1, 0, [ListOffsetsTopic(topic, wanted)]))
    return {one.partition_index: (one.error_code, one.offset) for one in response.topics[0].partitions}


def test_a_partition_that_cannot_be_read_fails_alone(broker: EmbeddedBroker, faults: Faults) -> None:
    faults.path = str(log_file(broker, 1))
    with RawClient(port_of(broker)) as client:
        found = fetched(client, {0: 0, 1: 0, 2: 0})
        assert [found[number].error_code for number in range(3)] == [0, KAFKA_STORAGE_ERROR, 0]
        assert [len(records_of(found[number])) for number in (0, 2)] == [BATCHES, BATCHES]
        assert listed(client, NOW_MS + 7) == {0: (0, 7), 1: (KAFKA_STORAGE_ERROR, -1), 2: (0, 7)}
        assert listed(client, -3) == {0: (0, 19), 1: (KAFKA_STORAGE_ERROR, -1), 2: (0, 19)}
        faults.path = ""
        assert len(records_of(fetched(client, {1: 0})[1])) == BATCHES
        assert listed(client, NOW_MS + 7)[1] == (0, 7)


@pytest.mark.parametrize("batches_at_once", [1, BATCHES], ids=["read", "sent from the file"])
def test_what_fails_while_a_reply_is_written_is_told_from_then_on_by_its_partition_alone(
    broker: EmbeddedBroker, faults: Faults, batches_at_once: int
) -> None:
    """The first time the reply is under way already, and all that can be done is to break off."""
    path = log_file(broker, 1)
    views = list(iterate(path.read_bytes()))
    size = views[0].header.size
    bad = views[10].position + 15_000
    faults.path, faults.positions = str(path), range(bad, bad + 512)
    offsets, seen, breaks = {0: 0, 1: 0}, {0: 0, 1: 0}, 0
    errors: list[tuple[int, int]] = []
    while not errors:
        with RawClient(port_of(broker)) as client:
            try:
                found = fetched(client, offsets, partition_max_bytes=batches_at_once * size)
            except ConnectionResetError:
                breaks += 1
                continue
        for number, data in found.items():
            if data.error_code:
                errors.append((number, data.error_code))
            seen[number] += len(records_of(data))
            offsets[number] = seen[number]
    assert errors == [(1, KAFKA_STORAGE_ERROR)]
    assert seen[1] == 10, "all that can be read was"
    assert seen[0] >= 10, "and nobody else waited for it"
    assert breaks == 1
    faults.path = ""
    with RawClient(port_of(broker)) as client:
        while offsets[1] < BATCHES:
            data = fetched(client, {1: offsets[1]}, partition_max_bytes=batches_at_once * size)[1]
            assert data.error_code == 0
            offsets[1] += len(records_of(data))


def test_an_index_that_is_cut_while_it_is_open_does_no_harm(broker: EmbeddedBroker) -> None:
    """If it were mapped, a look at it would end the process."""
    path = log_file(broker, 0, ROLLING)
    with RawClient(port_of(broker)) as client:
        assert records_of(fetched(client, {0: 3}, ROLLING)[0])[0].offset == 3
        assert listed(client, NOW_MS + 3, ROLLING, partitions=1) == {0: (0, 3)}
        for suffix in (".index", ".timeindex"):
            assert path.with_suffix(suffix).stat().st_size >= 24
            os.truncate(path.with_suffix(suffix), 8)
        for offset in reversed(range(4)):
            found = fetched(client, {0: offset}, ROLLING, partition_max_bytes=1)[0]
            assert records_of(found)[0].offset == offset
            assert listed(client, NOW_MS + offset, ROLLING, partitions=1) == {0: (0, offset)}
