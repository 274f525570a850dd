"""Every CRC and every gap: of a data directory, file by file, or of what a broker serves, batch by batch.

Files are checked by `storage.local.verify`, one partition to a process. Through a broker a partition is read in
ranges, each by a process; a batch that lies in two of them counts in the first.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tidelog.client import Client, FetchOptions, connect
from tidelog.errors import CorruptBatch, TidelogError
from tidelog.model import Offset
from tidelog.records.batch import iterate
from tidelog.records.record import decode
from tidelog.spark.jobs.ranges import Range, cut, ends
from tidelog.storage.local.files import OsFiles
from tidelog.storage.local.inspect import find_partitions, holder_of
from tidelog.storage.local.verify import PartitionCheck

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
    """What was looked at in one unit, and what is wrong with it."""

    topic: str
    partition: int
    batches: int
    records: int
    size_bytes: int
    problems: Sequence[Problem]


class DirectoryUnit(NamedTuple):
    topic: str
    partition: int
    directory: str
    in_use: bool
    deep: bool
    size: int


class BrokerUnit(NamedTuple):
    bootstrap: str
    range: Range
    compacted: bool
    deep: bool

    @property
    def size(self) -> int:
        return self.range.size


def plan_directory(path: str, topics: Sequence[str] = (), *, deep: bool = False) -> list[DirectoryUnit]:
    files = OsFiles()
    in_use = holder_of(path) is not None
    units = []
    for place in find_partitions(files, path):
        if place.partition is None or (topics and place.partition.topic not in topics):
            continue
        from tidelog.storage.local.inspect import list_partition

        size = sum(list_partition(files, place.directory).segments.values())
        units.append(DirectoryUnit(*place.partition, place.directory, in_use, deep, size))
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
    check = PartitionCheck(OsFiles(), unit.directory, in_use=unit.in_use, deep=unit.deep)
    problems: list[Problem] = []
    for finding in check:
        if len(problems) < _MAX_FINDINGS:
            problems.append(
                Problem(
                    finding.severity.value,
                    unit.topic,
                    unit.partition,
                    finding.offset,
                    finding.what,
                    finding.path,
                    finding.position,
                )
            )
    tally = check.tally
    return Audited(unit.topic, unit.partition, tally.batches, tally.records, tally.size_bytes, problems)


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
        with connect(unit.bootstrap) as client:
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
                    if header.base_offset >= part.start:  # else it counts in the range before
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
    """Units of a partition put together."""
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
