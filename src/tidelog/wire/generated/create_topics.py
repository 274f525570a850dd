"""CreateTopics: API key 19, v2 to v7."""
# Made by tools/wiregen from messages/create_topics.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, NO_UUID, Inserts, Struct, new
from tidelog.wire.reading import (
    array,
    compact_array,
    compact_numbers,
    compact_string,
    nullable_compact_array,
    nullable_compact_string,
    nullable_string,
    numbers,
    skip_tagged_fields,
    string,
    tag_count,
    tagged_field,
    wrong_tagged_size,
)
from tidelog.wire.writing import (
    put_array,
    put_compact_array,
    put_compact_numbers,
    put_compact_string,
    put_nullable_compact_array,
    put_nullable_compact_string,
    put_nullable_string,
    put_numbers,
    put_string,
    put_tagged_field,
    wrong_uuid,
)

_h = struct.Struct(">h")
_i = struct.Struct(">i")
_gh = struct.Struct(">16sh")
_it = struct.Struct(">i?")
_ih = struct.Struct(">ih")
_tbt = struct.Struct(">?b?")
_itx = struct.Struct(">i?x")
_tbtx = struct.Struct(">?b?x")


class CreatableReplicaAssignment(Struct):
    __slots__ = (
        "partition_index",
        "broker_ids",
    )

    def __init__(
        self,
        partition_index: int = 0,
        broker_ids: list[int] = EMPTY,
    ) -> None:
        self.partition_index = partition_index
        self.broker_ids = [] if broker_ids is EMPTY else broker_ids


class CreatableTopicConfig(Struct):
    __slots__ = (
        "name",
        "value",
    )

    def __init__(
        self,
        name: str = "",
        value: str | None = "",
    ) -> None:
        self.name = name
        self.value = value


class CreatableTopic(Struct):
    __slots__ = (
        "name",
        "num_partitions",
        "replication_factor",
        "assignments",
        "configs",
    )

    def __init__(
        self,
        name: str = "",
        num_partitions: int = 0,
        replication_factor: int = 0,
        assignments: list[CreatableReplicaAssignment] = EMPTY,
        configs: list[CreatableTopicConfig] = EMPTY,
    ) -> None:
        self.name = name
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.assignments = [] if assignments is EMPTY else assignments
        self.configs = [] if configs is EMPTY else configs


class CreateTopicsRequest(Struct):
    __slots__ = (
        "topics",
        "timeout_ms",
        "validate_only",
    )

    def __init__(
        self,
        topics: list[CreatableTopic] = EMPTY,
        timeout_ms: int = 60000,
        validate_only: bool = False,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only


class CreatableTopicConfigs(Struct):
    __slots__ = (
        "name",
        "value",
        "read_only",
        "config_source",
        "is_sensitive",
    )

    def __init__(
        self,
        name: str = "",  # 5+
        value: str | None = "",  # 5+
        read_only: bool = False,  # 5+
        config_source: int = -1,  # 5+
        is_sensitive: bool = False,  # 5+
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.config_source = config_source
        self.is_sensitive = is_sensitive


class CreatableTopicResult(Struct):
    __slots__ = (
        "name",
        "topic_id",
        "error_code",
        "error_message",
        "topic_config_error_code",
        "num_partitions",
        "replication_factor",
        "configs",
    )

    def __init__(
        self,
        name: str = "",
        topic_id: bytes = NO_UUID,  # 7+
        error_code: int = 0,
        error_message: str | None = "",
        topic_config_error_code: int = 0,  # 5+
        num_partitions: int = -1,  # 5+
        replication_factor: int = -1,  # 5+
        configs: list[CreatableTopicConfigs] | None = EMPTY,  # 5+
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message
        self.topic_config_error_code = topic_config_error_code
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.configs = [] if configs is EMPTY else configs


class CreateTopicsResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "topics",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[CreatableTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is EMPTY else topics


def _read_request_creatable_replica_assignment_v2_to_v4(
    buf: bytes, pos: int
) -> tuple[CreatableReplicaAssignment, int]:
    creatable_replica_assignment = new(CreatableReplicaAssignment)
    (creatable_replica_assignment.partition_index,) = _i.unpack_from(buf, pos)
    pos += 4
    creatable_replica_assignment.broker_ids, pos = numbers(buf, pos, "i")
    return creatable_replica_assignment, pos


def _read_request_creatable_replica_assignment_v5_to_v7(
    buf: bytes, pos: int
) -> tuple[CreatableReplicaAssignment, int]:
    creatable_replica_assignment = new(CreatableReplicaAssignment)
    (creatable_replica_assignment.partition_index,) = _i.unpack_from(buf, pos)
    pos += 4
    creatable_replica_assignment.broker_ids, pos = compact_numbers(buf, pos, "i")
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return creatable_replica_assignment, pos


def _read_request_creatable_topic_config_v2_to_v4(buf: bytes, pos: int) -> tuple[CreatableTopicConfig, int]:
    creatable_topic_config = new(CreatableTopicConfig)
    creatable_topic_config.name, pos = string(buf, pos)
    creatable_topic_config.value, pos = nullable_string(buf, pos)
    return creatable_topic_config, pos


def _read_request_creatable_topic_config_v5_to_v7(buf: bytes, pos: int) -> tuple[CreatableTopicConfig, int]:
    creatable_topic_config = new(CreatableTopicConfig)
    creatable_topic_config.name, pos = compact_string(buf, pos)
    creatable_topic_config.value, pos = nullable_compact_string(buf, pos)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return creatable_topic_config, pos


def _read_request_creatable_topic_v2_to_v4(buf: bytes, pos: int) -> tuple[CreatableTopic, int]:
    creatable_topic = new(CreatableTopic)
    creatable_topic.name, pos = string(buf, pos)
    creatable_topic.num_partitions, creatable_topic.replication_factor = _ih.unpack_from(buf, pos)
    pos += 6
    creatable_topic.assignments, pos = array(buf, pos, _read_request_creatable_replica_assignment_v2_to_v4, 8, 2)
    creatable_topic.configs, pos = array(buf, pos, _read_request_creatable_topic_config_v2_to_v4, 4, 1)
    return creatable_topic, pos


def _read_request_creatable_topic_v5_to_v7(buf: bytes, pos: int) -> tuple[CreatableTopic, int]:
    creatable_topic = new(CreatableTopic)
    creatable_topic.name, pos = compact_string(buf, pos)
    creatable_topic.num_partitions, creatable_topic.replication_factor = _ih.unpack_from(buf, pos)
    pos += 6
    creatable_topic.assignments, pos = compact_array(
        buf, pos, _read_request_creatable_replica_assignment_v5_to_v7, 6, 2
    )
    creatable_topic.configs, pos = compact_array(buf, pos, _read_request_creatable_topic_config_v5_to_v7, 3, 1)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return creatable_topic, pos


def _read_request_v2_to_v4(buf: bytes, pos: int) -> tuple[CreateTopicsRequest, int]:
    message = new(CreateTopicsRequest)
    message.topics, pos = array(buf, pos, _read_request_creatable_topic_v2_to_v4, 16, 4)
    message.timeout_ms, message.validate_only = _it.unpack_from(buf, pos)
    pos += 5
    return message, pos


def _read_request_v5_to_v7(buf: bytes, pos: int) -> tuple[CreateTopicsRequest, int]:
    message = new(CreateTopicsRequest)
    message.topics, pos = compact_array(buf, pos, _read_request_creatable_topic_v5_to_v7, 10, 4)
    message.timeout_ms, message.validate_only = _it.unpack_from(buf, pos)
    pos += 5
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_request_creatable_replica_assignment_v2_to_v4(
    out: bytearray, creatable_replica_assignment: CreatableReplicaAssignment, _inserts: Inserts
) -> None:
    out += _i.pack(creatable_replica_assignment.partition_index)
    put_numbers(out, creatable_replica_assignment.broker_ids, "i")


def _write_request_creatable_replica_assignment_v5_to_v7(
    out: bytearray, creatable_replica_assignment: CreatableReplicaAssignment, _inserts: Inserts
) -> None:
    out += _i.pack(creatable_replica_assignment.partition_index)
    put_compact_numbers(out, creatable_replica_assignment.broker_ids, "i")
    out.append(0)


def _write_request_creatable_topic_config_v2_to_v4(
    out: bytearray, creatable_topic_config: CreatableTopicConfig, _inserts: Inserts
) -> None:
    put_string(out, creatable_topic_config.name)
    put_nullable_string(out, creatable_topic_config.value)


def _write_request_creatable_topic_config_v5_to_v7(
    out: bytearray, creatable_topic_config: CreatableTopicConfig, _inserts: Inserts
) -> None:
    put_compact_string(out, creatable_topic_config.name)
    put_nullable_compact_string(out, creatable_topic_config.value)
    out.append(0)


def _write_request_creatable_topic_v2_to_v4(
    out: bytearray, creatable_topic: CreatableTopic, inserts: Inserts
) -> None:
    put_string(out, creatable_topic.name)
    out += _ih.pack(creatable_topic.num_partitions, creatable_topic.replication_factor)
    put_array(out, creatable_topic.assignments, _write_request_creatable_replica_assignment_v2_to_v4, inserts)
    put_array(out, creatable_topic.configs, _write_request_creatable_topic_config_v2_to_v4, inserts)


def _write_request_creatable_topic_v5_to_v7(
    out: bytearray, creatable_topic: CreatableTopic, inserts: Inserts
) -> None:
    put_compact_string(out, creatable_topic.name)
    out += _ih.pack(creatable_topic.num_partitions, creatable_topic.replication_factor)
    put_compact_array(out, creatable_topic.assignments, _write_request_creatable_replica_assignment_v5_to_v7, inserts)
    put_compact_array(out, creatable_topic.configs, _write_request_creatable_topic_config_v5_to_v7, inserts)
    out.append(0)


def _write_request_v2_to_v4(out: bytearray, message: CreateTopicsRequest, inserts: Inserts) -> None:
    put_array(out, message.topics, _write_request_creatable_topic_v2_to_v4, inserts)
    out += _it.pack(message.timeout_ms, message.validate_only)


def _write_request_v5_to_v7(out: bytearray, message: CreateTopicsRequest, inserts: Inserts) -> None:
    put_compact_array(out, message.topics, _write_request_creatable_topic_v5_to_v7, inserts)
    out += _itx.pack(message.timeout_ms, message.validate_only)


def _read_response_creatable_topic_configs_v5_to_v7(buf: bytes, pos: int) -> tuple[CreatableTopicConfigs, int]:
    creatable_topic_configs = new(CreatableTopicConfigs)
    creatable_topic_configs.name, pos = compact_string(buf, pos)
    creatable_topic_configs.value, pos = nullable_compact_string(buf, pos)
    creatable_topic_configs.read_only, creatable_topic_configs.config_source, creatable_topic_configs.is_sensitive = (
        _tbt.unpack_from(buf, pos)
    )
    pos += 3
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return creatable_topic_configs, pos


def _read_response_creatable_topic_result_v2_to_v4(buf: bytes, pos: int) -> tuple[CreatableTopicResult, int]:
    creatable_topic_result = new(CreatableTopicResult)
    creatable_topic_result.topic_id = NO_UUID
    creatable_topic_result.topic_config_error_code = 0
    creatable_topic_result.num_partitions = -1
    creatable_topic_result.replication_factor = -1
    creatable_topic_result.configs = []
    creatable_topic_result.name, pos = string(buf, pos)
    (creatable_topic_result.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    creatable_topic_result.error_message, pos = nullable_string(buf, pos)
    return creatable_topic_result, pos


def _read_response_creatable_topic_result_v5_to_v6(buf: bytes, pos: int) -> tuple[CreatableTopicResult, int]:
    creatable_topic_result = new(CreatableTopicResult)
    creatable_topic_result.topic_id = NO_UUID
    creatable_topic_result.topic_config_error_code = 0
    creatable_topic_result.name, pos = compact_string(buf, pos)
    (creatable_topic_result.error_code,) = _h.unpack_from(buf, pos)
    pos += 2
    creatable_topic_result.error_message, pos = nullable_compact_string(buf, pos)
    creatable_topic_result.num_partitions, creatable_topic_result.replication_factor = _ih.unpack_from(buf, pos)
    pos += 6
    creatable_topic_result.configs, pos = nullable_compact_array(
        buf, pos, _read_response_creatable_topic_configs_v5_to_v7, 6
    )
    if buf[pos] == 0:
        pos += 1
    else:
        tags, pos = tag_count(buf, pos)
        for _ in range(tags):
            tag, pos, stop = tagged_field(buf, pos)
            if tag == 0:
                (creatable_topic_result.topic_config_error_code,) = _h.unpack_from(buf, pos)
                pos += 2
            else:
                pos = stop
            if pos != stop:
                raise wrong_tagged_size(tag)
    return creatable_topic_result, pos


def _read_response_creatable_topic_result_v7(buf: bytes, pos: int) -> tuple[CreatableTopicResult, int]:
    creatable_topic_result = new(CreatableTopicResult)
    creatable_topic_result.topic_config_error_code = 0
    creatable_topic_result.name, pos = compact_string(buf, pos)
    creatable_topic_result.topic_id, creatable_topic_result.error_code = _gh.unpack_from(buf, pos)
    pos += 18
    creatable_topic_result.error_message, pos = nullable_compact_string(buf, pos)
    creatable_topic_result.num_partitions, creatable_topic_result.replication_factor = _ih.unpack_from(buf, pos)
    pos += 6
    creatable_topic_result.configs, pos = nullable_compact_array(
        buf, pos, _read_response_creatable_topic_configs_v5_to_v7, 6
    )
    if buf[pos] == 0:
        pos += 1
    else:
        tags, pos = tag_count(buf, pos)
        for _ in range(tags):
            tag, pos, stop = tagged_field(buf, pos)
            if tag == 0:
                (creatable_topic_result.topic_config_error_code,) = _h.unpack_from(buf, pos)
                pos += 2
            else:
                pos = stop
            if pos != stop:
                raise wrong_tagged_size(tag)
    return creatable_topic_result, pos


def _read_response_v2_to_v4(buf: bytes, pos: int) -> tuple[CreateTopicsResponse, int]:
    message = new(CreateTopicsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = array(buf, pos, _read_response_creatable_topic_result_v2_to_v4, 6)
    return message, pos


def _read_response_v5_to_v6(buf: bytes, pos: int) -> tuple[CreateTopicsResponse, int]:
    message = new(CreateTopicsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = compact_array(buf, pos, _read_response_creatable_topic_result_v5_to_v6, 12)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _read_response_v7(buf: bytes, pos: int) -> tuple[CreateTopicsResponse, int]:
    message = new(CreateTopicsResponse)
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    message.topics, pos = compact_array(buf, pos, _read_response_creatable_topic_result_v7, 28)
    pos = skip_tagged_fields(buf, pos) if buf[pos] else pos + 1
    return message, pos


def _write_response_creatable_topic_configs_v5_to_v7(
    out: bytearray, creatable_topic_configs: CreatableTopicConfigs, _inserts: Inserts
) -> None:
    put_compact_string(out, creatable_topic_configs.name)
    put_nullable_compact_string(out, creatable_topic_configs.value)
    out += _tbtx.pack(
        creatable_topic_configs.read_only, creatable_topic_configs.config_source, creatable_topic_configs.is_sensitive
    )


def _write_response_creatable_topic_result_v2_to_v4(
    out: bytearray, creatable_topic_result: CreatableTopicResult, _inserts: Inserts
) -> None:
    put_string(out, creatable_topic_result.name)
    out += _h.pack(creatable_topic_result.error_code)
    put_nullable_string(out, creatable_topic_result.error_message)


def _write_response_creatable_topic_result_v5_to_v6(
    out: bytearray, creatable_topic_result: CreatableTopicResult, inserts: Inserts
) -> None:
    put_compact_string(out, creatable_topic_result.name)
    out += _h.pack(creatable_topic_result.error_code)
    put_nullable_compact_string(out, creatable_topic_result.error_message)
    out += _ih.pack(creatable_topic_result.num_partitions, creatable_topic_result.replication_factor)
    put_nullable_compact_array(
        out, creatable_topic_result.configs, _write_response_creatable_topic_configs_v5_to_v7, inserts
    )
    if creatable_topic_result.topic_config_error_code:
        out.append(1)
        tagged = bytearray()
        tagged += _h.pack(creatable_topic_result.topic_config_error_code)
        put_tagged_field(out, 0, tagged)
    else:
        out.append(0)


def _write_response_creatable_topic_result_v7(
    out: bytearray, creatable_topic_result: CreatableTopicResult, inserts: Inserts
) -> None:
    put_compact_string(out, creatable_topic_result.name)
    if len(creatable_topic_result.topic_id) != 16:
        raise wrong_uuid("topic_id")
    out += _gh.pack(creatable_topic_result.topic_id, creatable_topic_result.error_code)
    put_nullable_compact_string(out, creatable_topic_result.error_message)
    out += _ih.pack(creatable_topic_result.num_partitions, creatable_topic_result.replication_factor)
    put_nullable_compact_array(
        out, creatable_topic_result.configs, _write_response_creatable_topic_configs_v5_to_v7, inserts
    )
    if creatable_topic_result.topic_config_error_code:
        out.append(1)
        tagged = bytearray()
        tagged += _h.pack(creatable_topic_result.topic_config_error_code)
        put_tagged_field(out, 0, tagged)
    else:
        out.append(0)


def _write_response_v2_to_v4(out: bytearray, message: CreateTopicsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_array(out, message.topics, _write_response_creatable_topic_result_v2_to_v4, inserts)


def _write_response_v5_to_v6(out: bytearray, message: CreateTopicsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.topics, _write_response_creatable_topic_result_v5_to_v6, inserts)
    out.append(0)


def _write_response_v7(out: bytearray, message: CreateTopicsResponse, inserts: Inserts) -> None:
    out += _i.pack(message.throttle_time_ms)
    put_compact_array(out, message.topics, _write_response_creatable_topic_result_v7, inserts)
    out.append(0)


REQUEST: MessageCodec[CreateTopicsRequest] = MessageCodec(
    "CreateTopicsRequest",
    2,
    (
        _read_request_v2_to_v4,
        _read_request_v2_to_v4,
        _read_request_v2_to_v4,
        _read_request_v5_to_v7,
        _read_request_v5_to_v7,
        _read_request_v5_to_v7,
    ),
    (
        _write_request_v2_to_v4,
        _write_request_v2_to_v4,
        _write_request_v2_to_v4,
        _write_request_v5_to_v7,
        _write_request_v5_to_v7,
        _write_request_v5_to_v7,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[CreateTopicsResponse] = MessageCodec(
    "CreateTopicsResponse",
    2,
    (
        _read_response_v2_to_v4,
        _read_response_v2_to_v4,
        _read_response_v2_to_v4,
        _read_response_v5_to_v6,
        _read_response_v5_to_v6,
        _read_response_v7,
    ),
    (
        _write_response_v2_to_v4,
        _write_response_v2_to_v4,
        _write_response_v2_to_v4,
        _write_response_v5_to_v6,
        _write_response_v5_to_v6,
        _write_response_v7,
    ),
    holds_views=False,
)
