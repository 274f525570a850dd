"""The consumers' own messages inside the classic protocol, against those of a real client and hostile ones."""

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tests.broker.groups.classic_members import write_subscription
from tidelog.broker.coordination.groups.embedded import (
    Assignment,
    MalformedConsumerMetadata,
    Subscription,
    read_assignment,
    read_subscription,
    write_assignment,
)

names = st.text(max_size=20)
partitions = st.lists(st.tuples(names, st.lists(st.integers(0, 1000), max_size=4).map(tuple)), max_size=4).map(tuple)


def test_a_subscription_as_librdkafka_sends_it() -> None:
    data = bytes.fromhex(
        "0003 00000001 0001 74 00000000 00000001 0001 74 00000002 00000000 00000001 00000005 0002 7231"
    )
    assert read_subscription(data) == Subscription(("t",), (("t", (0, 1)),), 5, "r1")


def test_a_subscription_of_the_first_version() -> None:
    assert read_subscription(bytes.fromhex("0000 00000001 0001 74 ffffffff")) == Subscription(("t",))


@given(st.lists(names, max_size=4).map(tuple), partitions)
def test_subscriptions_come_back(topics: tuple[str, ...], owned: tuple[tuple[str, tuple[int, ...]], ...]) -> None:
    assert read_subscription(write_subscription(topics, owned)) == Subscription(topics, owned)


@given(partitions)
def test_assignments_come_back(owned: tuple[tuple[str, tuple[int, ...]], ...]) -> None:
    assert read_assignment(write_assignment(owned)) == Assignment(owned)


def test_no_bytes_are_an_assignment_of_nothing() -> None:
    assert read_assignment(b"") == Assignment(())


@pytest.mark.parametrize("data", ["", "00", "0000 7fffffff", "0000 00000001 7fff", "0000 00000001 0001 ff ffffffff"])
def test_damaged_bytes_are_refused(data: str) -> None:
    with pytest.raises(MalformedConsumerMetadata):
        read_subscription(bytes.fromhex(data))


@given(st.binary(max_size=60))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    for read in (read_subscription, read_assignment):
        try:
            read(data)
        except MalformedConsumerMetadata:
            pass
