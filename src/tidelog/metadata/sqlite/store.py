"""`SqliteStore`: the metadata of a single node in one SQLite file. docs/formats/metadata.md describes the file.

One thread owns the connection. Callers put requests into a queue and await the answer. The thread takes all queued
requests, writes them in one transaction (if that fails, in one transaction per caller), and answers all of them with
one call into the event loop. A commit is on disk when it returns (WAL, synchronous=FULL), so no outcome is ever
unknown.

The epochs of scopes and the reserved numbers are rows of the table `cluster`; the version of the change feed is
SQLite's `user_version`. The changes themselves are kept in memory only: this process is the only writer, and every
follower begins by loading the tables.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tidelog.errors import Conflict, Fenced, StoreClosed
from tidelog.metadata.feed import Feed, shared_changes
from tidelog.metadata.rows import ClusterRow
from tidelog.metadata.sqlite.file import connect, explained
from tidelog.metadata.sqlite.tables import Exchange, layout_of, statements
from tidelog.metadata.store import EVERYTHING, Change, Fence, News, Put, R, Scope, Shards
from tidelog.model import shard_of
from tidelog.promise import Promise

if TYPE_CHECKING:  # the import takes some milliseconds: the thread does it while the rest of the broker starts
    import sqlite3

METADATA_FILE = "metadata.sqlite"
_MOST_CALLERS_PER_COMMIT = 1024
_EPOCH = "epoch."  # prefix of a scope's name


def file_in(data_dir: str) -> str:
    return os.path.join(data_dir, METADATA_FILE)


class _Write(NamedTuple):
    changes: Sequence[Change]
    fence: Fence | None
    answer: Promise[Any]


class _Job(NamedTuple):
    """Any request that is not a plain write. It runs after the writes before it are durable."""

    work: Callable[[], Any]
    action: str  # the verb in error messages
    answer: Promise[Any]


_Request: TypeAlias = _Write | _Job
_Outcome: TypeAlias = tuple[Promise[Any], Any, Exception | None]  # promise, result, error


class SqliteStore:
    """Belongs to the event loop that opened it."""

    def __init__(self, path: str, max_bytes: int | None, shown_as: str | None = None) -> None:
        self._file = path
        self.path = shown_as or path  # the path in error messages
        self.commits = 0  # transactions of writes that reached the disk
        self._max_bytes = max_bytes
        self._loop = asyncio.get_running_loop()
        self._requests: SimpleQueue[_Request] = SimpleQueue()
        self._closing: asyncio.Future[None] | None = None
        self._opened: Promise[None] = Promise()
        self._connection: sqlite3.Connection
        self._feed: Feed
        self._is_open = True  # used by the thread only
        self._thread = threading.Thread(target=self._run, name="metadata", daemon=True)

    @classmethod
    async def open(cls, path: str, *, max_bytes: int | None = None, shown_as: str | None = None) -> "SqliteStore":
        """The store in this file, created if it is missing; its directory must exist. A write that would make the
        file larger than `max_bytes` fails as on a full disk. If the file is a copy, `shown_as` is the path that error
        messages name."""
        store = cls(path, max_bytes, shown_as)
        store._thread.start()
        await store._opened
        return store

    def load(self, table: type[R], scope: Scope = EVERYTHING) -> Promise[list[R]]:
        return self._do(lambda: self._rows(table, scope), "read")

    def write(self, changes: Sequence[Change], fence: Fence | None = None) -> Promise[None]:
        answer: Promise[None] = Promise()
        self._ask(_Write(changes, fence, answer))
        return answer

    def acquire(self, scope: str) -> Promise[Fence]:
        return self._do(lambda: Fence(scope, self._count_up(_EPOCH + scope, 1) + 1), "write")

    def reserve(self, name: str, count: int) -> Promise[int]:
        assert count > 0
        return self._do(lambda: self._count_up(name, count), "write")

    def changes_since(self, version: int) -> Promise[News]:
        return self._do(lambda: self._feed.since(version), "read")

    async def close(self) -> None:
        if self._closing is None:
            answer: Promise[None] = Promise()
            self._requests.put(_Job(self._close, "close", answer))
            self._closing = asyncio.ensure_future(answer)
        await asyncio.shield(self._closing)
        self._thread.join()

    def _do(self, work: Callable[[], Any], action: str) -> Promise[Any]:
        answer: Promise[Any] = Promise()
        self._ask(_Job(work, action, answer))
        return answer

    def _ask(self, request: _Request) -> None:
        if self._closing is None:
            self._requests.put(request)
        else:
            request.answer.fail(StoreClosed(f"the metadata store {self.path} is closed"))

    # What follows runs in the store's thread.

    def _run(self) -> None:
        try:
            self._connection = connect(self._file, self._max_bytes, self.path)
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
            self._feed = Feed(version)
        except Exception as error:
            self._settle([(self._opened, None, explained(error, self.path, "open"))])
            return
        self._settle([(self._opened, None, None)])
        while self._is_open:
            self._serve(self._take())

    def _take(self) -> list[_Request]:
        """All queued requests, in order. Waits until there is at least one."""
        requests = [self._requests.get()]
        try:
            while len(requests) < _MOST_CALLERS_PER_COMMIT:
                requests.append(self._requests.get_nowait())
        except Empty:
            pass
        return requests

    def _serve(self, requests: list[_Request]) -> None:
        outcomes: list[_Outcome] = []
        writes: list[_Write] = []
        for request in requests:
            if isinstance(request, _Write):
                writes.append(request)
                continue
            outcomes += self._commit(writes)  # a load sees the writes before it, and only durable ones
            writes = []
            try:
                outcomes.append((request.answer, request.work(), None))
            except Exception as error:
                outcomes.append((request.answer, None, explained(error, self.path, request.action)))
        outcomes += self._commit(writes)
        self._settle(outcomes)

    def _commit(self, writes: list[_Write]) -> list[_Outcome]:
        """Write all in one transaction. If that fails (the disk is full, or one of the writes is invalid), write each
        in its own, so that no caller fails because of another one's write."""
        if not writes:
            return []
        run = self._connection.execute
        try:
            fences = {write.fence for write in writes if write.fence is not None}
            steps, is_shared = statements(change for write in writes for change in write.changes)
            if len(steps) == 1 and not fences and not is_shared and not isinstance(steps[0], Exchange):
                sql, values = steps[0]  # a single statement is a transaction by itself
                self._connection.executemany(sql, (values,))  # unlike `execute`, does not fetch the last row id
            elif steps or fences:
                run("BEGIN IMMEDIATE")
                for fence in fences:
                    self._check(fence)
                for step in steps:
                    if isinstance(step, Exchange):
                        self._exchange(step)
                    else:
                        run(*step)
                if is_shared:
                    run(f"PRAGMA user_version={self._feed.version + 1}")
                run("COMMIT")
        except Exception as error:
            self._roll_back()
            if len(writes) == 1:
                return [(writes[0].answer, None, explained(error, self.path, "write"))]
            return [outcome for write in writes for outcome in self._commit([write])]
        self.commits += 1
        if is_shared:
            self._feed.add(shared_changes(change for write in writes for change in write.changes))
        return [(write.answer, None, None) for write in writes]

    def _check(self, fence: Fence) -> None:
        epoch = self._number(_EPOCH + fence.scope)
        if epoch != fence.epoch:
            raise Fenced(f"{fence.scope} is at epoch {epoch}, and no longer at {fence.epoch}")

    def _exchange(self, step: Exchange) -> None:
        layout = step.layout
        found = self._connection.execute(layout.select[-1], step.key).fetchone()
        if found == step.after:
            return  # this write was made before, and is being repeated
        if found != step.before:
            what = "is not as expected" if step.before else "exists already"
            raise Conflict(f"the row {step.key} of {layout.table} {what}")
        self._connection.execute(layout.put[1], step.after)

    def _roll_back(self) -> None:
        import sqlite3

        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            pass  # the caller gets the first error; if the problem persists, the next BEGIN fails

    def _rows(self, table: type[Any], scope: Scope) -> list[Any]:
        layout = layout_of(table)
        if not isinstance(scope, Shards):
            return layout.decode(self._connection.execute(layout.selecting(scope), scope))
        found = self._connection.execute(layout.select[0])
        first = list(layout.columns).index(layout.key[0])
        return layout.decode(values for values in found if shard_of(values[first]) in scope.numbers)

    def _count_up(self, name: str, count: int) -> int:
        """Durably add `count` to a number of the table `cluster`. Returns the number before that."""
        before = self._number(name)
        (step,), _ = statements([Put(ClusterRow(name, str(before + count)))])
        assert not isinstance(step, Exchange)
        self._connection.execute(*step)
        return before

    def _number(self, name: str) -> int:
        found = self._connection.execute('SELECT "value" FROM "cluster" WHERE "name" = ?', (name,)).fetchone()
        return int(found[0]) if found else 0

    def _close(self) -> None:
        self._is_open = False
        self._connection.close()

    def _settle(self, outcomes: list[_Outcome]) -> None:
        try:
            self._loop.call_soon_threadsafe(_answer, outcomes)
        except RuntimeError:
            pass  # the loop is closed, so no caller is waiting


def _answer(outcomes: list[_Outcome]) -> None:
    for promise, result, error in outcomes:
        if error is None:
            promise.settle(result)
        else:
            promise.fail(error)
