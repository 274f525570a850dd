"""`ObjectStore`: immutable objects by key. S3, GCS, Azure, a shared file system, or memory.

An object is written once, under a key that nobody else uses, and never changed. An upload whose reply was lost is
tried again under another key: the first object, if it is there, has no extents and is collected as garbage.

Keys are segments of letters, digits, "-", "_" and ".", joined by "/". No segment begins with ".".

    ObjectMissing        there is no such object: data was lost, or it was removed as garbage
    StorageUnavailable   the store did not answer in time, or refused: try again later
"""

import re
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Sequence
from typing import NamedTuple, Protocol

from tidelog.errors import StorageError
from tidelog.model import TimestampMs
from tidelog.records.batch import ReadBuffer


class ObjectMissing(StorageError):
    kafka_code = 56
    retriable = True


_KEY = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")


def is_key(key: str) -> bool:
    return _KEY.fullmatch(key) is not None


class StoredObject(NamedTuple):
    key: str
    size: int
    modified_ms: TimestampMs


class ObjectStore(Protocol):
    place: str
    """The store in words for operators, without secrets, such as s3://bucket/prefix."""

    async def put(self, key: str, parts: Sequence[ReadBuffer]) -> None:
        """Store an object that is the concatenation of `parts`. It is durable when this returns. StorageUnavailable:
        it may be there nevertheless, or the key is in use: an existing object is never replaced."""

    async def put_stream(self, key: str, parts: AsyncIterable[ReadBuffer]) -> int:
        """Store an object that is too large for memory, and return its size. Only a few MiB of it are in memory at
        once. If `parts` raises an error, that is raised, and there is no such object. Large objects may be uploaded
        in pieces; then some stores do not notice that the key is in use."""

    async def read(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Byte ranges of an object, as (position, size), in any order. Ranges that are close to each other are
        fetched together. ObjectMissing also if the object is shorter."""

    async def read_up_to(self, key: str, position: int, size: int) -> ReadBuffer:
        """The bytes from `position` on: `size` of them, or fewer at the object's end. ObjectMissing also if the
        object ends at `position` or before."""

    async def remove(self, keys: Iterable[str]) -> None:
        """It is no error if some are not there. StorageUnavailable: some may have been removed."""

    def list(self, prefix: str) -> AsyncIterator[StoredObject]:
        """The objects whose keys begin with `prefix`, in order of their keys. (Stores differ where a segment is the
        beginning of another one at the same place, as in a/x and a.b/x.)"""

    async def close(self) -> None:
        """No call may be under way."""
