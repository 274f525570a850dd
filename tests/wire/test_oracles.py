"""Every message at every version against two other implementations: kio and kafka-python.

Ours encodes and the oracle decodes: the values agree. Then the oracle encodes what it decoded, and ours decodes that.
"""

import datetime
import enum
import io
import random
import uuid
from collections.abc import Callable
from dataclasses import fields as dataclass_fields
from importlib import import_module
from typing import Any

import pytest

from tests.wire.random_messages import Case, all_cases, random_message
from tidelog.wire.embedded import encode_embedded
from tidelog.wire.generated import consumer_protocol_assignment, consumer_protocol_subscription
from tidelog.wire.primitives import NO_UUID
from tools.wiregen.schema import Field, Struct

kio_serial = pytest.importorskip("kio.serial")
kio_index = pytest.importorskip("kio.index")
kafka_message = pytest.importorskip("kafka.protocol.api_message")

CASES = [case for case in all_cases() if case.message.role != "data"]
MESSAGES_A_VERSION = 4


def our_values(case: Case, message: Any, convert: Callable[[Field, Any], Any]) -> list[Any]:
    """The fields that the version has, in order, structs as lists; `convert` has the oracle's view of a value."""

    def struct_values(message: Any, struct: Struct) -> list[Any]:
        present = [field for field in struct.fields if case.version in field.versions]
        return [plain(getattr(message, field.name), field) for field in present]

    def plain(value: Any, field: Field) -> Any:
        if isinstance(value, list):
            return [plain(element, field) for element in value]
        if field.is_struct and value is not None:
            return struct_values(value, case.definition.structs[field.type])
        return convert(field, bytes(value) if isinstance(value, memoryview) else value)

    return struct_values(message, case.message.top)


# --- kio ---


def as_kio_sees_it(field: Field, value: Any) -> Any:
    """A tagged struct that was not sent is the struct at its defaults, which in all of them are -1."""
    if field.is_struct and field.tag is not None:
        return [-1, -1]
    return value


def kio_values(value: Any) -> Any:
    match value:
        case tuple():
            return [kio_values(element) for element in value]
        case datetime.timedelta():
            return round(value / datetime.timedelta(milliseconds=1))
        case datetime.datetime():
            return round(value.timestamp() * 1000)
        case uuid.UUID():
            return value.bytes
        case enum.IntEnum():
            return int(value)
        case bool() | int() | float() | str() | bytes() | None:
            return value
    entity = []
    for field in dataclass_fields(value):
        inner = kio_values(getattr(value, field.name))
        if inner is None and field.metadata.get("kafka_type") == "uuid":
            inner = NO_UUID
        if inner is None and field.metadata.get("kafka_type") == "datetime_i64":
            inner = -1
        entity.append(inner)
    return entity


def kio_type(case: Case) -> Any:
    load = kio_index.load_request_schema if case.message.role == "request" else kio_index.load_response_schema
    return load(case.definition.api_key, case.version)


def test_kio_and_we_understand_each_other() -> None:
    compared = 0
    for case in CASES:
        try:
            entity_type = kio_type(case)
        except kio_index.KioIndexError:
            continue
        read, write = kio_serial.entity_reader(entity_type), kio_serial.entity_writer(entity_type)
        rng = random.Random(str(case))
        for _ in range(MESSAGES_A_VERSION):
            message = random_message(case, rng)
            encoded = case.codec.encode(message, case.version)
            entity, size = read(encoded, 0)
            assert size == len(encoded), str(case)
            expected = our_values(case, message, as_kio_sees_it)
            assert kio_values(entity) == expected, str(case)
            out = io.BytesIO()
            write(out, entity)
            decoded = case.codec.decode(out.getvalue(), case.version)
            assert our_values(case, decoded, as_kio_sees_it) == expected, str(case)
        compared += 1
    assert compared > 450


# --- kafka-python ---


def as_kafka_python_sees_it(field: Field, value: Any) -> Any:
    """Zero uuids of tagged fields are None."""
    if field.type == "uuid" and field.tag is not None and value == NO_UUID:
        return None
    return value


def kafka_python_values(value: Any, version: int) -> Any:
    if isinstance(value, list | tuple):
        return [kafka_python_values(element, version) for element in value]
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, memoryview | bytearray):
        return bytes(value)
    if not hasattr(value, "_struct"):
        return value
    values = []
    for field in value._struct._fields:
        if field.for_version_q(version):
            inner = getattr(value, field.name)
            if isinstance(inner, set):  # operations, which it turns from bits into a set, and none at all into None
                bits = sum(1 << bit for bit in inner)
                inner = bits - (1 << 32) if bits >> 31 else bits
            elif inner is None and "authorized_operations" in field.name:
                inner = -(1 << 31)
            values.append(kafka_python_values(inner, version))
    return values


def kafka_python_classes() -> dict[str, Any]:
    for module in ("admin", "consumer", "metadata", "producer", "sasl"):
        import_module(f"kafka.protocol.{module}")
    return {cls.__name__: cls for cls in kafka_message.ApiMessage.__subclasses__()}


def test_kafka_python_and_we_understand_each_other() -> None:
    classes = kafka_python_classes()
    compared = 0
    for case in CASES:
        name = case.message.top.name
        if name not in classes or case.version > classes[name].max_version:
            continue
        rng = random.Random(str(case))
        for _ in range(MESSAGES_A_VERSION):
            message = random_message(case, rng)
            if name == "ApiVersionsResponse":
                message.error_code = 0  # with an error it reads every version as the first
            expected = our_values(case, message, as_kafka_python_sees_it)
            theirs = classes[name].decode(case.codec.encode(message, case.version), version=case.version)
            assert kafka_python_values(theirs, case.version) == expected, str(case)
            theirs._header = None  # its decoder leaves the slot empty, its encoder reads it
            decoded = case.codec.decode(bytes(theirs.encode(version=case.version)), case.version)
            assert our_values(case, decoded, as_kafka_python_sees_it) == expected, str(case)
        compared += 1
    assert compared > 400


# --- data formats inside other messages ---


def test_kafka_python_and_we_agree_on_subscriptions_and_assignments() -> None:
    consumer = pytest.importorskip("kafka.protocol.consumer.metadata")
    subscription = consumer_protocol_subscription.ConsumerProtocolSubscription(topics=["a", "b"], user_data=b"u")
    encoded = encode_embedded(consumer_protocol_subscription.DATA, subscription, 1)
    theirs = consumer.ConsumerProtocolSubscription.decode(encoded)
    assert (theirs.topics, bytes(theirs.user_data)) == (["a", "b"], b"u")
    assigned = consumer_protocol_assignment.TopicPartition("t", [0, 2])
    assignment = consumer_protocol_assignment.ConsumerProtocolAssignment([assigned])
    encoded = encode_embedded(consumer_protocol_assignment.DATA, assignment, 0)
    theirs = consumer.ConsumerProtocolAssignment.decode(encoded)
    assert [(part.topic, part.partitions) for part in theirs.assigned_partitions] == [("t", [0, 2])]
