"""`MetadataStore`: durable rows, written in all-or-nothing groups. SQLite in one process, PostgreSQL in a cluster.

The broker loads the rows it needs when it starts, keeps them in memory, and decides from memory. A reply that
promises something is sent after the write that makes it durable.

Brokers that share a store each own a part of it (a *scope*: the groups of a shard, or all topics and configs). A
scope has one owner at a time. A broker acquires a scope, which gives it a `Fence`, and passes the fence with every
write. The store checks the fence in the same transaction, and refuses writes of earlier owners. A node that has a
store for itself needs no fence.

How a write can fail, and what its caller knows then:

    Fenced           nothing was written, and no write with this fence ever will be: another broker owns the scope
    Conflict         nothing was written: a stored row is not the one that the write expects
    OutcomeUnknown   the write took effect as a whole or not at all; repeat the same write to find out
    another error    nothing was written

A write can be repeated: rows that it inserted or updated itself are no conflict. A write whose outcome is unknown
takes effect before the next answer of the same store, or never; it cannot take effect after later writes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from tidelog.metadata.rows import Row
from tidelog.promise import Promise

R = TypeVar("R", bound=Row)
Key: TypeAlias = tuple[str | int | bytes, ...]  # the values of the first key fields of a row


@dataclass(frozen=True, slots=True)
class Put:
    """Insert the row, or replace the one with the same key."""

    row: Row


@dataclass(frozen=True, slots=True)
class Insert:
    """Insert the row. Conflict: a different row has its key."""

    row: Row


@dataclass(frozen=True, slots=True)
class Update:
    """Replace `before` by `after`, which has the same key. Conflict: neither of them is stored."""

    before: Row
    after: Row


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove the rows of a table whose first key fields have these values. It is no error if there are none."""

    table: type[Row]
    key: Key


Change: TypeAlias = Put | Insert | Update | Delete


@dataclass(frozen=True, slots=True)
class Shards:
    """The rows whose first key field, the id of a group or a transaction, belongs to one of these shards
    (`model.shard_of`)."""

    numbers: frozenset[int]


Scope: TypeAlias = Key | Shards
EVERYTHING: Key = ()


class Fence(NamedTuple):
    """The right to write the rows of a scope, until another broker acquires the scope, with a higher epoch."""

    scope: str
    epoch: int


class News(NamedTuple):
    """The changes of shared tables up to `version`, in order. None: they are no longer known; load the tables."""

    version: int
    changes: Sequence[Put | Delete] | None


class MetadataStore(Protocol):
    def load(self, table: type[R], scope: Scope = EVERYTHING) -> Promise[list[R]]:
        """The rows of a table, or of a part of it. Sees all writes that were called before."""

    def write(self, changes: Sequence[Change], fence: Fence | None = None) -> Promise[None]:
        """The changes are durable and visible when the promise is kept. If it fails, nothing was written, except with
        OutcomeUnknown. Writes take effect, and promises are kept, in the order of the calls; writes that wait at the
        same time share a commit."""

    def acquire(self, scope: str) -> Promise[Fence]:
        """Take over a scope: its former owner is fenced from now on. Epochs begin at 1. If the outcome is unknown,
        acquire the scope again: an unused epoch does no harm."""

    def reserve(self, name: str, count: int) -> Promise[int]:
        """Reserve `count` consecutive numbers, durably, and return the first. Numbers begin at 0, and no number is
        given out twice. If the outcome is unknown, reserve again: the only harm is that some numbers are lost."""

    def changes_since(self, version: int) -> Promise[News]:
        """The changes of all brokers to shared tables (`rows.SHARED`) since that version, or None if the version is
        too old or never existed, such as -1. Includes all writes that were acknowledged before the call."""

    async def close(self) -> None:
        """Close the store after all pending requests are done."""


def table_of(change: Change) -> type[Row]:
    if isinstance(change, Delete):
        return change.table
    return type(change.after if isinstance(change, Update) else change.row)


def key_of(row: Row) -> Key:
    return tuple(getattr(row, name) for name in row.KEY)
