"""DescribeLogDirs (35), v1 to v4: where partitions are kept, how large they are, and how much room is left."""

import shutil

from tidelog.broker.partition import Partition
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of
from tidelog.wire.generated.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def handle(request: Request, message: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    broker = broker_of(request)
    asked = None if message.topics is None else {topic.topic: set(topic.partitions) for topic in message.topics}
    topics = []
    for topic in broker.topics:
        wanted = set(range(topic.partitions)) if asked is None else asked.get(topic.name, set())
        partitions = [
            DescribeLogDirsPartition(index, partition.log.stats().size_bytes, 0, False)
            for index, partition in enumerate(broker.partitions_of(topic.name))
            if index in wanted and isinstance(partition, Partition)
        ]
        if partitions:
            topics.append(DescribeLogDirsTopic(topic.name, partitions))
    room = shutil.disk_usage(broker.logs.directory)
    result = DescribeLogDirsResult(0, broker.logs.directory, topics)
    if request.version >= 4:
        result.total_bytes, result.usable_bytes = room.total, room.free
    return DescribeLogDirsResponse(results=[result])
