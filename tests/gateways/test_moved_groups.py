"""A client that asks for the offsets of a group which has just moved gets them from its new coordinator."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tidelog.broker.ownership import NOBODY, Coordinated, Owner, PeerUnavailable
from tidelog.gateways.kafka import moved_groups
from tidelog.promise import Promise
from tidelog.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)

ME, OTHER = 1, 2
LOADING, NOT_COORDINATOR = 14, 16


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moved_groups, "_PAUSE_S", 0.001)
    monkeypatch.setattr(moved_groups, "_PATIENCE_S", 0.2)


class World:
    """This broker, which learns with each refresh where the group is, and the others."""

    node_id = ME

    def __init__(self, owners: list[int], codes: list[int], *, version: int = 9, is_peer: bool = False) -> None:
        self.owners = owners
        self.codes = codes  # of this broker's answers; then 0
        self.others: Any = self
        self.is_stopping = False
        self.forwarded: list[int] = []
        self.refusals: list[int | Exception] = []  # of the other brokers
        self.attempts = 0
        self.ownership = self
        self.admission = SimpleNamespace(authorizer=None)
        self.request = cast(
            "Any",
            SimpleNamespace(
                version=version,
                session=SimpleNamespace(is_peer=is_peer),
                header=SimpleNamespace(api=SimpleNamespace(name="OffsetFetch")),
                connection=SimpleNamespace(context=SimpleNamespace(broker=self)),
            ),
        )
        groups = [OffsetFetchRequestGroup("g", topics=[])]
        self.message = OffsetFetchRequest(groups=groups) if version >= 8 else OffsetFetchRequest("g", [])

    def coordinator(self, kind: Coordinated, key: str) -> Owner:
        assert (kind, key) == (Coordinated.GROUP, "g")
        return Owner(self.owners[0], 1)

    async def refresh(self) -> None:
        if len(self.owners) > 1:
            del self.owners[0]

    async def forward(self, api: str, version: int, message: Any, *, to: int) -> Any:
        assert (api, version, message) == ("OffsetFetch", self.request.version, self.message)
        self.forwarded.append(to)
        refusal = self.refusals.pop(0) if self.refusals else 0
        if isinstance(refusal, Exception):
            raise refusal
        return self._reply(refusal)

    def _reply(self, code: int) -> OffsetFetchResponse:
        if self.request.version >= 8:
            return OffsetFetchResponse(groups=[OffsetFetchResponseGroup("g", [], code)])
        return OffsetFetchResponse(error_code=code)

    def attempt(self) -> Any:
        self.attempts += 1
        reply = self._reply(self.codes.pop(0) if self.codes else 0)
        if self.attempts % 2:
            return reply
        promise: Promise[Any] = Promise()
        promise.settle(reply)
        return promise

    def ask(self) -> int:
        async def run() -> int:
            reply: Any = moved_groups.followed(self.request, self.message, self.attempt)
            if not isinstance(reply, OffsetFetchResponse):
                reply = await reply
            return int(reply.groups[0].error_code if self.request.version >= 8 else reply.error_code)

        return asyncio.run(run())


@pytest.mark.parametrize("version", [7, 8, 9, 10])
def test_the_new_coordinator_is_asked(version: int) -> None:
    world = World([ME, OTHER], [NOT_COORDINATOR], version=version)
    assert world.ask() == 0
    assert (world.attempts, world.forwarded) == (1, [OTHER])


def test_who_still_coordinates_answers_at_once() -> None:
    world = World([ME], [])
    assert (world.ask(), world.attempts, world.forwarded) == (0, 1, [])


@pytest.mark.parametrize("code", [LOADING, NOT_COORDINATOR])
def test_it_is_looked_for_until_it_is_found(code: int) -> None:
    world = World([NOBODY, NOBODY, OTHER], [code])
    world.refusals = [code, PeerUnavailable("it has just died"), code]
    assert world.ask() == 0
    assert world.forwarded == [OTHER] * 4


def test_a_broker_that_gets_the_group_answers_when_it_is_loaded() -> None:
    world = World([OTHER, ME], [NOT_COORDINATOR, LOADING, LOADING])
    assert (world.ask(), world.attempts, world.forwarded) == (0, 4, [])


def test_after_a_while_the_client_is_told() -> None:
    assert World([NOBODY], [NOT_COORDINATOR]).ask() == NOT_COORDINATOR


def test_what_other_brokers_ask_is_not_passed_on() -> None:
    world = World([OTHER], [NOT_COORDINATOR], is_peer=True)
    assert (world.ask(), world.forwarded) == (NOT_COORDINATOR, [])


def test_other_errors_and_requests_for_many_groups_are_told() -> None:
    world = World([OTHER], [69])
    assert (world.ask(), world.forwarded) == (69, [])
    many = World([OTHER], [NOT_COORDINATOR])
    many.message.groups.append(OffsetFetchRequestGroup("h", topics=[]))
    assert (many.ask(), many.forwarded) == (NOT_COORDINATOR, [])
