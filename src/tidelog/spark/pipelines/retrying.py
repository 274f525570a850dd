"""Writes dead letters back to the topics they came from, each once, even if the process is killed.

A journal records which letters were retried. A letter that fails again becomes a new one, with its number of
retries.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidelog.client import Client
from tidelog.model import TopicPartition
from tidelog.spark.jobs.copying import Copier, Journal
from tidelog.spark.jobs.ranges import Range, count_records, ends
from tidelog.spark.pipelines import letters

if TYPE_CHECKING:
    import pyarrow as pa


class Retry:
    """A retry of the letters of one topic; `copier.copy(retry.parts)` carries it out."""

    def __init__(self, client: Client, topic: str, journal: Path, *, max_retries: int | None = None) -> None:
        self._client = client
        self._journal = Journal.open(journal, {"dead letters": topic})
        self._max_retries = max_retries
        self._counts: dict[str, int] = {}
        self.parts = [Range(topic, number, first, last) for number, (first, last) in ends(client, topic).items()]
        self.given_up = 0
        """Number of letters that were retried `max_retries` times, or have no valid origin."""
        self.copier = Copier(client, self._journal, self._route)

    def count(self, *, waiting: bool) -> int:
        """The number of all letters, or of those that were not retried yet."""
        parts = [part._replace(start=self._journal.position(part)) if waiting else part for part in self.parts]
        return sum(count_records(self._client, part) for part in parts)

    def _route(self, _: Range, columns: "pa.RecordBatch") -> "Mapping[TopicPartition, pa.RecordBatch]":
        """Row by row: there are few, and each has its own target."""
        import pyarrow as pa

        routed: dict[TopicPartition, list[dict[str, Any]]] = {}
        for row in columns.to_pylist():
            headers = [(header["key"], header["value"]) for header in row["headers"] or ()]
            about = {name: value for name, value in headers if name in (*letters.ABOUT, letters.RETRIES)}
            retries = _number(about.get(letters.RETRIES), 0)
            place = self._place(about)
            if place is None or (self._max_retries is not None and retries >= self._max_retries):
                self.given_up += 1
                continue
            kept = [header for header in headers if header[0] not in about]
            kept.append((letters.RETRIES, b"%d" % (retries + 1)))
            routed.setdefault(place, []).append(
                {
                    "key": row["key"],
                    "value": row["value"],
                    "headers": [{"key": name, "value": value} for name, value in kept],
                    "timestamp": row["timestamp"],
                }
            )
        schema = pa.schema([columns.schema.field(name) for name in ("key", "value", "headers", "timestamp")])
        return {place: pa.RecordBatch.from_pylist(rows, schema=schema) for place, rows in routed.items()}

    def _place(self, about: Mapping[str, bytes]) -> TopicPartition | None:
        topic = about.get(letters.TOPIC, b"").decode(errors="replace")
        number = _number(about.get(letters.PARTITION), -1)
        if not topic or number < 0:
            return None
        if topic not in self._counts:
            self._counts[topic] = self._client.partition_count(topic)
        return TopicPartition(topic, number) if number < self._counts[topic] else None


def _number(text: bytes | None, default: int) -> int:
    return int(text) if text is not None and text.isdigit() else default
