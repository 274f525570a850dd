"""Whatever the bytes, decoding ends soon: with a message or a `RemoteProtocolError`, and without a memory bomb."""

import random
import time
import tracemalloc

import pytest

from tests.wire.random_messages import Case, all_cases, random_message
from tidelog.wire.generated import fetch, metadata, produce
from tidelog.wire.protocol_errors import RemoteProtocolError

CASES = list(all_cases())
HOSTILE = (
    b"\xff\xff\xff\xff\x0f",
    b"\x7f\xff\xff\xff",
    b"\x80\x00",
    b"\xff\xff",
    b"\x00",
    b"\x80\x80\x80\x80\x80\x80",
)


def decode_or_refuse(case: Case, data: bytes) -> None:
    try:
        case.codec.decode(data, case.version)
    except RemoteProtocolError:
        pass


def test_a_message_cut_at_any_byte_is_refused() -> None:
    for case in CASES:
        message = random_message(case, random.Random(str(case)), arrays_up_to=1)
        encoded = case.codec.encode(message, case.version)
        # All cuts of short messages; of longer ones the first and last bytes, and some between.
        cuts = {*range(min(len(encoded), 400)), *range(400, len(encoded), 23), *range(len(encoded))[-100:]}
        for cut in cuts:
            with pytest.raises(RemoteProtocolError):
                case.codec.decode(encoded[:cut], case.version)


def test_mutated_messages_raise_nothing_but_remote_protocol_errors() -> None:
    for case in CASES:
        rng = random.Random(str(case))
        original = case.codec.encode(random_message(case, rng), case.version)
        for _ in range(150):
            data = bytearray(original)
            for _ in range(rng.randint(1, 3)):
                place = rng.randint(0, len(data))
                match rng.randint(0, 3):
                    case 0:
                        data[place : place + 1] = rng.randbytes(1)
                    case 1:
                        data[place : place + rng.randint(0, 5)] = rng.choice(HOSTILE)
                    case 2:
                        del data[place : place + rng.randint(1, 8)]
                    case _:
                        data[place:place] = rng.randbytes(rng.randint(1, 8))
            decode_or_refuse(case, bytes(data))


def test_random_bytes_raise_nothing_but_remote_protocol_errors() -> None:
    for case in CASES:
        rng = random.Random(str(case))
        for _ in range(20):
            decode_or_refuse(case, rng.randbytes(rng.randint(0, 120)))


def test_what_decodes_after_a_mutation_encodes_again() -> None:
    rng = random.Random(5)
    for case in CASES:
        data = bytearray(case.codec.encode(random_message(case, rng), case.version))
        for _ in range(10):
            if data:
                data[rng.randrange(len(data))] = rng.randrange(256)
            try:
                message = case.codec.decode(bytes(data), case.version)
            except RemoteProtocolError:
                continue
            again = case.codec.decode(case.codec.encode(message, case.version), case.version)
            assert again == message or "nan" in repr(message)


@pytest.mark.parametrize("filler", [b"\xff", b"\x7f", b"\x80", b"\x01", b"\x02", b"\x00", b"\xff\xff\xff\xff\x07"])
def test_repeated_bytes_cost_little_time_and_memory(filler: bytes) -> None:
    """A claimed count is refused before anything is allocated for it; what fits costs a bounded multiple."""
    data = filler * (4000 // len(filler))
    for case in CASES:
        decode_or_refuse(case, data)  # imports and caches are not what is measured
    tracemalloc.start()
    started = time.perf_counter()
    for case in CASES:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        decode_or_refuse(case, data)
        peak = tracemalloc.get_traced_memory()[1] - before
        assert peak < 200 * len(data), str(case)
    tracemalloc.stop()
    assert time.perf_counter() - started < 20


@pytest.mark.parametrize("count", [b"\x7f\xff\xff\xff", b"\x10\x00\x00\x00", b"\x00\x10\x00\x00"])
def test_a_huge_count_is_refused_before_any_allocation(count: bytes) -> None:
    data = b"\xff\xff" + b"\x00\x01" + b"\x00\x00\x00\x00" + count + bytes(100)
    tracemalloc.start()
    with pytest.raises(RemoteProtocolError, match="more than the message has bytes for"):
        produce.REQUEST.decode(data, 3)
    assert tracemalloc.get_traced_memory()[1] < 20_000
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"\x00\xff\xff\x00\x00\x00\x00\x00" + bytes(20), "null"),
        (b"\x02\xff" + bytes(20), "UTF-8"),
        (b"\x04\xed\xa0\x80" + bytes(20), "UTF-8"),
        (b"\xff\xff\xff\xff\xff\x01" + bytes(20), "32 bits"),
        (b"\xff\xff\xff\xff\x1f" + bytes(20), "32 bits"),
        (b"\x82\x80\x02" + bytes(40000), "32767"),
        (b"", "cut short"),
    ],
)
def test_the_complaint_names_the_fault(data: bytes, complaint: str) -> None:
    with pytest.raises(RemoteProtocolError, match=complaint):
        produce.REQUEST.decode(data, 9)


def test_an_overlong_zero_is_null_and_does_not_move_backwards() -> None:
    plain = b"\x00\xff\xff\x00\x00\x00\x00"
    with pytest.raises(RemoteProtocolError, match="null"):
        produce.REQUEST.decode(plain + b"\x80\x00" + bytes(20), 9)


def _with_unknown_tags(encoded: bytes) -> bytes:
    """Replaces the empty section of tagged fields at the end by two unknown fields."""
    assert encoded[-1] == 0
    return encoded[:-1] + b"\x02" + b"\x63\x03abc" + b"\x80\x01\x80\x01" + bytes(128)


def test_unknown_tagged_fields_are_ignored() -> None:
    seen = 0
    for case in CASES:
        if case.version in case.message.flexible:
            message = random_message(case, random.Random(str(case)))
            for name in message.__slots__:
                field = next(field for field in case.message.top.fields if field.name == name)
                if field.tag is not None:
                    setattr(message, name, getattr(type(message)(), name))
            encoded = _with_unknown_tags(case.codec.encode(message, case.version))
            assert case.codec.decode(encoded, case.version) == message, str(case)
            seen += 1
    assert seen > 250


def test_unknown_tagged_fields_inside_the_elements_of_an_array_are_ignored() -> None:
    partitions = [fetch.FetchPartition(number, fetch_offset=7) for number in range(3)]
    request = fetch.FetchRequest(topics=[fetch.FetchTopic(topic_id=b"t" * 16, partitions=partitions)])
    encoded = fetch.REQUEST.encode(request, 16)
    second = encoded.index((1).to_bytes(4, "big") + b"\xff" * 4) + 32
    assert encoded[second] == 0
    tagged = encoded[:second] + b"\x01\x09\x02zz" + encoded[second + 1 :]
    assert fetch.REQUEST.decode(tagged, 16) == request


def test_a_known_tagged_field_of_the_wrong_size_is_refused() -> None:
    encoded = fetch.REQUEST.encode(fetch.FetchRequest(cluster_id="c"), 12)
    assert encoded.endswith(b"\x01\x00\x02\x02c")
    with pytest.raises(RemoteProtocolError, match="does not match its value"):
        fetch.REQUEST.decode(encoded[:-3] + b"\x03\x02cc", 12)
    with pytest.raises(RemoteProtocolError, match="more than the message has"):
        fetch.REQUEST.decode(encoded[:-3] + b"\x7f\x02c", 12)


def test_a_large_honest_message_decodes_in_proportion_to_its_size() -> None:
    topics = [metadata.MetadataResponseTopic(name=f"topic-{number}") for number in range(20_000)]
    response = metadata.MetadataResponse(topics=topics)
    started = time.perf_counter()
    assert metadata.RESPONSE.decode(metadata.RESPONSE.encode(response, 13), 13) == response
    assert time.perf_counter() - started < 60
