"""Asking the transaction coordinator: the reply at once, or an awaitable of it, as the wire's message."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from tidelog.broker.coordination.transactions import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of
from tidelog.wire.error_codes import ErrorCode

T = TypeVar("T")


def ask(request: Request, question: m.Request, translate: Callable[[Any], T]) -> T | Awaitable[T]:
    answer = broker_of(request).transactions.ask(question)
    if isinstance(answer, asyncio.Future):
        return _later(answer, translate)
    return translate(answer)


async def _later(answer: "asyncio.Future[Any]", translate: Callable[[Any], T]) -> T:
    if isinstance(answer, asyncio.Task):  # a client that hangs up does not stop what it began
        return translate(await asyncio.shield(answer))
    return translate(await answer)


def for_version(code: int, request: Request, knows_fenced_from: int) -> int:
    """Older clients know a fenced producer by another code."""
    if code == ErrorCode.PRODUCER_FENCED and request.version < knows_fenced_from:
        return int(ErrorCode.INVALID_PRODUCER_EPOCH)
    return code
