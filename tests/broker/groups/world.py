"""A coordinator with a store in memory and a clock that moves only when told: the shell, made of plain calls."""

from collections.abc import Iterable
from dataclasses import astuple
from itertools import count
from typing import TypeVar

from tidelog.broker.coordination.groups import GroupConfig, GroupCoordinator, Outcome, Token, Topic
from tidelog.broker.coordination.groups.classic import ClassicGroup
from tidelog.broker.coordination.groups.messages import (
    CommittedPartition,
    CommittedTopic,
    FetchedOffsetsTopic,
    GroupOffsetsRequest,
    OffsetCommit,
    OffsetCommitReply,
    OffsetFetch,
    OffsetFetchReply,
    PartitionOffset,
    Reply,
    Request,
)
from tidelog.metadata.rows import GroupMemberRow, GroupRow, OffsetRow, Row
from tidelog.metadata.store import Change, Delete, Put

R = TypeVar("R")
START_MS = 1_700_000_000_000


class Catalog:
    """The topics there are."""

    def __init__(self, **partitions: int) -> None:
        self._by_name: dict[str, Topic] = {}
        for name, number in partitions.items():
            self.create(name, number)

    def create(self, name: str, partitions: int) -> Topic:
        topic = Topic(name, name.encode().ljust(16, b"."), partitions)
        self._by_name[name] = topic
        return topic

    def delete(self, name: str) -> None:
        del self._by_name[name]

    def by_name(self, name: str) -> Topic | None:
        return self._by_name.get(name)

    def by_id(self, topic_id: bytes) -> Topic | None:
        return next((topic for topic in self._by_name.values() if topic.topic_id == topic_id), None)

    def names(self) -> Iterable[str]:
        return list(self._by_name)


class World:
    def __init__(self, config: GroupConfig | None = None, **partitions: int) -> None:
        self.config = config or GroupConfig()
        self.topics = Catalog(**(partitions or {"t": 4, "u": 4}))
        self.now_ms = START_MS  # the clock of deadlines
        self.step_ms = 0  # how far the wall clock was put forward, or back
        self.rows: dict[tuple[str | int, ...], Row] = {}
        self.replies: dict[Token, Reply] = {}
        self.writes = 0
        self.held: list[Outcome] | None = None  # a list: writes wait until `release`
        self.store_is_broken = False
        self._tokens = count()
        self._ids = count()
        self.coordinator = self._started()

    def _started(self) -> GroupCoordinator:
        coordinator = GroupCoordinator(self.config, self.topics, lambda: f"#{next(self._ids)}", lambda: self.wall_ms)
        rows = [self.rows[key] for key in sorted(self.rows, key=str)]  # a table has no order of its own
        coordinator.restore(
            [row for row in rows if isinstance(row, GroupRow)],
            [row for row in rows if isinstance(row, GroupMemberRow)],
            [row for row in rows if isinstance(row, OffsetRow)],
            self.now_ms,
        )
        return coordinator

    def restart(self) -> None:
        """Everything that was not stored is lost; so is everybody's connection."""
        self.held = None
        self.coordinator = self._started()

    @property
    def wall_ms(self) -> int:
        return self.now_ms + self.step_ms

    # Requests

    def send(self, request: Request) -> Token:
        token = f"request-{next(self._tokens)}"
        self.carry_out(self.coordinator.handle(request, token, self.now_ms))
        return token

    def ask(self, request: Request, kind: type[R]) -> R:
        return self.reply(self.send(request), kind)

    def reply(self, token: Token, kind: type[R]) -> R:
        reply = self.replies.pop(token)
        assert isinstance(reply, kind)
        return reply

    def is_waiting(self, token: Token) -> bool:
        return token not in self.replies

    # Time

    def advance(self, ms: int) -> None:
        """Ticks as often as the coordinator asks for."""
        until_ms = self.now_ms + ms
        while (deadline_ms := self.coordinator.next_deadline_ms()) is not None and deadline_ms <= until_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            self.carry_out(self.coordinator.tick(self.now_ms))
        self.now_ms = until_ms

    # The store

    def carry_out(self, outcome: Outcome) -> None:
        if outcome.changes and self.held is not None:
            self.held.append(outcome)
            return
        if outcome.changes:
            self.writes += 1
            if self.store_is_broken:
                outcome = self.coordinator.failed(outcome, self.now_ms)
            else:
                for change in outcome.changes:
                    self._apply(change)
                self.coordinator.written(outcome)
        for token, reply in outcome.replies:
            assert token not in self.replies, f"two replies to {token!r}"
            self.replies[token] = reply
        self._check_counts()

    def _check_counts(self) -> None:
        """What the coordinator says it keeps is what it keeps."""
        members = weight = 0
        for group_id, group in self.coordinator._groups.items():
            members += len(group.members)
            weight += sum(member.weight for member in group.members.values())
            if isinstance(group, ClassicGroup):
                members += len(group._promised)
                weight += sum(len(group_id) + len(member_id) for member_id in group._promised)
                assert all(
                    member.weight >= len(member.assignment) + sum(len(data) for _, data in member.protocols)
                    for member in group.members.values()
                )
            else:
                assert all(
                    member.weight == member.weigh(group_id, group.target.get(member_id, frozenset()))
                    for member_id, member in group.members.items()
                )
        bounds = self.coordinator.bounds
        assert (bounds.members.used, bounds.member_bytes.used) == (members, weight)

    def hold_writes(self) -> None:
        self.held = []

    def release(self) -> None:
        held, self.held = self.held or [], None
        for outcome in held:
            self.carry_out(outcome)

    def _apply(self, change: Change) -> None:
        if isinstance(change, Put):
            row = change.row
            self.rows[type(row).__name__, *(getattr(row, name) for name in row.KEY)] = row
        else:
            assert isinstance(change, Delete)
            prefix = (change.table.__name__, *change.key)
            for key in [key for key in self.rows if key[: len(prefix)] == prefix]:
                del self.rows[key]

    def stored(self, table: type[R]) -> list[R]:
        return [row for row in self.rows.values() if isinstance(row, table)]

    def snapshot(self) -> set[tuple[object, ...]]:
        return {(type(row).__name__, *astuple(row)) for row in self.rows.values()}

    # Offsets

    def commit(
        self,
        group: str,
        topic: str = "t",
        partition: int = 0,
        offset: int = 0,
        *,
        member: str = "",
        generation: int = -1,
        instance: str | None = None,
        metadata: str | None = None,
    ) -> int:
        """The error code of the one partition."""
        request = OffsetCommit(
            group,
            (CommittedTopic(topic, (CommittedPartition(partition, offset, -1, metadata),)),),
            generation,
            member,
            instance,
        )
        return self.ask(request, OffsetCommitReply).topics[0].partitions[0].error_code

    def committed(self, group: str, topic: str = "t", partition: int = 0) -> PartitionOffset:
        wanted = GroupOffsetsRequest(group, (FetchedOffsetsTopic(topic, (partition,)),))
        return self.ask(OffsetFetch((wanted,)), OffsetFetchReply).groups[0].topics[0].partitions[0]
