"""Asking the transaction coordinator: the reply at once, or a promise of it, as the wire's message."""

from collections.abc import Callable
from typing import Any, TypeVar

from tidelog.broker.coordination.transactions import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of
from tidelog.promise import Promise
from tidelog.wire.error_codes import ErrorCode

T = TypeVar("T")


def ask(request: Request, question: m.Request, translate: Callable[[Any], T]) -> T | Promise[T]:
    answer = broker_of(request).transactions.ask(question)
    return answer.then(translate) if isinstance(answer, Promise) else translate(answer)


def for_version(code: int, request: Request, knows_fenced_from: int) -> int:
    """Older clients know a fenced producer by another code."""
    if code == ErrorCode.PRODUCER_FENCED and request.version < knows_fenced_from:
        return int(ErrorCode.INVALID_PRODUCER_EPOCH)
    return code
