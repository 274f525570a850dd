"""Copies a range of a topic to another topic; keys, values, headers and timestamps stay the same."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tidelog.client import Client, Start
from tidelog.errors import InvalidInput
from tidelog.model import TopicPartition
from tidelog.records.columnar import murmur2_partitions
from tidelog.spark.jobs.copying import Copier, Journal
from tidelog.spark.jobs.ranges import Range, ends

if TYPE_CHECKING:
    import pyarrow as pa


def plan(client: Client, topic: str, start: Start, end: Start, partitions: Sequence[int] = ()) -> list[Range]:
    """The ranges of offsets between `start` and `end`, as of now."""
    there = ends(client, topic)
    wanted = sorted(partitions or there)
    missing = [number for number in wanted if number not in there]
    if missing:
        raise InvalidInput(f"{topic} has no partition {missing[0]}; it has {len(there)}")
    places = [TopicPartition(topic, number) for number in wanted]
    starts, stops = client.start_offsets(places, start), client.start_offsets(places, end)
    found = []
    for place in places:
        first, last = there[place.partition]
        begin, stop = (min(max(offsets[place], first), last) for offsets in (starts, stops))
        found.append(Range(topic, place.partition, begin, max(begin, stop)))
    return found


def journal_path(bootstrap: str, source: str, target: str, asked: Sequence[str]) -> Path:
    """The same path for the same arguments, so that a repeated command resumes where it was interrupted."""
    told = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    words = hashlib.sha256(json.dumps([bootstrap, source, target, *asked]).encode()).hexdigest()[:12]
    return Path(told) / "tidelog" / "replays" / f"{source}-to-{target}-{words}.json"


class Replay:
    """A replay; `copier.copy(replay.parts)` copies what is left of it.

    The journal stores the ranges as of the first start, since `-1h` and `latest` mean other offsets later.
    """

    def __init__(self, client: Client, target: str, parts: Sequence[Range], journal: Path) -> None:
        kept = Journal.peek(journal)
        self.is_resumed = kept is not None
        if kept is not None:
            parts = [Range(*part) for part in kept["parts"]]
        if not parts:
            raise InvalidInput("there is nothing to replay: no partitions are selected")
        identity = {"from": parts[0].topic, "to": target, "parts": [list(part) for part in parts]}
        self._journal = Journal.open(journal, identity)
        self._count = client.partition_count(target, create=True)
        self._target = target
        self.parts = parts
        self.copier = Copier(client, self._journal, self._route)

    @property
    def copied(self) -> int:
        return self._journal.copied

    @property
    def left(self) -> int:
        return sum(max(0, part.end - self._journal.position(part)) for part in self.parts)

    def _route(self, part: Range, columns: "pa.RecordBatch") -> "Mapping[TopicPartition, pa.RecordBatch]":
        """The partition with the same number, if it exists; else by the key's hash, or by number without a key."""
        if part.partition < self._count:
            return {TopicPartition(self._target, part.partition): columns}
        import numpy as np

        places = murmur2_partitions(columns.column("key"), self._count)
        places = np.where(places < 0, part.partition % self._count, places)
        return {
            TopicPartition(self._target, int(number)): columns.take(np.flatnonzero(places == number))
            for number in np.unique(places)
        }
