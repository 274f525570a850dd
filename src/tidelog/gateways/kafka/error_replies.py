"""The reply to a request that could not be carried out: an error code in every place where the API has one for it.

Made from what the generated messages say of themselves, for every API alike: the top-level code where there is one,
and a code for everything that the request named (a topic, a partition, a group, a resource). What is made is encoded
and read back: a version without a place for the error, which would then tell of a success, gets no reply at all.
"""

from collections.abc import Iterator
from importlib import import_module
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from tidelog.wire.apis import Api
from tidelog.wire.envelope import Chunks, RequestHeader, decode_request_body, encode_response
from tidelog.wire.primitives import Struct
from tidelog.wire.protocol_errors import LocalProtocolError

_PRODUCE = 0
_CODES = ("error_code", "partition_error_code")
_MESSAGE = "error_message"
# Fields that tell what a code is about; those of a row mean the same under different names.
_NAMES = (
    ("name", "topic"),
    ("topic_id",),
    ("partition_index", "partition", "index", "partition_id"),
    ("group_id",),
    ("member_id",),
    ("group_instance_id",),
    ("transactional_id",),
    ("producer_id",),
    ("resource_type",),
    ("resource_name",),
    ("key",),
)
_SYNONYMS = {name: names for names in _NAMES for name in names}
# What Kafka puts where there is no value; other fields have it as their default.
_UNKNOWN: dict[str, Any] = {
    "base_offset": -1,
    "high_watermark": -1,
    "low_watermark": -1,
    "committed_offset": -1,
    "node_id": -1,
    "port": -1,
    "records": b"",
}
_HINTS: dict[type[Struct], dict[str, Any]] = {}  # they take long to find out
_NOT_ASKED_FOR = "forgotten_topics_data"  # what a fetch no longer wants


def error_reply(header: RequestHeader, frame: memoryview, code: int, message: str) -> Chunks | None:
    """None: the API has no place for it in this version, or nobody waits for a reply."""
    request = decode_request_body(header, frame)
    if header.api.key == _PRODUCE and request.acks == 0:
        return None
    api, version = header.api, header.api_version
    kind = _response_of(api)
    # Some versions take the code at the top only, some not at the top, and some take no message.
    for top in (True, False):
        for told in (message, None):
            reply = kind()
            if top:
                _mark(reply, code, told)
            _fill(reply, request, code, told)
            try:
                if code not in _codes(api.response.decode(api.response.encode(reply, version), version)):
                    continue
                return encode_response(api, version, header.correlation_id, reply)
            except LocalProtocolError:
                continue
    return None


def _response_of(api: Api) -> type[Struct]:
    kind: type[Struct] = getattr(import_module(api.module), f"{api.name}Response")
    return kind


def _mark(struct: Struct, code: int, message: str | None) -> None:
    for name in struct.__slots__:
        if name in _CODES:
            setattr(struct, name, code)
        elif name in _UNKNOWN:
            setattr(struct, name, _UNKNOWN[name])
        elif name == _MESSAGE and message is not None:
            setattr(struct, name, message)


def _fill(reply: Struct, asked: Struct, code: int, message: str | None) -> None:
    """A code for everything that was asked for in `asked`, level by level."""
    for name, kind in _lists(type(reply)).items():
        if isinstance(kind, type) and issubclass(kind, Struct) and _tells_errors(kind):
            entries = [_entry(kind, item, code, message) for item in _asked_for(name, kind, asked)]
            setattr(reply, name, entries)


def _entry(kind: type[Struct], item: object, code: int, message: str | None) -> Struct:
    entry = kind()
    _mark(entry, code, message)
    if not isinstance(item, Struct):  # it is a name by itself
        setattr(entry, _name_of_type(kind, type(item)) or "", item)
        return entry
    for name in entry.__slots__:
        for synonym in _SYNONYMS.get(name, ()):
            if synonym in item.__slots__:
                setattr(entry, name, getattr(item, synonym))
    _fill(entry, item, code, message)
    return entry


def _asked_for(name: str, kind: type[Struct], asked: Struct) -> list[Any]:
    """The list of the request that this list of the reply answers: that of the same name, else of the same things."""
    lists = _lists(type(asked))
    for candidate in sorted(lists, key=lambda each: each != name):  # sorting is stable
        items = getattr(asked, candidate)
        if items and candidate != _NOT_ASKED_FOR and _is_about(lists[candidate], kind):
            return list(items)
    return []


def _is_about(asked: Any, kind: type[Struct]) -> bool:  # noqa: ANN401  (a type as a hint has it)
    if not issubclass(asked, Struct):
        return _name_of_type(kind, asked) is not None
    return any(synonym in asked.__slots__ for name in kind.__slots__ for synonym in _SYNONYMS.get(name, ()))


def _name_of_type(kind: type[Struct], wanted: type) -> str | None:
    """The first field that names something and is of this type."""
    hints = _hints(kind)
    return next((name for name in kind.__slots__ if name in _SYNONYMS and wanted in _alternatives(hints[name])), None)


def _hints(kind: type[Struct]) -> dict[str, Any]:
    hints = _HINTS.get(kind)
    if hints is None:
        hints = _HINTS[kind] = get_type_hints(kind.__init__)
        del hints["return"]
    return hints


def _lists(kind: type[Struct]) -> dict[str, Any]:
    """The fields that are lists, with what is in them."""
    return {
        name: get_args(alternative)[0]
        for name, hint in _hints(kind).items()
        for alternative in _alternatives(hint)
        if get_origin(alternative) is list
    }


def _alternatives(hint: object) -> tuple[Any, ...]:
    return get_args(hint) if isinstance(hint, UnionType) else (hint,)


def _tells_errors(kind: type[Struct]) -> bool:
    return any(name in kind.__slots__ for name in _CODES) or any(
        issubclass(inner, Struct) and _tells_errors(inner) for inner in _lists(kind).values()
    )


def _codes(struct: Struct) -> Iterator[int]:
    """Every error code in a message."""
    for name in struct.__slots__:
        value = getattr(struct, name)
        if name in _CODES:
            yield value
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, Struct):
                    yield from _codes(item)
