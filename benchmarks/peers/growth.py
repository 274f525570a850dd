"""How cost grows: throughput and broker CPU against partitions, connections, data on disk and consumers of a group.

`python -m benchmarks.peers.growth [--quick] [--only SWEEP ...] [--peers tidelog,kafka] [--most-gb 10]`. One parameter
grows, the work stays the same. Everything sent is read back and checked, as in `benchmarks.peers`. The brokers
alternate at each point; for data on disk each broker does all points before the next one starts, so that only one
needs the space. Sweeps that are not run keep their earlier figures in the report.
"""

import argparse
import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.peers import document
from benchmarks.peers.__main__ import DOCS, describe_machine, raise_limits, running, say, warm_up
from benchmarks.peers.bench import Bench, Failed, Run, Scale, verified
from benchmarks.peers.install import Missing
from benchmarks.peers.results import Results
from benchmarks.peers.servers import KINDS, KafkaProtocolServer, NotRunning, evict

RATE, COST = "MB/s", "CPU s/GB"


@dataclass(frozen=True)
class Sweep:
    key: str
    title: str
    across: str
    conditions: str
    figures: list[str]
    points: list[int]
    measure: Callable[[Bench, KafkaProtocolServer, int], dict[str, float]]


def _told(prefix: str, run: Run, size: float) -> dict[str, float]:
    return {
        f"{prefix} {RATE}": size / run["seconds"] / 1e6,
        f"{prefix} {COST}": run.broker_cpu_seconds / size * 1e9,
    }


def over_partitions(bench: Bench, server: KafkaProtocolServer, partitions: int) -> dict[str, float]:
    """Write 200 MB in batches of 16 KB to the partitions in turn; then read all of it with 4 connections."""
    records, size = 16, 1000
    requests = max(bench.scale.count(12_000), partitions)
    with bench.topic(server, partitions) as topic:
        bench.settle(2 * requests * records * size)
        options: dict[str, Any] = {"topic": topic, "partitions": partitions}
        sent = bench.drive(
            server, "wire", **options, producers=4, window=8, requests=requests, records=records, size=size
        )
        readers = min(4, partitions)
        read = bench.drive(server, "wire", **options, readers=readers, split=1, count=requests * records)
        verified(sent, read, names=("read_messages", "read_checksum"))
    return {**_told("produce", sent, sent["bytes"]), **_told("consume", read, sent["bytes"])}


def over_connections(bench: Bench, server: KafkaProtocolServer, connections: int) -> dict[str, float]:
    """Messages of 1 KB, one per request, one request at a time on each connection; 16 partitions."""
    partitions = 16
    requests = max(bench.scale.count(40_000), 3 * connections)
    with bench.topic(server, partitions) as topic:
        bench.settle(2 * requests * 1000)
        options: dict[str, Any] = {"topic": topic, "partitions": partitions}
        sent = bench.drive(server, "wire", **options, producers=connections, requests=requests, size=1000)
        read = bench.drive(server, "wire", **options, readers=1, count=requests)
        verified(sent, read, names=("read_messages", "read_checksum"))
    return {
        "requests/s": requests / sent["seconds"],
        "CPU us each": sent.broker_cpu_seconds / requests * 1e6,
        "p99 ms": sent["request_p99_us"] / 1e3,
    }


def over_members(bench: Bench, server: KafkaProtocolServer, members: int) -> dict[str, float]:
    """A group of this number of consumers reads 20,000 msg/s of 1 KB from 200 partitions while they are produced."""
    partitions, size, rate = 200, 1000, 20_000
    count = bench.scale.count(100_000, least=10_000)
    with bench.topic(server, partitions) as topic:
        bench.settle(2 * count * size)
        options: dict[str, Any] = {"topic": topic, "group": f"group-of-{topic}", "partitions": partitions}
        client = "max.in.flight=5"
        run = bench.drive(
            server, "group", **options, members=members, count=count, size=size, rate=rate, linger_ms=5, client=client
        )
    return {
        f"read {RATE}": run["bytes"] / run["seconds"] / 1e6,
        f"in and out {COST}": run.broker_cpu_seconds / run["bytes"] * 1e9,
        "all joined after s": run["join_all_seconds"],
    }


@dataclass
class _Filled:
    server: KafkaProtocolServer
    topic: str
    close: contextlib.ExitStack
    requests: int = 0
    checksum: int = 0


class DataOnDisk:
    """A separate server with growing data; at each size the same work, and restarts. One peer after the other."""

    _PARTITIONS, _RECORDS, _SIZE = 16, 64, 1000

    def __init__(self) -> None:
        self._filled: _Filled | None = None

    def __call__(self, bench: Bench, server: KafkaProtocolServer, gigabytes: int) -> dict[str, float]:
        if self._filled is not None and self._filled.server.name != server.name:
            self.close()
        filled = self._filled or self._begin(bench, server)
        other = filled.server
        more = int(gigabytes * 1e9 / bench.scale.share / (self._RECORDS * self._SIZE)) - filled.requests
        options: dict[str, Any] = {"topic": filled.topic, "partitions": self._PARTITIONS, "timeout": 900}
        if more > 0:
            batches = {"requests": more, "records": self._RECORDS, "size": self._SIZE}
            sent = bench.drive(other, "wire", **options, **batches, producers=4, window=16)
            filled.requests += more
            filled.checksum += int(sent["checksum"], 16)
        measured = over_partitions(bench, other, self._PARTITIONS)
        evict(other.data)
        cold = bench.drive(other, "wire", **options, readers=1, count=filled.requests * self._RECORDS)
        if int(cold["read_checksum"], 16) != filled.checksum:
            raise Failed(f"the messages read from {gigabytes} GB are not those that were sent")
        other.stop()
        clean = other.start()
        other.kill()
        after_kill = other.start()
        return {
            **measured,
            f"cold read of all {RATE}": cold["read_bytes"] / cold["seconds"] / 1e6,
            "start s": clean,
            "start after SIGKILL s": after_kill,
        }

    def _begin(self, bench: Bench, server: KafkaProtocolServer) -> _Filled:
        with contextlib.ExitStack() as stack:
            other = type(server)(bench.fresh_directory("data"))
            stack.callback(other.remove)
            other.start()
            topic = stack.enter_context(bench.topic(other, self._PARTITIONS))
            self._filled = _Filled(other, topic, stack.pop_all())
        return self._filled

    def close(self) -> None:
        if self._filled is not None:
            self._filled.server.kill()
            self._filled.close.close()
            self._filled = None


def all_sweeps(most_gb: int, data: DataOnDisk) -> list[Sweep]:
    copied = [f"{phase} {unit}" for phase in ("produce", "consume") for unit in (RATE, COST)]
    lazy = "acks all, no fsync, bare sockets"
    return [
        Sweep(
            "partitions",
            "Partitions",
            "partitions",
            f"200 MB of 1 KB values in batches of 16, to every partition in turn over 4 connections; {lazy}.",
            copied,
            [1, 10, 100, 1000, 5000],
            over_partitions,
        ),
        Sweep(
            "connections",
            "Connections",
            "connections",
            f"Values of 1 KB, one a request, one request at a time on each connection, 16 partitions; {lazy}.",
            ["requests/s", "CPU us each", "p99 ms"],
            [1, 10, 100, 1000, 5000],
            over_connections,
        ),
        Sweep(
            "data",
            "Data on disk",
            "GB on disk",
            f"So much in 16 partitions; then 200 MB to another topic, all read cold, restarts; {lazy}.",
            [*copied, f"cold read of all {RATE}", "start s", "start after SIGKILL s"],
            [size for size in (1, 2, 5, 10, 20, 50) if size <= most_gb],
            data,
        ),
        Sweep(
            "group",
            "Consumers of a group",
            "consumers",
            "20,000 msg/s of 1 KB to 200 partitions, read by a group at once; librdkafka, acks all, no fsync.",
            [f"read {RATE}", f"in and out {COST}", "all joined after s"],
            [1, 10, 50, 100, 200],
            over_members,
        ),
    ]


def run_sweep(
    sweep: Sweep, bench: Bench, servers: Sequence[KafkaProtocolServer], repeats: int
) -> list[dict[str, Any]]:
    """A list of {"at", "peers": {peer: {figure: samples} or {"failed": why}}}."""
    found: dict[int, dict[str, Any]] = {at: {server.name: {} for server in servers} for at in sweep.points}
    for number, (at, server) in enumerate(_turns(sweep, servers, repeats)):
        began = time.perf_counter()
        of_it = found[at][server.name]
        try:
            measured = sweep.measure(bench, server, at)
            for name in sweep.figures:
                of_it.setdefault(name, []).append(measured[name])
            shown = ", ".join(f"{name} {measured[name]:,.4g}" for name in sweep.figures)
        except (Failed, NotRunning) as error:
            of_it["failed"] = shown = str(error)
            if not server.is_alive:
                server.start()
        taken = time.perf_counter() - began
        all_turns = len(sweep.points) * repeats * len(servers)
        say(f"[{number + 1}/{all_turns}] {sweep.key} {at} {server.name}: {shown} ({taken:.1f} s)")
    return [{"at": at, "peers": peers} for at, peers in found.items()]


def _turns(
    sweep: Sweep, servers: Sequence[KafkaProtocolServer], repeats: int
) -> Iterator[tuple[int, KafkaProtocolServer]]:
    if isinstance(sweep.measure, DataOnDisk):
        yield from ((at, server) for server in servers for at in sweep.points)
        return
    for at in sweep.points:
        for repeat in range(repeats):
            yield from ((at, server) for server in (servers if repeat % 2 == 0 else reversed(servers)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers.growth", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="1/20 of the work, once, to see that it runs")
    parser.add_argument("--only", nargs="+", default=[], metavar="SWEEP", help="partitions, connections, data, group")
    parser.add_argument("--repeats", type=int, default=None, help="default 3; 1 with --quick")
    parser.add_argument("--peers", default="tidelog,kafka", help="default: %(default)s")
    parser.add_argument("--most-gb", type=int, default=10, help="data on disk, up to 50 (default 10)")
    parser.add_argument("--dir", default=None, help="where the brokers keep their data (default: a temporary folder)")
    parser.add_argument(
        "--out", default=None, help="folder of the report (default: docs/; a temporary folder with --quick)"
    )
    options = parser.parse_args()
    data = DataOnDisk()
    sweeps = all_sweeps(options.most_gb, data)
    if unknown := [name for name in options.only if name not in [sweep.key for sweep in sweeps]]:
        raise SystemExit(f"Unknown sweep {', '.join(unknown)}. The sweeps: {', '.join(s.key for s in sweeps)}")
    names = options.peers.split(",")
    if any(name not in KINDS or not issubclass(KINDS[name], KafkaProtocolServer) for name in names):
        raise SystemExit("Growth is measured with brokers that speak the Kafka protocol: tidelog, kafka")
    raise_limits()
    parent = tempfile.mkdtemp(prefix="tidelog-growth-", dir=options.dir)
    needed = options.most_gb * 1e9 * 1.3 / (20 if options.quick else 1)
    if shutil.disk_usage(parent).free < needed:
        raise SystemExit(f"{needed / 1e9:.0f} GB of disk are needed; choose less with --most-gb, or another --dir")
    out = options.out or (DOCS if not options.quick else tempfile.mkdtemp(prefix="tidelog-report-"))
    repeats = options.repeats or (1 if options.quick else 3)
    growth: dict[str, Any] = {
        "command": "make bench-growth",
        "machine": describe_machine(parent),
        "repeats": repeats,
    }
    done = {sweep["key"]: sweep for sweep in document.read_growth(out).get("sweeps", [])}
    results = Results({}, {})
    try:
        bench = Bench(parent, Scale(20 if options.quick else 1))
        with running(bench, names, results, None, may_stand_still=False) as servers:
            growth |= {"peers": results.peers, "missing": results.missing}
            kafka_like = [server for server in servers if isinstance(server, KafkaProtocolServer)]
            for server in kafka_like:
                warm_up(bench, server)
            for sweep in sweeps:
                if options.only and sweep.key not in options.only:
                    continue
                told = {name: getattr(sweep, name) for name in ("key", "title", "across", "conditions", "figures")}
                # The data on disk grows within one run; it is not written again for every repeat.
                times = 1 if sweep.key == "data" else repeats
                done[sweep.key] = {**told, "points": run_sweep(sweep, bench, kafka_like, times)}
                growth["sweeps"] = [done[each.key] for each in sweeps if each.key in done]
                document.write_growth(growth, out)
        print(document.growth_markdown(growth, []))
        say(f"written to {out}")
    except Missing as error:
        raise SystemExit(f"MISSING: {error}") from error
    finally:
        data.close()
        shutil.rmtree(parent, ignore_errors=True)


if __name__ == "__main__":
    main()
