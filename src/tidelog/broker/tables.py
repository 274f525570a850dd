"""Tables of topics with `tidelog.table=true`: kept up to date behind the logs, asked for the last value of a key.

A follower for each partition reads the log as a consumer would, up to the last stable offset, and applies it. What it
has applied is a named offset: an answer is the state of the partition there, and whoever needs a later one waits for
it. Tables stand in {data}/tables/{topic id}/{partition}, so that a topic that takes the name of another has its own.
"""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple, ParamSpec, TypeVar

import structlog

from tidelog.broker.partition import FetchWait, Partition
from tidelog.broker.topics import Topic, Topics
from tidelog.errors import InvalidInput, MissingExtra, OffsetOutOfRange, TidelogError
from tidelog.model import Offset
from tidelog.records.loading import compile_ahead
from tidelog.storage.table import INSTALL, Row, Table, is_installed, remove_table

if TYPE_CHECKING:
    from tidelog.broker.broker import Broker

P = ParamSpec("P")
T = TypeVar("T")

TABLES = "tables"
ANY_OFFSET = -1  # what the table has
END_OFFSET = -2  # what the log has now
_READ_BYTES = 1 << 20
_SLOW_BYTES = 256 << 10  # as they are stored; what is more waits for kernels
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
    """Listens to the topics; made inside a running event loop. `close` it before the logs."""

    def __init__(self, broker: "Broker", data_dir: str) -> None:
        self._broker = broker
        self._directory = f"{data_dir}/{TABLES}"
        self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="tidelog-tables")
        self._followers: dict[tuple[bytes, int], _Follower] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._kernels: asyncio.Future[None] | None = None
        self._given_up = threading.Event()  # waiting for kernels

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

    def topic_changed(self, before: Topic, after: Topic) -> None:
        if before.config.table and not after.config.table:
            self.topic_deleted(before)
        self._follow(after)

    def topic_deleted(self, topic: Topic) -> None:
        gone = [key for key in self._followers if key[0] == topic.topic_id]
        followers = [self._followers.pop(key) for key in gone]
        if followers:
            task = asyncio.create_task(self._remove(followers, f"{self._directory}/{topic.topic_id.hex()}"))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    def stop_waiting(self) -> None:
        """Those who wait for a table to catch up are told that it has not."""
        for follower in self._followers.values():
            follower.give_up()

    async def close(self) -> None:
        self._given_up.set()
        await asyncio.gather(*(follower.stop() for follower in self._followers.values()))
        await asyncio.gather(*self._ending)
        self._executor.shutdown()

    async def get(
        self, topic: str, index: int, keys: Sequence[bytes], at_least: Offset, timeout_s: float
    ) -> tuple[Offset, list[Row | None]]:
        """The rows of these keys, and the offset up to which the log is in them."""
        partition, follower = self._broker.partition(topic, index), self._follower(topic, index)
        target = partition.last_stable_offset if at_least == END_OFFSET else at_least
        applied = await follower.reached(target, timeout_s)
        rows = await self.in_thread(follower.get, keys)
        start = partition.log.start_offset  # what retention has deleted is not in the topic any more
        return applied, [None if row is None or row.offset < start else row for row in rows]

    async def describe(self, topic: str) -> list[TableState]:
        partitions = len(self._broker.partitions_of(self._broker.topics.get(topic).name))
        followers = [self._follower(topic, index) for index in range(partitions)]
        return [await follower.describe() for follower in followers]

    def _follower(self, topic: str, index: int) -> "_Follower":
        known = self._broker.topics.get(topic)
        follower = self._followers.get((known.topic_id, index))
        if follower is None:
            if known.config.table and not is_installed():
                raise NoTable(INSTALL)
            raise NoTable(f"{topic} has no table; make one: tidelog topic alter {topic} --set tidelog.table=true")
        return follower

    def _follow(self, topic: Topic) -> None:
        if not topic.config.table:
            return
        if not is_installed():
            log.error("a topic's table is not kept", topic=topic.name, reason=INSTALL)
            return
        for index, partition in enumerate(self._broker.partitions_of(topic.name)):
            key = (topic.topic_id, index)
            if key not in self._followers and isinstance(partition, Partition):
                directory = f"{self._directory}/{topic.topic_id.hex()}/{index}"
                self._followers[key] = _Follower(self, partition, directory, list(self._ending))

    async def _remove(self, followers: "list[_Follower]", directory: str) -> None:
        await asyncio.gather(*(follower.stop() for follower in followers))
        await self.in_thread(remove_table, directory)

    def kernels(self) -> asyncio.Future[None]:
        """Done when what decodes many records at once has been compiled, or need not be any more."""
        if self._kernels is None:
            self._kernels = asyncio.ensure_future(self.in_thread(self._compile))
        return self._kernels

    def _compile(self) -> None:
        try:
            compile_ahead(self._given_up)
        except MissingExtra:
            pass  # then records are decoded one by one

    async def in_thread(self, work: Callable[P, T], *args: P.args, **_: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work, *args)


class _Follower:
    """Keeps the table of one partition."""

    def __init__(self, tables: Tables, partition: Partition, directory: str, after: list[asyncio.Task[None]]) -> None:
        """`after`: what may still be working on the directory."""
        self._tables = tables
        self._partition = partition
        self._directory = directory
        self._table: Table | None = None
        self._error: str | None = None
        self._end_when_opened: Offset | None = partition.log.end_offset
        self._stopping = False
        self._gave_up = False  # waiting
        self._wait: FetchWait | None = None
        self._waiting: list[tuple[Offset, asyncio.Future[None]]] = []
        self._task = asyncio.create_task(self._run(after))

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
        """Wait until the log is applied up to `target`; the offset up to which it is."""
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
        self._stopping = True
        if self._wait is not None:
            self._wait.wake()
        await self._task

    async def _run(self, after: Iterable[Awaitable[None]]) -> None:
        await asyncio.gather(*after)
        while not self._stopping:
            try:
                await self._follow()
            except OffsetOutOfRange:
                continue  # retention was faster
            except Exception as error:
                if self._stopping:
                    break
                self._error = str(error)
                log.error("a table is not kept up", partition=str(self._partition.name), reason=str(error))
                await self._sleep(_RETRY_SECONDS)
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
        while not self._stopping:
            self._tell()
            stable = partition.last_stable_offset
            start = max(table.applied, partition.log.start_offset)
            if start >= stable:
                if table.applied < start:
                    await in_thread(table.skip_to, start)
                else:
                    await self._sleep(None)
                continue
            read, aborted = partition.log.read_committed(start, _READ_BYTES)
            if read.size:
                if read.size > _SLOW_BYTES:
                    await asyncio.shield(kernels)
                await in_thread(table.apply, read, aborted, kernels.done())
            else:
                await in_thread(table.skip_to, stable)

    async def _opened(self) -> Table:
        if self._table is not None:
            return self._table
        in_thread = self._tables.in_thread
        table = await in_thread(Table, self._directory)
        end = self._partition.log.end_offset if self._end_when_opened is None else self._end_when_opened
        if table.applied > end:  # also if somebody has written to the log meanwhile
            log.warning("a table is made anew: its log has lost records", partition=str(self._partition.name))
            await in_thread(table.close)
            await in_thread(remove_table, self._directory)
            table = await in_thread(Table, self._directory)
        self._end_when_opened = None
        return table

    def _tell(self) -> None:
        """Those who wait for what is applied now."""
        still = []
        for target, waiting in self._waiting:
            if self.applied < target:
                still.append((target, waiting))
            elif not waiting.done():
                waiting.set_result(None)
        self._waiting = still

    async def _sleep(self, seconds: float | None) -> None:
        """Until something can be applied, the table is to stop, or the time is over."""
        awake = asyncio.Event()
        self._wait = wait = FetchWait(awake.set, 1, committed=True)
        if seconds is None:
            self._partition.add_wait(wait)
        try:
            await asyncio.wait_for(awake.wait(), seconds)
        except TimeoutError:
            pass
        finally:
            self._wait = None
            self._partition.remove_wait(wait)
