"""A member of a consumer group, and how it gets from the partitions it owns to those it should own.

    state           the member ...                                              until
    Stable          owns its part of the target of its epoch                    the target has a later epoch
    Unrevoked       was told to give partitions up, and stays in its epoch      it no longer reports them as owned
    Unreleased      is in the target's epoch, but some of its partitions are    their owners have given them up
                    still owned by others

A partition is assigned to its new owner only after the old owner has given it up, left, or been removed. So at any
time a partition has at most one owner.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Set
from enum import StrEnum
from json import dumps, loads
from typing import Any, NamedTuple

from tidelog.broker.coordination.groups.assignors import Partition
from tidelog.broker.coordination.groups.environment import TopicCatalog
from tidelog.broker.coordination.groups.messages import (
    ConsumerGroupHeartbeatReply,
    DescribedConsumerMember,
    NamedTopicPartitions,
    Protocol,
    TopicPartitions,
)
from tidelog.broker.coordination.groups.subscriptions import Interest
from tidelog.broker.coordination.timers import Timer
from tidelog.metadata.rows import GroupMemberRow

NOTHING: frozenset[Partition] = frozenset()
_NAME_BYTES, _PARTITION_BYTES = 100, 150  # memory overhead of a name, memory of a partition in a set


class MemberState(StrEnum):
    STABLE = "stable"
    UNREVOKED = "unrevoked"
    UNRELEASED = "unreleased"


class ClassicSide(NamedTuple):
    """The additional data of a member that uses the classic protocol's requests."""

    session_timeout_ms: int
    protocols: tuple[Protocol, ...]


class ConsumerMember:
    __slots__ = (
        "assigned",
        "assignor",
        "classic",
        "client_host",
        "client_id",
        "epoch",
        "instance_id",
        "interest",
        "is_unheard",
        "member_id",
        "patience",
        "previous_epoch",
        "rack_id",
        "rebalance_timeout_ms",
        "revoking",
        "session",
        "state",
        "steady_reply",
        "weight",
    )

    def __init__(self, member_id: str, instance_id: str | None) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.rack_id: str | None = None
        self.client_id = ""
        self.client_host = ""
        self.rebalance_timeout_ms = 0
        self.interest = Interest(frozenset())
        self.assignor: str | None = None
        self.epoch = 0
        self.previous_epoch = 0
        self.state = MemberState.STABLE
        self.assigned = NOTHING
        self.revoking = NOTHING
        self.classic: ClassicSide | None = None
        self.is_unheard = False  # loaded from the store, and has sent nothing since
        self.steady_reply: ConsumerGroupHeartbeatReply | None = None  # made once per epoch
        self.weight = 0  # bytes that its group has counted for it
        self.session = Timer(lambda _now_ms: None)
        self.patience = Timer(lambda _now_ms: None)  # deadline for it to give up partitions, or to rejoin

    @property
    def held(self) -> frozenset[Partition]:
        """The partitions that no other member may get yet."""
        return self.assigned | self.revoking

    def weigh(self, group_id: str, target: Set[Partition]) -> int:
        """About how many bytes its metadata and its partitions take in memory."""
        names = (group_id, self.member_id, self.instance_id or "", self.rack_id or "", self.client_id)
        partitions = len(self.assigned) + len(self.revoking) + len(target)
        return self.said_bytes + sum(map(len, names)) + _PARTITION_BYTES * partitions

    @property
    def said_bytes(self) -> int:
        """The part of the weight that the member itself has sent."""
        metadata = 0 if self.classic is None else sum(len(each.metadata) for each in self.classic.protocols)
        return metadata + weight_of(self.interest.names, self.interest.pattern)

    def is_reconciled(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == assignment_epoch

    def advance_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.previous_epoch, self.epoch = self.epoch, epoch

    def reconcile(
        self,
        target: Set[Partition],
        target_epoch: int,
        owners: Mapping[Partition, str],
        reported: Set[Partition] | None,
    ) -> None:
        """Moves towards the target as far as possible now. `reported` are the partitions that the member says it
        owns, None if it did not say. The caller has to update `owners` when `held` changes."""
        epoch = self.epoch
        if self.state is MemberState.UNREVOKED:
            if reported is None or not self.revoking.isdisjoint(reported):
                return
            epoch += 1  # at most the target's epoch, because that was higher than the member's
        keep = self.assigned & target
        give_up = self.assigned - keep
        if give_up and (reported is None or not give_up.isdisjoint(reported)):
            self.state = MemberState.UNREVOKED
            self.assigned, self.revoking = keep, give_up
            self.advance_epoch(epoch)
            return
        wanted = target - keep
        free = {partition for partition in wanted if owners.get(partition, self.member_id) == self.member_id}
        self.state = MemberState.STABLE if len(free) == len(wanted) else MemberState.UNRELEASED
        self.assigned, self.revoking = keep | free, NOTHING
        self.advance_epoch(target_epoch)

    def describe(self, target: Set[Partition], topics: TopicCatalog) -> DescribedConsumerMember:
        return DescribedConsumerMember(
            self.member_id,
            self.instance_id,
            self.rack_id,
            self.epoch,
            self.client_id,
            self.client_host,
            tuple(sorted(self.interest.names)),
            self.interest.pattern,
            _named(self.assigned, topics),
            _named(target, topics),
            member_type=1 if self.classic is None else 0,
        )

    def row(self, group_id: str, target: Set[Partition]) -> GroupMemberRow:
        classic = self.classic
        details = {
            "previous_epoch": self.previous_epoch,
            "state": self.state,
            "rack": self.rack_id,
            "assignor": self.assignor,
            "target": _to_json(target),
            "protocols": None
            if classic is None
            else [[protocol.name, b64encode(protocol.metadata).decode()] for protocol in classic.protocols],
        }
        return GroupMemberRow(
            group=group_id,
            member_id=self.member_id,
            instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            session_timeout_ms=0 if classic is None else classic.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            epoch=self.epoch,
            subscription=dumps({"names": sorted(self.interest.names), "regex": self.interest.pattern}).encode(),
            assignment=dumps({"assigned": _to_json(self.assigned), "revoking": _to_json(self.revoking)}).encode(),
            details=dumps(details),
        )


def member_from_row(row: GroupMemberRow) -> tuple[ConsumerMember, frozenset[Partition]]:
    """The member, and its target."""
    subscription, assignment, details = loads(row.subscription), loads(row.assignment), loads(row.details)
    member = ConsumerMember(row.member_id, row.instance_id)
    member.rack_id = details["rack"]
    member.client_id, member.client_host = row.client_id, row.client_host
    member.rebalance_timeout_ms = row.rebalance_timeout_ms
    member.interest = Interest(frozenset(subscription["names"]), subscription["regex"])
    member.assignor = details["assignor"]
    member.epoch, member.previous_epoch = row.epoch, details["previous_epoch"]
    member.state = MemberState(details["state"])
    member.assigned = _from_json(assignment["assigned"])
    member.revoking = _from_json(assignment["revoking"])
    if details["protocols"] is not None:
        protocols = tuple(Protocol(name, b64decode(metadata)) for name, metadata in details["protocols"])
        member.classic = ClassicSide(row.session_timeout_ms, protocols)
    return member, _from_json(details["target"])


def weight_of(names: Iterable[str], pattern: str | None) -> int:
    return sum(len(name) + _NAME_BYTES for name in names) + len(pattern or "")


def by_topic(partitions: Set[Partition]) -> dict[bytes, list[int]]:
    grouped: dict[bytes, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        grouped.setdefault(topic_id, []).append(partition)
    return grouped


def as_reply(partitions: Set[Partition]) -> tuple[TopicPartitions, ...]:
    return tuple(TopicPartitions(topic_id, tuple(numbers)) for topic_id, numbers in by_topic(partitions).items())


def from_request(topics: tuple[TopicPartitions, ...]) -> frozenset[Partition]:
    return frozenset((topic_id, partition) for topic_id, partitions in topics for partition in partitions)


def _named(partitions: Set[Partition], topics: TopicCatalog) -> tuple[NamedTopicPartitions, ...]:
    return tuple(
        NamedTopicPartitions(topic_id, topic.name, tuple(numbers))
        for topic_id, numbers in by_topic(partitions).items()
        for topic in (topics.by_id(topic_id),)
        if topic is not None
    )


def _to_json(partitions: Set[Partition]) -> dict[str, list[int]]:
    return {topic_id.hex(): numbers for topic_id, numbers in by_topic(partitions).items()}


def _from_json(topics: dict[str, Any]) -> frozenset[Partition]:
    return frozenset((bytes.fromhex(topic_id), partition) for topic_id in topics for partition in topics[topic_id])
