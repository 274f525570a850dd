"""Asking the group coordinator: the reply at once, or an awaitable of it, translated into the wire's message."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from tidelog.broker.coordination.groups import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of

T = TypeVar("T")


def ask(request: Request, question: m.Request, translate: Callable[[Any], T]) -> T | Awaitable[T]:
    answer = broker_of(request).groups.ask(question)
    if isinstance(answer, asyncio.Future):
        return _later(answer, translate)
    return translate(answer)


async def _later(answer: "asyncio.Future[Any]", translate: Callable[[Any], T]) -> T:
    return translate(await answer)


def client_of(request: Request) -> dict[str, str]:
    return {"client_id": request.header.client_id or "", "client_host": f"/{request.connection.peer}"}
