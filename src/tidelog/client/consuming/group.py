"""Consuming as a member of a group: its share of the partitions, from the offsets that the group has committed."""

import time
from collections.abc import Sequence

from tidelog.client.cluster import Cluster
from tidelog.client.consuming.committed import Member, committed_offsets
from tidelog.client.consuming.consumer import POLL_S
from tidelog.client.consuming.fetcher import Fetched, Fetcher
from tidelog.client.consuming.membership import Membership
from tidelog.client.consuming.offsets import Start, end_offsets, start_offsets
from tidelog.client.errors import BrokerError, ClientError
from tidelog.client.options import FetchOptions, GroupOptions
from tidelog.errors import fresh
from tidelog.model import Offset, TopicPartition
from tidelog.wire.error_codes import ErrorCode

_LOST_TO_OTHERS = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS)


class GroupConsumer:
    """Joins at the first `poll`, and again whenever the group rebalances.

    Consumed offsets are committed every `auto_commit_ms`, before a rebalance and at the end. `start` applies to
    partitions without a committed offset. With `follow=False` it ends after the records that were there when its
    partitions were assigned.
    """

    def __init__(
        self,
        cluster: Cluster,
        group: str,
        topics: Sequence[str],
        *,
        start: Start = "latest",
        follow: bool = True,
        fetch: FetchOptions,
        options: GroupOptions,
    ) -> None:
        self.assigned: list[TopicPartition] = []
        self.is_closed = False
        self._cluster = cluster
        self._group = group
        self._topics = list(topics)
        self._start = start
        self._follow = follow
        self._fetch = fetch
        self._options = options
        self._membership = Membership(cluster, group, topics, options)
        self._fetcher = Fetcher(cluster, fetch)
        self._ends: dict[TopicPartition, Offset] | None = None
        self._consumed: dict[TopicPartition, Offset] = {}  # not committed yet
        self._committed_at = time.monotonic()

    @property
    def member(self) -> Member:
        """Who this is in the group, for offsets that are committed in a transaction."""
        return self._membership.member

    @property
    def is_done(self) -> bool:
        if self._ends is None or self._membership.must_join:
            return False
        positions = self._fetcher.positions
        return all(positions.get(partition, end) >= end for partition, end in self._ends.items())

    async def poll(self, timeout_s: float = POLL_S) -> list[Fetched]:
        membership = self._membership
        membership.polled()
        if membership.error is not None:
            raise fresh(membership.error)
        membership.look_for_new_partitions()
        if membership.must_join:
            await self._rebalance()
        elif (
            self._options.auto_commit_ms
            and time.monotonic() - self._committed_at > self._options.auto_commit_ms / 1000
        ):
            await self._commit_if_still_ours()
        return await self._fetcher.poll(timeout_s)

    def consumed(self, partition: TopicPartition, next_offset: Offset) -> None:
        self._consumed[partition] = next_offset

    async def commit(self) -> None:
        """Raises if the partitions were assigned to other members in the meantime."""
        offsets, self._consumed = self._consumed, {}
        self._committed_at = time.monotonic()
        try:
            await self._membership.commit(offsets)
        except ClientError:
            self._consumed = offsets | self._consumed
            raise

    async def close(self) -> None:
        self.is_closed = True
        if self._options.auto_commit_ms and not self._membership.must_join:
            await self._commit_if_still_ours()
        await self._fetcher.close()
        await self._membership.close()

    async def _rebalance(self) -> None:
        if self._options.auto_commit_ms and self._membership.member_id:
            await self._commit_if_still_ours()
        self._fetcher.assign({})
        for topic in self._topics:
            await self._cluster.topic(topic)  # a wrong name is an error, not a wait for ever
        self.assigned = sorted(await self._membership.join())
        self._consumed = {}
        read_committed = self._fetch.read_committed
        committed = await committed_offsets(self._cluster, self._group, self.assigned, stable=read_committed)
        new = [partition for partition in self.assigned if partition not in committed]
        started = await start_offsets(self._cluster, new, self._start, read_committed=read_committed)
        if not self._follow:
            self._ends = await end_offsets(self._cluster, self.assigned, read_committed=read_committed)
        self._fetcher.assign(started | {partition: row.offset for partition, row in committed.items()})

    async def _commit_if_still_ours(self) -> None:
        try:
            await self.commit()
        except BrokerError as error:
            if error.kafka_code not in _LOST_TO_OTHERS:
                raise
            self._consumed = {}  # whoever has the partitions now reads these records again
