"""Checks a request before its handler runs: is the session authorized, and is this the right broker?

The demands of a request's API (`api_table`) are checked with the broker's admission and ownership. A refused request
is answered with an error in its API's own fields (`error_replies`). If a request names many resources, those that are
refused get errors, and the handler answers for the rest. Without an authorizer and without other brokers the gate is
open: a request goes straight to its handler.
"""

from collections.abc import Awaitable, Callable
from copy import copy
from typing import Any, NamedTuple

from tidelog.broker.admission import CLUSTER_NAME, NotAuthorized, ResourceKind
from tidelog.broker.broker import Broker
from tidelog.broker.ownership import Coordinated, NotController, NotOwner
from tidelog.errors import TidelogError
from tidelog.gateways.kafka.api_table import ApiRow, Demand
from tidelog.gateways.kafka.connection import Handler, Reply, Request
from tidelog.gateways.kafka.long_requests import Parts
from tidelog.promise import Promise
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.primitives import NO_UUID, Struct

_COORDINATED = {
    ResourceKind.GROUP: Coordinated.GROUP,
    ResourceKind.TRANSACTIONAL_ID: Coordinated.TRANSACTIONAL_ID,
}
_NAMES = {
    ResourceKind.TOPIC: ("name", "topic"),
    ResourceKind.GROUP: ("group_id",),
    ResourceKind.TRANSACTIONAL_ID: ("transactional_id",),
}
_CONFIGS_OF = "resource_name"
_NO_FRAME = memoryview(b"")  # without its refused entries, a request no longer matches its frame


class _Refused(NamedTuple):
    """A refused part of a request, with the reason."""

    part: Any
    error: TidelogError


def is_open(broker: Broker) -> bool:
    """True if nothing needs to be checked."""
    return broker.admission.authorizer is None and broker.ownership.is_sole


def answered(row: ApiRow, handle: Handler, request: Request, message: Struct) -> Reply | Parts | Awaitable[Reply]:
    """The handler's reply to what is admitted, with errors for what is refused."""
    if row.follows_group and not request.connection.context.broker.ownership.is_sole:
        from tidelog.gateways.kafka.moved_groups import followed  # only brokers of a cluster need it

        return followed(request, message, lambda: _answered(row, handle, request, message))
    return _answered(row, handle, request, message)


def _answered(row: ApiRow, handle: Handler, request: Request, message: Struct) -> Reply | Parts | Awaitable[Reply]:
    refused: list[_Refused] = []
    depth, is_done = 1, False
    try:
        if row.for_controller:
            handle = _at_controller(request, handle)
        for demand in row.demands:
            if demand.by_handler or not _applies(demand, request.version, message):
                continue
            if not demand.lists:
                _check(request, demand, message, message)
                continue
            kept, parts = _parted(request, demand, message, message, demand.lists)
            if not parts:
                continue
            refused += parts.values()
            depth = len(demand.lists)
            message = kept
            left = getattr(kept, demand.lists[0])
            if left and demand.all_or_none:
                others = TidelogError("not attempted, because another entry of the request was refused")
                others.kafka_code = ErrorCode.OPERATION_NOT_ATTEMPTED  # type: ignore[misc]
                refused.append(_Refused(kept, others))
            is_done = is_done or not left or demand.all_or_none
    except (NotAuthorized, NotOwner) as error:
        return _error_reply(request, message, error)
    if not refused:
        return handle(request, message)
    errors = [_error_reply(request, part, error) for part, error in refused]

    def with_errors(reply: Reply) -> Reply:
        for each in errors:
            reply = each if reply is None else _joined(reply, each, depth)
        return reply

    if is_done:
        return with_errors(None)
    return _followed(handle(Request(request.header, _NO_FRAME, request.connection), message), with_errors)


def _at_controller(request: Request, handle: Handler) -> Handler:
    """The handler, if this broker is the controller; otherwise one that forwards the request, as brokers of Kafka do.
    What another broker has forwarded is not forwarded again: raises NotController."""
    broker = request.connection.context.broker
    try:
        broker.ownership.check_controller()
    except NotController:
        if broker.others is None or request.session.is_peer:
            raise
        return _forwarded
    return handle


async def _forwarded(request: Request, message: Struct) -> Reply:
    broker = request.connection.context.broker
    assert broker.others is not None
    try:
        reply: Struct = await broker.others.forward(request.header.api.name, request.version, message)
        return reply
    except TidelogError as error:
        return _error_reply(request, message, NotController(f"the controller does not answer: {error}"))


def _applies(demand: Demand, version: int, message: Struct) -> bool:
    return demand.since <= version <= demand.until and (demand.when is None or demand.when(message))


def _check(request: Request, demand: Demand, message: Struct, entry: Any) -> None:  # noqa: ANN401
    """Raises if what the entry names is refused."""
    context = request.connection.context
    broker, session = context.broker, request.session
    kind = demand.kind if isinstance(demand.kind, ResourceKind) else demand.kind(message, entry)
    name = None if kind is None else _name(broker, kind, getattr(entry, demand.field) if demand.field else entry)
    if kind is None or not name:
        return  # the resource does not exist; the handler reports that
    admission = broker.admission
    other = demand.or_on_cluster
    if other is None or not admission.admits(session, other, ResourceKind.CLUSTER):
        admission.check(session, demand.operation, kind, name)
    if demand.is_coordinated:
        broker.ownership.check_coordinator(_COORDINATED[kind], name)


def _name(broker: Broker, kind: ResourceKind, entry: Any) -> str | None:  # noqa: ANN401
    """The resource that an entry of a request names: the entry itself, one of its fields, or a topic's id."""
    if kind is ResourceKind.CLUSTER:
        return CLUSTER_NAME
    if not isinstance(entry, Struct):
        return entry  # type: ignore[no-any-return]
    fields = entry.__slots__
    named: str | None = next((getattr(entry, each) for each in (*_NAMES[kind], _CONFIGS_OF) if each in fields), None)
    if named or kind is not ResourceKind.TOPIC or "topic_id" not in fields:
        return named
    topic_id: bytes = entry.topic_id  # type: ignore[attr-defined]
    return None if topic_id == NO_UUID else broker.topic_name(topic_id)


def _parted(
    request: Request, demand: Demand, message: Struct, holder: Struct, lists: tuple[str, ...]
) -> tuple[Struct, dict[int, _Refused]]:
    """The holder of a list with the admitted entries only, and for each error code one with the refused entries."""
    entries = getattr(holder, lists[0])
    if not entries:
        return holder, {}
    kept: list[Any] = []
    refused: dict[int, tuple[TidelogError, list[Any]]] = {}
    for entry in entries:
        if len(lists) > 1:
            rest, parts = _parted(request, demand, message, entry, lists[1:])
            kept.append(rest)
            for code, (part, error) in parts.items():
                refused.setdefault(code, (error, []))[1].append(part)
            continue
        try:
            _check(request, demand, message, entry)
        except (NotAuthorized, NotOwner) as error:
            refused.setdefault(error.kafka_code, (error, []))[1].append(entry)
        else:
            kept.append(entry)
    if not refused:
        return holder, {}
    some = {code: _Refused(_with(holder, lists[0], those), error) for code, (error, those) in refused.items()}
    return _with(holder, lists[0], kept), some


def _with(holder: Struct, field: str, entries: list[Any]) -> Struct:
    changed = copy(holder)
    setattr(changed, field, entries)
    return changed


def _error_reply(request: Request, message: Struct, error: TidelogError) -> Reply:
    """Raises the error if it cannot be sent: the client expects no reply, or this version has no field for it."""
    from tidelog.gateways.kafka.error_replies import error_reply  # rarely needed

    reply = error_reply(request.header, message, error.kafka_code, str(error))
    if reply is None:
        raise error
    return reply


def _joined(reply: Struct, more: Reply, depth: int) -> Struct:
    """The first reply with the entries of both. At depth 2 both may have the same group; its topics are merged."""
    assert more is not None
    for name in reply.__slots__:
        known, added = getattr(reply, name), getattr(more, name)
        if not isinstance(known, list) or not added:
            continue
        if depth > 1:
            groups = {each.group_id: each for each in known}
            for each in added:
                if each.group_id in groups and each.topics:
                    _joined(groups[each.group_id], each, depth - 1)
            added = [each for each in added if each.group_id not in groups]
        setattr(reply, name, known + added)
    return reply


def _followed(
    reply: Reply | Parts | Awaitable[Reply], finish: Callable[[Reply], Reply]
) -> Reply | Parts | Awaitable[Reply]:
    """The handler's reply with `finish` applied, when the reply is ready."""
    if reply is None or isinstance(reply, Struct):
        return finish(reply)
    if isinstance(reply, Promise):
        return reply.then(finish)
    if isinstance(reply, Parts):
        return reply.followed_by(finish(None))
    return _awaited(reply, finish)


async def _awaited(reply: Awaitable[Reply], finish: Callable[[Reply], Reply]) -> Reply:
    return finish(await reply)
