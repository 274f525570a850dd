"""Filters of a query that limit the offsets to read."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from tidelog.client import Client
from tidelog.model import Offset, TimestampMs
from tidelog.spark.offsets import Offsets


@dataclass
class Bounds:
    """The limits of all filters together; None: no limit. Filters that are not understood are ignored."""

    topics: set[str] | None = None
    partitions: set[int] | None = None
    first: Offset | None = None
    end: Offset | None = None
    not_before_ms: TimestampMs | None = None
    _columns: tuple[str, ...] = field(default=("topic", "partition", "offset", "timestamp"), repr=False)

    def add(self, one: Filter) -> None:
        attribute: tuple[str, ...] = getattr(one, "attribute", ())
        value = getattr(one, "value", None)
        if len(attribute) != 1 or attribute[0] not in self._columns or value is None:
            return
        name = attribute[0]
        match one:
            case EqualTo() | EqualNullSafe():
                self._among(name, [value])
            case In():
                self._among(name, [each for each in value if each is not None])
            case GreaterThan() | GreaterThanOrEqual():
                self._at_least(name, value, isinstance(one, GreaterThan))
            case LessThan() | LessThanOrEqual():
                self._below(name, value, isinstance(one, LessThanOrEqual))
            case _:
                pass

    def _among(self, name: str, values: Iterable[Any]) -> None:
        chosen = set(values)
        if name == "topic":
            self.topics = chosen if self.topics is None else self.topics & chosen
        elif name == "partition":
            self.partitions = chosen if self.partitions is None else self.partitions & chosen
        elif chosen:
            self._at_least(name, min(chosen), False)
            self._below(name, max(chosen), True)

    def _at_least(self, name: str, value: Any, exclusive: bool) -> None:  # noqa: ANN401  (of the column's type)
        if name == "offset":
            first = value + exclusive
            self.first = first if self.first is None else max(self.first, first)
        elif name == "timestamp" and isinstance(value, datetime) and value.tzinfo is not None:
            milliseconds = int(value.timestamp() * 1000)  # rounded down: better to read a record too many
            self.not_before_ms = max(milliseconds, self.not_before_ms or 0)

    def _below(self, name: str, value: Any, inclusive: bool) -> None:  # noqa: ANN401
        """Offsets only: a later record may have an earlier timestamp."""
        if name == "offset":
            end = value + inclusive
            self.end = end if self.end is None else min(self.end, end)


def narrowed(client: Client, bounds: Bounds, start: Offsets, end: Offsets) -> tuple[Offsets, Offsets]:
    partitions = [
        partition
        for partition in end
        if (bounds.topics is None or partition.topic in bounds.topics)
        and (bounds.partitions is None or partition.partition in bounds.partitions)
    ]
    low = {partition: max(start[partition], bounds.first or 0) for partition in partitions}
    high = {
        partition: end[partition] if bounds.end is None else min(end[partition], bounds.end)
        for partition in partitions
    }
    asked = [partition for partition in partitions if low[partition] < high[partition]]
    if bounds.not_before_ms is not None and bounds.not_before_ms >= 0 and asked:
        # All records before the first one that is late enough are too early, whatever their order.
        for partition, found in client.offsets(dict.fromkeys(asked, bounds.not_before_ms)).items():
            low[partition] = max(low[partition], found.offset if found.offset >= 0 else high[partition])
    return low, high
