"""Parses a schema in Spark's DDL (`id bigint NOT NULL, tags array<string>`) without a JVM."""

import re

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tidelog.errors import InvalidInput

_SIMPLE: dict[str, DataType] = {
    "boolean": BooleanType(),
    "tinyint": ByteType(),
    "byte": ByteType(),
    "smallint": ShortType(),
    "short": ShortType(),
    "int": IntegerType(),
    "integer": IntegerType(),
    "bigint": LongType(),
    "long": LongType(),
    "float": FloatType(),
    "real": FloatType(),
    "double": DoubleType(),
    "string": StringType(),
    "binary": BinaryType(),
    "date": DateType(),
    "timestamp": TimestampType(),
}
_TOKEN = re.compile(r"\s*(`(?:[^`]|``)+`|\w+|[<>(),:])")
_MAX_DEPTH = 32


def parse_ddl(text: str) -> StructType:
    reader = _Reader(text)
    fields = reader.fields(closing=None, depth=0)
    return StructType(fields)


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        position = 0
        while text[position:].strip():
            found = _TOKEN.match(text, position)
            if found is None:
                raise self._refuse(f"cannot be parsed at {text[position : position + 20].strip()!r}")
            self._tokens.append(found[1])
            position = found.end()

    def _refuse(self, what: str) -> InvalidInput:
        return InvalidInput(
            f"the schema {self._text!r} {what}; an example of a valid one: id bigint NOT NULL, tags array<string>"
        )

    def _next(self, expected: str | None = None) -> str:
        if not self._tokens:
            raise self._refuse(f"ends where {expected or 'more'} is expected")
        token = self._tokens.pop(0)
        if expected is not None and token != expected:
            raise self._refuse(f"has {token!r} where {expected!r} is expected")
        return token

    def _at(self, token: str) -> bool:
        return bool(self._tokens) and self._tokens[0].lower() == token.lower()

    def fields(self, closing: str | None, depth: int) -> list[StructField]:
        found: list[StructField] = []
        while True:
            name = self._next()
            if not (name[0] == "`" or name.isidentifier() or name.isalnum()):
                raise self._refuse(f"has {name!r} where a name is expected")
            name = name.strip("`").replace("``", "`")
            if self._at(":"):
                self._next()
            kind = self._type(depth + 1)
            nullable = True
            if self._at("not"):
                self._next()
                if self._next().lower() != "null":
                    raise self._refuse("has NOT without NULL")
                nullable = False
            if any(one.name == name for one in found):
                raise self._refuse(f"has {name} twice")
            found.append(StructField(name, kind, nullable))
            if closing is not None and self._at(closing):
                self._next()
                return found
            if closing is None and not self._tokens:
                return found
            self._next(",")

    def _type(self, depth: int) -> DataType:
        if depth > _MAX_DEPTH:
            raise self._refuse("is nested too deeply")
        word = self._next().lower()
        if word in _SIMPLE:
            return _SIMPLE[word]
        if word in ("decimal", "numeric", "dec"):
            return self._decimal()
        if word == "array":
            self._next("<")
            element = self._type(depth + 1)
            self._next(">")
            return ArrayType(element)
        if word == "map":
            self._next("<")
            key = self._type(depth + 1)
            self._next(",")
            value = self._type(depth + 1)
            self._next(">")
            return MapType(key, value)
        if word == "struct":
            self._next("<")
            return StructType(self.fields(">", depth + 1))
        raise self._refuse(f"has the unknown type {word!r}")

    def _decimal(self) -> DecimalType:
        if not self._at("("):
            return DecimalType(10, 0)
        self._next()
        precision, scale = self._next(), "0"
        if self._at(","):
            self._next()
            scale = self._next()
        self._next(")")
        if not (
            precision.isdigit() and scale.isdigit() and 1 <= int(precision) <= 38 and int(scale) <= int(precision)
        ):
            raise self._refuse(f"has decimal({precision},{scale}), which is out of range")
        return DecimalType(int(precision), int(scale))
