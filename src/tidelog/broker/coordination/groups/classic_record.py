"""The state of a classic group: its generation and members, its rows, and its description for operators.

How the state changes is in `classic`.
"""

from enum import StrEnum

from tidelog.broker.coordination.groups.embedded import PROTOCOL_TYPE, MalformedConsumerMetadata, read_subscription
from tidelog.broker.coordination.groups.environment import GroupBounds
from tidelog.broker.coordination.groups.errors import NonEmptyGroup
from tidelog.broker.coordination.groups.messages import DescribedClassicGroup, DescribedClassicMember
from tidelog.broker.coordination.groups.roster import Member, Roster
from tidelog.metadata.rows import GroupMemberRow, GroupRow


class State(StrEnum):
    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


FOLLOWS = {
    State.EMPTY: {State.PREPARING, State.DEAD},
    State.PREPARING: {State.COMPLETING, State.EMPTY, State.DEAD},
    State.COMPLETING: {State.STABLE, State.PREPARING, State.DEAD},
    State.STABLE: {State.PREPARING, State.DEAD},
    State.DEAD: set[State](),
}


class ClassicRecord:
    kind = "classic"

    def __init__(self, group_id: str, since_ms: int, generation: int, bounds: GroupBounds) -> None:
        self.group_id = group_id
        self.state = State.EMPTY
        self.state_since_ms = since_ms  # by the wall clock
        self.generation = generation
        self.protocol_type = ""  # "" until a member joins: a group that only has offsets
        self.protocol: str | None = None
        self.leader: str | None = None
        self.roster = Roster(bounds, len(group_id))

    @property
    def is_empty(self) -> bool:
        return self.state is State.EMPTY

    @property
    def members(self) -> dict[str, Member]:
        return self.roster.members

    def subscribed_topics(self) -> frozenset[str] | None:
        """None if unknown: the members are not consumers, or have not elected a protocol yet."""
        if not self.roster.members:
            return frozenset()
        if self.protocol_type != PROTOCOL_TYPE or self.protocol is None:
            return None
        try:
            return frozenset(
                topic
                for member in self.roster.members.values()
                for topic in read_subscription(member.metadata(self.protocol)).topics
            )
        except MalformedConsumerMetadata:
            return None

    def check_offset_delete(self) -> None:
        """Raises if the group has members that are not consumers: the topics they use, whose offsets must stay, are
        unknown."""
        if self.roster.members and self.protocol_type != PROTOCOL_TYPE:
            raise NonEmptyGroup(f"{self.group_id} has members")

    def offsets_expire_from(self, committed_ms: int) -> int | None:
        """The start of the retention of an offset, or None while it may not expire."""
        if self.state is State.EMPTY:
            return committed_ms if not self.protocol_type else max(self.state_since_ms, committed_ms)
        return committed_ms if self.state is State.STABLE and self.protocol_type == PROTOCOL_TYPE else None

    def describe(self) -> DescribedClassicGroup:
        stable = self.state is State.STABLE
        return DescribedClassicGroup(
            self.group_id,
            self.state,
            self.protocol_type,
            (self.protocol or "") if stable else "",
            tuple(
                DescribedClassicMember(
                    member.member_id,
                    member.instance_id,
                    member.client_id,
                    member.client_host,
                    member.metadata(self.protocol) if stable else b"",
                    member.assignment if stable else b"",
                )
                for member in self.roster.members.values()
            ),
        )

    # Rows

    def row(self) -> GroupRow:
        return GroupRow(
            group=self.group_id,
            kind=self.kind,
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            epoch=self.generation,
            leader=self.leader,
            state=self.state,
            state_since_ms=self.state_since_ms,
        )

    def member_row(self, member_id: str) -> GroupMemberRow | None:
        member = self.roster.members.get(member_id)
        return None if member is None else member.row(self.group_id, self.generation, self.protocol)
