"""The members of a classic group: which assignment strategies they have in common, and which one is elected."""

from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterable
from json import dumps, loads

from tidelog.broker.coordination.groups.environment import GroupBounds
from tidelog.broker.coordination.groups.errors import FencedInstanceId, GroupMaxSizeReached, UnknownMemberId
from tidelog.broker.coordination.groups.messages import Protocol
from tidelog.broker.coordination.timers import Timer
from tidelog.metadata.rows import GroupMemberRow

_PROTOCOL_BYTES = 150  # memory overhead of a protocol's name and metadata


class Member:
    """One member. Its id changes only when a new process takes over the instance id of a static member."""

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
        "weight",
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
        self.is_new = True  # not yet part of a generation: it is not stored, and cannot send heartbeats
        self.weight = 0  # bytes that the roster has counted for it

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
    """`bounds` counts the members and the bytes of their metadata. `group_bytes` is the length of the group's id."""

    def __init__(self, bounds: GroupBounds, group_bytes: int) -> None:
        self._bounds = bounds
        self._group_bytes = group_bytes
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
        self._bounds.members.used += 1
        self._weigh(member)

    def remove(self, member: Member) -> None:
        self._uncount(member)
        del self.members[member.member_id]
        if member.instance_id is not None:
            del self.static_ids[member.instance_id]
        self._supporters.subtract(_names(member.protocols))

    def offer(self, member: Member, protocols: tuple[Protocol, ...]) -> None:
        """The member offers other strategies from now on."""
        self._supporters.subtract(_names(member.protocols))
        member.protocols = protocols
        self._supporters.update(_names(protocols))
        self._weigh(member)

    def assign(self, member: Member, share: bytes) -> None:
        member.assignment = share
        self._weigh(member)

    def check_room_for(self, protocols: tuple[Protocol, ...], known: Member | None = None) -> None:
        """Raises if there is no room for a new member, or for the new metadata of a known one."""
        if known is None:
            self._bounds.members.check(GroupMaxSizeReached)
        more = _weight(protocols) - (0 if known is None else _weight(known.protocols))
        if more > 0:
            self._bounds.member_bytes.check(GroupMaxSizeReached, more)

    def check_room_for_shares(self, shares: Iterable[bytes]) -> None:
        more = sum(map(len, shares)) - sum(len(member.assignment) for member in self.members.values())
        if more > 0:
            self._bounds.member_bytes.check(GroupMaxSizeReached, more)

    def dissolve(self) -> None:
        """The members are gone, or belong to another group object from now on."""
        for member in self.members.values():
            self._uncount(member)

    def _weigh(self, member: Member) -> None:
        names = (member.member_id, member.instance_id or "", member.client_id, member.client_host)
        weight = self._group_bytes + sum(map(len, names)) + _weight(member.protocols) + len(member.assignment)
        self._bounds.member_bytes.used += weight - member.weight
        member.weight = weight

    def _uncount(self, member: Member) -> None:
        self._bounds.members.used -= 1
        self._bounds.member_bytes.used -= member.weight
        member.weight = 0

    def rename(self, member: Member, member_id: str) -> None:
        self.remove(member)
        member.member_id = member_id
        self.add(member)

    def known(self, member_id: str, instance_id: str | None) -> Member:
        """The member with these ids. Raises if there is none, or if another process has taken over the instance
        id."""
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
        """True if there is one of these that every member offers."""
        return any(self._supporters[name] == len(self.members) for name in _names(protocols))

    def elected_protocol(self) -> str:
        """Each member votes for the first of its strategies that all share; ties go to the name that sorts first."""
        everyone = len(self.members)
        votes: Counter[str] = Counter()
        for member in self.members.values():
            votes[next(name for name, _ in member.protocols if self._supporters[name] == everyone)] += 1
        return min(votes, key=lambda name: (-votes[name], name))


def _weight(protocols: tuple[Protocol, ...]) -> int:
    return sum(len(name) + len(metadata) + _PROTOCOL_BYTES for name, metadata in protocols)


def _names(protocols: tuple[Protocol, ...]) -> set[str]:
    return {protocol.name for protocol in protocols}
