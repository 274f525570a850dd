"""Reading whole extents, for work that goes through a log: merging, compaction, and tools."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from itertools import islice
from typing import NamedTuple

from tidelog.errors import StorageUnavailable
from tidelog.storage.shared.objects import ObjectStore
from tidelog.storage.shared.order import Extent

PIECE_BYTES = 1 << 20
_READ_AT_ONCE = 8  # extents
_ATTEMPTS = 5
_PAUSE_S = 1.0


class Piece(NamedTuple):
    """The next bytes of an extent, cut anywhere."""

    extent: Extent
    data: bytes
    is_last: bool


async def pieces(objects: ObjectStore, extents: Iterable[Extent]) -> AsyncGenerator[Piece, None]:
    """The bytes of the extents in order, in pieces that are not too large to be worked on at once. Of small extents
    several are fetched together."""
    rest = iter(extents)
    while some := list(islice(rest, _READ_AT_ONCE)):
        first = await asyncio.gather(*(_read(objects, extent, 0) for extent in some))
        for extent, data in zip(some, first, strict=True):
            yield Piece(extent, data, len(data) == extent.size)
            for at in range(PIECE_BYTES, extent.size, PIECE_BYTES):
                data = await _read(objects, extent, at)
                yield Piece(extent, data, at + len(data) == extent.size)


async def _read(objects: ObjectStore, extent: Extent, at: int) -> bytes:
    [data] = await objects.read(extent.key, [(extent.position + at, min(extent.size - at, PIECE_BYTES))])
    return data


async def read_patiently(objects: ObjectStore, key: str, position: int, size: int) -> bytes:
    """A byte range of an object, for tools: work of many hours must not end because the store was away for a
    moment."""
    for attempt in range(_ATTEMPTS):
        try:
            [content] = await objects.read(key, [(position, size)])
            return content
        except StorageUnavailable:
            if attempt == _ATTEMPTS - 1:
                raise
            await asyncio.sleep(_PAUSE_S)
    raise AssertionError("not reached")
