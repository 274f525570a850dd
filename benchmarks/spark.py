"""Spark over topics. `python -m benchmarks.spark [--quick] [--rows N] [--dir DIR] [--no-kafka]`.

A broker process, Spark with local[2], values of 100 bytes. Topics are filled by the columnar encoder, not by Spark.
Every read is checked by count and by sums of lengths and offsets, every write by reading it back. If Maven can be
reached, Spark's own Kafka connector does the same work on the same broker in the same run. The commands
`tidelog archive` and `tidelog sql` are timed from the start of the process to its end, as a user runs them.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession

from benchmarks.broker import TICKS, Broker, running
from benchmarks.report import Report
from tidelog.client import ProducerOptions, connect
from tidelog.model import TopicPartition
from tidelog.records.columnar import ColumnEncoder
from tidelog.records.compression import Codec
from tidelog.spark.java import cache_dir
from tidelog.spark.session import spark_session

PARTITIONS = 4
VALUE_BYTES = 100
_EVENT = b'{"user": %06d, "event": "click", "page": "/products/%06d", "source": "mail", "amount":   %06d}'
MAVEN = "https://repo1.maven.org/maven2"
CONNECTOR = (
    "org/apache/spark/spark-sql-kafka-0-10_2.13/4.2.0/spark-sql-kafka-0-10_2.13-4.2.0.jar",
    # Not every mirror has later versions of this artifact, which is only about security.
    "org/apache/spark/spark-token-provider-kafka-0-10_2.13/4.0.0/spark-token-provider-kafka-0-10_2.13-4.0.0.jar",
    "org/apache/kafka/kafka-clients/3.9.2/kafka-clients-3.9.2.jar",
    "org/apache/commons/commons-pool2/2.13.1/commons-pool2-2.13.1.jar",
)


def connector_jars() -> list[str]:
    """Spark's Kafka connector, from Maven or from the cache; empty if it is not available."""
    folder = cache_dir() / "maven"
    jars = []
    for path in CONNECTOR:
        jar = folder / Path(path).name
        if not jar.exists():
            try:
                with urllib.request.urlopen(f"{MAVEN}/{path}", timeout=30) as reply:
                    content = reply.read()
            except OSError:
                return []
            folder.mkdir(parents=True, exist_ok=True)
            draft = jar.with_suffix(f".{os.getpid()}")
            draft.write_bytes(content)
            draft.replace(jar)
        jars.append(str(jar))
    return jars


def fill(bootstrap: str, topic: str, rows: int, codec: Codec) -> None:
    """`rows` over all partitions, in batches of about a megabyte (before compression)."""
    some = 8000
    numbers = np.random.default_rng(7).integers(0, 1_000_000, (some, 3)).tolist()
    values = [_EVENT % tuple(row) for row in numbers]
    assert {len(value) for value in values} == {VALUE_BYTES}
    columns = pa.RecordBatch.from_pydict({"value": pa.array(values, pa.binary())})
    encoder = ColumnEncoder(columns, now_ms=time.time_ns() // 1_000_000)
    (batch,) = encoder.batches(codec=codec, max_bytes=some * (VALUE_BYTES + 20))
    options = ProducerOptions(acks=1, idempotent=False)
    with connect(bootstrap) as client:
        client.create_topic(topic, partitions=PARTITIONS)
        with client.batch_sender(options) as sender:
            whole, rest = divmod(rows, some)
            assert not rest, f"rows must be a multiple of {some}"
            for number in range(whole):
                sender.send(TopicPartition(topic, number % PARTITIONS), [batch])
            sender.flush()


def end_offsets(bootstrap: str, topic: str) -> list[int]:
    with connect(bootstrap) as client:
        return [row.end_offset for row in client.partitions(topic)]


class Taken(NamedTuple):
    wall: float
    cpu: float
    """CPU time of Spark's JVM, its Python workers and the broker. On a busy machine it is more reliable than the
    elapsed time."""


def timed(work: Callable[[], Any]) -> Taken:
    cpu, began = cpu_seconds(), time.perf_counter()
    work()
    return Taken(time.perf_counter() - began, cpu_seconds() - cpu)


def written_out() -> None:
    """Sync the data of earlier runs: with some gigabytes of dirty pages, the kernel throttles writers, and each write
    costs the broker several times the CPU."""
    os.sync()


def cpu_seconds() -> float:
    """CPU time of this process and of its descendants that still run."""
    rows: dict[int, tuple[int, float]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{name}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        rows[int(name)] = int(fields[1]), sum(map(int, fields[11:15])) / TICKS
    total, ours = 0.0, {os.getpid()}
    while ours:
        total += sum(rows[pid][1] for pid in ours if pid in rows)
        ours = {pid for pid, (parent, _) in rows.items() if parent in ours}
    return total


class Bench:
    def __init__(self, spark: SparkSession, broker: Broker, report: Report, rows: int, scratch: str) -> None:
        self.spark = spark
        self.broker = broker
        self.report = report
        self.rows = rows
        self.scratch = scratch

    def options(self, **more: str) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.broker.bootstrap, **more}

    def add(self, name: str, what: str, runs: Sequence[Taken], goal: float | None = None) -> float:
        best, median = (
            self.rows / wall / 1e6 for wall in (min(runs).wall, statistics.median(run.wall for run in runs))
        )
        # If a worker ends between two readings, its CPU time is lost: such a run does not count.
        cpu = min((run.cpu for run in runs if run.cpu > 0), default=float("nan")) / self.rows * 1e6
        self.report.figures[name] = {
            "best": round(best, 3),
            "median": round(median, 3),
            "cpu_us_per_row": round(cpu, 3),
        }
        met = None if goal is None else best >= goal
        goal_text = "" if goal is None else f"{goal} M rows/s"
        said = f"{best:.2f} M rows/s (median {median:.2f}), {cpu:.2f} us CPU a row"
        self.report.add(what, said, "", goal_text, met=met)
        return best

    # --- reading --------------------------------------------------------------------------------------------------

    def check(self, rows: DataFrame, topic: str) -> None:
        """Reads everything, and checks that nothing is missing."""
        has_offset = "offset" in rows.columns
        sums = ["count(*)", "sum(length(value))"] + (["sum(offset)"] if has_offset else [])
        found = tuple(rows.selectExpr(*sums).collect()[0])
        ends = end_offsets(self.broker.bootstrap, topic)
        expected: tuple[int, ...] = (self.rows, self.rows * VALUE_BYTES)
        if has_offset:
            expected += (sum(end * (end - 1) // 2 for end in ends),)
        assert found == expected, (found, expected)

    def read(self, name: str, what: str, topic: str, goal: float | None = None, **more: str) -> float:
        form = more.pop("format", "tidelog")
        schema = more.pop("columns", None)
        repeat = int(more.pop("repeat", "3"))
        reader = self.spark.read.format(form).options(**self.options(subscribe=topic, **more))
        rows = (reader.schema(schema) if schema else reader).load()
        return self.add(name, what, [timed(lambda: self.check(rows, topic)) for _ in range(repeat)], goal)

    def stream(self, name: str, what: str, topic: str, goal: float | None = None, form: str = "tidelog") -> float:
        def run() -> None:
            rows = (
                self.spark.readStream.format(form)
                .options(**self.options(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="2000000"))
                .load()
            )
            checkpoint = tempfile.mkdtemp(dir=self.scratch)
            query = (
                rows.selectExpr("length(value) size")
                .writeStream.foreachBatch(total)
                .option("checkpointLocation", checkpoint)
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
            assert seen == [self.rows, self.rows * VALUE_BYTES], seen
            seen[:] = [0, 0]

        def total(batch: DataFrame, _: int) -> None:
            count, size = batch.selectExpr("count(*)", "sum(size)").collect()[0]
            seen[0] += count
            seen[1] += size or 0

        seen = [0, 0]
        return self.add(name, what, [timed(run) for _ in range(2)], goal)

    # --- writing --------------------------------------------------------------------------------------------------

    def write(self, name: str, what: str, goal: float | None = None, **more: str) -> float:
        form = more.pop("format", "tidelog")
        # `concat` makes a value with two copies; `rpad` copies byte by byte, which takes the JVM longer than the
        # write. Keys spread the rows over all partitions.
        prefix = 10**12
        padding = "x" * (VALUE_BYTES - len(str(prefix)))
        rows = self.spark.range(0, self.rows, 1, 4).selectExpr(
            "cast(id as string) key", f"concat(cast(id + {prefix} as string), '{padding}') value"
        )
        number = 0

        def run() -> None:
            nonlocal number
            number += 1
            topic = f"{name}-{number}"
            with connect(self.broker.bootstrap) as client:
                client.create_topic(topic, partitions=PARTITIONS)
            writer = rows.write.format(form).mode("append").options(**self.options(topic=topic, **more))
            written_out()
            taken.append(timed(writer.save))
            back = self.spark.read.format("tidelog").options(**self.options(subscribe=topic)).load()
            found = back.selectExpr("count(*)", "sum(length(value))", "sum(cast(cast(key as string) as bigint))")
            expected = (self.rows, self.rows * VALUE_BYTES, self.rows * (self.rows - 1) // 2)
            assert tuple(found.collect()[0]) == expected

        taken: list[Taken] = []
        for _ in range(2):
            run()
        return self.add(name, what, taken, goal)

    # --- commands -------------------------------------------------------------------------------------------------

    def command(self, *arguments: str) -> dict[str, Any]:
        """The only row that `tidelog ARGUMENTS` prints."""
        words = [sys.executable, "-m", "tidelog", *arguments, "--bootstrap", self.broker.bootstrap, "--json"]
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
        (row,) = done.stdout.splitlines()
        return json.loads(row)  # type: ignore[no-any-return]

    def archive(self, name: str, what: str, topic: str, goal: float | None = None) -> float:
        """Archive all records to synced files; their rows are counted and summed."""
        taken = []
        for _ in range(2):
            with tempfile.TemporaryDirectory(dir=self.scratch) as path:
                said: list[dict[str, Any]] = []
                written_out()
                taken.append(timed(lambda: said.append(self.command("archive", topic, "--to", path))))  # noqa: B023
                assert said[0]["records"] == self.rows, said
                count = size = offsets = 0
                for batch in ds.dataset(path, format="parquet").to_batches(columns=["value", "offset"]):
                    count += batch.num_rows
                    size += pc.sum(pc.binary_length(batch["value"])).as_py() or 0
                    offsets += pc.sum(batch["offset"]).as_py() or 0
                expected = sum(end * (end - 1) // 2 for end in end_offsets(self.broker.bootstrap, topic))
                assert (count, size, offsets) == (self.rows, self.rows * VALUE_BYTES, expected)
        return self.add(name, what, taken, goal)

    def sql(self, name: str, what: str, goal_s: float) -> None:
        """A query of a small topic in a new process; the archive of Java classes exists from earlier runs."""
        rows = 8000
        fill(self.broker.bootstrap, "small", rows, Codec.NONE)
        query = "SELECT count(*) AS records, sum(length(value)) AS size FROM small"
        taken = []
        for _ in range(3):
            began = time.perf_counter()
            answer = self.command("sql", query)
            taken.append(time.perf_counter() - began)
            assert answer["records"] == rows, answer
            assert answer["size"] == rows * VALUE_BYTES, answer
        best, median = min(taken), statistics.median(taken)
        self.report.figures[name] = {"best_s": round(best, 2), "median_s": round(median, 2)}
        said = f"{best:.1f} s (median {median:.1f}, first {taken[0]:.1f})"
        self.report.add(what, said, "", f"{goal_s:.0f} s", met=best <= goal_s)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, to see that it runs")
    parser.add_argument("--rows", type=int, default=10_000_000, help="a multiple of 8000")
    parser.add_argument("--dir", default=None, help="where the broker keeps its data (default: a temporary folder)")
    parser.add_argument("--no-kafka", action="store_true", help="without Spark's Kafka connector")
    options = parser.parse_args()
    rows = options.rows // (10 if options.quick else 1)
    jars = [] if options.no_kafka else connector_jars()
    conf = {"spark.buffer.size": str(1 << 20)} | ({"spark.jars": ",".join(jars)} if jars else {})
    spark = spark_session("bench", master="local[2]", conf=conf, long_lived=True)
    with tempfile.TemporaryDirectory(prefix="tidelog-bench-", dir=options.dir) as directory:
        report = Report(f"spark (local[2], {rows:,} rows of {VALUE_BYTES} bytes, {PARTITIONS} partitions)", directory)
        report.figures["load_before"] = [round(value, 2) for value in os.getloadavg()]
        with running(f"{directory}/broker") as broker:
            bench = Bench(spark, broker, report, rows, directory)
            for topic, codec in (("plain", Codec.NONE), ("zstd", Codec.ZSTD)):
                fill(broker.bootstrap, topic, rows, codec)
            read = bench.read("source_plain", "read, count and sums", "plain", 3.5)
            bench.read("source_plain_broker", "the same, read=broker", "plain", read="broker")
            bench.read("source_plain_value", 'the same, schema "value binary"', "plain", columns="value binary")
            bench.read("source_zstd", "read, zstd", "zstd", 2.5)
            bench.stream("stream_plain", "stream, AvailableNow, 2 M rows a batch", "plain", 1.5)
            written = bench.write("sink_plain", "write, by key, acks=all", 0.8)
            bench.write("sink_once", "write, by key, delivery=exactly-once", delivery="exactly-once")
            bench.write("sink_zstd", "write, by key, acks=all, zstd", compression="zstd")
            bench.archive("archive", "tidelog archive, to Parquet", "plain", 2.0)
            bench.sql("sql_cold", "tidelog sql, a small topic, from process start to end", 8.0)
            if jars:
                theirs = bench.read("kafka_source", "Spark's Kafka connector: read", "plain", format="kafka")
                wrote = bench.write("kafka_sink", "Spark's Kafka connector: write", format="kafka")
                ratios = {"read_ratio": read / theirs, "write_ratio": written / wrote}
                report.figures |= {name: round(ratio, 2) for name, ratio in ratios.items()}
                report.add("read, against the connector", f"{ratios['read_ratio']:.1f} x", "", "3 x")
                report.add("write, against the connector", f"{ratios['write_ratio']:.1f} x", "", "2 x")
        report.figures["load_after"] = [round(value, 2) for value in os.getloadavg()]
        report.print()
    spark.stop()


if __name__ == "__main__":
    main()
