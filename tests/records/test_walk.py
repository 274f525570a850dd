"""The walk over records: in C and in Python it finds the same, and what it takes every reader reads."""

import os
import shutil
import sysconfig

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tidelog.errors import CorruptBatch
from tidelog.records.batch import HEADER_SIZE, iterate
from tidelog.records.record import Record, build_batch, decode, encode_record
from tidelog.records.walk import (
    IN_WORDS,
    IS_COMPILED,
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    Flaw,
    Walk,
    Walked,
    walk,
    walk_in_python,
)

BASE_MS = 1_700_000_000_000


WALKS: list[Walk] = [walk_in_python, walk] if IS_COMPILED else [walk_in_python]


def walk_all(data: bytes, count: int, base: int = BASE_MS, **demands: int) -> Walked:
    """What all of them find."""
    asked = {"is_fixed": False, "keys": False, "oldest": MIN_TIMESTAMP, "newest": MAX_TIMESTAMP, "most_named": 5}
    asked |= demands
    found = [each(data, 0, count, base, *asked.values()) for each in WALKS]  # type: ignore[arg-type]
    assert all(one == found[0] for one in found), found
    return found[0]


def record(
    value: bytes | None = b"value", key: bytes | None = b"key", number: int = 0, ms: int = 0, **headers: bytes | None
) -> bytes:
    out = bytearray()
    encode_record(out, Record(0, 0, key, value, list(headers.items())), ms, number)
    return bytes(out)


def test_the_walk_is_compiled_where_there_is_a_compiler() -> None:
    """Else the other tests here would compare nothing."""
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    headers = os.path.join(sysconfig.get_paths()["include"], "Python.h")
    if shutil.which(compiler) is None or compiler == "false" or not os.path.exists(headers):
        pytest.skip("there is no compiler")
    assert IS_COMPILED, "run pip install -e . again"


def test_every_flaw_has_words() -> None:
    assert set(IN_WORDS) == set(Flaw) - {Flaw.NONE}


def test_good_records_give_the_largest_timestamp() -> None:
    data = record(ms=5) + record(None, None, 1, ms=70_000) + record(b"", b"", 2, ms=-3, trace=b"x", none=None)
    assert walk_all(data, 3) == (Flaw.NONE, 3, BASE_MS + 70_000, 0, None)
    assert walk_all(data, 3, is_fixed=True)[2] == BASE_MS


def test_large_records_and_many_of_them() -> None:
    data = b"".join(record(b"v" * (number % 97 * 30), number=number, ms=number * 300) for number in range(9000))
    assert walk_all(data, 9000) == (Flaw.NONE, 9000, BASE_MS + 8999 * 300, 0, None)


@pytest.mark.parametrize("number", [63, 64, 8191, 8192, 16383, 16384])
def test_offset_deltas_of_every_length_are_read_right(number: int) -> None:
    """A delta that is one off must not pass for its first bytes."""
    before = b"".join(record(b"", None, index) for index in range(number))
    assert walk_all(before + record(number=number), number + 1)[0] == Flaw.NONE
    for wrong in (number + 1, number - 1, number | 1 << 14, number + (1 << 20)):
        assert walk_all(before + record(number=wrong), number + 1)[:2] == (
            Flaw.NONE if wrong == number else Flaw.BAD_OFFSET_DELTA,
            number + (wrong == number),
        )


def test_records_that_do_not_meet_demands_are_counted_and_the_first_are_named() -> None:
    keys = [b"k", None, b"k", None, b"k", None]
    data = b"".join(record(key=key, number=number, ms=100 * number) for number, key in enumerate(keys))
    assert walk_all(data, 6, keys=True)[3:] == (3, [(1, None), (3, None), (5, None)])
    bounds = {"oldest": BASE_MS + 100, "newest": BASE_MS + 400}
    assert walk_all(data, 6, **bounds)[3:] == (2, [(0, BASE_MS), (5, BASE_MS + 500)])
    assert walk_all(data, 6, keys=True, **bounds)[3:] == (4, [(0, BASE_MS), (1, None), (3, None), (5, None)])
    assert walk_all(data, 6, keys=True, most_named=1)[3:] == (3, [(1, None)])
    assert walk_all(data, 6, keys=True, most_named=0)[3:] == (3, None)


def test_a_record_without_a_time_is_of_any_age() -> None:
    assert walk_all(record(), 1, base=-1, oldest=BASE_MS) == (Flaw.NONE, 1, -1, 0, None)
    assert walk_all(record(), 1, base=-2, oldest=BASE_MS)[3] == 1


GOOD = record()
LONG_ZERO = b"\x80\x80\x80\x80\x80\x00"  # six bytes for one
UNFINISHED = b"\x80" * 5


@pytest.mark.parametrize(
    ("data", "count", "flaw", "index"),
    [
        (b"", 1, Flaw.CUT_OFF, 0),
        (GOOD, 2, Flaw.CUT_OFF, 1),
        (GOOD + b"\x80", 2, Flaw.CUT_OFF, 1),
        (GOOD + LONG_ZERO, 2, Flaw.BAD_VARINT, 1),
        (b"\xff\xff\xff\xff\x1f" + GOOD, 1, Flaw.BAD_VARINT, 0),
        (GOOD[:-1], 1, Flaw.BAD_LENGTH, 0),
        (b"\x01" + GOOD, 1, Flaw.BAD_LENGTH, 0),
        (b"\xfe\xff\xff\xff\x0f", 1, Flaw.BAD_LENGTH, 0),
        (b"\x00", 1, Flaw.SHORT_RECORD, 0),
        (b"\x06\x00\x00\x00", 1, Flaw.SHORT_RECORD, 0),
        (b"\x04\x00\x80" + b"\x00" * 9, 1, Flaw.SHORT_RECORD, 0),
        (b"\x16\x00" + b"\x80" * 9 + b"\x02", 1, Flaw.BAD_VARINT, 0),
        (b"\x0e\x00\x00" + UNFINISHED, 1, Flaw.BAD_VARINT, 0),
        (GOOD + GOOD, 2, Flaw.BAD_OFFSET_DELTA, 1),
        (record(number=1), 1, Flaw.BAD_OFFSET_DELTA, 0),
        (record(number=-1), 1, Flaw.BAD_OFFSET_DELTA, 0),
        (record(ms=MAX_TIMESTAMP), 1, Flaw.BAD_TIMESTAMP, 0),
        (b"\x0c\x00\x00\x00\x03\x01\x00", 1, Flaw.BAD_FIELD, 0),
        (b"\x0c\x00\x00\x00\x08\x01\x00", 1, Flaw.BAD_FIELD, 0),
        (b"\x0c\x00\x00\x00\x01\x7e\x00", 1, Flaw.BAD_FIELD, 0),
        (b"\x0c\x00\x00\x00\x01\x01\x02", 1, Flaw.BAD_HEADER_COUNT, 0),
        (b"\x0c\x00\x00\x00\x01\x01\x01", 1, Flaw.BAD_HEADER_COUNT, 0),
        (b"\x10\x00\x00\x00\x01\x01\x02\x01\x01", 1, Flaw.BAD_HEADER_KEY, 0),
        (b"\x10\x00\x00\x00\x01\x01\x02\x0a\x01", 1, Flaw.BAD_HEADER_KEY, 0),
        (b"\x12\x00\x00\x00\x01\x01\x02\x02\xff\x01", 1, Flaw.NOT_UTF8, 0),
        (b"\x0e\x00\x00\x00\x01\x01\x00\x00", 1, Flaw.LONG_RECORD, 0),
        (GOOD + b"\x00", 1, Flaw.LEFT_OVER, 1),
        (GOOD, 0, Flaw.LEFT_OVER, 0),
    ],
)
def test_flaws_are_told_apart(data: bytes, count: int, flaw: Flaw, index: int) -> None:
    found = walk_all(data, count)
    assert (Flaw(found[0]), found[1]) == (flaw, index)


@given(st.binary(max_size=8))
@example(b"\xed\xa0\x80")  # a surrogate
@example(b"\xf4\x90\x80\x80")  # above the last character
@example(b"\xe0\x9f\xbf")  # in more bytes than it needs
@example("ä€😀".encode())
def test_header_keys_are_utf8_as_python_decodes_it(key: bytes) -> None:
    body = b"\x00\x00\x00\x01\x01\x02" + bytes([2 * len(key)]) + key + b"\x01"
    try:
        key.decode()
        flaw = Flaw.NONE
    except UnicodeDecodeError:
        flaw = Flaw.NOT_UTF8
    assert walk_all(bytes([2 * len(body)]) + body, 1)[0] == flaw


TIMES = st.integers(0, 2**41)
OPTIONAL = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3)
RECORDS = st.lists(st.tuples(TIMES, OPTIONAL, OPTIONAL, HEADERS), min_size=1, max_size=20)


@given(RECORDS)
def test_what_a_builder_makes_passes(records: list[tuple[int, bytes | None, bytes | None, list]]) -> None:  # type: ignore[type-arg]
    batch = build_batch(records)
    oldest, newest = sorted((records[0][0], records[-1][0]))
    found = walk_all(bytes(batch[HEADER_SIZE:]), len(records), records[0][0], keys=True, oldest=oldest, newest=newest)
    assert found[:3] == (Flaw.NONE, len(records), max(time for time, *_ in records))
    refused = [
        (number, None if key is None else time)
        for number, (time, key, _, _) in enumerate(records)
        if key is None or not oldest <= time <= newest
    ]
    assert (found[3], found[4] or []) == (len(refused), refused[:5])


def mutated(data: bytes, changes: list[tuple[int, int]], cut: int) -> bytes:
    out = bytearray(data)
    for position, value in changes:
        out[position % len(out)] = value
    return bytes(out[: len(out) - cut])


@settings(max_examples=1000)
@given(
    RECORDS,
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), max_size=4),
    st.integers(0, 3),
    st.integers(-1, 21),
)
def test_mutated_records_are_judged_alike_and_what_passes_can_be_read(
    records: list[tuple[int, bytes | None, bytes | None, list]],  # type: ignore[type-arg]
    changes: list[tuple[int, int]],
    cut: int,
    more: int,
) -> None:
    batch = build_batch(records)
    view = next(iterate(batch))
    data = mutated(bytes(view.payload), changes, cut)
    count = len(records) if more >= 0 else len(records) + more
    base = view.header.base_timestamp
    found = walk_all(data, count, base, keys=True, oldest=base - 1000, newest=base + 1000)
    header = view.header._replace(record_count=count, last_offset_delta=count - 1)
    stored = view._replace(header=header, view=memoryview(bytes(HEADER_SIZE) + data))
    try:
        read = decode(stored)
    except CorruptBatch:
        assert found[0] != Flaw.NONE
        return
    if found[0] == Flaw.NONE:
        assert [one.offset for one in read] == list(range(count))
        assert found[2] == max((one.timestamp for one in read), default=MIN_TIMESTAMP)
    else:  # only in these the walk is stricter than readers
        assert found[0] in (Flaw.BAD_OFFSET_DELTA, Flaw.BAD_VARINT)


@given(st.binary(max_size=60), st.integers(-2, 8))
def test_garbage_is_judged_alike(data: bytes, count: int) -> None:
    walk_all(data, count, keys=True, oldest=0, newest=BASE_MS)


@pytest.mark.skipif(not IS_COMPILED, reason="there is no compiler")
@pytest.mark.parametrize("start", [-1, 4])
def test_a_start_outside_of_the_data_is_an_error(start: int) -> None:
    with pytest.raises(ValueError, match="outside"):
        walk(b"abc", start, 0, 0, False, False, 0, 0, 0)
