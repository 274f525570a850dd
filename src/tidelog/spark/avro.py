"""Avro values, decoded one at a time by fastavro (extra `avro`); the Spark type of an Avro schema.

Values are bare Avro records, or records after the five bytes (0, schema id) of a schema registry. These bytes are
skipped: the schema is always the one in the option.
"""

import io
import json
from typing import TYPE_CHECKING, Any

from tidelog.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    import pyarrow as pa

    from tidelog.spark.values import Decoder

_PRIMITIVE = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
    "fixed": "binary",
    "enum": "string",
}
_LOGICAL = {
    "date": "date",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "uuid": "string",
}
_REGISTRY_HEADER = 5


def avro_ddl(schema: str) -> str:
    """Spark's type for an Avro schema."""
    try:
        parsed = json.loads(schema)
    except ValueError as error:
        raise InvalidInput(f"the option schema is not an Avro schema in JSON: {error}") from None
    return _ddl(parsed)


def _ddl(schema: Any) -> str:  # noqa: ANN401  (JSON)
    if isinstance(schema, list):
        kinds = [kind for kind in schema if kind != "null"]
        if len(kinds) != 1:
            raise InvalidInput(f"an Avro union of several types cannot be a column: {json.dumps(schema)}")
        return _ddl(kinds[0])
    if isinstance(schema, str):
        schema = {"type": schema}
    kind = schema.get("type")
    if isinstance(kind, dict | list):
        return _ddl(kind)
    logical = schema.get("logicalType")
    if logical == "decimal":
        return f"decimal({schema['precision']}, {schema.get('scale', 0)})"
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    if kind == "record":
        fields = [f"`{part['name']}`: {_ddl(part['type'])}" for part in schema["fields"]]
        return f"struct<{', '.join(fields)}>"
    if kind == "array":
        return f"array<{_ddl(schema['items'])}>"
    if kind == "map":
        return f"map<string, {_ddl(schema['values'])}>"
    if kind in _PRIMITIVE:
        return _PRIMITIVE[kind]
    raise InvalidInput(f"this Avro type cannot be a column: {json.dumps(schema)}")


def avro_decoder(schema: str, target: "pa.DataType", *, strict: bool) -> "Decoder":
    import pyarrow as pa

    try:
        import fastavro
    except ImportError:
        raise MissingExtra('valueFormat=avro needs an extra: pip install "tidelog[avro]"') from None
    parsed = fastavro.parse_schema(json.loads(schema))

    def one(value: bytes) -> Any:  # noqa: ANN401  (of the schema's type)
        skipped = _REGISTRY_HEADER if value[:1] == b"\0" and len(value) > _REGISTRY_HEADER else 0
        for start in dict.fromkeys((skipped, 0)):
            stream = io.BytesIO(value)
            stream.seek(start)
            try:
                decoded = fastavro.schemaless_reader(stream, parsed, None)
            except Exception:  # noqa: S112  (bytes that are not Avro may raise anything)
                continue
            if stream.tell() == len(value):
                return decoded
        raise InvalidInput(
            f"a value is not Avro of this schema: {value[:200]!r}; with mode=PERMISSIVE it becomes null"
        )

    def decode(values: "pa.Array") -> "tuple[pa.Array, pa.Array]":
        good, bad = [], []
        for value in values.to_pylist():
            decoded = corrupt = None
            try:
                decoded = None if value is None else one(value)
            except InvalidInput:
                if strict:
                    raise
                corrupt = value
            good.append(decoded)
            bad.append(corrupt)
        return pa.array(good, target), pa.array(bad, pa.binary())

    return decode
