"""A few messages, byte by byte, written by hand from the protocol's description."""

import struct

import pytest

from tidelog.wire.embedded import decode_embedded, encode_embedded
from tidelog.wire.generated import (
    api_versions,
    consumer_protocol_assignment,
    consumer_protocol_subscription,
    describe_topic_partitions,
    fetch,
    heartbeat,
    metadata,
    produce,
)
from tidelog.wire.protocol_errors import RemoteProtocolError, UnsupportedVersion


def test_heartbeat_v3() -> None:
    request = heartbeat.HeartbeatRequest("g", 5, "member", None)
    golden = b"\x00\x01g" + b"\x00\x00\x00\x05" + b"\x00\x06member" + b"\xff\xff"
    assert heartbeat.REQUEST.encode(request, 3) == golden
    assert heartbeat.REQUEST.decode(golden, 3) == request


def test_heartbeat_v4_is_compact() -> None:
    request = heartbeat.HeartbeatRequest("g", 5, "member", "i")
    golden = b"\x02g" + b"\x00\x00\x00\x05" + b"\x07member" + b"\x02i" + b"\x00"
    assert heartbeat.REQUEST.encode(request, 4) == golden
    assert heartbeat.REQUEST.decode(golden, 4) == request


def test_produce_v9() -> None:
    batch = b"r" * 200
    partition = produce.PartitionProduceData(3, batch)
    request = produce.ProduceRequest(
        None, -1, 30000, [produce.TopicProduceData("orders", partition_data=[partition])]
    )
    golden = (
        b"\x00"  # no transactional id
        b"\xff\xff\x00\x00\x75\x30"  # acks, timeout
        b"\x02"  # one topic
        b"\x07orders"
        b"\x02"  # one partition
        b"\x00\x00\x00\x03"
        b"\xc9\x01" + batch + b"\x00\x00\x00"  # 201 as a varint  # no tagged fields in partition, topic and request
    )
    assert produce.REQUEST.encode(request, 9) == golden
    assert produce.REQUEST.decode(golden, 9) == request


def test_fetch_v13_names_topics_by_id() -> None:
    topic_id = bytes(range(16))
    topic = fetch.FetchTopic(topic_id=topic_id, partitions=[fetch.FetchPartition(1, -1, 42, -1, -1, 1000)])
    request = fetch.FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=9, topics=[topic], rack_id="r")
    golden = (
        struct.pack(">iiiibii", -1, 500, 1, 9, 0, 0, -1)
        + b"\x02"
        + topic_id
        + b"\x02"
        + struct.pack(">iiqiqi", 1, -1, 42, -1, -1, 1000)
        + b"\x00\x00"
        + b"\x01"  # no forgotten topics
        + b"\x02r"
        + b"\x00"
    )
    assert fetch.REQUEST.encode(request, 13) == golden
    assert fetch.REQUEST.decode(golden, 13) == request


def test_metadata_v1_tells_no_topics_from_all_topics() -> None:
    assert metadata.REQUEST.encode(metadata.MetadataRequest(topics=[]), 1) == b"\x00\x00\x00\x00"
    assert metadata.REQUEST.encode(metadata.MetadataRequest(topics=None), 1) == b"\xff\xff\xff\xff"
    assert metadata.REQUEST.decode(b"\xff\xff\xff\xff", 1).topics is None


def test_api_versions_v3_response() -> None:
    response = api_versions.ApiVersionsResponse(
        api_keys=[api_versions.ApiVersion(18, 0, 4)], finalized_features_epoch=1
    )
    golden = (
        b"\x00\x00" + b"\x02" + b"\x00\x12\x00\x00\x00\x04\x00" + bytes(4) + b"\x01\x01\x08" + b"\0\0\0\0\0\0\0\1"
    )
    assert api_versions.RESPONSE.encode(response, 3) == golden
    assert api_versions.RESPONSE.decode(golden, 3) == response


def test_a_null_struct_is_a_negative_byte() -> None:
    request = describe_topic_partitions.DescribeTopicPartitionsRequest(response_partition_limit=1)
    golden = b"\x01" + b"\x00\x00\x00\x01" + b"\xff" + b"\x00"
    assert describe_topic_partitions.REQUEST.encode(request, 0) == golden
    request.cursor = describe_topic_partitions.RequestCursor("t", 7)
    golden = b"\x01" + b"\x00\x00\x00\x01" + b"\x01\x02t\x00\x00\x00\x07\x00" + b"\x00"
    assert describe_topic_partitions.REQUEST.encode(request, 0) == golden
    assert describe_topic_partitions.REQUEST.decode(golden, 0) == request


def test_embedded_data_has_its_version_in_front() -> None:
    part = consumer_protocol_assignment.TopicPartition("t", [1])
    assignment = consumer_protocol_assignment.ConsumerProtocolAssignment([part])
    golden = (
        b"\x00\x00" + b"\x00\x00\x00\x01" + b"\x00\x01t" + b"\x00\x00\x00\x01\x00\x00\x00\x01" + b"\xff\xff\xff\xff"
    )
    assert encode_embedded(consumer_protocol_assignment.DATA, assignment, 0) == golden
    assert decode_embedded(consumer_protocol_assignment.DATA, golden) == assignment


def test_embedded_data_of_a_newer_version_is_read_as_our_newest() -> None:
    codec = consumer_protocol_subscription.DATA
    subscription = consumer_protocol_subscription.ConsumerProtocolSubscription(["t"], generation_id=4, rack_id="r")
    newer = b"\x00\x09" + encode_embedded(codec, subscription, 3)[2:] + b"something new"
    assert decode_embedded(codec, newer) == subscription
    with pytest.raises(UnsupportedVersion):
        decode_embedded(codec, b"\xff\xff" + newer[2:])
    for cut in range(2):
        with pytest.raises(RemoteProtocolError):
            decode_embedded(codec, newer[:cut])
