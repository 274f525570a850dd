"""ConsumerProtocolAssignment: v0 to v3."""
# Made by tools/wiregen from messages/consumer_protocol_assignment.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Buffer, Inserts, Struct, new
from tidelog.wire.reading import array, nullable_data, numbers, string
from tidelog.wire.writing import put_array, put_nullable_data, put_numbers, put_string


class TopicPartition(Struct):
    __slots__ = (
        "topic",
        "partitions",
    )

    def __init__(
        self,
        topic: str = "",
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY else partitions


class ConsumerProtocolAssignment(Struct):
    __slots__ = (
        "assigned_partitions",
        "user_data",
    )

    def __init__(
        self,
        assigned_partitions: list[TopicPartition] = EMPTY,
        user_data: Buffer | None = None,
    ) -> None:
        self.assigned_partitions = [] if assigned_partitions is EMPTY else assigned_partitions
        self.user_data = user_data


def _read_topic_partition_v0_to_v3(buf: memoryview, pos: int) -> tuple[TopicPartition, int]:
    topic_partition = new(TopicPartition)
    topic_partition.topic, pos = string(buf, pos)
    topic_partition.partitions, pos = numbers(buf, pos, "i")
    return topic_partition, pos


def _read_v0_to_v3(buf: memoryview, pos: int) -> tuple[ConsumerProtocolAssignment, int]:
    message = new(ConsumerProtocolAssignment)
    message.assigned_partitions, pos = array(buf, pos, _read_topic_partition_v0_to_v3, 6, 2)
    message.user_data, pos = nullable_data(buf, pos)
    return message, pos


def _write_topic_partition_v0_to_v3(out: bytearray, topic_partition: TopicPartition, _inserts: Inserts) -> None:
    put_string(out, topic_partition.topic)
    put_numbers(out, topic_partition.partitions, "i")


def _write_v0_to_v3(out: bytearray, message: ConsumerProtocolAssignment, inserts: Inserts) -> None:
    put_array(out, message.assigned_partitions, _write_topic_partition_v0_to_v3, inserts)
    put_nullable_data(out, message.user_data)


DATA: MessageCodec[ConsumerProtocolAssignment] = MessageCodec(
    "ConsumerProtocolAssignment",
    0,
    (
        _read_v0_to_v3,
        _read_v0_to_v3,
        _read_v0_to_v3,
        _read_v0_to_v3,
    ),
    (
        _write_v0_to_v3,
        _write_v0_to_v3,
        _write_v0_to_v3,
        _write_v0_to_v3,
    ),
    holds_views=True,
)
