"""A member of a group, by the classic protocol.

    outside ──join──► joined, generation g ──heartbeats──► joined
                        │  REBALANCE_IN_PROGRESS: `must_join`, still a member; join again
                        │  UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION: `must_join`, the group has removed this member
                        └──leave──► outside

Joining waits until all members have joined. The first of them, the leader, assigns the partitions, and syncing gives
every member its share. Heartbeats and joins have a lane of their own (see `cluster`).
"""

import asyncio
import time
from collections.abc import Iterable, Mapping

from tidelog.client.cluster import Cluster
from tidelog.client.consuming.assignor import (
    PROTOCOL_TYPE,
    RANGE,
    assign_ranges,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from tidelog.client.consuming.committed import NO_GENERATION, Member, commit_offsets
from tidelog.client.coordinator import Coordinator
from tidelog.client.deadline import Backoff
from tidelog.client.errors import BrokerError, ClientError, is_unknown_topic
from tidelog.client.options import GroupOptions
from tidelog.errors import fresh
from tidelog.model import Offset, TopicPartition
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from tidelog.wire.generated.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from tidelog.wire.generated.leave_group import LeaveGroupRequest, MemberIdentity
from tidelog.wire.generated.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

_JOIN_SLACK_MS = 5_000  # a join is answered when the rebalance timeout has passed, at the latest
_OUT_OF_THE_GROUP = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)


class Membership:
    def __init__(self, cluster: Cluster, group: str, topics: Iterable[str], options: GroupOptions) -> None:
        self.must_join = True
        self.generation = NO_GENERATION
        self.member_id = ""
        self.error: ClientError | None = None  # the error that ended the heartbeats
        self._cluster = cluster
        self._group = group
        self._topics = sorted(set(topics))
        self._options = options
        self._coordinator = Coordinator(cluster, group, lane=self)
        self._heartbeats: asyncio.Task[None] | None = None
        self._is_joining = False
        self._last_poll = time.monotonic()
        self._shared_out: dict[str, int] = {}  # partition counts that we, as the leader, have shared out

    @property
    def member(self) -> Member:
        return Member(self._group, self.generation, self.member_id, self._options.instance_id)

    def polled(self) -> None:
        """The application has asked for records, so it is not stuck."""
        self._last_poll = time.monotonic()

    def look_for_new_partitions(self) -> None:
        """The leader joins again when its topics have grown, so that new partitions are assigned."""
        for topic, count in self._shared_out.items():
            known = self._cluster.cached_topic(topic)
            if known is not None and len(known.partitions) != count:
                self.must_join = True

    async def join(self) -> list[TopicPartition]:
        """Join, or join again; returns our partitions. Retries retriable errors until the deadline."""
        backoff = Backoff(self._cluster.options.retry_backoff_ms, self._cluster.options.retry_backoff_max_ms)
        deadline = self._cluster.deadline()
        while True:
            try:
                self._is_joining = True
                partitions = await self._join_and_sync()
            except ClientError as error:
                if isinstance(error, BrokerError) and self._is_part_of_joining(error):
                    continue
                pause_s = backoff.next_s()
                if not error.retriable or is_unknown_topic(error) or deadline.left_s() < pause_s:
                    raise
                await asyncio.sleep(pause_s)
                continue
            finally:
                self._is_joining = False
            self.must_join = False
            self._keep_alive()
            return partitions

    def _is_part_of_joining(self, error: BrokerError) -> bool:
        if error.kafka_code in _OUT_OF_THE_GROUP:
            self._forget_ourselves()
            return True
        return error.kafka_code in (ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.REBALANCE_IN_PROGRESS)

    async def _join_and_sync(self) -> list[TopicPartition]:
        options = self._options
        tried = f"joining group {self._group!r}"
        request = JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=options.session_timeout_ms,
            rebalance_timeout_ms=options.max_poll_ms,
            member_id=self.member_id,
            group_instance_id=options.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[JoinGroupRequestProtocol(name=RANGE, metadata=encode_subscription(self._topics))],
        )
        timeout_ms = options.max_poll_ms + _JOIN_SLACK_MS
        joined: JoinGroupResponse = await self._coordinator.request("JoinGroup", request, timeout_ms=timeout_ms)
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = joined.member_id
        self._coordinator.check(joined.error_code, tried)
        self.member_id, self.generation = joined.member_id, joined.generation_id
        assignments: list[SyncGroupRequestAssignment] = []
        self._shared_out = {}
        if joined.leader == joined.member_id and not joined.skip_assignment:
            assignments = await self._share_out(joined)
        sync = SyncGroupRequest(
            group_id=self._group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=options.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=joined.protocol_name,
            assignments=assignments,
        )
        synced: SyncGroupResponse = await self._coordinator.request("SyncGroup", sync, timeout_ms=timeout_ms)
        self._coordinator.check(synced.error_code, tried)
        return decode_assignment(synced.assignment)

    async def _share_out(self, joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        subscriptions = {member.member_id: decode_subscription(member.metadata) for member in joined.members}
        for topic in {topic for topics in subscriptions.values() for topic in topics}:
            try:
                self._shared_out[topic] = len((await self._cluster.topic(topic)).partitions)
            except BrokerError as error:
                if not is_unknown_topic(error):
                    raise
                self._shared_out[topic] = 0  # another member subscribes to it; that is not our error
        shares = assign_ranges(subscriptions, self._shared_out)
        return [
            SyncGroupRequestAssignment(member_id=member, assignment=encode_assignment(partitions))
            for member, partitions in shares.items()
        ]

    # --- staying --------------------------------------------------------------------------------------------------

    def _keep_alive(self) -> None:
        if self._heartbeats is None or self._heartbeats.done():
            self._heartbeats = asyncio.create_task(self._beat(), name=f"tidelog heartbeats of {self._group}")

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._options.heartbeat_ms / 1000)
            if (time.monotonic() - self._last_poll) * 1000 > self._options.max_poll_ms:
                await self._leave()  # the application is stuck: let other members have the partitions
                return
            if self._is_joining:
                continue  # a join in progress keeps us alive, and a heartbeat would wait behind it
            generation = self.generation
            try:
                await self._heartbeat()
            except ClientError as error:
                code = error.kafka_code if isinstance(error, BrokerError) else None
                if code == ErrorCode.REBALANCE_IN_PROGRESS or code in _OUT_OF_THE_GROUP:
                    if generation != self.generation:
                        continue  # we have joined again meanwhile
                    self.must_join = True
                    if code in _OUT_OF_THE_GROUP:
                        self._forget_ourselves()
                elif not error.retriable:
                    self.error = fresh(error)
                    return

    async def _heartbeat(self) -> None:
        request = HeartbeatRequest(
            group_id=self._group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self._options.instance_id,
        )
        timeout_ms = self._options.session_timeout_ms
        response: HeartbeatResponse = await self._coordinator.request("Heartbeat", request, timeout_ms=timeout_ms)
        self._coordinator.check(response.error_code, f"staying in group {self._group!r}")

    def _forget_ourselves(self) -> None:
        self.member_id, self.generation = "", NO_GENERATION

    async def commit(self, offsets: Mapping[TopicPartition, Offset]) -> None:
        """Commit offsets as this member; raises an error that is not retriable if the group has removed it."""
        await commit_offsets(self._cluster, self._coordinator, self.member, offsets)

    # --- leaving --------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Leave, so that the others need not wait for the session timeout. A static member stays."""
        if self._heartbeats is not None:
            self._heartbeats.cancel()
            await asyncio.gather(self._heartbeats, return_exceptions=True)
        if self._options.instance_id is None:
            await self._leave()
        await self._cluster.close_lane(self)

    async def _leave(self) -> None:
        member_id = self.member_id
        self._forget_ourselves()
        self.must_join = True
        if not member_id:
            return
        try:
            request = LeaveGroupRequest(group_id=self._group, members=[MemberIdentity(member_id=member_id)])
            await self._coordinator.request("LeaveGroup", request)
        except ClientError:
            pass  # then the session times out
