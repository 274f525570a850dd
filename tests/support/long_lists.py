"""Requests of every API with lists of any length, made from the type hints of the generated messages."""

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from tidelog.wire.apis import Api
from tidelog.wire.envelope import decode_request_body, decode_request_header, encode_request
from tidelog.wire.primitives import Struct
from tidelog.wire.protocol_errors import LocalProtocolError

# The value of a field by its name, for the entry with this number. Half of the entries name existing things.
KNOWN_TOPIC, KNOWN_PARTITIONS, KNOWN_GROUP = "known", 100, "known"
_NAMES: dict[str, Callable[[int], Any]] = {
    **dict.fromkeys(("name", "topic"), lambda i: KNOWN_TOPIC if i % 2 else f"unknown-{i}"),
    **dict.fromkeys(("partition_index", "partition", "index", "partition_id"), lambda i: i % (2 * KNOWN_PARTITIONS)),
    "group_id": lambda i: KNOWN_GROUP if i % 2 else f"unknown-{i}",
    "resource_type": lambda i: (2, 4)[i % 2],
    "resource_name": lambda i: (KNOWN_TOPIC, "0")[i % 2],
    "replication_factor": lambda _: 1,
    "num_partitions": lambda _: 1,
    "count": lambda _: KNOWN_PARTITIONS,
    "timestamp": lambda i: (-1, -2, 0)[i % 3],
    "committed_metadata": lambda _: "",
    "producer_id": lambda i: i,
    "member_id": lambda i: f"member-{i}",
    "transactional_id": lambda i: f"transaction-{i}",
}
_TOP: dict[str, Any] = {
    "group_id": KNOWN_GROUP, "transactional_id": None, "acks": -1, "validate_only": True, "timeout_ms": 1000,
    "session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "protocol_type": "consumer", "max_bytes": 1 << 20,
    "allow_auto_topic_creation": False, "generation_id_or_member_epoch": -1, "topic": KNOWN_TOPIC,
    "include_synonyms": True, "response_partition_limit": 2000,
}  # fmt: skip


class Shape(NamedTuple):
    """Which lists of a request have entries, and which one of them has many."""

    path: tuple[str, ...]
    long_at: int

    def __str__(self) -> str:
        return ".".join(f"{name}*" if depth == self.long_at else name for depth, name in enumerate(self.path))


def request_kind(api: Api) -> type[Struct]:
    kind: type[Struct] = getattr(import_module(api.module), f"{api.name}Request")
    return kind


def shapes(kind: type[Struct]) -> list[Shape]:
    return [Shape(path, depth) for path in _paths(kind, ()) for depth in range(len(path))]


def _paths(kind: type[Struct], before: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, element in _lists(kind).items():
        yield (*before, name)
        if issubclass(element, Struct):
            yield from _paths(element, (*before, name))


def long_frame(
    api: Api, version: int, shape: Shape, count: int, *, topic_id: bytes, different: int | None = None
) -> bytes | None:
    """None if the version has no such list. `different`: only so many entries differ, which is made faster."""
    for fill_top in (True, False):
        make = partial(long_request, request_kind(api), shape, topic_id=topic_id, fill_top=fill_top)
        try:
            one = _encoded(api, version, make(1))
        except LocalProtocolError:
            continue
        read = decode_request_body(decode_request_header(memoryview(one)[4:]), memoryview(one)[4:])
        if not getattr(read, shape.path[0]):
            return None
        try:
            return _encoded(api, version, make(count, different=different))
        except LocalProtocolError:
            continue
    return None


def _encoded(api: Api, version: int, message: Struct) -> bytes:
    return b"".join(encode_request(api, version, 1, "long", message))  # type: ignore[arg-type]


def long_request(
    kind: type[Struct], shape: Shape, count: int, *, topic_id: bytes, fill_top: bool, different: int | None = None
) -> Struct:
    """With `count` entries in the long list, and one in each other list of the path."""
    message = kind()
    for name, value in _TOP.items():
        if fill_top and name in message.__slots__:
            setattr(message, name, value)
    _fill(message, shape.path, shape.long_at, count if different is None else min(count, different), topic_id)
    if different is not None:
        _repeat(message, shape, count)
    return message


def _repeat(struct: Struct, shape: Shape, count: int) -> None:
    for name in shape.path[: shape.long_at]:
        (struct,) = getattr(struct, name)
    entries = getattr(struct, shape.path[shape.long_at])
    setattr(struct, shape.path[shape.long_at], (entries * (count // len(entries) + 1))[:count])


def _fill(struct: Struct, path: tuple[str, ...], long_at: int, count: int, topic_id: bytes, first: int = 0) -> None:
    element = _lists(type(struct))[path[0]]
    entries: list[Any] = []
    for number in range(first, first + (count if long_at == 0 else 1)):
        if not issubclass(element, Struct):
            entries.append(_plain(element, path[0], number))
            continue
        entry = _filled(element(), number, topic_id)
        if len(path) > 1:
            _fill(entry, path[1:], long_at - 1, count, topic_id, number if long_at == 0 else 0)
        entries.append(entry)
    setattr(struct, path[0], entries)


def _plain(kind: type, name: str, number: int) -> Any:
    if kind is int:
        return number % (2 * KNOWN_PARTITIONS) if "type" not in name else 2
    if kind is str:
        return KNOWN_TOPIC if number % 2 else f"unknown-{number}"
    return kind()


def _filled(struct: Struct, number: int, topic_id: bytes) -> Struct:
    for name in struct.__slots__:
        if name in _NAMES:
            setattr(struct, name, _NAMES[name](number))
        elif name == "topic_id":
            setattr(struct, name, topic_id if number % 2 else number.to_bytes(16, "big"))
    return struct


_LISTS: dict[type[Struct], dict[str, type]] = {}  # cached: `get_type_hints` is slow


def _lists(kind: type[Struct]) -> dict[str, type]:
    if kind in _LISTS:
        return _LISTS[kind]
    found = _LISTS[kind] = {}
    hints = get_type_hints(kind.__init__)
    for name, hint in hints.items():
        for alternative in get_args(hint) or (hint,):
            if get_origin(alternative) is list:
                found[name] = get_args(alternative)[0]
        if get_origin(hint) is list:
            found[name] = get_args(hint)[0]
    return found
