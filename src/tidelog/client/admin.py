"""Topics, their configs and records, and the cluster: asked for and changed."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tidelog.client.cluster import Cluster, Node, PartitionMetadata, TopicMetadata
from tidelog.client.errors import BrokerError, check
from tidelog.client.offsets import EARLIEST, LATEST, OffsetAtTime, list_offsets
from tidelog.model import Offset, TimestampMs, TopicPartition
from tidelog.wire.error_codes import ErrorCode
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
        """Nobody set it on the topic or the group itself."""
        return self.source not in ("topic", "group")


class ClusterInfo(NamedTuple):
    cluster_id: str | None
    controller_id: int
    nodes: Sequence[Node]


class Admin:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    # --- the cluster ----------------------------------------------------------------------------------------------

    async def cluster_info(self) -> ClusterInfo:
        cluster = self._cluster
        await cluster.start()
        return ClusterInfo(
            cluster.cluster_id, cluster.controller_id, [cluster.nodes[id_] for id_ in sorted(cluster.nodes)]
        )

    # --- topics ---------------------------------------------------------------------------------------------------

    async def topics(self) -> list[TopicInfo]:
        found = await self._cluster.all_topics()
        return sorted((_info(topic) for topic in found), key=lambda topic: topic.name)

    async def topic(self, name: str) -> TopicInfo:
        self._cluster.forget(name)
        return _info(await self._cluster.topic(name))

    async def partitions(self, name: str) -> list[PartitionInfo]:
        """Every partition of a topic with its first offset and the one after its last."""
        info = await self.topic(name)
        known = [TopicPartition(name, row.partition) for row in info.partitions]
        first = await self.offsets(dict.fromkeys(known, EARLIEST))
        end = await self.offsets(dict.fromkeys(known, LATEST))
        return [
            PartitionInfo(*row, start_offset=first[place].offset, end_offset=end[place].offset)
            for row in info.partitions
            for place in (TopicPartition(name, row.partition),)
        ]

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int = _BROKER_DEFAULT,
        replication_factor: int = _BROKER_DEFAULT,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Returns when the topic can be used. Numbers that are not given are the broker's defaults."""
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replication_factor,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
        )
        request = CreateTopicsRequest(topics=[topic], validate_only=validate_only, timeout_ms=self._timeout_ms)

        async def attempt() -> None:
            response: CreateTopicsResponse = await self._cluster.request(
                "CreateTopics", request, node=self._controller()
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
        async def attempt() -> None:
            request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=self._timeout_ms)
            response: DeleteTopicsResponse = await self._cluster.request(
                "DeleteTopics", request, node=self._controller()
            )
            for row in response.responses:
                check(row.error_code, f"deleting topic {name!r}", row.error_message)

        await self._cluster.retrying(attempt, repeatable=False)
        self._cluster.forget(name)

    async def add_partitions(self, name: str, total: int) -> None:
        """Grow a topic to `total` partitions. Keys then go to other partitions than before."""

        async def attempt() -> None:
            topic = CreatePartitionsTopic(name=name, count=total, assignments=None)
            request = CreatePartitionsRequest(topics=[topic], timeout_ms=self._timeout_ms)
            response: CreatePartitionsResponse = await self._cluster.request(
                "CreatePartitions", request, node=self._controller()
            )
            for row in response.results:
                check(row.error_code, f"growing topic {name!r} to {total} partitions", row.error_message)

        await self._cluster.retrying(attempt, repeatable=False)
        await self._cluster.retrying(lambda: self._see_leaders(name))

    # --- configs --------------------------------------------------------------------------------------------------

    async def topic_configs(self, name: str) -> list[ConfigEntry]:
        return await self._configs(_TOPIC, name)

    async def alter_topic_configs(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Set configs; None takes one back to its default."""
        await self._alter_configs(_TOPIC, name, changes)

    async def group_configs(self, name: str) -> list[ConfigEntry]:
        """Also of a group that is not there yet."""
        return await self._configs(_GROUP, name)

    async def alter_group_configs(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Set configs; None takes one back to its default."""
        await self._alter_configs(_GROUP, name, changes)

    async def _configs(self, kind: int, name: str) -> list[ConfigEntry]:
        request = DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)]
        )

        async def attempt() -> list[ConfigEntry]:
            response: DescribeConfigsResponse = await self._cluster.request("DescribeConfigs", request)
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
                "IncrementalAlterConfigs", request, node=self._controller()
            )
            for row in response.responses:
                check(row.error_code, f"changing the configs of {_KINDS[kind]} {name!r}", row.error_message)

        await self._cluster.retrying(attempt)

    # --- records --------------------------------------------------------------------------------------------------

    async def offsets(
        self, timestamps: Mapping[TopicPartition, TimestampMs], *, read_committed: bool = False
    ) -> dict[TopicPartition, OffsetAtTime]:
        """The first offset at or after a time; `EARLIEST` and `LATEST` of `offsets` are times too."""
        return await list_offsets(self._cluster, timestamps, read_committed=read_committed)

    async def delete_records(self, before: Mapping[TopicPartition, Offset]) -> dict[TopicPartition, Offset]:
        """Delete what stands before an offset (`HIGH_WATERMARK`: everything); the first offsets that are left."""

        async def attempt() -> dict[TopicPartition, Offset]:
            left: dict[TopicPartition, Offset] = {}
            for node, partitions in (await self._cluster.by_leader(before)).items():
                left |= await self._delete_records(node, {partition: before[partition] for partition in partitions})
            return left

        return await self._cluster.retrying(attempt)

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

    # --- whom to ask ----------------------------------------------------------------------------------------------

    def _controller(self) -> int | None:
        """The node that changes the cluster. If none is named, any will do: it passes the request on."""
        return self._cluster.controller_id if self._cluster.controller_id in self._cluster.nodes else None

    @property
    def _timeout_ms(self) -> int:
        return self._cluster.options.request_timeout_ms


def _info(topic: TopicMetadata) -> TopicInfo:
    return TopicInfo(topic.name, topic.topic_id, topic.is_internal, list(topic.partitions.values()))
