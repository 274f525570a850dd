"""Record batches to Arrow columns and back, on one thread. `python -m benchmarks.columnar`.

The payload is 100-byte JSON without key and headers. The decoded columns are compared with the input: the number of
rows, the sum of the lengths, every offset and timestamp, and 1,000 of the values. A figure is the median of several
runs; the best run is shown as well, because small shared machines are noisy.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.report import Report
from tidelog.records.batch import CRC_START, iterate, read_header
from tidelog.records.columnar import COLUMNS, ColumnEncoder, decode_columns, murmur2_partitions
from tidelog.records.compression import Codec
from tidelog.records.crc import crc32c
from tidelog.records.record import BatchBuilder, decode

NOW_MS = 1_700_000_000_000
VALUE_SIZE = 100
ROWS = 1_000_000
SLOW_ROWS = 20_000
SMALL_BATCH, LARGE_BATCH = 16 << 10, 1 << 20
READ_COLUMNS = ("value", "offset", "timestamp")
ROUNDS = 7
DECODE_GOAL, ENCODE_GOAL = 25e6, 5e6


@dataclass(frozen=True)
class Rate:
    """Records a second: the median of the runs, and the best."""

    median: float
    best: float


def make_value(number: int) -> bytes:
    reading = number * 2_654_435_761 % 1_000_003
    text = (
        f'{{"id":{number:010d},"sensor":"s-{number % 997:04d}","reading":{reading:07d},"unit":"mbar","site":"north"'
    )
    return text.ljust(VALUE_SIZE - 1).encode() + b"}"


def make_columns(rows: int) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "value": pa.array([make_value(number) for number in range(rows)], pa.binary()),
            "timestamp": pa.array(np.arange(NOW_MS, NOW_MS + rows)),
        }
    )


def make_log(columns: pa.RecordBatch, codec: Codec, batch_bytes: int) -> bytearray:
    """The columns as a log stores them: consecutive batches, with offsets from 0."""
    log = bytearray()
    offset = 0
    for batch in ColumnEncoder(columns, now_ms=NOW_MS).batches(codec=codec, max_bytes=batch_bytes):
        batch[:8] = offset.to_bytes(8, "big")
        offset += read_header(batch).record_count
        log += batch
    return log


def verify(log: bytearray, rows: int) -> None:
    table = pa.Table.from_batches(decode_columns(log, columns=READ_COLUMNS))
    assert table.num_rows == rows
    assert pc.sum(pc.binary_length(table["value"])).as_py() == rows * VALUE_SIZE
    assert np.array_equal(table["offset"].to_numpy(), np.arange(rows))
    milliseconds = table["timestamp"].cast(pa.int64()).to_numpy() // 1000
    assert np.array_equal(milliseconds, np.arange(NOW_MS, NOW_MS + rows))
    for number in range(0, rows, max(1, rows // 1000)):
        assert table["value"][number].as_py() == make_value(number)


def rate(rows: int, work: Callable[[], int], rounds: int = ROUNDS) -> Rate:
    """`work` returns the number of records it processed, which must be all. The first run compiles and is not
    counted."""
    assert work() == rows
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return Rate(rows / statistics.median(times), rows / min(times))


def copy_and_check(batches: list[memoryview], log: bytearray, target: bytearray) -> int:
    """The lower limit of reading: the CRC of each batch, and one copy of all bytes."""
    for batch in batches:
        crc32c(batch)
    target[:] = log
    return ROWS


def decode_slowly(log: bytearray) -> int:
    return sum(len(decode(batch)) for batch in iterate(log))


def decode_fast(log: bytearray, columns: tuple[str, ...] = READ_COLUMNS, *, verify_crc: bool = True) -> int:
    return sum(batch.num_rows for batch in decode_columns(log, columns=columns, verify_crc=verify_crc))


def build_slowly(columns: pa.RecordBatch) -> int:
    built = 0
    builder = BatchBuilder()
    for number, value in enumerate(columns["value"].to_pylist()):
        builder.append(value, timestamp=NOW_MS + number)
        if builder.size > SMALL_BATCH - 2 * VALUE_SIZE:
            built += read_header(builder.build()).record_count
            builder = BatchBuilder()
    return built + len(builder)


def encode_fast(columns: pa.RecordBatch, codec: Codec, batch_bytes: int) -> int:
    batches = ColumnEncoder(columns, now_ms=NOW_MS).batches(codec=codec, max_bytes=batch_bytes)
    return sum(read_header(batch).record_count for batch in batches)


def measure_rates() -> dict[str, Rate]:
    columns = make_columns(ROWS)
    few, some = columns.slice(0, SLOW_ROWS), columns.slice(0, ROWS // 5)
    rates: dict[str, Rate] = {}
    rates["decode_slow_path"] = rate(SLOW_ROWS, partial(decode_slowly, make_log(few, Codec.NONE, SMALL_BATCH)), 5)
    log = make_log(columns, Codec.NONE, SMALL_BATCH)
    verify(log, ROWS)
    covered = [batch.view[CRC_START:] for batch in iterate(log)]
    rates["copy_and_crc_16k"] = rate(ROWS, partial(copy_and_check, covered, log, bytearray(len(log))))
    del covered
    rates["decode_16k"] = rate(ROWS, partial(decode_fast, log))
    rates["decode_16k_without_crc"] = rate(ROWS, partial(decode_fast, log, verify_crc=False))
    rates["decode_16k_all_columns"] = rate(ROWS, partial(decode_fast, log, COLUMNS))
    rates["decode_16k_offset_only"] = rate(ROWS, partial(decode_fast, log, ("offset",)))
    log = make_log(columns, Codec.NONE, LARGE_BATCH)
    verify(log, ROWS)
    rates["decode_1m"] = rate(ROWS, partial(decode_fast, log))
    for codec in list(Codec)[1:]:
        for name, batch_bytes in (("16k", SMALL_BATCH), ("1m", LARGE_BATCH)):
            log = make_log(some, codec, batch_bytes)
            verify(log, some.num_rows)
            rates[f"decode_{name}_{codec.name.lower()}"] = rate(some.num_rows, partial(decode_fast, log), 5)
    rates["encode_slow_path"] = rate(SLOW_ROWS, partial(build_slowly, few), 5)
    rates["encode_16k"] = rate(ROWS, partial(encode_fast, columns, Codec.NONE, SMALL_BATCH))
    rates["encode_1m"] = rate(ROWS, partial(encode_fast, columns, Codec.NONE, LARGE_BATCH))
    for codec in list(Codec)[1:]:
        encode = partial(encode_fast, some, codec, LARGE_BATCH)
        rates[f"encode_1m_{codec.name.lower()}"] = rate(some.num_rows, encode, 3)
    rates["murmur2_of_100_bytes"] = rate(ROWS, lambda: len(murmur2_partitions(columns["value"], 16)))
    return rates


def figures(rates: dict[str, Rate]) -> dict[str, float | int | str]:
    flat: dict[str, float | int | str] = {"columnar_payload": f"{VALUE_SIZE}-byte JSON values, no key, no headers"}
    for name, measured in rates.items():
        flat[f"columnar_{name}_records_per_s"] = round(measured.median)
        flat[f"columnar_{name}_records_per_s_best"] = round(measured.best)
    return flat


def measure() -> dict[str, float | int | str]:
    """The figures by name, for other benchmarks to show."""
    return figures(measure_rates())


def main() -> None:
    began = time.perf_counter()
    rates = measure_rates()
    report = Report("columnar", ".")
    limit = rates.pop("copy_and_crc_16k")
    for name, measured in rates.items():
        goal = {"decode_16k": DECODE_GOAL, "encode_16k": ENCODE_GOAL}.get(name)
        report.add(
            name.replace("_", " "),
            f"{measured.median / 1e6:.2f} M records/s (best {measured.best / 1e6:.2f})",
            limit=f"{limit.median / 1e6:.0f} M (CRC and a copy)" if name == "decode_16k" else "",
            goal="" if goal is None else f"{goal / 1e6:.0f} M",
            met=None if goal is None else measured.median >= goal,
        )
    report.figures = figures(rates | {"copy_and_crc_16k": limit}) | {"seconds": round(time.perf_counter() - began, 1)}
    report.print()


if __name__ == "__main__":
    main()
