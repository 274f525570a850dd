"""Members of a group share partitions, go on where the group was, and get over rebalances and lost coordinators."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from tests.client.consuming.test_consumer import QUICK, fill
from tests.client.fake_broker import FakeCluster, against_a_fake, drop_before, refuse
from tidelog.client import AsyncClient, BrokerError, ConsumedRecord, GroupOptions, RecordStream
from tidelog.client.consuming.group import GroupConsumer
from tidelog.errors import InvalidInput
from tidelog.model import TopicPartition
from tidelog.wire.error_codes import ErrorCode

FAST_GROUP = GroupOptions(heartbeat_ms=5, session_timeout_ms=1000)


def member(client: AsyncClient, *, follow: bool = True, limit: int | None = None, **more: object) -> RecordStream:
    options = {"group_options": FAST_GROUP, "fetch": QUICK, **more}
    return client.consume("t", group="g", follow=follow, limit=limit, **options)  # type: ignore[arg-type]


def consumer(client: AsyncClient, options: GroupOptions = FAST_GROUP) -> GroupConsumer:
    return GroupConsumer(client.cluster, "g", ["t"], start="earliest", fetch=QUICK, options=options)


@asynccontextmanager
async def polled(source: GroupConsumer) -> AsyncIterator[Counter[TopicPartition]]:
    """A member at work, as in a process of its own; what it has consumed so far, per partition."""
    consumed = Counter[TopicPartition]()

    async def work() -> None:
        while True:
            for fetched in await source.poll(0.01):
                consumed[fetched.partition] += len(list(fetched.records()))
                source.consumed(fetched.partition, fetched.next_offset)

    working = asyncio.create_task(work())
    try:
        yield consumed
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        await source.close()


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0.001)


async def taken(stream: RecordStream) -> list[ConsumedRecord]:
    async with stream:
        return [record async for record in stream]


@against_a_fake()
async def test_a_member_alone_gets_everything_and_goes_on_where_it_was(
    cluster: FakeCluster, client: AsyncClient
) -> None:
    cluster.create("t", partitions=3)
    for number in range(3):
        fill(cluster, "t", range(5), partition=number)
    first = await taken(member(client, limit=7))
    rest = await taken(member(client, follow=False))
    assert (len(first), len(rest)) == (7, 8)
    assert len({record[:3] for record in first + rest}) == 15
    assert cluster.groups.group("g").offsets == {("t", number): 5 for number in range(3)}
    assert cluster.groups.group("g").members == {}


@against_a_fake()
async def test_two_members_share_and_the_one_that_stays_gets_all(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t", partitions=4)
    first, second = consumer(client), consumer(client)
    async with polled(first):
        await until(lambda: len(first.assigned) == 4)
        async with polled(second):
            await until(lambda: len(first.assigned) == len(second.assigned) == 2)
        await until(lambda: len(first.assigned) == 4)


@against_a_fake()
async def test_what_was_consumed_is_committed_before_partitions_are_given_up(
    cluster: FakeCluster, client: AsyncClient
) -> None:
    cluster.create("t", partitions=2)
    for number in range(2):
        fill(cluster, "t", range(5), partition=number)
    first, second = consumer(client), consumer(client)
    async with polled(first) as by_first:
        await until(lambda: sum(by_first.values()) == 10)
        async with polled(second) as by_second:
            await until(lambda: len(second.assigned) == 1)
            assert cluster.groups.group("g").offsets == {("t", 0): 5, ("t", 1): 5}
            assert not by_second


@against_a_fake()
async def test_heartbeats_go_on_while_records_are_worked_on(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    source = consumer(client)
    await source.poll(0.01)
    await until(lambda: cluster.groups.heartbeats >= 3)
    await source.close()


@against_a_fake()
async def test_a_member_that_was_thrown_out_joins_again(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    fill(cluster, "t", range(3))
    source = consumer(client)
    await source.poll(0.05)
    cluster.groups.group("g").members.clear()
    while not cluster.groups.group("g").members:
        await source.poll(0.005)
    assert source.assigned == [TopicPartition("t", 0)]
    await source.close()


@against_a_fake()
async def test_a_member_that_does_not_ask_for_records_leaves(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    source = consumer(client, GroupOptions(heartbeat_ms=5, session_timeout_ms=1000, max_poll_ms=20))
    await source.poll(0.0)
    group = cluster.groups.group("g")
    assert group.members
    await until(lambda: not group.members)
    await source.poll(0.01)
    assert group.members
    await source.close()


@against_a_fake()
async def test_trouble_on_the_way_into_a_group_is_got_over(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    fill(cluster, "t", range(3))
    cluster.fail("FindCoordinator", refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE), drop_before)
    cluster.fail("JoinGroup", refuse(ErrorCode.NOT_COORDINATOR), drop_before, refuse(ErrorCode.UNKNOWN_MEMBER_ID))
    cluster.fail("SyncGroup", refuse(ErrorCode.REBALANCE_IN_PROGRESS))
    cluster.fail("OffsetFetch", refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    cluster.fail("OffsetCommit", refuse(ErrorCode.NOT_COORDINATOR))
    assert len(await taken(member(client, follow=False))) == 3
    assert cluster.groups.group("g").offsets == {("t", 0): 3}


@against_a_fake()
async def test_a_group_that_does_not_want_us_is_an_error(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    cluster.fail("JoinGroup", refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED))
    with pytest.raises(BrokerError, match="joining group 'g'"):
        await taken(member(client))


@against_a_fake()
async def test_heartbeats_that_are_refused_for_good_are_an_error(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    source = consumer(client)
    await source.poll(0.0)
    cluster.fail("Heartbeat", refuse(ErrorCode.FENCED_INSTANCE_ID))

    async def poll_for_ever() -> None:
        while True:
            await source.poll(0.005)

    with pytest.raises(BrokerError, match="staying in group 'g'"):
        await poll_for_ever()
    await source.close()


@against_a_fake()
async def test_a_topic_that_is_not_there_is_an_error_and_not_a_wait(
    cluster: FakeCluster, client: AsyncClient
) -> None:
    with pytest.raises(BrokerError, match="does not exist"):
        await taken(member(client))


@against_a_fake()
async def test_commits_are_ones_own_business_if_one_says_so(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    fill(cluster, "t", range(6))
    by_hand = GroupOptions(auto_commit_ms=0)
    assert len(await taken(member(client, limit=2, group_options=by_hand))) == 2
    assert cluster.groups.group("g").offsets == {}
    async with member(client, group_options=by_hand) as stream:
        async for record in stream:
            if record.offset == 4:
                await stream.commit()  # 0 to 3: what is in hand is not done yet
                break
    assert cluster.groups.group("g").offsets == {("t", 0): 4}


@against_a_fake()
async def test_consumed_offsets_are_committed_from_time_to_time(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    fill(cluster, "t", range(6))
    source = consumer(client, GroupOptions(heartbeat_ms=5, session_timeout_ms=1000, auto_commit_ms=1))
    while not cluster.groups.group("g").offsets:
        for fetched in await source.poll(0.01):
            source.consumed(fetched.partition, fetched.next_offset)
    assert cluster.groups.group("g").offsets == {("t", 0): 6}
    await source.close()


@against_a_fake()
async def test_new_partitions_of_a_topic_get_an_owner(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    source = consumer(client)
    await source.poll(0.01)
    await client.admin.add_partitions("t", 3)
    while len(source.assigned) != 3:
        await source.poll(0.01)
    await source.close()


@against_a_fake()
async def test_a_member_with_a_lasting_name_does_not_leave(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    source = consumer(client, GroupOptions(instance_id="i"))
    await source.poll(0.0)
    await source.close()
    assert cluster.asked("LeaveGroup") == []


@against_a_fake()
async def test_a_group_and_chosen_partitions_exclude_each_other(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    with pytest.raises(InvalidInput):
        await taken(member(client, partitions=[0]))
