"""How fast a table applies a log and answers look-ups: `python -m benchmarks.tables`.

Batches of records with 100-byte values are applied to the table of one partition in one thread, as in the broker, in
chunks of 1 MiB; each key of a chunk is written once. Then keys are looked up and compared with a dict.
"""

import argparse
import json
import platform
import random
import shutil
import tempfile
import time

import numpy as np
import pyarrow as pa

from tidelog.model import LeaderEpoch
from tidelog.records.batch import place, read_header
from tidelog.records.columnar import ColumnEncoder
from tidelog.storage.log import ReadResult
from tidelog.storage.table import Table

VALUE_BYTES = 100
CHUNK_BYTES = 1 << 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, nargs="*", default=[1_000, 500_000])
    arguments = parser.parse_args()
    print(f"tables, {platform.machine()}, Python {platform.python_version()}, {arguments.records:,} records")
    print(f"{'keys':>10} {'k records/s':>12} {'a CPU second':>13} {'k look-ups/s':>13} {'100 at a time':>14}")
    results = []
    for keys in arguments.keys:
        directory = tempfile.mkdtemp(prefix="tidelog-bench-")
        try:
            result = measure(directory, arguments.records, keys)
        finally:
            shutil.rmtree(directory)
        results.append(result)
        print(
            f"{keys:>10,} {result['records_per_second'] / 1000:>12.0f} "
            f"{result['records_per_cpu_second'] / 1000:>13.0f} {result['lookups_per_second'] / 1000:>13.0f} "
            f"{result['lookups_per_second_by_100'] / 1000:>14.0f}"
        )
    print(json.dumps({"benchmark": "tables", "value_bytes": VALUE_BYTES, "verified": True, "results": results}))


def measure(directory: str, records: int, keys: int) -> dict[str, float]:
    chosen = np.random.default_rng(1).integers(0, keys, records)
    chunks = _chunks(chosen)
    table = Table(directory)
    table.apply(ReadResult([chunks[0]], len(chunks[0])))  # compiles the kernels
    table.applied = 0
    began, cpu_began = time.perf_counter(), time.process_time()
    for chunk in chunks:
        table.apply(ReadResult([chunk], len(chunk)))
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
    last = {key: offset for offset, key in enumerate(chosen.tolist())}
    some = random.Random(1).sample(sorted(last), min(len(last), 20_000))
    began = time.perf_counter()
    for key in some:
        (row,) = table.get([b"key-%010d" % key])
        assert row is not None
        assert row.offset == last[key]
        assert row.value[:20] == b"%020d" % last[key]
    one_by_one = len(some) / (time.perf_counter() - began)
    began = time.perf_counter()
    for start in range(0, len(some), 100):
        table.get([b"key-%010d" % key for key in some[start : start + 100]])
    by_100 = len(some) / (time.perf_counter() - began)
    table.close()
    return {
        "keys": keys,
        "records_per_second": round(records / seconds),
        "records_per_cpu_second": round(records / cpu_seconds),
        "lookups_per_second": round(one_by_one),
        "lookups_per_second_by_100": round(by_100),
    }


def _chunks(chosen: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> list[bytes]:
    keys = pa.array([b"key-%010d" % key for key in chosen.tolist()])
    values = pa.array([b"%020d" % number + b"x" * (VALUE_BYTES - 20) for number in range(chosen.size)])
    columns = pa.RecordBatch.from_arrays([keys, values], names=["key", "value"])
    found, current, offset = [], bytearray(), 0
    for batch in ColumnEncoder(columns, now_ms=1_700_000_000_000).batches(max_bytes=64 << 10):
        header = read_header(batch)
        place(batch, 0, header, offset, LeaderEpoch(0))
        offset += header.record_count
        current += batch
        if len(current) >= CHUNK_BYTES:
            found.append(bytes(current))
            current = bytearray()
    return [*found, bytes(current)] if current else found


if __name__ == "__main__":
    main()
