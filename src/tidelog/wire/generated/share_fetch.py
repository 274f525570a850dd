"""ShareFetch: API key 78, v1 to v2."""
# Made by tools/wiregen from messages/share_fetch.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import Codec
from tidelog.wire.primitives import EMPTY, NO_UUID, Inserts, Records, Struct, new
from tidelog.wire.reading import long_size, long_string_size, skip_tagged_fields, some_numbers, too_many
from tidelog.wire.writing import absent, packed_numbers, put_long_string_size, put_uvarint, wrong_uuid

_g = struct.Struct(">16s")
_h = struct.Struct(">h")
_i = struct.Struct(">i")
_gu = struct.Struct(">16sB")
_hu = struct.Struct(">hB")
_iu = struct.Struct(">iB")
_ih = struct.Struct(">ih")
_ii = struct.Struct(">ii")
_qq = struct.Struct(">qq")
_ihu = struct.Struct(">ihB")
_iix = struct.Struct(">iix")
_qqu = struct.Struct(">qqB")
_qqh = struct.Struct(">qqh")
_qqhx = struct.Struct(">qqhx")
_iiiiii = struct.Struct(">iiiiii")
_iiiiiiu = struct.Struct(">iiiiiiB")
_iiiiiibt = struct.Struct(">iiiiiib?")
_iiiiiibtu = struct.Struct(">iiiiiib?B")


class AcknowledgementBatch(Struct):
    __slots__ = (
        "first_offset",
        "last_offset",
        "acknowledge_types",
    )

    def __init__(
        self,
        first_offset: int = 0,
        last_offset: int = 0,
        acknowledge_types: list[int] = EMPTY,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.acknowledge_types = [] if acknowledge_types is EMPTY else acknowledge_types


class FetchPartition(Struct):
    __slots__ = (
        "partition_index",
        "acknowledgement_batches",
    )

    def __init__(
        self,
        partition_index: int = 0,
        acknowledgement_batches: list[AcknowledgementBatch] = EMPTY,
    ) -> None:
        self.partition_index = partition_index
        self.acknowledgement_batches = [] if acknowledgement_batches is EMPTY else acknowledgement_batches


class FetchTopic(Struct):
    __slots__ = (
        "topic_id",
        "partitions",
    )

    def __init__(
        self,
        topic_id: bytes = NO_UUID,
        partitions: list[FetchPartition] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class ForgottenTopic(Struct):
    __slots__ = (
        "topic_id",
        "partitions",
    )

    def __init__(
        self,
        topic_id: bytes = NO_UUID,
        partitions: list[int] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class ShareFetchRequest(Struct):
    __slots__ = (
        "group_id",
        "member_id",
        "share_session_epoch",
        "max_wait_ms",
        "min_bytes",
        "max_bytes",
        "max_records",
        "batch_size",
        "share_acquire_mode",
        "is_renew_ack",
        "topics",
        "forgotten_topics_data",
    )

    def __init__(
        self,
        group_id: str | None = None,
        member_id: str | None = "",
        share_session_epoch: int = 0,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        max_records: int = 0,
        batch_size: int = 0,
        share_acquire_mode: int = 0,  # 2+
        is_renew_ack: bool = False,  # 2+
        topics: list[FetchTopic] = EMPTY,
        forgotten_topics_data: list[ForgottenTopic] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.share_session_epoch = share_session_epoch
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.max_records = max_records
        self.batch_size = batch_size
        self.share_acquire_mode = share_acquire_mode
        self.is_renew_ack = is_renew_ack
        self.topics = [] if topics is EMPTY else topics
        self.forgotten_topics_data = [] if forgotten_topics_data is EMPTY else forgotten_topics_data


class LeaderIdAndEpoch(Struct):
    __slots__ = (
        "leader_id",
        "leader_epoch",
    )

    def __init__(
        self,
        leader_id: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


class AcquiredRecords(Struct):
    __slots__ = (
        "first_offset",
        "last_offset",
        "delivery_count",
    )

    def __init__(
        self,
        first_offset: int = 0,
        last_offset: int = 0,
        delivery_count: int = 0,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.delivery_count = delivery_count


class PartitionData(Struct):
    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
        "acknowledge_error_code",
        "acknowledge_error_message",
        "current_leader",
        "records",
        "acquired_records",
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acknowledge_error_code: int = 0,
        acknowledge_error_message: str | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        records: Records = b"",
        acquired_records: list[AcquiredRecords] = EMPTY,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.acknowledge_error_code = acknowledge_error_code
        self.acknowledge_error_message = acknowledge_error_message
        self.current_leader = LeaderIdAndEpoch() if current_leader is None else current_leader
        self.records = records
        self.acquired_records = [] if acquired_records is EMPTY else acquired_records


class ShareFetchableTopicResponse(Struct):
    __slots__ = (
        "topic_id",
        "partitions",
    )

    def __init__(
        self,
        topic_id: bytes = NO_UUID,
        partitions: list[PartitionData] = EMPTY,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class NodeEndpoint(Struct):
    __slots__ = (
        "node_id",
        "host",
        "port",
        "rack",
    )

    def __init__(
        self,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack


class ShareFetchResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "acquisition_lock_timeout_ms",
        "responses",
        "node_endpoints",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,
        responses: list[ShareFetchableTopicResponse] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.acquisition_lock_timeout_ms = acquisition_lock_timeout_ms
        self.responses = [] if responses is EMPTY else responses
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints


def _read_request_v1(buf: bytes, pos: int) -> tuple[ShareFetchRequest, int]:
    size = len(buf)
    message = new(ShareFetchRequest)
    message.share_acquire_mode = 0
    message.is_renew_ack = False
    n = buf[pos]
    pos += 1
    if n == 0:
        message.group_id = None
    else:
        if n > 127:
            n, pos = long_string_size(buf, pos, n)
        end = pos + n - 1
        message.group_id = buf[pos:end].decode()
        pos = end
    n = buf[pos]
    pos += 1
    if n == 0:
        message.member_id = None
    else:
        if n > 127:
            n, pos = long_string_size(buf, pos, n)
        end = pos + n - 1
        message.member_id = buf[pos:end].decode()
        pos = end
    (
        message.share_session_epoch,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.max_records,
        message.batch_size,
        n,
    ) = _iiiiiiu.unpack_from(buf, pos)
    pos += 25
    if not 0 < n < 128:
        n, pos = long_size(buf, pos, n)
    if (n - 1) * 18 > size - pos:
        raise too_many(n - 1)
    topics: list[FetchTopic] = []
    for _ in range(1, n):
        fetch_topic = new(FetchTopic)
        fetch_topic.topic_id, n = _gu.unpack_from(buf, pos)
        pos += 17
        if not 0 < n < 128:
            n, pos = long_size(buf, pos, n)
        if (n - 1) * 6 > size - pos:
            raise too_many(n - 1)
        partitions: list[FetchPartition] = []
        for _ in range(1, n):
            fetch_partition = new(FetchPartition)
            fetch_partition.partition_index, n = _iu.unpack_from(buf, pos)
            pos += 5
            if not 0 < n < 128:
                n, pos = long_size(buf, pos, n)
            if (n - 1) * 18 > size - pos:
                raise too_many(n - 1)
            acknowledgement_batches: list[AcknowledgementBatch] = []
            for _ in range(1, n):
                acknowledgement_batch = new(AcknowledgementBatch)
                acknowledgement_batch.first_offset, acknowledgement_batch.last_offset, n = _qqu.unpack_from(buf, pos)
                pos += 17
                if not 0 < n < 128:
                    n, pos = long_size(buf, pos, n)
                acknowledgement_batch.acknowledge_types, pos = some_numbers(buf, pos, n - 1, "b")
                if buf[pos]:
                    pos = skip_tagged_fields(buf, pos)
                else:
                    pos += 1
                acknowledgement_batches.append(acknowledgement_batch)
            fetch_partition.acknowledgement_batches = acknowledgement_batches
            if buf[pos]:
                pos = skip_tagged_fields(buf, pos)
            else:
                pos += 1
            partitions.append(fetch_partition)
        fetch_topic.partitions = partitions
        if buf[pos]:
            pos = skip_tagged_fields(buf, pos)
        else:
            pos += 1
        topics.append(fetch_topic)
    message.topics = topics
    n = buf[pos]
    pos += 1
    if not 0 < n < 128:
        n, pos = long_size(buf, pos, n)
    if (n - 1) * 18 > size - pos:
        raise too_many(n - 1)
    forgotten_topics_data: list[ForgottenTopic] = []
    for _ in range(1, n):
        forgotten_topic = new(ForgottenTopic)
        forgotten_topic.topic_id, n = _gu.unpack_from(buf, pos)
        pos += 17
        if not 0 < n < 128:
            n, pos = long_size(buf, pos, n)
        forgotten_topic.partitions, pos = some_numbers(buf, pos, n - 1, "i")
        if buf[pos]:
            pos = skip_tagged_fields(buf, pos)
        else:
            pos += 1
        forgotten_topics_data.append(forgotten_topic)
    message.forgotten_topics_data = forgotten_topics_data
    if buf[pos]:
        pos = skip_tagged_fields(buf, pos)
    else:
        pos += 1
    return message, pos


def _read_request_v2(buf: bytes, pos: int) -> tuple[ShareFetchRequest, int]:
    size = len(buf)
    message = new(ShareFetchRequest)
    n = buf[pos]
    pos += 1
    if n == 0:
        message.group_id = None
    else:
        if n > 127:
            n, pos = long_string_size(buf, pos, n)
        end = pos + n - 1
        message.group_id = buf[pos:end].decode()
        pos = end
    n = buf[pos]
    pos += 1
    if n == 0:
        message.member_id = None
    else:
        if n > 127:
            n, pos = long_string_size(buf, pos, n)
        end = pos + n - 1
        message.member_id = buf[pos:end].decode()
        pos = end
    (
        message.share_session_epoch,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.max_records,
        message.batch_size,
        message.share_acquire_mode,
        message.is_renew_ack,
        n,
    ) = _iiiiiibtu.unpack_from(buf, pos)
    pos += 27
    if not 0 < n < 128:
        n, pos = long_size(buf, pos, n)
    if (n - 1) * 18 > size - pos:
        raise too_many(n - 1)
    topics: list[FetchTopic] = []
    for _ in range(1, n):
        fetch_topic = new(FetchTopic)
        fetch_topic.topic_id, n = _gu.unpack_from(buf, pos)
        pos += 17
        if not 0 < n < 128:
            n, pos = long_size(buf, pos, n)
        if (n - 1) * 6 > size - pos:
            raise too_many(n - 1)
        partitions: list[FetchPartition] = []
        for _ in range(1, n):
            fetch_partition = new(FetchPartition)
            fetch_partition.partition_index, n = _iu.unpack_from(buf, pos)
            pos += 5
            if not 0 < n < 128:
                n, pos = long_size(buf, pos, n)
            if (n - 1) * 18 > size - pos:
                raise too_many(n - 1)
            acknowledgement_batches: list[AcknowledgementBatch] = []
            for _ in range(1, n):
                acknowledgement_batch = new(AcknowledgementBatch)
                acknowledgement_batch.first_offset, acknowledgement_batch.last_offset, n = _qqu.unpack_from(buf, pos)
                pos += 17
                if not 0 < n < 128:
                    n, pos = long_size(buf, pos, n)
                acknowledgement_batch.acknowledge_types, pos = some_numbers(buf, pos, n - 1, "b")
                if buf[pos]:
                    pos = skip_tagged_fields(buf, pos)
                else:
                    pos += 1
                acknowledgement_batches.append(acknowledgement_batch)
            fetch_partition.acknowledgement_batches = acknowledgement_batches
            if buf[pos]:
                pos = skip_tagged_fields(buf, pos)
            else:
                pos += 1
            partitions.append(fetch_partition)
        fetch_topic.partitions = partitions
        if buf[pos]:
            pos = skip_tagged_fields(buf, pos)
        else:
            pos += 1
        topics.append(fetch_topic)
    message.topics = topics
    n = buf[pos]
    pos += 1
    if not 0 < n < 128:
        n, pos = long_size(buf, pos, n)
    if (n - 1) * 18 > size - pos:
        raise too_many(n - 1)
    forgotten_topics_data: list[ForgottenTopic] = []
    for _ in range(1, n):
        forgotten_topic = new(ForgottenTopic)
        forgotten_topic.topic_id, n = _gu.unpack_from(buf, pos)
        pos += 17
        if not 0 < n < 128:
            n, pos = long_size(buf, pos, n)
        forgotten_topic.partitions, pos = some_numbers(buf, pos, n - 1, "i")
        if buf[pos]:
            pos = skip_tagged_fields(buf, pos)
        else:
            pos += 1
        forgotten_topics_data.append(forgotten_topic)
    message.forgotten_topics_data = forgotten_topics_data
    if buf[pos]:
        pos = skip_tagged_fields(buf, pos)
    else:
        pos += 1
    return message, pos


def _write_request_v1(out: bytearray, message: ShareFetchRequest, _inserts: Inserts) -> None:
    if message.is_renew_ack:
        raise absent("is_renew_ack")
    if message.group_id is None:
        out.append(0)
    else:
        encoded = message.group_id.encode()
        n = len(encoded) + 1
        if n < 128:
            out.append(n)
        else:
            put_long_string_size(out, n)
        out += encoded
    if message.member_id is None:
        out.append(0)
    else:
        encoded = message.member_id.encode()
        n = len(encoded) + 1
        if n < 128:
            out.append(n)
        else:
            put_long_string_size(out, n)
        out += encoded
    out += _iiiiii.pack(
        message.share_session_epoch,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.max_records,
        message.batch_size,
    )
    n = len(message.topics) + 1
    if n < 128:
        out.append(n)
    else:
        put_uvarint(out, n)
    for fetch_topic in message.topics:
        if len(fetch_topic.topic_id) != 16:
            raise wrong_uuid("topic_id")
        out += _g.pack(fetch_topic.topic_id)
        n = len(fetch_topic.partitions) + 1
        if n < 128:
            out.append(n)
        else:
            put_uvarint(out, n)
        for fetch_partition in fetch_topic.partitions:
            out += _i.pack(fetch_partition.partition_index)
            n = len(fetch_partition.acknowledgement_batches) + 1
            if n < 128:
                out.append(n)
            else:
                put_uvarint(out, n)
            for acknowledgement_batch in fetch_partition.acknowledgement_batches:
                out += _qq.pack(acknowledgement_batch.first_offset, acknowledgement_batch.last_offset)
                n = len(acknowledgement_batch.acknowledge_types) + 1
                if n < 128:
                    out.append(n)
                else:
                    put_uvarint(out, n)
                out += packed_numbers(acknowledgement_batch.acknowledge_types, "b")
                out.append(0)
            out.append(0)
        out.append(0)
    n = len(message.forgotten_topics_data) + 1
    if n < 128:
        out.append(n)
    else:
        put_uvarint(out, n)
    for forgotten_topic in message.forgotten_topics_data:
        if len(forgotten_topic.topic_id) != 16:
            raise wrong_uuid("topic_id")
        out += _g.pack(forgotten_topic.topic_id)
        n = len(forgotten_topic.partitions) + 1
        if n < 128:
            out.append(n)
        else:
            put_uvarint(out, n)
        out += packed_numbers(forgotten_topic.partitions, "i")
        out.append(0)
    out.append(0)


def _write_request_v2(out: bytearray, message: ShareFetchRequest, _inserts: Inserts) -> None:
    if message.group_id is None:
        out.append(0)
    else:
        encoded = message.group_id.encode()
        n = len(encoded) + 1
        if n < 128:
            out.append(n)
        else:
            put_long_string_size(out, n)
        out += encoded
    if message.member_id is None:
        out.append(0)
    else:
        encoded = message.member_id.encode()
        n = len(encoded) + 1
        if n < 128:
            out.append(n)
        else:
            put_long_string_size(out, n)
        out += encoded
    out += _iiiiiibt.pack(
        message.share_session_epoch,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.max_records,
        message.batch_size,
        message.share_acquire_mode,
        message.is_renew_ack,
    )
    n = len(message.topics) + 1
    if n < 128:
        out.append(n)
    else:
        put_uvarint(out, n)
    for fetch_topic in message.topics:
        if len(fetch_topic.topic_id) != 16:
            raise wrong_uuid("topic_id")
        out += _g.pack(fetch_topic.topic_id)
        n = len(fetch_topic.partitions) + 1
        if n < 128:
            out.append(n)
        else:
            put_uvarint(out, n)
        for fetch_partition in fetch_topic.partitions:
            out += _i.pack(fetch_partition.partition_index)
            n = len(fetch_partition.acknowledgement_batches) + 1
            if n < 128:
                out.append(n)
            else:
                put_uvarint(out, n)
            for acknowledgement_batch in fetch_partition.acknowledgement_batches:
                out += _qq.pack(acknowledgement_batch.first_offset, acknowledgement_batch.last_offset)
                n = len(acknowledgement_batch.acknowledge_types) + 1
                if n < 128:
                    out.append(n)
                else:
                    put_uvarint(out, n)
                out += packed_numbers(acknowledgement_batch.acknowledge_types, "b")
                out.append(0)
            out.append(0)
        out.append(0)
    n = len(message.forgotten_topics_data) + 1
    if n < 128:
        out.append(n)
    else:
        put_uvarint(out, n)
    for forgotten_topic in message.forgotten_topics_data:
        if len(forgotten_topic.topic_id) != 16:
            raise wrong_uuid("topic_id")
        out += _g.pack(forgotten_topic.topic_id)
        n = len(forgotten_topic.partitions) + 1
        if n < 128:
            out.append(n)
        else:
            put_uvarint(out, n)
        out += packed_numbers(forgotten_topic.partitions, "i")
        out.append(0)
    out.append(0)


def _read_response_acquired_records_v1_to_v2(buf: memoryview, pos: int) -> tuple[AcquiredRecords, int]:
    acquired_records = new(AcquiredRecords)
    acquired_records.first_offset, acquired_records.last_offset, acquired_records.delivery_count = _qqh.unpack_from(
        buf, pos
    )
    pos += 18
    if buf[pos]:
        pos = skip_tagged_fields(buf, pos)
    else:
        pos += 1
    return acquired_records, pos


def _read_response_v1_to_v2(buf: memoryview, pos: int) -> tuple[ShareFetchResponse, int]:
    size = len(buf)
    message = new(ShareFetchResponse)
    message.throttle_time_ms, message.error_code, n = _ihu.unpack_from(buf, pos)
    pos += 7
    if n == 0:
        message.error_message = None
    else:
        if n > 127:
            n, pos = long_string_size(buf, pos, n)
        end = pos + n - 1
        message.error_message = buf[pos:end].tobytes().decode()
        pos = end
    message.acquisition_lock_timeout_ms, n = _iu.unpack_from(buf, pos)
    pos += 5
    if not 0 < n < 128:
        n, pos = long_size(buf, pos, n)
    if (n - 1) * 18 > size - pos:
        raise too_many(n - 1)
    responses: list[ShareFetchableTopicResponse] = []
    for _ in range(1, n):
        share_fetchable_topic_response = new(ShareFetchableTopicResponse)
        share_fetchable_topic_response.topic_id, n = _gu.unpack_from(buf, pos)
        pos += 17
        if not 0 < n < 128:
            n, pos = long_size(buf, pos, n)
        if (n - 1) * 22 > size - pos:
            raise too_many(n - 1)
        partitions: list[PartitionData] = []
        for _ in range(1, n):
            partition_data = new(PartitionData)
            partition_data.partition_index, partition_data.error_code, n = _ihu.unpack_from(buf, pos)
            pos += 7
            if n == 0:
                partition_data.error_message = None
            else:
                if n > 127:
                    n, pos = long_string_size(buf, pos, n)
                end = pos + n - 1
                partition_data.error_message = buf[pos:end].tobytes().decode()
                pos = end
            partition_data.acknowledge_error_code, n = _hu.unpack_from(buf, pos)
            pos += 3
            if n == 0:
                partition_data.acknowledge_error_message = None
            else:
                if n > 127:
                    n, pos = long_string_size(buf, pos, n)
                end = pos + n - 1
                partition_data.acknowledge_error_message = buf[pos:end].tobytes().decode()
                pos = end
            leader_id_and_epoch = new(LeaderIdAndEpoch)
            leader_id_and_epoch.leader_id, leader_id_and_epoch.leader_epoch = _ii.unpack_from(buf, pos)
            pos += 8
            if buf[pos]:
                pos = skip_tagged_fields(buf, pos)
            else:
                pos += 1
            partition_data.current_leader = leader_id_and_epoch
            n = buf[pos]
            pos += 1
            if not 0 < n < 128:
                n, pos = long_size(buf, pos, n)
            end = pos + n - 1
            partition_data.records = buf[pos:end]
            pos = end
            n = buf[pos]
            pos += 1
            if not 0 < n < 128:
                n, pos = long_size(buf, pos, n)
            if (n - 1) * 19 > size - pos:
                raise too_many(n - 1)
            acquired_records: list[AcquiredRecords] = []
            end = pos + (n - 1) * 19
            if buf[pos + 18 : end : 19].tobytes().count(0) == n - 1:
                for first_offset, last_offset, delivery_count in _qqhx.iter_unpack(buf[pos:end]):
                    acquired_records_2 = new(AcquiredRecords)
                    acquired_records_2.first_offset = first_offset
                    acquired_records_2.last_offset = last_offset
                    acquired_records_2.delivery_count = delivery_count
                    acquired_records.append(acquired_records_2)
                pos = end
            else:
                for _ in range(1, n):
                    acquired_records_2, pos = _read_response_acquired_records_v1_to_v2(buf, pos)
                    acquired_records.append(acquired_records_2)
            partition_data.acquired_records = acquired_records
            if buf[pos]:
                pos = skip_tagged_fields(buf, pos)
            else:
                pos += 1
            partitions.append(partition_data)
        share_fetchable_topic_response.partitions = partitions
        if buf[pos]:
            pos = skip_tagged_fields(buf, pos)
        else:
            pos += 1
        responses.append(share_fetchable_topic_response)
    message.responses = responses
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
        node_endpoint.host = buf[pos:end].tobytes().decode()
        pos = end
        node_endpoint.port, n = _iu.unpack_from(buf, pos)
        pos += 5
        if n == 0:
            node_endpoint.rack = None
        else:
            if n > 127:
                n, pos = long_string_size(buf, pos, n)
            end = pos + n - 1
            node_endpoint.rack = buf[pos:end].tobytes().decode()
            pos = end
        if buf[pos]:
            pos = skip_tagged_fields(buf, pos)
        else:
            pos += 1
        node_endpoints.append(node_endpoint)
    message.node_endpoints = node_endpoints
    if buf[pos]:
        pos = skip_tagged_fields(buf, pos)
    else:
        pos += 1
    return message, pos


def _write_response_v1_to_v2(out: bytearray, message: ShareFetchResponse, inserts: Inserts) -> None:
    out += _ih.pack(message.throttle_time_ms, message.error_code)
    if message.error_message is None:
        out.append(0)
    else:
        encoded = message.error_message.encode()
        n = len(encoded) + 1
        if n < 128:
            out.append(n)
        else:
            put_long_string_size(out, n)
        out += encoded
    out += _i.pack(message.acquisition_lock_timeout_ms)
    n = len(message.responses) + 1
    if n < 128:
        out.append(n)
    else:
        put_uvarint(out, n)
    for share_fetchable_topic_response in message.responses:
        if len(share_fetchable_topic_response.topic_id) != 16:
            raise wrong_uuid("topic_id")
        out += _g.pack(share_fetchable_topic_response.topic_id)
        n = len(share_fetchable_topic_response.partitions) + 1
        if n < 128:
            out.append(n)
        else:
            put_uvarint(out, n)
        for partition_data in share_fetchable_topic_response.partitions:
            out += _ih.pack(partition_data.partition_index, partition_data.error_code)
            if partition_data.error_message is None:
                out.append(0)
            else:
                encoded = partition_data.error_message.encode()
                n = len(encoded) + 1
                if n < 128:
                    out.append(n)
                else:
                    put_long_string_size(out, n)
                out += encoded
            out += _h.pack(partition_data.acknowledge_error_code)
            if partition_data.acknowledge_error_message is None:
                out.append(0)
            else:
                encoded = partition_data.acknowledge_error_message.encode()
                n = len(encoded) + 1
                if n < 128:
                    out.append(n)
                else:
                    put_long_string_size(out, n)
                out += encoded
            leader_id_and_epoch = partition_data.current_leader
            out += _iix.pack(leader_id_and_epoch.leader_id, leader_id_and_epoch.leader_epoch)
            n = len(partition_data.records) + 1
            if n < 128:
                out.append(n)
            else:
                put_uvarint(out, n)
            if partition_data.records:
                inserts.append((len(out), partition_data.records))
            n = len(partition_data.acquired_records) + 1
            if n < 128:
                out.append(n)
            else:
                put_uvarint(out, n)
            for acquired_records in partition_data.acquired_records:
                out += _qqhx.pack(
                    acquired_records.first_offset, acquired_records.last_offset, acquired_records.delivery_count
                )
            out.append(0)
        out.append(0)
    n = len(message.node_endpoints) + 1
    if n < 128:
        out.append(n)
    else:
        put_uvarint(out, n)
    for node_endpoint in message.node_endpoints:
        encoded = node_endpoint.host.encode()
        out += _i.pack(node_endpoint.node_id)
        n = len(encoded) + 1
        if n < 128:
            out.append(n)
        else:
            put_long_string_size(out, n)
        out += encoded
        out += _i.pack(node_endpoint.port)
        if node_endpoint.rack is None:
            out.append(0)
        else:
            encoded = node_endpoint.rack.encode()
            n = len(encoded) + 1
            if n < 128:
                out.append(n)
            else:
                put_long_string_size(out, n)
            out += encoded
        out.append(0)
    out.append(0)


REQUEST: Codec[ShareFetchRequest] = Codec(
    "ShareFetchRequest",
    1,
    (
        _read_request_v1,
        _read_request_v2,
    ),
    (
        _write_request_v1,
        _write_request_v2,
    ),
    holds_views=False,
)

RESPONSE: Codec[ShareFetchResponse] = Codec(
    "ShareFetchResponse",
    1,
    (
        _read_response_v1_to_v2,
        _read_response_v1_to_v2,
    ),
    (
        _write_response_v1_to_v2,
        _write_response_v1_to_v2,
    ),
    holds_views=True,
)
