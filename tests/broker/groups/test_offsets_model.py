"""Commits that race each other, fail, and are cut off by restarts: what was acknowledged is never lost or undone."""

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.broker.groups.world import World
from tidelog.broker.coordination.groups import Outcome, Token
from tidelog.broker.coordination.groups.messages import (
    CommittedPartition,
    CommittedTopic,
    OffsetCommit,
    OffsetCommitReply,
)


class OffsetMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.world.hold_writes()
        self.next_offset = 1
        self.sent: dict[Token, int] = {}
        self.acknowledged = -1
        self.seen = -1

    @rule()
    def commit(self) -> None:
        request = OffsetCommit("g", (CommittedTopic("t", (CommittedPartition(0, self.next_offset),)),))
        self.sent[self.world.send(request)] = self.next_offset
        self.next_offset += 1

    @precondition(lambda self: self.world.held)
    @rule(fails=st.booleans())
    def a_write_returns(self, fails: bool) -> None:
        """Writes return in the order in which they were asked for."""
        outcome = self._next()
        held, self.world.held = self.world.held, None
        self.world.store_is_broken = fails
        self.world.carry_out(outcome)
        self.world.held = held
        for token in list(self.sent):
            if not self.world.is_waiting(token):
                offset = self.sent.pop(token)
                reply = self.world.reply(token, OffsetCommitReply)
                code = reply.topics[0].partitions[0].error_code
                assert code == (15 if fails else 0)
                if code == 0:
                    self.acknowledged = offset

    def _next(self) -> Outcome:
        assert self.world.held
        return self.world.held.pop(0)

    @rule()
    def restart(self) -> None:
        self.world.restart()
        self.world.hold_writes()
        self.sent.clear()

    @rule()
    def wait(self) -> None:
        self.world.advance(600_000)

    @invariant()
    def what_was_acknowledged_or_seen_is_still_there(self) -> None:
        offset = self.world.committed("g").offset
        assert offset >= self.acknowledged
        assert offset >= self.seen
        self.seen = offset


TestOffsets = OffsetMachine.TestCase
TestOffsets.settings = settings(max_examples=40, stateful_step_count=30)
