"""Compacted topics as real clients see them: what is left, where it stands, and that nobody is disturbed."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.e2e.clients import CLIENTS
from tests.e2e.clients.base import Message
from tests.e2e.clients.confluent import common
from tests.e2e.clients.confluent_admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from tests.e2e.conftest import topic_maker
from tests.support.brokers import BrokerProcess, children, eventually, hide_modules, unique
from tests.support.engines import Engine, assert_sound, broker_process

SETTINGS = {"kafka.log.cleaner.backoff.ms": "50", "kafka.log.retention.check.interval.ms": "100"}
COMPACTED = {"cleanup.policy": "compact", "segment.bytes": "65536", "min.cleanable.dirty.ratio": "0.01"}
Found = list[tuple[int, bytes, bytes | None]]


@pytest.fixture(scope="module")
def cleaning(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with broker_process(engine, tmp_path_factory.mktemp("cleaning"), SETTINGS) as process:
        yield process
        process.stop()
        assert "Traceback" not in process.log, process.log
        assert "compaction failed" not in process.log, process.log


def write(broker: BrokerProcess, topic: str, pairs: list[tuple[bytes, bytes | None]], **configs: object) -> None:
    producer = Producer({**common(broker.bootstrap), "linger.ms": 5, "batch.num.messages": 100, **configs})
    failures: list[object] = []

    def told(error: object, _message: object) -> None:
        if error is not None:
            failures.append(error)

    for key, value in pairs:
        while True:
            try:
                producer.produce(topic, value, key, partition=0, on_delivery=told)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(30) == 0
    assert not failures


def read(broker: BrokerProcess, topic: str, start: int = 0) -> Found:
    """Everything from an offset to the end that the broker tells."""
    consumer = Consumer({**common(broker.bootstrap), "group.id": unique("reader"), "enable.partition.eof": True})
    found: Found = []
    try:
        consumer.assign([TopicPartition(topic, 0, start)])
        while True:
            message = consumer.poll(20)
            assert message is not None, "the end was never reached"
            error = message.error()
            if error is not None:
                assert error.name() == "_PARTITION_EOF", error
                return found
            found.append((message.offset() or 0, message.key() or b"", message.value()))
    finally:
        consumer.close()


def alter(broker: BrokerProcess, topic: str, configs: dict[str, str]) -> None:
    admin = AdminClient(common(broker.bootstrap))
    entries = [ConfigEntry(k, v, incremental_operation=AlterConfigOpType.SET) for k, v in configs.items()]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(10)


def test_the_latest_value_of_every_key_is_left_where_it_was(cleaning: BrokerProcess) -> None:
    topic = topic_maker(cleaning)(configs=COMPACTED)
    rng = random.Random(1)
    pairs: list[tuple[bytes, bytes | None]] = [
        (b"key-%d" % rng.randrange(300), b"value-%d-" % number + b"x" * 50) for number in range(20_000)
    ]
    write(cleaning, topic, pairs, **{"compression.type": "zstd"})
    final = {key: (offset, value) for offset, (key, value) in enumerate(pairs)}
    alter(cleaning, topic, {"segment.ms": "100"})  # the active segment is never compacted: let it end by its age
    found = eventually(lambda: read(cleaning, topic), until=lambda found: len(found) <= 300, within=40)
    assert found == [(offset, key, value) for offset, key, value in sorted((o, k, v) for k, (o, v) in final.items())]
    # Any offset can be asked for, also one that is gone.
    middle = found[150][0] - 1
    assert read(cleaning, topic, middle)[0] == (found[149] if found[149][0] == middle else found[150])
    watermarks = Consumer({**common(cleaning.bootstrap), "group.id": "x"})
    assert watermarks.get_watermark_offsets(TopicPartition(topic, 0), 10) == (0, 20_000)
    watermarks.close()


def test_tombstones_are_seen_for_a_while_and_then_go(cleaning: BrokerProcess) -> None:
    topic = topic_maker(cleaning)(configs={**COMPACTED, "delete.retention.ms": "1500", "segment.ms": "100"})
    write(cleaning, topic, [(b"a", b"1"), (b"b", b"1"), (b"a", None), (b"c", b"1")])
    assert eventually(lambda: read(cleaning, topic), until=lambda found: len(found) == 3, within=20) == [
        (1, b"b", b"1"),
        (2, b"a", None),
        (3, b"c", b"1"),
    ]
    assert eventually(lambda: read(cleaning, topic), until=lambda found: len(found) == 2, within=20) == [
        (1, b"b", b"1"),
        (3, b"c", b"1"),
    ]


def test_compact_and_delete_together(cleaning: BrokerProcess) -> None:
    configs = {**COMPACTED, "cleanup.policy": "compact,delete", "segment.ms": "100", "retention.ms": "-1"}
    topic = topic_maker(cleaning)(configs=configs)
    write(cleaning, topic, [(b"k%d" % (number % 10), b"%d" % number) for number in range(100)])
    eventually(lambda: read(cleaning, topic), until=lambda found: len(found) == 10, within=20)
    alter(cleaning, topic, {"retention.ms": "1"})
    eventually(lambda: read(cleaning, topic), until=lambda found: not found, within=20)


def test_a_topic_that_becomes_compacted_is_compacted_and_says_so(cleaning: BrokerProcess) -> None:
    topic = topic_maker(cleaning)(configs={"segment.ms": "100"})
    write(cleaning, topic, [(b"k", b"%d" % number) for number in range(50)])
    admin = AdminClient(common(cleaning.bootstrap))
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    described = admin.describe_configs([resource])[resource].result(10)
    assert described["cleanup.policy"].value == "delete"
    assert described["min.cleanable.dirty.ratio"].value == "0.5"
    assert described["delete.retention.ms"].value == "86400000"
    assert len(read(cleaning, topic)) == 50
    alter(cleaning, topic, {"cleanup.policy": "compact"})
    eventually(lambda: read(cleaning, topic), until=lambda found: [o for o, _, _ in found] == [49], within=20)


def test_consumers_and_producers_are_not_disturbed(cleaning: BrokerProcess) -> None:
    """A consumer that reads on while the log under it is exchanged sees rising offsets, and in the end the last value
    of every key; an idempotent producer goes on."""
    topic = topic_maker(cleaning)(configs={**COMPACTED, "segment.bytes": "16384", "min.cleanable.dirty.ratio": "0"})
    seen: Found = []
    stop = threading.Event()
    failures: list[str] = []

    def consume() -> None:
        consumer = Consumer(
            {**common(cleaning.bootstrap), "group.id": unique("slow"), "fetch.message.max.bytes": 4096}
        )
        consumer.assign([TopicPartition(topic, 0, 0)])
        while not stop.is_set() or (seen and seen[-1][0] < len(sent) - 1 and not failures):
            message = consumer.poll(1)
            if message is None:
                continue
            if message.error() is not None:
                failures.append(str(message.error()))
                break
            seen.append((message.offset() or 0, message.key() or b"", message.value()))
        consumer.close()

    sent: list[tuple[bytes, bytes | None]] = []
    reader = threading.Thread(target=consume)
    reader.start()
    try:
        deadline = time.monotonic() + 60
        while len(sent) < 12_000 or (cleaning.log.count('"compacted"') == 0 and time.monotonic() < deadline):
            pairs: list[tuple[bytes, bytes | None]] = [
                (b"key-%d" % (number % 97), b"%d-%d" % (len(sent), number) + b"x" * 40) for number in range(1000)
            ]
            write(cleaning, topic, pairs, **{"enable.idempotence": True})
            sent += pairs
        final = {key: (offset, value) for offset, (key, value) in enumerate(sent)}
    finally:
        stop.set()
        reader.join(60)
    assert not failures
    offsets = [offset for offset, _, _ in seen]
    assert offsets == sorted(set(offsets))
    assert {key: (offset, value) for offset, key, value in seen} == final
    assert cleaning.log.count('"compacted"') > 0


@pytest.mark.parametrize("name", list(CLIENTS))
def test_every_client_reads_over_holes_horizons_and_batches_without_records(
    engine: Engine, cleaning: BrokerProcess, name: str
) -> None:
    """An idempotent producer's newest batch stays without records; a tombstone's batch has a delete horizon."""
    client = CLIENTS[name](cleaning.bootstrap)
    topic = topic_maker(cleaning)(configs={**COMPACTED, "segment.ms": "100"})
    client.produce(topic, [Message(b"first", key=b"a", partition=0)], idempotent=True, codec="gzip")
    client.produce(topic, [Message(b"%d" % n, key=b"k%d" % (n % 3), partition=0) for n in range(20)], codec="gzip")
    client.produce(topic, [Message(None, key=b"k1", partition=0)])
    client.produce(topic, [Message(b"second", key=b"a", partition=0)])
    expected = [(18, b"k2", b"17"), (19, b"k0", b"18"), (21, b"k1", None), (22, b"a", b"second")]
    eventually(lambda: read(cleaning, topic), until=lambda found: found == expected, within=20)
    written_ms = time.time() * 1000
    records = client.read(topic, 4)
    assert [(record.offset, record.key, record.value) for record in records] == expected
    assert all(written_ms - 60_000 < record.timestamp_ms <= written_ms for record in records)
    if engine is Engine.CLUSTER:
        return
    dumped = subprocess.run(
        [sys.executable, "-m", "tidelog", "log", "dump", f"{cleaning.data_dir}/logs/{topic}", "--batches", "--json"],
        capture_output=True,
        check=True,
    )
    batches = [json.loads(line) for line in dumped.stdout.splitlines()]
    assert [batch["base_offset"] for batch in batches if batch.get("records") == 0] == [0]


def test_without_kernels_it_works_and_says_that_it_is_slow(
    engine: Engine, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path_factory.mktemp("plain")
    hide_modules(directory, monkeypatch, "numba", "numpy", "pyarrow")
    with broker_process(engine, directory, SETTINGS) as broker:
        topic = topic_maker(broker)(configs={**COMPACTED, "segment.ms": "100"})
        write(broker, topic, [(b"k%d" % (number % 5), b"%d" % number) for number in range(100)])
        found = eventually(lambda: read(broker, topic), until=lambda found: len(found) == 5, within=20)
        assert [offset for offset, _, _ in found] == [95, 96, 97, 98, 99]
        assert broker.log.count("tidelog[columnar]") == 1
        broker.stop()


def wait_for_a_pass(broker: BrokerProcess) -> None:
    before = broker.log.count('"compacted"')
    eventually(lambda: broker.log.count('"compacted"'), until=lambda seen: seen > before, within=30)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_killed_again_and_again_while_it_compacts_under_load(
    engine: Engine, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("killed")
    settings = {**SETTINGS, "kafka.log.cleaner.backoff.ms": "1"}
    with broker_process(engine, directory, settings, is_killed=True) as broker:
        configs = {**COMPACTED, "segment.bytes": "16384", "min.cleanable.dirty.ratio": "0"}
        topic = topic_maker(broker)(configs=configs)
        acknowledged: dict[bytes, tuple[int, bytes]] = {}
        sent: dict[bytes, list[bytes]] = {}
        stop = threading.Event()

        def load() -> None:
            producer = Producer({**common(broker.bootstrap), "enable.idempotence": True, "batch.num.messages": 50})

            def told(error: object, message: object) -> None:
                if error is None:
                    key, offset = message.key(), message.offset()  # type: ignore[attr-defined]
                    if offset >= acknowledged.get(key, (-1, b""))[0]:
                        acknowledged[key] = offset, message.value()  # type: ignore[attr-defined]

            number = 0
            while not stop.is_set():
                key, value = b"key-%d" % (number % 211), b"%d" % number + b"x" * 80
                sent.setdefault(key, []).append(value)
                try:
                    producer.produce(topic, value, key, partition=0, on_delivery=told)
                except BufferError:
                    producer.poll(0.05)
                    continue
                number += 1
                while len(producer) > 1000 and not stop.is_set():
                    producer.poll(0.05)
            assert producer.flush(30) == 0

        loader = threading.Thread(target=load)
        loader.start()
        rng = random.Random(7)
        try:
            for _ in range(3):
                wait_for_a_pass(broker)
                time.sleep(rng.uniform(0, 0.2))  # any moment will do
                broker.kill()
                broker.start()
        finally:
            stop.set()
            loader.join(60)
        found = {key: (offset, value) for offset, key, value in read(broker, topic)}
        for key, (offset, value) in acknowledged.items():
            assert found[key][0] >= offset, "no acknowledged value is lost"
            assert found[key][0] > offset or found[key][1] == value
            assert found[key][1] in sent[key]
        broker.stop()
        assert_sound(broker)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_kernels_that_no_one_has_compiled_neither_hold_up_nor_stop_the_broker(engine: Engine, tmp_path: Path) -> None:
    """Another process compiles them: it goes with the broker, and what it has made is there for the next one. All
    cleaners wait for it."""
    broker = broker_process(engine, tmp_path, {**SETTINGS, "kafka.log.cleaner.threads": "2"})
    cache = tmp_path / "cache"
    broker.environment["NUMBA_CACHE_DIR"] = str(cache)
    with broker:
        topics = [topic_maker(broker)(configs=COMPACTED) for _ in range(2)]
        (compiler,) = eventually(lambda: children(broker.pid))
        # A child that is stopped before it runs its program would stop the thread that starts it, too.
        eventually(lambda: b"tidelog.records.loading" in Path(f"/proc/{compiler}/cmdline").read_bytes())
        os.kill(compiler, signal.SIGSTOP)
        compiled = set(cache.rglob("*"))
        for topic in topics:
            write(broker, topic, [(b"key", bytes(100))] * 2000)
        broker.stop()
        assert not Path(f"/proc/{compiler}").exists()
        assert "compacted" not in broker.log
        assert set(cache.rglob("*")) == compiled, "the broker has compiled nothing itself"
        broker.start()
        assert eventually(lambda: children(broker.pid))
        eventually(lambda: "compacted" in broker.log, within=200)
        assert not children(broker.pid)
        broker.stop()
