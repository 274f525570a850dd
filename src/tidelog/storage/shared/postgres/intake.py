"""`PostgresIntake`: staged objects and new logs, in the tables of the order.

A staged object is a row of `objects` that is not dead and that no log counts (`counted` is empty): a commit never
leaves such a row. The extents of new logs are inserted before the logs themselves, under numbers that are reserved,
because inserting logs locks the row by which the registry orders its versions.
"""

from collections.abc import Iterable, Sequence
from functools import partial

from tidelog.errors import Conflict
from tidelog.model import TimestampMs
from tidelog.postgres import Connection, PostgresSettings, Session
from tidelog.storage.shared.intake import Intake, LogInCluster, NewLog
from tidelog.storage.shared.postgres.order import COMPONENT
from tidelog.storage.shared.segment_object import PREFIX

_LOGS = """
    SELECT topic_id, partition, start_offset, high_watermark FROM logs WHERE topic_id = ANY ($1::bytea[])"""
_IS_STAGED = "dead_since IS NULL AND counted = '{}'"
_STAGE = "INSERT INTO objects (key, size, counted) VALUES ($1, $2, '{}') ON CONFLICT (key) DO NOTHING"
_LOOK = f"SELECT size = $2 AND {_IS_STAGED} FROM objects WHERE key = $1"  # noqa: S608
_ABANDON = f"""
    UPDATE objects SET dead_since = $3
    WHERE key >= $1 AND key < $2 AND {_IS_STAGED}"""  # noqa: S608
_RESERVE = "SELECT nextval(pg_get_serial_sequence('logs', 'log_id')) AS log_id FROM generate_series(1, $1::integer)"
_USE = f"""
    UPDATE objects SET counted = ARRAY[used.log_id]
    FROM unnest($1::text[], $2::bigint[]) AS used (key, log_id)
    WHERE objects.key = used.key AND {_IS_STAGED}"""  # noqa: S608
_ADD_EXTENTS = """
    INSERT INTO extents (log_id, last_offset, base_offset, object_id, position, size, max_timestamp, producers)
    SELECT log_id, last_offset, base_offset, object_id, position, new.size, max_timestamp, ''
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[])
        AS new (log_id, base_offset, last_offset, key, position, size, max_timestamp)
    JOIN objects ON objects.key = new.key"""
_ADD_SNAPSHOTS = """
    INSERT INTO snapshots (log_id, "offset", facts) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[])"""
_ADD_ABORTED = """
    INSERT INTO aborted (log_id, producer_id, first_offset, last_offset, stable_offset)
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])"""
_ADD_EPOCHS = """
    INSERT INTO epochs (log_id, leader_epoch, first_offset)
    SELECT * FROM unnest($1::bigint[], $2::integer[], $3::bigint[])"""
_ADD_LOGS = """
    INSERT INTO logs (log_id, topic_id, topic, partition, leader_epoch, epoch_start, start_offset, high_watermark,
        stable_offset, bytes, clean_offset, next_horizon)
    OVERRIDING SYSTEM VALUE
    SELECT log_id, topic_id, topic, partition, leader_epoch, high_watermark, start_offset, high_watermark,
        stable_offset, bytes, clean_offset, next_horizon
    FROM unnest($1::bigint[], $2::bytea[], $3::text[], $4::integer[], $5::integer[], $6::bigint[], $7::bigint[],
        $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[])
        AS new (log_id, topic_id, topic, partition, leader_epoch, start_offset, high_watermark, stable_offset, bytes,
            clean_offset, next_horizon)"""


_STEP = 1000  # rows that one statement removes at most


class PostgresIntake(Intake):
    def __init__(self, session: Session) -> None:
        """Use `open`."""
        self._session = session

    @classmethod
    async def open(cls, settings: PostgresSettings) -> "PostgresIntake":
        """Creates the tables if there are none. Fails as `Session.open` does."""
        return cls(await Session.open(settings, [COMPONENT], name="tidelog import"))

    async def logs_of(self, topic_ids: Iterable[bytes]) -> dict[tuple[bytes, int], LogInCluster]:
        wanted = list(topic_ids)
        rows = await self._session.read(lambda connection: connection.fetch(_LOGS, wanted))
        return {(row["topic_id"], row["partition"]): LogInCluster(*row[2:]) for row in rows}

    async def stage(self, key: str, size: int) -> bool:
        await self._session.statement(lambda connection: connection.execute(_STAGE, key, size))
        is_staged = await self._session.read(lambda connection: connection.fetchval(_LOOK, key, size))
        return bool(is_staged)

    async def add(self, logs: Sequence[NewLog]) -> None:
        await self._session.transaction(lambda connection: _add(connection, logs))

    async def abandon(self, topic_ids: Iterable[bytes], now_ms: TimestampMs) -> int:
        wanted = list(topic_ids)
        abandoned = len(await self.logs_of(wanted))
        for topic_id in wanted:
            abandoned += await self._session.statement(partial(_abandon, topic_id, now_ms))
            await self._session.statement(partial(_delete, topic_id))
            while await self._session.statement(partial(_clear, topic_id, now_ms)):
                pass
        return abandoned

    async def close(self) -> None:
        await self._session.close()


async def _abandon(topic_id: bytes, now_ms: TimestampMs, connection: Connection) -> int:
    first = f"{PREFIX}{topic_id.hex()}"
    done = await connection.execute(_ABANDON, f"{first}/", f"{first}0", now_ms)  # "0" follows "/"
    return int(done.split()[-1])


async def _delete(topic_id: bytes, connection: Connection) -> None:
    await connection.execute("SELECT delete_logs($1)", topic_id)


async def _clear(topic_id: bytes, now_ms: TimestampMs, connection: Connection) -> bool:
    return bool(await connection.fetchval("SELECT clear_deleted_logs($1, $2, $3)", topic_id, now_ms, _STEP))


async def _add(connection: Connection, logs: Sequence[NewLog]) -> None:
    stored = await connection.fetch(_LOGS, [log.partition.topic.topic_id for log in logs])
    known = {(row["topic_id"], row["partition"]): row["high_watermark"] for row in stored}
    new = []
    for log in logs:
        end = known.get((log.partition.topic.topic_id, log.partition.number))
        if end is None:
            new.append(log)
        elif end != log.high_watermark:
            raise Conflict(
                f"the cluster has a log of {log.partition.name} that ends at offset {end}, not {log.high_watermark}"
            )
    if not new:
        return
    ids = [row["log_id"] for row in await connection.fetch(_RESERVE, len(new))]
    numbered = list(zip(ids, new, strict=True))
    extents = [(log_id, extent) for log_id, log in numbered for extent in log.extents]
    used = await connection.execute(_USE, [extent.key for _, extent in extents], [log_id for log_id, _ in extents])
    if used != f"UPDATE {len(extents)}":
        raise Conflict("an uploaded segment was declared dead meanwhile; run the import again")
    await connection.execute(
        _ADD_EXTENTS,
        [log_id for log_id, _ in extents],
        *zip(*(extent[:6] for _, extent in extents), strict=True) if extents else [[]] * 6,
    )
    snapshots = [(log_id, log.high_watermark, log.producers) for log_id, log in numbered if log.producers]
    aborted = [(log_id, *one) for log_id, log in numbered for one in log.aborted]
    epochs = [(log_id, *one) for log_id, log in numbered for one in log.epochs]
    for statement, rows in ((_ADD_SNAPSHOTS, snapshots), (_ADD_ABORTED, aborted), (_ADD_EPOCHS, epochs)):
        if rows:
            await connection.execute(statement, *zip(*rows, strict=True))
    await connection.execute(
        _ADD_LOGS,
        ids,
        [log.partition.topic.topic_id for log in new],
        [log.partition.topic.name for log in new],
        [log.partition.number for log in new],
        [log.epochs[-1][0] if log.epochs else -1 for log in new],
        [log.start_offset for log in new],
        [log.high_watermark for log in new],
        [log.stable_offset for log in new],
        [sum(extent.size for extent in log.extents) for log in new],
        [log.cleaned.offset for log in new],
        [log.cleaned.next_horizon_ms for log in new],
    )
