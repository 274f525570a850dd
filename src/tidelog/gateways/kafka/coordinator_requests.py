"""Sends requests to the coordinators of groups and transactions, and translates their replies, now or when the
promise settles, into messages of the protocol."""

from collections.abc import Callable
from typing import Any, TypeVar

from tidelog.broker.coordination.groups import messages as g
from tidelog.broker.coordination.transactions import messages as t
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of
from tidelog.promise import Promise
from tidelog.wire.error_codes import ErrorCode

T = TypeVar("T")
Translate = Callable[[Any], T]  # from the coordinator's reply to the question


def ask_groups(request: Request, question: g.Request, translate: Translate[T]) -> T | Promise[T]:
    return translated(broker_of(request).groups.ask(question), translate)


def ask_transactions(request: Request, question: t.Request, translate: Translate[T]) -> T | Promise[T]:
    return translated(broker_of(request).transactions.ask(question), translate)


def translated(answer: Any, translate: Translate[T]) -> T | Promise[T]:  # noqa: ANN401
    return answer.then(translate) if isinstance(answer, Promise) else translate(answer)


def client_of(request: Request) -> dict[str, str]:
    """The client id and host that a group stores for a member."""
    session = request.session
    return {"client_id": session.client_id or "", "client_host": f"/{session.peer}"}


def fencing_known(code: int, request: Request, *, since: int) -> int:
    """The coordinator's code for this version: before `since`, PRODUCER_FENCED becomes INVALID_PRODUCER_EPOCH."""
    if code == ErrorCode.PRODUCER_FENCED and request.version < since:
        return int(ErrorCode.INVALID_PRODUCER_EPOCH)
    return code
