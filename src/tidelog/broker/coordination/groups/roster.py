"""The members of a classic group: who they are, which assignment strategies they share, which one wins the vote."""

from base64 import b64decode, b64encode
from collections import Counter
from json import dumps, loads

from tidelog.broker.coordination.groups.errors import FencedInstanceId, UnknownMemberId
from tidelog.broker.coordination.groups.messages import Protocol
from tidelog.broker.coordination.timers import Timer
from tidelog.metadata.rows import GroupMemberRow


class Member:
    """One member. Its id changes only when a static member comes back and takes over its predecessor's place."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session",
        "session_timeout_ms",
    )

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        protocols: tuple[Protocol, ...],
        session: Timer,
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.protocols = protocols
        self.session = session
        self.assignment = b""
        self.is_new = True  # not yet part of a generation, so not stored, and it cannot send heartbeats

    def metadata(self, protocol: str | None) -> bytes:
        return next((offered.metadata for offered in self.protocols if offered.name == protocol), b"")

    def row(self, group_id: str, generation: int, protocol: str | None) -> GroupMemberRow:
        protocols = [[offered.name, b64encode(offered.metadata).decode()] for offered in self.protocols]
        return GroupMemberRow(
            group=group_id,
            member_id=self.member_id,
            instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            epoch=generation,
            subscription=self.metadata(protocol),
            assignment=self.assignment,
            details=dumps({"protocols": protocols}),
        )


def member_from_row(row: GroupMemberRow, session: Timer) -> Member:
    member = Member(
        row.member_id,
        row.instance_id,
        row.client_id,
        row.client_host,
        row.session_timeout_ms,
        row.rebalance_timeout_ms,
        tuple(Protocol(name, b64decode(metadata)) for name, metadata in loads(row.details)["protocols"]),
        session,
    )
    member.assignment = row.assignment
    member.is_new = False
    return member


class Roster:
    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.static_ids: dict[str, str] = {}  # instance id -> member id
        self._supporters: Counter[str] = Counter()  # protocol name -> how many members offer it

    def __len__(self) -> int:
        return len(self.members)

    def add(self, member: Member) -> None:
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member.member_id
        self._supporters.update(_names(member.protocols))

    def remove(self, member: Member) -> None:
        del self.members[member.member_id]
        if member.instance_id is not None:
            del self.static_ids[member.instance_id]
        self._supporters.subtract(_names(member.protocols))

    def offer(self, member: Member, protocols: tuple[Protocol, ...]) -> None:
        """The member offers other strategies from now on."""
        self._supporters.subtract(_names(member.protocols))
        member.protocols = protocols
        self._supporters.update(_names(protocols))

    def rename(self, member: Member, member_id: str) -> None:
        self.remove(member)
        member.member_id = member_id
        self.add(member)

    def known(self, member_id: str, instance_id: str | None) -> Member:
        """The member that this is. Raises if it is none, or if another process has taken over its instance id."""
        if instance_id is not None:
            current = self.static_ids.get(instance_id)
            if current is None:
                raise UnknownMemberId(f"no member has instance id {instance_id}")
            if current != member_id:
                raise FencedInstanceId(f"instance id {instance_id} belongs to {current} now")
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberId(f"no member has id {member_id}")
        return member

    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def shares_any(self, protocols: tuple[Protocol, ...]) -> bool:
        """Whether every member offers one of these."""
        return any(self._supporters[name] == len(self.members) for name in _names(protocols))

    def elected_protocol(self) -> str:
        """Each member votes for the first of its strategies that all share; ties go to the name that sorts first."""
        everyone = len(self.members)
        votes: Counter[str] = Counter()
        for member in self.members.values():
            votes[next(name for name, _ in member.protocols if self._supporters[name] == everyone)] += 1
        return min(votes, key=lambda name: (-votes[name], name))


def _names(protocols: tuple[Protocol, ...]) -> set[str]:
    return {protocol.name for protocol in protocols}
