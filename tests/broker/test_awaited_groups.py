"""The leader of a partition asks the coordinator of the group that retention waits for."""

import asyncio
from typing import Any, NamedTuple, cast

from tidelog.broker.awaited_groups import AwaitedGroups
from tidelog.broker.ownership import Coordinated, Owner, PeerUnavailable
from tidelog.model import TopicPartition
from tidelog.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

ME, OTHER = 1, 2


class Config(NamedTuple):
    retention_wait_for_group: str


class Topic(NamedTuple):
    name: str
    config: Config
    partitions: int = 3
    topic_id: bytes = b""


class World:
    """This broker leads the even partitions of all topics."""

    node_id = ME

    def __init__(self) -> None:
        self.coordinated_by = OTHER
        self.stored: dict[tuple[str, str, int], int] = {}
        self.asked: list[tuple[str, list[tuple[str, list[int]]]]] = []
        self.error_code = 0
        self.is_down = False
        self.topics = [Topic("plain", Config("")), Topic("waits", Config("g"))]
        self.awaited = AwaitedGroups(cast("Any", self), cast("Any", self), cast("Any", self.topics))

    def leader(self, _topic_id: bytes, number: int) -> Owner:
        return Owner(ME if number % 2 == 0 else OTHER, 0)

    def coordinator(self, _kind: Coordinated, _key: str) -> Owner:
        return Owner(self.coordinated_by, 0)

    async def ask(self, broker_id: int, api: str, message: OffsetFetchRequest, *, at_most: int) -> Any:
        assert (broker_id, api, at_most) == (OTHER, "OffsetFetch", 9)
        if self.is_down:
            raise PeerUnavailable("down")
        (group,) = message.groups
        topics = group.topics or []
        self.asked.append((group.group_id, [(each.name, each.partition_indexes) for each in topics]))
        found = [
            OffsetFetchResponseTopics(
                each.name,
                partitions=[
                    OffsetFetchResponsePartitions(number, self.stored.get((group.group_id, each.name, number), -1))
                    for number in each.partition_indexes
                ],
            )
            for each in topics
        ]
        return OffsetFetchResponse(
            groups=[OffsetFetchResponseGroup(group.group_id, found, error_code=self.error_code)]
        )

    def committed(self) -> list[int | None]:
        return [self.awaited.committed("g", TopicPartition("waits", number)) for number in range(3)]


def test_a_leader_knows_what_the_coordinator_told_for_its_own_partitions() -> None:
    world = World()
    world.stored = {("g", "waits", 0): 7, ("g", "waits", 1): 8}
    assert world.committed() == [None, None, None]
    asyncio.run(world.awaited.look())
    assert world.asked == [("g", [("waits", [0, 2])])]
    assert world.committed() == [7, None, 0], "one that was never committed keeps everything"


def test_a_coordinator_that_does_not_answer_or_refuses_changes_nothing() -> None:
    world = World()
    world.stored = {("g", "waits", 0): 7}
    asyncio.run(world.awaited.look())
    world.stored = {("g", "waits", 0): 9}
    world.is_down = True
    asyncio.run(world.awaited.look())
    world.is_down, world.error_code = False, 16
    asyncio.run(world.awaited.look())
    assert world.committed() == [7, None, 0]
    world.error_code = 0
    asyncio.run(world.awaited.look())
    assert world.committed() == [9, None, 0]


def test_what_nobody_waits_for_any_more_is_forgotten_and_who_coordinates_is_not_asked() -> None:
    world = World()
    world.stored = {("g", "waits", 0): 7}
    asyncio.run(world.awaited.look())
    world.coordinated_by = ME
    asyncio.run(world.awaited.look())
    assert len(world.asked) == 1
    world.topics[:] = [Topic("waits", Config(""))]
    asyncio.run(world.awaited.look())
    assert world.committed() == [None, None, None]
