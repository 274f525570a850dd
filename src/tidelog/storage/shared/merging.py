"""Merging: many small extents of a log become one segment, so that its leader has few of them in memory, a new leader
loads few, and a reader of old data makes few requests. What is still in the leader's memory is not read from the
store: the newest extents are small and many, and each would cost a request.

Extents are merged with neighbours of about their size, in three steps, as in an LSM tree: a byte is written about
three times more before it is in a segment of full size. At rest a log has less than `fan_in` extents of each step.

A merge uploads the new object first, and then asks the database to exchange the extents, which refuses if another
broker leads the log by then, or if the extents are not exactly those that were read. An object that was not needed is
garbage.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from uuid import UUID

from tidelog.model import Offset, TimestampMs
from tidelog.records.batch import ReadBuffer
from tidelog.storage.producers import Producers
from tidelog.storage.shared.extents import Extents
from tidelog.storage.shared.log import SharedLog, producers_of
from tidelog.storage.shared.objects import ObjectStore
from tidelog.storage.shared.order import Extent, KnownLog
from tidelog.storage.shared.pieces import PIECE_BYTES, pieces
from tidelog.storage.shared.segment_object import SegmentWriter, new_key


@dataclass(frozen=True, slots=True)
class MergeSettings:
    fan_in: int = 32
    """Number of neighbouring extents that are worth a merge."""
    steps: Sequence[int] = (64 << 10, 2 << 20, 64 << 20)
    """An extent is merged with others below the same of these sizes. The last one is the size of a full segment."""
    most_extents: int = 2000
    """At most so many extents are merged at once."""
    urgent_extents: int = 1000
    """The merge of a log with more extents is urgent."""

    def up_to(self, segment_bytes: int) -> "MergeSettings":
        """The same with another size of a full segment."""
        return replace(self, steps=(*(step for step in self.steps[:-1] if step < segment_bytes), segment_bytes))


class Merger:
    def __init__(
        self,
        objects: ObjectStore,
        settings: MergeSettings,
        *,
        clock: Callable[[], TimestampMs],
        unique: Callable[[], UUID],
    ) -> None:
        self._objects = objects
        self._settings = settings
        self._clock = clock
        self._unique = unique

    def needs_merge(self, log: SharedLog) -> bool:
        return self._choose(log.extents, log.compacted_before) is not None

    def is_urgent(self, log: SharedLog) -> bool:
        """The merge should not wait for a time when the object store has less to do."""
        return len(log.extents) > self._settings.urgent_extents

    async def merge(self, log: SharedLog) -> bool:
        """Merge the extents that need it most. False: there was nothing to merge, or the log changed meanwhile.
        Raises what the object store and the database raise. Extents that are being compacted are left alone."""
        async with log.rewriting:
            return await self._merge(log)

    async def _merge(self, log: SharedLog) -> bool:
        chosen = self._choose(log.extents, log.compacted_before)
        if chosen is None:
            return False
        old = [log.extents[number] for number in chosen]
        known = await log.load()
        topic, partition = log.identity.topic.topic_id, log.identity.number
        key = new_key(topic, partition, old[0].base_offset, self._unique())
        writer = SegmentWriter(topic, partition, producers_before(known, old[0]), self._clock())
        size = await self._objects.put_stream(key, writer.parts(self._content(log, old)))
        new = Extent(
            old[0].base_offset,
            old[-1].last_offset,
            key,
            0,
            writer.data_size,
            max(extent.max_timestamp for extent in old),
        )
        return await log.exchange(key, size, old, [new], known)

    async def _content(self, log: SharedLog, extents: Sequence[Extent]) -> AsyncIterator[ReadBuffer]:
        found = ((extent, log.in_memory(extent)) for extent in extents)
        for is_stored, run in groupby(found, key=lambda each: each[1] is None):
            if is_stored:
                async for piece in pieces(self._objects, [extent for extent, _ in run]):
                    yield piece.data
                continue
            gathered: list[ReadBuffer] = []
            size = 0
            for extent, batches in run:
                gathered += batches or ()
                size += extent.size
                if size >= PIECE_BYTES:
                    yield b"".join(gathered)
                    gathered, size = [], 0
            yield b"".join(gathered)

    def _choose(self, extents: Extents, from_offset: Offset) -> range | None:
        """The numbers of neighbours that are worth a merge, the smallest first; only extents that end at or after
        `from_offset`."""
        first = extents.at_or_after(from_offset)
        sizes = extents.sizes[first:]
        if len(sizes) < self._settings.fan_in:
            return None
        for step in self._settings.steps:
            start, total = first, 0
            for number, size in enumerate([*sizes, step], first):  # the last one ends the last run
                is_full = total + size > self._settings.steps[-1] or number - start >= self._settings.most_extents
                if size >= step or is_full:
                    if number - start >= self._settings.fan_in:
                        return range(start, number)
                    start, total = (number, size) if size < step else (number + 1, 0)
                else:
                    total += size
        return None


def producers_before(known: KnownLog, first: Extent) -> Producers:
    """For the footer of the segment. If the log's snapshot is of a later offset, they are not known any more."""
    if known.snapshot is not None and known.snapshot.offset > first.base_offset:
        return Producers()
    return producers_of(known, first.base_offset)
