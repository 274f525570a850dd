"""ConsumerProtocolSubscription: v0 to v3."""
# Made by tools/wiregen from messages/consumer_protocol_subscription.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Buffer, Inserts, Struct, new
from tidelog.wire.reading import array, nullable_data, nullable_string, numbers, string
from tidelog.wire.writing import (
    put_array,
    put_nullable_data,
    put_nullable_string,
    put_numbers,
    put_string,
    put_strings,
)

_i = struct.Struct(">i")


class TopicPartition(Struct):
    __slots__ = (
        "topic",
        "partitions",
    )

    def __init__(
        self,
        topic: str = "",  # 1+
        partitions: list[int] = EMPTY,  # 1+
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is EMPTY else partitions


class ConsumerProtocolSubscription(Struct):
    __slots__ = (
        "topics",
        "user_data",
        "owned_partitions",
        "generation_id",
        "rack_id",
    )

    def __init__(
        self,
        topics: list[str] = EMPTY,
        user_data: Buffer | None = None,
        owned_partitions: list[TopicPartition] = EMPTY,  # 1+
        generation_id: int = -1,  # 2+
        rack_id: str | None = None,  # 3+
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.user_data = user_data
        self.owned_partitions = [] if owned_partitions is EMPTY else owned_partitions
        self.generation_id = generation_id
        self.rack_id = rack_id


def _read_topic_partition_v1_to_v3(buf: memoryview, pos: int) -> tuple[TopicPartition, int]:
    topic_partition = new(TopicPartition)
    topic_partition.topic, pos = string(buf, pos)
    topic_partition.partitions, pos = numbers(buf, pos, "i")
    return topic_partition, pos


def _read_v0(buf: memoryview, pos: int) -> tuple[ConsumerProtocolSubscription, int]:
    message = new(ConsumerProtocolSubscription)
    message.owned_partitions = []
    message.generation_id = -1
    message.rack_id = None
    message.topics, pos = array(buf, pos, string, 2, 1)
    message.user_data, pos = nullable_data(buf, pos)
    return message, pos


def _read_v1(buf: memoryview, pos: int) -> tuple[ConsumerProtocolSubscription, int]:
    message = new(ConsumerProtocolSubscription)
    message.generation_id = -1
    message.rack_id = None
    message.topics, pos = array(buf, pos, string, 2, 1)
    message.user_data, pos = nullable_data(buf, pos)
    message.owned_partitions, pos = array(buf, pos, _read_topic_partition_v1_to_v3, 6, 2)
    return message, pos


def _read_v2(buf: memoryview, pos: int) -> tuple[ConsumerProtocolSubscription, int]:
    message = new(ConsumerProtocolSubscription)
    message.rack_id = None
    message.topics, pos = array(buf, pos, string, 2, 1)
    message.user_data, pos = nullable_data(buf, pos)
    message.owned_partitions, pos = array(buf, pos, _read_topic_partition_v1_to_v3, 6, 2)
    (message.generation_id,) = _i.unpack_from(buf, pos)
    pos += 4
    return message, pos


def _read_v3(buf: memoryview, pos: int) -> tuple[ConsumerProtocolSubscription, int]:
    message = new(ConsumerProtocolSubscription)
    message.topics, pos = array(buf, pos, string, 2, 1)
    message.user_data, pos = nullable_data(buf, pos)
    message.owned_partitions, pos = array(buf, pos, _read_topic_partition_v1_to_v3, 6, 2)
    (message.generation_id,) = _i.unpack_from(buf, pos)
    pos += 4
    message.rack_id, pos = nullable_string(buf, pos)
    return message, pos


def _write_topic_partition_v1_to_v3(out: bytearray, topic_partition: TopicPartition, _inserts: Inserts) -> None:
    put_string(out, topic_partition.topic)
    put_numbers(out, topic_partition.partitions, "i")


def _write_v0(out: bytearray, message: ConsumerProtocolSubscription, _inserts: Inserts) -> None:
    put_strings(out, message.topics)
    put_nullable_data(out, message.user_data)


def _write_v1(out: bytearray, message: ConsumerProtocolSubscription, inserts: Inserts) -> None:
    put_strings(out, message.topics)
    put_nullable_data(out, message.user_data)
    put_array(out, message.owned_partitions, _write_topic_partition_v1_to_v3, inserts)


def _write_v2(out: bytearray, message: ConsumerProtocolSubscription, inserts: Inserts) -> None:
    put_strings(out, message.topics)
    put_nullable_data(out, message.user_data)
    put_array(out, message.owned_partitions, _write_topic_partition_v1_to_v3, inserts)
    out += _i.pack(message.generation_id)


def _write_v3(out: bytearray, message: ConsumerProtocolSubscription, inserts: Inserts) -> None:
    put_strings(out, message.topics)
    put_nullable_data(out, message.user_data)
    put_array(out, message.owned_partitions, _write_topic_partition_v1_to_v3, inserts)
    out += _i.pack(message.generation_id)
    put_nullable_string(out, message.rack_id)


DATA: MessageCodec[ConsumerProtocolSubscription] = MessageCodec(
    "ConsumerProtocolSubscription",
    0,
    (
        _read_v0,
        _read_v1,
        _read_v2,
        _read_v3,
    ),
    (
        _write_v0,
        _write_v1,
        _write_v2,
        _write_v3,
    ),
    holds_views=True,
)
