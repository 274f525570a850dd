"""What becomes of values, and of files that are not what they should be: no JVM is needed to see it."""

import json
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from itertools import pairwise

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from tests.spark.topics import fill, numbered
from tests.support.brokers import BrokerProcess
from tidelog.client import Client
from tidelog.client.consuming.ranges import RawChunk
from tidelog.errors import InvalidInput
from tidelog.model import LeaderEpoch, ProducerEpoch, ProducerId
from tidelog.records.batch import iterate, place, read_header
from tidelog.records.record import BatchBuilder, build_marker, decode
from tidelog.spark import offsets, reading
from tidelog.spark.avro import avro_ddl
from tidelog.spark.offsets import OffsetRange
from tidelog.spark.options import read_settings
from tidelog.spark.reading import read_range
from tidelog.spark.values import JsonDecoder, TextDecoder
from tidelog.storage.direct import LogLeader, Stretch
from tidelog.storage.local.direct import LocalDirectLog
from tidelog.storage.local.inspect import with_topic_id
from tidelog.wire.generated.fetch import AbortedTransaction

MakeTopic = Callable[..., str]
ORDER = StructType().add("id", LongType()).add("name", StringType())


@pytest.fixture
def make_topic(make_topic: MakeTopic) -> MakeTopic:
    return partial(make_topic, retention_ms="-1")


def decoded(kind: StructType | ArrayType, values: list[bytes | None]) -> tuple[list[object], list[bytes | None]]:
    good, bad = JsonDecoder(kind, strict=False)(pa.array(values, pa.binary()))
    return good.to_pylist(), bad.to_pylist()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b'{"id": 1, "name": "a"}', {"id": 1, "name": "a"}),
        (b'{"id": 1, "unknown": {"x": [1]}}', {"id": 1, "name": None}),
        (b'{\n  "id": 1,\r\n  "name": "a\\nb"\n}', {"id": 1, "name": "a\nb"}),
        (b"{}", {"id": None, "name": None}),
        (b"null", None),
    ],
)
def test_json_as_the_schema_has_it(value: bytes, expected: object) -> None:
    assert decoded(ORDER, [value]) == ([expected], [None])


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b" ",
        b"\n",
        b"{",
        b"nonsense",
        b'{"id": 1}{"id": 2}',
        b'{"id": 1}\n{"id": 2}',
        b'{"id": "one"}',
        b"17",
        b'[{"id": 1}]',
        b"\xff\xfe",
    ],
)
def test_what_is_not_json_is_kept_and_does_not_disturb_its_neighbours(value: bytes) -> None:
    good = b'{"id": 7, "name": "x"}'
    rows, bad = decoded(ORDER, [good, None, value, good, good])
    assert rows == [{"id": 7, "name": "x"}, None, None, {"id": 7, "name": "x"}, {"id": 7, "name": "x"}]
    assert bad == [None, None, value, None, None]
    with pytest.raises(InvalidInput, match="a value is not JSON of this schema"):
        JsonDecoder(ORDER, strict=True)(pa.array([good, value], pa.binary()))


def test_many_bad_values_among_many_good_ones() -> None:
    values = [b"bad" if number % 97 == 0 else b'{"id": %d}' % number for number in range(5000)]
    rows, bad = decoded(StructType().add("id", LongType()), list(values))
    assert rows == [None if number % 97 == 0 else {"id": number} for number in range(5000)]
    assert [value for value in bad if value is not None] == [b"bad"] * len(range(0, 5000, 97))


def test_times_decimals_and_nested_values() -> None:
    kind = (
        StructType()
        .add("at", TimestampType())
        .add("day", DateType())
        .add("price", DecimalType(10, 2))
        .add("lines", ArrayType(StructType().add("amount", DoubleType())))
    )
    zoned = {"at": "2026-01-02T03:04:05+01:00", "day": "2026-01-02", "price": "12.50", "lines": [{"amount": 1}, {}]}
    local = {"at": "2026-01-02 03:04:05.5", "lines": []}
    rows, bad = decoded(kind, [json.dumps(zoned).encode(), json.dumps(local).encode()])
    assert bad == [None, None]
    assert rows == [
        {
            "at": datetime(2026, 1, 2, 2, 4, 5, tzinfo=UTC),
            "day": date(2026, 1, 2),
            "price": Decimal("12.50"),
            "lines": [{"amount": 1.0}, {"amount": None}],
        },
        {"at": datetime(2026, 1, 2, 3, 4, 5, 500_000, tzinfo=UTC), "day": None, "price": None, "lines": []},
    ]


def test_text_that_is_none() -> None:
    good, bad = TextDecoder("value", strict=False)(pa.array([b"a", b"\xff", None], pa.binary()))
    assert (good.to_pylist(), bad.to_pylist()) == (["a", None, None], [None, b"\xff", None])


def test_avro_schemas_are_spark_s_types() -> None:
    fields = [
        {"name": "id", "type": "long"},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "extra", "type": {"type": "map", "values": "double"}},
    ]
    ddl = avro_ddl(json.dumps({"type": "record", "name": "order", "fields": fields}))
    assert ddl == "struct<`id`: bigint, `at`: timestamp, `tags`: array<string>, `extra`: map<string, double>>"
    with pytest.raises(InvalidInput, match="an Avro union of several types"):
        avro_ddl('["int", "string"]')


def test_avro_values_with_and_without_a_registry_s_header() -> None:
    fastavro = pytest.importorskip("fastavro", reason="needs the extra `avro`")
    import io

    from tidelog.spark.avro import avro_decoder

    schema = {"type": "record", "name": "order", "fields": [{"name": "id", "type": "long"}]}
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), {"id": 300})
    decode_avro = avro_decoder(json.dumps(schema), pa.struct([("id", pa.int64())]), strict=False)
    values = [out.getvalue(), b"\0\0\0\0\x07" + out.getvalue(), b"", None]
    good, bad = decode_avro(pa.array(values, pa.binary()))
    assert good.to_pylist() == [{"id": 300}, {"id": 300}, None, None]
    assert bad.to_pylist() == [None, None, b"", None]


# --- transactions ---------------------------------------------------------------------------------------------------


def test_what_was_aborted_is_left_out() -> None:
    one, two, epoch = ProducerId(1), ProducerId(2), ProducerEpoch(0)

    def batch(value: bytes, producer: ProducerId) -> bytearray:
        builder = BatchBuilder(producer_id=producer, producer_epoch=epoch, base_sequence=0, transactional=True)
        builder.append(value, timestamp=1)
        return builder.build()

    marker = build_marker(committed=False, producer_id=one, producer_epoch=epoch, coordinator_epoch=0, timestamp=1)
    parts = [batch(b"aborted", one), batch(b"other", two), marker, batch(b"later", one)]
    for offset, part in enumerate(parts):
        place(part, 0, read_header(part), offset, LeaderEpoch(0))
    aborted = [AbortedTransaction(producer_id=1, first_offset=0)]
    chunk = RawChunk(0, 4, 4, memoryview(b"".join(parts)), aborted)
    values = [record.value for shown in iterate(chunk.committed()) for record in decode(shown)]
    assert values == [b"other", b"later"]


# --- files ----------------------------------------------------------------------------------------------------------


def task(broker: BrokerProcess, client: Client, topic: str, **given: str) -> tuple[list[str], OffsetRange]:
    """What a task gives for the whole of partition 0, with files where there are any."""
    settings = read_settings({"bootstrap.servers": broker.bootstrap, "subscribe": topic, **given}, streaming=False)
    (row,) = client.partitions(topic)
    directory = with_topic_id(f"{broker.data_dir}/logs/{topic}/0")
    part = OffsetRange(
        topic, 0, row.start_offset, row.end_offset, client.topic(topic).topic_id, LocalDirectLog(directory)
    )
    batches = read_range(settings, StructType().add("value", StringType()).add("offset", LongType()), part)
    return [value for batch in batches for value in batch.column("value").to_pylist()], part


def test_damaged_missing_and_foreign_files_are_left_for_the_broker(
    broker: BrokerProcess, client: Client, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, other = make_topic(segment_bytes="5000"), make_topic(segment_bytes="5000")
    for start in range(0, 600, 20):
        fill(client, topic, numbered("x" * 30, 20, start), timestamp=start)
        fill(client, other, numbered("y" * 30, 20, start), timestamp=start)
    expected = numbered("x" * 30, 600)
    values, part = task(broker, client, topic)
    assert values == expected

    copy = str(broker.directory / f"copy-of-{topic}")
    from_files: list[int] = []

    read = LocalDirectLog.read

    def spied(_: LocalDirectLog, start: int, end: int, leader: LogLeader, *, committed: bool) -> Iterator[Stretch]:
        for stretch in read(LocalDirectLog(copy), start, end, leader, committed=committed):
            from_files.append(stretch.end)
            yield stretch

    monkeypatch.setattr(LocalDirectLog, "read", spied)
    assert isinstance(part.direct, LocalDirectLog)
    shutil.copytree(part.direct.directory, copy)
    assert task(broker, client, topic)[0] == expected
    assert from_files[-1] == 600, "all of it is in the files, also what is in the segment that is being written"

    from_files.clear()
    segments = sorted((broker.directory / f"copy-of-{topic}").glob("*.log"))
    content = bytearray(segments[1].read_bytes())
    content[len(content) // 2] ^= 0xFF
    segments[1].write_bytes(content)
    segments[3].unlink()
    assert task(broker, client, topic)[0] == expected
    assert from_files

    from_files.clear()
    copy = with_topic_id(f"{broker.data_dir}/logs/{other}/0")
    assert task(broker, client, topic)[0] == expected
    assert from_files == [], "files of another topic under the same path are not taken"


def test_few_records_and_many_are_decoded_the_same(
    broker: BrokerProcess, client: Client, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = make_topic()
    client.produce(topic, b"v", key="k", headers=[("a", b"1"), ("b", None)])
    client.produce(topic, None)
    settings = read_settings({"bootstrap.servers": broker.bootstrap, "subscribe": topic}, streaming=False)
    from tidelog.spark.columns import HEADERS

    schema = StructType().add("key", "binary").add("value", "binary").add("headers", HEADERS)
    schema = schema.add("timestamp", "timestamp").add("timestampType", "integer").add("offset", "long")
    part = OffsetRange(topic, 0, 0, 2, client.topic(topic).topic_id)
    monkeypatch.setattr(reading, "_KERNELS", "not loaded")
    few = list(read_range(settings, schema, part))
    monkeypatch.setattr(reading, "_FEW_ROWS", 0)
    many = list(read_range(settings, schema, part))
    assert pa.Table.from_batches(few) == pa.Table.from_batches(many)
    assert few[0].num_rows == 2


def test_ranges_are_shared_out() -> None:
    settings = read_settings({"bootstrap.servers": "h:1", "subscribe": "t"}, streaming=False)
    part = OffsetRange("t", 0, 100, 2_000_100, b"")
    shared = offsets.share_out([part], settings, cores=4)
    assert (shared[0].start, shared[-1].end, len(shared)) == (100, 2_000_100, 4)
    assert all(left.end == right.start for left, right in pairwise(shared))
    small = OffsetRange("t", 0, 0, 1000, b"")
    assert offsets.share_out([small], settings, cores=4) == [small], "not worth another task"
