"""Members that speak the classic protocol, as tests see them."""

from dataclasses import dataclass, field

from tests.broker.groups.world import World
from tidelog.broker.coordination.groups import Token
from tidelog.broker.coordination.groups.messages import (
    Heartbeat,
    HeartbeatReply,
    JoinGroup,
    JoinGroupReply,
    LeaveGroup,
    LeaveGroupReply,
    LeavingMember,
    Protocol,
    SyncGroup,
    SyncGroupReply,
)
from tidelog.wire.embedded import encode_embedded
from tidelog.wire.generated import consumer_protocol_subscription as consumers

SESSION_MS = 10_000
REBALANCE_MS = 60_000


def write_subscription(topics: tuple[str, ...], owned: tuple[tuple[str, tuple[int, ...]], ...] = ()) -> bytes:
    partitions = [consumers.TopicPartition(topic, list(each)) for topic, each in owned]
    message = consumers.ConsumerProtocolSubscription(list(topics), owned_partitions=partitions)
    return encode_embedded(consumers.DATA, message, 1)


def protocols(*names: str, topics: tuple[str, ...] = ("t",)) -> tuple[Protocol, ...]:
    return tuple(Protocol(name, write_subscription(topics)) for name in names)


@dataclass
class Member:
    """A client of one group. It keeps what the last replies told it."""

    world: World
    name: str
    group: str = "g"
    instance: str | None = None
    offers: tuple[Protocol, ...] = field(default_factory=lambda: protocols("range"))
    protocol_type: str = "consumer"
    session_ms: int = SESSION_MS
    rebalance_ms: int = REBALANCE_MS
    member_id: str = ""
    generation: int = -1
    assignment: bytes = b""
    joined: JoinGroupReply = field(default_factory=JoinGroupReply)
    token: Token = None

    def join_request(self, *, understands_skip_assignment: bool = True, member_id_required: bool = True) -> JoinGroup:
        return JoinGroup(
            self.group,
            self.session_ms,
            self.rebalance_ms,
            self.member_id,
            self.instance,
            self.protocol_type,
            self.offers,
            client_id=self.name,
            client_host="/127.0.0.1",
            member_id_required=member_id_required,
            understands_skip_assignment=understands_skip_assignment,
        )

    def send_join(self, *, understands_skip_assignment: bool = True) -> Token:
        """Joins, with the handshake for a member id if the coordinator asks for it."""
        self.token = self.world.send(self.join_request(understands_skip_assignment=understands_skip_assignment))
        if not self.world.is_waiting(self.token):
            reply = self.world.replies[self.token]
            assert isinstance(reply, JoinGroupReply)
            if reply.error_code == 79:
                del self.world.replies[self.token]
                self.member_id = reply.member_id
                self.token = self.world.send(
                    self.join_request(understands_skip_assignment=understands_skip_assignment)
                )
        return self.token

    def join_reply(self) -> JoinGroupReply:
        self.joined = self.world.reply(self.token, JoinGroupReply)
        if self.joined.error_code == 0:
            self.member_id = self.joined.member_id
            self.generation = self.joined.generation_id
        return self.joined

    @property
    def leads(self) -> bool:
        return self.joined.leader == self.member_id

    def sync_request(self, assignments: dict[str, bytes] | None = None) -> SyncGroup:
        return SyncGroup(
            self.group,
            self.generation,
            self.member_id,
            self.instance,
            self.protocol_type,
            self.joined.protocol_name,
            tuple((assignments or {}).items()),
        )

    def send_sync(self, assignments: dict[str, bytes] | None = None) -> Token:
        self.token = self.world.send(self.sync_request(assignments))
        return self.token

    def sync_reply(self) -> SyncGroupReply:
        reply = self.world.reply(self.token, SyncGroupReply)
        if reply.error_code == 0:
            self.assignment = reply.assignment
        return reply

    def heartbeat_request(self) -> Heartbeat:
        return Heartbeat(self.group, self.generation, self.member_id, self.instance)

    def heartbeat(self) -> int:
        return self.world.ask(self.heartbeat_request(), HeartbeatReply).error_code

    def leave(self) -> int:
        request = LeaveGroup(self.group, (LeavingMember(self.member_id, self.instance),))
        reply = self.world.ask(request, LeaveGroupReply)
        return reply.error_code or reply.members[0].error_code

    def commit(self, offset: int, partition: int = 0) -> int:
        return self.world.commit(
            self.group,
            partition=partition,
            offset=offset,
            member=self.member_id,
            generation=self.generation,
            instance=self.instance,
        )


def settle(*members: Member) -> None:
    """One whole rebalance of these members: join, wait, sync. The share of each is its own name."""
    world = members[0].world
    for member in members:
        member.send_join()
    if any(world.is_waiting(member.token) for member in members):
        world.advance(world.config.group_initial_rebalance_delay_ms * 2)
    for member in members:
        assert member.join_reply().error_code == 0, member
    shares = {member.member_id: member.name.encode() for member in members}
    for member in members:
        member.send_sync(shares if member.leads else None)
    for member in members:
        assert member.sync_reply().error_code == 0, member
