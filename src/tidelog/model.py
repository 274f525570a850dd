"""The small vocabulary that every layer shares.

Identifiers are distinct types, so that a producer epoch cannot be passed where a leader epoch is meant. `Offset` is
an alias: offsets are added and compared on every hot path, and a distinct type would cost a call at each sum.
"""

import re
from enum import IntEnum
from typing import NamedTuple, NewType, TypeAlias

Offset: TypeAlias = int
TimestampMs: TypeAlias = int

LeaderEpoch = NewType("LeaderEpoch", int)
ProducerId = NewType("ProducerId", int)
ProducerEpoch = NewType("ProducerEpoch", int)

NO_LEADER_EPOCH = LeaderEpoch(-1)
NO_PRODUCER_ID = ProducerId(-1)
NO_PRODUCER_EPOCH = ProducerEpoch(-1)
NO_SEQUENCE = -1
NO_TIMESTAMP: TimestampMs = -1


class TimestampType(IntEnum):
    """Who set a record's timestamp; the value is the bit in the batch's attributes."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def is_topic_name(name: str) -> bool:
    """Kafka's rule. It also makes every topic name a safe folder name."""
    return _TOPIC_NAME.fullmatch(name) is not None and name not in (".", "..")
