"""DescribeLogDirs (35), v1 to v4: the data directory, the sizes of its partitions, and its free space."""

from collections.abc import Iterator

from tidelog.broker.partition import Partition
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of
from tidelog.gateways.kafka.long_requests import Parts
from tidelog.wire.generated.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

_AT_ONCE = 500  # topics


def handle(request: Request, message: DescribeLogDirsRequest) -> Parts:
    return Parts("results.topics", _described(request, message))


def _described(request: Request, message: DescribeLogDirsRequest) -> Iterator[DescribeLogDirsResponse]:
    broker = broker_of(request)
    asked = None if message.topics is None else {topic.topic: set(topic.partitions) for topic in message.topics}
    place = broker.logs.place()
    names = [topic.name for topic in broker.topics if asked is None or topic.name in asked]
    for first in range(0, max(1, len(names)), _AT_ONCE):
        topics = []
        for name in names[first : first + _AT_ONCE]:
            wanted = None if asked is None else asked[name]
            partitions = [
                DescribeLogDirsPartition(index, partition.log.stats().size_bytes, 0, False)
                for index, partition in enumerate(broker.partitions_of(name))
                if (wanted is None or index in wanted) and isinstance(partition, Partition)
            ]
            if partitions:
                topics.append(DescribeLogDirsTopic(name, partitions))
        result = DescribeLogDirsResult(0, place.name, topics)
        if request.version >= 4:
            result.total_bytes, result.usable_bytes = place.total_bytes, place.usable_bytes
        yield DescribeLogDirsResponse(results=[result])
