"""Topics over the wire: with many partitions, and what Metadata and fetch sessions tell of them when they change."""

import pytest

from tests.gateways.raw import RawClient, fetch_request, partitions_of, values_of
from tests.support.brokers import unique
from tidelog.wire.generated.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from tidelog.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.wire.generated.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from tidelog.wire.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tidelog.wire.generated.fetch import PartitionData
from tidelog.wire.generated.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponseTopic

VERSIONS = [4, 8, 13]


def metadata(client: RawClient, topic: str, version: int = 13) -> MetadataResponseTopic:
    request = MetadataRequest([MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    (found,) = client.ask("Metadata", version, request).topics
    assert isinstance(found, MetadataResponseTopic)
    return found


def delete(client: RawClient, *topics: str) -> list[int]:
    reply = client.ask("DeleteTopics", 6, DeleteTopicsRequest([DeleteTopicState(name) for name in topics]))
    return [response.error_code for response in reply.responses]


@pytest.mark.parametrize("version", VERSIONS)
def test_metadata_that_is_asked_for_again_is_the_same_until_the_topic_changes(
    client: RawClient, version: int
) -> None:
    name = unique("topic")
    client.create_topic(name, 3)
    first = metadata(client, name, version)
    assert [(p.partition_index, p.error_code, p.leader_id) for p in first.partitions] == [(i, 0, 0) for i in range(3)]
    assert metadata(client, name, version) == first
    assert len(metadata(client, name, 7).partitions) == 3
    grown = CreatePartitionsRequest([CreatePartitionsTopic(name, 200, None)], timeout_ms=10_000)
    assert [result.error_code for result in client.ask("CreatePartitions", 3, grown).results] == [0]
    again = metadata(client, name, version)
    assert [p.partition_index for p in again.partitions] == list(range(200))
    assert delete(client, name) == [0]
    assert metadata(client, name, version).error_code == 3
    client.create_topic(name, 2)
    assert len(metadata(client, name, version).partitions) == 2


def test_a_deleted_topic_that_is_created_anew_is_empty(client: RawClient) -> None:
    name = unique("topic")
    for round_ in range(3):
        client.create_topic(name, 20)
        assert client.produce(name, b"of round %d" % round_, partition=19).base_offset == 0
        assert values_of(client.fetch(name)) == []
        assert delete(client, name) == [0]


def test_many_topics_of_one_request_each_have_their_result(client: RawClient) -> None:
    names = [unique("topic") for _ in range(30)]
    wanted = [CreatableTopic(name, 3, 1) for name in [*names, "not/valid", "twice", "twice"]]
    reply = client.ask("CreateTopics", 7, CreateTopicsRequest(wanted, timeout_ms=10_000))
    assert [(topic.name, topic.error_code) for topic in reply.topics] == [
        *((name, 0) for name in names),
        ("not/valid", 17),
        ("twice", 42),
    ]
    for name in names:
        assert client.produce(name, b"x", partition=2).error_code == 0
    assert delete(client, *names, "nobody") == [0] * 30 + [3]


def test_a_session_at_the_end_of_its_partitions_hears_of_whatever_changes_and_of_nothing_else(
    client: RawClient,
) -> None:
    name, partitions = unique("topic"), range(5)
    client.create_topic(name, len(partitions))
    for partition in partitions:
        client.produce(name, b"a", b"b", partition=partition)
    first = client.ask("Fetch", 12, fetch_request(name, dict.fromkeys(partitions, 2), session_epoch=0))
    assert list(partitions_of(first)) == list(partitions)
    epoch = 0

    def news(offsets: dict[int, int] | None = None) -> dict[int, PartitionData]:
        nonlocal epoch
        epoch += 1
        request = fetch_request(name, offsets or {}, session_id=first.session_id, session_epoch=epoch)
        return partitions_of(client.ask("Fetch", 12, request))

    assert news() == {}
    client.produce(name, b"c", partition=3)
    heard = news()
    assert {index: values_of(data) for index, data in heard.items()} == {3: [b"c"]}
    assert news({3: 3}) == {}
    shortened = DeleteRecordsTopic(name, [DeleteRecordsPartition(1, 2)])
    client.ask("DeleteRecords", 2, DeleteRecordsRequest([shortened], timeout_ms=10_000))
    heard = news()
    assert {index: data.log_start_offset for index, data in heard.items()} == {1: 2}
    assert news() == {}
    assert {index: data.error_code for index, data in news({2: 9}).items()} == {2: 1}  # an offset that is not there
    assert news({2: 2}).keys() == {2}  # all is well again: that is news, too
    assert news() == {}
    delete(client, name)
    assert {index: data.error_code for index, data in news().items()} == dict.fromkeys(partitions, 3)
