"""Random messages of every API at every version, from a seed: what the codecs' tests have in common."""

import random
from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

from tidelog.wire.codec import MessageCodec
from tools.wiregen.schema import Definition, Field, Message, Struct, load_all

DEFINITIONS = load_all()

_RANGES = {
    "int8": (-(1 << 7), (1 << 7) - 1),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "uint16": (0, (1 << 16) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
}
_TEXTS = ("", "a", "orders", "grüße", "日本語", "x" * 126, "y" * 127, "z" * 300)


class Case(NamedTuple):
    """One message at one version."""

    definition: Definition
    message: Message
    codec: MessageCodec[Any]
    version: int

    def __str__(self) -> str:
        return f"{self.message.top.name}-v{self.version}"


def module_of(file_name: str) -> Any:
    return import_module(f"tidelog.wire.generated.{file_name}")


def all_cases() -> Iterator[Case]:
    for file_name, definition in DEFINITIONS.items():
        module = module_of(file_name)
        codecs = {"request": "REQUEST", "response": "RESPONSE", "data": "DATA"}
        for message in definition.messages:
            for version in definition.versions:
                yield Case(definition, message, getattr(module, codecs[message.role]), version)


def random_message(case: Case, rng: random.Random, arrays_up_to: int = 3) -> Any:
    """Fields that the version has are random, the others at their defaults."""
    module = import_module(case.codec.readers[0].__module__)

    def build(struct: Struct) -> Any:
        values = {f.name: field_value(f) for f in struct.fields if case.version in f.versions}
        return getattr(module, struct.name)(**{name: value for name, value in values.items() if value is not KEEP})

    def field_value(field: Field) -> Any:
        if case.version in field.nullable and rng.random() < 0.25:
            return None
        if field.tag is not None and rng.random() < 0.4:
            return KEEP
        if field.is_array:
            return [element(field) for _ in range(rng.randint(0, arrays_up_to))]
        return element(field)

    def element(field: Field) -> Any:
        if field.is_struct:
            return build(case.definition.structs[field.type])
        return random_plain(field, rng)

    return build(case.message.top)


KEEP = object()  # leave a field at its default


def random_plain(field: Field, rng: random.Random) -> Any:
    if field.type in _RANGES:
        low, high = _RANGES[field.type]
        if field.type == "int16" and "error_code" in field.name:
            return rng.randint(-1, 100)  # the oracle kio knows no others
        if field.type == "int64" and any(word in field.name for word in ("time", "_ms")):
            return rng.randint(0, 1 << 40)  # kio makes dates and durations of these
        return rng.choice((low, high, 0, -1 if low else 1, 127, rng.randint(low, high)))
    if field.type == "bool":
        return rng.random() < 0.5
    if field.type == "float64":
        return rng.uniform(-1e9, 1e9)
    if field.type == "uuid":
        return rng.randbytes(16)
    if field.type == "string":
        return rng.choice(_TEXTS)
    return rng.randbytes(rng.choice((0, 1, 50, 126, 127, 200)))
