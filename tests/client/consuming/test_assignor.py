"""The `range` assignor and its bytes are those of all Kafka clients."""

import warnings
from types import SimpleNamespace

from hypothesis import given, settings
from hypothesis import strategies as st

from tidelog.client.consuming.assignor import (
    assign_ranges,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from tidelog.model import TopicPartition

with warnings.catch_warnings():  # importing kafka-python reads its files in a way that Python will give up
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.coordinator.assignors.range import RangePartitionAssignor  # type: ignore[import-untyped]

TOPICS = st.sampled_from(["a", "b", "c"])


def test_the_first_members_get_one_more() -> None:
    shares = assign_ranges({"m2": ["t"], "m1": ["t"], "m3": ["t"]}, {"t": 7})
    assert {member: [p.partition for p in share] for member, share in shares.items()} == {
        "m1": [0, 1, 2],
        "m2": [3, 4],
        "m3": [5, 6],
    }


@given(
    st.dictionaries(st.sampled_from(["m1", "m2", "m3", "m4"]), st.sets(TOPICS, min_size=1), min_size=1),
    st.fixed_dictionaries({"a": st.integers(1, 9), "b": st.integers(1, 9), "c": st.integers(1, 9)}),
)
@settings(max_examples=50)
def test_every_partition_has_one_owner_that_wants_it(
    subscriptions: dict[str, set[str]], counts: dict[str, int]
) -> None:
    shares = assign_ranges(subscriptions, counts)
    owned = [partition for share in shares.values() for partition in share]
    wanted = set().union(*subscriptions.values())
    assert sorted(owned) == sorted(TopicPartition(t, n) for t in wanted for n in range(counts[t]))
    assert all(partition.topic in subscriptions[member] for member, share in shares.items() for partition in share)


def test_a_topic_that_does_not_exist_has_no_partitions() -> None:
    assert assign_ranges({"m": ["nowhere"]}, {}) == {"m": []}


def test_shares_are_those_of_kafka_python() -> None:
    subscriptions = {"m1": ["a", "b"], "m2": ["a"], "m3": ["b", "a"]}
    counts = {"a": 8, "b": 5}
    metadata = SimpleNamespace(partitions_for_topic=lambda topic: set(range(counts[topic])))
    members = [
        SimpleNamespace(member_id=name, group_instance_id=None, metadata=RangePartitionAssignor.metadata(topics))
        for name, topics in subscriptions.items()
    ]
    theirs = RangePartitionAssignor.assign(metadata, members)
    for member, share in assign_ranges(subscriptions, counts).items():
        pairs = [(topic, number) for topic, numbers in theirs[member].assigned_partitions for number in numbers]
        assert sorted(pairs) == sorted((p.topic, p.partition) for p in share)


def test_subscriptions_and_assignments_survive_the_way() -> None:
    assert decode_subscription(encode_subscription(["b", "a"])) == ["a", "b"]
    partitions = [TopicPartition("a", 0), TopicPartition("a", 2), TopicPartition("b", 1)]
    assert decode_assignment(encode_assignment(partitions)) == partitions
    assert decode_assignment(b"") == []
