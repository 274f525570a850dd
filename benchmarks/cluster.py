"""A cluster under load: brokers, a PostgreSQL and an S3 server (or a directory) on this machine.

    python -m benchmarks.cluster [--quick] [--store s3|file] [--dir DIR]

Beside each figure is what the machine itself can do, in the same run: uploads with commits and range reads without a
broker (`benchmarks.cluster_engine`), and the local engine. Prepared frames over raw sockets measure the brokers;
confluent-kafka measures what a user's program sees. Every acknowledgement is checked, and everything that was sent is
read back and counted.
"""

import argparse
import asyncio
import contextlib
import statistics
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.broker import FETCH, FETCH_VERSION, PRODUCE, PRODUCE_VERSION, TICKS, Raw
from benchmarks.cluster_engine import (
    BUNDLE_BYTES,
    PARTITIONS,
    delivery_times,
    measure_commits,
    measure_extents,
    pipeline,
    ranges,
)
from benchmarks.report import Report
from benchmarks.storage import make_batch
from benchmarks.transactions import small_transactions
from tests.support.brokers import BrokerProcess, eventually, unique
from tests.support.object_server import ObjectServer
from tests.support.postgres import PostgresServer, fresh_schema
from tidelog.client import connect
from tidelog.postgres import PostgresSettings
from tidelog.records.batch import iterate
from tidelog.storage.shared.object_stores.opening import open_object_store
from tidelog.storage.shared.postgres.order import PostgresOrder
from tidelog.wire.apis import BY_NAME
from tidelog.wire.envelope import decode_response, encode_request
from tidelog.wire.generated.fetch import FetchPartition, FetchRequest, FetchTopic
from tidelog.wire.generated.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tidelog.wire.generated.produce import PartitionProduceData, ProduceRequest, TopicProduceData

BATCH_BYTES = 64 << 10
WINDOW = 256  # requests of 64 KiB that are not answered yet
MANY = 1000  # partitions that are taken over
SECONDS = 120.0
LIST_OFFSETS, LATEST = BY_NAME["ListOffsets"], -1


class Servers:
    """A PostgreSQL and an object store. Each cluster gets a schema and a prefix of its own."""

    def __init__(self, stack: contextlib.ExitStack, directory: str, store: str) -> None:
        self._directory = directory
        self._postgres = PostgresServer()
        stack.callback(self._postgres.close)
        self._s3 = stack.enter_context(ObjectServer(Path(directory) / "s3")) if store == "s3" else None

    def new_storage(self) -> str:
        return self._s3.new_url() if self._s3 is not None else f"file://{self._directory}/{unique('objects')}"

    @property
    def options(self) -> dict[str, str]:
        """Of the object store."""
        return self._s3.options if self._s3 is not None else {}

    def new_settings(self) -> PostgresSettings:
        return PostgresSettings.parse(self._postgres.url(), schema=fresh_schema(), deadline_s=60)

    def environment(self) -> dict[str, str]:
        """Of the brokers of a new cluster."""
        metadata = {"TIDELOG_CLUSTER_METADATA": f"{self._postgres.url()}?schema={fresh_schema()}"}
        if self._s3 is None:
            return metadata
        return metadata | {
            "AWS_ENDPOINT_URL": self._s3.endpoint,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": self._s3.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self._s3.secret_access_key,
        }


class Brokers:
    """A new cluster, or, without servers, a single broker with the local engine."""

    def __init__(self, directory: str, size: int, servers: Servers | None) -> None:
        settings = {"kafka.log.retention.check.interval.ms": "300000", "shutdown-grace-ms": "3000"}
        environment: dict[str, str] = {}
        if servers is not None:
            settings["cluster.storage"] = servers.new_storage()
            environment = servers.environment()
        self.all = []
        for number in range(1, size + 1):
            own = {**settings, "node-id": str(number)} if servers is not None else settings
            broker = BrokerProcess(Path(directory) / unique("broker"), own, program=("-m", "tidelog"))
            broker.environment |= environment
            self.all.append(broker)

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.all)

    def cpu_seconds(self) -> float:
        return sum(_cpu_seconds(broker.pid) for broker in self.all if broker.is_running)

    def memory_mb(self) -> float:
        """Of the largest."""
        return max(broker.memory_bytes for broker in self.all if broker.is_running) / 1e6

    def create(self, topic: str, partitions: int) -> None:
        """Returns when each broker leads a share of the partitions."""
        with connect(self.bootstrap) as client:
            client.create_topic(topic, partitions=partitions)

            def led() -> set[int]:
                return {row.leader for row in client.topic(topic).partitions}

            if len(self.all) > 1:
                eventually(led, within=SECONDS, until=lambda found: len(found) == len(self.all), every=0.1)

    def leaders(self, topic: str) -> dict[int, BrokerProcess]:
        """By partition."""
        with connect(self.bootstrap) as client:
            leaders = {row.partition: row.leader for row in client.topic(topic).partitions}
        return {number: self.all[max(leader - 1, 0)] for number, leader in leaders.items()}


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


@contextlib.contextmanager
def running(directory: str, size: int, servers: Servers | None) -> Iterator[Brokers]:
    brokers = Brokers(directory, size, servers)
    try:
        for broker in brokers.all:
            broker.start()
        yield brokers
    finally:
        for broker in brokers.all:
            broker.end()


# Raw sockets


def produce(brokers: Brokers, topic: str, per_partition: int) -> float:
    """Bytes per second of ready batches to all partitions of a topic that was empty, over one connection to each
    leader; each reply is checked."""
    partitions: dict[BrokerProcess, list[int]] = defaultdict(list)
    for number, leader in brokers.leaders(topic).items():
        partitions[leader].append(number)
    batch = make_batch(BATCH_BYTES)
    failures: list[BaseException] = []

    def load(leader: BrokerProcess, numbers: list[int]) -> None:
        try:
            _produce_to(leader, topic, batch, numbers, per_partition)
        except BaseException as error:
            failures.append(error)

    began = time.perf_counter()
    _together([lambda item=item: load(*item) for item in partitions.items()])  # type: ignore[misc]
    taken = time.perf_counter() - began
    assert not failures, failures[0]
    return BATCH_BYTES * per_partition * sum(map(len, partitions.values())) / taken


def _produce_to(leader: BrokerProcess, topic: str, batch: bytearray, numbers: list[int], count: int) -> None:
    raw = Raw(leader.bootstrap)
    frames = []
    for number in numbers:
        data = TopicProduceData(topic, partition_data=[PartitionProduceData(number, batch)])
        message = ProduceRequest(None, -1, 60_000, [data])
        frames.append(b"".join(encode_request(PRODUCE, PRODUCE_VERSION, 1, "bench", message)))  # type: ignore[arg-type]
    room = threading.Semaphore(WINDOW)

    def send() -> None:
        for _ in range(count):
            for frame in frames:
                room.acquire()
                raw.socket.sendall(frame)

    sender = threading.Thread(target=send)
    sender.start()
    for turn in range(count):
        for number in numbers:
            reply = decode_response(PRODUCE, PRODUCE_VERSION, bytes(raw.frame()))
            room.release()
            result = reply.responses[0].partition_responses[0]
            assert (result.error_code, result.index, result.base_offset) == (0, number, turn), result
    sender.join()
    raw.socket.close()


def consume(brokers: Brokers, topic: str, per_partition: int) -> float:
    """Bytes per second of a read of the whole topic, as `produce` has written it: from one leader after another, all
    its partitions in each fetch, as consumers do."""
    numbers: dict[BrokerProcess, list[int]] = defaultdict(list)
    for number, leader in brokers.leaders(topic).items():
        numbers[leader].append(number)
    began = time.perf_counter()
    read = sum(_consume_from(leader, topic, some, per_partition) for leader, some in numbers.items())
    taken = time.perf_counter() - began
    assert read == BATCH_BYTES * per_partition * sum(map(len, numbers.values()))
    return read / taken


def _consume_from(leader: BrokerProcess, topic: str, numbers: list[int], count: int) -> int:
    raw = Raw(leader.bootstrap)
    offsets = dict.fromkeys(numbers, 0)
    read = 0
    while behind := [number for number in numbers if offsets[number] < count]:
        wanted = [FetchPartition(each, fetch_offset=offsets[each], partition_max_bytes=1 << 20) for each in behind]
        message = FetchRequest(
            max_wait_ms=500, min_bytes=1, max_bytes=16 << 20, topics=[FetchTopic(topic, partitions=wanted)]
        )
        for data in raw.ask(FETCH, FETCH_VERSION, message).responses[0].partitions:
            assert data.error_code == 0, data
            for view in iterate(data.records or b"", verify=False):
                assert view.header.base_offset == offsets[data.partition_index]
                offsets[data.partition_index] += 1
            read += len(data.records or b"")
    raw.socket.close()
    return read


def _together(works: Sequence[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# What is measured


def measure_throughput(directory: str, servers: Servers, report: Report, megabytes: int) -> None:
    """One broker beside the raw pipeline; then what it wrote is read by a broker that has just started."""
    raw_write, raw_read = asyncio.run(_raw_limits(servers, megabytes))
    per_partition = (megabytes << 20) // BATCH_BYTES // PARTITIONS
    with running(directory, 1, servers) as brokers:
        idle = brokers.memory_mb()
        brokers.create("through", PARTITIONS)
        rate = produce(brokers, "through", per_partition)
        loaded = brokers.memory_mb()
        brokers.all[0].restart()
        cold = consume(brokers, "through", per_partition)
        brokers.create("tail", 1)
        tail_count = min(per_partition * PARTITIONS, (32 << 20) // BATCH_BYTES)
        produce(brokers, "tail", tail_count)
        tail = max(consume(brokers, "tail", tail_count) for _ in range(3))
        loaded = max(loaded, brokers.memory_mb())
    with running(directory, 1, None) as local:
        local.create("tail", 1)
        produce(local, "tail", tail_count)
        local_tail = max(consume(local, "tail", tail_count) for _ in range(3))
    report.figures |= {
        "produce_mb_s": round(rate / 1e6, 1),
        "raw_pipeline_mb_s": round(raw_write / 1e6, 1),
        "cold_read_mb_s": round(cold / 1e6, 1),
        "raw_ranges_mb_s": round(raw_read / 1e6, 1),
        "tail_read_mb_s": round(tail / 1e6),
        "local_tail_read_mb_s": round(local_tail / 1e6),
        "idle_memory_mb": round(idle),
        "memory_under_load_mb": round(loaded),
    }
    report.add(
        f"produce 64 KiB batches to {PARTITIONS} partitions, 1 broker",
        f"{rate / 1e6:,.1f} MB/s",
        f"{raw_write / 1e6:,.1f} MB/s put and commit",
        "80 % of it",
        met=rate >= 0.8 * raw_write,
    )
    report.add(
        "cold read with 1 MiB fetches, 1 broker",
        f"{cold / 1e6:,.1f} MB/s",
        f"{raw_read / 1e6:,.1f} MB/s range reads",
        "100 MB/s or 80 %",
        met=cold >= min(100e6, 0.8 * raw_read),
    )
    report.add(
        "tail read with 1 MiB fetches (best of 3)",
        f"{tail / 1e6:,.0f} MB/s",
        f"{local_tail / 1e6:,.0f} MB/s local engine",
        "the same",
        met=tail >= 0.9 * local_tail,
    )
    report.add("memory of a broker, idle", f"{idle:.0f} MB", "", "150 MB", met=idle <= 150)
    report.add("memory of a broker under load", f"{loaded:.0f} MB", "", "300 MB", met=loaded <= 300)


async def _raw_limits(servers: Servers, megabytes: int) -> tuple[float, float]:
    objects = open_object_store(servers.new_storage(), servers.options)
    order = await PostgresOrder.open(servers.new_settings())
    try:
        written, keys = await pipeline(objects, order, (megabytes << 20) // BUNDLE_BYTES, PARTITIONS)
        return written, await ranges(objects, keys)
    finally:
        await order.close()
        await objects.close()


async def _raw_deliveries(servers: Servers, brokers: int, seconds: float) -> list[float]:
    """Of as much data as a broker gathers in 5 ms, at 5 MB/s in all."""
    objects = open_object_store(servers.new_storage(), servers.options)
    settings = servers.new_settings()
    orders = [await PostgresOrder.open(settings) for _ in range(brokers)]
    try:
        return await delivery_times(objects, orders, 25_000, seconds)
    finally:
        for order in orders:
            await order.close()
        await objects.close()


def measure_latency(servers: Servers, brokers: Brokers, report: Report, seconds: float) -> None:
    """5 MB/s in messages of 5 KB over 16 partitions, acks all: from `produce` to the acknowledgement, and to the
    consumer."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    raw = asyncio.run(_raw_deliveries(servers, len(brokers.all), seconds / 2))
    raw_p50, raw_p99 = raw[len(raw) // 2], raw[int(len(raw) * 0.99)]
    topic, rate, size = "latency", 1000, 5000
    brokers.create(topic, PARTITIONS)
    total = int(rate * seconds)
    consumer = Consumer(
        {"bootstrap.servers": brokers.bootstrap, "group.id": topic, "fetch.wait.max.ms": 100, "fetch.min.bytes": 1}
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    arrived: dict[int, float] = {}
    acknowledged: dict[int, float] = {}
    sent: list[float] = []

    def read() -> None:
        deadline = time.perf_counter() + seconds + SECONDS
        while len(arrived) < total and time.perf_counter() < deadline:
            message = consumer.poll(0.1)
            if message is not None:
                assert message.error() is None
                arrived.setdefault(int((message.value() or b"")[:10]), time.perf_counter())

    def delivered(error: Any, message: Any) -> None:
        assert error is None, error
        acknowledged[int(message.value()[:10])] = time.perf_counter()

    reader = threading.Thread(target=read)
    reader.start()
    producer = Producer({"bootstrap.servers": brokers.bootstrap, "acks": "all", "linger.ms": 0})

    def tell() -> None:
        deadline = time.perf_counter() + seconds + SECONDS
        while len(acknowledged) < total and time.perf_counter() < deadline:
            producer.poll(0.1)

    teller = threading.Thread(target=tell)
    teller.start()
    filling = b"x" * (size - 10)
    began = time.perf_counter()
    for number in range(total):
        # Not by `poll`, which takes less than a millisecond for nothing at all, and would take a core.
        time.sleep(max(0.0, began + number / rate - time.perf_counter()))
        sent.append(time.perf_counter())
        producer.produce(topic, b"%010d" % number + filling, partition=number % PARTITIONS, on_delivery=delivered)
    assert producer.flush(SECONDS) == 0
    reader.join()
    teller.join()
    consumer.close()
    assert len(acknowledged) == len(arrived) == total
    measured = range(min(rate, total // 2), total)  # the first second warms up
    acks = sorted((acknowledged[each] - sent[each]) * 1000 for each in measured)
    ends = sorted((arrived[each] - sent[each]) * 1000 for each in measured)
    p50, p99, end_p50 = acks[len(acks) // 2], acks[int(len(acks) * 0.99)], ends[len(ends) // 2]
    report.figures |= {
        "raw_delivery_p50_ms": round(raw_p50, 2),
        "raw_delivery_p99_ms": round(raw_p99, 2),
        "ack_p50_ms": round(p50, 2),
        "ack_p99_ms": round(p99, 2),
        "end_to_end_p50_ms": round(end_p50, 2),
        "end_to_end_p99_ms": round(ends[int(len(ends) * 0.99)], 2),
    }
    what = f"at 5 MB/s over {PARTITIONS} partitions, {len(brokers.all)} brokers"
    goal = "p50 15, p99 50 ms"
    limit = f"put and commit p50 {raw_p50:.1f}, p99 {raw_p99:.1f} ms"
    report.add(f"ack {what}", f"p50 {p50:.1f}, p99 {p99:.1f} ms", limit, goal, met=p50 <= 15 and p99 <= 50)
    report.add(f"end to end {what}", f"p50 {end_p50:.1f} ms", "", "p50 20 ms", met=end_p50 <= 20)


def measure_takeover(brokers: Brokers, report: Report) -> None:
    """The longest time between two acknowledgements of a partition, while its leader is killed or stopped."""
    topic = "takeover"
    brokers.create(topic, PARTITIONS)
    for how, goal in (("kill", 10.0), ("stop", 1.0)):
        victim = brokers.leaders(topic)[0]
        lost = [number for number, leader in brokers.leaders(topic).items() if leader is victim]
        gaps = _gaps(brokers, topic, victim.kill if how == "kill" else victim.stop)
        gap = max(gaps[number] for number in lost)
        report.figures[f"takeover_{how}_s"] = round(gap, 2)
        what = {"kill": "kill -9", "stop": "orderly stop"}[how]
        report.add(f"takeover after {what}: longest wait", f"{gap:.2f} s", "", f"{goal:.0f} s", met=gap <= goal)
        victim.start()
        eventually(
            lambda: set(brokers.leaders(topic).values()), within=SECONDS, until=lambda up: len(up) == len(brokers.all)
        )


def _gaps(brokers: Brokers, topic: str, disturb: Callable[[], object]) -> Mapping[int, float]:
    """By partition, the longest time between two acknowledgements from the call of `disturb` on. Everything is
    acknowledged, and found once when it is read back."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    run = unique("run")
    acknowledged: dict[int, list[float]] = defaultdict(list)
    places: list[tuple[int, int]] = []
    failed: list[Any] = []

    def delivered(error: Any, message: Any) -> None:
        if error is not None:
            failed.append(error)
            return
        acknowledged[message.partition()].append(time.perf_counter())
        places.append((message.partition(), message.offset()))

    producer = Producer(
        {
            "bootstrap.servers": brokers.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 0,
            "retry.backoff.ms": 20,
            "retry.backoff.max.ms": 100,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 100,
            "log_level": 0,
        }
    )

    def send(seconds: float) -> None:
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            for number in range(PARTITIONS):
                producer.produce(topic, run.encode(), partition=number, on_delivery=delivered)
            producer.poll(0.02)

    send(1)
    assert producer.flush(SECONDS) == 0
    acknowledged.clear()
    disturbing = threading.Thread(target=disturb)
    began = time.perf_counter()
    disturbing.start()
    send(12)
    disturbing.join()
    assert producer.flush(SECONDS) == 0
    assert not failed, failed[0]
    consumer = Consumer({"bootstrap.servers": brokers.bootstrap, "group.id": run, "log_level": 0})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    found: list[tuple[int, int]] = []
    while len(found) < len(places):
        messages = consumer.consume(10_000, 10)
        assert messages, f"{len(places) - len(found)} records are missing"
        found += [(each.partition() or 0, each.offset() or 0) for each in messages if each.value() == run.encode()]
    consumer.close()
    assert sorted(found) == sorted(places)
    return {
        number: max(after - before for before, after in pairwise([began, *times]))
        for number, times in acknowledged.items()
    }


def measure_many(directory: str, servers: Servers, report: Report, count: int) -> None:
    """A broker that leads all partitions of a topic stops; the time until the other one answers for all of them."""
    with running(directory, 2, servers) as brokers:
        first, second = brokers.all
        second.stop()
        with connect(first.bootstrap) as client:
            client.create_topic("many", partitions=count)
        assert _answered(first, "many", count) == count
        second.start()
        began = time.perf_counter()
        stopping = threading.Thread(target=first.stop, args=(SECONDS,))
        stopping.start()
        eventually(
            lambda: _answered(second, "many", count), within=SECONDS, until=lambda found: found == count, every=0.05
        )
        taken = time.perf_counter() - began
        stopping.join()
    report.figures[f"takeover_{count}_partitions_s"] = round(taken, 2)
    report.add(f"takeover of {count:,} partitions after an orderly stop", f"{taken:.2f} s", "", "1 s", met=taken <= 1)


def _answered(broker: BrokerProcess, topic: str, count: int) -> int:
    """The number of partitions whose end the broker tells: it leads them, and has opened them."""
    raw = Raw(broker.bootstrap)
    wanted = [ListOffsetsPartition(number, timestamp=LATEST) for number in range(count)]
    reply = raw.ask(LIST_OFFSETS, 6, ListOffsetsRequest(-1, topics=[ListOffsetsTopic(topic, wanted)]))
    raw.socket.close()
    return sum(each.error_code == 0 for each in reply.topics[0].partitions)


def measure_growth(directory: str, servers: Servers, report: Report, share: int) -> None:
    megabytes = 128 // share
    for size in (1, 2, 4):
        with running(directory, size, servers) as brokers:
            brokers.create("grown", PARTITIONS)
            per_partition = max((megabytes << 20) // BATCH_BYTES // PARTITIONS, 4)
            rate = produce(brokers, "grown", per_partition)
            consume(brokers, "grown", per_partition)
        report.figures[f"produce_{size}_brokers_mb_s"] = round(rate / 1e6, 1)
        report.add(f"produce with {size} broker{'s' * (size > 1)}", f"{rate / 1e6:,.1f} MB/s")
    for count in (10, 100, 1000) if share > 1 else (10, 100, 1000, 10_000):
        with running(directory, 1, servers) as brokers:
            began = time.perf_counter()
            with connect(brokers.bootstrap) as client:
                client.create_topic("grown", partitions=count)
                eventually(
                    lambda: _answered(brokers.all[0], "grown", count),  # noqa: B023
                    within=SECONDS,
                    until=lambda found: found == count,  # noqa: B023
                )
                created = time.perf_counter() - began
                times = []
                for number in range(min(count, 200)):
                    began = time.perf_counter()
                    assert client.produce_batches("grown", number, make_batch(200)) == 0
                    times.append((time.perf_counter() - began) * 1000)
            p50, memory = statistics.median(times), brokers.memory_mb()
        report.figures |= {
            f"ack_at_{count}_partitions_p50_ms": round(p50, 2),
            f"memory_at_{count}_partitions_mb": round(memory),
        }
        report.add(
            f"{count:,} partitions on 1 broker",
            f"created in {created:.1f} s, first ack of each p50 {p50:.1f} ms, {memory:.0f} MB",
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the work, to see that it runs")
    parser.add_argument("--store", choices=["s3", "file"], default="s3", help="what holds the objects")
    parser.add_argument("--dir", default=None, help="where the servers keep their data (default: a temporary folder)")
    options = parser.parse_args()
    share = 10 if options.quick else 1
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="tidelog-bench-", dir=options.dir))
        report = Report(f"cluster (PostgreSQL with fsync, objects in {options.store}, linger 5 ms)", directory)
        servers = Servers(stack, directory, options.store)
        measure_throughput(directory, servers, report, 640 // share)
        measure_commits(servers.new_settings(), report, share)
        with running(directory, 3, servers) as brokers:
            measure_latency(servers, brokers, report, 20 / min(share, 4))
            small_transactions(
                brokers, lambda _, topic, count: brokers.create(topic, count), report, 100 // share, 40
            )
            measure_takeover(brokers, report)
        measure_many(directory, servers, report, MANY // min(share, 5))
        measure_growth(directory, servers, report, share)
        measure_extents(servers.new_settings(), report, (3, 4, 5) if options.quick else (3, 4, 5, 6, 7))
        report.print()


if __name__ == "__main__":
    main()
