"""Compacted topics of a cluster, as a real client sees them."""

import random
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.e2e.clients.confluent import common
from tests.e2e.clients.confluent_admin import AdminClient
from tests.e2e.conftest import topic_maker
from tests.e2e.test_compaction import COMPACTED, SETTINGS, alter, read, write
from tests.support.brokers import BrokerProcess, eventually
from tests.support.clusters import ClusterAsBroker

pytestmark = pytest.mark.slow
SECONDS = 90.0
AT_ONCE = {**COMPACTED, "segment.ms": "100"}


@pytest.fixture(scope="module")
def cleaning(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterAsBroker]:
    with ClusterAsBroker(tmp_path_factory.mktemp("cleaning"), SETTINGS) as cluster:
        yield cluster
        cluster.stop()
        assert "Traceback" not in cluster.logs, cluster.logs
        assert "compaction failed" not in cluster.logs, cluster.logs


def test_exactly_the_latest_value_of_every_key_is_left_where_it_was(cleaning: BrokerProcess) -> None:
    topic = topic_maker(cleaning)(configs=COMPACTED)
    rng = random.Random(1)
    pairs: list[tuple[bytes, bytes | None]] = [
        (b"key-%d" % rng.randrange(300), b"value-%d-" % number + b"x" * 50) for number in range(20_000)
    ]
    write(cleaning, topic, pairs, **{"compression.type": "zstd", "enable.idempotence": True})
    final = {key: (offset, value) for offset, (key, value) in enumerate(pairs)}
    alter(cleaning, topic, {"segment.ms": "100"})  # the newest segment.bytes are left alone until they are this old
    found = eventually(lambda: read(cleaning, topic), until=lambda found: len(found) <= len(final), within=SECONDS)
    assert found == [(offset, key, value) for offset, key, value in sorted((o, k, v) for k, (o, v) in final.items())]
    middle = found[150][0] - 1  # any offset can be asked for, also one that is gone
    assert read(cleaning, topic, middle)[0] == (found[149] if found[149][0] == middle else found[150])
    watermarks = Consumer({**common(cleaning.bootstrap), "group.id": "x"})
    assert watermarks.get_watermark_offsets(TopicPartition(topic, 0), SECONDS) == (0, 20_000)
    watermarks.close()


def test_tombstones_are_seen_for_their_retention_and_then_go(cleaning: BrokerProcess) -> None:
    topic = topic_maker(cleaning)(configs={**AT_ONCE, "delete.retention.ms": "86400000"})
    write(cleaning, topic, [(b"a", b"1"), (b"b", b"1"), (b"a", None), (b"c", b"1")])
    left = [(1, b"b", b"1"), (2, b"a", None), (3, b"c", b"1")]
    eventually(lambda: read(cleaning, topic), until=lambda found: found == left, within=SECONDS)

    topic = topic_maker(cleaning)(configs={**AT_ONCE, "delete.retention.ms": "1"})
    write(cleaning, topic, [(b"a", b"1"), (b"b", b"1"), (b"a", None), (b"c", b"1")])
    left = [(1, b"b", b"1"), (3, b"c", b"1")]
    eventually(lambda: read(cleaning, topic), until=lambda found: found == left, within=SECONDS)


def test_compact_and_delete_together(cleaning: BrokerProcess) -> None:
    topic = topic_maker(cleaning)(configs={**AT_ONCE, "cleanup.policy": "compact,delete", "retention.ms": "-1"})
    write(cleaning, topic, [(b"k%d" % (number % 10), b"%d" % number) for number in range(100)])
    eventually(lambda: read(cleaning, topic), until=lambda found: len(found) == 10, within=SECONDS)
    alter(cleaning, topic, {"retention.ms": "1"})
    eventually(lambda: read(cleaning, topic), until=lambda found: not found, within=SECONDS)


def test_the_next_leader_goes_on_with_what_was_compacted(tmp_path_factory: pytest.TempPathFactory) -> None:
    with ClusterAsBroker(tmp_path_factory.mktemp("moving"), SETTINGS) as cluster:
        topic = topic_maker(cluster)(configs=AT_ONCE)
        final: dict[bytes, bytes | None] = {}
        for round_ in range(2):
            pairs: list[tuple[bytes, bytes | None]] = [
                (b"key-%d" % (number % 50), b"%d-%d" % (round_, number)) for number in range(1000)
            ]
            write(cluster, topic, pairs)
            final.update(pairs)
            found = eventually(lambda: read(cluster, topic), until=lambda found: len(found) == 50, within=SECONDS)
            assert {key: value for _, key, value in found} == final
            described = AdminClient(common(cluster.bootstrap)).list_topics(topic, SECONDS)
            leader = cluster.broker(described.topics[topic].partitions[0].leader)
            BrokerProcess.stop(leader)
            BrokerProcess.start(leader)
            again = eventually(lambda: read(cluster, topic), until=lambda found: len(found) == 50, within=SECONDS)
            assert again == found
        cluster.stop()
        assert "Traceback" not in cluster.logs, cluster.logs
