"""Where brokers keep partitions on disk: DescribeLogDirs."""

from typing import NamedTuple

from tidelog.client.cluster import Cluster
from tidelog.client.errors import check
from tidelog.model import TopicPartition
from tidelog.wire.generated.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)


class LogPlace(NamedTuple):
    """`directory` is a path on the machine of the node."""

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
