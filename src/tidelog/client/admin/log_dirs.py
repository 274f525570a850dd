"""Where brokers keep partitions: DescribeLogDirs, and LocateRecords for what is in an object store."""

from typing import NamedTuple

from tidelog.client.cluster import Cluster
from tidelog.client.errors import check
from tidelog.model import Offset, ProducerId, TopicPartition
from tidelog.wire.generated.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from tidelog.wire.generated.locate_records import LocateRecordsRequest, LocateRecordsResponse


class LogPlace(NamedTuple):
    """`directory` is a path on the machine of the node; in a cluster, the URL of the object store."""

    node: int
    directory: str
    size_bytes: int


async def log_places(cluster: Cluster, partitions: list[TopicPartition]) -> dict[TopicPartition, LogPlace]:
    """For each partition the place where its leader keeps it."""

    async def attempt() -> dict[TopicPartition, LogPlace]:
        found = {}
        for node, led in (await cluster.by_leader(partitions)).items():
            topics: dict[str, list[int]] = {}
            for name, index in led:
                topics.setdefault(name, []).append(index)
            request = DescribeLogDirsRequest(
                topics=[DescribableLogDirTopic(topic=name, partitions=rows) for name, rows in topics.items()]
            )
            response: DescribeLogDirsResponse = await cluster.request("DescribeLogDirs", request, node=node)
            for result in response.results:
                check(result.error_code, f"asking node {node} for its directories")
                for topic in result.topics:
                    for row in topic.partitions:
                        place = LogPlace(node, result.log_dir, row.partition_size)
                        found[TopicPartition(topic.name, row.partition_index)] = place
        return found

    return await cluster.retrying(attempt)


class RecordsPiece(NamedTuple):
    """The batches from `base_offset` to `last_offset`, in a byte range of an object."""

    base_offset: Offset
    last_offset: Offset
    key: str
    position: int
    size: int


class AbortedRange(NamedTuple):
    """A transaction whose records, from the first one up to its marker at `last_offset`, must be ignored."""

    producer_id: ProducerId
    first_offset: Offset
    last_offset: Offset


class RecordsLocation(NamedTuple):
    """Everything before `end_offset` is in the pieces; the leader has everything from `tail_offset` on in memory."""

    pieces: list[RecordsPiece]
    end_offset: Offset
    tail_offset: Offset
    aborted: list[AbortedRange]


async def locate_records(
    cluster: Cluster, partition: TopicPartition, start: Offset, end: Offset, topic_id: bytes, read_committed: bool
) -> RecordsLocation:
    async def attempt() -> RecordsLocation:
        leader = await cluster.leader(partition)
        request = LocateRecordsRequest(
            partition.topic, topic_id, partition.partition, start, end, 1 if read_committed else 0
        )
        response: LocateRecordsResponse = await cluster.request("LocateRecords", request, node=leader)
        check(response.error_code, f"locating the records of {partition}", response.error_message)
        return RecordsLocation(
            [
                RecordsPiece(row.base_offset, row.last_offset, row.object_key, row.position, row.size)
                for row in response.pieces
            ],
            response.end_offset,
            response.tail_offset,
            [
                AbortedRange(ProducerId(row.producer_id), row.first_offset, row.last_offset)
                for row in response.aborted_transactions
            ],
        )

    return await cluster.retrying(attempt)
