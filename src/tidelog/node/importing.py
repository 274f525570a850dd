"""`tidelog cluster import`: takes a data directory of a single broker into a cluster.

The order of the steps makes a crash harmless at every point, and a repetition continues:

    1. the producer ids of the directory are claimed, so that the cluster gives them to nobody
    2. segments are uploaded and compared; nothing refers to them yet
    3. the logs are added; they have no topic yet, so nobody reads or writes them
    4. topics, configs, offsets and transactions are added, in one transaction: now the topics exist

A topic keeps its id, its offsets and its batches, byte for byte. A topic that the cluster has under the same id was
imported before, and is left alone.
"""

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

from tidelog.broker.producer_ids import NEXT_PRODUCER_ID
from tidelog.broker.topic_logs import LAYOUT
from tidelog.errors import Conflict, InvalidInput, OutcomeUnknown
from tidelog.metadata.intake import MetadataIntake, Numbers
from tidelog.metadata.opening import need_data_dir, open_intake, open_store
from tidelog.metadata.rows import (
    TABLES,
    ClusterRow,
    ConfigRow,
    DecisionRow,
    DeletedTopicRow,
    GroupRow,
    OffsetRow,
    Row,
    TopicRow,
    TransactionOffsetRow,
    TransactionRow,
)
from tidelog.metadata.store import Change, Insert, MetadataStore, Put
from tidelog.model import PartitionIdentity, TopicIdentity
from tidelog.node.parts import CLUSTER_ID, cluster_id
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
from tidelog.settings import ClusterSettings
from tidelog.storage.engines import cluster_tables, open_cluster_import

if TYPE_CHECKING:
    from tidelog.storage.transfer.importing import CopiedLog, ImportStorage, LogFacts

_MOST_ATTEMPTS = 5
_OF_CLUSTER = (TopicRow, ConfigRow, DeletedTopicRow, GroupRow, TransactionRow, DecisionRow)


class PlannedTopic(NamedTuple):
    row: TopicRow
    is_there: bool
    """The cluster has it: it was imported before."""
    logs: "Sequence[LogFacts]"

    @property
    def identity(self) -> TopicIdentity:
        return TopicIdentity(self.row.name, self.row.topic_id)


class ImportPlan(NamedTuple):
    topics: Sequence[PlannedTopic]
    groups: int
    """Groups whose offsets are imported."""
    transactional_ids: int
    forgotten_producers: int
    """Idempotent producers that cannot go on, because the cluster has given their ids to others."""

    @property
    def new(self) -> list[PlannedTopic]:
        return [topic for topic in self.topics if not topic.is_there]

    @property
    def size_bytes(self) -> int:
        return sum(log.size_bytes for topic in self.new for log in topic.logs)

    def partitions(self) -> list[Moved]:
        return [
            Moved(topic.row.name, log.partition.number, log.start_offset, log.end_offset, _state(topic, "to import"))
            for topic in self.topics
            for log in topic.logs
        ]


class ClusterImport:
    """Use `open_import`."""

    def __init__(
        self,
        data_dir: str,
        storage: "ImportStorage",
        local: MetadataStore,
        cluster: MetadataStore,
        intake: MetadataIntake,
    ) -> None:
        self._data_dir = data_dir
        self._storage = storage
        self._local = local
        self._cluster = cluster
        self._intake = intake

    async def plan(self, names: Collection[str]) -> ImportPlan:
        """What there is to import: the topics with these names, or all. Changes nothing. InvalidInput if something
        stands in the way."""
        plan, problems, _ = await self._plan(names, rehearse=True)
        if problems:
            raise InvalidInput("; ".join(problems))
        return plan

    async def run(self, names: Collection[str], progress: Callable[[int], None]) -> tuple[ImportPlan, list[Moved]]:
        """`progress` is told bytes that were copied and compared."""
        await self._check_claim(await _rows(self._cluster, (TopicRow,)))
        await self._storage.claim(await cluster_id(self._cluster))
        plan, problems, claimed = await self._plan(names, rehearse=False)
        if problems:
            raise InvalidInput("; ".join(problems))
        copied = {
            log.partition: log
            for log in await several_at_once(
                lambda facts: self._storage.copy(facts.partition, progress),
                [facts for topic in plan.new for facts in topic.logs],
            )
        }
        for topic in plan.new:
            logs = [copied[facts.partition] for facts in topic.logs]
            await self._storage.add(logs, lambda producer_id: _holds(claimed, producer_id))
        await self._add_rows(plan, claimed)
        moved = [_moved(topic, facts, copied) for topic in plan.topics for facts in topic.logs]
        return plan, moved

    async def abandon(self, names: Collection[str]) -> int:
        """Give up an unfinished import: what it has copied becomes garbage. Returns the number of logs and
        objects."""
        local, cluster = await _rows(self._local, TABLES), await _rows(self._cluster, (TopicRow,))
        await self._check_claim(cluster)
        known = {row.topic_id for row in cluster.of(TopicRow)}
        topics = chosen_topics(local.of(TopicRow), names, self._data_dir)
        return await self._storage.abandon([row.topic_id for row in topics if row.topic_id not in known])

    # The plan

    async def _plan(self, names: Collection[str], *, rehearse: bool) -> tuple[ImportPlan, list[str], list[Numbers]]:
        local, cluster = await _rows(self._local, TABLES), await _rows(self._cluster, _OF_CLUSTER)
        await self._check_claim(cluster)
        facts = {row.name: row.value for row in local.of(ClusterRow)}
        rows = chosen_topics(local.of(TopicRow), names, self._data_dir)
        if LAYOUT not in facts and rows:
            raise InvalidInput(f"an earlier version wrote {self._data_dir}: let `tidelog serve` open it once")
        problems = _clashes(rows, cluster)
        there = {row.topic_id for row in cluster.of(TopicRow)}
        topics = [
            PlannedTopic(
                row,
                row.topic_id in there,
                list(map(self._storage.look, TopicIdentity(row.name, row.topic_id).partitions(row.partitions))),
            )
            for row in rows
        ]
        problems += await self._other_logs(topics)
        producers = {producer_id for topic in topics for log in topic.logs for producer_id in log.producers}
        end = max(int(facts.get(NEXT_PRODUCER_ID, "0")), max(producers, default=-1) + 1)
        source = await cluster_id(self._local)
        claimed = await self._intake.claim(NEXT_PRODUCER_ID, source, end, rehearse=rehearse or bool(problems))
        new = [topic for topic in topics if not topic.is_there]
        problems += _stuck_transactions(new, local, cluster, claimed)
        changes = _changes(new, local, cluster, claimed)
        plan = ImportPlan(
            topics,
            len({row.group for row in offsets_of(local.of(OffsetRow), {topic.row.name for topic in new})}),
            sum(isinstance(change, Insert) and isinstance(change.row, TransactionRow) for change in changes),
            len({each for topic in new for log in topic.logs for each in log.producers if not _holds(claimed, each)}),
        )
        return plan, problems, claimed

    async def _check_claim(self, cluster: Tables) -> None:
        for fact in await self._cluster.load(ClusterRow, (CLUSTER_ID,)):
            await self._storage.check_claim(fact.value, is_unused=not cluster.of(TopicRow))

    async def _other_logs(self, topics: Sequence[PlannedTopic]) -> list[str]:
        """Logs of the cluster that are not a continuation of those in the directory."""
        problems = []
        stored = await self._storage.logs_of([topic.row.topic_id for topic in topics])
        for topic in topics:
            for log in topic.logs:
                known = stored.get((topic.row.topic_id, log.partition.number))
                if topic.is_there and (known is None or known.high_watermark < log.end_offset):
                    end = "nothing" if known is None else f"records up to offset {known.high_watermark}"
                    problems.append(
                        f"the cluster has {topic.row.name} already, with {end} of partition {log.partition.number},"
                        f" and {self._data_dir} has records up to {log.end_offset}: delete the topic in one of them,"
                        " or choose others with --topic"
                    )
                elif not topic.is_there and known is not None and known.high_watermark != log.end_offset:
                    problems.append(
                        f"an unfinished import has copied {log.partition.name} up to offset {known.high_watermark},"
                        f" and {self._data_dir} has changed since: run the command with --abandon first"
                    )
        return problems

    # The last step

    async def _add_rows(self, plan: ImportPlan, claimed: Sequence[Numbers]) -> None:
        if not plan.new:
            return
        for attempt in range(_MOST_ATTEMPTS):
            local, cluster = await _rows(self._local, TABLES), await _rows(self._cluster, _OF_CLUSTER)
            there = {row.topic_id for row in cluster.of(TopicRow)}
            new = [topic for topic in plan.new if topic.row.topic_id not in there]
            problems = [*_clashes([topic.row for topic in new], cluster)]
            problems += _stuck_transactions(new, local, cluster, claimed)
            if problems:
                raise InvalidInput("; ".join(problems))
            if not new:
                return
            try:
                await self._intake.take_in(_changes(new, local, cluster, claimed))
                return
            except (Conflict, OutcomeUnknown):
                if attempt == _MOST_ATTEMPTS - 1:
                    raise


@asynccontextmanager
async def open_import(cluster: ClusterSettings, data_dir: str) -> AsyncIterator[ClusterImport]:
    """Locks the data directory. InvalidInput if it is none, DirectoryInUse if a broker runs on it."""
    need_data_dir(data_dir)
    async with AsyncExitStack() as opened:
        storage = await opened.enter_async_context(open_cluster_import(cluster, data_dir))
        local = await open_store(data_dir)
        opened.push_async_callback(local.close)
        intake = await open_intake(cluster.metadata, cluster_tables())
        opened.push_async_callback(intake.close)
        metadata = await open_store(cluster.metadata)
        opened.push_async_callback(metadata.close)
        yield ClusterImport(data_dir, storage, local, metadata, intake)


async def _rows(store: MetadataStore, tables: Sequence[type[Row]]) -> Tables:
    return Tables({table: await store.load(table) for table in tables})


def _clashes(topics: Sequence[TopicRow], cluster: Tables) -> list[str]:
    by_name = {row.name: row.topic_id for row in cluster.of(TopicRow)}
    by_id = {row.topic_id: row.name for row in cluster.of(TopicRow)}
    deleted = {row.topic_id for row in cluster.of(DeletedTopicRow)}
    problems = []
    for row in topics:
        if by_name.get(row.name, row.topic_id) != row.topic_id:
            problems.append(
                f"the cluster has another topic {row.name}: delete it there, or choose others with --topic"
            )
        elif by_id.get(row.topic_id, row.name) != row.name:
            problems.append(f"the cluster has the id of {row.name} for its topic {by_id[row.topic_id]}")
        elif row.topic_id in deleted:
            problems.append(f"the cluster is deleting {row.name}: try again when its data is removed")
    return problems


def _stuck_transactions(
    topics: Sequence[PlannedTopic], local: Tables, cluster: Tables, claimed: Sequence[Numbers]
) -> list[str]:
    """Open transactions that cannot go on in the cluster."""
    names = {topic.row.name for topic in topics}
    ids_there = {row.transactional_id for row in cluster.of(TransactionRow)}
    problems = []
    advice = "start a broker on the directory and end it: tidelog txn abort"
    for row in local.of(TransactionRow):
        involved = topics_in(row, local.of(TransactionOffsetRow)) if is_open(row) else set()
        if not involved & names:
            continue
        reason = ""
        if involved - names:
            reason = f"it also involves {', '.join(sorted(involved - names))}, which are not imported with it"
        elif row.transactional_id in ids_there:
            reason = "the cluster knows a producer of the same transactional id"
        elif not _holds(claimed, row.producer_id):
            reason = f"the cluster has given its producer id, {row.producer_id}, to another"
        if reason:
            problems.append(
                f"the transaction of {row.transactional_id!r} is open: {reason}; {advice} {row.transactional_id}"
            )
    told = {row.producer_id for row in local.of(TransactionRow) if is_open(row)}
    for topic in topics:
        for log in topic.logs:
            problems += [
                f"{log.partition.name} has an open transaction of producer {producer_id}, and the cluster has given"
                f" this id to another; {advice} --partition {log.partition.name}"
                for producer_id in sorted(log.open_transactions - told)
                if not _holds(claimed, producer_id)
            ]
    return problems


def _changes(
    topics: Sequence[PlannedTopic], local: Tables, cluster: Tables, claimed: Sequence[Numbers]
) -> list[Change]:
    """The rows of these topics, and of the groups and producers that use them. What the cluster has of groups,
    transactional ids and decisions stays as it is there."""
    if not topics:
        return []
    names = {topic.row.name for topic in topics}
    offsets = offsets_of(local.of(OffsetRow), names)
    groups = {row.group for row in offsets}
    groups_there = {row.group for row in cluster.of(GroupRow)}
    configs_there = {(row.kind, row.resource) for row in cluster.of(ConfigRow)}
    ids_there = {row.transactional_id for row in cluster.of(TransactionRow)}
    scopes_there = {row.scope for row in cluster.of(DecisionRow)}
    transactions = [
        row
        for row in local.of(TransactionRow)
        if row.transactional_id not in ids_there
        and _holds(claimed, row.producer_id)
        and (not is_open(row) or topics_in(row, local.of(TransactionOffsetRow)) & names)
    ]
    ids = {row.transactional_id for row in transactions}
    changes: list[Change] = [Insert(topic.row) for topic in topics]
    changes += [Insert(row) for row in transactions]
    changes += [Insert(row) for row in groups_of(local, groups - groups_there)]
    changes += [Insert(row) for row in local.of(DecisionRow) if row.scope not in scopes_there]
    changes += [Put(row) for row in local.of(ConfigRow) if row.kind == TOPIC and row.resource in names]
    changes += [
        Put(row)
        for row in local.of(ConfigRow)
        if row.kind == GROUP and row.resource in groups and (GROUP, row.resource) not in configs_there
    ]
    changes += [Put(row) for row in offsets]
    changes += [Put(row) for row in local.of(TransactionOffsetRow) if row.transactional_id in ids]
    return changes


def _holds(claimed: Sequence[Numbers], number: int) -> bool:
    return any(first <= number < end for first, end in claimed)


def _moved(topic: PlannedTopic, facts: "LogFacts", copied: "dict[PartitionIdentity, CopiedLog]") -> Moved:
    moved = Moved(
        topic.row.name,
        facts.partition.number,
        facts.start_offset,
        facts.end_offset,
        _state(topic, "imported"),
    )
    log = copied.get(facts.partition)
    if log is None:
        return moved
    batches, records, size_bytes, crc = log.stored
    return moved._replace(batches=batches, records=records, size_bytes=size_bytes, crc=f"{crc:08x}")


def _state(topic: PlannedTopic, otherwise: str) -> str:
    return "already there" if topic.is_there else otherwise
