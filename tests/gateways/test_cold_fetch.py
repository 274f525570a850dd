"""Fetches of what has left memory: they wait for the disk, and nobody waits for them."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateways.raw import RawClient, fetch_request, partitions_of, values_of
from tests.support.page_cache import evict, tells_what_is_cached
from tidelog.embedding import EmbeddedBroker
from tidelog.storage.local.files import NotCached

TOPIC, BATCHES = "topic", 200
SMALL_SEGMENTS = {"log.segment.bytes": "20000"}
VALUES = [b"%d" % number * 300 for number in range(BATCHES)]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    if not tells_what_is_cached(tmp_path):
        pytest.skip("this file system does not tell what is in memory, or keeps all of it")
    with EmbeddedBroker(str(tmp_path), kafka=SMALL_SEGMENTS) as first, client_of(first) as client:
        client.create_topic(TOPIC, 2)
        for value in VALUES:
            client.produce(TOPIC, value)
    with EmbeddedBroker(str(tmp_path), kafka=SMALL_SEGMENTS) as started:  # anew: it has nothing in its own memory
        yield started


def client_of(broker: EmbeddedBroker) -> RawClient:
    return RawClient(int(broker.bootstrap_servers.rpartition(":")[2]))


def test_they_bring_everything(broker: EmbeddedBroker, tmp_path: Path) -> None:
    with client_of(broker) as client:
        evict(tmp_path)
        found: list[bytes | None] = []
        while len(found) < BATCHES:
            data = client.fetch(TOPIC, offset=len(found), partition_max_bytes=50_000)
            assert data.error_code == 0
            found += values_of(data)
            evict(tmp_path)
        assert found == VALUES


def test_others_are_served_while_the_disk_is_slow(
    broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_read, read_it = threading.Event(), NotCached.read_it

    def slow(missing: NotCached, times: int) -> None:
        assert may_read.wait(20)
        read_it(missing, times)

    monkeypatch.setattr(NotCached, "read_it", slow)
    with client_of(broker) as reader, client_of(broker) as other:
        evict(tmp_path)
        reader.send("Fetch", 12, fetch_request(TOPIC, {0: 0}, max_wait_ms=100, min_bytes=1))
        for number in range(20):
            assert other.produce(TOPIC, b"new", partition=1).base_offset == number
        may_read.set()
        assert values_of(partitions_of(reader.reply())[0])[0] == VALUES[0]
