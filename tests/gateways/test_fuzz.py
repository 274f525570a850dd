"""Frames that are almost right, or right and senseless: the broker stays, and others are served."""

import random
import struct
from collections.abc import Iterator

import pytest

from tests.gateways.conftest import StartBroker
from tests.gateways.raw import RawClient, fetch_request, frame, produce_request
from tests.support.brokers import BrokerProcess, unique
from tests.support.logs import batch
from tests.wire.random_messages import Case, all_cases, random_message
from tidelog.gateways.kafka.api_table import TABLE
from tidelog.wire.apis import APIS, BY_NAME
from tidelog.wire.envelope import decode_response

SETTINGS = {
    "kafka.tidelog.max.topics": "300",
    "kafka.tidelog.max.partitions": "1000",
    "kafka.socket.request.max.bytes": "200000",
}


def offered_requests() -> list[Case]:
    offered = {APIS[key].name for key in TABLE}
    return [case for case in all_cases() if case.message.role == "request" and api_name(case) in offered]


def api_name(case: Case) -> str:
    return case.message.top.name.removesuffix("Request")


@pytest.fixture
def fuzzed(start_broker: StartBroker) -> Iterator[BrokerProcess]:
    """It must be alive in the end, and no request may have failed in a way that nobody foresaw."""
    broker = start_broker(SETTINGS)
    yield broker
    with RawClient(broker.port) as client:
        assert client.is_answered(), broker.log[-2000:]
    broker.stop()
    assert "request failed" not in broker.log, broker.log[-6000:]
    assert "Traceback" not in broker.log, broker.log[-6000:]


def valid_frames(client: RawClient, topic: str, rng: random.Random) -> list[bytes]:
    frames = [
        frame(BY_NAME["Produce"], 9, 1, produce_request(topic, batch(b"value", b"other", timestamp=-1), acks=-1)),
        frame(BY_NAME["Fetch"], 12, 2, fetch_request(topic, {0: 0}, session_epoch=0)),
    ]
    frames += [
        frame(BY_NAME[api_name(case)], case.version, 3, random_message(case, rng, 2))
        for case in offered_requests()
        if case.message.top.name not in ("ProduceRequest", "FetchRequest", "CreateTopicsRequest")
    ]
    return frames


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_mutated_frames_hurt_only_their_own_connection(fuzzed: BrokerProcess, seed: int) -> None:
    rng = random.Random(seed)
    with RawClient(fuzzed.port) as steady:
        topic = unique("topic")
        steady.create_topic(topic)
        frames = valid_frames(steady, topic, rng)
        for number in range(4000):
            with RawClient(fuzzed.port) as hostile:
                mutated = bytearray(rng.choice(frames))
                for _ in range(rng.randint(1, 4)):
                    mutate(mutated, rng)
                if rng.random() < 0.8 and len(mutated) > 4:  # mostly with a length that is right
                    struct.pack_into(">i", mutated, 0, len(mutated) - 4)
                hostile.socket.sendall(mutated)
            if number % 50 == 0:
                assert steady.is_answered()
        assert steady.produce(topic, b"still here").error_code == 0


def mutate(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data)) if data else 0
    match rng.randrange(5):
        case 0 if data:
            data[at] = rng.randrange(256)
        case 1 if data:
            data[at] ^= 1 << rng.randrange(8)
        case 2:
            data[at:at] = rng.randbytes(rng.randint(1, 8))
        case 3 if len(data) > 6:
            del data[at : at + rng.randint(1, 8)]
        case _:
            data[at : at + 4] = rng.choice((b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", bytes(4)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_random_requests_of_every_api_and_version_are_answered(fuzzed: BrokerProcess, seed: int) -> None:
    """Well-formed and senseless: each gets a reply that can be decoded, or ends its connection with a reason."""
    rng = random.Random(1000 + seed)
    answered = 0
    for case in offered_requests():
        api = BY_NAME[api_name(case)]
        if api.name in ("JoinGroup", "SyncGroup"):
            continue  # they may wait for others for as long as they say
        for _ in range(8):
            message = random_message(case, rng, 2)
            if api.name == "Fetch":
                message.max_wait_ms = rng.choice((-1, 0, 5))
            if api.name == "Produce":
                message.acks = rng.choice((-1, 1, 2, 1, -1))
            with RawClient(fuzzed.port) as client:
                client.socket.sendall(frame(api, case.version, 5, message))
                try:
                    decode_response(api, case.version, client.receive_frame())
                    answered += 1
                except ConnectionResetError:
                    pass
    assert answered > 300
