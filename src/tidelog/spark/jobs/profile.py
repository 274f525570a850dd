"""Statistics of a topic: counts, sizes, keys, times. Workers compute them from columns; here they are combined.

Counts, bytes, times and the sizes of values are exact. The number of distinct keys is an estimate (from the smallest
of their hashes). The most frequent keys are counted exactly while a worker sees fewer than 100,000 distinct keys in
its range; beyond that, rare ones are dropped on the way.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tidelog.client import Client
from tidelog.model import Offset
from tidelog.spark.clients import connect_patiently
from tidelog.spark.jobs.ranges import Range, cut, ends, read_columns

_RANGE = 1_000_000
_KEPT_KEYS = 100_000
_HASHES = 2048
_HASH_SPACE = 2**31 - 1
_MINUTE_US = 60_000_000
PERCENTILES = (50, 90, 99, 100)


class Unit(NamedTuple):
    bootstrap: str
    range: Range

    @property
    def size(self) -> int:
        return self.range.size


@dataclass
class Facts:
    """The statistics of one range, or of many combined."""

    records: int = 0
    key_bytes: int = 0
    value_bytes: int = 0
    null_keys: int = 0
    null_values: int = 0
    with_headers: int = 0
    first_us: int | None = None
    last_us: int | None = None
    value_sizes: Counter[int] = field(default_factory=Counter)
    minutes: Counter[int] = field(default_factory=Counter)
    keys: Counter[bytes] = field(default_factory=Counter)
    hashes: list[int] = field(default_factory=list)
    """The smallest hashes of keys, sorted."""

    def add(self, other: "Facts") -> None:
        self.records += other.records
        self.key_bytes += other.key_bytes
        self.value_bytes += other.value_bytes
        self.null_keys += other.null_keys
        self.null_values += other.null_values
        self.with_headers += other.with_headers
        times = [t for t in (self.first_us, other.first_us) if t is not None]
        self.first_us = min(times, default=None)
        times = [t for t in (self.last_us, other.last_us) if t is not None]
        self.last_us = max(times, default=None)
        self.value_sizes.update(other.value_sizes)
        self.minutes.update(other.minutes)
        self.keys.update(other.keys)
        self.trim()
        self.hashes = sorted({*self.hashes, *other.hashes})[:_HASHES]

    def trim(self) -> None:
        if len(self.keys) > _KEPT_KEYS:
            self.keys = Counter(dict(self.keys.most_common(_KEPT_KEYS // 2)))

    @property
    def distinct_keys(self) -> int:
        if len(self.hashes) < _HASHES:
            return len(self.hashes)
        return round((_HASHES - 1) * _HASH_SPACE / max(1, self.hashes[-1]))

    def value_size_percentiles(self) -> dict[int, int]:
        total, found = sum(self.value_sizes.values()), {}
        if not total:
            return {}
        ranks = {p: max(1, -(-total * p // 100)) for p in PERCENTILES}
        seen = 0
        for size in sorted(self.value_sizes):
            seen += self.value_sizes[size]
            for p in PERCENTILES:
                if p not in found and seen >= ranks[p]:
                    found[p] = size
        return found


@dataclass
class TopicProfile:
    topic: str
    facts: Facts
    partitions: dict[int, int]
    """Number of records by partition."""
    offsets: dict[int, tuple[Offset, Offset]]

    def top_keys(self, count: int = 10) -> list[tuple[bytes, int]]:
        return self.facts.keys.most_common(count)

    def as_row(self) -> dict[str, Any]:
        facts = self.facts
        sizes = facts.value_size_percentiles()
        heaviest = self.top_keys(1)
        counts = list(self.partitions.values())
        mean = sum(counts) / len(counts) if counts else 0
        return {
            "topic": self.topic,
            "partitions": len(self.partitions),
            "records": facts.records,
            "key_bytes": facts.key_bytes,
            "value_bytes": facts.value_bytes,
            "null_keys": facts.null_keys,
            "null_values": facts.null_values,
            "with_headers": facts.with_headers,
            "distinct_keys": facts.distinct_keys,
            "top_key_share": heaviest[0][1] / facts.records if heaviest and facts.records else 0.0,
            "top_keys": [[key, count] for key, count in self.top_keys()],
            "partition_skew": max(counts) / mean if mean else 0.0,
            "records_by_partition": {str(number): count for number, count in sorted(self.partitions.items())},
            "first_ms": facts.first_us // 1000 if facts.first_us is not None else -1,
            "last_ms": facts.last_us // 1000 if facts.last_us is not None else -1,
            "value_size": {f"p{p}" if p < 100 else "max": size for p, size in sizes.items()},
        }


def plan(client: Client, bootstrap: str, topics: Sequence[str]) -> list[Unit]:
    names = topics or [row.name for row in client.topics() if not row.is_internal]
    return [
        Unit(bootstrap, part)
        for topic in names
        for partition, (first, last) in sorted(ends(client, topic).items())
        for part in cut(Range(topic, partition, first, last), _RANGE)
    ]


def profile_unit(unit: Unit) -> tuple[Range, Facts]:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from tidelog.records.columnar import murmur2_partitions

    facts = Facts()
    with connect_patiently(unit.bootstrap) as client:
        for columns in read_columns(client, unit.range, ("key", "value", "headers", "timestamp")):
            key, value = columns.column("key"), columns.column("value")
            facts.records += columns.num_rows
            facts.null_keys += key.null_count
            facts.null_values += value.null_count
            facts.with_headers += columns.num_rows - columns.column("headers").null_count
            facts.key_bytes += pc.sum(pc.binary_length(key)).as_py() or 0
            sizes = pc.binary_length(value).drop_null()
            facts.value_bytes += pc.sum(sizes).as_py() or 0
            facts.value_sizes.update(_counts(sizes))
            times = columns.column("timestamp").cast(pa.int64())
            low, high = pc.min_max(times).as_py().values()
            facts.first_us = low if facts.first_us is None else min(facts.first_us, low)
            facts.last_us = high if facts.last_us is None else max(facts.last_us, high)
            minutes, counts = np.unique(times.to_numpy() // _MINUTE_US, return_counts=True)
            facts.minutes.update(dict(zip(minutes.tolist(), counts.tolist(), strict=True)))
            if key.null_count < columns.num_rows:
                present = key.drop_null()
                facts.keys.update(_counts(present))
                facts.trim()
                hashes = np.unique(murmur2_partitions(pc.unique(present), _HASH_SPACE))[:_HASHES]
                facts.hashes = sorted({*facts.hashes, *hashes.tolist()})[:_HASHES]
    return unit.range, facts


def _counts(column: Any) -> dict[Any, int]:  # noqa: ANN401  (an Arrow array)
    counted = column.value_counts()
    return dict(zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True))


def together(client: Client, topics: Sequence[str], results: Sequence[tuple[Range, Facts]]) -> list[TopicProfile]:
    found = []
    for topic in topics:
        offsets = ends(client, topic)
        profile = TopicProfile(topic, Facts(), dict.fromkeys(offsets, 0), offsets)
        for part, facts in results:
            if part.topic == topic:
                profile.facts.add(facts)
                profile.partitions[part.partition] = profile.partitions.get(part.partition, 0) + facts.records
        found.append(profile)
    return found
