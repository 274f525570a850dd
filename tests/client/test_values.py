"""Options, addresses, errors and contents: what is accepted, and how a refusal reads."""

import pickle
from datetime import UTC, datetime

import pytest

from tidelog.client import BrokerError, ClientOptions, FetchOptions, GroupOptions, ProducerOptions
from tidelog.client.content import as_bytes, as_headers, as_timestamp
from tidelog.client.errors import DeliveryFailed, check
from tidelog.client.options import Address, parse_bootstrap
from tidelog.errors import InvalidInput, InvalidSettings, InvalidTimestamp
from tidelog.wire.error_codes import ErrorCode


@pytest.mark.parametrize(
    ("bootstrap", "addresses"),
    [
        ("localhost", [Address("localhost", 9092)]),
        ("a:1, b:2", [Address("a", 1), Address("b", 2)]),
        ("[::1]:9093", [Address("::1", 9093)]),
    ],
)
def test_bootstrap_addresses_are_read(bootstrap: str, addresses: list[Address]) -> None:
    assert parse_bootstrap(bootstrap) == addresses


@pytest.mark.parametrize("bootstrap", ["", " , ", "host:port", "a:0", "a:70000", "a:b:c", "::1:9092"])
def test_what_is_no_address_is_refused(bootstrap: str) -> None:
    with pytest.raises(InvalidSettings):
        parse_bootstrap(bootstrap)


def test_an_address_with_colons_is_written_in_brackets() -> None:
    assert (str(Address("::1", 9)), str(Address("a", 9))) == ("[::1]:9", "a:9")


def test_options_out_of_range_are_refused_together() -> None:
    with pytest.raises(InvalidSettings) as refused:
        ClientOptions(timeout_ms=0, max_in_flight=0)
    assert len(refused.value.problems) == 2
    with pytest.raises(InvalidSettings, match="acks"):
        ProducerOptions(acks=2)  # type: ignore[arg-type]
    with pytest.raises(InvalidSettings, match="idempotent"):
        ProducerOptions(acks=1, idempotent=True)
    with pytest.raises(InvalidSettings, match=r"out\.of\.range must be"):
        FetchOptions(out_of_range="never")  # type: ignore[arg-type]
    with pytest.raises(InvalidSettings, match="heartbeat"):
        GroupOptions(heartbeat_ms=10, session_timeout_ms=10)


def test_idempotence_comes_with_acks_all() -> None:
    assert [ProducerOptions(acks=acks).is_idempotent for acks in (0, 1, "all")] == [False, False, True]


def test_a_brokers_error_says_what_was_tried_and_survives_pickling() -> None:
    error = BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "reading t-0")
    assert str(error) == "reading t-0: the broker is not the leader of the partition (NOT_LEADER_OR_FOLLOWER)"
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.kafka_code, copy.retriable, str(copy)) == (6, True, str(error))
    assert not BrokerError(ErrorCode.TOPIC_ALREADY_EXISTS, "creating").retriable
    assert BrokerError.kafka_code == -1
    assert str(BrokerError(999, "x", "no way")) == "x: no way (ERROR_999)"


def test_no_error_code_is_no_error() -> None:
    check(0, "anything")


def test_a_failed_delivery_counts_its_records() -> None:
    assert str(DeliveryFailed(1, ValueError("v"))) == "1 record not delivered: v"
    assert str(pickle.loads(pickle.dumps(DeliveryFailed(2, ValueError("v"))))) == "2 records not delivered: v"


def test_contents_become_bytes() -> None:
    assert [as_bytes(c) for c in (None, b"b", "ü", bytearray(b"c"), memoryview(b"d"))] == [
        None,
        b"b",
        b"\xc3\xbc",
        b"c",
        b"d",
    ]
    assert as_headers({"a": "b", "c": None}) == as_headers([("a", b"b"), ("c", None)])
    for wrong in (7, "\ud800"):
        with pytest.raises(InvalidInput):
            as_bytes(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        as_headers({"\ud800": b""})


def test_times_become_milliseconds() -> None:
    assert as_timestamp(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)) == 1000
    assert as_timestamp(5) == 5
    for wrong in (-1, 1 << 63):
        with pytest.raises(InvalidTimestamp):
            as_timestamp(wrong)
