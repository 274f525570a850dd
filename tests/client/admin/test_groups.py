"""Groups and their committed offsets are asked for and changed."""

import pytest

from tests.client.fake_broker import FakeCluster, against_a_fake
from tidelog.client import AsyncClient, BrokerError, CommittedOffset, GroupListing
from tidelog.model import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@against_a_fake()
async def test_committed_offsets_are_set_read_and_deleted(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t", partitions=2)
    groups = client.groups
    await groups.set_committed("g", {T0: 3, T1: 4})
    assert await groups.committed("g") == {T0: CommittedOffset(3, -1, ""), T1: CommittedOffset(4, -1, "")}
    assert set(await groups.committed("g", [T1, TopicPartition("t", 9)])) == {T1}
    assert await groups.committed("g", []) == {}
    await groups.delete_committed("g", [T0])
    assert set(await groups.committed("g")) == {T1}


@against_a_fake()
async def test_groups_are_listed_described_and_deleted(cluster: FakeCluster, client: AsyncClient) -> None:
    cluster.create("t")
    source = await client.open_source("t", group="g")
    await source.poll(0.0)
    assert await client.groups.groups() == [GroupListing("g", "consumer", "Stable", "classic")]
    described = await client.groups.describe("g")
    assert (described.state, described.assignor, [member.partitions for member in described.members]) == (
        "Stable",
        "range",
        [[T0]],
    )
    with pytest.raises(BrokerError, match="the group has members"):
        await client.groups.delete("g")
    await source.close()
    await client.groups.delete("g")
    assert await client.groups.groups() == []
    assert (await client.groups.describe("g")).state == "Dead"
    with pytest.raises(BrokerError, match="deleting group 'g': no such group"):
        await client.groups.delete("g")


@against_a_fake()
async def test_offsets_of_a_group_with_members_cannot_be_set_from_outside(
    cluster: FakeCluster, client: AsyncClient
) -> None:
    cluster.create("t")
    source = await client.open_source("t", group="g")
    await source.poll(0.0)
    with pytest.raises(BrokerError, match="setting the offset of group 'g' on t-0: the group has active members"):
        await client.groups.set_committed("g", {T0: 1})
    await source.close()
