"""ElectLeaders: API key 43, v0 to v2."""
# Made by tools/wiregen from messages/elect_leaders.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, Inserts, Struct, new
from tidelog.wire.reading import (
    array,
    compact_array,
    compact_numbers,
    compact_string,
    nullable_array,
    nullable_compact_array,
    nullable_compact_string,
    nullable_string,
    numbers,
    skip_tagged_fields,
    string,
)
from tidelog.wire.writing import (
    absent,
    put_array,
    put_compact_array,
    put_compact_numbers,
    put_compact_string,
    put_nullable_array,
    put_nullable_compact_array,
    put_nullable_compact_string,
    put_nullable_string,
    put_numbers,
    put_string,
)

_b = struct.Struct(">b")
_i = struct.Struct(">i")
_ih = struct.Struct(">ih")
_ix = struct.Struct(">ix")


class TopicPartitions(Struct):
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


class ElectLeadersRequest(Struct):
    __slots__ = (
        "election_type",
        "topic_partitions",
        "timeout_ms",
    )

    def __init__(
        self,
        election_type: int = 0,  # 1+
        topic_partitions: list[TopicPartitions] | None = EMPTY,
        timeout_ms: int = 60000,
    ) -> None:
        self.election_type = election_type
        self.topic_partitions = [] if topic_partitions is EMPTY else topic_partitions
        self.timeout_ms = timeout_ms


class PartitionResult(Struct):
    __slots__ = (
        "partition_id",
        "error_code",
        "error_message",
    )

    def __init__(
        self,
        partition_id: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.partition_id = partition_id
        self.error_code = error_code
        self.error_message = error_message


class ReplicaElectionResult(Struct):
    __slots__ = (
        "topic",
        "partition_result",
    )

    def __init__(
        self,
        topic: str = "",
        partition_result: list[PartitionResult] = EMPTY,
    ) -> None:
        self.topic = topic
        self.partition_result = [] if partition_result is EMPTY else partition_result


class ElectLeadersResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "replica_election_results",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,  # 1+
        replica_election_results: list[ReplicaElectionResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.replica_election_results = [] if replica_election_results is EMPTY else replica_election_results


def _read_request_topic_partitions_v0_to_v1(buf: bytes, pos: int) -> tuple[TopicPartitions, int]:
    topic_partitions = new(TopicPartitions)
    topic_partitions.topic, pos = string(buf, pos)
    topic_partitions.partitions, pos = numbers(buf, pos, "i")
    return topic_partitions, pos


def _read_request_topic_partitions_v2(buf: bytes, pos: int) -> tuple[TopicPartitions, int]:
    topic_partitions = new(TopicPartitions)
    topic_partitions.topic, pos = compact_string(buf, pos)
    topic_partitions.partitions, pos = compact_numbers(buf, pos, "i")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return topic_partitions, pos


def _read_request_v0(buf: bytes, pos: int) -> tuple[ElectLeadersRequest, int]:
    message = new(ElectLeadersRequest)
    message.election_type = 0
    message.topic_partitions, pos = nullable_array(buf, pos, _read_request_topic_partitions_v0_to_v1, 6, 2)
    (message.timeout_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    return message, pos


def _read_request_v1(buf: bytes, pos: int) -> tuple[ElectLeadersRequest, int]:
    message = new(ElectLeadersRequest)
    (message.election_type,) = _b.unpack_from(buf, pos)
    pos += 1
    message.topic_partitions, pos = nullable_array(buf, pos, _read_request_topic_partitions_v0_to_v1, 6, 2)
    (message.timeout_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    return message, pos


def _read_request_v2(buf: bytes, pos: int) -> tuple[ElectLeadersRequest, int]:
    message = new(ElectLeadersRequest)
    (message.election_type,) = _b.unpack_from(buf, pos)
    pos += 1
    message.topic_partitions, pos = nullable_compact_array(buf, pos, _read_request_topic_partitions_v2, 3, 2)
    (message.timeout_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_topic_partitions_v0_to_v1(
    out: bytearray, topic_partitions: TopicPartitions, _inserts: Inserts
) -> None:
    put_string(out, topic_partitions.topic)
    put_numbers(out, topic_partitions.partitions, "i")


def _write_request_topic_partitions_v2(out: bytearray, topic_partitions: TopicPartitions, _inserts: Inserts) -> None:
    put_compact_string(out, topic_partitions.topic)
    put_compact_numbers(out, topic_partitions.partitions, "i")
    out.append(0)


def _write_request_v0(out: bytearray, message: ElectLeadersRequest, inserts: Inserts) -> None:
    if message.election_type:
        raise absent("election_type")
    put_nullable_array(out, message.topic_partitions, _write_request_topic_partitions_v0_to_v1, inserts)
    out += _i.pack(message.timeout_ms)


def _write_request_v1(out: bytearray, message: ElectLeadersRequest, inserts: Inserts) -> None:
    out += _b.pack(message.election_type)
    put_nullable_array(out, message.topic_partitions, _write_request_topic_partitions_v0_to_v1, inserts)
    out += _i.pack(message.timeout_ms)


def _write_request_v2(out: bytearray, message: ElectLeadersRequest, inserts: Inserts) -> None:
    out += _b.pack(message.election_type)
    put_nullable_compact_array(out, message.topic_partitions, _write_request_topic_partitions_v2, inserts)
    out += _ix.pack(message.timeout_ms)


def _read_response_partition_result_v0_to_v1(buf: bytes, pos: int) -> tuple[PartitionResult, int]:
    partition_result = new(PartitionResult)
    partition_result.partition_id, partition_result.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    partition_result.error_message, pos = nullable_string(buf, pos)
    return partition_result, pos


def _read_response_partition_result_v2(buf: bytes, pos: int) -> tuple[PartitionResult, int]:
    partition_result = new(PartitionResult)
    partition_result.partition_id, partition_result.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    partition_result.error_message, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return partition_result, pos


def _read_response_replica_election_result_v0_to_v1(buf: bytes, pos: int) -> tuple[ReplicaElectionResult, int]:
    replica_election_result = new(ReplicaElectionResult)
    replica_election_result.topic, pos = string(buf, pos)
    replica_election_result.partition_result, pos = array(buf, pos, _read_response_partition_result_v0_to_v1, 8)
    return replica_election_result, pos


def _read_response_replica_election_result_v2(buf: bytes, pos: int) -> tuple[ReplicaElectionResult, int]:
    replica_election_result = new(ReplicaElectionResult)
    replica_election_result.topic, pos = compact_string(buf, pos)
    replica_election_result.partition_result, pos = compact_array(buf, pos, _read_response_partition_result_v2, 8)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return replica_election_result, pos


def _read_response_v0(buf: bytes, pos: int) -> tuple[ElectLeadersResponse, int]:
    message = new(ElectLeadersResponse)
    message.error_code = 0
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.replica_election_results, pos = array(buf, pos, _read_response_replica_election_result_v0_to_v1, 6)
    return message, pos


def _read_response_v1(buf: bytes, pos: int) -> tuple[ElectLeadersResponse, int]:
    message = new(ElectLeadersResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.replica_election_results, pos = array(buf, pos, _read_response_replica_election_result_v0_to_v1, 6)
    return message, pos


def _read_response_v2(buf: bytes, pos: int) -> tuple[ElectLeadersResponse, int]:
    message = new(ElectLeadersResponse)
    message.throttle_time_ms, message.error_code = _ih.unpack_from(buf, pos)
    pos += 6
    message.replica_election_results, pos = compact_array(buf, pos, _read_response_replica_election_result_v2, 3)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_partition_result_v0_to_v1(
    out: bytearray, partition_result: PartitionResult, _inserts: Inserts
) -> None:
    out += _ih.pack(partition_result.partition_id, partition_result.error_code)
    put_nullable_string(out, partition_result.error_message)


def _write_response_partition_result_v2(out: bytearray, partition_result: PartitionResult, _inserts: Inserts) -> None:
    out += _ih.pack(partition_result.partition_id, partition_result.error_code)
    put_nullable_compact_string(out, partition_result.error_message)
    out.append(0)


def _write_response_replica_election_result_v0_to_v1(
    out: bytearray, replica_election_result: ReplicaElectionResult, inserts: Inserts
) -> None:
    put_string(out, replica_election_result.topic)
    put_array(out, replica_election_result.partition_result, _write_response_partition_result_v0_to_v1, inserts)


def _write_response_replica_election_result_v2(
    out: bytearray, replica_election_result: ReplicaElectionResult, inserts: Inserts
) -> None:
    put_compact_string(out, replica_election_result.topic)
    put_compact_array(out, replica_election_result.partition_result, _write_response_partition_result_v2, inserts)
    out.append(0)


def _write_response_v0(out: bytearray, message: ElectLeadersResponse, inserts: Inserts) -> None:
    if message.error_code:
        raise absent("error_code")
    out += _i.pack(message.throttle_time_ms)
    put_array(out, message.replica_election_results, _write_response_replica_election_result_v0_to_v1, inserts)


def _write_response_v1(out: bytearray, message: ElectLeadersResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_array(out, message.replica_election_results, _write_response_replica_election_result_v0_to_v1, inserts)


def _write_response_v2(out: bytearray, message: ElectLeadersResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    put_compact_array(out, message.replica_election_results, _write_response_replica_election_result_v2, inserts)
    out.append(0)


REQUEST: MessageCodec[ElectLeadersRequest] = MessageCodec(
    "ElectLeadersRequest",
    0,
    (
        _read_request_v0,
        _read_request_v1,
        _read_request_v2,
    ),
    (
        _write_request_v0,
        _write_request_v1,
        _write_request_v2,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[ElectLeadersResponse] = MessageCodec(
    "ElectLeadersResponse",
    0,
    (
        _read_response_v0,
        _read_response_v1,
        _read_response_v2,
    ),
    (
        _write_response_v0,
        _write_response_v1,
        _write_response_v2,
    ),
    holds_views=False,
)
