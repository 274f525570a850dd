"""Conversion of a group between the classic and the consumer protocol while its members continue.

Upgrade: the first member of the consumer protocol that joins a classic group of consumers turns it into a consumer
group. The other members keep their ids, generations and partitions, and are served through `classic_access`.
Downgrade: when only members of the classic protocol are left, the group becomes a classic group again and rebalances.
In both directions the numbers continue: the generation becomes the epoch, and the epoch the generation.
"""

from tidelog.broker.coordination.groups.classic import ClassicGroup
from tidelog.broker.coordination.groups.consumer import ConsumerGroup
from tidelog.broker.coordination.groups.consumer_member import ClassicSide, ConsumerMember, by_topic
from tidelog.broker.coordination.groups.embedded import (
    PROTOCOL_TYPE,
    MalformedConsumerMetadata,
    read_assignment,
    read_subscription,
    write_assignment,
)
from tidelog.broker.coordination.groups.environment import Environment
from tidelog.broker.coordination.groups.errors import GroupIdNotFound
from tidelog.broker.coordination.groups.roster import Member
from tidelog.broker.coordination.groups.subscriptions import Interest
from tidelog.broker.coordination.timers import Timer


def upgraded(env: Environment, classic: ClassicGroup, now_ms: int) -> ConsumerGroup:
    """Raises, and leaves the classic group unchanged, unless the coordinator can read the subscriptions and
    assignments of all its members. With a custom assignor it cannot know who owns which partition."""
    if classic.protocol_type != PROTOCOL_TYPE:
        raise GroupIdNotFound(f"Group {classic.group_id} is not a consumer group.")
    if not env.config.allows_upgrade:
        raise GroupIdNotFound(
            f"Group {classic.group_id} is a classic group, and group.consumer.migration.policy forbids an upgrade."
        )
    if len(classic.roster) >= env.config.group_consumer_max_size:
        raise GroupIdNotFound(f"Group {classic.group_id} is too large to be upgraded.")
    protocol = classic.protocol or classic.roster.elected_protocol()
    try:
        members = [_upgraded_member(env, member, protocol) for member in classic.members.values()]
    except MalformedConsumerMetadata as error:
        raise GroupIdNotFound(f"Group {classic.group_id} cannot be upgraded: {error}.") from None
    classic.dissolve()
    group = ConsumerGroup(env, classic.group_id, env.wall_ms(), classic.generation)
    for member in members:
        member.epoch = member.previous_epoch = classic.generation
        member.assigned -= group.owners.keys()  # a leader may have assigned a partition to two members
        group.admit(member, member.assigned, now_ms)
    return group


def _upgraded_member(env: Environment, classic: Member, protocol: str) -> ConsumerMember:
    subscription = read_subscription(classic.metadata(protocol) or classic.protocols[0].metadata)
    assignment = read_assignment(classic.assignment)
    if assignment.user_data:
        raise MalformedConsumerMetadata("its assignor is not one of Kafka's own")
    member = ConsumerMember(classic.member_id, classic.instance_id)
    member.rack_id = subscription.rack
    member.client_id, member.client_host = classic.client_id, classic.client_host
    member.rebalance_timeout_ms = classic.rebalance_timeout_ms
    member.interest = Interest(frozenset(subscription.topics))
    member.classic = ClassicSide(classic.session_timeout_ms, classic.protocols)
    member.assigned = frozenset(
        (topic.topic_id, partition)
        for name, partitions in assignment.partitions
        for topic in (env.topics.by_name(name),)
        if topic is not None
        for partition in partitions
    )
    return member


def is_to_be_downgraded(env: Environment, group: ConsumerGroup) -> bool:
    return (
        bool(group.members)
        and env.config.allows_downgrade
        and all(member.classic is not None for member in group.members.values())
        and len(group.members) <= env.config.group_max_size
    )


def downgraded(env: Environment, group: ConsumerGroup, now_ms: int) -> ClassicGroup:
    group.dissolve()
    members = []
    for member in group.members.values():
        if member.classic is None:
            raise AssertionError(f"{member.member_id} does not use the classic protocol")
        classic = Member(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            member.classic.session_timeout_ms,
            member.rebalance_timeout_ms,
            member.classic.protocols,
            Timer(lambda _now_ms: None),
        )
        classic.is_new = False
        classic.assignment = write_assignment(
            tuple(
                (topic.name, tuple(partitions))
                for topic_id, partitions in by_topic(member.assigned).items()
                for topic in (env.topics.by_id(topic_id),)
                if topic is not None
            )
        )
        members.append(classic)
    return ClassicGroup.downgraded(env, group.group_id, group.group_epoch, members, now_ms)
