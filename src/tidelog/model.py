"""Types that every layer shares.

Identifiers are distinct types, so that a producer epoch cannot be passed where a leader epoch is meant. `Offset` is
an alias: offsets are added and compared on every hot path, and a distinct type would cost a call at each sum.
"""

import re
from enum import IntEnum
from typing import NamedTuple, NewType, TypeAlias
from zlib import crc32

Offset: TypeAlias = int
TimestampMs: TypeAlias = int

LeaderEpoch = NewType("LeaderEpoch", int)
ProducerId = NewType("ProducerId", int)
ProducerEpoch = NewType("ProducerEpoch", int)

NO_LEADER_EPOCH = LeaderEpoch(-1)
FIRST_LEADER_EPOCH = LeaderEpoch(0)
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


SHARDS = 32


def shard_of(id_: str) -> int:
    """The shard of a group or a transactional id: those of a shard have the same coordinator. Must never change:
    brokers and clients of different versions have to agree on it."""
    return crc32(id_.encode()) % SHARDS


_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def is_topic_name(name: str) -> bool:
    """Kafka's rule. It also makes every topic name a safe folder name."""
    return _TOPIC_NAME.fullmatch(name) is not None and name not in (".", "..")


_TOPIC_ID_BYTES = 16


class TopicIdentity(NamedTuple):
    """A topic as its logs know it. Logs belong to the id, which is never reused; the name is for people."""

    name: str
    topic_id: bytes

    def partition(self, number: int) -> "PartitionIdentity":
        return PartitionIdentity(self, number)

    def partitions(self, count: int, first: int = 0) -> "list[PartitionIdentity]":
        """The partitions from number `first` on, of a topic that has `count` partitions."""
        return [PartitionIdentity(self, number) for number in range(first, count)]


class PartitionIdentity(NamedTuple):
    topic: TopicIdentity
    number: int

    @property
    def name(self) -> TopicPartition:
        return TopicPartition(self.topic.name, self.number)

    @property
    def is_valid(self) -> bool:
        return is_topic_name(self.topic.name) and len(self.topic.topic_id) == _TOPIC_ID_BYTES and self.number >= 0
