"""`Inventory`: what the database says about logs and objects, for tools that only read. PostgreSQL, or a fake.

Each call sees the database as of one moment; two calls may see different ones. So who finds that the database and the
object store disagree looks again (`look`) before calling it damage: brokers go on writing, merging and removing.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import NamedTuple, Protocol

from tidelog.model import Offset, TimestampMs
from tidelog.storage.shared import bundle, segment_object
from tidelog.storage.shared.objects import ObjectStore, StoredObject
from tidelog.storage.shared.order import LogId

PAGE = 500


class UsedRange(NamedTuple):
    """An extent: the records of a log from `base_offset` to `last_offset`, in a byte range of an object."""

    topic: str
    topic_id: bytes
    partition: int
    base_offset: Offset
    last_offset: Offset
    key: str
    """Empty if the database does not know the object."""
    position: int
    size: int
    clean_offset: Offset = 0
    """Of its log: compaction may have left gaps before this offset."""


class LogState(NamedTuple):
    log_id: LogId
    topic: str
    partition: int
    start_offset: Offset
    high_watermark: Offset
    clean_offset: Offset
    """Compaction may have left gaps before this offset."""
    extents: Sequence[UsedRange]
    """In order, without those that end before `start_offset`."""


class KnownObject(NamedTuple):
    key: str
    size: int
    """0 if it was declared dead without having been committed."""
    dead_since: TimestampMs | None
    is_removed: bool
    """It was removed from the store, or is being removed."""
    used: Sequence[UsedRange]
    """The extents of existing logs in it, by their positions."""


class Totals(NamedTuple):
    logs: int
    objects: int
    """Those that are not dead."""
    size_bytes: int


class Inventory(Protocol):
    async def totals(self) -> Totals: ...

    async def logs(self, after: LogId, limit: int) -> list[LogState]:
        """The next logs in the order of their numbers."""

    async def objects(self, after: str, limit: int) -> list[KnownObject]:
        """The next objects in the order of their keys, without those that are removed."""

    async def look(self, keys: Iterable[str]) -> dict[str, KnownObject]:
        """What is known now of these objects, also of removed ones."""

    async def close(self) -> None: ...


class Compared(NamedTuple):
    """An object as the store and as the database have it. Either may be None, because that side did not have it when
    it was looked at."""

    stored: StoredObject | None
    known: KnownObject | None

    @property
    def key(self) -> str:
        return self.stored.key if self.stored is not None else self.known.key if self.known is not None else ""


async def compared(inventory: Inventory, objects: ObjectStore) -> AsyncIterator[Compared]:
    """Every object of the store and of the database, side by side: one listing, and nothing is kept in memory. Both
    come in the order of their keys. (If a store had another order, objects would appear twice, with one side missing;
    so look again at what is missing.)"""
    known = _known(inventory)
    one = await anext(known, None)
    for prefix in (bundle.PREFIX, segment_object.PREFIX):
        async for stored in objects.list(prefix):
            while one is not None and one.key < stored.key:
                yield Compared(None, one)
                one = await anext(known, None)
            if one is not None and one.key == stored.key:
                yield Compared(stored, one)
                one = await anext(known, None)
            else:
                yield Compared(stored, None)
    while one is not None:
        yield Compared(None, one)
        one = await anext(known, None)


async def _known(inventory: Inventory) -> AsyncIterator[KnownObject]:
    after = ""
    while page := await inventory.objects(after, PAGE):
        for each in page:
            yield each
        after = page[-1].key


async def stored_now(objects: ObjectStore, key: str) -> StoredObject | None:
    """The object as the store has it now."""
    async for stored in objects.list(key):
        if stored.key == key:
            return stored
    return None
