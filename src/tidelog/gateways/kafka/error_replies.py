"""The reply to a request that failed: an error code in every field that the API has for it.

The reply is made from the type hints of the generated messages, for every API alike: the top-level code where there
is one, and a code for everything that the request names (a topic, a partition, a group, a resource). If results have
no names, as those for ACLs, each entry of the request gets one, in order. The reply is encoded and decoded again as a
check: a version without a field for the error would report success, so it gets no reply at all.
"""

from collections.abc import Iterator
from importlib import import_module
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from tidelog.wire.apis import Api
from tidelog.wire.envelope import RequestHeader
from tidelog.wire.primitives import Struct
from tidelog.wire.protocol_errors import LocalProtocolError

_PRODUCE = 0
_CODES = ("error_code", "partition_error_code")
_MESSAGE = "error_message"
# Fields that name what a code is about; the names in one row are synonyms.
_NAMES = (
    ("name", "topic", "topic_name", "user"),
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
# Kafka's values for "unknown", for the fields whose default is another one.
_UNKNOWN: dict[str, Any] = {
    "base_offset": -1,
    "high_watermark": -1,
    "low_watermark": -1,
    "committed_offset": -1,
    "node_id": -1,
    "port": -1,
    "records": b"",
}
_HINTS: dict[type[Struct], dict[str, Any]] = {}  # cached: `get_type_hints` is slow
_NOT_ASKED_FOR = "forgotten_topics_data"  # partitions to remove from a fetch session


def error_reply(header: RequestHeader, request: Struct, code: int, message: str) -> Struct | None:
    """None if the API has no field for the error in this version, or the client expects no reply."""
    if header.api.key == _PRODUCE and request.acks == 0:  # type: ignore[attr-defined]
        return None
    api, version = header.api, header.api_version
    kind = _message_of(api, "Response")
    # Some versions have the code at the top only, some not at the top, and some have no message.
    for top in (True, False):
        for told in (message, None):
            reply = kind()
            if top:
                _mark(reply, code, told)
            _fill(reply, request, code, told)
            try:
                if code in _codes(api.response.decode(api.response.encode(reply, version), version)):
                    return reply
            except LocalProtocolError:
                continue
    return None


def request_without_entries(api: Api) -> Struct:
    """A substitute for a request whose lists are too long to answer each entry."""
    return _message_of(api, "Request")()


def _message_of(api: Api, role: str) -> type[Struct]:
    kind: type[Struct] = getattr(import_module(api.module), f"{api.name}{role}")
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
    """Add a code for everything that `asked` names, level by level."""
    lists = {
        name: kind
        for name, kind in _lists(type(reply)).items()
        if isinstance(kind, type) and issubclass(kind, Struct) and _tells_errors(kind)
    }
    for name, kind in lists.items():
        items = _asked_for(name, kind, asked, is_only=len(lists) == 1)
        setattr(reply, name, [_entry(kind, item, code, message) for item in items])


def _entry(kind: type[Struct], item: object, code: int, message: str | None) -> Struct:
    entry = kind()
    _mark(entry, code, message)
    if _is_nameless(kind):  # what names it, if anything, are lists that are copied from the request
        for name, inner in _lists(kind).items():
            if name in item.__slots__ and issubclass(inner, Struct) and not _tells_errors(inner):  # type: ignore[attr-defined]
                setattr(entry, name, [_like(inner, each) for each in getattr(item, name)])
        return entry
    if not isinstance(item, Struct):  # the item is itself a name
        setattr(entry, _name_of_type(kind, type(item)) or "", item)
        return entry
    for name in entry.__slots__:
        for synonym in _SYNONYMS.get(name, ()):
            if synonym in item.__slots__:
                setattr(entry, name, getattr(item, synonym))
    _fill(entry, item, code, message)
    return entry


def _asked_for(name: str, kind: type[Struct], asked: Struct, *, is_only: bool) -> list[Any]:
    """The entries of the request that this list of the reply answers: those of the list with the same name, else
    those of all lists of the same kind of resource. If the reply has no other list, resources may also be in lists
    within the request's entries; results without names answer the entries themselves."""
    lists = {
        candidate: of
        for candidate, of in _lists(type(asked)).items()
        if candidate != _NOT_ASKED_FOR and getattr(asked, candidate)
    }
    about = [candidate for candidate, of in lists.items() if _is_about(of, kind)]
    if name in about:
        about = [name]
    if about:
        return [item for candidate in about for item in getattr(asked, candidate)]
    if not is_only:
        return []
    entries = [item for candidate in lists for item in getattr(asked, candidate) if isinstance(item, Struct)]
    if _is_nameless(kind):
        return entries
    return [
        item
        for entry in entries
        for inner, of in _lists(type(entry)).items()
        if _is_about(of, kind)
        for item in getattr(entry, inner) or ()
    ]


def _is_nameless(kind: type[Struct]) -> bool:
    return not any(name in _SYNONYMS for name in kind.__slots__)


def _like(kind: type[Struct], item: Struct) -> Struct:
    """A copy of the item, as the type that the reply uses."""
    copied = kind()
    for name in copied.__slots__:
        if name in item.__slots__:
            setattr(copied, name, getattr(item, name))
    return copied


def _is_about(asked: Any, kind: type[Struct]) -> bool:  # noqa: ANN401  (a type as a hint has it)
    if not issubclass(asked, Struct):
        return _name_of_type(kind, asked) is not None
    return any(synonym in asked.__slots__ for name in kind.__slots__ for synonym in _SYNONYMS.get(name, ()))


def _name_of_type(kind: type[Struct], wanted: type) -> str | None:
    """The first field of this type that is a name."""
    hints = _hints(kind)
    return next((name for name in kind.__slots__ if name in _SYNONYMS and wanted in _alternatives(hints[name])), None)


def _hints(kind: type[Struct]) -> dict[str, Any]:
    hints = _HINTS.get(kind)
    if hints is None:
        hints = _HINTS[kind] = get_type_hints(kind.__init__)
        del hints["return"]
    return hints


def _lists(kind: type[Struct]) -> dict[str, Any]:
    """The fields that are lists, with the type of their items."""
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
