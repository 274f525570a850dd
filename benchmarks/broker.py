"""A broker process under load, over real sockets. `python -m benchmarks.broker [--quick] [--dir DIR]`.

There are two drivers. Raw sockets send prepared frames: the client costs almost nothing, so the broker is measured.
confluent-kafka (librdkafka) shows what a user's program sees. Every acknowledgement is checked, everything that was
sent is read back and counted, and the broker's CPU time is that of its process.
"""

import argparse
import contextlib
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any

from benchmarks.floor import receive_and_write, send_file, touch_memory
from benchmarks.report import Report
from benchmarks.storage import make_batch
from benchmarks.transactions import measure_transactions
from tidelog.records.batch import iterate
from tidelog.wire.apis import BY_NAME
from tidelog.wire.envelope import decode_response, encode_request
from tidelog.wire.framing import FrameReader
from tidelog.wire.generated.api_versions import ApiVersionsRequest
from tidelog.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.wire.generated.fetch import FetchPartition, FetchRequest, FetchTopic
from tidelog.wire.generated.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PRODUCE, FETCH, CREATE, API_VERSIONS = (BY_NAME[name] for name in ("Produce", "Fetch", "CreateTopics", "ApiVersions"))
PRODUCE_VERSION, FETCH_VERSION = 9, 12
WINDOW = 32  # requests of 64 KiB that are not answered yet
TICKS = os.sysconf("SC_CLK_TCK")


class Broker:
    """`tidelog serve` in a process of its own."""

    def __init__(self, directory: str) -> None:
        began = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tidelog", "serve", "--data-dir", directory, "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE,
            text=True,
            # As after an installation by pip, which compiles the modules.
            env={name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        self.bootstrap = line.split()[3].rstrip(",")
        Raw(self.bootstrap).ask(API_VERSIONS, 3, ApiVersionsRequest("bench", "1"))
        self.start_seconds = time.perf_counter() - began

    def cpu_seconds(self) -> float:
        with open(f"/proc/{self._process.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory_mb(self) -> float:
        with open(f"/proc/{self._process.pid}/status") as status:
            return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))

    def stop(self) -> None:
        self._process.terminate()
        assert self._process.wait(20) == 0
        assert self._process.stdout is not None
        self._process.stdout.close()


class Raw:
    """One connection that sends prepared frames and reads replies."""

    def __init__(self, bootstrap: str) -> None:
        host, port = bootstrap.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = FrameReader()
        self._frames: list[memoryview] = []

    def ask(self, api: Any, version: int, message: Any) -> Any:
        self.socket.sendall(b"".join(encode_request(api, version, 1, "bench", message)))  # type: ignore[arg-type]
        return decode_response(api, version, bytes(self.frame()))

    def frame(self) -> memoryview:
        while not self._frames:
            room = self._reader.get_buffer()
            size = self.socket.recv_into(room)
            del room
            assert size, "the broker closed the connection"
            self._frames = self._reader.received(size)
        return self._frames.pop(0)


def create(bootstrap: str, topic: str, partitions: int = 1) -> None:
    raw = Raw(bootstrap)
    reply = raw.ask(CREATE, 5, CreateTopicsRequest([CreatableTopic(topic, partitions, 1)], 10_000))
    assert reply.topics[0].error_code == 0, reply
    raw.socket.close()


def produce_frame(topic: str, batch: bytearray, acks: int) -> bytes:
    message = ProduceRequest(
        None, acks, 30_000, [TopicProduceData(topic, partition_data=[PartitionProduceData(0, batch)])]
    )
    return b"".join(encode_request(PRODUCE, PRODUCE_VERSION, 1, "bench", message))  # type: ignore[arg-type]


def raw_produce(
    broker: Broker, topic: str, batch: bytearray, acks: int, count: int, window: int
) -> tuple[float, float]:
    """Wall and broker CPU seconds for `count` pipelined requests; every reply is checked."""
    raw = Raw(broker.bootstrap)
    frame = produce_frame(topic, batch, acks)
    cpu, began = broker.cpu_seconds(), time.perf_counter()

    def send() -> None:
        for _ in range(count):
            room.acquire()
            raw.socket.sendall(frame)

    room = threading.Semaphore(window)
    sender = threading.Thread(target=send)
    sender.start()
    expected = None
    for _ in range(count):
        reply = decode_response(PRODUCE, PRODUCE_VERSION, bytes(raw.frame()))
        room.release()
        result = reply.responses[0].partition_responses[0]
        assert result.error_code == 0, result
        assert expected is None or result.base_offset == expected
        expected = result.base_offset + 1
    sender.join()
    taken = time.perf_counter() - began
    raw.socket.close()
    return taken, broker.cpu_seconds() - cpu


def raw_consume(broker: Broker, topic: str, size: int, count: int) -> tuple[float, float]:
    """Read the whole partition with 1 MiB fetches; headers and total size are checked."""
    raw = Raw(broker.bootstrap)
    offset = read = 0
    cpu, began = broker.cpu_seconds(), time.perf_counter()
    while offset < count:
        wanted = [FetchPartition(0, fetch_offset=offset, partition_max_bytes=1 << 20)]
        message = FetchRequest(
            max_wait_ms=500, min_bytes=1, max_bytes=16 << 20, topics=[FetchTopic(topic, partitions=wanted)]
        )
        raw.socket.sendall(b"".join(encode_request(FETCH, FETCH_VERSION, 1, "bench", message)))  # type: ignore[arg-type]
        reply = decode_response(FETCH, FETCH_VERSION, raw.frame())
        data = reply.responses[0].partitions[0]
        assert data.error_code == 0, data
        assert data.records
        for view in iterate(data.records, verify=False):
            assert view.header.base_offset == offset
            offset += 1
        read += len(data.records)
    taken = time.perf_counter() - began
    assert read == size * count
    raw.socket.close()
    return taken, broker.cpu_seconds() - cpu


def measure_raw(broker: Broker, report: Report, share: int) -> None:
    size = 64 << 10
    total = (1024 // share) << 20
    batch = make_batch(size)
    floors = {1: receive_and_write(report.directory, size, total // size)}
    floors[-1] = receive_and_write(report.directory, size, total // size, sync_every=WINDOW // 2)
    sending = send_file(report.directory, 1 << 20, total >> 20)
    report.figures |= {
        "receive_and_write_cpu_s_per_gb": round(floors[1], 3),
        "receive_write_and_sync_cpu_s_per_gb": round(floors[-1], 3),
        "send_file_cpu_s_per_gb": round(sending, 3),
    }
    for acks, name in ((1, "acks 1"), (-1, "acks all")):
        topic = f"raw-{acks}"
        create(broker.bootstrap, topic)
        taken, cpu = raw_produce(broker, topic, batch, acks, total // size, WINDOW)
        per_gb = cpu / total * 1e9
        report.figures |= {
            f"raw_produce_{name.replace(' ', '_')}_mb_s": round(total / taken / 1e6),
            f"raw_produce_{name.replace(' ', '_')}_cpu_s_per_gb": round(per_gb, 3),
        }
        report.add(
            f"produce ready 64 KiB batches, {name}, 1 connection",
            f"{total / taken / 1e6:,.0f} MB/s, {per_gb:.2f} CPU s/GB",
            f"{floors[acks]:.2f} CPU s/GB recv and pwrite" + (f", sync every {WINDOW // 2}" if acks < 0 else ""),
            "1.0 CPU s/GB",
            met=per_gb <= 1.0,
        )
        taken, cpu = raw_consume(broker, topic, size, total // size)
        per_gb = cpu / total * 1e9
        report.figures |= {
            f"raw_consume_{name.replace(' ', '_')}_mb_s": round(total / taken / 1e6),
            f"raw_consume_{name.replace(' ', '_')}_cpu_s_per_gb": round(per_gb, 3),
        }
        report.add(
            f"consume them with 1 MiB fetches ({name})",
            f"{total / taken / 1e6:,.0f} MB/s, {per_gb:.2f} CPU s/GB",
            f"{sending:.2f} CPU s/GB sendfile",
            "0.4 CPU s/GB",
            met=per_gb <= 0.4,
        )
    create(broker.bootstrap, "small")
    count = 40_000 // share
    taken, cpu = raw_produce(broker, "small", make_batch(200), 1, count, 64)
    each = cpu / count * 1e6
    report.figures |= {"small_produce_per_s": round(count / taken), "small_produce_cpu_us": round(each, 1)}
    report.add(
        "small produce requests (200 B, acks 1), pipelined",
        f"{count / taken:,.0f}/s, {each:.1f} us broker CPU each",
        "",
        "40 us",
        met=each <= 40,
    )


def measure_round_trip(broker: Broker, report: Report, count: int) -> None:
    """One request at a time, compared with an echo over a bare socket to another process."""
    create(broker.bootstrap, "sync")
    raw = Raw(broker.bootstrap)
    frame = produce_frame("sync", make_batch(200), 1)
    times = []
    for _ in range(count):
        began = time.perf_counter()
        raw.socket.sendall(frame)
        raw.frame()
        times.append(time.perf_counter() - began)
    raw.socket.close()
    echo = echo_round_trip(len(frame), count)
    median, slow = statistics.median(times) * 1e6, sorted(times)[int(count * 0.99)] * 1e6
    report.figures |= {
        "round_trip_p50_us": round(median, 1),
        "round_trip_p99_us": round(slow, 1),
        "echo_round_trip_p50_us": round(echo, 1),
    }
    report.add(
        "synchronous produce of one message, acks 1",
        f"p50 {median:.0f} us, p99 {slow:.0f} us",
        f"{echo:.0f} us echo",
        "p50 100 us",
        met=median <= 100,
    )


def echo_round_trip(size: int, count: int) -> float:
    code = (
        "import socket\n"
        "server = socket.create_server(('127.0.0.1', 0)); print(server.getsockname()[1], flush=True)\n"
        "peer, _ = server.accept(); peer.setsockopt(6, 1, 1)\n"
        "while data := peer.recv(65536): peer.sendall(data)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    client = socket.create_connection(("127.0.0.1", int(process.stdout.readline())))
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    data, times = bytes(size), []
    for _ in range(count):
        began = time.perf_counter()
        client.sendall(data)
        left = size
        while left:
            left -= len(client.recv(65536))
        times.append(time.perf_counter() - began)
    client.close()
    process.wait(10)
    process.stdout.close()
    return statistics.median(times) * 1e6


def measure_client(broker: Broker, report: Report, share: int) -> None:
    """The rates of a program with confluent-kafka; the client is the bottleneck."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    for size, messages in ((100, 1_000_000 // share), (1000, 300_000 // share)):
        for acks, codec in (("1", "none"), ("all", "none"), ("all", "lz4"), ("all", "zstd")):
            topic = f"client-{size}-{acks}-{codec}"
            create(broker.bootstrap, topic)
            value = os.urandom(size // 2) + b"a" * (size - size // 2)
            failed: list[Any] = []
            producer = Producer(
                {
                    "bootstrap.servers": broker.bootstrap,
                    "acks": acks,
                    "compression.type": codec,
                    "linger.ms": 5,
                    "batch.size": 1_000_000,
                    "queue.buffering.max.messages": 1_000_000,
                }
            )

            def delivered(error: Any, _: Any, failed: list[Any] = failed) -> None:
                if error is not None:
                    failed.append(error)

            cpu, began = broker.cpu_seconds(), time.perf_counter()
            for number in range(messages):
                while True:
                    try:
                        producer.produce(topic, value, on_delivery=delivered)
                        break
                    except BufferError:
                        producer.poll(0.01)
                if number % 10_000 == 0:
                    producer.poll(0)
            assert producer.flush(60) == 0
            taken, cpu = time.perf_counter() - began, broker.cpu_seconds() - cpu
            assert not failed, failed[0]
            consumer = Consumer(
                {
                    "bootstrap.servers": broker.bootstrap,
                    "group.id": topic,
                    "fetch.message.max.bytes": 4 << 20,
                    # By default librdkafka pauses for a second whenever 100,000 messages wait for the program.
                    "fetch.queue.backoff.ms": 10,
                }
            )
            consumer.assign([TopicPartition(topic, 0, 0)])
            read_cpu, read_began, seen = broker.cpu_seconds(), time.perf_counter(), 0
            while seen < messages:
                for message in consumer.consume(10_000, 5):
                    assert message.error() is None
                    assert len(message.value() or b"") == size
                    seen += 1
            read_taken, read_cpu = time.perf_counter() - read_began, broker.cpu_seconds() - read_cpu
            consumer.close()
            gb = size * messages / 1e9
            name = f"client_{size}b_acks_{acks}_{codec}"
            report.figures |= {
                f"{name}_produce_msg_s": round(messages / taken),
                f"{name}_produce_cpu_s_per_gb": round(cpu / gb, 2),
                f"{name}_consume_msg_s": round(messages / read_taken),
                f"{name}_consume_cpu_s_per_gb": round(read_cpu / gb, 2),
            }
            report.add(
                f"confluent-kafka, {size} B, acks {acks}, {codec}",
                f"{messages / taken:,.0f} msg/s in ({cpu / gb:.2f} CPU s/GB), "
                f"{messages / read_taken:,.0f} msg/s out ({read_cpu / gb:.2f})",
            )


def measure_latency(broker: Broker, report: Report, rate: int, seconds: float) -> None:
    """Latency from `produce` to the consumer, at a steady rate, one partition, acks 1."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    create(broker.bootstrap, "latency")
    total = int(rate * seconds)
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "latency", "fetch.wait.max.ms": 100, "fetch.min.bytes": 1}
    )
    consumer.assign([TopicPartition("latency", 0, 0)])
    latencies: list[float] = []

    def consume() -> None:
        while len(latencies) < total:
            messages = consumer.consume(500, 0.002)
            now = time.perf_counter()
            latencies.extend(now - float(message.value() or 0) for message in messages if message.error() is None)

    reader = threading.Thread(target=consume)
    reader.start()
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "1", "linger.ms": 0})
    began = time.perf_counter()
    for number in range(total):
        due = began + number / rate
        while (wait := due - time.perf_counter()) > 0:
            producer.poll(0)
            time.sleep(min(wait, 0.0005))
        producer.produce("latency", repr(time.perf_counter()).encode())
    assert producer.flush(30) == 0
    reader.join(30)
    consumer.close()
    assert len(latencies) == total
    ordered = sorted(latencies[rate:])  # the first second warms up
    p50, p99, p999 = (ordered[int(len(ordered) * share)] * 1e3 for share in (0.5, 0.99, 0.999))
    report.figures |= {
        "latency_rate": rate,
        "latency_p50_ms": round(p50, 2),
        "latency_p99_ms": round(p99, 2),
        "latency_p999_ms": round(p999, 2),
    }
    report.add(
        f"end to end at {rate:,} msg/s (confluent-kafka both ways)",
        f"p50 {p50:.2f}, p99 {p99:.2f}, p99.9 {p999:.2f} ms",
        "",
        "p99 5 ms",
        met=p99 <= 5,
    )


def measure_idle_connections(broker: Broker, report: Report, count: int) -> None:
    before = broker.memory_mb()
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            raw = Raw(broker.bootstrap)
            stack.callback(raw.socket.close)
            raw.ask(API_VERSIONS, 3, ApiVersionsRequest("bench", "1"))
        memory = broker.memory_mb()
        cpu = broker.cpu_seconds()
        time.sleep(2)
        idle_cpu = (broker.cpu_seconds() - cpu) / 2
        began = time.perf_counter()
        Raw(broker.bootstrap).ask(API_VERSIONS, 3, ApiVersionsRequest("bench", "1"))
        another = time.perf_counter() - began
    report.figures |= {
        "idle_connections": count,
        "idle_connections_mb": round(memory - before, 1),
        "idle_connections_cpu_percent": round(idle_cpu * 100, 1),
    }
    report.add(
        f"{count:,} idle connections",
        f"{memory - before:.0f} MB more, {idle_cpu * 100:.1f}% CPU, one more in {another * 1e3:.1f} ms",
    )


@contextlib.contextmanager
def running(directory: str) -> Iterator[Broker]:
    broker = Broker(directory)
    try:
        yield broker
    finally:
        broker.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the work, to see that it runs")
    parser.add_argument("--dir", default=None, help="where the broker keeps its data (default: a temporary folder)")
    options = parser.parse_args()
    share = 10 if options.quick else 1
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    touch_memory((5 << 30) // share)
    with tempfile.TemporaryDirectory(prefix="tidelog-bench-", dir=options.dir) as directory:
        report = Report("broker (flush acks, 1 partition)", directory)
        starts = []
        for number in range(5):
            with running(f"{directory}/start-{number}") as broker:
                starts.append(broker.start_seconds)
                idle = broker.memory_mb()
        report.figures |= {"start_s": round(statistics.median(starts), 3), "idle_memory_mb": round(idle, 1)}
        report.add(
            "start to first reply",
            f"{statistics.median(starts):.2f} s",
            "",
            "0.5 s",
            met=statistics.median(starts) <= 0.5,
        )
        report.add("memory idle", f"{idle:.0f} MB", "", "80 MB", met=idle <= 80)
        with running(f"{directory}/load") as broker:
            measure_round_trip(broker, report, 5000 // share)
            measure_idle_connections(broker, report, 1000)
            measure_latency(broker, report, 5000, 10 / min(share, 3))
            measure_raw(broker, report, share)
            measure_client(broker, report, share)
            measure_transactions(broker, Raw, create, report, share)
            report.figures["memory_under_load_mb"] = round(broker.memory_mb(), 1)
            report.add("memory under load", f"{broker.memory_mb():.0f} MB (64 MiB of it the tail cache)")
        report.print()


if __name__ == "__main__":
    main()
