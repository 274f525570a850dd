"""The columns of `format("tidelog")`: those of Spark's Kafka source, and checks of a user's own schema."""

from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    IntegralType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tidelog.errors import InvalidInput
from tidelog.spark.options import ReadSettings

CORRUPT = "_corrupt"
"""The bytes of a value that could not be decoded; null if it was decoded."""
HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
_NULLABILITY = ("nullable", "containsNull", "metadata")
_FROM_JSON = (
    BooleanType,
    IntegralType,
    FloatType,
    DoubleType,
    DecimalType,
    StringType,
    DateType,
    TimestampType,
)
_TYPES: dict[str, tuple[DataType, ...]] = {
    "key": (BinaryType(), StringType()),
    "value": (BinaryType(), StringType()),
    "topic": (StringType(),),
    "partition": (IntegerType(),),
    "offset": (LongType(),),
    "timestamp": (TimestampType(),),
    "timestampType": (IntegerType(),),
    "headers": (HEADERS,),
    CORRUPT: (BinaryType(),),
}


def default_schema(settings: ReadSettings) -> str:
    """As DDL, which Spark parses: the type of decoded values is the user's own text."""
    key = "string" if settings.key_format == "string" else "binary"
    value = "string" if settings.value_format == "string" else "binary"
    decoded = settings.value_format in ("json", "avro")
    if decoded:
        if settings.value_schema is None:
            example = "id bigint, amount double" if settings.value_format == "json" else '{"type": "record", ...}'
            raise InvalidInput(f"valueFormat={settings.value_format} needs the option schema, such as {example}")
        value = value_ddl(settings)
    columns = [f"key {key}", f"value {value}", "topic string", "partition int", "offset bigint"]
    columns += ["timestamp timestamp", "timestampType int"]
    if settings.include_headers:
        columns.append("headers array<struct<key: string, value: binary>>")
    if decoded:
        columns.append(f"{CORRUPT} binary")
    return ", ".join(columns)


def value_ddl(settings: ReadSettings) -> str:
    text = (settings.value_schema or "").strip()
    if settings.value_format == "avro":
        from tidelog.spark.avro import avro_ddl

        return avro_ddl(text)
    return text if text.lower().startswith(("struct<", "array<")) else f"struct<{text}>"


def check_schema(schema: StructType, settings: ReadSettings) -> None:
    """A user's schema may have any of the columns, in any order; a decoded `value` may have another type."""
    if not schema.fields:
        raise InvalidInput(f"the schema has no columns; choose from {', '.join(_TYPES)}")
    if len(set(schema.names)) < len(schema.names):
        raise InvalidInput(f"the schema has a column twice: {', '.join(schema.names)}")
    for column in schema.fields:
        if column.name not in _TYPES:
            raise InvalidInput(f"a topic has no column {column.name!r}; choose from {', '.join(_TYPES)}")
        if column.name == "value" and settings.value_format in ("json", "avro"):
            if settings.value_format == "json":
                _check_json(column.dataType)
        elif not any(_same(column.dataType, kind) for kind in _TYPES[column.name]):
            allowed = " or ".join(kind.simpleString() for kind in _TYPES[column.name])
            raise InvalidInput(f"the column {column.name} is {allowed}, not {column.dataType.simpleString()}")


def _check_json(kind: DataType, *, nested: bool = False) -> None:
    if isinstance(kind, StructType):
        for part in kind.fields:
            _check_json(part.dataType, nested=True)
    elif isinstance(kind, ArrayType):
        _check_json(kind.elementType, nested=True)
    elif not nested:
        raise InvalidInput(f"valueFormat=json decodes to a struct or an array, not {kind.simpleString()}")
    elif not isinstance(kind, _FROM_JSON):
        raise InvalidInput(
            f"valueFormat=json cannot decode {kind.simpleString()}; read the field as string and convert it in Spark"
        )


def _same(given: DataType, wanted: DataType) -> bool:
    """Whether the types are equal, apart from nullability."""

    def plain(kind: Any) -> Any:  # noqa: ANN401  (JSON)
        if isinstance(kind, dict):
            return {key: plain(part) for key, part in kind.items() if key not in _NULLABILITY}
        return [plain(part) for part in kind] if isinstance(kind, list) else kind

    return bool(plain(given.jsonValue()) == plain(wanted.jsonValue()))
