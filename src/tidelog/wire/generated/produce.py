"""Produce: API key 0, v3 to v13."""
# Made by tools/wiregen from messages/produce.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, NO_UUID, Buffer, Inserts, Struct, new
from tidelog.wire.reading import (
    long_size,
    long_string_size,
    null_refused,
    skip_tagged_fields,
    spend,
    tag_count,
    tagged_field,
    too_many,
    wrong_tagged_size,
)
from tidelog.wire.writing import absent, put_long_string_size, put_tagged_field, put_uvarint, wrong_uuid

_g = struct.Struct(">16s")
_h = struct.Struct(">h")
_i = struct.Struct(">i")
_gu = struct.Struct(">16sB")
_hi = struct.Struct(">hi")
_iu = struct.Struct(">iB")
_ih = struct.Struct(">ih")
_ii = struct.Struct(">ii")
_ix = struct.Struct(">ix")
_hiu = struct.Struct(">hiB")
_hii = struct.Struct(">hii")
_iix = struct.Struct(">iix")
_ihqq = struct.Struct(">ihqq")
_ihqqq = struct.Struct(">ihqqq")
_ihqqqu = struct.Struct(">ihqqqB")
_ihqqqi = struct.Struct(">ihqqqi")


class PartitionProduceData(Struct):
    __slots__ = (
        "index",
        "records",
    )

    def __init__(
        self,
        index: int = 0,
        records: Buffer | None = None,
    ) -> None:
        self.index = index
        self.records = records


class TopicProduceData(Struct):
    __slots__ = (
        "name",
        "topic_id",
        "partition_data",
    )

    def __init__(
        self,
        name: str = "",  # 3-12
        topic_id: bytes = NO_UUID,  # 13+
        partition_data: list[PartitionProduceData] = EMPTY,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_data = [] if partition_data is EMPTY else partition_data


class ProduceRequest(Struct):
    __slots__ = (
        "transactional_id",
        "acks",
        "timeout_ms",
        "topic_data",
    )

    def __init__(
        self,
        transactional_id: str | None = None,
        acks: int = 0,
        timeout_ms: int = 0,
        topic_data: list[TopicProduceData] = EMPTY,
    ) -> None:
        self.transactional_id = transactional_id
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topic_data = [] if topic_data is EMPTY else topic_data


class BatchIndexAndErrorMessage(Struct):
    __slots__ = (
        "batch_index",
        "batch_index_error_message",
    )

    def __init__(
        self,
        batch_index: int = 0,  # 8+
        batch_index_error_message: str | None = None,  # 8+
    ) -> None:
        self.batch_index = batch_index
        self.batch_index_error_message = batch_index_error_message


class LeaderIdAndEpoch(Struct):
    __slots__ = (
        "leader_id",
        "leader_epoch",
    )

    def __init__(
        self,
        leader_id: int = -1,  # 10+
        leader_epoch: int = -1,  # 10+
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


class PartitionProduceResponse(Struct):
    __slots__ = (
        "index",
        "error_code",
        "base_offset",
        "log_append_time_ms",
        "log_start_offset",
        "record_errors",
        "error_message",
        "current_leader",
    )

    def __init__(
        self,
        index: int = 0,
        error_code: int = 0,
        base_offset: int = 0,
        log_append_time_ms: int = -1,
        log_start_offset: int = -1,  # 5+
        record_errors: list[BatchIndexAndErrorMessage] = EMPTY,  # 8+
        error_message: str | None = None,  # 8+
        current_leader: LeaderIdAndEpoch | None = None,  # 10+
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.record_errors = [] if record_errors is EMPTY else record_errors
        self.error_message = error_message
        self.current_leader = current_leader


class TopicProduceResponse(Struct):
    __slots__ = (
        "name",
        "topic_id",
        "partition_responses",
    )

    def __init__(
        self,
        name: str = "",  # 3-12
        topic_id: bytes = NO_UUID,  # 13+
        partition_responses: list[PartitionProduceResponse] = EMPTY,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_responses = [] if partition_responses is EMPTY else partition_responses


class NodeEndpoint(Struct):
    __slots__ = (
        "node_id",
        "host",
        "port",
        "rack",
    )

    def __init__(
        self,
        node_id: int = 0,  # 10+
        host: str = "",  # 10+
        port: int = 0,  # 10+
        rack: str | None = None,  # 10+
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack


class ProduceResponse(Struct):
    __slots__ = (
        "responses",
        "throttle_time_ms",
        "node_endpoints",
    )

    def __init__(
        self,
        responses: list[TopicProduceResponse] = EMPTY,
        throttle_time_ms: int = 0,
        node_endpoints: list[NodeEndpoint] = EMPTY,  # 10+
    ) -> None:
        self.responses = [] if responses is EMPTY else responses
        self.throttle_time_ms = throttle_time_ms
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints


def _read_request_v3_to_v8(buf: memoryview, pos: int) -> tuple[ProduceRequest, int]:
    size = len(buf)
    message = new(ProduceRequest)
    (n,) = _h.unpack_from(buf, pos)
    pos += 2
    if n < 0:
        message.transactional_id = None
    else:
        end = pos + n
        message.transactional_id = buf[pos:end].tobytes().decode()
        pos = end
    message.acks, message.timeout_ms, n = _hii.unpack_from(buf, pos)
    pos += 10
    if n < 0:
        raise null_refused("topic_data")
    if n * 6 > size - pos:
        raise too_many(n)
    if n > 1:
        spend(n * 2)
    topic_data: list[TopicProduceData] = []
    for _ in range(n):
        topic_produce_data = new(TopicProduceData)
        topic_produce_data.topic_id = NO_UUID
        (n,) = _h.unpack_from(buf, pos)
        pos += 2
        if n < 0:
            raise null_refused("name")
        end = pos + n
        topic_produce_data.name = buf[pos:end].tobytes().decode()
        pos = end
        (n,) = _i.unpack_from(buf, pos)
        pos += 4
        if n < 0:
            raise null_refused("partition_data")
        if n * 8 > size - pos:
            raise too_many(n)
        if n > 1:
            spend(n)
        partition_data: list[PartitionProduceData] = []
        for _ in range(n):
            partition_produce_data = new(PartitionProduceData)
            partition_produce_data.index, n = _ii.unpack_from(buf, pos)
            pos += 8
            if n < 0:
                partition_produce_data.records = None
            else:
                end = pos + n
                partition_produce_data.records = buf[pos:end]
                pos = end
            partition_data.append(partition_produce_data)
        topic_produce_data.partition_data = partition_data
        topic_data.append(topic_produce_data)
    message.topic_data = topic_data
    return message, pos


def _read_request_v9_to_v12(buf: memoryview, pos: int) -> tuple[ProduceRequest, int]:
    size = len(buf)
    message = new(ProduceRequest)
    n = buf[pos]
    pos += 1
    if n == 0:
        message.transactional_id = None
    else:
        if n > 127:
            n, pos = long_string_size(buf, pos, n)
        end = pos + n - 1
        message.transactional_id = buf[pos:end].tobytes().decode()
        pos = end
    message.acks, message.timeout_ms, n = _hiu.unpack_from(buf, pos)
    pos += 7
    if not 0 < n < 128:
        n, pos = long_size(buf, pos, n)
    if (n - 1) * 3 > size - pos:
        raise too_many(n - 1)
    if n > 2:
        spend((n - 1) * 2)
    topic_data: list[TopicProduceData] = []
    for _ in range(1, n):
        topic_produce_data = new(TopicProduceData)
        topic_produce_data.topic_id = NO_UUID
        n = buf[pos]
        pos += 1
        if not 0 < n < 128:
            n, pos = long_string_size(buf, pos, n)
        end = pos + n - 1
        topic_produce_data.name = buf[pos:end].tobytes().decode()
        pos = end
        n = buf[pos]
        pos += 1
        if not 0 < n < 128:
            n, pos = long_size(buf, pos, n)
        if (n - 1) * 6 > size - pos:
            raise too_many(n - 1)
        if n > 2:
            spend(n - 1)
        partition_data: list[PartitionProduceData] = []
        for _ in range(1, n):
            partition_produce_data = new(PartitionProduceData)
            partition_produce_data.index, n = _iu.unpack_from(buf, pos)
            pos += 5
            if n == 0:
                partition_produce_data.records = None
            else:
                if n > 127:
                    n, pos = long_size(buf, pos, n)
                end = pos + n - 1
                partition_produce_data.records = buf[pos:end]
                pos = end
            if buf[pos]:
                pos = skip_tagged_fields(buf, pos)
            else:
                pos += 1
            partition_data.append(partition_produce_data)
        topic_produce_data.partition_data = partition_data
        if buf[pos]:
            pos = skip_tagged_fields(buf, pos)
        else:
            pos += 1
        topic_data.append(topic_produce_data)
    message.topic_data = topic_data
    if buf[pos]:
        pos = skip_tagged_fields(buf, pos)
    else:
        pos += 1
    return message, pos


def _read_request_v13(buf: memoryview, pos: int) -> tuple[ProduceRequest, int]:
    size = len(buf)
    message = new(ProduceRequest)
    n = buf[pos]
    pos += 1
    if n == 0:
        message.transactional_id = None
    else:
        if n > 127:
            n, pos = long_string_size(buf, pos, n)
        end = pos + n - 1
        message.transactional_id = buf[pos:end].tobytes().decode()
        pos = end
    message.acks, message.timeout_ms, n = _hiu.unpack_from(buf, pos)
    pos += 7
    if not 0 < n < 128:
        n, pos = long_size(buf, pos, n)
    if (n - 1) * 18 > size - pos:
        raise too_many(n - 1)
    if n > 2:
        spend((n - 1) * 2)
    topic_data: list[TopicProduceData] = []
    for _ in range(1, n):
        topic_produce_data = new(TopicProduceData)
        topic_produce_data.name = ""
        topic_produce_data.topic_id, n = _gu.unpack_from(buf, pos)
        pos += 17
        if not 0 < n < 128:
            n, pos = long_size(buf, pos, n)
        if (n - 1) * 6 > size - pos:
            raise too_many(n - 1)
        if n > 2:
            spend(n - 1)
        partition_data: list[PartitionProduceData] = []
        for _ in range(1, n):
            partition_produce_data = new(PartitionProduceData)
            partition_produce_data.index, n = _iu.unpack_from(buf, pos)
            pos += 5
            if n == 0:
                partition_produce_data.records = None
            else:
                if n > 127:
                    n, pos = long_size(buf, pos, n)
                end = pos + n - 1
                partition_produce_data.records = buf[pos:end]
                pos = end
            if buf[pos]:
                pos = skip_tagged_fields(buf, pos)
            else:
                pos += 1
            partition_data.append(partition_produce_data)
        topic_produce_data.partition_data = partition_data
        if buf[pos]:
            pos = skip_tagged_fields(buf, pos)
        else:
            pos += 1
        topic_data.append(topic_produce_data)
    message.topic_data = topic_data
    if buf[pos]:
        pos = skip_tagged_fields(buf, pos)
    else:
        pos += 1
    return message, pos


def _write_request_v3_to_v8(out: bytearray, message: ProduceRequest, inserts: Inserts) -> None:
    if message.transactional_id is None:
        out += b"\xff\xff"
    else:
        encoded = message.transactional_id.encode()
        out += _h.pack(len(encoded))
        out += encoded
    out += _hii.pack(message.acks, message.timeout_ms, len(message.topic_data))
    for topic_produce_data in message.topic_data:
        encoded = topic_produce_data.name.encode()
        out += _h.pack(len(encoded))
        out += encoded
        out += _i.pack(len(topic_produce_data.partition_data))
        for partition_produce_data in topic_produce_data.partition_data:
            out += _i.pack(partition_produce_data.index)
            if partition_produce_data.records is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _i.pack(len(partition_produce_data.records))
                if partition_produce_data.records:
                    inserts.append((len(out), partition_produce_data.records))


def _write_request_v9_to_v12(out: bytearray, message: ProduceRequest, inserts: Inserts) -> None:
    if message.transactional_id is None:
        out.append(0)
    else:
        encoded = message.transactional_id.encode()
        n = len(encoded) + 1
        if n < 128:
            out.append(n)
        else:
            put_long_string_size(out, n)
        out += encoded
    out += _hi.pack(message.acks, message.timeout_ms)
    n = len(message.topic_data) + 1
    if n < 128:
        out.append(n)
    else:
        put_uvarint(out, n)
    for topic_produce_data in message.topic_data:
        encoded = topic_produce_data.name.encode()
        n = len(encoded) + 1
        if n < 128:
            out.append(n)
        else:
            put_long_string_size(out, n)
        out += encoded
        n = len(topic_produce_data.partition_data) + 1
        if n < 128:
            out.append(n)
        else:
            put_uvarint(out, n)
        for partition_produce_data in topic_produce_data.partition_data:
            out += _i.pack(partition_produce_data.index)
            if partition_produce_data.records is None:
                out.append(0)
            else:
                n = len(partition_produce_data.records) + 1
                if n < 128:
                    out.append(n)
                else:
                    put_uvarint(out, n)
                if partition_produce_data.records:
                    inserts.append((len(out), partition_produce_data.records))
            out.append(0)
        out.append(0)
    out.append(0)


def _write_request_v13(out: bytearray, message: ProduceRequest, inserts: Inserts) -> None:
    if message.transactional_id is None:
        out.append(0)
    else:
        encoded = message.transactional_id.encode()
        n = len(encoded) + 1
        if n < 128:
            out.append(n)
        else:
            put_long_string_size(out, n)
        out += encoded
    out += _hi.pack(message.acks, message.timeout_ms)
    n = len(message.topic_data) + 1
    if n < 128:
        out.append(n)
    else:
        put_uvarint(out, n)
    for topic_produce_data in message.topic_data:
        if len(topic_produce_data.topic_id) != 16:
            raise wrong_uuid("topic_id")
        out += _g.pack(topic_produce_data.topic_id)
        n = len(topic_produce_data.partition_data) + 1
        if n < 128:
            out.append(n)
        else:
            put_uvarint(out, n)
        for partition_produce_data in topic_produce_data.partition_data:
            out += _i.pack(partition_produce_data.index)
            if partition_produce_data.records is None:
                out.append(0)
            else:
                n = len(partition_produce_data.records) + 1
                if n < 128:
                    out.append(n)
                else:
                    put_uvarint(out, n)
                if partition_produce_data.records:
                    inserts.append((len(out), partition_produce_data.records))
            out.append(0)
        out.append(0)
    out.append(0)


def _read_response_v3_to_v4(buf: bytes, pos: int) -> tuple[ProduceResponse, int]:
    size = len(buf)
    message = new(ProduceResponse)
    message.node_endpoints = []
    (n,) = _i.unpack_from(buf, pos)
    pos += 4
    if n < 0:
        raise null_refused("responses")
    if n * 6 > size - pos:
        raise too_many(n)
    responses: list[TopicProduceResponse] = []
    for _ in range(n):
        topic_produce_response = new(TopicProduceResponse)
        topic_produce_response.topic_id = NO_UUID
        (n,) = _h.unpack_from(buf, pos)
        pos += 2
        if n < 0:
            raise null_refused("name")
        end = pos + n
        topic_produce_response.name = buf[pos:end].decode()
        pos = end
        (n,) = _i.unpack_from(buf, pos)
        pos += 4
        if n < 0:
            raise null_refused("partition_responses")
        if n * 22 > size - pos:
            raise too_many(n)
        partition_responses: list[PartitionProduceResponse] = []
        end = pos + n * 22
        for index, error_code, base_offset, log_append_time_ms in _ihqq.iter_unpack(buf[pos:end]):
            partition_produce_response = new(PartitionProduceResponse)
            partition_produce_response.index = index
            partition_produce_response.error_code = error_code
            partition_produce_response.base_offset = base_offset
            partition_produce_response.log_append_time_ms = log_append_time_ms
            partition_produce_response.log_start_offset = -1
            partition_produce_response.record_errors = []
            partition_produce_response.error_message = None
            partition_produce_response.current_leader = None
            partition_responses.append(partition_produce_response)
        pos = end
        topic_produce_response.partition_responses = partition_responses
        responses.append(topic_produce_response)
    message.responses = responses
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    return message, pos


def _read_response_v5_to_v7(buf: bytes, pos: int) -> tuple[ProduceResponse, int]:
    size = len(buf)
    message = new(ProduceResponse)
    message.node_endpoints = []
    (n,) = _i.unpack_from(buf, pos)
    pos += 4
    if n < 0:
        raise null_refused("responses")
    if n * 6 > size - pos:
        raise too_many(n)
    responses: list[TopicProduceResponse] = []
    for _ in range(n):
        topic_produce_response = new(TopicProduceResponse)
        topic_produce_response.topic_id = NO_UUID
        (n,) = _h.unpack_from(buf, pos)
        pos += 2
        if n < 0:
            raise null_refused("name")
        end = pos + n
        topic_produce_response.name = buf[pos:end].decode()
        pos = end
        (n,) = _i.unpack_from(buf, pos)
        pos += 4
        if n < 0:
            raise null_refused("partition_responses")
        if n * 30 > size - pos:
            raise too_many(n)
        partition_responses: list[PartitionProduceResponse] = []
        end = pos + n * 30
        for index, error_code, base_offset, log_append_time_ms, log_start_offset in _ihqqq.iter_unpack(buf[pos:end]):
            partition_produce_response = new(PartitionProduceResponse)
            partition_produce_response.index = index
            partition_produce_response.error_code = error_code
            partition_produce_response.base_offset = base_offset
            partition_produce_response.log_append_time_ms = log_append_time_ms
            partition_produce_response.log_start_offset = log_start_offset
            partition_produce_response.record_errors = []
            partition_produce_response.error_message = None
            partition_produce_response.current_leader = None
            partition_responses.append(partition_produce_response)
        pos = end
        topic_produce_response.partition_responses = partition_responses
        responses.append(topic_produce_response)
    message.responses = responses
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    return message, pos


def _read_response_v8(buf: bytes, pos: int) -> tuple[ProduceResponse, int]:
    size = len(buf)
    message = new(ProduceResponse)
    message.node_endpoints = []
    (n,) = _i.unpack_from(buf, pos)
    pos += 4
    if n < 0:
        raise null_refused("responses")
    if n * 6 > size - pos:
        raise too_many(n)
    responses: list[TopicProduceResponse] = []
    for _ in range(n):
        topic_produce_response = new(TopicProduceResponse)
        topic_produce_response.topic_id = NO_UUID
        (n,) = _h.unpack_from(buf, pos)
        pos += 2
        if n < 0:
            raise null_refused("name")
        end = pos + n
        topic_produce_response.name = buf[pos:end].decode()
        pos = end
        (n,) = _i.unpack_from(buf, pos)
        pos += 4
        if n < 0:
            raise null_refused("partition_responses")
        if n * 36 > size - pos:
            raise too_many(n)
        partition_responses: list[PartitionProduceResponse] = []
        for _ in range(n):
            partition_produce_response = new(PartitionProduceResponse)
            partition_produce_response.current_leader = None
            (
                partition_produce_response.index,
                partition_produce_response.error_code,
                partition_produce_response.base_offset,
                partition_produce_response.log_append_time_ms,
                partition_produce_response.log_start_offset,
                n,
            ) = _ihqqqi.unpack_from(buf, pos)
            pos += 34
            if n < 0:
                raise null_refused("record_errors")
            if n * 6 > size - pos:
                raise too_many(n)
            record_errors: list[BatchIndexAndErrorMessage] = []
            for _ in range(n):
                batch_index_and_error_message = new(BatchIndexAndErrorMessage)
                batch_index_and_error_message.batch_index, n = _ih.unpack_from(buf, pos)
                pos += 6
                if n < 0:
                    batch_index_and_error_message.batch_index_error_message = None
                else:
                    end = pos + n
                    batch_index_and_error_message.batch_index_error_message = buf[pos:end].decode()
                    pos = end
                record_errors.append(batch_index_and_error_message)
            partition_produce_response.record_errors = record_errors
            (n,) = _h.unpack_from(buf, pos)
            pos += 2
            if n < 0:
                partition_produce_response.error_message = None
            else:
                end = pos + n
                partition_produce_response.error_message = buf[pos:end].decode()
                pos = end
            partition_responses.append(partition_produce_response)
        topic_produce_response.partition_responses = partition_responses
        responses.append(topic_produce_response)
    message.responses = responses
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    return message, pos


def _read_response_v9(buf: bytes, pos: int) -> tuple[ProduceResponse, int]:
    size = len(buf)
    message = new(ProduceResponse)
    message.node_endpoints = []
    n = buf[pos]
    pos += 1
    if not 0 < n < 128:
        n, pos = long_size(buf, pos, n)
    if (n - 1) * 3 > size - pos:
        raise too_many(n - 1)
    responses: list[TopicProduceResponse] = []
    for _ in range(1, n):
        topic_produce_response = new(TopicProduceResponse)
        topic_produce_response.topic_id = NO_UUID
        n = buf[pos]
        pos += 1
        if not 0 < n < 128:
            n, pos = long_string_size(buf, pos, n)
        end = pos + n - 1
        topic_produce_response.name = buf[pos:end].decode()
        pos = end
        n = buf[pos]
        pos += 1
        if not 0 < n < 128:
            n, pos = long_size(buf, pos, n)
        if (n - 1) * 33 > size - pos:
            raise too_many(n - 1)
        partition_responses: list[PartitionProduceResponse] = []
        for _ in range(1, n):
            partition_produce_response = new(PartitionProduceResponse)
            partition_produce_response.current_leader = None
            (
                partition_produce_response.index,
                partition_produce_response.error_code,
                partition_produce_response.base_offset,
                partition_produce_response.log_append_time_ms,
                partition_produce_response.log_start_offset,
                n,
            ) = _ihqqqu.unpack_from(buf, pos)
            pos += 31
            if not 0 < n < 128:
                n, pos = long_size(buf, pos, n)
            if (n - 1) * 6 > size - pos:
                raise too_many(n - 1)
            record_errors: list[BatchIndexAndErrorMessage] = []
            for _ in range(1, n):
                batch_index_and_error_message = new(BatchIndexAndErrorMessage)
                batch_index_and_error_message.batch_index, n = _iu.unpack_from(buf, pos)
                pos += 5
                if n == 0:
                    batch_index_and_error_message.batch_index_error_message = None
                else:
                    if n > 127:
                        n, pos = long_string_size(buf, pos, n)
                    end = pos + n - 1
                    batch_index_and_error_message.batch_index_error_message = buf[pos:end].decode()
                    pos = end
                if buf[pos]:
                    pos = skip_tagged_fields(buf, pos)
                else:
                    pos += 1
                record_errors.append(batch_index_and_error_message)
            partition_produce_response.record_errors = record_errors
            n = buf[pos]
            pos += 1
            if n == 0:
                partition_produce_response.error_message = None
            else:
                if n > 127:
                    n, pos = long_string_size(buf, pos, n)
                end = pos + n - 1
                partition_produce_response.error_message = buf[pos:end].decode()
                pos = end
            if buf[pos]:
                pos = skip_tagged_fields(buf, pos)
            else:
                pos += 1
            partition_responses.append(partition_produce_response)
        topic_produce_response.partition_responses = partition_responses
        if buf[pos]:
            pos = skip_tagged_fields(buf, pos)
        else:
            pos += 1
        responses.append(topic_produce_response)
    message.responses = responses
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    if buf[pos]:
        pos = skip_tagged_fields(buf, pos)
    else:
        pos += 1
    return message, pos


def _read_response_v10_to_v12(buf: bytes, pos: int) -> tuple[ProduceResponse, int]:
    size = len(buf)
    message = new(ProduceResponse)
    message.node_endpoints = []
    n = buf[pos]
    pos += 1
    if not 0 < n < 128:
        n, pos = long_size(buf, pos, n)
    if (n - 1) * 3 > size - pos:
        raise too_many(n - 1)
    responses: list[TopicProduceResponse] = []
    for _ in range(1, n):
        topic_produce_response = new(TopicProduceResponse)
        topic_produce_response.topic_id = NO_UUID
        n = buf[pos]
        pos += 1
        if not 0 < n < 128:
            n, pos = long_string_size(buf, pos, n)
        end = pos + n - 1
        topic_produce_response.name = buf[pos:end].decode()
        pos = end
        n = buf[pos]
        pos += 1
        if not 0 < n < 128:
            n, pos = long_size(buf, pos, n)
        if (n - 1) * 33 > size - pos:
            raise too_many(n - 1)
        partition_responses: list[PartitionProduceResponse] = []
        for _ in range(1, n):
            partition_produce_response = new(PartitionProduceResponse)
            partition_produce_response.current_leader = None
            (
                partition_produce_response.index,
                partition_produce_response.error_code,
                partition_produce_response.base_offset,
                partition_produce_response.log_append_time_ms,
                partition_produce_response.log_start_offset,
                n,
            ) = _ihqqqu.unpack_from(buf, pos)
            pos += 31
            if not 0 < n < 128:
                n, pos = long_size(buf, pos, n)
            if (n - 1) * 6 > size - pos:
                raise too_many(n - 1)
            record_errors: list[BatchIndexAndErrorMessage] = []
            for _ in range(1, n):
                batch_index_and_error_message = new(BatchIndexAndErrorMessage)
                batch_index_and_error_message.batch_index, n = _iu.unpack_from(buf, pos)
                pos += 5
                if n == 0:
                    batch_index_and_error_message.batch_index_error_message = None
                else:
                    if n > 127:
                        n, pos = long_string_size(buf, pos, n)
                    end = pos + n - 1
                    batch_index_and_error_message.batch_index_error_message = buf[pos:end].decode()
                    pos = end
                if buf[pos]:
                    pos = skip_tagged_fields(buf, pos)
                else:
                    pos += 1
                record_errors.append(batch_index_and_error_message)
            partition_produce_response.record_errors = record_errors
            n = buf[pos]
            pos += 1
            if n == 0:
                partition_produce_response.error_message = None
            else:
                if n > 127:
                    n, pos = long_string_size(buf, pos, n)
                end = pos + n - 1
                partition_produce_response.error_message = buf[pos:end].decode()
                pos = end
            if buf[pos] == 0:
                pos += 1
            else:
                tags, pos = tag_count(buf, pos)
                for _ in range(tags):
                    tag, pos, stop = tagged_field(buf, pos)
                    if tag == 0:
                        leader_id_and_epoch = new(LeaderIdAndEpoch)
                        leader_id_and_epoch.leader_id, leader_id_and_epoch.leader_epoch = _ii.unpack_from(buf, pos)
                        pos += 8
                        if buf[pos]:
                            pos = skip_tagged_fields(buf, pos)
                        else:
                            pos += 1
                        partition_produce_response.current_leader = leader_id_and_epoch
                    else:
                        pos = stop
                    if pos != stop:
                        raise wrong_tagged_size(tag)
            partition_responses.append(partition_produce_response)
        topic_produce_response.partition_responses = partition_responses
        if buf[pos]:
            pos = skip_tagged_fields(buf, pos)
        else:
            pos += 1
        responses.append(topic_produce_response)
    message.responses = responses
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    if buf[pos] == 0:
        pos += 1
    else:
        tags_2, pos = tag_count(buf, pos)
        for _ in range(tags_2):
            tag, pos, stop_2 = tagged_field(buf, pos)
            if tag == 0:
                n = buf[pos]
                pos += 1
                if not 0 < n < 128:
                    n, pos = long_size(buf, pos, n)
                if (n - 1) * 11 > size - pos:
                    raise too_many(n - 1)
                node_endpoints: list[NodeEndpoint] = []
                for _ in range(1, n):
                    node_endpoint = new(NodeEndpoint)
                    node_endpoint.node_id, n = _iu.unpack_from(buf, pos)
                    pos += 5
                    if not 0 < n < 128:
                        n, pos = long_string_size(buf, pos, n)
                    end = pos + n - 1
                    node_endpoint.host = buf[pos:end].decode()
                    pos = end
                    node_endpoint.port, n = _iu.unpack_from(buf, pos)
                    pos += 5
                    if n == 0:
                        node_endpoint.rack = None
                    else:
                        if n > 127:
                            n, pos = long_string_size(buf, pos, n)
                        end = pos + n - 1
                        node_endpoint.rack = buf[pos:end].decode()
                        pos = end
                    if buf[pos]:
                        pos = skip_tagged_fields(buf, pos)
                    else:
                        pos += 1
                    node_endpoints.append(node_endpoint)
                message.node_endpoints = node_endpoints
            else:
                pos = stop_2
            if pos != stop_2:
                raise wrong_tagged_size(tag)
    return message, pos


def _read_response_v13(buf: bytes, pos: int) -> tuple[ProduceResponse, int]:
    size = len(buf)
    message = new(ProduceResponse)
    message.node_endpoints = []
    n = buf[pos]
    pos += 1
    if not 0 < n < 128:
        n, pos = long_size(buf, pos, n)
    if (n - 1) * 18 > size - pos:
        raise too_many(n - 1)
    responses: list[TopicProduceResponse] = []
    for _ in range(1, n):
        topic_produce_response = new(TopicProduceResponse)
        topic_produce_response.name = ""
        topic_produce_response.topic_id, n = _gu.unpack_from(buf, pos)
        pos += 17
        if not 0 < n < 128:
            n, pos = long_size(buf, pos, n)
        if (n - 1) * 33 > size - pos:
            raise too_many(n - 1)
        partition_responses: list[PartitionProduceResponse] = []
        for _ in range(1, n):
            partition_produce_response = new(PartitionProduceResponse)
            partition_produce_response.current_leader = None
            (
                partition_produce_response.index,
                partition_produce_response.error_code,
                partition_produce_response.base_offset,
                partition_produce_response.log_append_time_ms,
                partition_produce_response.log_start_offset,
                n,
            ) = _ihqqqu.unpack_from(buf, pos)
            pos += 31
            if not 0 < n < 128:
                n, pos = long_size(buf, pos, n)
            if (n - 1) * 6 > size - pos:
                raise too_many(n - 1)
            record_errors: list[BatchIndexAndErrorMessage] = []
            for _ in range(1, n):
                batch_index_and_error_message = new(BatchIndexAndErrorMessage)
                batch_index_and_error_message.batch_index, n = _iu.unpack_from(buf, pos)
                pos += 5
                if n == 0:
                    batch_index_and_error_message.batch_index_error_message = None
                else:
                    if n > 127:
                        n, pos = long_string_size(buf, pos, n)
                    end = pos + n - 1
                    batch_index_and_error_message.batch_index_error_message = buf[pos:end].decode()
                    pos = end
                if buf[pos]:
                    pos = skip_tagged_fields(buf, pos)
                else:
                    pos += 1
                record_errors.append(batch_index_and_error_message)
            partition_produce_response.record_errors = record_errors
            n = buf[pos]
            pos += 1
            if n == 0:
                partition_produce_response.error_message = None
            else:
                if n > 127:
                    n, pos = long_string_size(buf, pos, n)
                end = pos + n - 1
                partition_produce_response.error_message = buf[pos:end].decode()
                pos = end
            if buf[pos] == 0:
                pos += 1
            else:
                tags, pos = tag_count(buf, pos)
                for _ in range(tags):
                    tag, pos, stop = tagged_field(buf, pos)
                    if tag == 0:
                        leader_id_and_epoch = new(LeaderIdAndEpoch)
                        leader_id_and_epoch.leader_id, leader_id_and_epoch.leader_epoch = _ii.unpack_from(buf, pos)
                        pos += 8
                        if buf[pos]:
                            pos = skip_tagged_fields(buf, pos)
                        else:
                            pos += 1
                        partition_produce_response.current_leader = leader_id_and_epoch
                    else:
                        pos = stop
                    if pos != stop:
                        raise wrong_tagged_size(tag)
            partition_responses.append(partition_produce_response)
        topic_produce_response.partition_responses = partition_responses
        if buf[pos]:
            pos = skip_tagged_fields(buf, pos)
        else:
            pos += 1
        responses.append(topic_produce_response)
    message.responses = responses
    (message.throttle_time_ms,) = _i.unpack_from(buf, pos)
    pos += 4
    if buf[pos] == 0:
        pos += 1
    else:
        tags_2, pos = tag_count(buf, pos)
        for _ in range(tags_2):
            tag, pos, stop_2 = tagged_field(buf, pos)
            if tag == 0:
                n = buf[pos]
                pos += 1
                if not 0 < n < 128:
                    n, pos = long_size(buf, pos, n)
                if (n - 1) * 11 > size - pos:
                    raise too_many(n - 1)
                node_endpoints: list[NodeEndpoint] = []
                for _ in range(1, n):
                    node_endpoint = new(NodeEndpoint)
                    node_endpoint.node_id, n = _iu.unpack_from(buf, pos)
                    pos += 5
                    if not 0 < n < 128:
                        n, pos = long_string_size(buf, pos, n)
                    end = pos + n - 1
                    node_endpoint.host = buf[pos:end].decode()
                    pos = end
                    node_endpoint.port, n = _iu.unpack_from(buf, pos)
                    pos += 5
                    if n == 0:
                        node_endpoint.rack = None
                    else:
                        if n > 127:
                            n, pos = long_string_size(buf, pos, n)
                        end = pos + n - 1
                        node_endpoint.rack = buf[pos:end].decode()
                        pos = end
                    if buf[pos]:
                        pos = skip_tagged_fields(buf, pos)
                    else:
                        pos += 1
                    node_endpoints.append(node_endpoint)
                message.node_endpoints = node_endpoints
            else:
                pos = stop_2
            if pos != stop_2:
                raise wrong_tagged_size(tag)
    return message, pos


def _write_response_v3_to_v4(out: bytearray, message: ProduceResponse, _inserts: Inserts) -> None:
    if message.node_endpoints:
        raise absent("node_endpoints")
    out += _i.pack(len(message.responses))
    for topic_produce_response in message.responses:
        encoded = topic_produce_response.name.encode()
        out += _h.pack(len(encoded))
        out += encoded
        out += _i.pack(len(topic_produce_response.partition_responses))
        for partition_produce_response in topic_produce_response.partition_responses:
            if partition_produce_response.current_leader is not None:
                raise absent("current_leader")
            out += _ihqq.pack(
                partition_produce_response.index,
                partition_produce_response.error_code,
                partition_produce_response.base_offset,
                partition_produce_response.log_append_time_ms,
            )
    out += _i.pack(message.throttle_time_ms)


def _write_response_v5_to_v7(out: bytearray, message: ProduceResponse, _inserts: Inserts) -> None:
    if message.node_endpoints:
        raise absent("node_endpoints")
    out += _i.pack(len(message.responses))
    for topic_produce_response in message.responses:
        encoded = topic_produce_response.name.encode()
        out += _h.pack(len(encoded))
        out += encoded
        out += _i.pack(len(topic_produce_response.partition_responses))
        for partition_produce_response in topic_produce_response.partition_responses:
            if partition_produce_response.current_leader is not None:
                raise absent("current_leader")
            out += _ihqqq.pack(
                partition_produce_response.index,
                partition_produce_response.error_code,
                partition_produce_response.base_offset,
                partition_produce_response.log_append_time_ms,
                partition_produce_response.log_start_offset,
            )
    out += _i.pack(message.throttle_time_ms)


def _write_response_v8(out: bytearray, message: ProduceResponse, _inserts: Inserts) -> None:
    if message.node_endpoints:
        raise absent("node_endpoints")
    out += _i.pack(len(message.responses))
    for topic_produce_response in message.responses:
        encoded = topic_produce_response.name.encode()
        out += _h.pack(len(encoded))
        out += encoded
        out += _i.pack(len(topic_produce_response.partition_responses))
        for partition_produce_response in topic_produce_response.partition_responses:
            if partition_produce_response.current_leader is not None:
                raise absent("current_leader")
            out += _ihqqqi.pack(
                partition_produce_response.index,
                partition_produce_response.error_code,
                partition_produce_response.base_offset,
                partition_produce_response.log_append_time_ms,
                partition_produce_response.log_start_offset,
                len(partition_produce_response.record_errors),
            )
            for batch_index_and_error_message in partition_produce_response.record_errors:
                out += _i.pack(batch_index_and_error_message.batch_index)
                if batch_index_and_error_message.batch_index_error_message is None:
                    out += b"\xff\xff"
                else:
                    encoded = batch_index_and_error_message.batch_index_error_message.encode()
                    out += _h.pack(len(encoded))
                    out += encoded
            if partition_produce_response.error_message is None:
                out += b"\xff\xff"
            else:
                encoded = partition_produce_response.error_message.encode()
                out += _h.pack(len(encoded))
                out += encoded
    out += _i.pack(message.throttle_time_ms)


def _write_response_v9(out: bytearray, message: ProduceResponse, _inserts: Inserts) -> None:
    if message.node_endpoints:
        raise absent("node_endpoints")
    n = len(message.responses) + 1
    if n < 128:
        out.append(n)
    else:
        put_uvarint(out, n)
    for topic_produce_response in message.responses:
        encoded = topic_produce_response.name.encode()
        n = len(encoded) + 1
        if n < 128:
            out.append(n)
        else:
            put_long_string_size(out, n)
        out += encoded
        n = len(topic_produce_response.partition_responses) + 1
        if n < 128:
            out.append(n)
        else:
            put_uvarint(out, n)
        for partition_produce_response in topic_produce_response.partition_responses:
            if partition_produce_response.current_leader is not None:
                raise absent("current_leader")
            out += _ihqqq.pack(
                partition_produce_response.index,
                partition_produce_response.error_code,
                partition_produce_response.base_offset,
                partition_produce_response.log_append_time_ms,
                partition_produce_response.log_start_offset,
            )
            n = len(partition_produce_response.record_errors) + 1
            if n < 128:
                out.append(n)
            else:
                put_uvarint(out, n)
            for batch_index_and_error_message in partition_produce_response.record_errors:
                out += _i.pack(batch_index_and_error_message.batch_index)
                if batch_index_and_error_message.batch_index_error_message is None:
                    out.append(0)
                else:
                    encoded = batch_index_and_error_message.batch_index_error_message.encode()
                    n = len(encoded) + 1
                    if n < 128:
                        out.append(n)
                    else:
                        put_long_string_size(out, n)
                    out += encoded
                out.append(0)
            if partition_produce_response.error_message is None:
                out.append(0)
            else:
                encoded = partition_produce_response.error_message.encode()
                n = len(encoded) + 1
                if n < 128:
                    out.append(n)
                else:
                    put_long_string_size(out, n)
                out += encoded
            out.append(0)
        out.append(0)
    out += _ix.pack(message.throttle_time_ms)


def _write_response_v10_to_v12(out: bytearray, message: ProduceResponse, _inserts: Inserts) -> None:
    n = len(message.responses) + 1
    if n < 128:
        out.append(n)
    else:
        put_uvarint(out, n)
    for topic_produce_response in message.responses:
        encoded = topic_produce_response.name.encode()
        n = len(encoded) + 1
        if n < 128:
            out.append(n)
        else:
            put_long_string_size(out, n)
        out += encoded
        n = len(topic_produce_response.partition_responses) + 1
        if n < 128:
            out.append(n)
        else:
            put_uvarint(out, n)
        for partition_produce_response in topic_produce_response.partition_responses:
            out += _ihqqq.pack(
                partition_produce_response.index,
                partition_produce_response.error_code,
                partition_produce_response.base_offset,
                partition_produce_response.log_append_time_ms,
                partition_produce_response.log_start_offset,
            )
            n = len(partition_produce_response.record_errors) + 1
            if n < 128:
                out.append(n)
            else:
                put_uvarint(out, n)
            for batch_index_and_error_message in partition_produce_response.record_errors:
                out += _i.pack(batch_index_and_error_message.batch_index)
                if batch_index_and_error_message.batch_index_error_message is None:
                    out.append(0)
                else:
                    encoded = batch_index_and_error_message.batch_index_error_message.encode()
                    n = len(encoded) + 1
                    if n < 128:
                        out.append(n)
                    else:
                        put_long_string_size(out, n)
                    out += encoded
                out.append(0)
            if partition_produce_response.error_message is None:
                out.append(0)
            else:
                encoded = partition_produce_response.error_message.encode()
                n = len(encoded) + 1
                if n < 128:
                    out.append(n)
                else:
                    put_long_string_size(out, n)
                out += encoded
            if partition_produce_response.current_leader is not None:
                out.append(1)
                tagged = bytearray()
                leader_id_and_epoch = partition_produce_response.current_leader
                tagged += _iix.pack(leader_id_and_epoch.leader_id, leader_id_and_epoch.leader_epoch)
                put_tagged_field(out, 0, tagged)
            else:
                out.append(0)
        out.append(0)
    out += _i.pack(message.throttle_time_ms)
    if message.node_endpoints:
        out.append(1)
        tagged_2 = bytearray()
        n = len(message.node_endpoints) + 1
        if n < 128:
            tagged_2.append(n)
        else:
            put_uvarint(tagged_2, n)
        for node_endpoint in message.node_endpoints:
            encoded = node_endpoint.host.encode()
            tagged_2 += _i.pack(node_endpoint.node_id)
            n = len(encoded) + 1
            if n < 128:
                tagged_2.append(n)
            else:
                put_long_string_size(tagged_2, n)
            tagged_2 += encoded
            tagged_2 += _i.pack(node_endpoint.port)
            if node_endpoint.rack is None:
                tagged_2.append(0)
            else:
                encoded = node_endpoint.rack.encode()
                n = len(encoded) + 1
                if n < 128:
                    tagged_2.append(n)
                else:
                    put_long_string_size(tagged_2, n)
                tagged_2 += encoded
            tagged_2.append(0)
        put_tagged_field(out, 0, tagged_2)
    else:
        out.append(0)


def _write_response_v13(out: bytearray, message: ProduceResponse, _inserts: Inserts) -> None:
    n = len(message.responses) + 1
    if n < 128:
        out.append(n)
    else:
        put_uvarint(out, n)
    for topic_produce_response in message.responses:
        if len(topic_produce_response.topic_id) != 16:
            raise wrong_uuid("topic_id")
        out += _g.pack(topic_produce_response.topic_id)
        n = len(topic_produce_response.partition_responses) + 1
        if n < 128:
            out.append(n)
        else:
            put_uvarint(out, n)
        for partition_produce_response in topic_produce_response.partition_responses:
            out += _ihqqq.pack(
                partition_produce_response.index,
                partition_produce_response.error_code,
                partition_produce_response.base_offset,
                partition_produce_response.log_append_time_ms,
                partition_produce_response.log_start_offset,
            )
            n = len(partition_produce_response.record_errors) + 1
            if n < 128:
                out.append(n)
            else:
                put_uvarint(out, n)
            for batch_index_and_error_message in partition_produce_response.record_errors:
                out += _i.pack(batch_index_and_error_message.batch_index)
                if batch_index_and_error_message.batch_index_error_message is None:
                    out.append(0)
                else:
                    encoded = batch_index_and_error_message.batch_index_error_message.encode()
                    n = len(encoded) + 1
                    if n < 128:
                        out.append(n)
                    else:
                        put_long_string_size(out, n)
                    out += encoded
                out.append(0)
            if partition_produce_response.error_message is None:
                out.append(0)
            else:
                encoded = partition_produce_response.error_message.encode()
                n = len(encoded) + 1
                if n < 128:
                    out.append(n)
                else:
                    put_long_string_size(out, n)
                out += encoded
            if partition_produce_response.current_leader is not None:
                out.append(1)
                tagged = bytearray()
                leader_id_and_epoch = partition_produce_response.current_leader
                tagged += _iix.pack(leader_id_and_epoch.leader_id, leader_id_and_epoch.leader_epoch)
                put_tagged_field(out, 0, tagged)
            else:
                out.append(0)
        out.append(0)
    out += _i.pack(message.throttle_time_ms)
    if message.node_endpoints:
        out.append(1)
        tagged_2 = bytearray()
        n = len(message.node_endpoints) + 1
        if n < 128:
            tagged_2.append(n)
        else:
            put_uvarint(tagged_2, n)
        for node_endpoint in message.node_endpoints:
            encoded = node_endpoint.host.encode()
            tagged_2 += _i.pack(node_endpoint.node_id)
            n = len(encoded) + 1
            if n < 128:
                tagged_2.append(n)
            else:
                put_long_string_size(tagged_2, n)
            tagged_2 += encoded
            tagged_2 += _i.pack(node_endpoint.port)
            if node_endpoint.rack is None:
                tagged_2.append(0)
            else:
                encoded = node_endpoint.rack.encode()
                n = len(encoded) + 1
                if n < 128:
                    tagged_2.append(n)
                else:
                    put_long_string_size(tagged_2, n)
                tagged_2 += encoded
            tagged_2.append(0)
        put_tagged_field(out, 0, tagged_2)
    else:
        out.append(0)


REQUEST: MessageCodec[ProduceRequest] = MessageCodec(
    "ProduceRequest",
    3,
    (
        _read_request_v3_to_v8,
        _read_request_v3_to_v8,
        _read_request_v3_to_v8,
        _read_request_v3_to_v8,
        _read_request_v3_to_v8,
        _read_request_v3_to_v8,
        _read_request_v9_to_v12,
        _read_request_v9_to_v12,
        _read_request_v9_to_v12,
        _read_request_v9_to_v12,
        _read_request_v13,
    ),
    (
        _write_request_v3_to_v8,
        _write_request_v3_to_v8,
        _write_request_v3_to_v8,
        _write_request_v3_to_v8,
        _write_request_v3_to_v8,
        _write_request_v3_to_v8,
        _write_request_v9_to_v12,
        _write_request_v9_to_v12,
        _write_request_v9_to_v12,
        _write_request_v9_to_v12,
        _write_request_v13,
    ),
    holds_views=True,
)

RESPONSE: MessageCodec[ProduceResponse] = MessageCodec(
    "ProduceResponse",
    3,
    (
        _read_response_v3_to_v4,
        _read_response_v3_to_v4,
        _read_response_v5_to_v7,
        _read_response_v5_to_v7,
        _read_response_v5_to_v7,
        _read_response_v8,
        _read_response_v9,
        _read_response_v10_to_v12,
        _read_response_v10_to_v12,
        _read_response_v10_to_v12,
        _read_response_v13,
    ),
    (
        _write_response_v3_to_v4,
        _write_response_v3_to_v4,
        _write_response_v5_to_v7,
        _write_response_v5_to_v7,
        _write_response_v5_to_v7,
        _write_response_v8,
        _write_response_v9,
        _write_response_v10_to_v12,
        _write_response_v10_to_v12,
        _write_response_v10_to_v12,
        _write_response_v13,
    ),
    holds_views=False,
)
