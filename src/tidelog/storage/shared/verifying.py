"""Reads an object and compares it with what the database says of it: CRCs, batch headers, offsets, the footer."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from tidelog.errors import CorruptBatch, CorruptLog
from tidelog.model import Offset
from tidelog.records.batch import HEADER_SIZE, check_integrity, read_header, size_at
from tidelog.records.crc import crc32c
from tidelog.storage.shared import bundle, segment_object
from tidelog.storage.shared.inventory import KnownObject, UsedRange
from tidelog.storage.shared.objects import ObjectStore
from tidelog.storage.shared.pieces import read_patiently

_PIECE_BYTES = 4 << 20


class Damage(NamedTuple):
    used: UsedRange | None
    """The extent that is damaged; None: the object's footer."""
    position: int
    """In the object."""
    offset: Offset
    """The first one that is damaged, or -1."""
    reason: str
    is_gap: bool = False
    """Nothing is damaged, but offsets are missing between batches of a segment, as after a compaction."""


async def damages(
    objects: ObjectStore, known: KnownObject, progress: Callable[[int], None] = lambda _: None
) -> list[Damage]:
    """Of an object that is in use, and of the size that the database says. `progress` is told bytes that were read.
    Raises ObjectMissing, or StorageUnavailable after several attempts."""
    found: list[Damage] = []
    crcs: dict[int, tuple[int, int]] = {}  # size and CRC of each extent that is right so far, by its position
    for used in known.used:
        walk = _Walk(used)
        async for piece in _pieces(objects, used):
            progress(len(piece))
            walk.add(piece)
            await asyncio.sleep(0)
        wrong = walk.finish()
        found += wrong
        if all(each.is_gap for each in wrong):
            crcs[used.position] = (used.size, walk.crc)
    known = known._replace(used=[used for used in known.used if used.position in crcs])
    try:
        if known.key.startswith(bundle.PREFIX):
            found += await _in_bundle(objects, known, crcs)
        else:
            found += await _in_segment(objects, known, crcs)
    except CorruptLog as error:
        found.append(Damage(None, error.position, error.offset, error.reason))
    return [each for each in found if not each.is_gap] or found  # a damaged offset looks like a gap, too


class _Walk:
    """Over the batches of an extent, whose bytes come in pieces."""

    def __init__(self, used: UsedRange) -> None:
        self.crc = 0
        self._used = used
        self._is_segment = used.key.startswith(segment_object.PREFIX)
        self._rest = b""
        self._at = used.position  # of the rest
        self._next: Offset = used.base_offset
        self._found: list[Damage] = []
        self._has_ended = False  # what follows a damaged batch cannot be told apart

    def add(self, piece: bytes) -> None:
        self.crc = crc32c(piece, self.crc)
        if self._has_ended:
            return
        view = memoryview(self._rest + piece if self._rest else piece)
        position = 0
        while len(view) - position >= HEADER_SIZE:
            size = size_at(view, position)
            if position + size > len(view) and HEADER_SIZE <= size <= segment_object.MOST_BATCH:
                break
            try:
                header = read_header(view, position)
                check_integrity(view, position, header)
            except CorruptBatch as error:
                self._damaged(position, str(error))
                return
            if header.base_offset < self._next:
                self._damaged(position, f"a batch with base offset {header.base_offset} comes after {self._next - 1}")
                return
            if header.base_offset > self._next:
                self._missing(position, header.base_offset - 1)
            self._next = header.next_offset
            position += size
        self._rest, self._at = bytes(view[position:]), self._at + position

    def finish(self) -> list[Damage]:
        if self._has_ended:
            return self._found
        if self._rest:
            self._damaged(0, "the last batch is cut off")
        elif self._next <= self._used.last_offset:
            self._missing(0, self._used.last_offset)
        elif self._next > self._used.last_offset + 1:
            self._damaged(0, f"the batches go to offset {self._next - 1}, and the extent to {self._used.last_offset}")
        return self._found

    def _missing(self, position: int, last: Offset) -> None:
        reason = f"there are no batches for the offsets {self._next} to {last}"
        self._found.append(Damage(self._used, self._at + position, self._next, reason, self._is_segment))

    def _damaged(self, position: int, reason: str) -> None:
        self._found.append(Damage(self._used, self._at + position, self._next, reason))
        self._has_ended = True


async def _pieces(objects: ObjectStore, used: UsedRange) -> AsyncIterator[bytes]:
    for at in range(0, used.size, _PIECE_BYTES):
        yield await read_patiently(objects, used.key, used.position + at, min(_PIECE_BYTES, used.size - at))


async def _in_bundle(objects: ObjectStore, known: KnownObject, crcs: dict[int, tuple[int, int]]) -> list[Damage]:
    regions = {region.position: region for region in await bundle.load_regions(objects, known.key, known.size)}
    found = []
    for used in known.used:
        region = regions.get(used.position)
        said = None if region is None else (*region[:2], *region[3:5], region.size)
        if said != (used.topic_id, used.partition, used.base_offset, used.last_offset, used.size):
            found.append(Damage(used, used.position, used.base_offset, "the footer of the object says otherwise"))
        elif region is not None and region.crc != crcs[used.position][1]:
            found.append(Damage(used, used.position, used.base_offset, "the CRC in the footer does not match"))
    return found


async def _in_segment(objects: ObjectStore, known: KnownObject, crcs: dict[int, tuple[int, int]]) -> list[Damage]:
    segment = await segment_object.load_segment(objects, known.key, known.size)
    found = []
    for used in known.used:
        is_within = segment.base_offset <= used.base_offset and used.position + used.size <= segment.data_size
        if (segment.topic_id, segment.partition) != (used.topic_id, used.partition) or not is_within:
            found.append(Damage(used, used.position, used.base_offset, "the footer of the object says otherwise"))
        elif crcs[used.position] == (segment.data_size, segment.crc) or used.size != segment.data_size:
            continue  # of a part of the data, no CRC is known but those of its batches
        else:
            found.append(Damage(used, used.position, used.base_offset, "the CRC in the footer does not match"))
    return found
