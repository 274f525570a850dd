"""Compares Tidelog and its peers on this machine. `python -m benchmarks.peers [--quick] [--only ROW ...]`.

There are two tables. The first runs a native client (librdkafka, or bare sockets) against the brokers that speak the
Kafka protocol; the second has alternatives for a Python program, each with its own Python client. In every repeat
each row is run against one peer after the other, in alternating order. All messages are read back and compared by
count and checksum; a figure is printed only if every repeat was verified.
"""

import argparse
import contextlib
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benchmarks.peers import alternatives, document
from benchmarks.peers.bench import Bench, Failed, NotOffered, Scale
from benchmarks.peers.install import Missing
from benchmarks.peers.results import Results, RowResult
from benchmarks.peers.rows import Row, all_rows
from benchmarks.peers.servers import KINDS, KafkaProtocolServer, NotRunning, Server
from benchmarks.report import machine

QUICK_SHARE = 20
DOCS = f"{os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))}/docs"


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def describe_machine(directory: str) -> dict[str, Any]:
    return {**machine(directory), "memory_gb": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9)}


@contextlib.contextmanager
def running(
    bench: Bench, names: Sequence[str], results: Results, kafka_version: str | None, *, may_stand_still: bool
) -> Iterator[list[Server]]:
    """Start the available peers. The results contain the reason if one is missing."""
    servers: list[Server] = []
    try:
        for name in names:
            try:
                directory = bench.fresh_directory(name)
                server = KINDS[name](directory) if name != "kafka" else _kafka(directory, kafka_version)
                server.may_stand_still = may_stand_still
                server.start()
                servers.append(server)
                results.peers[name] = f"{server.title} {server.version}"
                say(f"{server.title} {server.version} runs")
            except (Missing, NotRunning) as error:
                results.missing[name] = str(error)
                say(f"MISSING: {name}: {error}")
        yield servers
    finally:
        for server in servers:
            server.remove()


def _kafka(directory: str, version: str | None) -> Server:
    from benchmarks.peers.servers import Kafka

    return Kafka(directory, version)


def warm_up(bench: Bench, server: KafkaProtocolServer) -> None:
    """A just-in-time compiler needs some thousand requests to reach its full speed."""
    wanted = ("copy-1000-16p-acks-all-none", "wire-64k-acks-all", "small-producers-200", "latency-10000")
    for row in all_rows(full=False, recovery_gb=0):
        if row.key in wanted:
            with contextlib.suppress(Failed):  # the row itself will report it
                row.measure(bench, server)


def run_rows(
    servers: Sequence[Any],
    everyone: Sequence[Server],
    rows: Sequence[Row],
    repeats: int,
    bench: Bench,
    save: Callable[[list[RowResult]], None],
) -> list[RowResult]:
    """Run every row against each of `servers`, `repeats` times, in alternating order; `everyone` else runs, too."""
    found = {
        row.key: RowResult(
            row.key,
            row.section,
            row.title,
            _conditions(row, repeats),
            row.figures,
            counted=repeats if row.times > 1 else None,
        )
        for row in rows
    }
    for repeat in range(repeats):
        for row, turn in ((one, turn) for one in rows for turn in range(one.times)):
            for server in servers if (repeat + turn) % 2 == 0 else reversed(servers):
                result = found[row.key]
                began = time.perf_counter()
                try:
                    with standing_still(everyone if row.alone else [], but=server):
                        measured = row.measure(bench, server)
                    result.add(server.name, measured)
                    shown = ", ".join(f"{figure.name} {measured[figure.name]:,.4g}" for figure in row.figures)
                except NotOffered as error:
                    shown = f"not offered: {error}"
                    result.not_offered[server.name] = str(error)
                except (Failed, NotRunning) as error:
                    shown = f"FAILED: {error}"
                    result.fail(server.name, str(error))
                    if not server.is_alive:
                        _revive(server)
                taken = time.perf_counter() - began
                say(f"[{repeat + 1}/{repeats}] {row.key} {server.name}: {shown} ({taken:.1f} s)")
        save(list(found.values()))
    return list(found.values())


def _conditions(row: Row, repeats: int) -> str:
    told = row.conditions
    if row.times > 1:
        told += f"; {row.times * repeats} runs, of which those {repeats} count in which the hypervisor withheld least"
    return told + ("; the other brokers were stopped (SIGSTOP)" if row.alone else "")


@contextlib.contextmanager
def standing_still(servers: Sequence[Server], *, but: Server) -> Iterator[None]:
    with contextlib.ExitStack() as others:
        for other in servers:
            if other is not but:
                others.enter_context(other.standing_still())
        yield


def _revive(server: Server) -> None:
    try:
        server.start()
    except NotRunning as error:
        say(str(error))


def chosen(rows: Sequence[Row], only: Sequence[str]) -> list[Row]:
    """The rows whose key begins with one of the words; all of them without any."""
    unknown = [word for word in only if not any(row.key.startswith(word) for row in rows)]
    if unknown:
        raise SystemExit(f"Unknown row {', '.join(unknown)}. The rows: {', '.join(row.key for row in rows)}")
    return [row for row in rows if not only or any(row.key.startswith(word) for word in only)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help=f"1/{QUICK_SHARE} of the work, once, to see that it runs"
    )
    parser.add_argument("--full", action="store_true", help="all 81 combinations of size, partitions, acks and codec")
    parser.add_argument("--only", nargs="+", default=[], metavar="ROW", help="rows whose key begins with this")
    parser.add_argument("--list", action="store_true", help="show the rows and stop")
    parser.add_argument("--repeats", type=int, default=None, help="default 5; 1 with --quick")
    parser.add_argument("--peers", default=",".join(KINDS), help="default: %(default)s")
    parser.add_argument("--kafka-version", default=None, help="default: the newest 4.x of Maven Central")
    parser.add_argument(
        "--recovery-gb", type=float, default=10.0, help="GB on disk when the broker is killed (default 10)"
    )
    parser.add_argument("--dir", default=None, help="where the brokers keep their data (default: a temporary folder)")
    parser.add_argument(
        "--out",
        default=None,
        help="folder of the report (default: docs/, or a temporary folder with --quick and --only); "
        "rows that --only does not name stay in it",
    )
    options = parser.parse_args()
    rows, others = all_rows(full=options.full, recovery_gb=options.recovery_gb), alternatives.all_rows()
    if options.list:
        print("\n".join(f"{row.key:40} {row.section}: {row.title}" for row in [*rows, *others]))
        return
    names = [name for name in options.peers.split(",") if name]
    if unknown := [name for name in names if name not in KINDS]:
        raise SystemExit(f"Unknown peer {', '.join(unknown)}. The peers: {', '.join(KINDS)}")
    picked = chosen([*rows, *others], options.only)
    rows, others = [row for row in rows if row in picked], [row for row in others if row in picked]
    repeats = options.repeats or (1 if options.quick else 5)
    scale = Scale(QUICK_SHARE if options.quick else 1, options.recovery_gb)
    raise_limits()
    parent = tempfile.mkdtemp(prefix="tidelog-peers-", dir=options.dir)
    out = options.out or (DOCS if not (options.quick or options.only) else tempfile.mkdtemp(prefix="tidelog-report-"))
    before = document.read(out) if options.only else None
    settings: dict[str, Any] = {
        "repeats": repeats,
        "share_of_full_work": 1 / scale.share,
        "command": "make bench-peers",
    }
    results = Results(describe_machine(parent), {**settings, "recovery_gb": scale.recovery_gb})
    try:
        bench = Bench(parent, scale)
        began = time.perf_counter()
        first: list[RowResult] = []

        def save(rows: list[RowResult]) -> None:
            results.rows = [*first, *rows]
            results.settings["minutes"] = round((time.perf_counter() - began) / 60, 1)
            document.write(before.renewed(results) if before else results, out)

        with running(bench, names, results, options.kafka_version, may_stand_still=True) as servers:
            kafka_like = [server for server in servers if isinstance(server, KafkaProtocolServer)]
            for server in kafka_like:
                say(f"warming up {server.title}")
                warm_up(bench, server)
            first = run_rows(kafka_like, servers, rows, repeats, bench, save)
            save(run_rows(servers, servers, others, repeats, bench, save))
        print(document.markdown(results))
        say(f"written to {out}")
    except Missing as error:
        raise SystemExit(f"MISSING: {error}") from error
    finally:
        shutil.rmtree(parent, ignore_errors=True)
    failed = [f"{row.key} ({peer})" for row in results.rows for peer in row.failures]
    if failed:
        raise SystemExit(f"FAILED, without figures: {', '.join(failed)}")


def raise_limits() -> None:
    """Raise the limit of open files as far as allowed, for thousands of connections and partitions."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


if __name__ == "__main__":
    main()
