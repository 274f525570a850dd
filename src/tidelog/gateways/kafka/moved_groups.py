"""OffsetFetch for a group that has just moved to another coordinator: this broker asks that one for its client.

Clients repeat other requests when they are told NOT_COORDINATOR. librdkafka looks up the coordinator, but does not
repeat an OffsetFetch: a consumer whose group moves between its SyncGroup and its OffsetFetch would read nothing until
the next rebalance. Groups move whenever a broker joins, leaves or is drained, so that would happen now and then.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from tidelog.broker.ownership import NOBODY, Coordinated, PeerUnavailable
from tidelog.gateways.kafka.connection import Reply, Request
from tidelog.gateways.kafka.context import broker_of
from tidelog.gateways.kafka.long_requests import Parts
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

_PATIENCE_S = 5.0
_PAUSE_S = 0.05
_MANY_FROM = 8
_MOVED = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})

Attempt = Callable[[], "Reply | Parts | Awaitable[Reply]"]


def followed(request: Request, message: Any, attempt: Attempt) -> "Reply | Parts | Awaitable[Reply]":  # noqa: ANN401
    """The reply of this broker, or of the coordinator of the group. Requests for many groups are those of tools,
    which retry."""
    broker = broker_of(request)
    group = _group_of(request, message)
    if group is None or broker.others is None or request.session.is_peer:
        return attempt()
    reply = attempt()
    if isinstance(reply, OffsetFetchResponse) and not _is_moved(request, reply):
        return reply
    return reply if isinstance(reply, Parts) else _wherever_it_is(request, message, group, attempt, reply)


async def _wherever_it_is(
    request: Request,
    message: OffsetFetchRequest,
    group: str,
    attempt: Attempt,
    first: "Reply | Awaitable[Reply]",
) -> Reply:
    broker = broker_of(request)
    ownership, others = broker.ownership, broker.others
    assert others is not None
    reply: Any = await first if isinstance(first, Awaitable) else first
    deadline = time.monotonic() + _PATIENCE_S
    while _is_moved(request, reply) and time.monotonic() < deadline and not broker.is_stopping:
        await others.refresh()
        coordinator = ownership.coordinator(Coordinated.GROUP, group).broker_id
        if coordinator == ownership.node_id:
            again: Any = attempt()
            reply = await again if isinstance(again, Awaitable) else again
        elif coordinator != NOBODY:
            try:
                reply = await others.forward(request.header.api.name, request.version, message, to=coordinator)
            except PeerUnavailable:
                pass  # perhaps it has just died: look again
        if _is_moved(request, reply):
            await asyncio.sleep(_PAUSE_S)
    return reply  # type: ignore[no-any-return]


def _group_of(request: Request, message: OffsetFetchRequest) -> str | None:
    """The only group that the request names. None also if the reply depends on what the client may see."""
    groups: list[Any] = message.groups if request.version >= _MANY_FROM else [message]
    if len(groups) != 1 or (groups[0].topics is None and broker_of(request).admission.authorizer is not None):
        return None
    group: str = groups[0].group_id
    return group


def _is_moved(request: Request, reply: Any) -> bool:  # noqa: ANN401
    if not isinstance(reply, OffsetFetchResponse):
        return False
    if request.version >= _MANY_FROM:
        return any(group.error_code in _MOVED for group in reply.groups)
    return reply.error_code in _MOVED
