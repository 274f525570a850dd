"""The storage engine against the raw disk, in one run. `python -m benchmarks.storage [--quick] [--dir DIR]`.

Every append is acknowledged, everything written is read back and compared (count and CRC), and each figure is shown
next to that of bare system calls on the same machine within the same minute. Each pair is measured alternately
several times, after a warm-up that touches the memory; the table shows medians, and the best for operations of
microseconds.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from bisect import bisect_right
from collections.abc import Callable

from benchmarks.report import Report
from tidelog.model import LeaderEpoch, TopicIdentity
from tidelog.promise import result_of
from tidelog.records.batch import iterate, read_header
from tidelog.records.crc import crc32c
from tidelog.records.record import BatchBuilder, decode
from tidelog.settings import FlushPolicy, LogSettings, StorageSettings
from tidelog.storage.local.files import OsFiles
from tidelog.storage.local.layout import partition_directory
from tidelog.storage.local.log import LocalLog
from tidelog.storage.local.store import LocalStore

EPOCH = LeaderEpoch(0)
TOPIC = TopicIdentity("bench", bytes(16))
PARTITION = TOPIC.partition(0)
NOW_MS = 1_700_000_000_000
OS_FLUSH = LogSettings(flush=FlushPolicy.OS)
NO_TAIL = StorageSettings(tail_cache_bytes=0)


def make_batch(size: int, records: int = 1) -> bytearray:
    """A batch of exactly `size` bytes."""
    value = random.Random(size).randbytes(size)
    for cut in range(size, 0, -1):
        builder = BatchBuilder()
        for number in range(records):
            builder.append(value[number : number + cut // records], timestamp=NOW_MS)
        batch = builder.build()
        if len(batch) == size:
            return batch
        cut -= max(0, len(batch) - size)
    raise ValueError(f"no batch of {size} bytes")


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


class Scratch:
    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._number = 0

    def path(self) -> str:
        self._number += 1
        return f"{self.directory}/{self._number}"

    def settle(self, path: str) -> None:
        """Remove the data, so that its dirty pages do not slow down the next measurement."""
        shutil.rmtree(path, ignore_errors=True)
        os.sync()


def measure_append(scratch: Scratch, report: Report, size: int, total: int, repeats: int) -> None:
    """Append prepared batches with CRC check and indexes, flush `os`, tail cache on; compared with bare writes."""
    count = total // size
    batch = make_batch(size)
    ready = [bytearray(batch) for _ in range(count)]  # the log keeps what it is given

    def bare_writes() -> float:
        path = scratch.path()
        os.makedirs(path)
        fd = os.open(f"{path}/bare", os.O_RDWR | os.O_CREAT)

        def write() -> None:
            write = os.write
            for data in ready:
                write(fd, data)

        taken = seconds(write)
        os.close(fd)
        scratch.settle(path)
        return taken

    def appends() -> float:
        path = scratch.path()
        store = LocalStore(path, inline=True)
        log = store.open(PARTITION, OS_FLUSH, NOW_MS)

        def append() -> None:
            for data in ready:
                log.append(data, now_ms=NOW_MS, leader_epoch=EPOCH, durable=False)

        taken = seconds(append)
        assert log.end_offset == count
        check_content(log, count, batch)
        store.close_now()
        scratch.settle(path)
        return taken

    bare_writes()
    bare: list[float] = []
    ours: list[float] = []
    for number in range(repeats):
        for measured, run in ((bare, bare_writes), (ours, appends))[:: 1 if number % 2 else -1]:
            measured.append(run())
    bare_s, our_s = statistics.median(bare), statistics.median(ours)
    name = f"append_{size // 1024}k"
    ratio = bare_s / our_s
    over_us = (our_s - bare_s) / count * 1e6
    report.figures |= {
        f"{name}_mb_s": round(total / our_s / 1e6, 1),
        f"{name}_bare_write_mb_s": round(total / bare_s / 1e6, 1),
        f"{name}_ratio": round(ratio, 3),
        f"{name}_us": round(our_s / count * 1e6, 2),
        f"{name}_us_over_bare": round(over_us, 2),
    }
    if size >= 65536:
        report.add(
            f"append {size // 1024} KiB batches, flush os ({total >> 20} MiB)",
            f"{total / our_s / 1e6:,.0f} MB/s, {over_us:.1f} us over",
            f"{total / bare_s / 1e6:,.0f} MB/s os.write",
            "0.6 of bare",
            met=ratio >= 0.6,
        )
    else:
        report.add(
            f"append {size // 1024} KiB batches, flush os ({total >> 20} MiB)",
            f"{our_s / count * 1e6:.2f} us, {over_us:.2f} us over",
            f"{bare_s / count * 1e6:.2f} us os.write",
            "at most 10 us over",
            met=over_us <= 10,
        )


def check_content(log: LocalLog, count: int, batch: bytearray) -> None:
    """Check that every batch is in the log, in order, with the same bytes."""
    body = crc32c(memoryview(batch)[16:])
    offset = 0
    while offset < count:
        for view in iterate(log.read_now(offset, 4 << 20).read()):
            assert view.header.base_offset == offset
            assert crc32c(view.view[16:]) == body
            offset += 1
    assert offset == count


def filled(scratch: Scratch, size: int, total: int) -> tuple[LocalStore, LocalLog, str]:
    path = scratch.path()
    store = LocalStore(path, NO_TAIL, inline=True)
    log = store.open(PARTITION, LogSettings(flush=FlushPolicy.OS, segment_bytes=256 << 20), NOW_MS)
    batch = make_batch(size)
    for _ in range(total // size):
        log.append(batch, now_ms=NOW_MS, leader_epoch=EPOCH, durable=False)
    log.flush()
    return store, log, path


def measure_sequential_read(scratch: Scratch, report: Report, total: int, repeats: int) -> None:
    store, log, path = filled(scratch, 16 << 10, total)
    directory = log.directory
    names = sorted(name for name in os.listdir(directory) if name.endswith(".log"))
    step = 1 << 20
    bare, ours = [], []
    for _ in range(repeats):

        def read_bare() -> None:
            for name in names:
                fd = os.open(f"{directory}/{name}", os.O_RDONLY)
                position = 0
                while data := os.pread(fd, step, position):
                    position += len(data)
                os.close(fd)

        def read_log() -> None:
            offset, end, read = 0, log.end_offset, 0
            while offset < end:
                data = log.read_now(offset, step).read()
                read += len(data)
                offset += len(data) // (16 << 10)  # one record a batch
            assert read == total

        bare.append(seconds(read_bare))
        ours.append(seconds(read_log))
    check_content(log, total >> 14, make_batch(16 << 10))
    bare_s, our_s = statistics.median(bare), statistics.median(ours)
    report.figures |= {
        "sequential_read_mb_s": round(total / our_s / 1e6, 1),
        "sequential_pread_mb_s": round(total / bare_s / 1e6, 1),
        "sequential_read_ratio": round(bare_s / our_s, 3),
    }
    report.add(
        f"sequential read in 1 MiB steps, page cache ({total >> 20} MiB)",
        f"{total / our_s / 1e6:,.0f} MB/s",
        f"{total / bare_s / 1e6:,.0f} MB/s pread",
        "0.8 of bare",
        met=bare_s / our_s >= 0.8,
    )
    store.close_now()
    scratch.settle(path)


def measure_random_read(scratch: Scratch, report: Report, total: int, lookups: int) -> None:
    size = 1024
    store, log, path = filled(scratch, size, total)
    rng = random.Random(1)
    offsets = [rng.randrange(log.end_offset) for _ in range(lookups)]
    for offset in offsets[:100]:
        assert read_header(log.read_now(offset, size).read()).base_offset == offset
    segments = [*log._segments.sealed, log._segments.active]
    bases = [segment.base_offset for segment in segments]
    places = []
    for offset in offsets:
        segment = segments[bisect_right(bases, offset) - 1]
        places.append((segment.file.fileno(), (offset - segment.base_offset) * size))

    def read_log() -> None:
        for offset in offsets:
            log.read_now(offset, size).read()

    def read_bare() -> None:
        for fd, position in places:
            os.pread(fd, size, position)

    def look_up() -> None:
        for offset in offsets:
            segment = segments[bisect_right(bases, offset) - 1]
            segment.index.at_or_before(offset - segment.base_offset)

    read_log()
    our_s = min(seconds(read_log) for _ in range(7))
    bare_s = min(seconds(read_bare) for _ in range(7))
    lookup_s = min(seconds(look_up) for _ in range(7))
    over = (our_s - bare_s) / lookups * 1e6
    lookup = lookup_s / lookups * 1e6
    report.figures |= {
        "random_read_us": round(our_s / lookups * 1e6, 2),
        "random_pread_us": round(bare_s / lookups * 1e6, 2),
        "random_read_us_over_pread": round(over, 2),
        "offset_lookup_us": round(lookup, 2),
    }
    report.add(
        f"random read of 1 KiB by offset ({total >> 20} MiB, {len(segments)} segments)",
        f"{our_s / lookups * 1e6:.2f} us",
        f"{bare_s / lookups * 1e6:.2f} us pread",
        "at most 15 us over",
        met=over <= 15,
    )
    report.add("offset lookup (segment and index)", f"{lookup:.2f} us", "", "at most 2 us", met=lookup <= 2)
    store.close_now()
    scratch.settle(path)


def measure_durable_append(scratch: Scratch, report: Report, appends: int, callers: int, partitions: int) -> None:
    """acks=all: every append waits for its group commit; compared with single writes, each with fdatasync."""
    size = 1024
    batch = bytes(make_batch(size))
    path = scratch.path()
    os.makedirs(path)
    fd = os.open(f"{path}/bare", os.O_RDWR | os.O_CREAT)
    serial = 400

    def write_and_sync() -> None:
        for _ in range(serial):
            os.write(fd, batch)
            os.fdatasync(fd)

    fds = [os.open(f"{path}/bare-{number}", os.O_RDWR | os.O_CREAT) for number in range(partitions)]
    files = OsFiles()

    def write_all_and_sync_once() -> None:
        """The bare system calls of one group commit."""
        for number in range(callers):
            os.write(fds[number % partitions], batch)
        files.sync_filesystem(path, sys.maxsize)

    write_and_sync()
    rounds: list[tuple[float, float, float]] = []
    acknowledged = 0

    async def run() -> None:
        nonlocal acknowledged
        store = LocalStore(f"{path}/store")
        logs = [store.open(TOPIC.partition(n), LogSettings(), NOW_MS) for n in range(partitions)]
        per_caller = appends // callers

        async def caller(number: int) -> None:
            nonlocal acknowledged
            log = logs[number % partitions]
            for _ in range(per_caller):
                appended = await result_of(
                    log.append(bytearray(batch), now_ms=NOW_MS, leader_epoch=EPOCH, durable=True)
                )
                assert log.durable_offset > appended.last_offset
                acknowledged += 1

        for _ in range(3):
            one_s = seconds(write_and_sync) / serial
            round_s = statistics.median(seconds(write_all_and_sync_once) for _ in range(100))
            began = time.perf_counter()
            await asyncio.gather(*(caller(number) for number in range(callers)))
            rounds.append((one_s, (time.perf_counter() - began) / (per_caller * callers), round_s))
        assert acknowledged == 3 * per_caller * callers == sum(log.end_offset for log in logs)
        for log in logs:
            check_content(log, log.end_offset, bytearray(batch))
        assert not await store.close()

    asyncio.run(run())
    for opened in (fd, *fds):
        os.close(opened)
    one_s = statistics.median(one for one, _, _ in rounds)
    our_s = statistics.median(ours for _, ours, _ in rounds)
    limit = statistics.median(callers / round_s for _, _, round_s in rounds)
    factor = statistics.median(one / ours for one, ours, _ in rounds)
    report.figures |= {
        "writes_and_one_syncfs_per_s": round(limit),
        "durable_append_per_s": round(1 / our_s),
        "fsync_per_append_per_s": round(1 / one_s),
        "durable_append_factor": round(factor, 1),
    }
    report.add(
        f"durable appends of 1 KiB, {callers} callers, {partitions} partitions",
        f"{1 / our_s:,.0f}/s ({factor:.1f}x)",
        f"{1 / one_s:,.0f}/s write+fdatasync, {limit:,.0f}/s {callers} writes+syncfs",
        "at least 20x",
        met=factor >= 20,
    )
    scratch.settle(path)


def measure_opening(scratch: Scratch, report: Report, partitions: int, segments: int) -> None:
    """Open in a new process, after a clean stop and after SIGKILL during appends to every partition."""
    path = scratch.path()
    store = LocalStore(path, inline=True)
    log = store.open(PARTITION, LogSettings(segment_bytes=64 << 10, flush=FlushPolicy.OS), NOW_MS)
    batch = make_batch(4096)
    while log.stats().segments < segments:
        log.append(batch, now_ms=NOW_MS, leader_epoch=EPOCH, durable=False)
    end = log.end_offset
    store.close_now()
    source = log.directory
    for number in range(1, partitions):
        shutil.copytree(source, f"{path}/logs/{partition_directory(TOPIC.partition(number))}")
    os.sync()
    clean = [opening(path, end, partitions) for _ in range(3)]
    killed = []
    for _ in range(3):
        appended = die_appending(path)
        killed.append(opening(path, end, partitions, more=appended))
    clean_s = statistics.median(run["seconds"] for run in clean)
    killed_s = statistics.median(run["seconds"] for run in killed)
    memory = max(run["memory_mb"] for run in clean + killed)
    report.figures |= {
        "open_partitions": partitions,
        "open_segments_each": segments,
        "open_clean_s": round(clean_s, 3),
        "open_killed_s": round(killed_s, 3),
        "open_killed_ratio": round(killed_s / clean_s, 2),
        "open_memory_mb": round(memory, 1),
        "killed_scanned_bytes": killed[-1]["scanned_bytes"],
    }
    report.add(
        f"open {partitions} partitions of {segments} segments, clean", f"{clean_s:.3f} s", "", "2 s", met=clean_s <= 2
    )
    report.add("memory of that process", f"{memory:.0f} MB", "", "200 MB", met=memory <= 200)
    report.add(
        f"the same after SIGKILL ({int(killed[-1]['scanned_bytes']) >> 20} MiB to scan)",
        f"{killed_s:.3f} s ({killed_s / clean_s:.2f}x)",
        "",
        "1.5x of clean",
        met=killed_s <= 1.5 * clean_s,
    )
    scratch.settle(path)


def opening(path: str, end: int, partitions: int, more: int = 0) -> dict[str, float]:
    output = subprocess.run(
        [sys.executable, "-m", "benchmarks.storage", "--open", path], capture_output=True, text=True, check=True
    ).stdout
    result: dict[str, float] = json.loads(output)
    assert result["partitions"] == partitions
    assert result["records"] >= end * partitions + more
    return result


def die_appending(path: str) -> int:
    """A process that appends to every partition until it is killed; returns the number of acknowledged appends."""
    child = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.storage", "--append", path], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    answered = 0
    for line in child.stdout:
        answered = int(line)
        if answered >= 5:
            break
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    return answered


def child_open(path: str) -> None:
    began = time.perf_counter()
    store = LocalStore(path, inline=True)
    logs = [store.open(partition, OS_FLUSH, NOW_MS) for partition in store.partitions()]
    elapsed = time.perf_counter() - began
    with open("/proc/self/status") as status:  # ru_maxrss would count the parent that we were forked from
        memory = next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))
    scanned = sum(log.recovery.scanned_bytes for log in logs)
    result = {
        "seconds": elapsed,
        "memory_mb": memory,
        "partitions": len(logs),
        "records": sum(log.end_offset for log in logs),
        "scanned_bytes": scanned,
    }
    failures = store.close_now()
    assert not failures
    print(json.dumps(result))


def child_append(path: str) -> None:
    store = LocalStore(path, inline=True)
    logs = [store.open(partition, OS_FLUSH, NOW_MS) for partition in store.partitions()]
    batch = make_batch(1024)
    answered = 0
    while True:
        for log in logs:
            log.append(bytearray(batch), now_ms=NOW_MS, leader_epoch=EPOCH, durable=False)
        answered += 1
        print(answered, flush=True)


def measure_records(report: Report) -> None:
    values = [os.urandom(100) for _ in range(100)]

    def build() -> bytearray:
        builder = BatchBuilder()
        for value in values:
            builder.append(value, key=b"key", timestamp=NOW_MS)
        return builder.build()

    view = next(iterate(build()))
    assert [record.value for record in decode(view)] == values
    build_s = statistics.median(seconds(lambda: [build() for _ in range(200)]) for _ in range(5)) / 200
    decode_s = statistics.median(seconds(lambda: [decode(view) for _ in range(200)]) for _ in range(5)) / 200
    report.figures |= {
        "build_records_per_s": round(100 / build_s),
        "decode_records_per_s": round(100 / decode_s),
    }
    report.add("build a batch of 100 records from Python objects", f"{100 / build_s:,.0f} records/s")
    report.add("decode it to Python objects", f"{100 / decode_s:,.0f} records/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the data, to see that it runs")
    parser.add_argument("--dir", default=None, help="where to write (default: a temporary folder)")
    parser.add_argument("--open", metavar="PATH", help=argparse.SUPPRESS)
    parser.add_argument("--append", metavar="PATH", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.open:
        child_open(options.open)
        return
    if options.append:
        child_append(options.append)
        return
    share = 10 if options.quick else 1
    with tempfile.TemporaryDirectory(prefix="tidelog-bench-", dir=options.dir) as directory:
        scratch = Scratch(directory)
        report = Report("storage", directory)
        measure_append(scratch, report, 64 << 10, (512 // share) << 20, 5)
        measure_append(scratch, report, 1 << 10, (100 // share) << 20, 5)
        measure_sequential_read(scratch, report, (512 // share) << 20, 7)
        measure_random_read(scratch, report, (512 // share) << 20, 20_000 // share)
        measure_durable_append(scratch, report, 64_000 // share, callers=64, partitions=16)
        measure_opening(scratch, report, 1000 // share, 10)
        measure_records(report)
        report.print()


if __name__ == "__main__":
    main()
