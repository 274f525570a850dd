"""The shell of groups: what it says and when, with a store that the test answers for."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, cast

import pytest
import structlog

from tests.broker.groups.world import Catalog
from tests.broker.held_store import HeldStore
from tests.broker.test_shell import in_loop
from tidelog.broker.coordination.groups import GroupConfig, GroupCoordinator
from tidelog.broker.coordination.groups.messages import (
    ConsumerGroupHeartbeat,
    JoinGroup,
    JoinGroupReply,
    Protocol,
    SyncGroup,
    SyncGroupReply,
)
from tidelog.broker.groups import Groups
from tidelog.broker.shell import monotonic_ms, now_ms
from tidelog.errors import StorageUnavailable
from tidelog.metadata.rows import GroupMemberRow
from tidelog.metadata.store import Delete
from tidelog.promise import Promise

NOT_AVAILABLE, MAX_SIZE = 15, 81


class Shell:
    """Groups with a topic `t`, and their store."""

    def __init__(self, **config: Any) -> None:
        ids = count()
        self.store = HeldStore()
        coordinator = GroupCoordinator(
            GroupConfig(**config), Catalog(t=2), lambda: f"#{next(ids)}", now_ms, lambda *_: False
        )
        coordinator.restore([], [], [], monotonic_ms())
        self.groups = Groups(coordinator, cast("Any", self.store), cast("Any", None))

    def heartbeat(self, member: str = "m", epoch: int = 0) -> Any:
        joining: dict[str, Any] = {} if epoch else {"rebalance_timeout_ms": 1000, "topic_partitions": ()}
        if not epoch:
            joining["subscribed_topic_names"] = ("t",)
        return self.groups.ask(ConsumerGroupHeartbeat("g", member, epoch, **joining))

    def join(self, member_id: str = "") -> Any:
        offers = (Protocol("range", b""),)
        return self.groups.ask(
            JoinGroup("c", 10_000, 10_000, member_id, None, "consumer", offers, member_id_required=False)
        )


Play = Callable[[Shell], Awaitable[None]]


def play(script: Play, **config: Any) -> None:
    async def run() -> None:
        await script(Shell(**config))

    assert in_loop(run) == []


def test_a_reply_waits_for_the_write_that_makes_it_true() -> None:
    async def script(shell: Shell) -> None:
        reply = shell.heartbeat()
        assert isinstance(reply, Promise)
        assert not reply.is_kept
        shell.store.asked[0][1].settle(None)
        assert reply.is_kept
        joined = await reply
        assert (joined.error_code, joined.member_epoch) == (0, 1)
        steady = shell.heartbeat(epoch=1)
        assert steady.member_epoch == 1, "without news: no write, no promise"
        assert len(shell.store.asked) == 1

    play(script)


def test_a_write_that_fails_becomes_a_reply_that_clients_retry() -> None:
    async def script(shell: Shell) -> None:
        reply = shell.heartbeat()
        shell.store.asked[0][1].fail(StorageUnavailable("no space"))
        assert (await reply).error_code == NOT_AVAILABLE
        again = shell.heartbeat()
        shell.store.asked[1][1].settle(None)
        assert (await again).error_code == 0

    play(script)


def test_a_silent_member_is_removed_without_anybody_asking() -> None:
    async def script(shell: Shell) -> None:
        reply = shell.heartbeat()
        shell.store.asked[0][1].settle(None)
        await reply
        while len(shell.store.asked) < 2:
            await asyncio.sleep(0.005)
        changes, written = shell.store.asked[1]
        assert Delete(GroupMemberRow, ("g", "m")) in changes
        written.settle(None)
        await shell.groups.close()

    play(script, group_consumer_session_timeout_ms=50, group_consumer_heartbeat_interval_ms=10)


@pytest.mark.parametrize("asks", ["join", "sync"])
def test_who_waits_for_other_members_is_told_when_the_broker_stops(asks: str) -> None:
    async def script(shell: Shell) -> None:
        waiting = shell.join()
        assert isinstance(waiting, Promise)
        if asks == "join":
            shell.groups.stop_waiting()
            assert await waiting == JoinGroupReply(NOT_AVAILABLE)
            assert shell.join() == JoinGroupReply(NOT_AVAILABLE), "nobody begins to wait any more"
        else:
            while not waiting.is_kept:
                shell.groups.tick()
                for _, written in shell.store.asked:
                    if not written.is_kept:
                        written.settle(None)
                await asyncio.sleep(0.005)
            joined = await waiting
            follower = SyncGroup("c", joined.generation_id, joined.member_id)
            assert joined.leader == joined.member_id
            leader_died = shell.join()
            assert isinstance(leader_died, Promise)
            shell.groups.stop_waiting()
            assert (await leader_died).error_code == NOT_AVAILABLE
            assert shell.groups.ask(follower) == SyncGroupReply(NOT_AVAILABLE)

    play(script, group_initial_rebalance_delay_ms=10)


def test_an_operator_hears_that_a_bound_is_reached() -> None:
    async def script(shell: Shell) -> None:
        first = shell.heartbeat("first")
        shell.store.asked[0][1].settle(None)
        assert (await first).error_code == 0
        with structlog.testing.capture_logs() as logged:
            for _ in range(3):
                assert shell.heartbeat("second").error_code == MAX_SIZE
        assert [each["event"] for each in logged] == ["a limit is reached"]
        assert "tidelog.max.group.members" in logged[0]["what"]

    play(script, tidelog_max_group_members=1)


def test_closing_waits_for_writes_under_way() -> None:
    async def script(shell: Shell) -> None:
        shell.heartbeat()
        closing = asyncio.ensure_future(shell.groups.close())
        await asyncio.sleep(0)
        assert not closing.done()
        shell.store.asked[0][1].settle(None)
        await closing

    play(script)
