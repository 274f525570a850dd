"""Checks every CRC and finds every gap: in a data directory, file by file, or through a broker, batch by batch.

The storage engine checks the files, one partition per process. Through a broker, a partition is read in ranges, one
per process; a batch that is in two ranges counts in the first.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tidelog.client import Client, FetchOptions
from tidelog.errors import CorruptBatch, TidelogError
from tidelog.model import Offset
from tidelog.records.batch import iterate
from tidelog.records.record import decode
from tidelog.spark.clients import connect_patiently
from tidelog.spark.jobs.ranges import Range, cut, ends
from tidelog.storage.direct import KeptLog
from tidelog.storage.engines import kept_logs

_RANGE = 2_000_000
_MAX_FINDINGS = 1000


class Problem(NamedTuple):
    severity: str
    topic: str
    partition: int
    offset: Offset | None
    what: str
    file: str | None = None
    position: int | None = None


class Audited(NamedTuple):
    """What one unit checked, and the problems it found."""

    topic: str
    partition: int
    batches: int
    records: int
    size_bytes: int
    problems: Sequence[Problem]


class DirectoryUnit(NamedTuple):
    kept: KeptLog
    deep: bool

    @property
    def topic(self) -> str:
        return self.kept.partition.topic

    @property
    def partition(self) -> int:
        return self.kept.partition.partition

    @property
    def size(self) -> int:
        return self.kept.size_bytes


class BrokerUnit(NamedTuple):
    bootstrap: str
    range: Range
    compacted: bool
    deep: bool

    @property
    def size(self) -> int:
        return self.range.size


def plan_directory(path: str, topics: Sequence[str] = (), *, deep: bool = False) -> list[DirectoryUnit]:
    units = [DirectoryUnit(kept, deep) for kept in kept_logs(path) if not topics or kept.partition.topic in topics]
    return sorted(units, key=lambda unit: -unit.size)


def plan_broker(
    client: Client, bootstrap: str, topics: Sequence[str] = (), *, deep: bool = False
) -> list[BrokerUnit]:
    units = []
    for topic in topics or [row.name for row in client.topics()]:
        policy = next((c.value for c in client.topic_configs(topic) if c.name == "cleanup.policy"), None) or ""
        for partition, (first, last) in ends(client, topic, committed=False).items():
            parts = cut(Range(topic, partition, first, last), _RANGE)
            units += [BrokerUnit(bootstrap, part, "compact" in policy, deep) for part in parts]
    return units


def audit_directory(unit: DirectoryUnit) -> Audited:
    checked = unit.kept.log.check(in_use=unit.kept.in_use, deep=unit.deep, most_problems=_MAX_FINDINGS)
    problems = [
        Problem(one.severity, unit.topic, unit.partition, one.offset, one.what, one.file, one.position)
        for one in checked.problems
    ]
    return Audited(unit.topic, unit.partition, checked.batches, checked.records, checked.size_bytes, problems)


def audit_broker(unit: BrokerUnit) -> Audited:
    part = unit.range
    batches = records = size = 0
    problems: list[Problem] = []

    def wrong(what: str, offset: Offset) -> None:
        if len(problems) < _MAX_FINDINGS:
            problems.append(Problem("error", part.topic, part.partition, offset, what))

    expected = part.start
    fetch = FetchOptions(max_wait_ms=100, max_bytes=32 << 20, partition_max_bytes=8 << 20, out_of_range="error")
    try:
        with connect_patiently(unit.bootstrap) as client:
            for chunk in client.read_range(part.topic, part.partition, part.start, part.end, fetch=fetch):
                if chunk.next_offset == chunk.from_offset:
                    break
                for view in iterate(chunk.records):
                    header = view.header
                    if header.base_offset >= part.end:
                        break
                    if header.base_offset > expected and not unit.compacted:
                        wrong(f"offsets {expected} to {header.base_offset - 1} are missing", expected)
                    if header.last_offset < expected and header.last_offset >= part.start:
                        wrong(f"offset {header.last_offset} comes after {expected - 1}", header.last_offset)
                    expected = max(expected, header.next_offset)
                    if header.base_offset >= part.start:  # else it counts in the previous range
                        batches += 1
                        records += header.record_count
                        size += len(view.view)
                    if unit.deep:
                        for _ in decode(view):
                            pass
    except CorruptBatch as error:
        wrong(str(error), expected)
    except TidelogError as error:
        wrong(f"cannot be read: {error}", expected)
    if expected < part.end and not unit.compacted and not problems:
        wrong(f"offsets {expected} to {part.end - 1} are missing", expected)
    return Audited(part.topic, part.partition, batches, records, size, problems)


def by_partition(results: Sequence[Audited]) -> Iterator[Audited]:
    """The results, with the units of each partition added up."""
    together: dict[tuple[str, int], Audited] = {}
    for one in results:
        place = (one.topic, one.partition)
        before = together.get(place)
        if before is not None:
            one = one._replace(
                batches=before.batches + one.batches,
                records=before.records + one.records,
                size_bytes=before.size_bytes + one.size_bytes,
                problems=[*before.problems, *one.problems],
            )
        together[place] = one
    for place in sorted(together):
        yield together[place]
