"""The cost of checking produced batches: `python -m benchmarks.validation [--quick] [--dir DIR]`.

First the checks alone, in this process, with the walk in C and in Python. Then a broker process that receives
prepared batches over a socket on each level of `tidelog.validate`. The levels alternate, and the minimum of several
rounds is shown, because other programs can only add to the time. The budget that `auto` has saved is used up before
it is measured. Every reply is read; the last one of a round is checked: its offset shows whether all were appended.
"""

import argparse
import random
import tempfile
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from benchmarks.broker import CREATE, PRODUCE, PRODUCE_VERSION, Broker, Raw, produce_frame
from benchmarks.report import Report
from tidelog.records.batch import HEADER_SIZE, iterate
from tidelog.records.compression import Codec, Expander
from tidelog.records.frames import frame_bound, read_frame
from tidelog.records.record import build_batch
from tidelog.records.walk import IS_COMPILED, MAX_TIMESTAMP, MIN_TIMESTAMP, Walk, walk, walk_in_python
from tidelog.wire.envelope import decode_response
from tidelog.wire.generated.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

LEVELS = ("header", "auto", "full")
WINDOW = 32


class Case(NamedTuple):
    name: str
    records: int
    value_bytes: int
    codec: Codec

    def build(self) -> bytearray:
        """Values of random words, which compress like text."""
        chance = random.Random(11)
        letters = b"abcdefghijklmnopqrstuvwxyz"
        words = [bytes(chance.choices(letters, k=chance.randrange(3, 9))) for _ in range(500)]
        now_ms = int(time.time() * 1000)
        return build_batch(
            [
                (
                    now_ms + number // 10,
                    b"key %d" % number,
                    b" ".join(chance.choices(words, k=size // 4 + 1))[:size],
                    (),
                )
                for number, size in enumerate([self.value_bytes] * self.records)
            ],
            self.codec,
        )


CASES = (
    Case("590 records of 100 B", 590, 100, Codec.NONE),
    Case("590 records of 100 B, lz4", 590, 100, Codec.LZ4),
    Case("590 records of 100 B, zstd", 590, 100, Codec.ZSTD),
    Case("590 records of 100 B, snappy", 590, 100, Codec.SNAPPY),
    Case("590 records of 100 B, gzip", 590, 100, Codec.GZIP),
    Case("3,000 records of 10 B", 3000, 10, Codec.NONE),
    Case("1 record of 64 KB", 1, 65_000, Codec.NONE),
    Case("1 record of 100 B", 1, 100, Codec.NONE),
    Case("1 record of 100 B, lz4", 1, 100, Codec.LZ4),
    Case("1 record of 100 B, zstd", 1, 100, Codec.ZSTD),
)


def least_us(work: Callable[[], object], budget_s: float = 0.2) -> float:
    """The CPU time of one call: the best of several runs."""
    began, best, number = time.perf_counter(), float("inf"), 1
    while time.perf_counter() - began < budget_s:
        before = time.thread_time()
        for _ in range(number):
            work()
        taken = time.thread_time() - before
        if taken < 0.002:
            number *= 2
        else:
            best = min(best, taken / number)
    return best * 1e6


def measure_checks(report: Report) -> None:
    expander = Expander()
    for case in CASES:
        batch = case.build()
        view = next(iterate(batch))
        payload, base, codec = view.payload, view.header.base_timestamp, case.codec
        records = bytes(build_batch_payload(case))
        frame_us = expand_us = 0.0
        if codec:
            content, most = read_frame(codec, payload)
            frame_us = least_us(lambda: frame_bound(codec, batch, HEADER_SIZE))  # noqa: B023, called at once
            expand_us = least_us(
                lambda: expander.expand(codec, payload, content=content, most=most, limit=1 << 26)  # noqa: B023
            )

        def walked(by: Walk, records: bytes = records, count: int = case.records, base: int = base) -> float:
            bounds = (MIN_TIMESTAMP, MAX_TIMESTAMP, 0)
            return least_us(lambda: by(records, 0, count, base, False, False, *bounds))

        in_c, in_python = walked(walk) if IS_COMPILED else float("nan"), walked(walk_in_python)
        report.figures[f"check {case.name}"] = {
            "bytes": len(batch),
            "frame_us": round(frame_us, 2),
            "expand_us": round(expand_us, 1),
            "walk_c_us": round(in_c, 2),
            "walk_python_us": round(in_python, 1),
        }
        per_gb = (in_c + expand_us) / len(batch) * 1e3
        report.add(
            f"checks alone: {case.name} ({len(batch):,} B)",
            f"walk {in_c:.2f} us in C, {in_python:.1f} in Python"
            + (f"; frame {frame_us:.2f}, decompress {expand_us:.1f} us" if codec else "")
            + (f"; {per_gb:.3f} CPU s/GB" if case.records > 1 else ""),
        )


def build_batch_payload(case: Case) -> memoryview:
    return next(iterate(case._replace(codec=Codec.NONE).build())).payload


def produce(broker: Broker, topic: str, batch: bytearray, records: int, count: int) -> float:
    """Broker CPU seconds for this number of pipelined requests."""
    raw = Raw(broker.bootstrap)
    frame = produce_frame(topic, batch, 1)
    room = threading.Semaphore(WINDOW)

    def send() -> None:
        for _ in range(count):
            room.acquire()
            raw.socket.sendall(frame)

    cpu = broker.cpu_seconds()
    sender = threading.Thread(target=send)
    sender.start()
    for _ in range(count):
        reply = raw.frame()
        room.release()
    sender.join()
    taken = broker.cpu_seconds() - cpu
    result = decode_response(PRODUCE, PRODUCE_VERSION, bytes(reply)).responses[0].partition_responses[0]
    assert result.error_code == 0, result
    assert result.base_offset >= (count - 1) * records, result
    raw.socket.close()
    return taken


def measure_broker(broker: Broker, report: Report, rounds: int, share: int) -> None:
    for number, case in enumerate(CASES):
        batch = case.build()
        count = (
            20_000 // share if case.records == 1 and case.value_bytes < 1000 else 300_000_000 // share // len(batch)
        )
        topics = {level: f"topic-{number}-{level}" for level in LEVELS}
        raw = Raw(broker.bootstrap)
        for level, topic in topics.items():
            configs = {"tidelog.validate": level, "retention.bytes": "100000000", "segment.bytes": "50000000"}
            named = [CreatableTopicConfig(*config) for config in configs.items()]
            reply = raw.ask(CREATE, 5, CreateTopicsRequest([CreatableTopic(topic, 1, 1, [], named)], 10_000))
            assert reply.topics[0].error_code == 0, reply
        raw.socket.close()
        best = dict.fromkeys(LEVELS, float("inf"))
        for _ in range(rounds):
            for level, topic in topics.items():
                if case.codec and level == "auto":
                    produce(broker, topic, batch, case.records, 2000 // share)
                best[level] = min(best[level], produce(broker, topic, batch, case.records, count) / count * 1e6)
        report.figures[f"broker {case.name}"] = {level: round(us, 2) for level, us in best.items()}
        per_gb = {level: us * 1e3 / len(batch) for level, us in best.items()}
        report.add(
            f"broker: {case.name}",
            ", ".join(
                f"{level} {us:.1f} us" + (f" ({per_gb[level]:.2f} CPU s/GB)" if case.records > 1 else "")
                for level, us in best.items()
            ),
            goal="auto at most 1.1 x header",
            met=best["auto"] <= 1.1 * best["header"],
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the work, to see that it runs")
    parser.add_argument("--dir", help="where the broker keeps its data (default: a temporary folder)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.dir) as directory:
        report = Report("validation of produced batches", directory)
        measure_checks(report)
        broker = Broker(directory)
        try:
            measure_broker(broker, report, rounds=1 if arguments.quick else 5, share=10 if arguments.quick else 1)
        finally:
            broker.stop()
        report.print()


if __name__ == "__main__":
    main()
