"""A second engine for `MetadataStore`: a database in memory that several brokers may share, each with its own store.
Its answers are late, and its writes fail as the test wants, also with an unknown outcome."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from types import NoneType
from typing import Any, get_args, get_type_hints

from tidelog.errors import Conflict, Fenced, InvalidInput, OutcomeUnknown, StoreClosed
from tidelog.metadata.feed import Feed, shared_changes
from tidelog.metadata.rows import Row
from tidelog.metadata.store import (
    EVERYTHING,
    Change,
    Delete,
    Fence,
    Insert,
    News,
    Put,
    R,
    Scope,
    Shards,
    Update,
    key_of,
)
from tidelog.model import shard_of
from tidelog.promise import Promise


class Database:
    """The durable data; it outlives the stores that are opened on it."""

    def __init__(self) -> None:
        self.rows: dict[tuple[Any, ...], Row] = {}  # by table and key
        self.epochs: dict[str, int] = {}
        self.reserved: dict[str, int] = {}
        self.feed = Feed(0)

    def table(self, table: type[R], scope: Scope = EVERYTHING) -> list[R]:
        found = [(key[1:], row) for key, row in self.rows.items() if isinstance(row, table)]
        if isinstance(scope, Shards):
            return [row for key, row in found if shard_of(key[0]) in scope.numbers]
        if len(scope) > len(table.KEY):
            raise InvalidInput(f"{table.__name__} has fewer key fields than {scope}")
        return [row for key, row in found if key[: len(scope)] == scope]

    def write(self, changes: Sequence[Change], fence: Fence | None = None) -> None:
        """Apply all changes, or raise and apply none."""
        if fence is not None and self.epochs.get(fence.scope, 0) != fence.epoch:
            raise Fenced(f"{fence.scope} is at epoch {self.epochs.get(fence.scope, 0)}")
        rows = dict(self.rows)
        for change in changes:
            _apply(rows, change)
        self.rows = rows
        shared = shared_changes(changes)
        if shared:
            self.feed.add(shared)


@dataclass(frozen=True, slots=True)
class Fault:
    """The failure of a write. `takes_effect`: the error is reported, but the rows are written."""

    error: Exception
    takes_effect: bool = False


def unknown(*, takes_effect: bool) -> Fault:
    return Fault(OutcomeUnknown("the connection was lost"), takes_effect)


class FakeStore:
    """Answers in the order of the calls: `delay_turns` iterations of the event loop later, or, while it `is_held`,
    when the test calls `step`. Writes take effect when they are answered."""

    def __init__(self, database: Database | None = None, *, delay_turns: int = 1) -> None:
        self.database = database or Database()
        self.delay_turns = delay_turns
        self.is_held = False
        self.faults: deque[Fault | None] = deque()  # of the next writes and reservations; None: success
        self.always: Fault | None = None  # of all further ones
        self.choose: Callable[[], Fault | None] | None = None  # chooses the fault of each of those, instead
        self.written: list[Sequence[Change]] = []  # every attempt, in order
        self.fences: list[Fence | None] = []  # of these attempts
        self.is_closed = False
        self._waiting: deque[tuple[Callable[[], Any], Promise[Any]]] = deque()

    def load(self, table: type[R], scope: Scope = EVERYTHING) -> Promise[list[R]]:
        return self._ask(lambda: self.database.table(table, scope))

    def write(self, changes: Sequence[Change], fence: Fence | None = None) -> Promise[None]:
        def work() -> None:
            self.written.append(changes)
            self.fences.append(fence)
            self._faulty(lambda: self.database.write(changes, fence))

        return self._ask(work)

    def acquire(self, scope: str) -> Promise[Fence]:
        def work() -> Fence:
            epoch = self.database.epochs[scope] = self.database.epochs.get(scope, 0) + 1
            return Fence(scope, epoch)

        return self._ask(work)

    def reserve(self, name: str, count: int) -> Promise[int]:
        def work() -> int:
            first = self.database.reserved.get(name, 0)
            self.database.reserved[name] = first + count
            return first

        return self._ask(lambda: self._faulty(work))

    def changes_since(self, version: int) -> Promise[News]:
        return self._ask(lambda: self.database.feed.since(version))

    async def close(self) -> None:
        self.is_closed = True
        self.is_held = False
        while self._waiting:
            await asyncio.sleep(0)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def step(self, count: int = 1) -> None:
        """Carry out and answer the first waiting call."""
        for _ in range(count):
            work, answer = self._waiting.popleft()
            try:
                result = work()
            except Exception as error:
                answer.fail(error)
            else:
                answer.settle(result)

    def release(self) -> None:
        self.is_held = False
        self.step(len(self._waiting))

    def _faulty(self, work: Callable[[], Any]) -> Any:
        fault = self.faults.popleft() if self.faults else self.choose() if self.choose else self.always
        if fault is None:
            return work()
        if fault.takes_effect:
            work()
        raise fault.error

    def _ask(self, work: Callable[[], Any]) -> Promise[Any]:
        answer: Promise[Any] = Promise()
        if self.is_closed:
            answer.fail(StoreClosed("the store is closed"))
            return answer
        self._waiting.append((work, answer))
        self._later(self.delay_turns)
        return answer

    def _later(self, turns: int) -> None:
        loop = asyncio.get_running_loop()
        if turns:
            loop.call_soon(self._later, turns - 1)
        elif self._waiting and not self.is_held:
            self.step()


def _apply(rows: dict[tuple[Any, ...], Row], change: Change) -> None:
    if isinstance(change, Delete):
        if len(change.key) > len(change.table.KEY):
            raise InvalidInput(f"{change.table.__name__} has fewer key fields than {change.key}")
        prefix = (change.table, *change.key)
        for key in [key for key in rows if key[: len(prefix)] == prefix]:
            del rows[key]
        return
    row = change.after if isinstance(change, Update) else change.row
    _check(row)
    key = (type(row), *key_of(row))
    found = rows.get(key)
    if isinstance(change, Update) and (type(change.before), *key_of(change.before)) != key:
        raise InvalidInput("an update cannot change the key")
    wanted = change.before if isinstance(change, Update) else None
    if not isinstance(change, Put) and found not in (row, wanted):
        raise Conflict(f"{found} is there")
    assert isinstance(change, Put | Insert | Update)
    rows[key] = row


@cache
def _kinds(table: type[Row]) -> dict[str, tuple[Any, ...]]:
    hints = get_type_hints(table)
    return {field.name: get_args(hints[field.name]) or (hints[field.name],) for field in fields(table)}


def _check(row: Row) -> None:
    for name, kinds in _kinds(type(row)).items():  # type: ignore[arg-type]
        value = getattr(row, name)
        if value is None and NoneType not in kinds:
            raise InvalidInput(f"{name} may not be null")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise InvalidInput(f"{name} has more than 64 bits")
        if isinstance(value, str):
            try:
                value.encode()
            except UnicodeEncodeError as error:
                raise InvalidInput(f"{name} is no text") from error
