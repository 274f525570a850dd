"""The rows of the second table: alternatives for a Python program, each broker with its own Python client.

confluent-kafka for Tidelog and Kafka, nats-py for NATS JetStream, redis-py for Redis Streams. The clients are part of
the comparison; they run in a separate process, `benchmarks.peers.python_client`.
"""

import json
import os
import subprocess
import sys
from functools import partial
from typing import Any

from benchmarks.peers import install
from benchmarks.peers.bench import Bench, Failed, NotOffered
from benchmarks.peers.results import Figure
from benchmarks.peers.rows import Row
from benchmarks.peers.servers import Server

SECTION = "What a Python program would pick instead"
_CLIENTS = {"nats": "nats-py", "redis": "redis"}


def _ask(server: Server, work: str, **options: Any) -> dict[str, Any]:
    """Runs one piece of work in a new process and returns its result: {"seconds", "messages", "checksum", ...}."""
    command = [sys.executable, "-m", "benchmarks.peers.python_client", server.name, work, server.bootstrap]
    environment = dict(os.environ)
    if server.name in _CLIENTS:
        more = install.pip_install(_CLIENTS[server.name])
        environment["PYTHONPATH"] = f"{more}:{environment.get('PYTHONPATH', '')}"
    done = subprocess.run(
        [*command, json.dumps(options)], capture_output=True, text=True, env=environment, timeout=300
    )
    if done.returncode != 0:
        raise Failed(f"{work}: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def copy(bench: Bench, server: Server, *, fsync: bool) -> dict[str, float]:
    if fsync and server.name == "nats":
        raise NotOffered(f"NATS {server.version} cannot sync a stream before it answers")
    count = bench.scale.count(20_000 if fsync else 100_000)
    stream = f"stream-{bench.fresh_name()}"
    bench.settle(256 << 20)
    options = {"stream": stream, "fsync": fsync, "count": count, "size": 1000}
    try:
        before = server.cpu_seconds()
        sent = _ask(server, "publish", **options)
        between = server.cpu_seconds()
        read = _ask(server, "consume", **options)
        after = server.cpu_seconds()
        one = _ask(server, "round_trips", **{**options, "stream": f"{stream}-2", "count": count // 20})
    finally:
        server.check_alive()
        for name in (stream, f"{stream}-2"):
            _ask(server, "drop", stream=name)
    if (sent["messages"], sent["checksum"]) != (read["messages"], read["checksum"]):
        raise Failed(f"sent {sent['messages']} messages, read {read['messages']}, or their checksums differ")
    return {
        "publish": count / sent["seconds"],
        "consume": count / read["seconds"],
        "publish one p50": one["p50_ms"],
        "publish CPU": (between - before) / count * 1e6,
        "consume CPU": (after - between) / count * 1e6,
    }


def latency(bench: Bench, server: Server) -> dict[str, float]:
    stream = f"stream-{bench.fresh_name()}"
    bench.settle(64 << 20)
    try:
        run = _ask(server, "latency", stream=stream, fsync=False, rate=1000, seconds=bench.scale.seconds(5), size=100)
    finally:
        _ask(server, "drop", stream=stream)
    return {"p50": run["p50_ms"], "p99": run["p99_ms"]}


def fresh_start(bench: Bench, server: Server) -> dict[str, float]:
    other = type(server)(bench.fresh_directory("start"))
    try:
        seconds = other.start()
        memory = other.memory_mb()
        other.stop()
    finally:
        other.remove()
    return {"start": seconds, "memory idle": memory}


def all_rows() -> list[Row]:
    copied = [
        Figure("publish", "msg/s", "higher"),
        Figure("consume", "msg/s", "higher"),
        Figure("publish one p50", "ms", "lower"),
        Figure("publish CPU", "us each", "lower"),
        Figure("consume CPU", "us each", "lower"),
    ]
    lazy = "Tidelog flush os, Kafka as shipped, NATS file storage, Redis AOF everysec"
    durable = "Tidelog flush acks, Kafka flush.messages=1, Redis AOF always"
    measures: list[tuple[str, str, str, list[Figure], Any]] = [
        (
            "instead-copy",
            "1 KB messages, no fsync",
            f"values of 1 KB, one stream of one partition; pipelined, then one at a time; {lazy}",
            copied,
            partial(copy, fsync=False),
        ),
        (
            "instead-copy-fsync",
            "1 KB messages, fsync before the answer",
            f"values of 1 KB, one stream of one partition; pipelined, then one at a time; {durable}",
            copied,
            partial(copy, fsync=True),
        ),
        (
            "instead-latency",
            "end to end at 1,000 msg/s",
            f"values of 100 B; {lazy}",
            [Figure("p50", "ms", "lower"), Figure("p99", "ms", "lower")],
            latency,
        ),
        (
            "instead-start",
            "a fresh server",
            "empty data directory, to the first useful answer",
            [Figure("start", "s", "lower"), Figure("memory idle", "MB", "lower")],
            fresh_start,
        ),
    ]
    return [Row(key, SECTION, title, told, figures, measure) for key, title, told, figures, measure in measures]
