"""How fast compaction is on one core, on real files: `python -m benchmarks.compaction`.

A partition is filled with updates of random keys (100-byte values), sealed, and compacted once in one thread, syncs
included. The remaining records are read back through the log and compared with a dict. The rate is the number of
records that the pass reads, divided by the elapsed time, and by the CPU time, which other processes do not change.
Each record is read twice, for the map and for the copy.
"""

import argparse
import json
import platform
import shutil
import tempfile
import threading
import time

import numpy as np
import pyarrow as pa

from tidelog.model import LeaderEpoch, TopicIdentity
from tidelog.records.batch import iterate
from tidelog.records.columnar import ColumnEncoder, decode_columns
from tidelog.records.compaction import load_kernels
from tidelog.records.compression import Codec
from tidelog.settings import CleanerSettings, CompactionSettings, FlushPolicy, LogSettings
from tidelog.storage.local.log import LocalLog
from tidelog.storage.local.store import LocalStore

VALUE_BYTES = 100
BATCH_BYTES = 64 << 10
CHUNK = 200_000
_NOW_MS = 1_700_000_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--keys", type=int, nargs="*", default=[10_000, 1_000_000])
    parser.add_argument("--codec", nargs="*", default=["none", "lz4", "zstd"])
    parser.add_argument("--directory", default=None, help="where to make the logs; a temporary one if not given")
    arguments = parser.parse_args()
    load_kernels(threading.Event())
    print(f"compaction, {platform.machine()}, Python {platform.python_version()}, one thread, files on a real disk")
    print(
        f"{arguments.records:,} records, {VALUE_BYTES}-byte values, {BATCH_BYTES >> 10} KiB batches, syncs included"
    )
    print(
        f"{'codec':>6} {'keys':>10} {'M rec/s':>12} {'a CPU second':>13} {'MB/s in':>9} {'left':>10} {'seconds':>8}"
    )
    results = []
    for codec in arguments.codec:
        for keys in arguments.keys:
            directory = tempfile.mkdtemp(prefix="tidelog-bench-", dir=arguments.directory)
            try:
                result = measure(directory, Codec.named(codec), arguments.records, keys)
            finally:
                shutil.rmtree(directory)
            results.append(result)
            print(
                f"{codec:>6} {keys:>10,} {result['million_records_per_second']:>12.2f} "
                f"{result['million_records_per_cpu_second']:>13.2f} {result['mb_per_second']:>9.0f} "
                f"{result['kept']:>10,} {result['seconds']:>8.2f}"
            )
    print(json.dumps({"benchmark": "compaction", "value_bytes": VALUE_BYTES, "verified": True, "results": results}))


def measure(directory: str, codec: Codec, records: int, keys: int) -> dict[str, float | int | str]:
    store = LocalStore(directory, inline=True)
    settings = LogSettings(segment_bytes=256 << 20, flush=FlushPolicy.OS, compaction=CompactionSettings())
    log = store.open(TopicIdentity("bench", bytes(16)).partition(0), settings, _NOW_MS)
    chosen = np.random.default_rng(1).integers(0, keys, records)
    size = fill(log, chosen, codec)
    began, cpu_began = time.perf_counter(), time.process_time()
    done = log.compaction.run(_NOW_MS, cleaner=CleanerSettings())
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
    assert done is not None
    check(log, chosen)
    store.close_now()
    return {
        "codec": codec.name.lower(),
        "keys": keys,
        "records": records,
        "kept": done.records_kept,
        "seconds": round(seconds, 3),
        "cpu_seconds": round(cpu_seconds, 3),
        "million_records_per_cpu_second": round(done.records_read / cpu_seconds / 1e6, 3),
        "million_records_per_second": round(done.records_read / seconds / 1e6, 3),
        "mb_per_second": round(size / seconds / 1e6, 1),
    }


def fill(log: LocalLog, chosen: "np.ndarray[tuple[int], np.dtype[np.int64]]", codec: Codec) -> int:
    """Append all records and seal them; returns their size on disk."""
    random = np.random.default_rng(2)
    for start in range(0, chosen.size, CHUNK):
        part = chosen[start : start + CHUNK]
        keys = pa.array([b"key-%010d" % key for key in part.tolist()])
        filler = random.integers(97, 123, VALUE_BYTES - 20, np.uint8).tobytes()
        values = pa.array([b"%020d" % (start + number) + filler for number in range(part.size)])
        columns = pa.RecordBatch.from_arrays([keys, values], names=["key", "value"])
        for batch in ColumnEncoder(columns, now_ms=_NOW_MS).batches(codec=codec, max_bytes=BATCH_BYTES):
            log.append(batch, now_ms=_NOW_MS, leader_epoch=LeaderEpoch(0), durable=False)
    log._roll(_NOW_MS)
    log.flush(checkpoint=True)
    return log.stats().size_bytes


def check(log: LocalLog, chosen: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> None:
    """The remaining records must be the last value of each key, at its offset, in order."""
    last = {key: offset for offset, key in enumerate(chosen.tolist())}
    expected = sorted(last.values())
    found: list[int] = []
    offset = 0
    while offset < log.end_offset:
        data = log.read_now(offset, 8 << 20).read()
        if not data:
            break
        for columns in decode_columns(data, columns=("key", "value", "offset")):
            offsets = columns["offset"].to_pylist()
            assert columns["value"].to_pylist()[0][:20] == b"%020d" % offsets[0]
            keys, values = columns["key"].to_pylist(), columns["value"].to_pylist()
            assert all(
                value[:20] == b"%020d" % at and last[int(key[4:])] == at
                for key, value, at in zip(keys, values, offsets, strict=True)
            )
            found += offsets
        offset = max(view.header.next_offset for view in iterate(data, verify=False))
    assert found == expected, f"{len(found)} records remain, expected were {len(expected)}"


if __name__ == "__main__":
    main()
