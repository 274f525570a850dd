"""What is in a single object, for tools that look into it without a broker or a database."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, NamedTuple

from tidelog.errors import CorruptLog
from tidelog.model import LeaderEpoch, Offset, TimestampMs
from tidelog.storage.log import AbortedTransaction
from tidelog.storage.producers import Producers
from tidelog.storage.shared import bundle, footer, segment_object
from tidelog.storage.shared.object_stores.opening import open_object_store
from tidelog.storage.shared.objects import ObjectMissing
from tidelog.storage.shared.producer_facts import read_snapshot

_PIECE_BYTES = 4 << 20
Pread = Callable[[int, int], bytes]
"""Reads `size` bytes at `position`; fewer at the end."""


class StoredRegion(NamedTuple):
    """Batches of one partition, one after another, as the footer of their object describes them."""

    topic_id: bytes
    partition: int
    leader_epoch: LeaderEpoch | None
    """None in a segment, whose batches may be of several."""
    base_offset: Offset
    last_offset: Offset
    position: int
    size: int
    max_timestamp: TimestampMs
    crc: int


class IndexEntry(NamedTuple):
    offset: Offset
    """Base offset of a batch."""
    position: int
    timestamp: TimestampMs
    """The largest one before it."""


@dataclass(frozen=True, slots=True)
class ObjectContents:
    kind: str
    """"bundle" or "segment"."""
    size: int
    footer_position: int
    regions: list[StoredRegion]
    index: list[IndexEntry]
    aborted: list[AbortedTransaction]
    producers: Producers


def is_object(pread: Pread, size: int) -> bool:
    """Whether it ends like a bundle or a segment."""
    return size >= footer.END_SIZE and footer.kind_of(pread(footer.END_SIZE, size - footer.END_SIZE)) in (
        bundle.KIND.name,
        segment_object.KIND.name,
    )


def contents_of(pread: Pread, size: int, name: str) -> ObjectContents:
    """CorruptLog: it is no such object, or its footer is damaged. MetadataTooNew: it is of a newer Tidelog."""
    if not is_object(pread, size):
        raise CorruptLog("not an object of a cluster: no footer at its end", file=name, position=size, offset=-1)
    end = pread(footer.END_SIZE, size - footer.END_SIZE)
    is_bundle = footer.kind_of(end) == bundle.KIND.name
    length = footer.needed(end, bundle.KIND if is_bundle else segment_object.KIND, size, name)
    tail = pread(length, size - length)
    if is_bundle:
        regions = [StoredRegion(*region) for region in bundle.read_regions(tail, size, name)]
        return ObjectContents("bundle", size, size - length, regions, [], [], Producers())
    found = segment_object.read_segment(tail, size, name)
    region = StoredRegion(
        found.topic_id,
        found.partition,
        None,
        found.base_offset,
        found.last_offset,
        0,
        found.data_size,
        found.max_timestamp,
        found.crc,
    )
    index = [IndexEntry(*entry) for entry in found.index]
    return ObjectContents(
        "segment", size, size - length, [region], index, found.aborted, read_snapshot(found.producers)
    )


def download(url: str, target: IO[bytes]) -> None:
    """Write an object of a store (s3://bucket/prefix/key and so on) to a file. Raises a StorageError, InvalidSettings
    or MissingExtra."""
    asyncio.run(_download(url, target))


async def _download(url: str, target: IO[bytes]) -> None:
    store, _, key = url.rstrip("/").rpartition("/")
    objects = open_object_store(store)
    try:
        position, more = 0, True
        while more:
            try:
                piece = await objects.read_up_to(key, position, _PIECE_BYTES)
            except ObjectMissing:
                if not position:
                    raise
                break  # the last piece was a whole one
            target.write(piece)
            position += len(piece)
            more = len(piece) == _PIECE_BYTES
    finally:
        await objects.close()
