"""Poison that is in a log already, from before batches were checked, or with tidelog.validate=header: everything that
reads records refuses it as a corrupt batch, and nothing worse happens."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidelog.errors import InvalidInput
from tidelog.records.batch import assemble, iterate
from tidelog.records.columnar import decode_columns
from tidelog.records.compaction import PlainKeyMap, Rules
from tidelog.records.compaction_columnar import HashedKeyMap
from tidelog.records.compression import Codec, compress
from tidelog.records.latest import latest_by_key
from tidelog.records.record import build_batch, decode

END = 2**62


def plainly(batch: memoryview) -> object:
    key_map = PlainKeyMap(1 << 20)
    key_map.add(batch, Rules(0, END))
    return bytes(key_map.thin(batch, Rules(0, END), 1).data)


def by_kernels(batch: memoryview) -> object:
    key_map = HashedKeyMap(1 << 20, 0.9, 100)
    key_map.add(batch, Rules(0, END))
    return bytes(key_map.thin(batch, Rules(0, END), 1).data)


READERS: dict[str, Callable[[memoryview], object]] = {
    "records": lambda batch: [decode(view) for view in iterate(batch)],
    "columns": lambda batch: sum(rows.num_rows for rows in decode_columns(batch)),
    "compaction": plainly,
    "compaction by kernels": by_kernels,
    "tables": lambda batch: latest_by_key(batch, 0, kernels=False),
    "tables by kernels": lambda batch: latest_by_key(batch, 0),
}
RECORDS = [(1000 + number, b"key %d" % (number % 3), b"value" * number, [("name", b"v")]) for number in range(8)]
PAYLOAD = bytes(next(iterate(build_batch(RECORDS))).payload)


def outcome(read: Callable[[memoryview], object], batch: memoryview) -> object:
    try:
        return read(batch)
    except InvalidInput:
        return InvalidInput


@settings(max_examples=300)
@given(
    st.lists(st.tuples(st.integers(0, len(PAYLOAD) - 1), st.integers(0, 255)), max_size=3),
    st.integers(0, 5),
    st.integers(1, 10) | st.just(2**31 - 1),
    st.sampled_from(list(Codec)),
    st.booleans(),
)
def test_readers_refuse_poison_and_agree_on_it(
    changes: list[tuple[int, int]], cut: int, count: int, codec: Codec, damage_the_block: bool
) -> None:
    payload = bytearray(PAYLOAD if not damage_the_block else compress(codec, PAYLOAD))
    for position, value in changes:
        payload[position % len(payload)] = value
    payload = payload[: len(payload) - cut]
    batch = assemble(
        payload if damage_the_block else compress(codec, payload),
        attributes=codec,
        record_count=count,
        base_timestamp=1000,
        max_timestamp=1007,
        producer_id=-1,  # type: ignore[arg-type]
        producer_epoch=-1,  # type: ignore[arg-type]
        base_sequence=-1,
    )
    found = {name: outcome(read, memoryview(bytes(batch))) for name, read in READERS.items()}
    refused = {name for name, result in found.items() if result is InvalidInput}
    # The kernels of compaction copy records as they are, and do not read the headers in them.
    assert refused in (set(), set(READERS), set(READERS) - {"compaction by kernels"}), found
    assert found["tables"] == found["tables by kernels"]


@pytest.mark.parametrize("name", READERS)
def test_good_batches_are_read_by_all(name: str) -> None:
    assert outcome(READERS[name], memoryview(bytes(build_batch(RECORDS, Codec.ZSTD)))) is not InvalidInput
