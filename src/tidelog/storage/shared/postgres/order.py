"""`PostgresOrder`: the order in PostgreSQL. Each change is one call of a function (`functions.py`).

Commits go over a session of their own, in the order of the calls; everything else goes over a second one. A session
that lost its connection ends the old one's process on the server before it sends anything else, so a commit whose
outcome is unknown is decided before the next commit, or a `load`, takes effect.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from tidelog.errors import OffsetOutOfRange, OutcomeUnknown, StorageUnavailable
from tidelog.model import LeaderEpoch, Offset, PartitionIdentity, TimestampMs
from tidelog.postgres import Component, Connection, PostgresSettings, Session
from tidelog.storage.log import AbortedTransaction
from tidelog.storage.shared.order import (
    FORGOTTEN_AFTER_MS,
    Cleaned,
    Extent,
    KnownLog,
    Leader,
    LogId,
    LogPart,
    NotTheLeader,
    Order,
    ProducerSnapshot,
    UnknownLog,
)
from tidelog.storage.shared.postgres import statements
from tidelog.storage.shared.postgres.functions import FUNCTIONS
from tidelog.storage.shared.postgres.schema import CLEANED, TABLES

if TYPE_CHECKING:
    import asyncpg

# Added to, never changed. A version that only changes functions adds an empty script.
_SCRIPTS = (TABLES, CLEANED)
_STEP = 1000
"""Rows of a table that one statement removes at most, so that it holds its locks only for milliseconds."""

_LOADED_TOGETHER = 16
"""Logs that one statement loads at most. Decoding their extents blocks the event loop, and the locks are held
meanwhile. They are taken in the order of the log ids, as by every statement that locks several logs."""

_LOAD = """
    SELECT loaded.* FROM (
        SELECT wanted.* FROM unnest($1::bytea[], $2::integer[], $3::integer[], $4::integer[])
            WITH ORDINALITY AS wanted (topic_id, partition, broker, epoch, number)
        LEFT JOIN logs USING (topic_id, partition) ORDER BY logs.log_id
    ) AS wanted, LATERAL (
        SELECT wanted.number, log.*
        FROM load_log(wanted.topic_id, wanted.partition, wanted.broker, wanted.epoch) AS log
    ) AS loaded"""
_CREATE = """
    INSERT INTO logs (topic_id, topic, partition)
    SELECT * FROM unnest($1::bytea[], $2::text[], $3::integer[]) AS new (topic_id, topic, partition)
    ORDER BY topic_id, partition ON CONFLICT (topic_id, partition) DO NOTHING"""
_TOPICS = "SELECT topic_id, topic, max(high_watermark) = 0 AS is_unused FROM logs GROUP BY topic_id, topic"
_CLOCK = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
_DEAD_OBJECTS = statements.DEAD_OBJECTS.replace("p_before", "$1::bigint").replace("p_most", "$2::integer")
_DECLARE_DEAD = """
    INSERT INTO objects (key, size, counted, dead_since)
    SELECT DISTINCT key, 0, '{}'::bigint[], $2::bigint FROM unnest($1::text[]) AS found (key) ORDER BY key
    ON CONFLICT (key) DO NOTHING RETURNING key"""


async def _upgrade(connection: Connection, stored: int) -> None:
    for script in _SCRIPTS[stored:]:
        await connection.execute(script)
    await connection.execute(FUNCTIONS)


COMPONENT = Component("order", len(_SCRIPTS), _upgrade)


def _call(function: str, arguments: int, *, row: bool = False) -> str:
    call = f"{function}({', '.join(f'${number}' for number in range(1, arguments + 1))})"
    return f"SELECT * FROM {call}" if row else f"SELECT {call}"  # noqa: S608  (both are constants)


_COMMIT = _call("commit_bundle", 18)
_TAKE_OVER = _call("take_over_logs", 3)
_REPLACE = _call("replace_extents", 19)
_KEEP_SNAPSHOT = _call("keep_snapshot", 5)
_KEEP_CLEANED = _call("keep_cleaned", 6)
_MOVE_START = _call("move_start_of_log", 6)
_DELETE = _call("delete_logs", 1)
_CLEAR = _call("clear_deleted_logs", 3)
_FORGET = _call("forget_objects", 4)
_EXTENT_COLUMNS = ("bases", "lasts", "keys", "positions", "sizes", "timestamps", "producers")
_ABORTED_COLUMNS = ("aborted_producers", "aborted_firsts", "aborted_lasts", "aborted_stables")


class _Wanted:
    """A log that is to be loaded."""

    __slots__ = ("leader", "partition", "row")

    def __init__(self, partition: PartitionIdentity, leader: Leader) -> None:
        self.partition = partition
        self.leader = leader
        self.row: asyncpg.Record | None = None


class PostgresOrder(Order):
    def __init__(self, commits: Session, others: Session) -> None:
        """Use `open`."""
        self._commits = commits
        self._others = others
        self._wanted: dict[_Wanted, None] = {}  # logs for which a `load` waits, in the order of the calls
        self._called = 0  # commits, which are numbered from 1 on
        self._decided = 0  # this commit and all before it have taken effect, or never will

    @classmethod
    async def open(cls, settings: PostgresSettings) -> "PostgresOrder":
        """Creates the tables if there are none. Fails as `Session.open` does."""
        others = await Session.open(settings, [COMPONENT], name="tidelog order")
        try:
            commits = await Session.open(settings, [COMPONENT], name="tidelog commits")
        except BaseException:
            await others.close()
            raise
        return cls(commits, others)

    async def create(self, partitions: Sequence[PartitionIdentity]) -> None:
        await self._do(
            _CREATE,
            [partition.topic.topic_id for partition in partitions],
            [partition.topic.name for partition in partitions],
            [partition.number for partition in partitions],
        )

    async def take_over(self, partitions: Sequence[PartitionIdentity], broker_id: int) -> list[LeaderEpoch]:
        if not partitions:
            return []
        epochs: list[LeaderEpoch] | None = await self._do(
            _TAKE_OVER,
            [partition.topic.topic_id for partition in partitions],
            [partition.number for partition in partitions],
            broker_id,
        )
        if epochs is None:
            raise UnknownLog(
                f"one of {len(partitions)} logs to take over, such as {partitions[0].name}, does not exist"
            )
        return epochs

    async def load(self, partition: PartitionIdentity, leader: Leader) -> KnownLog:
        if self._decided < self._called:
            # A read that comes after them over the same session waits for all of them.
            called = self._called
            await self._commits.read(_fetch_value("SELECT 1"))
            self._decided = max(self._decided, called)

        wanted = _Wanted(partition, leader)
        self._wanted[wanted] = None
        try:
            await self._others.read(partial(self._load, wanted))
        finally:
            self._wanted.pop(wanted, None)
        row = wanted.row
        assert row is not None
        _check(row["verdict"], f"log of {partition.name}", leader)
        return _known_log(row)

    async def _load(self, wanted: "_Wanted", connection: Connection) -> None:
        """Loads other logs for which somebody waits as well: a broker that takes over a thousand logs makes few
        requests. When it is the turn of those, nothing is left to do."""
        if wanted.row is not None:
            return
        together = [wanted, *islice((each for each in self._wanted if each is not wanted), _LOADED_TOGETHER - 1)]
        rows = await connection.fetch(
            _LOAD,
            [each.partition.topic.topic_id for each in together],
            [each.partition.number for each in together],
            [each.leader.broker_id for each in together],
            [each.leader.epoch for each in together],
        )
        for row in rows:
            each = together[row["number"] - 1]
            each.row = row
            self._wanted.pop(each, None)

    async def commit(
        self, key: str, size: int, broker_id: int, parts: Sequence[LogPart], now_ms: TimestampMs
    ) -> frozenset[LogId]:
        assert parts, "a bundle without parts"
        assert len({part.log_id for part in parts}) == len(parts), "two parts of one log in a bundle"
        aborted = [(part.log_id, one) for part in parts for one in part.aborted]
        arguments = (
            key,
            size,
            broker_id,
            now_ms,
            [part.log_id for part in parts],
            [part.leader_epoch for part in parts],
            [part.base_offset for part in parts],
            [part.last_offset for part in parts],
            [part.position for part in parts],
            [part.size for part in parts],
            [part.max_timestamp for part in parts],
            [part.stable_offset for part in parts],
            [part.producers for part in parts],
            [log_id for log_id, _ in aborted],
            [one.last_offset for _, one in aborted],
            [one.first_offset for _, one in aborted],
            [one.producer_id for _, one in aborted],
            [one.last_stable_offset for _, one in aborted],
        )
        self._called += 1
        number = self._called
        counted: list[LogId] = await self._commits.statement(_fetch_value(_COMMIT, *arguments))
        self._decided = max(self._decided, number)
        return frozenset(counted)

    async def replace(
        self,
        log_id: LogId,
        leader: Leader,
        key: str,
        size: int,
        old: Sequence[Extent],
        new: Sequence[Extent],
        snapshot: ProducerSnapshot | None,
        now_ms: TimestampMs,
    ) -> bool:
        assert old, "no extents to replace"
        assert all(extent.key == key for extent in new), "a new extent of another object"
        verdict = await self._do(
            _REPLACE,
            log_id,
            leader.broker_id,
            leader.epoch,
            key,
            size,
            now_ms,
            [extent.base_offset for extent in old],
            [extent.last_offset for extent in old],
            [extent.key for extent in old],
            [extent.position for extent in old],
            [extent.size for extent in old],
            [extent.base_offset for extent in new],
            [extent.last_offset for extent in new],
            [extent.position for extent in new],
            [extent.size for extent in new],
            [extent.max_timestamp for extent in new],
            [extent.producers for extent in new],
            None if snapshot is None else snapshot.offset,
            None if snapshot is None else snapshot.facts,
        )
        _check(verdict, f"log {log_id}", leader)
        return bool(verdict == "done")

    async def keep_snapshot(self, log_id: LogId, leader: Leader, snapshot: ProducerSnapshot) -> None:
        verdict = await self._do(
            _KEEP_SNAPSHOT, log_id, leader.broker_id, leader.epoch, snapshot.offset, snapshot.facts
        )
        _check(verdict, f"log {log_id}", leader)

    async def keep_cleaned(
        self, log_id: LogId, leader: Leader, cleaned: Cleaned, void_aborts: Sequence[Offset]
    ) -> None:
        do = self._do
        for at in range(0, max(1, len(void_aborts)), _STEP):
            step = list(void_aborts[at : at + _STEP])
            verdict = await do(_KEEP_CLEANED, log_id, leader.broker_id, leader.epoch, *cleaned, step)
            _check(verdict, f"log {log_id}", leader)
            do = self._go_on

    async def move_start(self, log_id: LogId, leader: Leader, start_offset: Offset, now_ms: TimestampMs) -> None:
        arguments = (_MOVE_START, log_id, leader.broker_id, leader.epoch, start_offset, now_ms, _STEP)
        verdict = await self._do(*arguments)
        if verdict == "too high":
            raise OffsetOutOfRange(f"offset {start_offset} is after the high watermark of log {log_id}")
        _check(verdict, f"log {log_id}", leader)
        # The start has moved. If the log is no longer ours, its new leader does the rest when it moves the start.
        while verdict == "more":
            verdict = await self._go_on(*arguments)

    async def delete(self, topic_id: bytes, now_ms: TimestampMs) -> None:
        await self._do(_DELETE, topic_id)
        while await self._go_on(_CLEAR, topic_id, now_ms, _STEP):
            pass

    async def topics(self) -> list[tuple[bytes, str, bool]]:
        rows = await self._others.read(_fetch(_TOPICS))
        return sorted((row["topic_id"], row["topic"], row["is_unused"]) for row in rows)

    async def clock_ms(self) -> TimestampMs:
        now_ms: TimestampMs = await self._others.read(_fetch_value(_CLOCK))
        return now_ms

    async def dead_objects(self, before_ms: TimestampMs, limit: int) -> list[str]:
        rows = await self._others.read(_fetch(_DEAD_OBJECTS, before_ms, limit))
        return [row["key"] for row in rows]

    async def declare_dead(self, keys: Iterable[str], now_ms: TimestampMs) -> list[str]:
        unknown: list[str] = []
        for step in _steps(keys):
            rows = await self._others.statement(_fetch(_DECLARE_DEAD, step, now_ms))
            unknown.extend(row["key"] for row in rows)
        return unknown

    async def forget_objects(self, keys: Iterable[str], now_ms: TimestampMs) -> None:
        for step in _steps(keys):
            await self._do(_FORGET, step, now_ms, FORGOTTEN_AFTER_MS, _STEP)
        while await self._do(_FORGET, [], now_ms, FORGOTTEN_AFTER_MS, _STEP):
            pass

    async def close(self) -> None:
        try:
            await self._commits.close()
        finally:
            await self._others.close()

    async def _do(self, statement: str, *arguments: object) -> Any:  # noqa: ANN401  (what the function returns)
        return await self._others.statement(_fetch_value(statement, *arguments))

    async def _go_on(self, statement: str, *arguments: object) -> Any:  # noqa: ANN401
        """Like `_do`, for the later steps of a call that has changed something already."""
        try:
            return await self._do(statement, *arguments)
        except StorageUnavailable as error:
            raise OutcomeUnknown(f"a part of the change was not made: {error}") from error


def _fetch(statement: str, *arguments: object) -> "Callable[[Connection], Awaitable[list[asyncpg.Record]]]":
    return lambda connection: connection.fetch(statement, *arguments)


def _fetch_value(statement: str, *arguments: object) -> Callable[[Connection], Awaitable[Any]]:
    return lambda connection: connection.fetchval(statement, *arguments)


def _steps(keys: Iterable[str]) -> Iterator[list[str]]:
    """In order of the keys, so that the answers to all steps together are in order, too."""
    ordered = sorted(set(keys))
    return (ordered[at : at + _STEP] for at in range(0, len(ordered), _STEP))


def _check(verdict: str, log: str, leader: Leader) -> None:
    if verdict == "unknown":
        raise UnknownLog(f"there is no {log}")
    if verdict == "not leader":
        raise NotTheLeader(f"broker {leader.broker_id} does not lead the {log} at epoch {leader.epoch}")


def _known_log(row: "asyncpg.Record") -> KnownLog:
    extents = zip(*(_list(row[name]) for name in _EXTENT_COLUMNS), strict=True)
    aborted = zip(*(_list(row[name]) for name in _ABORTED_COLUMNS), strict=True)
    epochs = zip(_list(row["epochs"]), _list(row["epoch_offsets"]), strict=True)
    snapshot_offset = row["snapshot_offset"]
    return KnownLog(
        LogId(row["v_log"]),
        row["v_start"],
        row["v_end"],
        tuple(map(Extent._make, extents)),
        None if snapshot_offset is None else ProducerSnapshot(snapshot_offset, row["snapshot_facts"]),
        tuple(map(AbortedTransaction._make, aborted)),
        tuple(epochs),
        Cleaned(row["clean"], row["horizon"]),
    )


def _list(array: list[Any] | None) -> list[Any]:
    """`array_agg` of no rows is NULL."""
    return array or []
