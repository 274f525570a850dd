"""Every message at every version: round trips, defaults, null, versions, and what cannot be encoded."""

import random
from typing import Any

import pytest

from tests.wire.random_messages import all_cases, random_message
from tidelog.wire.generated import add_partitions_to_txn as txn
from tidelog.wire.generated import api_versions, fetch, metadata, produce
from tidelog.wire.primitives import NO_UUID, RecordSource, Struct
from tidelog.wire.protocol_errors import LocalProtocolError, RemoteProtocolError, UnsupportedVersion

CASES = list(all_cases())


def test_every_message_survives_a_round_trip_at_every_version() -> None:
    for case in CASES:
        rng = random.Random(str(case))
        for _ in range(8):
            message = random_message(case, rng)
            encoded = case.codec.encode(message, case.version)
            assert case.codec.decode(encoded, case.version) == message, str(case)


def test_default_messages_survive_a_round_trip_at_every_version() -> None:
    for case in CASES:
        message = random_message(case, random.Random(0), arrays_up_to=0)
        default = type(message)()
        if "topics" in default.__slots__ and default.topics is None:
            default.topics = []
        assert case.codec.decode(case.codec.encode(default, case.version), case.version) == default, str(case)


def test_bytes_and_records_are_views_of_the_buffer() -> None:
    request = produce.ProduceRequest(
        topic_data=[produce.TopicProduceData("t", partition_data=[produce.PartitionProduceData(0, b"batch")])]
    )
    frame = bytearray(produce.REQUEST.encode(request, 9))
    decoded = produce.REQUEST.decode(frame, 9)
    records = decoded.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records.obj is frame


def test_records_are_handed_through_uncopied() -> None:
    class Range(RecordSource):
        def __len__(self) -> int:
            return 1000

    source, batch = Range(), memoryview(b"batch")
    partitions = [fetch.PartitionData(0, records=source), fetch.PartitionData(1, records=batch)]
    response = fetch.FetchResponse(responses=[fetch.FetchableTopicResponse("t", partitions=partitions)])
    out = bytearray()
    inserts = fetch.RESPONSE.encode_into(out, response, 12)
    assert [records for _, records in inserts] == [source, batch]
    assert inserts[0][1] is source
    assert inserts[1][1] is batch
    with pytest.raises(LocalProtocolError, match="not in memory"):
        fetch.RESPONSE.encode(response, 12)


def test_defaults_are_those_of_the_protocol() -> None:
    request = fetch.FetchRequest()
    assert (request.replica_id, request.max_bytes, request.session_epoch) == (-1, 0x7FFFFFFF, -1)
    assert request.cluster_id is None
    assert request.replica_state is None
    assert request.topics == []
    assert fetch.FetchPartition().replica_directory_id == NO_UUID
    assert metadata.MetadataRequest().allow_auto_topic_creation is True
    assert metadata.MetadataResponse().cluster_authorized_operations == -(1 << 31)
    assert produce.PartitionProduceData().records is None


def test_default_lists_are_not_shared() -> None:
    first, second = fetch.FetchRequest(), fetch.FetchRequest()
    first.topics.append(fetch.FetchTopic())
    assert second.topics == []
    assert fetch.FetchRequest().topics == []


def test_tagged_fields_at_their_default_are_not_sent() -> None:
    plain = api_versions.ApiVersionsResponse()
    featured = api_versions.ApiVersionsResponse(finalized_features_epoch=7)
    assert api_versions.RESPONSE.encode(plain, 3)[-1] == 0
    encoded = api_versions.RESPONSE.encode(featured, 3)
    assert encoded.endswith(b"\x01\x01\x08" + (7).to_bytes(8, "big"))
    assert api_versions.RESPONSE.decode(encoded, 3).finalized_features_epoch == 7


@pytest.mark.parametrize(
    ("codec", "message", "version", "complaint"),
    [
        (produce.REQUEST, produce.ProduceRequest(acks=1 << 15), 9, "format"),
        (produce.REQUEST, produce.ProduceRequest(transactional_id="x" * 32768), 8, "format"),
        (produce.REQUEST, produce.ProduceRequest(transactional_id="x" * 32768), 9, "32767"),
        (produce.REQUEST, produce.ProduceRequest(transactional_id="\ud800"), 9, "surrogates"),
        (metadata.REQUEST, metadata.MetadataRequest(topics=None), 0, "topics may not be null"),
        (metadata.REQUEST, metadata.MetadataRequest(allow_auto_topic_creation=False), 3, "allow_auto_topic_creation"),
        (metadata.REQUEST, metadata.MetadataRequest(include_topic_authorized_operations=True), 7, "does not exist"),
        (metadata.REQUEST, metadata.MetadataRequest([metadata.MetadataRequestTopic(b"short")]), 12, "16 bytes"),
        (fetch.REQUEST, fetch.FetchRequest(replica_state=fetch.ReplicaState(1, 2)), 14, "replica_state"),
        (fetch.REQUEST, fetch.FetchRequest(), 3, "does not exist"),
        (fetch.REQUEST, fetch.FetchRequest(rack_id=None), 11, "NoneType"),  # type: ignore[arg-type]
        (txn.REQUEST, txn.AddPartitionsToTxnRequest(v3_and_below_producer_id=1), 4, "v3_and_below_producer_id"),
    ],
)  # fmt: skip
def test_what_a_version_cannot_carry_is_our_fault(codec: Any, message: Struct, version: int, complaint: str) -> None:
    with pytest.raises(LocalProtocolError, match=complaint):
        codec.encode(message, version)


def test_ignorable_fields_are_dropped_where_they_do_not_exist() -> None:
    request = fetch.FetchRequest(session_id=9, rack_id="r1")
    assert fetch.REQUEST.decode(fetch.REQUEST.encode(request, 4), 4) == fetch.FetchRequest()


def test_versions_outside_the_range_are_refused() -> None:
    for version in (-1, 0, 2, 14, 32767):
        with pytest.raises(UnsupportedVersion):
            produce.REQUEST.decode(b"", version)


def test_trailing_bytes_are_refused() -> None:
    encoded = produce.REQUEST.encode(produce.ProduceRequest(), 9)
    with pytest.raises(RemoteProtocolError, match="1 bytes too many"):
        produce.REQUEST.decode(encoded + b"\0", 9)
    assert produce.REQUEST.decode_prefix(encoded + b"\0", 9)[1] == len(encoded)


def test_messages_compare_and_print_by_their_fields() -> None:
    assert produce.ProduceRequest(acks=1) == produce.ProduceRequest(acks=1)
    assert produce.ProduceRequest(acks=1) != produce.ProduceRequest(acks=0)
    assert produce.ProduceRequest() != produce.ProduceResponse()
    assert repr(fetch.ReplicaState(1, 2)) == "ReplicaState(replica_id=1, replica_epoch=2)"
    with pytest.raises(TypeError):
        hash(produce.ProduceRequest())


def test_the_cases_are_all_messages_at_all_versions() -> None:
    assert len({case.message.top.name for case in CASES}) == 2 * 71 + 2
    assert len(CASES) == len(set(map(str, CASES))) > 500
