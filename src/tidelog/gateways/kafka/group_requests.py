"""Asking the group coordinator: the reply at once, or a promise of it, translated into the wire's message."""

from collections.abc import Callable
from typing import Any, TypeVar

from tidelog.broker.coordination.groups import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of
from tidelog.promise import Promise

T = TypeVar("T")


def ask(request: Request, question: m.Request, translate: Callable[[Any], T]) -> T | Promise[T]:
    answer = broker_of(request).groups.ask(question)
    return answer.then(translate) if isinstance(answer, Promise) else translate(answer)


def client_of(request: Request) -> dict[str, str]:
    return {"client_id": request.header.client_id or "", "client_host": f"/{request.connection.peer}"}
