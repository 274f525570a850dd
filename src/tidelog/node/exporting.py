"""`tidelog cluster export`: writes topics of a cluster into a new data directory for a single broker.

Everything is as of one moment: PostgreSQL says which records exist, and one of its snapshots is read, with the
metadata. So the brokers may run. What they remove afterwards stays in the object store for a grace; if an object is
gone nevertheless, the export begins again with a new snapshot, and copies only what has changed.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from tidelog.broker.producer_ids import NEXT_PRODUCER_ID
from tidelog.broker.topic_logs import BY_ID, LAYOUT
from tidelog.errors import InvalidInput, TidelogError
from tidelog.metadata.opening import create_in, has_metadata, rows_as_of, snapshot
from tidelog.metadata.rows import (
    ClusterRow,
    ConfigRow,
    DecisionRow,
    OffsetRow,
    Row,
    TopicRow,
    TransactionOffsetRow,
    TransactionRow,
)
from tidelog.metadata.store import Change, Put
from tidelog.model import NO_LEADER_EPOCH, TopicPartition
from tidelog.node.parts import CLUSTER_ID
from tidelog.node.transferring import (
    GROUP,
    TOPIC,
    Moved,
    Tables,
    chosen_topics,
    groups_of,
    is_open,
    offsets_of,
    several_at_once,
    topics_in,
)
from tidelog.settings import ClusterSettings, LogSettings
from tidelog.storage.engines import check_cluster_tables, cluster_logs_as_of, open_cluster_export

if TYPE_CHECKING:
    from tidelog.postgres import Connection, PostgresSettings
    from tidelog.storage.shared.postgres.logs_as_of import LogAsOf
    from tidelog.storage.transfer.exporting import ExportedLog, ExportStorage

EXPORT_ID = "export.id"
_PATIENCE_S = 120.0
_MOST_ATTEMPTS = 5
_SEGMENT_BYTES = "segment.bytes"


class ClusterState(NamedTuple):
    """A cluster as of one moment."""

    cluster_id: str
    tables: Tables
    numbers: dict[str, int]
    """The next number of each sequence."""
    topics: Sequence[TopicRow]
    """Those that are exported."""
    logs: "Sequence[LogAsOf]"
    """Theirs."""

    @property
    def size_bytes(self) -> int:
        return sum(extent.size for log in self.logs for extent in log.known.extents)

    @property
    def groups(self) -> int:
        return len({row.group for row in offsets_of(self.tables.of(OffsetRow), {row.name for row in self.topics})})

    def partitions(self) -> list[Moved]:
        return [
            Moved(*log.partition.name, log.known.start_offset, log.known.high_watermark, "to export")
            for log in self.logs
        ]


class ClusterExport:
    """Copies topics with these names, or all."""

    def __init__(self, cluster: ClusterSettings, data_dir: str, names: Collection[str]) -> None:
        self._cluster = cluster
        self._data_dir = data_dir
        self._names = names

    async def state(self) -> ClusterState:
        """What an export that begins now would copy. Changes nothing. InvalidInput if something stands in the way."""
        from tidelog.postgres import PostgresSettings, Session

        settings = PostgresSettings.parse(self._cluster.metadata, deadline_s=_PATIENCE_S)
        session = await Session.open(settings, name="tidelog export")
        try:
            state = await session.read(lambda connection: self._read(connection, settings), as_of_one_moment=True)
        finally:
            await session.close()
        _check_transactions(state)
        return state

    async def _read(self, connection: "Connection", settings: "PostgresSettings") -> ClusterState:
        await check_cluster_tables(connection, settings)
        rows, numbers = await rows_as_of(connection)
        tables = Tables(rows)
        ids = [row.value for row in tables.of(ClusterRow) if row.name == CLUSTER_ID]
        topics = chosen_topics(tables.of(TopicRow), self._names, "the cluster")
        logs = await cluster_logs_as_of(connection, [row.topic_id for row in topics])
        return ClusterState(ids[0] if ids else "", tables, numbers, topics, logs)

    async def run(self, progress: Callable[[int], None]) -> tuple[ClusterState, list[Moved]]:
        """`progress` is told bytes that were copied and compared."""
        state = await self.state()
        async with open_cluster_export(self._cluster, state.cluster_id, self._data_dir) as storage:
            if has_metadata(self._data_dir):
                await self._check_finished(storage)
                storage.remove_journal()
                return state, [moved._replace(state="exported before") for moved in state.partitions()]
            state, exported = await self._copy(storage, state, progress)
            storage.finish([log.partition for log in state.logs])
            await create_in(self._data_dir, _changes(state, storage.export_id))
            storage.remove_journal()
        known = {log.partition: log.known.start_offset for log in state.logs}
        ends = {log.partition: log.known.high_watermark for log in state.logs}
        return state, [_moved(log, known[log.partition], ends[log.partition]) for log in exported]

    async def _check_finished(self, storage: "ExportStorage") -> None:
        """The directory has metadata although the export was not completed: it must be that of the last step."""
        async with snapshot(self._data_dir) as metadata:
            facts = {row.name: row.value for row in await metadata.load(ClusterRow)}
        if facts.get(EXPORT_ID) != storage.export_id:
            raise InvalidInput(
                f"a broker has used {self._data_dir} before its export was complete; export to another directory"
            )

    async def _copy(
        self, storage: "ExportStorage", state: ClusterState, progress: Callable[[int], None]
    ) -> "tuple[ClusterState, list[ExportedLog]]":
        from tidelog.storage.shared.objects import ObjectMissing

        failures: set[str] = set()
        while True:
            sizes = _segment_sizes(state)
            wanted = [(log, sizes[log.partition.topic.name]) for log in state.logs]
            try:
                return state, await several_at_once(lambda each: storage.copy(*each, progress), wanted)
            except ObjectMissing as error:
                if str(error) in failures or len(failures) == _MOST_ATTEMPTS:
                    raise TidelogError(
                        f"{error}; if the brokers have removed it during the export, stop them or raise"
                        " cluster.garbage-grace-ms, and run the command again; otherwise see: tidelog cluster check"
                    ) from error
                failures.add(str(error))
                state = await self.state()


def _check_transactions(state: ClusterState) -> None:
    names = {row.name for row in state.topics}
    problems = []
    for row in state.tables.of(TransactionRow):
        involved = topics_in(row, state.tables.of(TransactionOffsetRow)) if is_open(row) else set()
        if involved & names and involved - names:
            problems.append(
                f"the transaction of {row.transactional_id!r} is open, and also involves"
                f" {', '.join(sorted(involved - names))}: export these too, or end it first: tidelog txn abort"
                f" {row.transactional_id}"
            )
    if problems:
        raise InvalidInput("; ".join(problems))


def _segment_sizes(state: ClusterState) -> dict[str, int]:
    configs = {
        row.resource: int(row.value)
        for row in state.tables.of(ConfigRow)
        if (row.kind, row.name) == (TOPIC, _SEGMENT_BYTES)
    }
    usual = LogSettings().segment_bytes
    return {row.name: configs.get(row.name, usual) for row in state.topics}


def _changes(state: ClusterState, export_id: str) -> list[Change]:
    """The metadata of the new directory. Offsets lose their leader epoch, which means nothing to a broker that is
    alone."""
    names = {row.name for row in state.topics}
    ends = {log.partition.name: log.known.high_watermark for log in state.logs}
    tables = state.tables
    offsets = [
        replace(
            row,
            offset=min(row.offset, ends.get(TopicPartition(row.topic, row.partition), row.offset)),
            leader_epoch=NO_LEADER_EPOCH,
        )
        for row in offsets_of(tables.of(OffsetRow), names)
    ]
    groups = {row.group for row in offsets}
    transactions = [
        row
        for row in tables.of(TransactionRow)
        if not is_open(row) or topics_in(row, tables.of(TransactionOffsetRow)) <= names
    ]
    ids = {row.transactional_id for row in transactions}
    rows: list[Row] = [ClusterRow(EXPORT_ID, export_id), ClusterRow(LAYOUT, BY_ID), *state.topics]
    rows += [*offsets, *transactions]
    if NEXT_PRODUCER_ID in state.numbers:
        rows.append(ClusterRow(NEXT_PRODUCER_ID, str(state.numbers[NEXT_PRODUCER_ID])))
    rows += groups_of(tables, groups)
    rows += [
        row
        for row in tables.of(ConfigRow)
        if (row.kind == TOPIC and row.resource in names) or (row.kind == GROUP and row.resource in groups)
    ]
    rows += [
        replace(row, leader_epoch=NO_LEADER_EPOCH)
        for row in tables.of(TransactionOffsetRow)
        if row.transactional_id in ids
    ]
    rows += tables.of(DecisionRow)
    return [Put(row) for row in rows]


def _moved(log: "ExportedLog", start: int, end: int) -> Moved:
    batches, records, size_bytes, crc = log.written
    state = "exported" if log.is_copied else "exported before"
    return Moved(*log.partition.name, start, end, state, batches, records, size_bytes, f"{crc:08x}")
