"""What importing into a cluster and exporting from one have in common: which rows move with which topics."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from tidelog.broker.shell import now_ms
from tidelog.errors import InvalidInput
from tidelog.metadata.rows import (
    GroupMemberRow,
    GroupRow,
    OffsetRow,
    Row,
    TopicRow,
    TransactionOffsetRow,
    TransactionRow,
)
from tidelog.model import Offset

T = TypeVar("T")
R = TypeVar("R", bound=Row)
Result = TypeVar("Result")

TOPIC, GROUP = "topic", "group"  # kinds of configs
_ENDED = frozenset({"Empty", "CompleteCommit", "CompleteAbort"})
_AT_ONCE = 4


class Moved(NamedTuple):
    """A partition that was moved, or was there already."""

    topic: str
    partition: int
    start_offset: Offset
    end_offset: Offset
    state: str
    batches: int | None = None
    records: int | None = None
    size_bytes: int | None = None
    crc: str | None = None
    """CRC32C of all batches, one after the other: the same on both sides."""

    def fields(self) -> dict[str, Any]:
        return self._asdict()


class Tables:
    """Rows by table."""

    def __init__(self, rows: Mapping[Any, Sequence[Row]]) -> None:
        self._rows = rows

    def of(self, table: type[R]) -> list[R]:
        rows: Any = self._rows[table]
        return [*rows]


def chosen_topics(rows: Sequence[TopicRow], names: Collection[str], where: str) -> list[TopicRow]:
    """Those with these names, or all. InvalidInput if one does not exist."""
    known = {row.name for row in rows}
    unknown = sorted(set(names) - known)
    if unknown:
        raise InvalidInput(f"{where} has no topic {', '.join(unknown)}; it has: {', '.join(sorted(known)) or 'none'}")
    return sorted((row for row in rows if not names or row.name in names), key=lambda row: row.name)


def is_open(row: TransactionRow) -> bool:
    return row.state not in _ENDED


def topics_in(row: TransactionRow, offsets: Iterable[TransactionOffsetRow]) -> set[str]:
    """The topics that the transaction wrote to, or whose offsets it will commit."""
    written = set(json.loads(row.partitions))
    return written | {each.topic for each in offsets if each.transactional_id == row.transactional_id}


def groups_of(tables: Tables, groups: Collection[str]) -> list[GroupRow]:
    """These groups, without members: those are connections to the old brokers. A group that had members becomes empty
    now; from now on its offsets are kept for their retention."""
    had_members = {row.group for row in tables.of(GroupMemberRow)}
    moved = []
    for row in tables.of(GroupRow):
        if row.group in groups:
            if row.group in had_members:
                row = replace(row, state_since_ms=now_ms())
            moved.append(replace(row, leader=None, protocol=None, state="Empty") if row.kind == "classic" else row)
    return moved


def offsets_of(rows: Iterable[OffsetRow], topics: Collection[str]) -> list[OffsetRow]:
    return [row for row in rows if row.topic in topics]


async def several_at_once(work: Callable[[T], Awaitable[Result]], things: Iterable[T]) -> list[Result]:
    """The results of the work for each thing, of which a few are done at the same time. After a failure the others
    are ended."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(thing: T) -> Result:
        async with slots:
            return await work(thing)

    tasks = [asyncio.ensure_future(one(thing)) for thing in things]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
