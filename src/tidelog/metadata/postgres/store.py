"""`PostgresStore`: the metadata of a cluster in PostgreSQL. docs/formats/postgres.md describes the tables.

Each broker has a store of its own on the same database, with one connection (`Session`). Requests wait in a queue; a
task takes them in order. Puts and deletes that wait at the same time share a commit, most often as one statement; if
one of the writes is fenced or invalid, it fails and the others are made. A write that expects a row has a transaction
to itself.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from tidelog.errors import Fenced, InvalidInput, StoreClosed, TidelogError, fresh
from tidelog.metadata.feed import shared_changes
from tidelog.metadata.postgres.feed import news_since, publish
from tidelog.metadata.postgres.plan import Exchange, Stage, Step, is_plain, plan
from tidelog.metadata.postgres.tables import LAYOUTS, METADATA, to_text
from tidelog.metadata.store import EVERYTHING, Change, Fence, News, R, Scope
from tidelog.postgres import Connection, PostgresSettings, Session
from tidelog.promise import Promise

_MOST_CALLERS_PER_COMMIT = 1024
_MOST_CHANGES_PER_COMMIT = 2_000
_ROWS_PER_STEP = 2_000  # of a load, between which the event loop does other things

_ACQUIRE = """
INSERT INTO leases (scope, epoch) VALUES ($1, 1)
ON CONFLICT (scope) DO UPDATE SET epoch = leases.epoch + 1 RETURNING epoch
"""
_RESERVE = """
INSERT INTO reserved (name, next) VALUES ($1, $2::bigint)
ON CONFLICT (name) DO UPDATE SET next = reserved.next + $2 RETURNING next - $2
"""
_EPOCHS = "SELECT scope, epoch FROM leases WHERE scope = ANY($1::text[])"


class _Write(NamedTuple):
    changes: Sequence[Change]
    fence: Fence | None
    answer: Promise[Any]


class _Job(NamedTuple):
    """Any request that is not a write. It runs after the writes before it are durable."""

    work: Callable[[], Awaitable[Any]]
    answer: Promise[Any]


_Request: TypeAlias = _Write | _Job


class PostgresStore:
    """Belongs to the event loop that opened it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._requests: deque[_Request] = deque()
        self._serving: asyncio.Task[None] | None = None
        self._is_closing = False
        self.commits = 0  # statements and transactions of writes that were committed

    @classmethod
    async def open(cls, settings: PostgresSettings) -> "PostgresStore":
        """The store in this database; its tables are created if they are missing. If PostgreSQL is down or cannot be
        reached, the store is opened all the same: requests fail with StorageUnavailable until it is there. Raises if
        an operator has to correct something: see `Session.open`."""
        return cls(await Session.open(settings, [METADATA], name="tidelog metadata"))

    def load(self, table: type[R], scope: Scope = EVERYTHING) -> Promise[list[R]]:
        return self._do(lambda: self._load(table, scope))

    def write(self, changes: Sequence[Change], fence: Fence | None = None) -> Promise[None]:
        answer: Promise[None] = Promise()
        self._ask(_Write(changes, fence, answer))
        return answer

    def acquire(self, scope: str) -> Promise[Fence]:
        async def work() -> Fence:
            (stored,) = to_text([scope])
            epoch = await self._session.statement(lambda connection: connection.fetchval(_ACQUIRE, stored))
            return Fence(scope, epoch)

        return self._do(work)

    def reserve(self, name: str, count: int) -> Promise[int]:
        assert count > 0

        async def work() -> int:
            (stored,) = to_text([name])
            first: int = await self._session.statement(
                lambda connection: connection.fetchval(_RESERVE, stored, count)
            )
            return first

        return self._do(work)

    def changes_since(self, version: int) -> Promise[News]:
        return self._do(lambda: self._session.read(lambda connection: news_since(connection, version)))

    async def close(self) -> None:
        self._is_closing = True
        self._session.stop_connecting()
        if self._serving is not None:
            await asyncio.wait([self._serving])
        await self._session.close()

    def _do(self, work: Callable[[], Awaitable[Any]]) -> Promise[Any]:
        answer: Promise[Any] = Promise()
        self._ask(_Job(work, answer))
        return answer

    def _ask(self, request: _Request) -> None:
        if self._is_closing:
            request.answer.fail(StoreClosed(f"the metadata store {self._session.settings} is closed"))
            return
        self._requests.append(request)
        if self._serving is None:
            self._serving = asyncio.get_running_loop().create_task(self._serve(), name="metadata")

    # The task

    async def _serve(self) -> None:
        try:
            while self._requests:
                request = self._requests.popleft()
                if isinstance(request, _Job):
                    await _answer(request)
                else:
                    await self._write(self._with_others(request))
        finally:
            self._serving = None

    def _with_others(self, first: _Write) -> list[_Write]:
        """The write and those behind it that can share its commit."""
        writes = [first]
        changes = len(first.changes)
        if all(map(is_plain, first.changes)):
            while self._requests and len(writes) < _MOST_CALLERS_PER_COMMIT:
                following = self._requests[0]
                if not isinstance(following, _Write) or not all(map(is_plain, following.changes)):
                    break
                changes += len(following.changes)
                if changes > _MOST_CHANGES_PER_COMMIT:
                    break
                writes.append(following)
                self._requests.popleft()
        return writes

    async def _write(self, writes: list[_Write]) -> None:
        """Answers are given in the order of the calls, when all of them are known."""
        errors: dict[int, Exception] = {}
        await self._commit(dict(enumerate(writes)), errors)
        for number, write in enumerate(writes):
            error = errors.get(number)
            if error is None:
                write.answer.settle(None)
            else:
                write.answer.fail(error)

    async def _commit(self, writes: dict[int, _Write], errors: dict[int, Exception]) -> None:
        """Make these writes durable, in one commit if possible; adds the errors of those that failed."""
        fences = {write.fence for write in writes.values() if write.fence is not None}
        try:
            while not await self._make(list(writes.values()), sorted(fences)):
                epochs = await self._epochs(fences)
                for number, write in list(writes.items()):
                    if write.fence is not None and epochs.get(write.fence.scope, 0) != write.fence.epoch:
                        errors[number] = _fenced(write.fence, epochs.get(write.fence.scope, 0))
                        del writes[number]
                fences = {write.fence for write in writes.values() if write.fence is not None}
        except Exception as error:
            if isinstance(error, InvalidInput) and len(writes) > 1:
                for number, write in writes.items():
                    await self._commit({number: write}, errors)
                return
            for number in writes:
                errors[number] = fresh(error) if isinstance(error, TidelogError) else error

    async def _make(self, writes: list[_Write], fences: list[Fence]) -> bool:
        """False if a fence does not hold; then nothing was changed."""
        steps = await _planned(writes)
        if not steps and not fences:
            return True
        shared = shared_changes(change for write in writes for change in write.changes)
        if not shared and len(steps) <= 1 and not (steps and isinstance(steps[0], Exchange)):
            stage = steps[0] if steps else Stage()
            assert isinstance(stage, Stage)
            sql, arguments = stage.statement(fences)
            answer = await self._session.statement(lambda connection: connection.fetchval(sql, *arguments))
            is_made = answer is not False
        else:

            async def work(connection: Connection) -> bool:
                if fences:
                    check, held = Stage().statement(fences)
                    if not await connection.fetchval(check, *held):
                        return False
                for step in steps:
                    if isinstance(step, Exchange):
                        await step.run(connection)
                    else:
                        sql, arguments = step.statement()
                        await connection.execute(sql, *arguments)
                if shared:
                    await publish(connection, shared)
                return True

            is_made = await self._session.transaction(work)
        self.commits += is_made
        return is_made

    async def _epochs(self, fences: set[Fence]) -> dict[str, int]:
        scopes = sorted({fence.scope for fence in fences})
        found = await self._session.read(lambda connection: connection.fetch(_EPOCHS, to_text(scopes)))
        stored = {row["scope"]: row["epoch"] for row in found}
        return {scope: stored.get(text, 0) for scope, text in zip(scopes, to_text(scopes), strict=True)}

    async def _load(self, table: type[Any], scope: Scope) -> list[Any]:
        layout = LAYOUTS[table]
        sql, arguments = layout.selecting(scope)
        records = await self._session.read(lambda connection: connection.fetch(sql, *arguments))
        rows: list[Any] = []
        for start in range(0, len(records), _ROWS_PER_STEP):
            rows += layout.rows_from(records[start : start + _ROWS_PER_STEP])
            await asyncio.sleep(0)
        return rows


async def _planned(writes: list[_Write]) -> list[Step]:
    changes = [change for write in writes for change in write.changes]
    if len(changes) <= _MOST_CHANGES_PER_COMMIT:
        return plan(changes)
    steps: list[Step] = []
    for start in range(0, len(changes), _MOST_CHANGES_PER_COMMIT):
        steps += plan(changes[start : start + _MOST_CHANGES_PER_COMMIT])
        await asyncio.sleep(0)
    return steps


async def _answer(job: _Job) -> None:
    try:
        result = await job.work()
    except Exception as error:
        job.answer.fail(error)
    else:
        job.answer.settle(result)


def _fenced(fence: Fence, epoch: int) -> Fenced:
    return Fenced(f"{fence.scope} is at epoch {epoch}, and no longer at {fence.epoch}")
