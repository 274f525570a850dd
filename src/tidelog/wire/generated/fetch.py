"""Fetch: API key 1, v4 to v18."""
# Made by tools/wiregen from messages/fetch.txt; do not edit.
# ruff: noqa: RUF023

from __future__ import annotations

import struct

from tidelog.wire.codec import MessageCodec
from tidelog.wire.primitives import EMPTY, NO_UUID, Inserts, Records, Struct, new
from tidelog.wire.reading import (
    long_size,
    long_string_size,
    null_refused,
    skip_tagged_fields,
    some_numbers,
    spend,
    tag_count,
    tagged_field,
    too_many,
    wrong_tagged_size,
)
from tidelog.wire.writing import (
    absent,
    packed_numbers,
    put_long_string_size,
    put_tagged_field,
    put_uvarint,
    wrong_uuid,
)

_g = struct.Struct(">16s")
_h = struct.Struct(">h")
_i = struct.Struct(">i")
_q = struct.Struct(">q")
_gu = struct.Struct(">16sB")
_iu = struct.Struct(">iB")
_ii = struct.Struct(">ii")
_iq = struct.Struct(">iq")
_qi = struct.Struct(">qi")
_qq = struct.Struct(">qq")
_ihi = struct.Struct(">ihi")
_iix = struct.Struct(">iix")
_iqi = struct.Struct(">iqi")
_iqx = struct.Struct(">iqx")
_qix = struct.Struct(">qix")
_qqx = struct.Struct(">qqx")
_ihiu = struct.Struct(">ihiB")
_ihii = struct.Struct(">ihii")
_ihqq = struct.Struct(">ihqq")
_iqqi = struct.Struct(">iqqi")
_ihqqi = struct.Struct(">ihqqi")
_ihqqq = struct.Struct(">ihqqq")
_iiqqi = struct.Struct(">iiqqi")
_ihqqqu = struct.Struct(">ihqqqB")
_ihqqqi = struct.Struct(">ihqqqi")
_iiibii = struct.Struct(">iiibii")
_iiiibi = struct.Struct(">iiiibi")
_iiqiqi = struct.Struct(">iiqiqi")
_iiibiiu = struct.Struct(">iiibiiB")
_iiiibii = struct.Struct(">iiiibii")
_iiqiqix = struct.Struct(">iiqiqix")
_iiiibiiu = struct.Struct(">iiiibiiB")
_iiiibiii = struct.Struct(">iiiibiii")


class ReplicaState(Struct):
    __slots__ = (
        "replica_id",
        "replica_epoch",
    )

    def __init__(
        self,
        replica_id: int = -1,  # 15+
        replica_epoch: int = -1,  # 15+
    ) -> None:
        self.replica_id = replica_id
        self.replica_epoch = replica_epoch


class FetchPartition(Struct):
    __slots__ = (
        "partition",
        "current_leader_epoch",
        "fetch_offset",
        "last_fetched_epoch",
        "log_start_offset",
        "partition_max_bytes",
        "replica_directory_id",
        "high_watermark",
    )

    def __init__(
        self,
        partition: int = 0,
        current_leader_epoch: int = -1,  # 9+
        fetch_offset: int = 0,
        last_fetched_epoch: int = -1,  # 12+
        log_start_offset: int = -1,  # 5+
        partition_max_bytes: int = 0,
        replica_directory_id: bytes = NO_UUID,  # 17+
        high_watermark: int = 9223372036854775807,  # 18+
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.fetch_offset = fetch_offset
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        self.partition_max_bytes = partition_max_bytes
        self.replica_directory_id = replica_directory_id
        self.high_watermark = high_watermark


class FetchTopic(Struct):
    __slots__ = (
        "topic",
        "topic_id",
        "partitions",
    )

    def __init__(
        self,
        topic: str = "",  # 4-12
        topic_id: bytes = NO_UUID,  # 13+
        partitions: list[FetchPartition] = EMPTY,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class ForgottenTopic(Struct):
    __slots__ = (
        "topic",
        "topic_id",
        "partitions",
    )

    def __init__(
        self,
        topic: str = "",  # 7-12
        topic_id: bytes = NO_UUID,  # 13+
        partitions: list[int] = EMPTY,  # 7+
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is EMPTY else partitions


class FetchRequest(Struct):
    __slots__ = (
        "cluster_id",
        "replica_id",
        "replica_state",
        "max_wait_ms",
        "min_bytes",
        "max_bytes",
        "isolation_level",
        "session_id",
        "session_epoch",
        "topics",
        "forgotten_topics_data",
        "rack_id",
    )

    def __init__(
        self,
        cluster_id: str | None = None,  # 12+
        replica_id: int = -1,  # 4-14
        replica_state: ReplicaState | None = None,  # 15+
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        isolation_level: int = 0,
        session_id: int = 0,  # 7+
        session_epoch: int = -1,  # 7+
        topics: list[FetchTopic] = EMPTY,
        forgotten_topics_data: list[ForgottenTopic] = EMPTY,  # 7+
        rack_id: str = "",  # 11+
    ) -> None:
        self.cluster_id = cluster_id
        self.replica_id = replica_id
        self.replica_state = replica_state
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation_level = isolation_level
        self.session_id = session_id
        self.session_epoch = session_epoch
        self.topics = [] if topics is EMPTY else topics
        self.forgotten_topics_data = [] if forgotten_topics_data is EMPTY else forgotten_topics_data
        self.rack_id = rack_id


class EpochEndOffset(Struct):
    __slots__ = (
        "epoch",
        "end_offset",
    )

    def __init__(
        self,
        epoch: int = -1,  # 12+
        end_offset: int = -1,  # 12+
    ) -> None:
        self.epoch = epoch
        self.end_offset = end_offset


class LeaderIdAndEpoch(Struct):
    __slots__ = (
        "leader_id",
        "leader_epoch",
    )

    def __init__(
        self,
        leader_id: int = -1,  # 12+
        leader_epoch: int = -1,  # 12+
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


class SnapshotId(Struct):
    __slots__ = (
        "end_offset",
        "epoch",
    )

    def __init__(
        self,
        end_offset: int = -1,  # 12+
        epoch: int = -1,  # 12+
    ) -> None:
        self.end_offset = end_offset
        self.epoch = epoch


class AbortedTransaction(Struct):
    __slots__ = (
        "producer_id",
        "first_offset",
    )

    def __init__(
        self,
        producer_id: int = 0,
        first_offset: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset


class PartitionData(Struct):
    __slots__ = (
        "partition_index",
        "error_code",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "diverging_epoch",
        "current_leader",
        "snapshot_id",
        "aborted_transactions",
        "preferred_read_replica",
        "records",
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        high_watermark: int = 0,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,  # 5+
        diverging_epoch: EpochEndOffset | None = None,  # 12+
        current_leader: LeaderIdAndEpoch | None = None,  # 12+
        snapshot_id: SnapshotId | None = None,  # 12+
        aborted_transactions: list[AbortedTransaction] | None = EMPTY,
        preferred_read_replica: int = -1,  # 11+
        records: Records | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.diverging_epoch = diverging_epoch
        self.current_leader = current_leader
        self.snapshot_id = snapshot_id
        self.aborted_transactions = [] if aborted_transactions is EMPTY else aborted_transactions
        self.preferred_read_replica = preferred_read_replica
        self.records = records


class FetchableTopicResponse(Struct):
    __slots__ = (
        "topic",
        "topic_id",
        "partitions",
    )

    def __init__(
        self,
        topic: str = "",  # 4-12
        topic_id: bytes = NO_UUID,  # 13+
        partitions: list[PartitionData] = EMPTY,
    ) -> None:
        self.topic = topic
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
        node_id: int = 0,  # 16+
        host: str = "",  # 16+
        port: int = 0,  # 16+
        rack: str | None = None,  # 16+
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack


class FetchResponse(Struct):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "session_id",
        "responses",
        "node_endpoints",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,  # 7+
        session_id: int = 0,  # 7+
        responses: list[FetchableTopicResponse] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,  # 16+
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.session_id = session_id
        self.responses = [] if responses is EMPTY else responses
        self.node_endpoints = [] if node_endpoints is EMPTY else node_endpoints


def _read_request_fetch_partition_v12_to_v16(buf: bytes, pos: int) -> tuple[FetchPartition, int]:
    fetch_partition = new(FetchPartition)
    fetch_partition.replica_directory_id = NO_UUID
    fetch_partition.high_watermark = 9223372036854775807
    (
        fetch_partition.partition,
        fetch_partition.current_leader_epoch,
        fetch_partition.fetch_offset,
        fetch_partition.last_fetched_epoch,
        fetch_partition.log_start_offset,
        fetch_partition.partition_max_bytes,
    ) = _iiqiqi.unpack_from(buf, pos)
    pos += 32
    if buf[pos]:
        pos = skip_tagged_fields(buf, pos)
    else:
        pos += 1
    return fetch_partition, pos


def _read_request_fetch_partition_v17(buf: bytes, pos: int) -> tuple[FetchPartition, int]:
    fetch_partition = new(FetchPartition)
    fetch_partition.replica_directory_id = NO_UUID
    fetch_partition.high_watermark = 9223372036854775807
    (
        fetch_partition.partition,
        fetch_partition.current_leader_epoch,
        fetch_partition.fetch_offset,
        fetch_partition.last_fetched_epoch,
        fetch_partition.log_start_offset,
        fetch_partition.partition_max_bytes,
    ) = _iiqiqi.unpack_from(buf, pos)
    pos += 32
    if buf[pos] == 0:
        pos += 1
    else:
        tags, pos = tag_count(buf, pos)
        for _ in range(tags):
            tag, pos, stop = tagged_field(buf, pos)
            if tag == 0:
                (fetch_partition.replica_directory_id,) = _g.unpack_from(buf, pos)
                pos += 16
            else:
                pos = stop
            if pos != stop:
                raise wrong_tagged_size(tag)
    return fetch_partition, pos


def _read_request_fetch_partition_v18(buf: bytes, pos: int) -> tuple[FetchPartition, int]:
    fetch_partition = new(FetchPartition)
    fetch_partition.replica_directory_id = NO_UUID
    fetch_partition.high_watermark = 9223372036854775807
    (
        fetch_partition.partition,
        fetch_partition.current_leader_epoch,
        fetch_partition.fetch_offset,
        fetch_partition.last_fetched_epoch,
        fetch_partition.log_start_offset,
        fetch_partition.partition_max_bytes,
    ) = _iiqiqi.unpack_from(buf, pos)
    pos += 32
    if buf[pos] == 0:
        pos += 1
    else:
        tags, pos = tag_count(buf, pos)
        for _ in range(tags):
            tag, pos, stop = tagged_field(buf, pos)
            if tag == 0:
                (fetch_partition.replica_directory_id,) = _g.unpack_from(buf, pos)
                pos += 16
            elif tag == 1:
                (fetch_partition.high_watermark,) = _q.unpack_from(buf, pos)
                pos += 8
            else:
                pos = stop
            if pos != stop:
                raise wrong_tagged_size(tag)
    return fetch_partition, pos


def _read_request_v4(buf: bytes, pos: int) -> tuple[FetchRequest, int]:
    size = len(buf)
    message = new(FetchRequest)
    message.cluster_id = None
    message.replica_state = None
    message.session_id = 0
    message.session_epoch = -1
    message.forgotten_topics_data = []
    message.rack_id = ""
    message.replica_id, message.max_wait_ms, message.min_bytes, message.max_bytes, message.isolation_level, n = (
        _iiiibi.unpack_from(buf, pos)
    )
    pos += 21
    if n < 0:
        raise null_refused("topics")
    if n * 6 > size - pos:
        raise too_many(n)
    if n > 1:
        spend(n * 2)
    topics: list[FetchTopic] = []
    for _ in range(n):
        fetch_topic = new(FetchTopic)
        fetch_topic.topic_id = NO_UUID
        (n,) = _h.unpack_from(buf, pos)
        pos += 2
        if n < 0:
            raise null_refused("topic")
        end = pos + n
        fetch_topic.topic = buf[pos:end].decode()
        pos = end
        (n,) = _i.unpack_from(buf, pos)
        pos += 4
        if n < 0:
            raise null_refused("partitions")
        if n * 16 > size - pos:
            raise too_many(n)
        if n > 1:
            spend(n)
        partitions: list[FetchPartition] = []
        end = pos + n * 16
        for partition, fetch_offset, partition_max_bytes in _iqi.iter_unpack(buf[pos:end]):
            fetch_partition = new(FetchPartition)
            fetch_partition.partition = partition
            fetch_partition.current_leader_epoch = -1
            fetch_partition.fetch_offset = fetch_offset
            fetch_partition.last_fetched_epoch = -1
            fetch_partition.log_start_offset = -1
            fetch_partition.partition_max_bytes = partition_max_bytes
            fetch_partition.replica_directory_id = NO_UUID
            fetch_partition.high_watermark = 9223372036854775807
            partitions.append(fetch_partition)
        pos = end
        fetch_topic.partitions = partitions
        topics.append(fetch_topic)
    message.topics = topics
    return message, pos


def _read_request_v5_to_v6(buf: bytes, pos: int) -> tuple[FetchRequest, int]:
    size = len(buf)
    message = new(FetchRequest)
    message.cluster_id = None
    message.replica_state = None
    message.session_id = 0
    message.session_epoch = -1
    message.forgotten_topics_data = []
    message.rack_id = ""
    message.replica_id, message.max_wait_ms, message.min_bytes, message.max_bytes, message.isolation_level, n = (
        _iiiibi.unpack_from(buf, pos)
    )
    pos += 21
    if n < 0:
        raise null_refused("topics")
    if n * 6 > size - pos:
        raise too_many(n)
    if n > 1:
        spend(n * 2)
    topics: list[FetchTopic] = []
    for _ in range(n):
        fetch_topic = new(FetchTopic)
        fetch_topic.topic_id = NO_UUID
        (n,) = _h.unpack_from(buf, pos)
        pos += 2
        if n < 0:
            raise null_refused("topic")
        end = pos + n
        fetch_topic.topic = buf[pos:end].decode()
        pos = end
        (n,) = _i.unpack_from(buf, pos)
        pos += 4
        if n < 0:
            raise null_refused("partitions")
        if n * 24 > size - pos:
            raise too_many(n)
        if n > 1:
            spend(n)
        partitions: list[FetchPartition] = []
        end = pos + n * 24
        for partition, fetch_offset, log_start_offset, partition_max_bytes in _iqqi.iter_unpack(buf[pos:end]):
            fetch_partition = new(FetchPartition)
            fetch_partition.partition = partition
            fetch_partition.current_leader_epoch = -1
            fetch_partition.fetch_offset = fetch_offset
            fetch_partition.last_fetched_epoch = -1
            fetch_partition.log_start_offset = log_start_offset
            fetch_partition.partition_max_bytes = partition_max_bytes
            fetch_partition.replica_directory_id = NO_UUID
            fetch_partition.high_watermark = 9223372036854775807
            partitions.append(fetch_partition)
        pos = end
        fetch_topic.partitions = partitions
        topics.append(fetch_topic)
    message.topics = topics
    return message, pos


def _read_request_v7_to_v8(buf: bytes, pos: int) -> tuple[FetchRequest, int]:
    size = len(buf)
    message = new(FetchRequest)
    message.cluster_id = None
    message.replica_state = None
    message.rack_id = ""
    (
        message.replica_id,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
        n,
    ) = _iiiibiii.unpack_from(buf, pos)
    pos += 29
    if n < 0:
        raise null_refused("topics")
    if n * 6 > size - pos:
        raise too_many(n)
    if n > 1:
        spend(n * 2)
    topics: list[FetchTopic] = []
    for _ in range(n):
        fetch_topic = new(FetchTopic)
        fetch_topic.topic_id = NO_UUID
        (n,) = _h.unpack_from(buf, pos)
        pos += 2
        if n < 0:
            raise null_refused("topic")
        end = pos + n
        fetch_topic.topic = buf[pos:end].decode()
        pos = end
        (n,) = _i.unpack_from(buf, pos)
        pos += 4
        if n < 0:
            raise null_refused("partitions")
        if n * 24 > size - pos:
            raise too_many(n)
        if n > 1:
            spend(n)
        partitions: list[FetchPartition] = []
        end = pos + n * 24
        for partition, fetch_offset, log_start_offset, partition_max_bytes in _iqqi.iter_unpack(buf[pos:end]):
            fetch_partition = new(FetchPartition)
            fetch_partition.partition = partition
            fetch_partition.current_leader_epoch = -1
            fetch_partition.fetch_offset = fetch_offset
            fetch_partition.last_fetched_epoch = -1
            fetch_partition.log_start_offset = log_start_offset
            fetch_partition.partition_max_bytes = partition_max_bytes
            fetch_partition.replica_directory_id = NO_UUID
            fetch_partition.high_watermark = 9223372036854775807
            partitions.append(fetch_partition)
        pos = end
        fetch_topic.partitions = partitions
        topics.append(fetch_topic)
    message.topics = topics
    (n,) = _i.unpack_from(buf, pos)
    pos += 4
    if n < 0:
        raise null_refused("forgotten_topics_data")
    if n * 6 > size - pos:
        raise too_many(n)
    if n > 1:
        spend(n * 2)
    forgotten_topics_data: list[ForgottenTopic] = []
    for _ in range(n):
        forgotten_topic = new(ForgottenTopic)
        forgotten_topic.topic_id = NO_UUID
        (n,) = _h.unpack_from(buf, pos)
        pos += 2
        if n < 0:
            raise null_refused("topic")
        end = pos + n
        forgotten_topic.topic = buf[pos:end].decode()
        pos = end
        (n,) = _i.unpack_from(buf, pos)
        pos += 4
        if n < 0:
            raise null_refused("partitions")
        forgotten_topic.partitions, pos = some_numbers(buf, pos, n, "i")
        forgotten_topics_data.append(forgotten_topic)
    message.forgotten_topics_data = forgotten_topics_data
    return message, pos


def _read_request_v9_to_v10(buf: bytes, pos: int) -> tuple[FetchRequest, int]:
    size = len(buf)
    message = new(FetchRequest)
    message.cluster_id = None
    message.replica_state = None
    message.rack_id = ""
    (
        message.replica_id,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
        n,
    ) = _iiiibiii.unpack_from(buf, pos)
    pos += 29
    if n < 0:
        raise null_refused("topics")
    if n * 6 > size - pos:
        raise too_many(n)
    if n > 1:
        spend(n * 2)
    topics: list[FetchTopic] = []
    for _ in range(n):
        fetch_topic = new(FetchTopic)
        fetch_topic.topic_id = NO_UUID
        (n,) = _h.unpack_from(buf, pos)
        pos += 2
        if n < 0:
            raise null_refused("topic")
        end = pos + n
        fetch_topic.topic = buf[pos:end].decode()
        pos = end
        (n,) = _i.unpack_from(buf, pos)
        pos += 4
        if n < 0:
            raise null_refused("partitions")
        if n * 28 > size - pos:
            raise too_many(n)
        if n > 1:
            spend(n)
        partitions: list[FetchPartition] = []
        end = pos + n * 28
        for (
            partition,
            current_leader_epoch,
            fetch_offset,
            log_start_offset,
            partition_max_bytes,
        ) in _iiqqi.iter_unpack(buf[pos:end]):
            fetch_partition = new(FetchPartition)
            fetch_partition.partition = partition
            fetch_partition.current_leader_epoch = current_leader_epoch
            fetch_partition.fetch_offset = fetch_offset
            fetch_partition.last_fetched_epoch = -1
            fetch_partition.log_start_offset = log_start_offset
            fetch_partition.partition_max_bytes = partition_max_bytes
            fetch_partition.replica_directory_id = NO_UUID
            fetch_partition.high_watermark = 9223372036854775807
            partitions.append(fetch_partition)
        pos = end
        fetch_topic.partitions = partitions
        topics.append(fetch_topic)
    message.topics = topics
    (n,) = _i.unpack_from(buf, pos)
    pos += 4
    if n < 0:
        raise null_refused("forgotten_topics_data")
    if n * 6 > size - pos:
        raise too_many(n)
    if n > 1:
        spend(n * 2)
    forgotten_topics_data: list[ForgottenTopic] = []
    for _ in range(n):
        forgotten_topic = new(ForgottenTopic)
        forgotten_topic.topic_id = NO_UUID
        (n,) = _h.unpack_from(buf, pos)
        pos += 2
        if n < 0:
            raise null_refused("topic")
        end = pos + n
        forgotten_topic.topic = buf[pos:end].decode()
        pos = end
        (n,) = _i.unpack_from(buf, pos)
        pos += 4
        if n < 0:
            raise null_refused("partitions")
        forgotten_topic.partitions, pos = some_numbers(buf, pos, n, "i")
        forgotten_topics_data.append(forgotten_topic)
    message.forgotten_topics_data = forgotten_topics_data
    return message, pos


def _read_request_v11(buf: bytes, pos: int) -> tuple[FetchRequest, int]:
    size = len(buf)
    message = new(FetchRequest)
    message.cluster_id = None
    message.replica_state = None
    (
        message.replica_id,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
        n,
    ) = _iiiibiii.unpack_from(buf, pos)
    pos += 29
    if n < 0:
        raise null_refused("topics")
    if n * 6 > size - pos:
        raise too_many(n)
    if n > 1:
        spend(n * 2)
    topics: list[FetchTopic] = []
    for _ in range(n):
        fetch_topic = new(FetchTopic)
        fetch_topic.topic_id = NO_UUID
        (n,) = _h.unpack_from(buf, pos)
        pos += 2
        if n < 0:
            raise null_refused("topic")
        end = pos + n
        fetch_topic.topic = buf[pos:end].decode()
        pos = end
        (n,) = _i.unpack_from(buf, pos)
        pos += 4
        if n < 0:
            raise null_refused("partitions")
        if n * 28 > size - pos:
            raise too_many(n)
        if n > 1:
            spend(n)
        partitions: list[FetchPartition] = []
        end = pos + n * 28
        for (
            partition,
            current_leader_epoch,
            fetch_offset,
            log_start_offset,
            partition_max_bytes,
        ) in _iiqqi.iter_unpack(buf[pos:end]):
            fetch_partition = new(FetchPartition)
            fetch_partition.partition = partition
            fetch_partition.current_leader_epoch = current_leader_epoch
            fetch_partition.fetch_offset = fetch_offset
            fetch_partition.last_fetched_epoch = -1
            fetch_partition.log_start_offset = log_start_offset
            fetch_partition.partition_max_bytes = partition_max_bytes
            fetch_partition.replica_directory_id = NO_UUID
            fetch_partition.high_watermark = 9223372036854775807
            partitions.append(fetch_partition)
        pos = end
        fetch_topic.partitions = partitions
        topics.append(fetch_topic)
    message.topics = topics
    (n,) = _i.unpack_from(buf, pos)
    pos += 4
    if n < 0:
        raise null_refused("forgotten_topics_data")
    if n * 6 > size - pos:
        raise too_many(n)
    if n > 1:
        spend(n * 2)
    forgotten_topics_data: list[ForgottenTopic] = []
    for _ in range(n):
        forgotten_topic = new(ForgottenTopic)
        forgotten_topic.topic_id = NO_UUID
        (n,) = _h.unpack_from(buf, pos)
        pos += 2
        if n < 0:
            raise null_refused("topic")
        end = pos + n
        forgotten_topic.topic = buf[pos:end].decode()
        pos = end
        (n,) = _i.unpack_from(buf, pos)
        pos += 4
        if n < 0:
            raise null_refused("partitions")
        forgotten_topic.partitions, pos = some_numbers(buf, pos, n, "i")
        forgotten_topics_data.append(forgotten_topic)
    message.forgotten_topics_data = forgotten_topics_data
    (n,) = _h.unpack_from(buf, pos)
    pos += 2
    if n < 0:
        raise null_refused("rack_id")
    end = pos + n
    message.rack_id = buf[pos:end].decode()
    pos = end
    return message, pos


def _read_request_v12(buf: bytes, pos: int) -> tuple[FetchRequest, int]:
    size = len(buf)
    message = new(FetchRequest)
    message.cluster_id = None
    message.replica_state = None
    (
        message.replica_id,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
        n,
    ) = _iiiibiiu.unpack_from(buf, pos)
    pos += 26
    if not 0 < n < 128:
        n, pos = long_size(buf, pos, n)
    if (n - 1) * 3 > size - pos:
        raise too_many(n - 1)
    if n > 2:
        spend((n - 1) * 2)
    topics: list[FetchTopic] = []
    for _ in range(1, n):
        fetch_topic = new(FetchTopic)
        fetch_topic.topic_id = NO_UUID
        n = buf[pos]
        pos += 1
        if not 0 < n < 128:
            n, pos = long_string_size(buf, pos, n)
        end = pos + n - 1
        fetch_topic.topic = buf[pos:end].decode()
        pos = end
        n = buf[pos]
        pos += 1
        if not 0 < n < 128:
            n, pos = long_size(buf, pos, n)
        if (n - 1) * 33 > size - pos:
            raise too_many(n - 1)
        if n > 2:
            spend(n - 1)
        partitions: list[FetchPartition] = []
        end = pos + (n - 1) * 33
        if buf[pos + 32 : end : 33].count(0) == n - 1:
            for (
                partition,
                current_leader_epoch,
                fetch_offset,
                last_fetched_epoch,
                log_start_offset,
                partition_max_bytes,
            ) in _iiqiqix.iter_unpack(buf[pos:end]):
                fetch_partition = new(FetchPartition)
                fetch_partition.partition = partition
                fetch_partition.current_leader_epoch = current_leader_epoch
                fetch_partition.fetch_offset = fetch_offset
                fetch_partition.last_fetched_epoch = last_fetched_epoch
                fetch_partition.log_start_offset = log_start_offset
                fetch_partition.partition_max_bytes = partition_max_bytes
                fetch_partition.replica_directory_id = NO_UUID
                fetch_partition.high_watermark = 9223372036854775807
                partitions.append(fetch_partition)
            pos = end
        else:
            for _ in range(1, n):
                fetch_partition, pos = _read_request_fetch_partition_v12_to_v16(buf, pos)
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
    if (n - 1) * 3 > size - pos:
        raise too_many(n - 1)
    if n > 2:
        spend((n - 1) * 2)
    forgotten_topics_data: list[ForgottenTopic] = []
    for _ in range(1, n):
        forgotten_topic = new(ForgottenTopic)
        forgotten_topic.topic_id = NO_UUID
        n = buf[pos]
        pos += 1
        if not 0 < n < 128:
            n, pos = long_string_size(buf, pos, n)
        end = pos + n - 1
        forgotten_topic.topic = buf[pos:end].decode()
        pos = end
        n = buf[pos]
        pos += 1
        if not 0 < n < 128:
            n, pos = long_size(buf, pos, n)
        forgotten_topic.partitions, pos = some_numbers(buf, pos, n - 1, "i")
        if buf[pos]:
            pos = skip_tagged_fields(buf, pos)
        else:
            pos += 1
        forgotten_topics_data.append(forgotten_topic)
    message.forgotten_topics_data = forgotten_topics_data
    n = buf[pos]
    pos += 1
    if not 0 < n < 128:
        n, pos = long_string_size(buf, pos, n)
    end = pos + n - 1
    message.rack_id = buf[pos:end].decode()
    pos = end
    if buf[pos] == 0:
        pos += 1
    else:
        tags, pos = tag_count(buf, pos)
        for _ in range(tags):
            tag, pos, stop = tagged_field(buf, pos)
            if tag == 0:
                n = buf[pos]
                pos += 1
                if n == 0:
                    message.cluster_id = None
                else:
                    if n > 127:
                        n, pos = long_string_size(buf, pos, n)
                    end = pos + n - 1
                    message.cluster_id = buf[pos:end].decode()
                    pos = end
            else:
                pos = stop
            if pos != stop:
                raise wrong_tagged_size(tag)
    return message, pos


def _read_request_v13_to_v14(buf: bytes, pos: int) -> tuple[FetchRequest, int]:
    size = len(buf)
    message = new(FetchRequest)
    message.cluster_id = None
    message.replica_state = None
    (
        message.replica_id,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
        n,
    ) = _iiiibiiu.unpack_from(buf, pos)
    pos += 26
    if not 0 < n < 128:
        n, pos = long_size(buf, pos, n)
    if (n - 1) * 18 > size - pos:
        raise too_many(n - 1)
    if n > 2:
        spend((n - 1) * 2)
    topics: list[FetchTopic] = []
    for _ in range(1, n):
        fetch_topic = new(FetchTopic)
        fetch_topic.topic = ""
        fetch_topic.topic_id, n = _gu.unpack_from(buf, pos)
        pos += 17
        if not 0 < n < 128:
            n, pos = long_size(buf, pos, n)
        if (n - 1) * 33 > size - pos:
            raise too_many(n - 1)
        if n > 2:
            spend(n - 1)
        partitions: list[FetchPartition] = []
        end = pos + (n - 1) * 33
        if buf[pos + 32 : end : 33].count(0) == n - 1:
            for (
                partition,
                current_leader_epoch,
                fetch_offset,
                last_fetched_epoch,
                log_start_offset,
                partition_max_bytes,
            ) in _iiqiqix.iter_unpack(buf[pos:end]):
                fetch_partition = new(FetchPartition)
                fetch_partition.partition = partition
                fetch_partition.current_leader_epoch = current_leader_epoch
                fetch_partition.fetch_offset = fetch_offset
                fetch_partition.last_fetched_epoch = last_fetched_epoch
                fetch_partition.log_start_offset = log_start_offset
                fetch_partition.partition_max_bytes = partition_max_bytes
                fetch_partition.replica_directory_id = NO_UUID
                fetch_partition.high_watermark = 9223372036854775807
                partitions.append(fetch_partition)
            pos = end
        else:
            for _ in range(1, n):
                fetch_partition, pos = _read_request_fetch_partition_v12_to_v16(buf, pos)
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
    if n > 2:
        spend((n - 1) * 2)
    forgotten_topics_data: list[ForgottenTopic] = []
    for _ in range(1, n):
        forgotten_topic = new(ForgottenTopic)
        forgotten_topic.topic = ""
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
    n = buf[pos]
    pos += 1
    if not 0 < n < 128:
        n, pos = long_string_size(buf, pos, n)
    end = pos + n - 1
    message.rack_id = buf[pos:end].decode()
    pos = end
    if buf[pos] == 0:
        pos += 1
    else:
        tags, pos = tag_count(buf, pos)
        for _ in range(tags):
            tag, pos, stop = tagged_field(buf, pos)
            if tag == 0:
                n = buf[pos]
                pos += 1
                if n == 0:
                    message.cluster_id = None
                else:
                    if n > 127:
                        n, pos = long_string_size(buf, pos, n)
                    end = pos + n - 1
                    message.cluster_id = buf[pos:end].decode()
                    pos = end
            else:
                pos = stop
            if pos != stop:
                raise wrong_tagged_size(tag)
    return message, pos


def _read_request_v15_to_v16(buf: bytes, pos: int) -> tuple[FetchRequest, int]:
    size = len(buf)
    message = new(FetchRequest)
    message.cluster_id = None
    message.replica_id = -1
    message.replica_state = None
    (
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
        n,
    ) = _iiibiiu.unpack_from(buf, pos)
    pos += 22
    if not 0 < n < 128:
        n, pos = long_size(buf, pos, n)
    if (n - 1) * 18 > size - pos:
        raise too_many(n - 1)
    if n > 2:
        spend((n - 1) * 2)
    topics: list[FetchTopic] = []
    for _ in range(1, n):
        fetch_topic = new(FetchTopic)
        fetch_topic.topic = ""
        fetch_topic.topic_id, n = _gu.unpack_from(buf, pos)
        pos += 17
        if not 0 < n < 128:
            n, pos = long_size(buf, pos, n)
        if (n - 1) * 33 > size - pos:
            raise too_many(n - 1)
        if n > 2:
            spend(n - 1)
        partitions: list[FetchPartition] = []
        end = pos + (n - 1) * 33
        if buf[pos + 32 : end : 33].count(0) == n - 1:
            for (
                partition,
                current_leader_epoch,
                fetch_offset,
                last_fetched_epoch,
                log_start_offset,
                partition_max_bytes,
            ) in _iiqiqix.iter_unpack(buf[pos:end]):
                fetch_partition = new(FetchPartition)
                fetch_partition.partition = partition
                fetch_partition.current_leader_epoch = current_leader_epoch
                fetch_partition.fetch_offset = fetch_offset
                fetch_partition.last_fetched_epoch = last_fetched_epoch
                fetch_partition.log_start_offset = log_start_offset
                fetch_partition.partition_max_bytes = partition_max_bytes
                fetch_partition.replica_directory_id = NO_UUID
                fetch_partition.high_watermark = 9223372036854775807
                partitions.append(fetch_partition)
            pos = end
        else:
            for _ in range(1, n):
                fetch_partition, pos = _read_request_fetch_partition_v12_to_v16(buf, pos)
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
    if n > 2:
        spend((n - 1) * 2)
    forgotten_topics_data: list[ForgottenTopic] = []
    for _ in range(1, n):
        forgotten_topic = new(ForgottenTopic)
        forgotten_topic.topic = ""
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
    n = buf[pos]
    pos += 1
    if not 0 < n < 128:
        n, pos = long_string_size(buf, pos, n)
    end = pos + n - 1
    message.rack_id = buf[pos:end].decode()
    pos = end
    if buf[pos] == 0:
        pos += 1
    else:
        tags, pos = tag_count(buf, pos)
        for _ in range(tags):
            tag, pos, stop = tagged_field(buf, pos)
            if tag == 0:
                n = buf[pos]
                pos += 1
                if n == 0:
                    message.cluster_id = None
                else:
                    if n > 127:
                        n, pos = long_string_size(buf, pos, n)
                    end = pos + n - 1
                    message.cluster_id = buf[pos:end].decode()
                    pos = end
            elif tag == 1:
                replica_state = new(ReplicaState)
                replica_state.replica_id, replica_state.replica_epoch = _iq.unpack_from(buf, pos)
                pos += 12
                if buf[pos]:
                    pos = skip_tagged_fields(buf, pos)
                else:
                    pos += 1
                message.replica_state = replica_state
            else:
                pos = stop
            if pos != stop:
                raise wrong_tagged_size(tag)
    return message, pos


def _read_request_v17(buf: bytes, pos: int) -> tuple[FetchRequest, int]:
    size = len(buf)
    message = new(FetchRequest)
    message.cluster_id = None
    message.replica_id = -1
    message.replica_state = None
    (
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
        n,
    ) = _iiibiiu.unpack_from(buf, pos)
    pos += 22
    if not 0 < n < 128:
        n, pos = long_size(buf, pos, n)
    if (n - 1) * 18 > size - pos:
        raise too_many(n - 1)
    if n > 2:
        spend((n - 1) * 2)
    topics: list[FetchTopic] = []
    for _ in range(1, n):
        fetch_topic = new(FetchTopic)
        fetch_topic.topic = ""
        fetch_topic.topic_id, n = _gu.unpack_from(buf, pos)
        pos += 17
        if not 0 < n < 128:
            n, pos = long_size(buf, pos, n)
        if (n - 1) * 33 > size - pos:
            raise too_many(n - 1)
        if n > 2:
            spend(n - 1)
        partitions: list[FetchPartition] = []
        end = pos + (n - 1) * 33
        if buf[pos + 32 : end : 33].count(0) == n - 1:
            for (
                partition,
                current_leader_epoch,
                fetch_offset,
                last_fetched_epoch,
                log_start_offset,
                partition_max_bytes,
            ) in _iiqiqix.iter_unpack(buf[pos:end]):
                fetch_partition = new(FetchPartition)
                fetch_partition.partition = partition
                fetch_partition.current_leader_epoch = current_leader_epoch
                fetch_partition.fetch_offset = fetch_offset
                fetch_partition.last_fetched_epoch = last_fetched_epoch
                fetch_partition.log_start_offset = log_start_offset
                fetch_partition.partition_max_bytes = partition_max_bytes
                fetch_partition.replica_directory_id = NO_UUID
                fetch_partition.high_watermark = 9223372036854775807
                partitions.append(fetch_partition)
            pos = end
        else:
            for _ in range(1, n):
                fetch_partition, pos = _read_request_fetch_partition_v17(buf, pos)
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
    if n > 2:
        spend((n - 1) * 2)
    forgotten_topics_data: list[ForgottenTopic] = []
    for _ in range(1, n):
        forgotten_topic = new(ForgottenTopic)
        forgotten_topic.topic = ""
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
    n = buf[pos]
    pos += 1
    if not 0 < n < 128:
        n, pos = long_string_size(buf, pos, n)
    end = pos + n - 1
    message.rack_id = buf[pos:end].decode()
    pos = end
    if buf[pos] == 0:
        pos += 1
    else:
        tags, pos = tag_count(buf, pos)
        for _ in range(tags):
            tag, pos, stop = tagged_field(buf, pos)
            if tag == 0:
                n = buf[pos]
                pos += 1
                if n == 0:
                    message.cluster_id = None
                else:
                    if n > 127:
                        n, pos = long_string_size(buf, pos, n)
                    end = pos + n - 1
                    message.cluster_id = buf[pos:end].decode()
                    pos = end
            elif tag == 1:
                replica_state = new(ReplicaState)
                replica_state.replica_id, replica_state.replica_epoch = _iq.unpack_from(buf, pos)
                pos += 12
                if buf[pos]:
                    pos = skip_tagged_fields(buf, pos)
                else:
                    pos += 1
                message.replica_state = replica_state
            else:
                pos = stop
            if pos != stop:
                raise wrong_tagged_size(tag)
    return message, pos


def _read_request_v18(buf: bytes, pos: int) -> tuple[FetchRequest, int]:
    size = len(buf)
    message = new(FetchRequest)
    message.cluster_id = None
    message.replica_id = -1
    message.replica_state = None
    (
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
        n,
    ) = _iiibiiu.unpack_from(buf, pos)
    pos += 22
    if not 0 < n < 128:
        n, pos = long_size(buf, pos, n)
    if (n - 1) * 18 > size - pos:
        raise too_many(n - 1)
    if n > 2:
        spend((n - 1) * 2)
    topics: list[FetchTopic] = []
    for _ in range(1, n):
        fetch_topic = new(FetchTopic)
        fetch_topic.topic = ""
        fetch_topic.topic_id, n = _gu.unpack_from(buf, pos)
        pos += 17
        if not 0 < n < 128:
            n, pos = long_size(buf, pos, n)
        if (n - 1) * 33 > size - pos:
            raise too_many(n - 1)
        if n > 2:
            spend(n - 1)
        partitions: list[FetchPartition] = []
        end = pos + (n - 1) * 33
        if buf[pos + 32 : end : 33].count(0) == n - 1:
            for (
                partition,
                current_leader_epoch,
                fetch_offset,
                last_fetched_epoch,
                log_start_offset,
                partition_max_bytes,
            ) in _iiqiqix.iter_unpack(buf[pos:end]):
                fetch_partition = new(FetchPartition)
                fetch_partition.partition = partition
                fetch_partition.current_leader_epoch = current_leader_epoch
                fetch_partition.fetch_offset = fetch_offset
                fetch_partition.last_fetched_epoch = last_fetched_epoch
                fetch_partition.log_start_offset = log_start_offset
                fetch_partition.partition_max_bytes = partition_max_bytes
                fetch_partition.replica_directory_id = NO_UUID
                fetch_partition.high_watermark = 9223372036854775807
                partitions.append(fetch_partition)
            pos = end
        else:
            for _ in range(1, n):
                fetch_partition, pos = _read_request_fetch_partition_v18(buf, pos)
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
    if n > 2:
        spend((n - 1) * 2)
    forgotten_topics_data: list[ForgottenTopic] = []
    for _ in range(1, n):
        forgotten_topic = new(ForgottenTopic)
        forgotten_topic.topic = ""
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
    n = buf[pos]
    pos += 1
    if not 0 < n < 128:
        n, pos = long_string_size(buf, pos, n)
    end = pos + n - 1
    message.rack_id = buf[pos:end].decode()
    pos = end
    if buf[pos] == 0:
        pos += 1
    else:
        tags, pos = tag_count(buf, pos)
        for _ in range(tags):
            tag, pos, stop = tagged_field(buf, pos)
            if tag == 0:
                n = buf[pos]
                pos += 1
                if n == 0:
                    message.cluster_id = None
                else:
                    if n > 127:
                        n, pos = long_string_size(buf, pos, n)
                    end = pos + n - 1
                    message.cluster_id = buf[pos:end].decode()
                    pos = end
            elif tag == 1:
                replica_state = new(ReplicaState)
                replica_state.replica_id, replica_state.replica_epoch = _iq.unpack_from(buf, pos)
                pos += 12
                if buf[pos]:
                    pos = skip_tagged_fields(buf, pos)
                else:
                    pos += 1
                message.replica_state = replica_state
            else:
                pos = stop
            if pos != stop:
                raise wrong_tagged_size(tag)
    return message, pos


def _write_request_v4(out: bytearray, message: FetchRequest, _inserts: Inserts) -> None:
    if message.replica_state is not None:
        raise absent("replica_state")
    if message.forgotten_topics_data:
        raise absent("forgotten_topics_data")
    out += _iiiibi.pack(
        message.replica_id,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        len(message.topics),
    )
    for fetch_topic in message.topics:
        encoded = fetch_topic.topic.encode()
        out += _h.pack(len(encoded))
        out += encoded
        out += _i.pack(len(fetch_topic.partitions))
        for fetch_partition in fetch_topic.partitions:
            if fetch_partition.last_fetched_epoch != -1:
                raise absent("last_fetched_epoch")
            out += _iqi.pack(
                fetch_partition.partition, fetch_partition.fetch_offset, fetch_partition.partition_max_bytes
            )


def _write_request_v5_to_v6(out: bytearray, message: FetchRequest, _inserts: Inserts) -> None:
    if message.replica_state is not None:
        raise absent("replica_state")
    if message.forgotten_topics_data:
        raise absent("forgotten_topics_data")
    out += _iiiibi.pack(
        message.replica_id,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        len(message.topics),
    )
    for fetch_topic in message.topics:
        encoded = fetch_topic.topic.encode()
        out += _h.pack(len(encoded))
        out += encoded
        out += _i.pack(len(fetch_topic.partitions))
        for fetch_partition in fetch_topic.partitions:
            if fetch_partition.last_fetched_epoch != -1:
                raise absent("last_fetched_epoch")
            out += _iqqi.pack(
                fetch_partition.partition,
                fetch_partition.fetch_offset,
                fetch_partition.log_start_offset,
                fetch_partition.partition_max_bytes,
            )


def _write_request_v7_to_v8(out: bytearray, message: FetchRequest, _inserts: Inserts) -> None:
    if message.replica_state is not None:
        raise absent("replica_state")
    out += _iiiibiii.pack(
        message.replica_id,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
        len(message.topics),
    )
    for fetch_topic in message.topics:
        encoded = fetch_topic.topic.encode()
        out += _h.pack(len(encoded))
        out += encoded
        out += _i.pack(len(fetch_topic.partitions))
        for fetch_partition in fetch_topic.partitions:
            if fetch_partition.last_fetched_epoch != -1:
                raise absent("last_fetched_epoch")
            out += _iqqi.pack(
                fetch_partition.partition,
                fetch_partition.fetch_offset,
                fetch_partition.log_start_offset,
                fetch_partition.partition_max_bytes,
            )
    out += _i.pack(len(message.forgotten_topics_data))
    for forgotten_topic in message.forgotten_topics_data:
        encoded = forgotten_topic.topic.encode()
        out += _h.pack(len(encoded))
        out += encoded
        out += _i.pack(len(forgotten_topic.partitions))
        out += packed_numbers(forgotten_topic.partitions, "i")


def _write_request_v9_to_v10(out: bytearray, message: FetchRequest, _inserts: Inserts) -> None:
    if message.replica_state is not None:
        raise absent("replica_state")
    out += _iiiibiii.pack(
        message.replica_id,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
        len(message.topics),
    )
    for fetch_topic in message.topics:
        encoded = fetch_topic.topic.encode()
        out += _h.pack(len(encoded))
        out += encoded
        out += _i.pack(len(fetch_topic.partitions))
        for fetch_partition in fetch_topic.partitions:
            if fetch_partition.last_fetched_epoch != -1:
                raise absent("last_fetched_epoch")
            out += _iiqqi.pack(
                fetch_partition.partition,
                fetch_partition.current_leader_epoch,
                fetch_partition.fetch_offset,
                fetch_partition.log_start_offset,
                fetch_partition.partition_max_bytes,
            )
    out += _i.pack(len(message.forgotten_topics_data))
    for forgotten_topic in message.forgotten_topics_data:
        encoded = forgotten_topic.topic.encode()
        out += _h.pack(len(encoded))
        out += encoded
        out += _i.pack(len(forgotten_topic.partitions))
        out += packed_numbers(forgotten_topic.partitions, "i")


def _write_request_v11(out: bytearray, message: FetchRequest, _inserts: Inserts) -> None:
    if message.replica_state is not None:
        raise absent("replica_state")
    out += _iiiibiii.pack(
        message.replica_id,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
        len(message.topics),
    )
    for fetch_topic in message.topics:
        encoded = fetch_topic.topic.encode()
        out += _h.pack(len(encoded))
        out += encoded
        out += _i.pack(len(fetch_topic.partitions))
        for fetch_partition in fetch_topic.partitions:
            if fetch_partition.last_fetched_epoch != -1:
                raise absent("last_fetched_epoch")
            out += _iiqqi.pack(
                fetch_partition.partition,
                fetch_partition.current_leader_epoch,
                fetch_partition.fetch_offset,
                fetch_partition.log_start_offset,
                fetch_partition.partition_max_bytes,
            )
    out += _i.pack(len(message.forgotten_topics_data))
    for forgotten_topic in message.forgotten_topics_data:
        encoded = forgotten_topic.topic.encode()
        out += _h.pack(len(encoded))
        out += encoded
        out += _i.pack(len(forgotten_topic.partitions))
        out += packed_numbers(forgotten_topic.partitions, "i")
    encoded = message.rack_id.encode()
    out += _h.pack(len(encoded))
    out += encoded


def _write_request_v12(out: bytearray, message: FetchRequest, _inserts: Inserts) -> None:
    if message.replica_state is not None:
        raise absent("replica_state")
    out += _iiiibii.pack(
        message.replica_id,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
    )
    n = len(message.topics) + 1
    if n < 128:
        out.append(n)
    else:
        put_uvarint(out, n)
    for fetch_topic in message.topics:
        encoded = fetch_topic.topic.encode()
        n = len(encoded) + 1
        if n < 128:
            out.append(n)
        else:
            put_long_string_size(out, n)
        out += encoded
        n = len(fetch_topic.partitions) + 1
        if n < 128:
            out.append(n)
        else:
            put_uvarint(out, n)
        for fetch_partition in fetch_topic.partitions:
            out += _iiqiqix.pack(
                fetch_partition.partition,
                fetch_partition.current_leader_epoch,
                fetch_partition.fetch_offset,
                fetch_partition.last_fetched_epoch,
                fetch_partition.log_start_offset,
                fetch_partition.partition_max_bytes,
            )
        out.append(0)
    n = len(message.forgotten_topics_data) + 1
    if n < 128:
        out.append(n)
    else:
        put_uvarint(out, n)
    for forgotten_topic in message.forgotten_topics_data:
        encoded = forgotten_topic.topic.encode()
        n = len(encoded) + 1
        if n < 128:
            out.append(n)
        else:
            put_long_string_size(out, n)
        out += encoded
        n = len(forgotten_topic.partitions) + 1
        if n < 128:
            out.append(n)
        else:
            put_uvarint(out, n)
        out += packed_numbers(forgotten_topic.partitions, "i")
        out.append(0)
    encoded = message.rack_id.encode()
    n = len(encoded) + 1
    if n < 128:
        out.append(n)
    else:
        put_long_string_size(out, n)
    out += encoded
    if message.cluster_id is not None:
        out.append(1)
        tagged = bytearray()
        if message.cluster_id is None:
            tagged.append(0)
        else:
            encoded = message.cluster_id.encode()
            n = len(encoded) + 1
            if n < 128:
                tagged.append(n)
            else:
                put_long_string_size(tagged, n)
            tagged += encoded
        put_tagged_field(out, 0, tagged)
    else:
        out.append(0)


def _write_request_v13_to_v14(out: bytearray, message: FetchRequest, _inserts: Inserts) -> None:
    if message.replica_state is not None:
        raise absent("replica_state")
    out += _iiiibii.pack(
        message.replica_id,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
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
            out += _iiqiqix.pack(
                fetch_partition.partition,
                fetch_partition.current_leader_epoch,
                fetch_partition.fetch_offset,
                fetch_partition.last_fetched_epoch,
                fetch_partition.log_start_offset,
                fetch_partition.partition_max_bytes,
            )
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
    encoded = message.rack_id.encode()
    n = len(encoded) + 1
    if n < 128:
        out.append(n)
    else:
        put_long_string_size(out, n)
    out += encoded
    if message.cluster_id is not None:
        out.append(1)
        tagged = bytearray()
        if message.cluster_id is None:
            tagged.append(0)
        else:
            encoded = message.cluster_id.encode()
            n = len(encoded) + 1
            if n < 128:
                tagged.append(n)
            else:
                put_long_string_size(tagged, n)
            tagged += encoded
        put_tagged_field(out, 0, tagged)
    else:
        out.append(0)


def _write_request_v15_to_v16(out: bytearray, message: FetchRequest, _inserts: Inserts) -> None:
    if message.replica_id != -1:
        raise absent("replica_id")
    out += _iiibii.pack(
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
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
            out += _iiqiqix.pack(
                fetch_partition.partition,
                fetch_partition.current_leader_epoch,
                fetch_partition.fetch_offset,
                fetch_partition.last_fetched_epoch,
                fetch_partition.log_start_offset,
                fetch_partition.partition_max_bytes,
            )
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
    encoded = message.rack_id.encode()
    n = len(encoded) + 1
    if n < 128:
        out.append(n)
    else:
        put_long_string_size(out, n)
    out += encoded
    if message.cluster_id is not None or message.replica_state is not None:
        out.append((message.cluster_id is not None) + (message.replica_state is not None))
        if message.cluster_id is not None:
            tagged = bytearray()
            if message.cluster_id is None:
                tagged.append(0)
            else:
                encoded = message.cluster_id.encode()
                n = len(encoded) + 1
                if n < 128:
                    tagged.append(n)
                else:
                    put_long_string_size(tagged, n)
                tagged += encoded
            put_tagged_field(out, 0, tagged)
        if message.replica_state is not None:
            tagged_2 = bytearray()
            replica_state = message.replica_state
            tagged_2 += _iqx.pack(replica_state.replica_id, replica_state.replica_epoch)
            put_tagged_field(out, 1, tagged_2)
    else:
        out.append(0)


def _write_request_v17(out: bytearray, message: FetchRequest, _inserts: Inserts) -> None:
    if message.replica_id != -1:
        raise absent("replica_id")
    out += _iiibii.pack(
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
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
            out += _iiqiqi.pack(
                fetch_partition.partition,
                fetch_partition.current_leader_epoch,
                fetch_partition.fetch_offset,
                fetch_partition.last_fetched_epoch,
                fetch_partition.log_start_offset,
                fetch_partition.partition_max_bytes,
            )
            if fetch_partition.replica_directory_id != NO_UUID:
                out.append(1)
                tagged = bytearray()
                if len(fetch_partition.replica_directory_id) != 16:
                    raise wrong_uuid("replica_directory_id")
                tagged += _g.pack(fetch_partition.replica_directory_id)
                put_tagged_field(out, 0, tagged)
            else:
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
    encoded = message.rack_id.encode()
    n = len(encoded) + 1
    if n < 128:
        out.append(n)
    else:
        put_long_string_size(out, n)
    out += encoded
    if message.cluster_id is not None or message.replica_state is not None:
        out.append((message.cluster_id is not None) + (message.replica_state is not None))
        if message.cluster_id is not None:
            tagged_2 = bytearray()
            if message.cluster_id is None:
                tagged_2.append(0)
            else:
                encoded = message.cluster_id.encode()
                n = len(encoded) + 1
                if n < 128:
                    tagged_2.append(n)
                else:
                    put_long_string_size(tagged_2, n)
                tagged_2 += encoded
            put_tagged_field(out, 0, tagged_2)
        if message.replica_state is not None:
            tagged_3 = bytearray()
            replica_state = message.replica_state
            tagged_3 += _iqx.pack(replica_state.replica_id, replica_state.replica_epoch)
            put_tagged_field(out, 1, tagged_3)
    else:
        out.append(0)


def _write_request_v18(out: bytearray, message: FetchRequest, _inserts: Inserts) -> None:
    if message.replica_id != -1:
        raise absent("replica_id")
    out += _iiibii.pack(
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
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
            out += _iiqiqi.pack(
                fetch_partition.partition,
                fetch_partition.current_leader_epoch,
                fetch_partition.fetch_offset,
                fetch_partition.last_fetched_epoch,
                fetch_partition.log_start_offset,
                fetch_partition.partition_max_bytes,
            )
            if (
                fetch_partition.replica_directory_id != NO_UUID
                or fetch_partition.high_watermark != 9223372036854775807
            ):
                out.append(
                    (fetch_partition.replica_directory_id != NO_UUID)
                    + (fetch_partition.high_watermark != 9223372036854775807)
                )
                if fetch_partition.replica_directory_id != NO_UUID:
                    tagged = bytearray()
                    if len(fetch_partition.replica_directory_id) != 16:
                        raise wrong_uuid("replica_directory_id")
                    tagged += _g.pack(fetch_partition.replica_directory_id)
                    put_tagged_field(out, 0, tagged)
                if fetch_partition.high_watermark != 9223372036854775807:
                    tagged_2 = bytearray()
                    tagged_2 += _q.pack(fetch_partition.high_watermark)
                    put_tagged_field(out, 1, tagged_2)
            else:
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
    encoded = message.rack_id.encode()
    n = len(encoded) + 1
    if n < 128:
        out.append(n)
    else:
        put_long_string_size(out, n)
    out += encoded
    if message.cluster_id is not None or message.replica_state is not None:
        out.append((message.cluster_id is not None) + (message.replica_state is not None))
        if message.cluster_id is not None:
            tagged_3 = bytearray()
            if message.cluster_id is None:
                tagged_3.append(0)
            else:
                encoded = message.cluster_id.encode()
                n = len(encoded) + 1
                if n < 128:
                    tagged_3.append(n)
                else:
                    put_long_string_size(tagged_3, n)
                tagged_3 += encoded
            put_tagged_field(out, 0, tagged_3)
        if message.replica_state is not None:
            tagged_4 = bytearray()
            replica_state = message.replica_state
            tagged_4 += _iqx.pack(replica_state.replica_id, replica_state.replica_epoch)
            put_tagged_field(out, 1, tagged_4)
    else:
        out.append(0)


def _read_response_aborted_transaction_v12_to_v18(buf: memoryview, pos: int) -> tuple[AbortedTransaction, int]:
    aborted_transaction = new(AbortedTransaction)
    aborted_transaction.producer_id, aborted_transaction.first_offset = _qq.unpack_from(buf, pos)
    pos += 16
    if buf[pos]:
        pos = skip_tagged_fields(buf, pos)
    else:
        pos += 1
    return aborted_transaction, pos


def _read_response_v4(buf: memoryview, pos: int) -> tuple[FetchResponse, int]:
    size = len(buf)
    message = new(FetchResponse)
    message.error_code = 0
    message.session_id = 0
    message.node_endpoints = []
    message.throttle_time_ms, n = _ii.unpack_from(buf, pos)
    pos += 8
    if n < 0:
        raise null_refused("responses")
    if n * 6 > size - pos:
        raise too_many(n)
    responses: list[FetchableTopicResponse] = []
    for _ in range(n):
        fetchable_topic_response = new(FetchableTopicResponse)
        fetchable_topic_response.topic_id = NO_UUID
        (n,) = _h.unpack_from(buf, pos)
        pos += 2
        if n < 0:
            raise null_refused("topic")
        end = pos + n
        fetchable_topic_response.topic = buf[pos:end].tobytes().decode()
        pos = end
        (n,) = _i.unpack_from(buf, pos)
        pos += 4
        if n < 0:
            raise null_refused("partitions")
        if n * 30 > size - pos:
            raise too_many(n)
        partitions: list[PartitionData] = []
        for _ in range(n):
            partition_data = new(PartitionData)
            partition_data.log_start_offset = -1
            partition_data.diverging_epoch = None
            partition_data.current_leader = None
            partition_data.snapshot_id = None
            partition_data.preferred_read_replica = -1
            (
                partition_data.partition_index,
                partition_data.error_code,
                partition_data.high_watermark,
                partition_data.last_stable_offset,
                n,
            ) = _ihqqi.unpack_from(buf, pos)
            pos += 26
            if n < 0:
                partition_data.aborted_transactions = None
            else:
                if n * 16 > size - pos:
                    raise too_many(n)
                aborted_transactions: list[AbortedTransaction] = []
                end = pos + n * 16
                for producer_id, first_offset in _qq.iter_unpack(buf[pos:end]):
                    aborted_transaction = new(AbortedTransaction)
                    aborted_transaction.producer_id = producer_id
                    aborted_transaction.first_offset = first_offset
                    aborted_transactions.append(aborted_transaction)
                pos = end
                partition_data.aborted_transactions = aborted_transactions
            (n,) = _i.unpack_from(buf, pos)
            pos += 4
            if n < 0:
                partition_data.records = None
            else:
                end = pos + n
                partition_data.records = buf[pos:end]
                pos = end
            partitions.append(partition_data)
        fetchable_topic_response.partitions = partitions
        responses.append(fetchable_topic_response)
    message.responses = responses
    return message, pos


def _read_response_v5_to_v6(buf: memoryview, pos: int) -> tuple[FetchResponse, int]:
    size = len(buf)
    message = new(FetchResponse)
    message.error_code = 0
    message.session_id = 0
    message.node_endpoints = []
    message.throttle_time_ms, n = _ii.unpack_from(buf, pos)
    pos += 8
    if n < 0:
        raise null_refused("responses")
    if n * 6 > size - pos:
        raise too_many(n)
    responses: list[FetchableTopicResponse] = []
    for _ in range(n):
        fetchable_topic_response = new(FetchableTopicResponse)
        fetchable_topic_response.topic_id = NO_UUID
        (n,) = _h.unpack_from(buf, pos)
        pos += 2
        if n < 0:
            raise null_refused("topic")
        end = pos + n
        fetchable_topic_response.topic = buf[pos:end].tobytes().decode()
        pos = end
        (n,) = _i.unpack_from(buf, pos)
        pos += 4
        if n < 0:
            raise null_refused("partitions")
        if n * 38 > size - pos:
            raise too_many(n)
        partitions: list[PartitionData] = []
        for _ in range(n):
            partition_data = new(PartitionData)
            partition_data.diverging_epoch = None
            partition_data.current_leader = None
            partition_data.snapshot_id = None
            partition_data.preferred_read_replica = -1
            (
                partition_data.partition_index,
                partition_data.error_code,
                partition_data.high_watermark,
                partition_data.last_stable_offset,
                partition_data.log_start_offset,
                n,
            ) = _ihqqqi.unpack_from(buf, pos)
            pos += 34
            if n < 0:
                partition_data.aborted_transactions = None
            else:
                if n * 16 > size - pos:
                    raise too_many(n)
                aborted_transactions: list[AbortedTransaction] = []
                end = pos + n * 16
                for producer_id, first_offset in _qq.iter_unpack(buf[pos:end]):
                    aborted_transaction = new(AbortedTransaction)
                    aborted_transaction.producer_id = producer_id
                    aborted_transaction.first_offset = first_offset
                    aborted_transactions.append(aborted_transaction)
                pos = end
                partition_data.aborted_transactions = aborted_transactions
            (n,) = _i.unpack_from(buf, pos)
            pos += 4
            if n < 0:
                partition_data.records = None
            else:
                end = pos + n
                partition_data.records = buf[pos:end]
                pos = end
            partitions.append(partition_data)
        fetchable_topic_response.partitions = partitions
        responses.append(fetchable_topic_response)
    message.responses = responses
    return message, pos


def _read_response_v7_to_v10(buf: memoryview, pos: int) -> tuple[FetchResponse, int]:
    size = len(buf)
    message = new(FetchResponse)
    message.node_endpoints = []
    message.throttle_time_ms, message.error_code, message.session_id, n = _ihii.unpack_from(buf, pos)
    pos += 14
    if n < 0:
        raise null_refused("responses")
    if n * 6 > size - pos:
        raise too_many(n)
    responses: list[FetchableTopicResponse] = []
    for _ in range(n):
        fetchable_topic_response = new(FetchableTopicResponse)
        fetchable_topic_response.topic_id = NO_UUID
        (n,) = _h.unpack_from(buf, pos)
        pos += 2
        if n < 0:
            raise null_refused("topic")
        end = pos + n
        fetchable_topic_response.topic = buf[pos:end].tobytes().decode()
        pos = end
        (n,) = _i.unpack_from(buf, pos)
        pos += 4
        if n < 0:
            raise null_refused("partitions")
        if n * 38 > size - pos:
            raise too_many(n)
        partitions: list[PartitionData] = []
        for _ in range(n):
            partition_data = new(PartitionData)
            partition_data.diverging_epoch = None
            partition_data.current_leader = None
            partition_data.snapshot_id = None
            partition_data.preferred_read_replica = -1
            (
                partition_data.partition_index,
                partition_data.error_code,
                partition_data.high_watermark,
                partition_data.last_stable_offset,
                partition_data.log_start_offset,
                n,
            ) = _ihqqqi.unpack_from(buf, pos)
            pos += 34
            if n < 0:
                partition_data.aborted_transactions = None
            else:
                if n * 16 > size - pos:
                    raise too_many(n)
                aborted_transactions: list[AbortedTransaction] = []
                end = pos + n * 16
                for producer_id, first_offset in _qq.iter_unpack(buf[pos:end]):
                    aborted_transaction = new(AbortedTransaction)
                    aborted_transaction.producer_id = producer_id
                    aborted_transaction.first_offset = first_offset
                    aborted_transactions.append(aborted_transaction)
                pos = end
                partition_data.aborted_transactions = aborted_transactions
            (n,) = _i.unpack_from(buf, pos)
            pos += 4
            if n < 0:
                partition_data.records = None
            else:
                end = pos + n
                partition_data.records = buf[pos:end]
                pos = end
            partitions.append(partition_data)
        fetchable_topic_response.partitions = partitions
        responses.append(fetchable_topic_response)
    message.responses = responses
    return message, pos


def _read_response_v11(buf: memoryview, pos: int) -> tuple[FetchResponse, int]:
    size = len(buf)
    message = new(FetchResponse)
    message.node_endpoints = []
    message.throttle_time_ms, message.error_code, message.session_id, n = _ihii.unpack_from(buf, pos)
    pos += 14
    if n < 0:
        raise null_refused("responses")
    if n * 6 > size - pos:
        raise too_many(n)
    responses: list[FetchableTopicResponse] = []
    for _ in range(n):
        fetchable_topic_response = new(FetchableTopicResponse)
        fetchable_topic_response.topic_id = NO_UUID
        (n,) = _h.unpack_from(buf, pos)
        pos += 2
        if n < 0:
            raise null_refused("topic")
        end = pos + n
        fetchable_topic_response.topic = buf[pos:end].tobytes().decode()
        pos = end
        (n,) = _i.unpack_from(buf, pos)
        pos += 4
        if n < 0:
            raise null_refused("partitions")
        if n * 42 > size - pos:
            raise too_many(n)
        partitions: list[PartitionData] = []
        for _ in range(n):
            partition_data = new(PartitionData)
            partition_data.diverging_epoch = None
            partition_data.current_leader = None
            partition_data.snapshot_id = None
            (
                partition_data.partition_index,
                partition_data.error_code,
                partition_data.high_watermark,
                partition_data.last_stable_offset,
                partition_data.log_start_offset,
                n,
            ) = _ihqqqi.unpack_from(buf, pos)
            pos += 34
            if n < 0:
                partition_data.aborted_transactions = None
            else:
                if n * 16 > size - pos:
                    raise too_many(n)
                aborted_transactions: list[AbortedTransaction] = []
                end = pos + n * 16
                for producer_id, first_offset in _qq.iter_unpack(buf[pos:end]):
                    aborted_transaction = new(AbortedTransaction)
                    aborted_transaction.producer_id = producer_id
                    aborted_transaction.first_offset = first_offset
                    aborted_transactions.append(aborted_transaction)
                pos = end
                partition_data.aborted_transactions = aborted_transactions
            partition_data.preferred_read_replica, n = _ii.unpack_from(buf, pos)
            pos += 8
            if n < 0:
                partition_data.records = None
            else:
                end = pos + n
                partition_data.records = buf[pos:end]
                pos = end
            partitions.append(partition_data)
        fetchable_topic_response.partitions = partitions
        responses.append(fetchable_topic_response)
    message.responses = responses
    return message, pos


def _read_response_v12(buf: memoryview, pos: int) -> tuple[FetchResponse, int]:
    size = len(buf)
    message = new(FetchResponse)
    message.node_endpoints = []
    message.throttle_time_ms, message.error_code, message.session_id, n = _ihiu.unpack_from(buf, pos)
    pos += 11
    if not 0 < n < 128:
        n, pos = long_size(buf, pos, n)
    if (n - 1) * 3 > size - pos:
        raise too_many(n - 1)
    responses: list[FetchableTopicResponse] = []
    for _ in range(1, n):
        fetchable_topic_response = new(FetchableTopicResponse)
        fetchable_topic_response.topic_id = NO_UUID
        n = buf[pos]
        pos += 1
        if not 0 < n < 128:
            n, pos = long_string_size(buf, pos, n)
        end = pos + n - 1
        fetchable_topic_response.topic = buf[pos:end].tobytes().decode()
        pos = end
        n = buf[pos]
        pos += 1
        if not 0 < n < 128:
            n, pos = long_size(buf, pos, n)
        if (n - 1) * 37 > size - pos:
            raise too_many(n - 1)
        partitions: list[PartitionData] = []
        for _ in range(1, n):
            partition_data = new(PartitionData)
            partition_data.diverging_epoch = None
            partition_data.current_leader = None
            partition_data.snapshot_id = None
            (
                partition_data.partition_index,
                partition_data.error_code,
                partition_data.high_watermark,
                partition_data.last_stable_offset,
                partition_data.log_start_offset,
                n,
            ) = _ihqqqu.unpack_from(buf, pos)
            pos += 31
            if n == 0:
                partition_data.aborted_transactions = None
            else:
                if n > 127:
                    n, pos = long_size(buf, pos, n)
                if (n - 1) * 17 > size - pos:
                    raise too_many(n - 1)
                aborted_transactions: list[AbortedTransaction] = []
                end = pos + (n - 1) * 17
                if buf[pos + 16 : end : 17].tobytes().count(0) == n - 1:
                    for producer_id, first_offset in _qqx.iter_unpack(buf[pos:end]):
                        aborted_transaction = new(AbortedTransaction)
                        aborted_transaction.producer_id = producer_id
                        aborted_transaction.first_offset = first_offset
                        aborted_transactions.append(aborted_transaction)
                    pos = end
                else:
                    for _ in range(1, n):
                        aborted_transaction, pos = _read_response_aborted_transaction_v12_to_v18(buf, pos)
                        aborted_transactions.append(aborted_transaction)
                partition_data.aborted_transactions = aborted_transactions
            partition_data.preferred_read_replica, n = _iu.unpack_from(buf, pos)
            pos += 5
            if n == 0:
                partition_data.records = None
            else:
                if n > 127:
                    n, pos = long_size(buf, pos, n)
                end = pos + n - 1
                partition_data.records = buf[pos:end]
                pos = end
            if buf[pos] == 0:
                pos += 1
            else:
                tags, pos = tag_count(buf, pos)
                for _ in range(tags):
                    tag, pos, stop = tagged_field(buf, pos)
                    if tag == 0:
                        epoch_end_offset = new(EpochEndOffset)
                        epoch_end_offset.epoch, epoch_end_offset.end_offset = _iq.unpack_from(buf, pos)
                        pos += 12
                        if buf[pos]:
                            pos = skip_tagged_fields(buf, pos)
                        else:
                            pos += 1
                        partition_data.diverging_epoch = epoch_end_offset
                    elif tag == 1:
                        leader_id_and_epoch = new(LeaderIdAndEpoch)
                        leader_id_and_epoch.leader_id, leader_id_and_epoch.leader_epoch = _ii.unpack_from(buf, pos)
                        pos += 8
                        if buf[pos]:
                            pos = skip_tagged_fields(buf, pos)
                        else:
                            pos += 1
                        partition_data.current_leader = leader_id_and_epoch
                    elif tag == 2:
                        snapshot_id = new(SnapshotId)
                        snapshot_id.end_offset, snapshot_id.epoch = _qi.unpack_from(buf, pos)
                        pos += 12
                        if buf[pos]:
                            pos = skip_tagged_fields(buf, pos)
                        else:
                            pos += 1
                        partition_data.snapshot_id = snapshot_id
                    else:
                        pos = stop
                    if pos != stop:
                        raise wrong_tagged_size(tag)
            partitions.append(partition_data)
        fetchable_topic_response.partitions = partitions
        if buf[pos]:
            pos = skip_tagged_fields(buf, pos)
        else:
            pos += 1
        responses.append(fetchable_topic_response)
    message.responses = responses
    if buf[pos]:
        pos = skip_tagged_fields(buf, pos)
    else:
        pos += 1
    return message, pos


def _read_response_v13_to_v15(buf: memoryview, pos: int) -> tuple[FetchResponse, int]:
    size = len(buf)
    message = new(FetchResponse)
    message.node_endpoints = []
    message.throttle_time_ms, message.error_code, message.session_id, n = _ihiu.unpack_from(buf, pos)
    pos += 11
    if not 0 < n < 128:
        n, pos = long_size(buf, pos, n)
    if (n - 1) * 18 > size - pos:
        raise too_many(n - 1)
    responses: list[FetchableTopicResponse] = []
    for _ in range(1, n):
        fetchable_topic_response = new(FetchableTopicResponse)
        fetchable_topic_response.topic = ""
        fetchable_topic_response.topic_id, n = _gu.unpack_from(buf, pos)
        pos += 17
        if not 0 < n < 128:
            n, pos = long_size(buf, pos, n)
        if (n - 1) * 37 > size - pos:
            raise too_many(n - 1)
        partitions: list[PartitionData] = []
        for _ in range(1, n):
            partition_data = new(PartitionData)
            partition_data.diverging_epoch = None
            partition_data.current_leader = None
            partition_data.snapshot_id = None
            (
                partition_data.partition_index,
                partition_data.error_code,
                partition_data.high_watermark,
                partition_data.last_stable_offset,
                partition_data.log_start_offset,
                n,
            ) = _ihqqqu.unpack_from(buf, pos)
            pos += 31
            if n == 0:
                partition_data.aborted_transactions = None
            else:
                if n > 127:
                    n, pos = long_size(buf, pos, n)
                if (n - 1) * 17 > size - pos:
                    raise too_many(n - 1)
                aborted_transactions: list[AbortedTransaction] = []
                end = pos + (n - 1) * 17
                if buf[pos + 16 : end : 17].tobytes().count(0) == n - 1:
                    for producer_id, first_offset in _qqx.iter_unpack(buf[pos:end]):
                        aborted_transaction = new(AbortedTransaction)
                        aborted_transaction.producer_id = producer_id
                        aborted_transaction.first_offset = first_offset
                        aborted_transactions.append(aborted_transaction)
                    pos = end
                else:
                    for _ in range(1, n):
                        aborted_transaction, pos = _read_response_aborted_transaction_v12_to_v18(buf, pos)
                        aborted_transactions.append(aborted_transaction)
                partition_data.aborted_transactions = aborted_transactions
            partition_data.preferred_read_replica, n = _iu.unpack_from(buf, pos)
            pos += 5
            if n == 0:
                partition_data.records = None
            else:
                if n > 127:
                    n, pos = long_size(buf, pos, n)
                end = pos + n - 1
                partition_data.records = buf[pos:end]
                pos = end
            if buf[pos] == 0:
                pos += 1
            else:
                tags, pos = tag_count(buf, pos)
                for _ in range(tags):
                    tag, pos, stop = tagged_field(buf, pos)
                    if tag == 0:
                        epoch_end_offset = new(EpochEndOffset)
                        epoch_end_offset.epoch, epoch_end_offset.end_offset = _iq.unpack_from(buf, pos)
                        pos += 12
                        if buf[pos]:
                            pos = skip_tagged_fields(buf, pos)
                        else:
                            pos += 1
                        partition_data.diverging_epoch = epoch_end_offset
                    elif tag == 1:
                        leader_id_and_epoch = new(LeaderIdAndEpoch)
                        leader_id_and_epoch.leader_id, leader_id_and_epoch.leader_epoch = _ii.unpack_from(buf, pos)
                        pos += 8
                        if buf[pos]:
                            pos = skip_tagged_fields(buf, pos)
                        else:
                            pos += 1
                        partition_data.current_leader = leader_id_and_epoch
                    elif tag == 2:
                        snapshot_id = new(SnapshotId)
                        snapshot_id.end_offset, snapshot_id.epoch = _qi.unpack_from(buf, pos)
                        pos += 12
                        if buf[pos]:
                            pos = skip_tagged_fields(buf, pos)
                        else:
                            pos += 1
                        partition_data.snapshot_id = snapshot_id
                    else:
                        pos = stop
                    if pos != stop:
                        raise wrong_tagged_size(tag)
            partitions.append(partition_data)
        fetchable_topic_response.partitions = partitions
        if buf[pos]:
            pos = skip_tagged_fields(buf, pos)
        else:
            pos += 1
        responses.append(fetchable_topic_response)
    message.responses = responses
    if buf[pos]:
        pos = skip_tagged_fields(buf, pos)
    else:
        pos += 1
    return message, pos


def _read_response_v16_to_v18(buf: memoryview, pos: int) -> tuple[FetchResponse, int]:
    size = len(buf)
    message = new(FetchResponse)
    message.node_endpoints = []
    message.throttle_time_ms, message.error_code, message.session_id, n = _ihiu.unpack_from(buf, pos)
    pos += 11
    if not 0 < n < 128:
        n, pos = long_size(buf, pos, n)
    if (n - 1) * 18 > size - pos:
        raise too_many(n - 1)
    responses: list[FetchableTopicResponse] = []
    for _ in range(1, n):
        fetchable_topic_response = new(FetchableTopicResponse)
        fetchable_topic_response.topic = ""
        fetchable_topic_response.topic_id, n = _gu.unpack_from(buf, pos)
        pos += 17
        if not 0 < n < 128:
            n, pos = long_size(buf, pos, n)
        if (n - 1) * 37 > size - pos:
            raise too_many(n - 1)
        partitions: list[PartitionData] = []
        for _ in range(1, n):
            partition_data = new(PartitionData)
            partition_data.diverging_epoch = None
            partition_data.current_leader = None
            partition_data.snapshot_id = None
            (
                partition_data.partition_index,
                partition_data.error_code,
                partition_data.high_watermark,
                partition_data.last_stable_offset,
                partition_data.log_start_offset,
                n,
            ) = _ihqqqu.unpack_from(buf, pos)
            pos += 31
            if n == 0:
                partition_data.aborted_transactions = None
            else:
                if n > 127:
                    n, pos = long_size(buf, pos, n)
                if (n - 1) * 17 > size - pos:
                    raise too_many(n - 1)
                aborted_transactions: list[AbortedTransaction] = []
                end = pos + (n - 1) * 17
                if buf[pos + 16 : end : 17].tobytes().count(0) == n - 1:
                    for producer_id, first_offset in _qqx.iter_unpack(buf[pos:end]):
                        aborted_transaction = new(AbortedTransaction)
                        aborted_transaction.producer_id = producer_id
                        aborted_transaction.first_offset = first_offset
                        aborted_transactions.append(aborted_transaction)
                    pos = end
                else:
                    for _ in range(1, n):
                        aborted_transaction, pos = _read_response_aborted_transaction_v12_to_v18(buf, pos)
                        aborted_transactions.append(aborted_transaction)
                partition_data.aborted_transactions = aborted_transactions
            partition_data.preferred_read_replica, n = _iu.unpack_from(buf, pos)
            pos += 5
            if n == 0:
                partition_data.records = None
            else:
                if n > 127:
                    n, pos = long_size(buf, pos, n)
                end = pos + n - 1
                partition_data.records = buf[pos:end]
                pos = end
            if buf[pos] == 0:
                pos += 1
            else:
                tags, pos = tag_count(buf, pos)
                for _ in range(tags):
                    tag, pos, stop = tagged_field(buf, pos)
                    if tag == 0:
                        epoch_end_offset = new(EpochEndOffset)
                        epoch_end_offset.epoch, epoch_end_offset.end_offset = _iq.unpack_from(buf, pos)
                        pos += 12
                        if buf[pos]:
                            pos = skip_tagged_fields(buf, pos)
                        else:
                            pos += 1
                        partition_data.diverging_epoch = epoch_end_offset
                    elif tag == 1:
                        leader_id_and_epoch = new(LeaderIdAndEpoch)
                        leader_id_and_epoch.leader_id, leader_id_and_epoch.leader_epoch = _ii.unpack_from(buf, pos)
                        pos += 8
                        if buf[pos]:
                            pos = skip_tagged_fields(buf, pos)
                        else:
                            pos += 1
                        partition_data.current_leader = leader_id_and_epoch
                    elif tag == 2:
                        snapshot_id = new(SnapshotId)
                        snapshot_id.end_offset, snapshot_id.epoch = _qi.unpack_from(buf, pos)
                        pos += 12
                        if buf[pos]:
                            pos = skip_tagged_fields(buf, pos)
                        else:
                            pos += 1
                        partition_data.snapshot_id = snapshot_id
                    else:
                        pos = stop
                    if pos != stop:
                        raise wrong_tagged_size(tag)
            partitions.append(partition_data)
        fetchable_topic_response.partitions = partitions
        if buf[pos]:
            pos = skip_tagged_fields(buf, pos)
        else:
            pos += 1
        responses.append(fetchable_topic_response)
    message.responses = responses
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
            else:
                pos = stop_2
            if pos != stop_2:
                raise wrong_tagged_size(tag)
    return message, pos


def _write_response_v4(out: bytearray, message: FetchResponse, inserts: Inserts) -> None:
    if message.session_id:
        raise absent("session_id")
    if message.node_endpoints:
        raise absent("node_endpoints")
    out += _ii.pack(message.throttle_time_ms, len(message.responses))
    for fetchable_topic_response in message.responses:
        encoded = fetchable_topic_response.topic.encode()
        out += _h.pack(len(encoded))
        out += encoded
        out += _i.pack(len(fetchable_topic_response.partitions))
        for partition_data in fetchable_topic_response.partitions:
            if partition_data.diverging_epoch is not None:
                raise absent("diverging_epoch")
            if partition_data.current_leader is not None:
                raise absent("current_leader")
            if partition_data.snapshot_id is not None:
                raise absent("snapshot_id")
            if partition_data.preferred_read_replica != -1:
                raise absent("preferred_read_replica")
            out += _ihqq.pack(
                partition_data.partition_index,
                partition_data.error_code,
                partition_data.high_watermark,
                partition_data.last_stable_offset,
            )
            if partition_data.aborted_transactions is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _i.pack(len(partition_data.aborted_transactions))
                for aborted_transaction in partition_data.aborted_transactions:
                    out += _qq.pack(aborted_transaction.producer_id, aborted_transaction.first_offset)
            if partition_data.records is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _i.pack(len(partition_data.records))
                if partition_data.records:
                    inserts.append((len(out), partition_data.records))


def _write_response_v5_to_v6(out: bytearray, message: FetchResponse, inserts: Inserts) -> None:
    if message.session_id:
        raise absent("session_id")
    if message.node_endpoints:
        raise absent("node_endpoints")
    out += _ii.pack(message.throttle_time_ms, len(message.responses))
    for fetchable_topic_response in message.responses:
        encoded = fetchable_topic_response.topic.encode()
        out += _h.pack(len(encoded))
        out += encoded
        out += _i.pack(len(fetchable_topic_response.partitions))
        for partition_data in fetchable_topic_response.partitions:
            if partition_data.diverging_epoch is not None:
                raise absent("diverging_epoch")
            if partition_data.current_leader is not None:
                raise absent("current_leader")
            if partition_data.snapshot_id is not None:
                raise absent("snapshot_id")
            if partition_data.preferred_read_replica != -1:
                raise absent("preferred_read_replica")
            out += _ihqqq.pack(
                partition_data.partition_index,
                partition_data.error_code,
                partition_data.high_watermark,
                partition_data.last_stable_offset,
                partition_data.log_start_offset,
            )
            if partition_data.aborted_transactions is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _i.pack(len(partition_data.aborted_transactions))
                for aborted_transaction in partition_data.aborted_transactions:
                    out += _qq.pack(aborted_transaction.producer_id, aborted_transaction.first_offset)
            if partition_data.records is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _i.pack(len(partition_data.records))
                if partition_data.records:
                    inserts.append((len(out), partition_data.records))


def _write_response_v7_to_v10(out: bytearray, message: FetchResponse, inserts: Inserts) -> None:
    if message.node_endpoints:
        raise absent("node_endpoints")
    out += _ihii.pack(message.throttle_time_ms, message.error_code, message.session_id, len(message.responses))
    for fetchable_topic_response in message.responses:
        encoded = fetchable_topic_response.topic.encode()
        out += _h.pack(len(encoded))
        out += encoded
        out += _i.pack(len(fetchable_topic_response.partitions))
        for partition_data in fetchable_topic_response.partitions:
            if partition_data.diverging_epoch is not None:
                raise absent("diverging_epoch")
            if partition_data.current_leader is not None:
                raise absent("current_leader")
            if partition_data.snapshot_id is not None:
                raise absent("snapshot_id")
            if partition_data.preferred_read_replica != -1:
                raise absent("preferred_read_replica")
            out += _ihqqq.pack(
                partition_data.partition_index,
                partition_data.error_code,
                partition_data.high_watermark,
                partition_data.last_stable_offset,
                partition_data.log_start_offset,
            )
            if partition_data.aborted_transactions is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _i.pack(len(partition_data.aborted_transactions))
                for aborted_transaction in partition_data.aborted_transactions:
                    out += _qq.pack(aborted_transaction.producer_id, aborted_transaction.first_offset)
            if partition_data.records is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _i.pack(len(partition_data.records))
                if partition_data.records:
                    inserts.append((len(out), partition_data.records))


def _write_response_v11(out: bytearray, message: FetchResponse, inserts: Inserts) -> None:
    if message.node_endpoints:
        raise absent("node_endpoints")
    out += _ihii.pack(message.throttle_time_ms, message.error_code, message.session_id, len(message.responses))
    for fetchable_topic_response in message.responses:
        encoded = fetchable_topic_response.topic.encode()
        out += _h.pack(len(encoded))
        out += encoded
        out += _i.pack(len(fetchable_topic_response.partitions))
        for partition_data in fetchable_topic_response.partitions:
            if partition_data.diverging_epoch is not None:
                raise absent("diverging_epoch")
            if partition_data.current_leader is not None:
                raise absent("current_leader")
            if partition_data.snapshot_id is not None:
                raise absent("snapshot_id")
            out += _ihqqq.pack(
                partition_data.partition_index,
                partition_data.error_code,
                partition_data.high_watermark,
                partition_data.last_stable_offset,
                partition_data.log_start_offset,
            )
            if partition_data.aborted_transactions is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _i.pack(len(partition_data.aborted_transactions))
                for aborted_transaction in partition_data.aborted_transactions:
                    out += _qq.pack(aborted_transaction.producer_id, aborted_transaction.first_offset)
            out += _i.pack(partition_data.preferred_read_replica)
            if partition_data.records is None:
                out += b"\xff\xff\xff\xff"
            else:
                out += _i.pack(len(partition_data.records))
                if partition_data.records:
                    inserts.append((len(out), partition_data.records))


def _write_response_v12(out: bytearray, message: FetchResponse, inserts: Inserts) -> None:
    if message.node_endpoints:
        raise absent("node_endpoints")
    out += _ihi.pack(message.throttle_time_ms, message.error_code, message.session_id)
    n = len(message.responses) + 1
    if n < 128:
        out.append(n)
    else:
        put_uvarint(out, n)
    for fetchable_topic_response in message.responses:
        encoded = fetchable_topic_response.topic.encode()
        n = len(encoded) + 1
        if n < 128:
            out.append(n)
        else:
            put_long_string_size(out, n)
        out += encoded
        n = len(fetchable_topic_response.partitions) + 1
        if n < 128:
            out.append(n)
        else:
            put_uvarint(out, n)
        for partition_data in fetchable_topic_response.partitions:
            out += _ihqqq.pack(
                partition_data.partition_index,
                partition_data.error_code,
                partition_data.high_watermark,
                partition_data.last_stable_offset,
                partition_data.log_start_offset,
            )
            if partition_data.aborted_transactions is None:
                out.append(0)
            else:
                n = len(partition_data.aborted_transactions) + 1
                if n < 128:
                    out.append(n)
                else:
                    put_uvarint(out, n)
                for aborted_transaction in partition_data.aborted_transactions:
                    out += _qqx.pack(aborted_transaction.producer_id, aborted_transaction.first_offset)
            out += _i.pack(partition_data.preferred_read_replica)
            if partition_data.records is None:
                out.append(0)
            else:
                n = len(partition_data.records) + 1
                if n < 128:
                    out.append(n)
                else:
                    put_uvarint(out, n)
                if partition_data.records:
                    inserts.append((len(out), partition_data.records))
            if (
                partition_data.diverging_epoch is not None
                or partition_data.current_leader is not None
                or partition_data.snapshot_id is not None
            ):
                out.append(
                    (partition_data.diverging_epoch is not None)
                    + (partition_data.current_leader is not None)
                    + (partition_data.snapshot_id is not None)
                )
                if partition_data.diverging_epoch is not None:
                    tagged = bytearray()
                    epoch_end_offset = partition_data.diverging_epoch
                    tagged += _iqx.pack(epoch_end_offset.epoch, epoch_end_offset.end_offset)
                    put_tagged_field(out, 0, tagged)
                if partition_data.current_leader is not None:
                    tagged_2 = bytearray()
                    leader_id_and_epoch = partition_data.current_leader
                    tagged_2 += _iix.pack(leader_id_and_epoch.leader_id, leader_id_and_epoch.leader_epoch)
                    put_tagged_field(out, 1, tagged_2)
                if partition_data.snapshot_id is not None:
                    tagged_3 = bytearray()
                    snapshot_id = partition_data.snapshot_id
                    tagged_3 += _qix.pack(snapshot_id.end_offset, snapshot_id.epoch)
                    put_tagged_field(out, 2, tagged_3)
            else:
                out.append(0)
        out.append(0)
    out.append(0)


def _write_response_v13_to_v15(out: bytearray, message: FetchResponse, inserts: Inserts) -> None:
    if message.node_endpoints:
        raise absent("node_endpoints")
    out += _ihi.pack(message.throttle_time_ms, message.error_code, message.session_id)
    n = len(message.responses) + 1
    if n < 128:
        out.append(n)
    else:
        put_uvarint(out, n)
    for fetchable_topic_response in message.responses:
        if len(fetchable_topic_response.topic_id) != 16:
            raise wrong_uuid("topic_id")
        out += _g.pack(fetchable_topic_response.topic_id)
        n = len(fetchable_topic_response.partitions) + 1
        if n < 128:
            out.append(n)
        else:
            put_uvarint(out, n)
        for partition_data in fetchable_topic_response.partitions:
            out += _ihqqq.pack(
                partition_data.partition_index,
                partition_data.error_code,
                partition_data.high_watermark,
                partition_data.last_stable_offset,
                partition_data.log_start_offset,
            )
            if partition_data.aborted_transactions is None:
                out.append(0)
            else:
                n = len(partition_data.aborted_transactions) + 1
                if n < 128:
                    out.append(n)
                else:
                    put_uvarint(out, n)
                for aborted_transaction in partition_data.aborted_transactions:
                    out += _qqx.pack(aborted_transaction.producer_id, aborted_transaction.first_offset)
            out += _i.pack(partition_data.preferred_read_replica)
            if partition_data.records is None:
                out.append(0)
            else:
                n = len(partition_data.records) + 1
                if n < 128:
                    out.append(n)
                else:
                    put_uvarint(out, n)
                if partition_data.records:
                    inserts.append((len(out), partition_data.records))
            if (
                partition_data.diverging_epoch is not None
                or partition_data.current_leader is not None
                or partition_data.snapshot_id is not None
            ):
                out.append(
                    (partition_data.diverging_epoch is not None)
                    + (partition_data.current_leader is not None)
                    + (partition_data.snapshot_id is not None)
                )
                if partition_data.diverging_epoch is not None:
                    tagged = bytearray()
                    epoch_end_offset = partition_data.diverging_epoch
                    tagged += _iqx.pack(epoch_end_offset.epoch, epoch_end_offset.end_offset)
                    put_tagged_field(out, 0, tagged)
                if partition_data.current_leader is not None:
                    tagged_2 = bytearray()
                    leader_id_and_epoch = partition_data.current_leader
                    tagged_2 += _iix.pack(leader_id_and_epoch.leader_id, leader_id_and_epoch.leader_epoch)
                    put_tagged_field(out, 1, tagged_2)
                if partition_data.snapshot_id is not None:
                    tagged_3 = bytearray()
                    snapshot_id = partition_data.snapshot_id
                    tagged_3 += _qix.pack(snapshot_id.end_offset, snapshot_id.epoch)
                    put_tagged_field(out, 2, tagged_3)
            else:
                out.append(0)
        out.append(0)
    out.append(0)


def _write_response_v16_to_v18(out: bytearray, message: FetchResponse, inserts: Inserts) -> None:
    out += _ihi.pack(message.throttle_time_ms, message.error_code, message.session_id)
    n = len(message.responses) + 1
    if n < 128:
        out.append(n)
    else:
        put_uvarint(out, n)
    for fetchable_topic_response in message.responses:
        if len(fetchable_topic_response.topic_id) != 16:
            raise wrong_uuid("topic_id")
        out += _g.pack(fetchable_topic_response.topic_id)
        n = len(fetchable_topic_response.partitions) + 1
        if n < 128:
            out.append(n)
        else:
            put_uvarint(out, n)
        for partition_data in fetchable_topic_response.partitions:
            out += _ihqqq.pack(
                partition_data.partition_index,
                partition_data.error_code,
                partition_data.high_watermark,
                partition_data.last_stable_offset,
                partition_data.log_start_offset,
            )
            if partition_data.aborted_transactions is None:
                out.append(0)
            else:
                n = len(partition_data.aborted_transactions) + 1
                if n < 128:
                    out.append(n)
                else:
                    put_uvarint(out, n)
                for aborted_transaction in partition_data.aborted_transactions:
                    out += _qqx.pack(aborted_transaction.producer_id, aborted_transaction.first_offset)
            out += _i.pack(partition_data.preferred_read_replica)
            if partition_data.records is None:
                out.append(0)
            else:
                n = len(partition_data.records) + 1
                if n < 128:
                    out.append(n)
                else:
                    put_uvarint(out, n)
                if partition_data.records:
                    inserts.append((len(out), partition_data.records))
            if (
                partition_data.diverging_epoch is not None
                or partition_data.current_leader is not None
                or partition_data.snapshot_id is not None
            ):
                out.append(
                    (partition_data.diverging_epoch is not None)
                    + (partition_data.current_leader is not None)
                    + (partition_data.snapshot_id is not None)
                )
                if partition_data.diverging_epoch is not None:
                    tagged = bytearray()
                    epoch_end_offset = partition_data.diverging_epoch
                    tagged += _iqx.pack(epoch_end_offset.epoch, epoch_end_offset.end_offset)
                    put_tagged_field(out, 0, tagged)
                if partition_data.current_leader is not None:
                    tagged_2 = bytearray()
                    leader_id_and_epoch = partition_data.current_leader
                    tagged_2 += _iix.pack(leader_id_and_epoch.leader_id, leader_id_and_epoch.leader_epoch)
                    put_tagged_field(out, 1, tagged_2)
                if partition_data.snapshot_id is not None:
                    tagged_3 = bytearray()
                    snapshot_id = partition_data.snapshot_id
                    tagged_3 += _qix.pack(snapshot_id.end_offset, snapshot_id.epoch)
                    put_tagged_field(out, 2, tagged_3)
            else:
                out.append(0)
        out.append(0)
    if message.node_endpoints:
        out.append(1)
        tagged_4 = bytearray()
        n = len(message.node_endpoints) + 1
        if n < 128:
            tagged_4.append(n)
        else:
            put_uvarint(tagged_4, n)
        for node_endpoint in message.node_endpoints:
            encoded = node_endpoint.host.encode()
            tagged_4 += _i.pack(node_endpoint.node_id)
            n = len(encoded) + 1
            if n < 128:
                tagged_4.append(n)
            else:
                put_long_string_size(tagged_4, n)
            tagged_4 += encoded
            tagged_4 += _i.pack(node_endpoint.port)
            if node_endpoint.rack is None:
                tagged_4.append(0)
            else:
                encoded = node_endpoint.rack.encode()
                n = len(encoded) + 1
                if n < 128:
                    tagged_4.append(n)
                else:
                    put_long_string_size(tagged_4, n)
                tagged_4 += encoded
            tagged_4.append(0)
        put_tagged_field(out, 0, tagged_4)
    else:
        out.append(0)


REQUEST: MessageCodec[FetchRequest] = MessageCodec(
    "FetchRequest",
    4,
    (
        _read_request_v4,
        _read_request_v5_to_v6,
        _read_request_v5_to_v6,
        _read_request_v7_to_v8,
        _read_request_v7_to_v8,
        _read_request_v9_to_v10,
        _read_request_v9_to_v10,
        _read_request_v11,
        _read_request_v12,
        _read_request_v13_to_v14,
        _read_request_v13_to_v14,
        _read_request_v15_to_v16,
        _read_request_v15_to_v16,
        _read_request_v17,
        _read_request_v18,
    ),
    (
        _write_request_v4,
        _write_request_v5_to_v6,
        _write_request_v5_to_v6,
        _write_request_v7_to_v8,
        _write_request_v7_to_v8,
        _write_request_v9_to_v10,
        _write_request_v9_to_v10,
        _write_request_v11,
        _write_request_v12,
        _write_request_v13_to_v14,
        _write_request_v13_to_v14,
        _write_request_v15_to_v16,
        _write_request_v15_to_v16,
        _write_request_v17,
        _write_request_v18,
    ),
    holds_views=False,
)

RESPONSE: MessageCodec[FetchResponse] = MessageCodec(
    "FetchResponse",
    4,
    (
        _read_response_v4,
        _read_response_v5_to_v6,
        _read_response_v5_to_v6,
        _read_response_v7_to_v10,
        _read_response_v7_to_v10,
        _read_response_v7_to_v10,
        _read_response_v7_to_v10,
        _read_response_v11,
        _read_response_v12,
        _read_response_v13_to_v15,
        _read_response_v13_to_v15,
        _read_response_v13_to_v15,
        _read_response_v16_to_v18,
        _read_response_v16_to_v18,
        _read_response_v16_to_v18,
    ),
    (
        _write_response_v4,
        _write_response_v5_to_v6,
        _write_response_v5_to_v6,
        _write_response_v7_to_v10,
        _write_response_v7_to_v10,
        _write_response_v7_to_v10,
        _write_response_v7_to_v10,
        _write_response_v11,
        _write_response_v12,
        _write_response_v13_to_v15,
        _write_response_v13_to_v15,
        _write_response_v13_to_v15,
        _write_response_v16_to_v18,
        _write_response_v16_to_v18,
        _write_response_v16_to_v18,
    ),
    holds_views=True,
)
