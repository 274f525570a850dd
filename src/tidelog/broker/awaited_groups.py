"""`AwaitedGroups`: the committed offsets of groups for which retention waits (`tidelog.retention.wait.for.group`).

Retention is the work of a partition's leader, and the group may have its coordinator elsewhere. The leader asks it
now and then, and remembers the answers. An answer may be a few seconds old: retention then keeps a little more. As
long as there is no answer, it keeps everything.
"""

from collections.abc import Iterable

from tidelog.broker.ownership import Coordinated, Ownership, PeerUnavailable
from tidelog.broker.peers import Peers
from tidelog.broker.topics import Topics
from tidelog.model import Offset, TopicPartition
from tidelog.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

_BY_NAME = 9  # later versions of OffsetFetch name topics by their ids


class AwaitedGroups:
    def __init__(self, peers: Peers, ownership: Ownership, topics: Topics) -> None:
        self._peers = peers
        self._ownership = ownership
        self._topics = topics
        self._committed: dict[tuple[str, TopicPartition], Offset] = {}

    def committed(self, group: str, partition: TopicPartition) -> Offset | None:
        return self._committed.get((group, partition))

    async def look(self) -> None:
        """Ask the coordinators of all groups that partitions of this broker wait for. The answers of those that do
        not answer stay as they were."""
        wanted = self._wanted()
        kept = {(group, each) for group, partitions in wanted.items() for each in partitions}
        self._committed = {key: offset for key, offset in self._committed.items() if key in kept}
        by_coordinator: dict[int, list[OffsetFetchRequestGroup]] = {}
        for group, partitions in wanted.items():
            coordinator = self._ownership.coordinator(Coordinated.GROUP, group).broker_id
            if coordinator != self._ownership.node_id:  # else this broker knows it
                by_coordinator.setdefault(coordinator, []).append(_question(group, partitions))
        for coordinator, groups in by_coordinator.items():
            try:
                reply = await self._peers.ask(
                    coordinator, "OffsetFetch", OffsetFetchRequest(groups=groups), at_most=_BY_NAME
                )
            except PeerUnavailable:
                continue
            for found in reply.groups:
                for topic in found.topics if not found.error_code else ():
                    for each in topic.partitions:
                        if not each.error_code:
                            place = TopicPartition(topic.name, each.partition_index)
                            self._committed[found.group_id, place] = Offset(max(0, each.committed_offset))

    def _wanted(self) -> dict[str, list[TopicPartition]]:
        wanted: dict[str, list[TopicPartition]] = {}
        for topic in self._topics:
            group = topic.config.retention_wait_for_group
            for number in range(topic.partitions) if group else ():
                if self._ownership.leader(topic.topic_id, number).broker_id == self._ownership.node_id:
                    wanted.setdefault(group, []).append(TopicPartition(topic.name, number))
        return wanted


def _question(group: str, partitions: Iterable[TopicPartition]) -> OffsetFetchRequestGroup:
    topics: dict[str, OffsetFetchRequestTopics] = {}
    for name, number in partitions:
        topics.setdefault(name, OffsetFetchRequestTopics(name, partition_indexes=[])).partition_indexes.append(number)
    return OffsetFetchRequestGroup(group, topics=list(topics.values()))
