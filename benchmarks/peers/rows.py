"""The rows of the first table, for every broker that speaks the Kafka protocol.

A row is a function of a running server that returns its figures, or raises `Failed`. It creates its own topics and
deletes them. Names of figures begin with their phase, so that the notes of the phase explain them.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.peers.bench import Bench, Failed, PeakMemory, Run, verified
from benchmarks.peers.results import Figure
from benchmarks.peers.servers import KafkaProtocolServer, evict

Options = dict[str, Any]
Measure = Callable[[Bench, KafkaProtocolServer], dict[str, float]]


@dataclass(frozen=True)
class Row:
    key: str
    section: str
    title: str
    conditions: str  # durability and payload, printed with the figures
    figures: list[Figure]
    measure: Measure
    times: int = 1  # runs in each repeat
    alone: bool = False  # the other peers are stopped


THROUGHPUT = "Throughput with librdkafka"
WIRE = "Throughput of ready batches over bare sockets"
CLIENTS = "Many clients"
LATENCY = "Latency"
GROUPS = "Consumer groups"
LIFE = "Start, recovery, memory"

_COPY_FIGURES = [
    Figure("produce", "msg/s", "higher"),
    Figure("consume", "msg/s", "higher"),
    Figure("produce CPU", "s/GB", "lower"),
    Figure("consume CPU", "s/GB", "lower"),
]
_DURABILITY = {
    ("1", False): "acks 1, no fsync",
    ("all", False): "acks all, no fsync",
    ("all", True): "acks all, fsync",
}


# ---- throughput


def _produced_and_consumed(sent: Run, read: Run) -> dict[str, float]:
    return {
        "produce": sent["messages"] / sent["seconds"],
        "consume": sent["messages"] / read["seconds"],
        "produce CPU": sent.cpu_per_gb,
        "consume CPU": read.cpu_per_gb,
        "produce MB/s": sent["bytes"] / sent["seconds"] / 1e6,
        "consume MB/s": sent["bytes"] / read["seconds"] / 1e6,
        **sent.notes("produce"),
        **read.notes("consume"),
    }


def client_copy(
    bench: Bench, server: KafkaProtocolServer, *, size: int, partitions: int, acks: str, fsync: bool, codec: str
) -> dict[str, float]:
    count = bench.scale.count(_messages(size, fsync))
    with bench.topic(server, partitions, fsync=fsync) as topic:
        bench.settle(2 * count * size)
        options: Options = {"topic": topic, "partitions": partitions, "count": count}
        sent = bench.drive(server, "produce", **options, size=size, acks=acks, codec=codec)
        read = bench.drive(server, "consume", **options)
        verified(sent, read)
    return _produced_and_consumed(sent, read)


def _messages(size: int, fsync: bool) -> int:
    """About 300 MB, and no more than takes a few seconds."""
    return min(2_000_000, 300_000_000 // size) // (3 if fsync else 1)


def wire_copy(bench: Bench, server: KafkaProtocolServer, *, acks: str, fsync: bool, records: int) -> dict[str, float]:
    partitions, size = 16, 1000
    requests = bench.scale.count(6000 if records > 1 else 60_000) // (3 if fsync else 1)
    with bench.topic(server, partitions, fsync=fsync) as topic:
        bench.settle(2 * requests * records * size)
        options: Options = {"topic": topic, "partitions": partitions}
        sent = bench.drive(
            server,
            "wire",
            **options,
            producers=4,
            window=16,
            requests=requests,
            records=records,
            size=size,
            acks=acks,
        )
        read = bench.drive(server, "wire", **options, readers=1, count=requests * records)
        verified(sent, read, names=("read_messages", "read_checksum"))
    return _produced_and_consumed(sent, read)


# ---- many clients


def fleet(
    bench: Bench, server: KafkaProtocolServer, *, connections: int, partitions: int, size: int = 100
) -> dict[str, float]:
    """Each connection sends one message, waits for the answer, and sends the next."""
    requests = max(bench.scale.count(60_000), connections * 3)
    with bench.topic(server, partitions) as topic:
        bench.settle(64 << 20)
        options: Options = {"topic": topic, "partitions": partitions}
        sent = bench.drive(server, "wire", **options, producers=connections, requests=requests, size=size, acks=1)
        read = bench.drive(server, "wire", **options, readers=1, count=requests)
        verified(sent, read, names=("read_messages", "read_checksum"))
    return {
        "requests": requests / sent["seconds"],
        "requests p99": sent["request_p99_us"] / 1e3,
        "requests CPU": sent.broker_cpu_seconds / requests * 1e6,
        **sent.notes("requests"),
    }


def fan_out(bench: Bench, server: KafkaProtocolServer, *, readers: int) -> dict[str, float]:
    partitions, records, size = 4, 16, 1000
    requests = bench.scale.count(6000)
    with bench.topic(server, partitions) as topic:
        bench.settle(2 * requests * records * size)
        run = bench.drive(
            server,
            "wire",
            topic=topic,
            partitions=partitions,
            producers=1,
            window=8,
            requests=requests,
            records=records,
            size=size,
            acks="all",
            readers=readers,
        )
    if run["read_messages"] != readers * run["messages"]:
        raise Failed(f"{readers} readers had {run['read_messages']:.0f} messages of {run['messages']:.0f} each")
    return {
        "out": run["read_bytes"] / run["seconds"] / 1e6,
        "out CPU": run.broker_cpu_seconds / run["read_bytes"] * 1e9,
        **run.notes("out"),
    }


def catch_up(bench: Bench, server: KafkaProtocolServer) -> dict[str, float]:
    partitions, size, rate = 4, 1000, 5000
    count = bench.scale.count(300_000)
    with bench.topic(server, partitions) as topic:
        bench.settle(2 * count * size)
        options: Options = {"topic": topic, "partitions": partitions, "count": count, "size": size}
        old = bench.drive(server, "produce", **options)
        evict(server.data)
        run = bench.drive(server, "catch-up", **options, rate=rate, acks="all")
    expected = (int(old["checksum"], 16) + int(run["sent_checksum"], 16)) % (1 << 64)
    if run["messages"] != count + run["sent_messages"] or int(run["checksum"], 16) != expected:
        raise Failed(f"read {run['messages']:.0f} messages of {count} old and {run['sent_messages']:.0f} new ones")
    bench.scale.check_rate(run["sent_per_s"], rate, 0.9)
    return {
        "read": run["bytes"] / run["seconds"] / 1e6,
        "new messages p99": run["acknowledgement_p99_us"] / 1e3,
        **run.notes("read"),
    }


# ---- latency

# Most of a tail are pauses in which the host does not let its machine run. They come at random: the runs with the
# fewest of them show what a broker can do. The timers, compilers and collectors of an idle peer would show, too. (In
# other rows the peers must not be stopped: a Kafka that was stopped between its rows took twice the CPU to consume.)
_OF_TAILS = 3


def end_to_end(bench: Bench, server: KafkaProtocolServer, *, rate: int) -> dict[str, float]:
    with bench.topic(server, 1) as topic:
        bench.settle(64 << 20)
        seconds = int(bench.scale.seconds(5))
        options: Options = {"topic": topic, "rate": rate, "size": 100, "seconds": seconds}
        # Without a limit librdkafka sends each message on its own, however far behind the broker is.
        run = bench.drive(server, "latency", **options, acks="all", client="max.in.flight=5")
    bench.scale.check_rate(run["sent_per_s"], rate, 0.95)
    return {**_percentiles(run, "latency"), **run.notes("latency")}


def round_trips(bench: Bench, server: KafkaProtocolServer, *, fsync: bool) -> dict[str, float]:
    count = bench.scale.count(3000 if fsync else 10_000)
    with bench.topic(server, 1, fsync=fsync) as topic:
        bench.settle(64 << 20)
        sent = bench.drive(server, "round-trips", topic=topic, count=count, size=100, acks="all")
        verified(sent, bench.drive(server, "consume", topic=topic, count=count))
    return {**_percentiles(sent, "round_trip"), **sent.notes("round trip")}


def wire_round_trips(bench: Bench, server: KafkaProtocolServer) -> dict[str, float]:
    count = bench.scale.count(20_000)
    with bench.topic(server, 1) as topic:
        bench.settle(64 << 20)
        sent = bench.drive(server, "wire", topic=topic, producers=1, requests=count, size=100, acks="all")
        read = bench.drive(server, "wire", topic=topic, readers=1, count=count)
        verified(sent, read, names=("read_messages", "read_checksum"))
    return {**_percentiles(sent, "request"), **sent.notes("round trip")}


def _percentiles(run: Run, name: str) -> dict[str, float]:
    shares = {"p50": "p50", "p99": "p99", "p99.9": "p999", "max": "max"}
    return {shown: run[f"{name}_{told}_us"] / 1e3 for shown, told in shares.items()}


_LATENCY_FIGURES = [Figure(name, "ms", "lower") for name in ("p50", "p99", "p99.9", "max")]


# ---- groups


def rebalance(bench: Bench, server: KafkaProtocolServer, *, protocol: str, members: int) -> dict[str, float]:
    partitions = 1000
    with bench.topic(server, partitions) as topic:
        options: Options = {
            "topic": topic,
            "group": f"group-of-{topic}",
            "partitions": partitions,
            "members": members,
        }
        run = bench.drive(server, "group", **options, protocol=protocol)
    return {
        "all join": run["join_all_seconds"],
        "one joins": run["join_one_seconds"],
        "one leaves": run["leave_one_seconds"],
        "broker cpu seconds": run.broker_cpu_seconds,
    }


# ---- start, recovery, memory: servers of their own


def start_up(bench: Bench, server: KafkaProtocolServer) -> dict[str, float]:
    other = type(server)(bench.fresh_directory("start"))
    try:
        seconds = other.start()
        time.sleep(2)
        memory, share = other.memory_mb(), _cpu_share(bench, other)
        with bench.connections(other, 1000):
            time.sleep(0.5)
            more, share_with_connections = other.memory_mb() - memory, _cpu_share(bench, other)
        other.stop()
    finally:
        other.remove()
    return {
        "start to first metadata": seconds,
        "memory idle": memory,
        "CPU idle": share * 100,
        "memory of 1,000 connections": max(0.0, more),
        "CPU of 1,000 connections": share_with_connections * 100,
    }


def _cpu_share(bench: Bench, server: KafkaProtocolServer) -> float:
    used, began = server.cpu_seconds(), time.perf_counter()
    time.sleep(bench.scale.seconds(3))
    return (server.cpu_seconds() - used) / (time.perf_counter() - began)


def recovery(bench: Bench, server: KafkaProtocolServer) -> dict[str, float]:
    partitions, records, size = 16, 64, 1000
    requests = int(bench.scale.recovery_gb * 1e9 / bench.scale.share / (records * size))
    other = type(server)(bench.fresh_directory("recovery"))
    try:
        other.start()
        with bench.topic(other, partitions) as topic:
            options: Options = {"topic": topic, "partitions": partitions, "timeout": 600}
            sent = bench.drive(
                other,
                "wire",
                **options,
                producers=4,
                window=16,
                requests=requests,
                records=records,
                size=size,
                acks=1,
            )
            other.kill()
            seconds = other.start()
            read = bench.drive(other, "wire", **options, readers=1, count=sent["messages"])
            verified(sent, read, names=("read_messages", "read_checksum"))
    finally:
        other.remove()
    return {"recovery": seconds, "gigabytes": sent["bytes"] / 1e9}


def memory_under_load(bench: Bench, server: KafkaProtocolServer) -> dict[str, float]:
    """Repeat the 1 KB row after all other rows, and measure the memory."""
    with PeakMemory(server) as memory:
        client_copy(bench, server, size=1000, partitions=16, acks="all", fsync=False, codec="none")
    return {"memory under load": memory.peak_mb}


# ---- the table


def _size(size: int) -> str:
    return f"{size} B" if size < 1000 else f"{size // 1000} KB"


def _copy_row(size: int, partitions: int, acks: str, fsync: bool, codec: str) -> Row:
    durability = f"acks-{acks}{'-fsync' if fsync else ''}"
    return Row(
        f"copy-{size}-{partitions}p-{durability}-{codec}",
        THROUGHPUT,
        ", ".join(
            [
                _size(size),
                f"{partitions} partition{'s' if partitions > 1 else ''}",
                _DURABILITY[acks, fsync],
                *([codec] if codec != "none" else []),
            ]
        ),
        f"values of {_size(size)}, JSON-like; compression {codec}; linger 5 ms",
        _COPY_FIGURES,
        partial(client_copy, size=size, partitions=partitions, acks=acks, fsync=fsync, codec=codec),
    )


def copy_rows(full: bool) -> Iterator[Row]:
    """All combinations, or one change at a time from 1 KB, 16 partitions, acks all, no fsync, not compressed."""
    sizes, partition_counts, codecs = (100, 1000, 10_000), (1, 16, 100), ("none", "lz4", "zstd")
    if full:
        for size in sizes:
            for partitions in partition_counts:
                for acks, fsync in _DURABILITY:
                    for codec in codecs:
                        yield _copy_row(size, partitions, acks, fsync, codec)
        return
    for size in sizes:
        yield _copy_row(size, 16, "all", False, "none")
    for partitions in (1, 100):
        yield _copy_row(1000, partitions, "all", False, "none")
    yield _copy_row(1000, 16, "1", False, "none")
    yield _copy_row(1000, 16, "all", True, "none")
    for codec in ("lz4", "zstd"):
        yield _copy_row(1000, 16, "all", False, codec)


def all_rows(*, full: bool, recovery_gb: float) -> list[Row]:
    ready = "values of 1 KB in ready batches, 16 partitions, 4 connections with 16 requests unanswered on each"
    rows = [*copy_rows(full)]
    for (acks, fsync), told in _DURABILITY.items():
        key = f"wire-64k-acks-{acks}{'-fsync' if fsync else ''}"
        measure = partial(wire_copy, acks=acks, fsync=fsync, records=64)
        rows.append(Row(key, WIRE, f"64 KB batches, {told}", ready, _COPY_FIGURES, measure))
    measure = partial(wire_copy, acks="all", fsync=False, records=1)
    told = _DURABILITY["all", False]
    rows.append(Row("wire-1k-acks-all", WIRE, f"1 KB batches, {told}", ready, _COPY_FIGURES, measure))
    fleet_figures = [
        Figure("requests", "1/s", "higher"),
        Figure("requests p99", "ms", "lower"),
        Figure("requests CPU", "us each", "lower"),
    ]
    small = "one message of 100 B a request, no linger, one request unanswered a connection; acks 1, no fsync"
    rows += [
        Row(
            "small-producers-200",
            CLIENTS,
            "200 small producers, 16 partitions",
            small,
            fleet_figures,
            partial(fleet, connections=200, partitions=16),
        ),
        Row(
            "connections-1000",
            CLIENTS,
            "1,000 producers, 1,000 partitions",
            small,
            fleet_figures,
            partial(fleet, connections=1000, partitions=1000),
        ),
        Row(
            "partitions-1000",
            CLIENTS,
            "1 KB, 1,000 partitions, librdkafka",
            "values of 1 KB, JSON-like; acks all, no fsync; compression none; linger 5 ms",
            _COPY_FIGURES,
            partial(client_copy, size=1000, partitions=1000, acks="all", fsync=False, codec="none"),
        ),
        Row(
            "fan-out-8",
            CLIENTS,
            "fan-out: 1 producer, 8 consumers",
            "values of 1 KB in batches of 16, 4 partitions, bare sockets; acks all, no fsync",
            [Figure("out", "MB/s", "higher"), Figure("out CPU", "s/GB", "lower")],
            partial(fan_out, readers=8),
        ),
        Row(
            "catch-up",
            CLIENTS,
            "catch-up on cold data while producing",
            "values of 1 KB, 4 partitions, out of the page cache; meanwhile 5,000 msg/s in, acks all, no fsync",
            [Figure("read", "MB/s", "higher"), Figure("new messages p99", "ms", "lower")],
            catch_up,
        ),
    ]
    for rate in (1000, 10_000, 50_000):
        rows.append(
            Row(
                f"latency-{rate}",
                LATENCY,
                f"end to end at {rate:,} msg/s",
                "values of 100 B, 1 partition, linger 0, at most 5 requests in flight; acks all, no fsync; "
                "from the time a message was due to its being consumed",
                _LATENCY_FIGURES,
                partial(end_to_end, rate=rate),
                times=_OF_TAILS,
                alone=True,
            )
        )
    for fsync in (False, True):
        told = _DURABILITY["all", fsync]
        rows.append(
            Row(
                f"round-trip{'-fsync' if fsync else ''}",
                LATENCY,
                f"synchronous produce, librdkafka, {told}",
                "one message of 100 B at a time",
                _LATENCY_FIGURES,
                partial(round_trips, fsync=fsync),
            )
        )
    rows.append(
        Row(
            "round-trip-wire",
            LATENCY,
            f"synchronous produce, bare socket, {_DURABILITY['all', False]}",
            "one message of 100 B at a time",
            _LATENCY_FIGURES,
            wire_round_trips,
        )
    )
    for protocol, told in (("classic", "heartbeats every 200 ms"), ("consumer", "heartbeats every 500 ms")):
        rows.append(
            Row(
                f"rebalance-{protocol}",
                GROUPS,
                f"50 members, 1,000 partitions, {protocol} protocol",
                f"librdkafka, {told}, no initial delay",
                [Figure(name, "s", "lower") for name in ("all join", "one joins", "one leaves")],
                partial(rebalance, protocol=protocol, members=50),
            )
        )
    rows += [
        Row(
            "start",
            LIFE,
            "a fresh broker",
            "empty data directory; memory and CPU after two seconds; then 1,000 connections, greeted and idle",
            [
                Figure("start to first metadata", "s", "lower"),
                Figure("memory idle", "MB", "lower"),
                Figure("CPU idle", "% of a core", "lower"),
                Figure("memory of 1,000 connections", "MB more", "lower"),
                Figure("CPU of 1,000 connections", "% of a core", "lower"),
            ],
            start_up,
        ),
        Row(
            "recovery",
            LIFE,
            f"after SIGKILL with {recovery_gb:g} GB",
            f"{recovery_gb:g} GB in 16 partitions, acks 1, no fsync; start to first metadata; then all is read",
            [Figure("recovery", "s", "lower")],
            recovery,
        ),
        Row(
            "memory",
            LIFE,
            "memory under load",
            "the most during 1 KB, 16 partitions, acks all, no fsync, after all rows above",
            [Figure("memory under load", "MB", "lower")],
            memory_under_load,
        ),
    ]
    return rows
