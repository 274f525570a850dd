"""Loads the coordinators of the shards that a broker gains, and ends those of the shards that it loses.

The rows of all shards that are gained at once are read together, and the shards are built one after another, so that
the event loop does other things in between. Until a shard is built, its clients are told that it is being loaded. Its
writes carry the fence of its lease: nothing that its former owner still writes takes effect.

The order of reading matters only for offsets, which the coordinators of transactions commit (see
`broker.offsets_in_transactions`): those in transactions come first. Before that the broker learns which topics there
are, so that a topic it does not know is one that was deleted.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import structlog

from tidelog.broker.broker import Broker
from tidelog.broker.coordination.groups.pending import PendingOffsets
from tidelog.broker.group_shards import GroupShards
from tidelog.broker.groups import Groups
from tidelog.broker.ownership import Ownership
from tidelog.broker.producer_ids import ProducerIds
from tidelog.broker.remote_offsets import EndNotices
from tidelog.broker.remote_transactions import Markers
from tidelog.broker.shell import monotonic_ms
from tidelog.broker.transaction_shards import TransactionShards
from tidelog.broker.transactions import Transactions
from tidelog.metadata.registry import group_shard, transaction_shard
from tidelog.metadata.rows import (
    DecisionRow,
    GroupMemberRow,
    GroupRow,
    OffsetRow,
    Row,
    TransactionOffsetRow,
    TransactionRow,
)
from tidelog.metadata.store import Fence, MetadataStore, Shards
from tidelog.model import SHARDS, shard_of
from tidelog.node.coordinators import group_coordinator, transaction_coordinator
from tidelog.storage.trouble import Trouble

_RETRY_S = 0.5
_ROWS_AT_ONCE = 5_000
_GROUP_SHARDS = {group_shard(number): number for number in range(SHARDS)}
_TRANSACTION_SHARDS = {transaction_shard(number): number for number in range(SHARDS)}

log = structlog.get_logger("tidelog.cluster")

R = TypeVar("R", bound=Row)


class Cooperation(NamedTuple):
    """What coordinators need of the other brokers."""

    ownership: Ownership
    markers: Markers
    notices: EndNotices


class ShardLoading:
    """Belongs to the running event loop."""

    def __init__(
        self,
        broker: Broker,
        groups: GroupShards,
        transactions: TransactionShards,
        metadata: MetadataStore,
        producer_ids: ProducerIds,
        cooperation: Cooperation,
        follow: Callable[[], Awaitable[None]],
    ) -> None:
        """`follow` returns when this broker knows all topics that existed at the call."""
        self._broker = broker
        self._groups = groups
        self._transactions = transactions
        self._metadata = metadata
        self._producer_ids = producer_ids
        self._cooperation = cooperation
        self._follow = follow
        self._epochs: dict[str, int] = {}  # of the leases that this broker has
        self._tasks: set[asyncio.Task[None]] = set()
        self._trouble = Trouble(
            log, bad="shards of groups and transactions cannot be loaded", good="shards can be loaded again"
        )

    def gained(self, leases: Mapping[str, int]) -> None:
        groups: dict[int, Fence] = {}
        transactions: dict[int, Fence] = {}
        for scope, epoch in leases.items():
            if scope in _GROUP_SHARDS:
                groups[_GROUP_SHARDS[scope]] = Fence(scope, epoch)
                self._groups.expect(_GROUP_SHARDS[scope])
            elif scope in _TRANSACTION_SHARDS:
                transactions[_TRANSACTION_SHARDS[scope]] = Fence(scope, epoch)
                self._transactions.expect(_TRANSACTION_SHARDS[scope])
            self._epochs[scope] = epoch
        if groups:
            self._begin(self._load(self._groups, groups, self._load_groups))
        if transactions:
            self._begin(self._load(self._transactions, transactions, self._load_transactions))

    def lost(self, leases: Iterable[str]) -> None:
        for scope in leases:
            self._epochs.pop(scope, None)
            shard: Groups | Transactions | None = None
            if scope in _GROUP_SHARDS:
                shard = self._groups.remove(_GROUP_SHARDS[scope])
            elif scope in _TRANSACTION_SHARDS:
                shard = self._transactions.remove(_TRANSACTION_SHARDS[scope])
            if shard is not None:
                shard.resign()
                self._begin(shard.close())

    @property
    def is_done(self) -> bool:
        """True if everything that belongs to this broker is loaded."""
        return not self._groups.is_loading and not self._transactions.is_loading

    async def close(self) -> None:
        """The broker stops. What it still coordinates is completed as far as possible."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(shard.close() for shard in (*self._transactions, *self._groups)))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _load(
        self,
        router: GroupShards | TransactionShards,
        shards: Mapping[int, Fence],
        load: Callable[[Mapping[int, Fence]], Awaitable[None]],
    ) -> None:
        """Load these shards, as long as they belong to this broker."""
        while left := {
            number: fence for number, fence in shards.items() if self._is_mine(fence) and not router.has(number)
        }:
            try:
                await self._follow()
                await load(left)
                self._trouble.worked(load)
            except Exception as error:  # whatever it is: nobody else loads them while this broker has the leases
                self._trouble.failed(load, error)
                await asyncio.sleep(_RETRY_S)
        if self.is_done:
            log.info("the groups and transactions of this broker are loaded", leases=len(self._epochs))

    def _is_mine(self, fence: Fence) -> bool:
        return self._epochs.get(fence.scope) == fence.epoch

    async def _load_groups(self, fences: Mapping[int, Fence]) -> None:
        shards, load = Shards(frozenset(fences)), self._metadata.load
        asked = (
            load(TransactionOffsetRow),
            load(GroupRow, shards),
            load(GroupMemberRow, shards),
            load(OffsetRow, shards),
        )
        in_transactions = await _by_shard(await asked[0], "group")
        groups = await _by_shard(await asked[1], "group")
        members = await _by_shard(await asked[2], "group")
        offsets = await _by_shard(await asked[3], "group")

        def build(number: int) -> None:
            pending = PendingOffsets()
            for transaction, group, places in _places(in_transactions.get(number, ())):
                pending.found(transaction, group, places)
            coordinator = group_coordinator(self._broker.config, self._broker.topics, pending.has, pending.has_any)
            for group, pace in self._groups.configs.paces.items():
                if shard_of(group) == number:
                    coordinator.configure(group, pace)
            coordinator.restore(
                groups.get(number, ()), members.get(number, ()), offsets.get(number, ()), monotonic_ms()
            )
            shard = Groups(coordinator, self._metadata, self._groups.configs, fences[number], pending)
            self._groups.add(number, shard)
            shard.begin()

        await self._build(fences, build)

    async def _load_transactions(self, fences: Mapping[int, Fence]) -> None:
        shards, load = Shards(frozenset(fences)), self._metadata.load
        asked = load(TransactionRow, shards), load(TransactionOffsetRow, shards), load(DecisionRow, shards)
        transactions = await _by_shard(await asked[0], "transactional_id")
        offsets = await _by_shard(await asked[1], "transactional_id")
        decisions = await _by_shard(await asked[2], "scope")

        def build(number: int) -> None:
            coordinator = transaction_coordinator(self._broker.config, self._producer_ids)
            in_shard = offsets.get(number, ())
            restored = coordinator.restore(
                transactions.get(number, ()), in_shard, decisions.get(number, ()), monotonic_ms()
            )
            ownership, markers, notices = self._cooperation
            shard = Transactions(
                coordinator, self._metadata, self._producer_ids, None, ownership, fences[number], markers, notices
            )
            self._transactions.add(number, shard)
            shard.begin(self._broker.partition, restored)
            gone = {row.topic for row in in_shard if self._broker.topics.find(row.topic) is None}
            if gone:
                shard.topics_deleted(gone)

        await self._build(fences, build)

    async def _build(self, fences: Mapping[int, Fence], build: Callable[[int], None]) -> None:
        """Those that still belong to this broker. If one fails, the others are built all the same."""
        failure: Exception | None = None
        for number, fence in fences.items():
            if self._is_mine(fence):
                try:
                    build(number)
                except Exception as error:
                    failure = error
                await asyncio.sleep(0)
        if failure is not None:
            raise failure


async def _by_shard(rows: Sequence[R], id_field: str) -> dict[int, list[R]]:
    found: dict[int, list[R]] = {}
    id_of = attrgetter(id_field)
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        for row in rows[start : start + _ROWS_AT_ONCE]:
            found.setdefault(shard_of(id_of(row)), []).append(row)
        await asyncio.sleep(0)
    return found


def _places(rows: Iterable[TransactionOffsetRow]) -> list[tuple[str, str, list[tuple[str, int]]]]:
    """By transactional id and group."""
    found: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for row in rows:
        found.setdefault((row.transactional_id, row.group), []).append((row.topic, row.partition))
    return [(*key, places) for key, places in found.items()]
