"""The partition of a key is the same in every client of the same topic."""

import random
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.client.producing.partitioner import Sticky, murmur2, partition_of_key

with warnings.catch_warnings():  # importing kafka-python reads its files in a way that Python will give up
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.partitioner.default import murmur2 as kafka_python_murmur2  # type: ignore[import-untyped]


@pytest.mark.parametrize(
    ("key", "hashed"),
    [  # from Kafka's own tests
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_javas(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed & 0xFFFF_FFFF


@given(st.binary(max_size=40))
def test_murmur2_is_kafka_pythons(key: bytes) -> None:
    assert murmur2(key) == kafka_python_murmur2(key) & 0xFFFF_FFFF


@given(st.binary(max_size=20), st.integers(1, 1000))
def test_a_key_has_a_partition(key: bytes, count: int) -> None:
    assert 0 <= partition_of_key(key, count) < count


def test_records_without_a_key_move_to_another_partition() -> None:
    sticky = Sticky(random.Random(1))
    assert sticky.current("t") is None
    for _ in range(20):
        before = sticky.current("t")
        chosen = sticky.move_on("t", [0, 1, 2])
        assert chosen != before
        assert sticky.current("t") == chosen


def test_the_only_partition_is_kept() -> None:
    sticky = Sticky(random.Random(1))
    assert [sticky.move_on("t", [5]) for _ in range(3)] == [5, 5, 5]
