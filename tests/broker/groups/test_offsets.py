"""Committed offsets: who may commit, what is told, what expires, what is deleted."""

import pytest

from tests.broker.groups.classic_members import Member, protocols, settle
from tests.broker.groups.world import World
from tidelog.broker.coordination.groups.messages import (
    NO_TOPIC_ID,
    CommittedPartition,
    CommittedTopic,
    DeletedGroup,
    DeleteGroups,
    DeleteGroupsReply,
    DescribeGroups,
    DescribeGroupsReply,
    FetchedOffsetsTopic,
    GroupOffsetsRequest,
    ListGroups,
    ListGroupsReply,
    OffsetCommit,
    OffsetCommitReply,
    OffsetDelete,
    OffsetDeleteReply,
    OffsetFetch,
    OffsetFetchReply,
    PartitionOffset,
)
from tidelog.metadata.rows import GroupRow, OffsetRow

OK = 0
DAY_MS = 86_400_000
WEEK_MS = 7 * DAY_MS
SWEEP_MS = 600_000


def groups(world: World) -> list[str]:
    return sorted(group.group_id for group in world.ask(ListGroups(), ListGroupsReply).groups)


def delete_offsets(world: World, group: str, topic: str, *partitions: int) -> OffsetDeleteReply:
    return world.ask(OffsetDelete(group, ((topic, partitions),)), OffsetDeleteReply)


# Committing and fetching


def test_a_consumer_without_a_group_commits_and_fetches() -> None:
    world = World()
    assert world.commit("g", "t", 2, 42, metadata="note") == OK
    assert world.committed("g", "t", 2) == PartitionOffset(2, 42, -1, "note")
    assert world.committed("g", "t", 3) == PartitionOffset(3)
    assert world.committed("h", "t", 2) == PartitionOffset(2)
    assert groups(world) == ["g"]
    described = world.ask(DescribeGroups(("g",)), DescribeGroupsReply).groups[0]
    assert (described.group_state, described.protocol_type, described.error_code) == ("Empty", "", OK)


def test_offsets_survive_a_restart() -> None:
    world = World()
    world.commit("g", "t", 0, 1)
    world.commit("g", "t", 0, 2)
    world.commit("g", "t", 1, 9)
    world.restart()
    assert [world.committed("g", "t", partition).offset for partition in (0, 1)] == [2, 9]
    assert groups(world) == ["g"]


def test_an_offset_is_told_only_once_it_is_stored() -> None:
    world = World()
    world.commit("g", offset=1)
    world.hold_writes()
    world.send(OffsetCommit("g", (CommittedTopic("t", (CommittedPartition(0, 2),)),)))
    assert world.committed("g").offset == 1
    world.release()
    assert world.committed("g").offset == 2


def test_a_commit_that_could_not_be_stored_changes_nothing() -> None:
    world = World()
    world.commit("g", offset=1)
    world.store_is_broken = True
    assert world.commit("g", offset=2) == 15
    assert world.commit("fresh", offset=2) == 15
    assert world.committed("g").offset == 1
    assert groups(world) == ["g"]
    world.store_is_broken = False
    assert world.commit("g", offset=2) == OK
    assert world.committed("g").offset == 2


def test_each_partition_is_accepted_or_refused_by_itself() -> None:
    world = World()
    topics = (
        CommittedTopic("t", (CommittedPartition(0, 1), CommittedPartition(4, 1), CommittedPartition(-1, 1))),
        CommittedTopic("nope", (CommittedPartition(0, 1),)),
        CommittedTopic("u", (CommittedPartition(0, 1, 3, "x" * 4096), CommittedPartition(1, 1, 3, "x" * 4097))),
        CommittedTopic("", (CommittedPartition(2, 1),), b"t".ljust(16, b".")),
        CommittedTopic("", (CommittedPartition(2, 1),), NO_TOPIC_ID),
    )
    reply = world.ask(OffsetCommit("g", topics), OffsetCommitReply)
    codes = [[partition.error_code for partition in topic.partitions] for topic in reply.topics]
    assert codes == [[OK, 3, 3], [3], [OK, 12], [OK], [100]]
    assert world.committed("g", "t", 2).offset == 1
    assert world.committed("g", "u", 0).leader_epoch == 3


def test_nobody_commits_for_a_group_that_has_members() -> None:
    world = World()
    a = Member(world, "a")
    settle(a)
    assert world.commit("g", offset=1) == 25
    assert a.commit(1) == OK
    a.leave()
    assert world.commit("g", offset=2) == OK


@pytest.mark.parametrize(("understands", "code"), [(True, 69), (False, 22)])
def test_a_member_of_a_group_that_is_not_there_cannot_commit(understands: bool, code: int) -> None:
    request = OffsetCommit(
        "g", (CommittedTopic("t", (CommittedPartition(0, 1),)),), 3, "m", understands_member_epochs=understands
    )
    assert World().ask(request, OffsetCommitReply).topics[0].partitions[0].error_code == code


def test_many_groups_are_fetched_at_once_by_name_or_id_or_whole() -> None:
    world = World()
    world.commit("g", "t", 1, 11)
    world.commit("g", "u", 0, 12)
    world.commit("h", "t", 0, 13)
    request = OffsetFetch(
        (
            GroupOffsetsRequest("g", None),
            GroupOffsetsRequest("h", (FetchedOffsetsTopic("", (0, 1), b"t".ljust(16, b".")),)),
            GroupOffsetsRequest("h", (FetchedOffsetsTopic("", (0,), NO_TOPIC_ID),)),
            GroupOffsetsRequest("none", None),
        )
    )
    g, h, unknown_topic, none = world.ask(request, OffsetFetchReply).groups
    assert [(topic.name, [(p.partition, p.offset) for p in topic.partitions]) for topic in g.topics] == [
        ("t", [(1, 11)]),
        ("u", [(0, 12)]),
    ]
    assert [(p.partition, p.offset) for p in h.topics[0].partitions] == [(0, 13), (1, -1)]
    assert unknown_topic.topics[0].partitions[0].error_code == 100
    assert (none.topics, none.error_code) == ((), OK)


# Deleting


def test_offsets_of_topics_that_nobody_subscribes_to_are_deleted() -> None:
    world = World()
    a = Member(world, "a", offers=protocols("range", topics=("t",)))
    settle(a)
    a.commit(5)
    world.commit("g", "u", 0, 6, member=a.member_id, generation=a.generation)
    assert delete_offsets(world, "g", "t", 0).topics[0].partitions[0].error_code == 86
    assert delete_offsets(world, "g", "u", 0, 1).topics[0].partitions[0].error_code == OK
    assert world.committed("g", "u").offset == -1
    assert world.committed("g", "t").offset == 5


def test_offsets_of_members_that_are_not_consumers_cannot_be_deleted() -> None:
    world = World()
    settle(a := Member(world, "a", protocol_type="connect"))
    assert delete_offsets(world, "g", "t", 0).error_code == 68
    a.leave()
    assert delete_offsets(world, "g", "t", 0).error_code == OK
    assert delete_offsets(world, "nope", "t", 0).error_code == 69


def test_offsets_of_deleted_topics_go() -> None:
    world = World()
    world.commit("g", "t", 0, 1)
    world.commit("g", "u", 0, 1)
    world.commit("h", "t", 0, 1)
    world.topics.delete("t")
    world.carry_out(world.coordinator.topics_deleted(["t"]))
    assert [(row.group, row.topic) for row in world.stored(OffsetRow)] == [("g", "u")]
    assert world.committed("g", "u").offset == 1
    assert world.committed("g", "t").offset == -1


def test_an_offset_on_its_way_goes_with_its_topic() -> None:
    world = World()
    world.hold_writes()
    world.send(OffsetCommit("g", (CommittedTopic("t", (CommittedPartition(0, 2),)),)))
    world.topics.delete("t")
    world.carry_out(world.coordinator.topics_deleted(["t"]))
    world.release()
    assert (world.rows, world.committed("g").offset) == ({}, -1)


def test_groups_without_members_are_deleted_with_their_offsets() -> None:
    world = World()
    settle(a := Member(world, "a"))
    a.commit(3)
    world.commit("h", offset=1)
    assert world.ask(DeleteGroups(("g", "h", "nope")), DeleteGroupsReply).results == (
        DeletedGroup("g", 68),
        DeletedGroup("h", OK),
        DeletedGroup("nope", 69),
    )
    a.leave()
    assert world.ask(DeleteGroups(("g",)), DeleteGroupsReply).results == (DeletedGroup("g", OK),)
    assert (world.rows, groups(world)) == ({}, [])


def test_a_group_whose_deletion_could_not_be_stored_is_still_there() -> None:
    world = World()
    world.commit("g", offset=1)
    world.store_is_broken = True
    assert world.ask(DeleteGroups(("g",)), DeleteGroupsReply).results == (DeletedGroup("g", 15),)
    assert (groups(world), world.committed("g").offset) == (["g"], 1)
    world.store_is_broken = False
    assert world.ask(DeleteGroups(("g",)), DeleteGroupsReply).results == (DeletedGroup("g", OK),)
    world.advance(2000)
    assert (world.rows, groups(world)) == ({}, [])


def test_groups_are_listed_by_state_and_type() -> None:
    world = World()
    settle(Member(world, "a"))
    world.commit("h", offset=1)

    def listed(**filters: tuple[str, ...]) -> list[str]:
        return [group.group_id for group in world.ask(ListGroups(**filters), ListGroupsReply).groups]

    assert listed() == ["g", "h"]
    assert listed(states_filter=("stable",)) == ["g"]
    assert listed(states_filter=("Empty", "Dead")) == ["h"]
    assert listed(types_filter=("CLASSIC",)) == ["g", "h"]
    assert listed(types_filter=("share",)) == []


# Expiry


def test_offsets_of_a_consumer_without_a_group_expire_after_their_last_commit() -> None:
    world = World()
    world.commit("g", "t", 0, 1)
    world.advance(DAY_MS)
    world.commit("g", "t", 1, 1)
    world.advance(WEEK_MS - DAY_MS + SWEEP_MS)
    assert [world.committed("g", "t", partition).offset for partition in (0, 1)] == [-1, 1]
    world.advance(DAY_MS)
    assert (world.rows, groups(world)) == ({}, [])


def test_offsets_of_a_group_expire_after_it_became_empty() -> None:
    world = World()
    settle(a := Member(world, "a", session_ms=1_800_000))
    a.commit(1)
    for _ in range(2 * WEEK_MS // 1_000_000):
        world.advance(1_000_000)
        assert a.heartbeat() == OK
    assert a.leave() == OK
    world.advance(WEEK_MS - SWEEP_MS)
    world.restart()
    assert world.committed("g").offset == 1
    world.advance(2 * SWEEP_MS)
    assert world.committed("g").offset == -1
    assert world.stored(GroupRow) == []


def test_offsets_of_topics_that_a_living_group_left_expire_too() -> None:
    world = World()
    settle(a := Member(world, "a", session_ms=1_800_000))
    world.commit("g", "u", 0, 6, member=a.member_id, generation=a.generation)
    a.commit(5)
    for _ in range(WEEK_MS // 1_000_000 + 2):
        world.advance(1_000_000)
        assert a.heartbeat() == OK
    assert world.committed("g", "u").offset == -1
    assert world.committed("g", "t").offset == 5


def test_a_client_may_ask_for_a_retention_of_its_own() -> None:
    world = World()
    topics = (CommittedTopic("t", (CommittedPartition(0, 1),)),)
    world.ask(OffsetCommit("g", topics, retention_time_ms=DAY_MS), OffsetCommitReply)
    world.advance(DAY_MS - 1)
    assert world.committed("g").offset == 1
    world.advance(SWEEP_MS)
    assert world.committed("g").offset == -1


def test_an_offset_that_is_being_committed_anew_does_not_expire() -> None:
    world = World()
    world.commit("g", offset=1)
    world.advance(WEEK_MS - 1)
    world.hold_writes()
    world.send(OffsetCommit("g", (CommittedTopic("t", (CommittedPartition(0, 2),)),)))
    world.advance(SWEEP_MS)
    world.release()
    assert world.committed("g").offset == 2
    assert [row.offset for row in world.stored(OffsetRow)] == [2]
