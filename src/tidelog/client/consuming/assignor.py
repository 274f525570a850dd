"""How partitions are assigned to the members of a group: Kafka's `range` assignor, and its wire format.

The broker passes these bytes on unread; clients in all languages must agree on them.
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from tidelog.model import TopicPartition
from tidelog.wire.embedded import decode_embedded, encode_embedded
from tidelog.wire.generated import consumer_protocol_assignment as assignment_format
from tidelog.wire.generated import consumer_protocol_subscription as subscription_format
from tidelog.wire.primitives import Buffer

PROTOCOL_TYPE = "consumer"
RANGE = "range"
_VERSION = 0  # every client reads it; `range` needs nothing that came later

Subscriptions: TypeAlias = Mapping[str, Iterable[str]]
"""The topics of each member."""


def assign_ranges(
    subscriptions: Subscriptions, partition_counts: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    """For each topic, consecutive partitions go to each member in order, equally many; the first members get one
    more.

    So partitions of the same number in topics of the same size go to the same member, and joins stay local.
    """
    assignments: dict[str, list[TopicPartition]] = {member: [] for member in subscriptions}
    members_of: dict[str, list[str]] = {}
    for member in sorted(subscriptions):
        for topic in dict.fromkeys(subscriptions[member]):
            members_of.setdefault(topic, []).append(member)
    for topic in sorted(members_of):
        members, count = members_of[topic], partition_counts.get(topic, 0)
        share, extra = divmod(count, len(members))
        start = 0
        for place, member in enumerate(members):
            end = start + share + (place < extra)
            assignments[member] += (TopicPartition(topic, number) for number in range(start, end))
            start = end
    return assignments


def encode_subscription(topics: Iterable[str]) -> bytes:
    message = subscription_format.ConsumerProtocolSubscription(topics=sorted(topics))
    return encode_embedded(subscription_format.DATA, message, _VERSION)


def decode_subscription(data: Buffer) -> list[str]:
    return decode_embedded(subscription_format.DATA, data).topics


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    topics: dict[str, assignment_format.TopicPartition] = {}
    for topic, number in partitions:
        row = topics.setdefault(topic, assignment_format.TopicPartition(topic=topic))
        row.partitions.append(number)
    message = assignment_format.ConsumerProtocolAssignment(assigned_partitions=list(topics.values()))
    return encode_embedded(assignment_format.DATA, message, _VERSION)


def decode_assignment(data: Buffer) -> list[TopicPartition]:
    """A member without partitions may be given no bytes at all."""
    if not data:
        return []
    message = decode_embedded(assignment_format.DATA, data)
    return [TopicPartition(row.topic, number) for row in message.assigned_partitions for number in row.partitions]
