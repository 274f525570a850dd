"""AlterReplicaLogDirs (34), v1 to v2: all partitions are in one directory. Only a request for that directory
succeeds."""

import os

from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def handle(request: Request, message: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    broker = broker_of(request)
    here = broker.logs.place().name

    def code(path: str, topic: str, index: int) -> int:
        if here not in (path, os.path.normpath(path)):  # it may be the URL of an object store
            return ErrorCode.LOG_DIR_NOT_FOUND
        known = broker.topics.find(topic)
        there = known is not None and 0 <= index < known.partitions
        return 0 if there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic.name,
                [
                    AlterReplicaLogDirPartitionResult(index, code(directory.path, topic.name, index))
                    for index in topic.partitions
                ],
            )
            for directory in message.dirs
            for topic in directory.topics
        ]
    )
