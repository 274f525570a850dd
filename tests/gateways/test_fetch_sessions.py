"""Fetch sessions: every row of the table in `fetch_sessions`, over the wire; and their bound."""

import pytest

from tests.gateways.raw import RawClient, fetch_request, partitions_of, values_of
from tests.support.brokers import BrokerProcess, unique
from tidelog.gateways.kafka.fetch_sessions import LAST_EPOCH, SILENT_MS, FetchSessions, SessionError
from tidelog.wire.generated.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)

FETCH_SESSION_ID_NOT_FOUND = 70
INVALID_FETCH_SESSION_EPOCH = 71
UNKNOWN_TOPIC_OR_PARTITION = 3


@pytest.fixture
def topic(client: RawClient) -> str:
    name = unique("topic")
    client.create_topic(name, 3)
    return name


def ask(
    client: RawClient,
    topic: str,
    offsets: dict[int, int],
    id_: int,
    epoch: int,
    *,
    forget: list[int] | None = None,
    max_wait_ms: int = 0,
) -> FetchResponse:
    request = fetch_request(
        topic,
        offsets,
        session_id=id_,
        session_epoch=epoch,
        min_bytes=1 if max_wait_ms else 0,
        max_wait_ms=max_wait_ms,
    )
    request.forgotten_topics_data = [ForgottenTopic(topic, partitions=forget)] if forget else []
    response: FetchResponse = client.ask("Fetch", 12, request)
    return response


def test_without_a_session_everything_is_told_each_time(client: RawClient, topic: str) -> None:
    for _ in range(2):
        response = ask(client, topic, {0: 0, 1: 0}, 0, -1)
        assert response.session_id == 0
        assert set(partitions_of(response)) == {0, 1}


def test_a_new_session_tells_all_partitions_first_and_then_only_news(client: RawClient, topic: str) -> None:
    first = ask(client, topic, {0: 0, 1: 0, 2: 0}, 0, 0)
    assert first.session_id > 0
    assert set(partitions_of(first)) == {0, 1, 2}
    assert partitions_of(ask(client, topic, {}, first.session_id, 1)) == {}
    client.produce(topic, b"value", partition=1)
    news = partitions_of(ask(client, topic, {}, first.session_id, 2))
    assert set(news) == {1}
    assert values_of(news[1]) == [b"value"]
    moved = ask(client, topic, {1: 1}, first.session_id, 3)  # the consumer goes on behind it
    assert partitions_of(moved) == {}
    assert partitions_of(ask(client, topic, {}, first.session_id, 4)) == {}


def test_a_session_takes_additions_changes_and_removals(client: RawClient, topic: str) -> None:
    for partition in range(3):
        client.produce(topic, b"value", partition=partition)
    id_ = ask(client, topic, {0: 1}, 0, 0).session_id
    assert set(partitions_of(ask(client, topic, {1: 0}, id_, 1))) == {1}
    assert set(partitions_of(ask(client, topic, {0: 0, 1: 1}, id_, 2))) == {0}
    assert partitions_of(ask(client, topic, {}, id_, 3, forget=[0])) == {}
    assert set(partitions_of(ask(client, topic, {2: 0}, id_, 4, forget=[1]))) == {2}


def test_a_session_waits_for_data_of_partitions_named_earlier(broker: BrokerProcess, client: RawClient) -> None:
    topic = unique("topic")
    client.create_topic(topic, 3)
    id_ = ask(client, topic, {0: 0, 1: 0, 2: 0}, 0, 0).session_id
    request = fetch_request(topic, {}, session_id=id_, session_epoch=1, min_bytes=1, max_wait_ms=8000)
    client.send("Fetch", 12, request)
    with RawClient(broker.port) as other:
        other.produce(topic, b"value", partition=2)
    assert values_of(partitions_of(client.reply())[2]) == [b"value"]


def test_an_unknown_session_is_refused(client: RawClient, topic: str) -> None:
    response = ask(client, topic, {0: 0}, 123_456_789, 1)
    assert (response.error_code, response.session_id) == (FETCH_SESSION_ID_NOT_FOUND, 0)


@pytest.mark.parametrize("epoch", [2, 7, LAST_EPOCH])
def test_an_epoch_out_of_order_is_refused_and_the_session_stays(client: RawClient, topic: str, epoch: int) -> None:
    id_ = ask(client, topic, {0: 0}, 0, 0).session_id
    assert ask(client, topic, {}, id_, epoch).error_code == INVALID_FETCH_SESSION_EPOCH
    assert ask(client, topic, {}, id_, 1).error_code == 0
    assert ask(client, topic, {}, id_, 1).error_code == INVALID_FETCH_SESSION_EPOCH


def test_the_final_epoch_closes_a_session(client: RawClient, topic: str) -> None:
    id_ = ask(client, topic, {0: 0}, 0, 0).session_id
    closing = ask(client, topic, {0: 0}, id_, -1)
    assert (closing.error_code, closing.session_id) == (0, 0)
    assert set(partitions_of(closing)) == {0}
    assert ask(client, topic, {}, id_, 1).error_code == FETCH_SESSION_ID_NOT_FOUND


def test_a_new_session_closes_the_one_it_names(client: RawClient, topic: str) -> None:
    old = ask(client, topic, {0: 0}, 0, 0).session_id
    new = ask(client, topic, {1: 0}, old, 0)
    assert new.session_id not in (0, old)
    assert set(partitions_of(new)) == {1}
    assert ask(client, topic, {}, old, 1).error_code == FETCH_SESSION_ID_NOT_FOUND
    assert ask(client, topic, {}, new.session_id, 1).error_code == 0


def test_an_error_is_told_every_time_until_it_is_gone(client: RawClient) -> None:
    topic = unique("topic")
    id_ = ask(client, topic, {0: 0}, 0, 0).session_id
    told = partitions_of(ask(client, topic, {}, id_, 1))
    assert told[0].error_code == UNKNOWN_TOPIC_OR_PARTITION
    client.create_topic(topic)
    told = partitions_of(ask(client, topic, {}, id_, 2))
    assert told[0].error_code == 0
    assert partitions_of(ask(client, topic, {}, id_, 3)) == {}


def test_a_session_belongs_to_its_client_not_to_its_connection(broker: BrokerProcess, client: RawClient) -> None:
    topic = unique("topic")
    client.create_topic(topic)
    id_ = ask(client, topic, {0: 0}, 0, 0).session_id
    with RawClient(broker.port) as again:
        assert ask(again, topic, {}, id_, 1).error_code == 0


# The bound, with the time in hand


def begin(sessions: FetchSessions, id_: int, epoch: int, now_ms: int) -> int:
    topics = [FetchTopic("topic", partitions=[FetchPartition(0)])]
    return sessions.begin(
        FetchRequest(session_id=id_, session_epoch=epoch, topics=topics), by_id=False, now_ms=now_ms
    ).id


def test_without_room_the_client_gets_no_session() -> None:
    sessions = FetchSessions(lambda _: None, slots=2)
    assert all(begin(sessions, 0, 0, 0) for _ in range(2))
    assert begin(sessions, 0, 0, SILENT_MS - 1) == 0
    assert len(sessions) == 2


def test_the_session_that_was_silent_longest_makes_room() -> None:
    sessions = FetchSessions(lambda _: None, slots=2)
    oldest, other = begin(sessions, 0, 0, 0), begin(sessions, 0, 0, 1)
    begin(sessions, oldest, 1, 100)  # no longer the oldest
    new = begin(sessions, 0, 0, SILENT_MS + 1)
    assert new
    with pytest.raises(SessionError):
        begin(sessions, other, 1, SILENT_MS + 2)
    assert begin(sessions, oldest, 2, SILENT_MS + 3) == oldest


def test_epochs_begin_again_at_one() -> None:
    sessions = FetchSessions(lambda _: None)
    id_ = begin(sessions, 0, 0, 0)
    sessions.begin(FetchRequest(session_id=id_, session_epoch=1), by_id=False, now_ms=0).epoch = LAST_EPOCH
    begin(sessions, id_, LAST_EPOCH, 0)
    assert begin(sessions, id_, 1, 0) == id_


def begin_with(sessions: FetchSessions, partitions: int, id_: int = 0, epoch: int = 0, now_ms: int = 0) -> int:
    topics = [FetchTopic("topic", partitions=[FetchPartition(index) for index in range(partitions)])]
    request = FetchRequest(session_id=id_, session_epoch=epoch, topics=topics)
    return sessions.begin(request, by_id=False, now_ms=now_ms).id


def test_the_partitions_of_all_sessions_are_bounded() -> None:
    sessions = FetchSessions(lambda _: None, most_partitions=100)
    first, second = begin_with(sessions, 60), begin_with(sessions, 40)
    assert first
    assert second
    assert begin_with(sessions, 1) == 0
    assert sessions.partitions == 100
    assert begin_with(sessions, 30, first, 0)  # in the place of the one that it names
    assert sessions.partitions == 70
    assert begin_with(sessions, 80, now_ms=SILENT_MS) != 0  # both made room for it
    assert (len(sessions), sessions.partitions) == (1, 80)


def test_a_session_that_grows_beyond_the_bound_is_forgotten() -> None:
    sessions = FetchSessions(lambda _: None, most_partitions=100)
    id_ = begin_with(sessions, 60)
    with pytest.raises(SessionError):
        begin_with(sessions, 101, id_, 1)
    assert (len(sessions), sessions.partitions) == (0, 0)


def test_names_that_no_topic_has_are_not_kept_in_sessions() -> None:
    sessions = FetchSessions(lambda _: None)
    topics = [FetchTopic("x" * 30_000, partitions=[FetchPartition(0)])]
    assert sessions.begin(FetchRequest(session_epoch=0, topics=topics), by_id=False, now_ms=0).id == 0
    assert sessions.partitions == 0


def test_a_partition_that_is_no_longer_wanted_does_not_come_back_with_its_data() -> None:
    sessions = FetchSessions(lambda _: None)
    id_ = begin_with(sessions, 2)
    session = sessions.begin(FetchRequest(session_id=id_, session_epoch=1), by_id=False, now_ms=0)
    targets = session.targets()
    forgotten = [ForgottenTopic("topic", partitions=[0])]
    sessions.begin(
        FetchRequest(session_id=id_, session_epoch=2, forgotten_topics_data=forgotten), by_id=False, now_ms=0
    )
    session.has_news(targets[0], PartitionData(0, 0, 5, records=b"data"))
    assert [target.index for target in session.targets()] == [1]
    assert sessions.partitions == 1
