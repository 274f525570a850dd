"""Tables of topics with `tidelog.table=true`: they follow the logs, and answer lookups of the last value of a key.

For each partition a follower reads the log as a consumer would, up to the last stable offset, and applies the records
to the table. The table knows the offset up to which it has applied the log. A lookup sees the state of the partition
at that offset; a client that needs a later state waits for it. Tables are stored in
{data}/tables/{topic id}/{partition}, so that a topic that reuses the name of a deleted one has its own.
"""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

import structlog

from tidelog.broker.fetching import FetchLimits, LongPoll, ReadFrom, fetch
from tidelog.broker.partition import Partition
from tidelog.broker.topics import Topic, Topics
from tidelog.errors import InvalidInput, MissingExtra, OffsetOutOfRange, TidelogError
from tidelog.model import Offset, TopicPartition
from tidelog.records.loading import compile_ahead
from tidelog.storage.log import NOTHING, ReadResult
from tidelog.storage.table import INSTALL, Row, Table, is_installed, remove_table
from tidelog.storage.trouble import Trouble

if TYPE_CHECKING:
    from tidelog.broker.broker import Broker

P = ParamSpec("P")
T = TypeVar("T")

TABLES = "tables"
END_OFFSET = -2  # the current end of the log
_READ_BYTES = 1 << 20
_SLOW_BYTES = 256 << 10  # as stored; larger reads wait until the kernels are compiled
_RETRY_SECONDS = 5.0
_THREADS = 3  # one may be waiting for the compiler

log = structlog.get_logger("tidelog.tables")


class NoTable(InvalidInput):
    """The topic has no table, or its table cannot be used."""


class TableBehind(TidelogError):
    kafka_code = 7  # REQUEST_TIMED_OUT
    retriable = True


class TableState(NamedTuple):
    partition: int
    applied_offset: Offset
    end_offset: Offset
    rows: int
    size_bytes: int
    error: str | None


class Tables:
    """Listens to the topics. Create it inside a running event loop; `close` it before the logs."""

    def __init__(self, broker: "Broker", directory: str) -> None:
        self.broker = broker
        self._directory = directory
        self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="tidelog-tables")
        self._followers: dict[tuple[bytes, int], _Follower] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._kernels: asyncio.Future[None] | None = None
        self._given_up = threading.Event()  # set: stop compiling kernels
        self.trouble = Trouble(log, bad="a table could not be updated", good="a table is updated again")

    def open_topics(self, topics: Topics) -> None:
        """Follow every topic that has a table, and remove the tables of others."""
        wanted = {topic.topic_id.hex() for topic in topics if topic.config.table}
        if os.path.isdir(self._directory):
            for name in set(os.listdir(self._directory)) - wanted:
                remove_table(f"{self._directory}/{name}")
        for topic in topics:
            self._follow(topic)

    def topic_created(self, topic: Topic) -> None:
        self._follow(topic)

    def partition_opened(self, topic: Topic) -> None:
        """A partition that could not be opened before is available now."""
        self._follow(topic)

    def topic_changed(self, before: Topic, after: Topic) -> None:
        if before.config.table and not after.config.table:
            self.topic_deleted(before)
        self._follow(after)

    def topic_deleted(self, topic: Topic) -> None:
        gone = [key for key in self._followers if key[0] == topic.topic_id]
        followers = [self._followers.pop(key) for key in gone]
        if followers:
            self._end(self._remove(followers, f"{self._directory}/{topic.topic_id.hex()}"))

    def _end(self, work: Coroutine[Any, Any, None]) -> None:
        """Followers that are made from now on wait for it."""
        task = asyncio.create_task(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def stop_waiting(self) -> None:
        """Requests that wait for a table to catch up fail now: the broker stops."""
        for follower in self._followers.values():
            follower.give_up()

    async def close(self) -> None:
        self._given_up.set()
        for stopping in list(self._followers.values()):
            await self._stopped(stopping)
        await asyncio.gather(*self._ending)
        self._executor.shutdown()

    async def _stopped(self, follower: "_Follower") -> None:
        """Stop a follower. An error is logged, so that the other tables are closed too."""
        try:
            await follower.stop()
        except Exception as error:
            log.error("a table could not be closed", partition=str(follower.name), reason=str(error))

    async def get(
        self, topic: str, index: int, keys: Sequence[bytes], at_least: Offset, timeout_s: float
    ) -> tuple[Offset, list[Row | None]]:
        """The rows of these keys, and the offset up to which the table has applied the log."""
        partition, follower = self.broker.partition(topic, index), self._follower(topic, index)
        target = partition.last_stable_offset if at_least == END_OFFSET else at_least
        applied = await follower.reached(target, timeout_s)
        rows = await self.in_thread(follower.get, keys)
        start = partition.log.start_offset  # records that retention has deleted are no longer in the topic
        return applied, [None if row is None or row.offset < start else row for row in rows]

    async def describe(self, topic: str) -> list[TableState]:
        partitions = len(self.broker.partitions_of(self.broker.topics.get(topic).name))
        followers = [self._follower(topic, index) for index in range(partitions)]
        return [await follower.describe() for follower in followers]

    def _follower(self, topic: str, index: int) -> "_Follower":
        known = self.broker.topics.get(topic)
        follower = self._followers.get((known.topic_id, index))
        if follower is None:
            if known.config.table and not is_installed():
                raise NoTable(INSTALL)
            raise NoTable(f"{topic} has no table; create one: tidelog topic alter {topic} --set tidelog.table=true")
        return follower

    def _follow(self, topic: Topic) -> None:
        if not topic.config.table:
            return
        if not is_installed():
            log.error("the table of a topic cannot be maintained", topic=topic.name, reason=INSTALL)
            return
        for index, partition in enumerate(self.broker.partitions_of(topic.name)):
            key = (topic.topic_id, index)
            known = self._followers.get(key)
            if not isinstance(partition, Partition) or (known is not None and known.is_of(partition)):
                continue
            if known is not None:  # another broker has led the partition meanwhile
                self._end(self._stopped(known))
            directory = f"{self._directory}/{topic.topic_id.hex()}/{index}"
            self._followers[key] = _Follower(self, partition, directory, list(self._ending))

    async def _remove(self, followers: "list[_Follower]", directory: str) -> None:
        await asyncio.gather(*map(self._stopped, followers))
        try:
            await self.in_thread(remove_table, directory)
        except Exception as error:
            log.error(
                "a table could not be removed; the next start tries again", directory=directory, reason=str(error)
            )

    def kernels(self) -> asyncio.Future[None]:
        """Done when the kernels, which decode many records at once, are compiled, or are no longer needed."""
        if self._kernels is None:
            self._kernels = asyncio.ensure_future(self.in_thread(self._compile))
        return self._kernels

    def _compile(self) -> None:
        try:
            compile_ahead(self._given_up)
        except MissingExtra:
            pass  # records are decoded one by one
        except Exception as error:
            log.error(
                "the kernels that decode records cannot be compiled; tables are updated slowly",
                reason=str(error),
                exc_info=True,
            )

    async def in_thread(self, work: Callable[P, T], *args: P.args, **_: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work, *args)


class _Follower:
    """Maintains the table of one partition."""

    def __init__(self, tables: Tables, partition: Partition, directory: str, after: list[asyncio.Task[None]]) -> None:
        """`after`: tasks that may still be using the directory; wait for them first."""
        self._tables = tables
        self._partition = partition
        self._directory = directory
        self._table: Table | None = None
        self._error: str | None = None
        self._end_when_opened: Offset | None = partition.log.end_offset
        self._stopping = asyncio.Event()
        self._gave_up = False  # requests no longer wait: the broker stops
        self._poll: LongPoll[ReadFrom] | None = None
        self._waiting: list[tuple[Offset, asyncio.Future[None]]] = []
        self._task = asyncio.create_task(self._run(after))

    @property
    def name(self) -> TopicPartition:
        return self._partition.name

    def is_of(self, partition: Partition) -> bool:
        return self._partition is partition

    @property
    def applied(self) -> Offset:
        return self._table.applied if self._table is not None else -1

    def get(self, keys: Sequence[bytes]) -> list[Row | None]:
        if self._table is None:
            raise NoTable(self._error or f"the table of {self._partition.name} is closed")
        return self._table.get(keys)

    async def describe(self) -> TableState:
        table = self._table
        rows, size = (0, 0) if table is None else await self._tables.in_thread(table.estimate)
        end = self._partition.last_stable_offset
        return TableState(self._partition.name.partition, max(0, self.applied), end, rows, size, self._error)

    async def reached(self, target: Offset, timeout_s: float) -> Offset:
        """Wait until the log is applied up to `target`. Returns the offset up to which it is applied."""
        if self._table is None or self.applied < target:
            reached = asyncio.get_running_loop().create_future()
            self._waiting.append((target, reached))
            try:
                await asyncio.wait_for(reached, 0 if self._gave_up else timeout_s)
            except TimeoutError:
                self._waiting = [entry for entry in self._waiting if entry[1] is not reached]
                why = f": {self._error}" if self._error else ""
                when = "when the broker stopped" if self._gave_up else f"after {timeout_s:g} s"
                raise TableBehind(
                    f"the table of {self._partition.name} is at offset {max(0, self.applied)}, not at "
                    f"{max(0, target)} {when}{why}"
                ) from None
        return self.applied

    def give_up(self) -> None:
        self._gave_up = True
        for _, waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(TimeoutError())

    async def stop(self) -> None:
        self._stopping.set()
        if self._poll is not None:
            self._poll.hurry()
        await self._task

    async def _run(self, after: Iterable[Awaitable[None]]) -> None:
        await asyncio.gather(*after)
        while not self._stopping.is_set():
            try:
                await self._follow()
            except OffsetOutOfRange:
                continue  # retention has deleted the records at that offset
            except Exception as error:
                if self._stopping.is_set():
                    break
                self._error = str(error)
                self._tables.trouble.failed(self, error, partition=str(self.name))
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), _RETRY_SECONDS)
        self._tables.trouble.forget(self)
        for _, waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(NoTable(f"the table of {self._partition.name} was removed"))
        table, self._table = self._table, None
        if table is not None:
            await self._tables.in_thread(table.close)

    async def _follow(self) -> None:
        partition, in_thread = self._partition, self._tables.in_thread
        kernels = self._tables.kernels()
        table = await self._opened()
        self._table, self._error = table, None
        while not self._stopping.is_set():
            self._tell()
            stable = partition.last_stable_offset
            start = max(table.applied, partition.log.start_offset)
            if table.applied < start:
                await in_thread(table.skip_to, start)
                continue
            if start >= stable:
                self._tables.trouble.worked(self, partition=str(self.name))
            read = await self._read(start, wait=start >= stable)
            if read.size:
                if read.size > _SLOW_BYTES:
                    await asyncio.shield(kernels)
                await in_thread(table.apply, read, kernels.done())
            elif start < stable:
                await in_thread(table.skip_to, stable)

    async def _read(self, start: Offset, *, wait: bool) -> ReadResult:
        """The records from here on. `wait`: until there are some, or the follower is to stop."""
        limits = FetchLimits(1, _READ_BYTES, None if wait else 0, committed=True)
        found = fetch(self._tables.broker, None, lambda: [ReadFrom(*self.name, start, _READ_BYTES)], limits)
        if isinstance(found, LongPoll):
            self._poll = found
            try:
                found = await found.answer
            finally:
                self._poll = None
        if self._tables.broker.find(*self.name) is not self._partition:
            await self._stopping.wait()  # the topic is deleted; what was read may be of a new topic of this name
            return NOTHING
        (fetched,) = found
        if fetched.error is not None:
            raise fetched.error
        return fetched.result

    async def _opened(self) -> Table:
        if self._table is not None:
            return self._table
        in_thread = self._tables.in_thread
        table = await in_thread(Table, self._directory)
        end = self._partition.log.end_offset if self._end_when_opened is None else self._end_when_opened
        if table.applied > end:  # the end when opened: the log may have grown since
            log.warning("a table is rebuilt, because its log has lost records", partition=str(self._partition.name))
            await in_thread(table.close)
            await in_thread(remove_table, self._directory)
            table = await in_thread(Table, self._directory)
        self._end_when_opened = None
        return table

    def _tell(self) -> None:
        """Wake the requests that wait for an offset which is applied now."""
        still = []
        for target, waiting in self._waiting:
            if self.applied < target:
                still.append((target, waiting))
            elif not waiting.done():
                waiting.set_result(None)
        self._waiting = still
