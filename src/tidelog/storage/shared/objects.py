"""`ObjectStore`: immutable objects by key. S3, GCS, Azure, a shared file system, or memory.

An object is written once, under a key that nobody else uses, and never changed. An upload whose reply was lost is
tried again under another key: the first object, if it is there, has no extents and is collected as garbage.

    ObjectMissing        there is no such object: data was lost, or it was removed as garbage
    StorageUnavailable   the store did not answer in time, or refused: try again later
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import NamedTuple, Protocol

from tidelog.errors import StorageError
from tidelog.model import TimestampMs
from tidelog.records.batch import ReadBuffer


class ObjectMissing(StorageError):
    kafka_code = 56
    retriable = True


class StoredObject(NamedTuple):
    key: str
    size: int
    modified_ms: TimestampMs


class ObjectStore(Protocol):
    place: str
    """The store in words for operators, without secrets, such as s3://bucket/prefix."""

    async def put(self, key: str, parts: Sequence[ReadBuffer]) -> None:
        """Store an object that is the concatenation of `parts`. It is durable when this returns. StorageUnavailable:
        it may be there nevertheless."""

    async def read(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Byte ranges of an object, as (position, size). Ranges that are close to each other may be fetched
        together. ObjectMissing also if the object is shorter."""

    async def remove(self, keys: Iterable[str]) -> None:
        """It is no error if some are not there."""

    def list(self, prefix: str) -> AsyncIterator[StoredObject]:
        """The objects whose keys begin with `prefix`, in order of their keys."""

    async def close(self) -> None: ...
