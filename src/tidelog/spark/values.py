"""Decodes keys and values to text and JSON, whole columns at a time.

Arrow's JSON reader parses all values of a batch at once. Each value is put on a line of its own and wrapped in an
object, so that it can neither disappear nor become two; line breaks in JSON can only be white space and are replaced
by spaces. If a batch has a bad value, it is halved repeatedly until the bad values are alone.
"""

import io
from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DecimalType,
    StringType,
    StructType,
    TimestampType,
)

from tidelog.errors import InvalidInput
from tidelog.spark.columns import CORRUPT
from tidelog.spark.options import ReadSettings

Decoder: TypeAlias = Callable[[pa.Array], tuple[pa.Array, pa.Array]]
"""Turns a binary column into the decoded column and a column of the values that could not be decoded."""


def decoder_for(schema: StructType, column: str, settings: ReadSettings) -> Decoder | None:
    """None if the column is not selected or stays binary."""
    names = schema.names
    if column not in names and not (column == "value" and CORRUPT in names):
        return None
    kind: DataType = schema[column].dataType if column in names else StringType()
    strict = settings.mode == "FAILFAST"
    if column == "value" and settings.value_format == "avro":
        from tidelog.spark.avro import avro_decoder

        return avro_decoder(settings.value_schema or "", to_arrow_type(kind, timezone="UTC"), strict=strict)
    if column == "value" and settings.value_format == "json":
        return JsonDecoder(kind, strict=strict)
    if isinstance(kind, StringType):
        return TextDecoder(column, strict=strict)
    return None


class TextDecoder:
    def __init__(self, column: str, *, strict: bool) -> None:
        self._column = column
        self._strict = strict

    def __call__(self, values: pa.Array) -> tuple[pa.Array, pa.Array]:
        try:
            return values.cast(pa.string()), pa.nulls(len(values), pa.binary())
        except pa.ArrowInvalid:
            if self._strict:
                raise InvalidInput(f"a {self._column} is not UTF-8; with mode=PERMISSIVE it becomes null") from None
        good: list[str | None] = []
        bad: list[bytes | None] = []
        for value in values.to_pylist():
            try:
                good.append(None if value is None else value.decode())
                bad.append(None)
            except UnicodeDecodeError:
                good.append(None)
                bad.append(value)
        return pa.array(good, pa.string()), pa.array(bad, pa.binary())


class JsonDecoder:
    """`kind` is the type of the decoded column. Arrow parses numbers, booleans and text itself; times and decimals
    are parsed as text and converted."""

    def __init__(self, kind: DataType, *, strict: bool) -> None:
        self._target = to_arrow_type(kind, timezone="UTC")
        self._options = pyarrow.json.ParseOptions(
            explicit_schema=pa.schema([("v", _json_type(kind))]), unexpected_field_behavior="ignore"
        )
        self._strict = strict

    def __call__(self, values: pa.Array) -> tuple[pa.Array, pa.Array]:
        parts, bad = [], []
        for start, count, decoded in self._pieces(values, 0, len(values)):
            parts.append(pa.nulls(count, self._target) if decoded is None else decoded)
            if decoded is None and values[start].is_valid:
                bad.append(start)
        if bad and self._strict:
            shown = values[bad[0]].as_py()[:200]
            raise InvalidInput(f"a value is not JSON of this schema: {shown!r}; with mode=PERMISSIVE it becomes null")
        decoded = pa.chunked_array(parts, self._target).combine_chunks() if parts else pa.nulls(0, self._target)
        if isinstance(decoded, pa.ChunkedArray):
            decoded = pa.concat_arrays(decoded.chunks)
        return decoded, _only(values, bad)

    def _pieces(self, values: pa.Array, start: int, count: int) -> "list[tuple[int, int, pa.Array | None]]":
        """Runs of rows (start, count) with their decoded values; None for a single row that is null or bad."""
        if count == 0:
            return []
        decoded = self._parse(values.slice(start, count))
        if decoded is not None or count == 1:
            return [(start, count, decoded)]
        half = count // 2
        return self._pieces(values, start, half) + self._pieces(values, start + half, count - half)

    def _parse(self, values: pa.Array) -> pa.Array | None:
        if values.null_count:
            if len(values) == values.null_count:
                return pa.nulls(len(values), self._target)
            values = values.fill_null(b"null")
        lines = pc.binary_join_element_wise(b'{"v":', values, b"}\n", b"")
        text = _lines(lines)
        try:
            table = pyarrow.json.read_json(
                io.BytesIO(text),
                read_options=pyarrow.json.ReadOptions(block_size=max(len(text) + 1, 1024), use_threads=False),
                parse_options=self._options,
            )
        except pa.ArrowInvalid:
            return None
        if table.num_rows != len(values):
            return None
        column = table.column("v").combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks)
        try:
            return _converted(column, self._target)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None


def _lines(column: pa.Array) -> bytes:
    """One line per row: only the last byte of each row remains a line break."""
    _, offsets, data = column.buffers()
    text = bytearray(data)
    ends = memoryview(offsets).cast("i" if pa.types.is_binary(column.type) else "q")
    first, last = ends[column.offset], ends[column.offset + len(column)]
    flat = text[first:last].replace(b"\n", b" ").replace(b"\r", b" ")
    for end in ends[column.offset + 1 : column.offset + len(column) + 1]:
        flat[end - first - 1] = 0x0A
    return bytes(flat)


def _json_type(kind: DataType) -> pa.DataType:
    match kind:
        case StructType():
            return pa.struct([pa.field(part.name, _json_type(part.dataType)) for part in kind.fields])
        case ArrayType():
            return pa.list_(pa.field("element", _json_type(kind.elementType)))
        case DateType() | TimestampType() | DecimalType():
            return pa.string()
        case _:
            return to_arrow_type(kind, timezone="UTC")


def _converted(column: pa.Array, target: pa.DataType) -> pa.Array:
    if column.type == target:
        return column
    if pa.types.is_struct(target):
        children = [_converted(column.field(i), target.field(i).type) for i in range(target.num_fields)]
        mask = column.is_null() if column.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)
    if pa.types.is_list(target):
        items = _converted(column.values, target.value_type)
        mask = column.is_null() if column.null_count else None
        return pa.ListArray.from_arrays(column.offsets, items, type=target, mask=mask)
    if pa.types.is_timestamp(target):
        return _timestamps(column, target)
    return column.cast(target)


def _timestamps(column: pa.Array, target: pa.DataType) -> pa.Array:
    """Parse ISO 8601; without a time zone it is UTC."""
    try:
        return column.cast(target)
    except pa.ArrowInvalid:
        zoned = pc.match_substring_regex(column, r"(Z|[+-]\d\d(:?\d\d)?)$")
        with_zone = pc.if_else(zoned, column, pc.binary_join_element_wise(column, "Z", ""))
        return with_zone.cast(target)


def _only(values: pa.Array, rows: list[int]) -> pa.Array:
    """The values of these rows; null in all others."""
    if not rows:
        return pa.nulls(len(values), pa.binary())
    mask = [False] * len(values)
    for row in rows:
        mask[row] = True
    return pc.if_else(pa.array(mask), values, pa.scalar(None, pa.binary()))
