"""Administration of topics, their configs and records, and of the cluster."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tidelog.client.admin.log_dirs import LogPlace, RecordsLocation, locate_records, log_places
from tidelog.client.cluster import NO_NODE, BrokerNode, Cluster, PartitionMetadata, TopicMetadata
from tidelog.client.consuming.offsets import EARLIEST, LATEST, OffsetAtTime, list_offsets
from tidelog.client.deadline import Backoff
from tidelog.client.errors import BrokerError, IncompatibleBroker, RequestTimedOut, check
from tidelog.model import Offset, TimestampMs, TopicPartition
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from tidelog.wire.generated.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from tidelog.wire.generated.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tidelog.wire.generated.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from tidelog.wire.generated.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from tidelog.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from tidelog.wire.generated.describe_memory import DescribeMemoryRequest, DescribeMemoryResponse
from tidelog.wire.generated.drain_brokers import DrainableBroker, DrainBrokersRequest, DrainBrokersResponse
from tidelog.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

_BROKER_DEFAULT = -1
_TOPIC, _GROUP = 2, 32
_KINDS = {_TOPIC: "topic", _GROUP: "group"}
_SET, _DELETE = 0, 1
_SOURCES = {1: "topic", 2: "broker", 3: "broker default", 4: "static", 5: "default", 8: "group"}
HIGH_WATERMARK: Offset = -1


class PartitionInfo(NamedTuple):
    partition: int
    leader: int
    leader_epoch: int
    replicas: Sequence[int]
    in_sync: Sequence[int]
    start_offset: Offset
    end_offset: Offset


class TopicInfo(NamedTuple):
    name: str
    topic_id: bytes
    is_internal: bool
    partitions: Sequence[PartitionMetadata]


class ConfigEntry(NamedTuple):
    name: str
    value: str | None
    source: str
    read_only: bool
    sensitive: bool

    @property
    def is_default(self) -> bool:
        """True unless the value was set on the topic or the group itself."""
        return self.source not in ("topic", "group")


class ClusterInfo(NamedTuple):
    cluster_id: str | None
    controller_id: int
    nodes: Sequence[BrokerNode]


class MemoryPartInfo(NamedTuple):
    name: str
    setting: str
    limit_bytes: int
    used_bytes: int


class MemoryInfo(NamedTuple):
    """The memory budget of a broker, its parts and their use."""

    budget_bytes: int
    resident_bytes: int
    parts: Sequence[MemoryPartInfo]


class Admin:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    # --- the cluster ----------------------------------------------------------------------------------------------

    async def cluster_info(self) -> ClusterInfo:
        """The id of the cluster, its controller and its brokers."""
        cluster = self._cluster
        await cluster.start()
        return ClusterInfo(
            cluster.cluster_id, cluster.controller_id, [cluster.nodes[id_] for id_ in sorted(cluster.nodes)]
        )

    async def memory(self, node: int) -> MemoryInfo | None:
        """The memory budget of one broker and its use; None if the broker does not report it."""
        try:
            response: DescribeMemoryResponse = await self._cluster.request(
                "DescribeMemory", DescribeMemoryRequest(), node=node
            )
        except IncompatibleBroker:
            return None
        parts = [
            MemoryPartInfo(each.name, each.setting, each.limit_bytes, each.used_bytes) for each in response.parts
        ]
        return MemoryInfo(response.budget_bytes, response.resident_bytes, parts)

    async def move_leader(self, partition: TopicPartition, node: int) -> None:
        """Let another broker lead a partition, and wait until it does. Raises RequestTimedOut if it does not within
        `timeout_ms`."""
        wanted = ReassignableTopic(partition.topic, [ReassignablePartition(partition.partition, [node])])
        request = AlterPartitionReassignmentsRequest(timeout_ms=self._timeout_ms, topics=[wanted])
        tried = f"moving {partition} to broker {node}"

        async def attempt() -> None:
            response: AlterPartitionReassignmentsResponse = await self._cluster.request(
                "AlterPartitionReassignments", request, node=await self._cluster.controller()
            )
            check(response.error_code, tried, response.error_message)
            for topic in response.responses:
                for row in topic.partitions:
                    check(row.error_code, tried, row.error_message)

        await self._cluster.retrying(attempt)
        deadline = self._cluster.deadline()
        backoff = Backoff(self._cluster.options.retry_backoff_ms, self._cluster.options.retry_backoff_max_ms)
        while (leader := await self._leader(partition)) != node:
            if deadline.passed:
                now = f"broker {leader} leads it" if leader != NO_NODE else "it has no leader"
                raise RequestTimedOut(f"{tried}: not done within {self._cluster.options.timeout_ms} ms; {now}")
            await asyncio.sleep(backoff.next_s())

    async def drain_broker(self, node: int, is_drained: bool) -> None:
        """Let a broker give its partitions to others and get no new ones, or take that back. Does not wait until the
        broker leads nothing."""
        await self._drain([DrainableBroker(node, is_drained)], f"draining broker {node}")

    async def drained_brokers(self) -> list[int]:
        """The brokers that are drained, also those that are not up."""
        try:
            return await self._drain([], "listing drained brokers")
        except IncompatibleBroker:
            return []

    async def _drain(self, wanted: Sequence[DrainableBroker], tried: str) -> list[int]:
        async def attempt() -> list[int]:
            response: DrainBrokersResponse = await self._cluster.request(
                "DrainBrokers", DrainBrokersRequest(list(wanted))
            )
            check(response.error_code, tried, response.error_message)
            return response.drained

        return await self._cluster.retrying(attempt)

    async def _leader(self, partition: TopicPartition) -> int:
        row = next((row for row in (await self.topic(partition.topic)).partitions if row[0] == partition[1]), None)
        return NO_NODE if row is None else row.leader

    # --- topics ---------------------------------------------------------------------------------------------------

    async def topics(self) -> list[TopicInfo]:
        """Every topic, sorted by name."""
        found = await self._cluster.all_topics()
        return sorted((_info(topic) for topic in found), key=lambda topic: topic.name)

    async def topic(self, name: str) -> TopicInfo:
        """One topic, asked for anew."""
        self._cluster.forget(name)
        return _info(await self._cluster.topic(name))

    async def partitions(self, name: str) -> list[PartitionInfo]:
        """Every partition of a topic, with its first offset and its end offset."""
        info = await self.topic(name)
        known = [TopicPartition(name, row.partition) for row in info.partitions]
        first = await self.offsets(dict.fromkeys(known, EARLIEST))
        end = await self.offsets(dict.fromkeys(known, LATEST))
        return [
            PartitionInfo(*row, start_offset=first[place].offset, end_offset=end[place].offset)
            for row in info.partitions
            for place in (TopicPartition(name, row.partition),)
        ]

    async def partition_count(self, topic: str, *, create: bool = False) -> int:
        """With `create` the broker may create the topic, if it is configured to."""
        return len((await self._cluster.topic(topic, create=create)).partitions)

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int = _BROKER_DEFAULT,
        replication_factor: int = _BROKER_DEFAULT,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Create a topic, and wait until every partition has a leader. Without `partitions` and
        `replication_factor` the broker's defaults apply."""
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replication_factor,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
        )
        request = CreateTopicsRequest(topics=[topic], validate_only=validate_only, timeout_ms=self._timeout_ms)

        async def attempt() -> None:
            response: CreateTopicsResponse = await self._cluster.request(
                "CreateTopics", request, node=await self._cluster.controller()
            )
            for row in response.topics:
                check(row.error_code, f"creating topic {name!r}", row.error_message)

        await self._cluster.retrying(attempt, repeatable=False)
        if not validate_only:
            await self._cluster.retrying(lambda: self._see_leaders(name))

    async def _see_leaders(self, name: str) -> None:
        self._cluster.forget(name)
        topic = await self._cluster.ask_topic(name)
        if len(topic.led) != len(topic.partitions):
            raise BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, f"waiting for topic {name!r}")

    async def delete_topic(self, name: str) -> None:
        """Delete a topic and all its records."""

        async def attempt() -> None:
            request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=self._timeout_ms)
            response: DeleteTopicsResponse = await self._cluster.request(
                "DeleteTopics", request, node=await self._cluster.controller()
            )
            for row in response.responses:
                check(row.error_code, f"deleting topic {name!r}", row.error_message)

        await self._cluster.retrying(attempt, repeatable=False)
        self._cluster.forget(name)

    async def add_partitions(self, name: str, total: int) -> None:
        """Grow a topic to `total` partitions. Most keys then go to other partitions than before."""

        async def attempt() -> None:
            topic = CreatePartitionsTopic(name=name, count=total, assignments=None)
            request = CreatePartitionsRequest(topics=[topic], timeout_ms=self._timeout_ms)
            response: CreatePartitionsResponse = await self._cluster.request(
                "CreatePartitions", request, node=await self._cluster.controller()
            )
            for row in response.results:
                check(row.error_code, f"growing topic {name!r} to {total} partitions", row.error_message)

        await self._cluster.retrying(attempt, repeatable=False)
        await self._cluster.retrying(lambda: self._see_leaders(name))

    # --- configs --------------------------------------------------------------------------------------------------

    async def topic_configs(self, name: str) -> list[ConfigEntry]:
        """All configs of a topic, and where each value comes from."""
        return await self._configs(_TOPIC, name)

    async def alter_topic_configs(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Set configs; the value None restores the default."""
        await self._alter_configs(_TOPIC, name, changes)

    async def group_configs(self, name: str) -> list[ConfigEntry]:
        """All configs of a group, which need not exist yet."""
        return await self._configs(_GROUP, name)

    async def alter_group_configs(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Set configs; the value None restores the default."""
        await self._alter_configs(_GROUP, name, changes)

    async def _configs(self, kind: int, name: str) -> list[ConfigEntry]:
        request = DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)]
        )

        async def attempt() -> list[ConfigEntry]:
            # The controller knows its own changes at once, other brokers a moment later.
            response: DescribeConfigsResponse = await self._cluster.request(
                "DescribeConfigs", request, node=await self._cluster.controller()
            )
            entries = []
            for result in response.results:
                check(result.error_code, f"reading the configs of {_KINDS[kind]} {name!r}", result.error_message)
                for row in result.configs:
                    source = _SOURCES.get(row.config_source, "unknown")
                    entries.append(ConfigEntry(row.name, row.value, source, row.read_only, row.is_sensitive))
            return sorted(entries)

        return await self._cluster.retrying(attempt)

    async def _alter_configs(self, kind: int, name: str, changes: Mapping[str, str | None]) -> None:
        configs = [
            AlterableConfig(name=key, config_operation=_DELETE if value is None else _SET, value=value)
            for key, value in changes.items()
        ]
        resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
        request = IncrementalAlterConfigsRequest(resources=[resource])

        async def attempt() -> None:
            response: IncrementalAlterConfigsResponse = await self._cluster.request(
                "IncrementalAlterConfigs", request, node=await self._cluster.controller()
            )
            for row in response.responses:
                check(row.error_code, f"changing the configs of {_KINDS[kind]} {name!r}", row.error_message)

        await self._cluster.retrying(attempt)

    # --- records --------------------------------------------------------------------------------------------------

    async def offsets(
        self, timestamps: Mapping[TopicPartition, TimestampMs], *, read_committed: bool = False
    ) -> dict[TopicPartition, OffsetAtTime]:
        """For each partition the first offset at or after a timestamp; `EARLIEST` and `LATEST` (of `tidelog.client`)
        are accepted as timestamps."""
        return await list_offsets(self._cluster, timestamps, read_committed=read_committed)

    async def delete_records(self, before: Mapping[TopicPartition, Offset]) -> dict[TopicPartition, Offset]:
        """Delete all records before an offset (-1: all records); returns the new first offsets."""

        async def attempt() -> dict[TopicPartition, Offset]:
            left: dict[TopicPartition, Offset] = {}
            for node, partitions in (await self._cluster.by_leader(before)).items():
                left |= await self._delete_records(node, {partition: before[partition] for partition in partitions})
            return left

        return await self._cluster.retrying(attempt)

    async def log_places(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, LogPlace]:
        """Where the leaders of these partitions keep them on disk."""
        return await log_places(self._cluster, list(partitions))

    async def locate_records(
        self, partition: TopicPartition, start: Offset, end: Offset, *, topic_id: bytes, read_committed: bool = False
    ) -> RecordsLocation:
        """Which objects of a cluster's store hold the records from `start` up to `end`. An answer may end before
        that: ask again from its `end_offset` on. With `read_committed` it ends at the last stable offset."""
        return await locate_records(self._cluster, partition, start, end, topic_id, read_committed)

    async def _delete_records(
        self, node: int, before: Mapping[TopicPartition, Offset]
    ) -> dict[TopicPartition, Offset]:
        topics: dict[str, DeleteRecordsTopic] = {}
        for (topic, number), offset in before.items():
            row = topics.setdefault(topic, DeleteRecordsTopic(name=topic))
            row.partitions.append(DeleteRecordsPartition(partition_index=number, offset=offset))
        request = DeleteRecordsRequest(topics=list(topics.values()), timeout_ms=self._timeout_ms)
        response: DeleteRecordsResponse = await self._cluster.request("DeleteRecords", request, node=node)
        left = {}
        for result in response.topics:
            for answer in result.partitions:
                partition = TopicPartition(result.name, answer.partition_index)
                check(answer.error_code, f"deleting records of {partition}")
                left[partition] = answer.low_watermark
        return left

    @property
    def _timeout_ms(self) -> int:
        return self._cluster.options.request_timeout_ms


def _info(topic: TopicMetadata) -> TopicInfo:
    return TopicInfo(topic.name, topic.topic_id, topic.is_internal, list(topic.partitions.values()))
