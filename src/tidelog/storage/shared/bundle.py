"""A bundle: the object that holds what a broker gathered from all its partitions in one flush.

    regions   the batches of one log after those of another, byte for byte as a local .log file has them, with their
              offsets; without gaps
    footer    an entry of 68 bytes for each region, in order:
              topic id (16), partition (4), leader epoch (4), base offset (8), last offset (8), position (8), size
              (8), max timestamp (8), CRC32C of the region (4)
    end       see `footer.py`; kind "TLbndl", version 1

Numbers are big-endian. The footer says what the broker wanted to append. It never proves that a region is part of its
log: only the database does, which may have refused it. It is for audits, for programs that read objects without a
broker, and for the case that the database is lost.
"""

import time
from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple
from uuid import UUID

from tidelog.errors import CorruptLog
from tidelog.model import LeaderEpoch, Offset, TimestampMs
from tidelog.records.batch import ReadBuffer
from tidelog.records.crc import crc32c
from tidelog.storage.shared import footer
from tidelog.storage.shared.objects import ObjectStore

KIND = footer.Kind(b"TLbndl", 1)
PREFIX = "b/"
_ENTRY = Struct(">16siiqqqqqI")


class Region(NamedTuple):
    """What a bundle holds of one log."""

    topic_id: bytes
    partition: int
    leader_epoch: LeaderEpoch
    base_offset: Offset
    last_offset: Offset
    position: int
    size: int
    max_timestamp: TimestampMs
    crc: int


def hour_prefix(at_ms: TimestampMs) -> str:
    """The beginning of the keys of all bundles of an hour (UTC)."""
    return PREFIX + time.strftime("%Y%m%d%H/", time.gmtime(at_ms // 1000))


def new_key(at_ms: TimestampMs, unique: UUID) -> str:
    return hour_prefix(at_ms) + unique.hex


class BundleWriter:
    """Gathers regions and says what to upload. Records are not copied: the buffers must not change any more."""

    def __init__(self) -> None:
        self._parts: list[ReadBuffer] = []
        self._entries: list[bytes] = []
        self.data_size = 0
        """Bytes of all regions."""

    def __len__(self) -> int:
        """The number of regions."""
        return len(self._entries)

    def add(
        self,
        topic_id: bytes,
        partition: int,
        leader_epoch: LeaderEpoch,
        base_offset: Offset,
        last_offset: Offset,
        max_timestamp: TimestampMs,
        batches: Sequence[ReadBuffer],
    ) -> Region:
        """Add the batches of one log, from `base_offset` to `last_offset`, and return their place in the object."""
        crc = size = 0
        for buffer in batches:
            crc = crc32c(buffer, crc)
            size += len(buffer)
        assert size, "a region holds at least one batch"
        region = Region(
            topic_id, partition, leader_epoch, base_offset, last_offset, self.data_size, size, max_timestamp, crc
        )
        self._entries.append(_ENTRY.pack(*region))
        self._parts += batches
        self.data_size += size
        return region

    def finish(self) -> tuple[list[ReadBuffer], int]:
        """The whole object as parts for `ObjectStore.put`, and its size. Call it once, after the last region."""
        end = footer.seal(KIND, b"".join(self._entries))
        self._parts.append(end)
        return self._parts, self.data_size + len(end)


def read_regions(tail: ReadBuffer, size: int, key: str) -> list[Region]:
    """The regions of a bundle of `size` bytes, of whose last bytes `tail` are enough (`footer.needed`)."""
    return _regions(footer.unseal(tail, KIND, size, key), key)


async def load_regions(objects: ObjectStore, key: str, size: int) -> list[Region]:
    return _regions(await footer.load(objects, key, size, KIND), key)


def check_region(region: Region, content: ReadBuffer, key: str) -> None:
    """CorruptLog unless `content` is what was written for the region."""
    if len(content) != region.size or crc32c(content) != region.crc:
        raise CorruptLog(
            "the CRC of a region does not match", file=key, position=region.position, offset=region.base_offset
        )


def _regions(found: footer.Footer, key: str) -> list[Region]:
    if len(found.content) % _ENTRY.size:
        raise CorruptLog("the last entry of the footer is cut off", file=key, position=found.position, offset=-1)
    regions = []
    end = 0
    for fields in _ENTRY.iter_unpack(found.content):
        region = Region._make(fields)
        if (
            region.position != end
            or region.size <= 0
            or region.partition < 0
            or not 0 <= region.base_offset <= region.last_offset
        ):
            raise CorruptLog("impossible region", file=key, position=region.position, offset=region.base_offset)
        end += region.size
        regions.append(region)
    if end != found.position:
        raise CorruptLog("the regions do not end at the footer", file=key, position=end, offset=-1)
    return regions
