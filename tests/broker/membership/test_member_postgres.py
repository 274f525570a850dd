"""Three members in one process, over a real PostgreSQL."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from tests.support.postgres import PostgresServer, fresh_schema, server
from tidelog.broker.membership.assignment import Partition
from tidelog.broker.membership.member import Member
from tidelog.broker.membership.ownership import ClusterOwnership, Owned
from tidelog.broker.membership.pulse import Timing
from tidelog.broker.ownership import NOBODY
from tidelog.broker.sessions import Endpoint
from tidelog.metadata.postgres.registry import PostgresRegistry
from tidelog.metadata.registry import CONTROLLER, SHARD_LEASES
from tidelog.model import PartitionIdentity, TopicIdentity
from tidelog.postgres import PostgresSettings
from tidelog.storage.shared.order import Leader, NotTheLeader
from tidelog.storage.shared.postgres.order import COMPONENT, PostgresOrder

TIMING = Timing(beat_every=0.2, fence_after=3.0, dead_after=4.0)  # a busy machine misses some beats
TOPIC = TopicIdentity("a-topic", b"first topic id..")
COUNT = 12
PATIENCE_S = 60.0


class RunningMember:
    def __init__(self, broker_id: int, registry: PostgresRegistry) -> None:
        self.broker_id = broker_id
        self.registry = registry
        self.ownership = ClusterOwnership(broker_id)
        self.member = Member(registry, self.ownership, timing=TIMING)
        self.events: list[tuple[str, Owned]] = []
        self.member.listen(self)
        self.ownership.advertise(Endpoint("PLAINTEXT", "127.0.0.1", 9000 + broker_id))
        self.member.start()

    def lost(self, things: Owned) -> None:
        self.events.append(("lost", things))

    def gained(self, things: Owned) -> None:
        self.events.append(("gained", things))

    async def kill(self) -> None:
        """Without leaving."""
        await self.member.close()
        await self.registry.close()

    async def stop(self) -> None:
        await self.member.stop(PATIENCE_S)
        await self.registry.close()


class Cluster:
    def __init__(self, settings: PostgresSettings) -> None:
        self.settings = settings
        self.members: dict[int, RunningMember] = {}

    async def start(self, broker_id: int) -> RunningMember:
        registry = await PostgresRegistry.open(self.settings, COMPONENT, dead_after_s=TIMING.dead_after)
        self.members[broker_id] = RunningMember(broker_id, registry)
        return self.members[broker_id]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                await asyncio.sleep(0.02)

    def owners(self) -> dict[str | Partition, int]:
        """Who claims a thing. A thing that two brokers claim is in it as nobody's."""
        found: dict[str | Partition, int] = {}
        for broker_id, one in self.members.items():
            if one.ownership.is_trusted:
                things: list[str | Partition] = [*one.ownership.mine.leases, *one.ownership.mine.partitions]
                for thing in things:
                    found[thing] = NOBODY if thing in found else broker_id
        return found

    def is_whole(self) -> bool:
        """Everything has one owner, and all members agree on it."""
        owners = self.owners()
        things = {CONTROLLER, *SHARD_LEASES, *((TOPIC.topic_id, number) for number in range(COUNT))}
        if owners.keys() != things or NOBODY in owners.values():
            return False
        return all(
            one.ownership.leader(TOPIC.topic_id, number).broker_id == owners[TOPIC.topic_id, number]
            for one in self.members.values()
            for number in range(COUNT)
        )

    def is_balanced(self) -> bool:
        counts = Counter(owner for thing, owner in self.owners().items() if not isinstance(thing, str))
        return (
            self.is_whole() and max(counts.values()) - min(counts.values()) <= 1 and len(counts) == len(self.members)
        )


def on_cluster(
    scenario: Callable[[Cluster, PostgresOrder], Awaitable[None]], postgres: PostgresServer | None = None
) -> None:
    @asynccontextmanager
    async def cluster() -> AsyncIterator[tuple[Cluster, PostgresOrder]]:
        url = (postgres or server()).url()
        settings = PostgresSettings.parse(url, schema=fresh_schema(), deadline_s=20)
        order = await PostgresOrder.open(settings)
        made = Cluster(settings)
        try:
            await order.create(TOPIC.partitions(COUNT))
            for broker_id in (1, 2, 3):
                await made.start(broker_id)
            await made.until(made.is_balanced)
            yield made, order
        finally:
            for one in made.members.values():
                await one.kill()
            await order.close()

    async def main() -> None:
        async with cluster() as (made, order):
            await scenario(made, order)

    asyncio.run(main())


def test_what_a_killed_broker_led_is_led_by_others_and_its_writes_are_refused() -> None:
    async def scenario(cluster: Cluster, order: PostgresOrder) -> None:
        victim = cluster.members.pop(cluster.owners()[CONTROLLER])
        owned = victim.ownership.mine
        await victim.kill()
        await cluster.until(cluster.is_whole)
        (topic_id, number), epoch = next(iter(owned.partitions.items()))
        partition = PartitionIdentity(TOPIC, number)
        with pytest.raises(NotTheLeader):
            await order.load(partition, Leader(victim.broker_id, epoch))  # type: ignore[arg-type]
        heir = cluster.owners()[topic_id, number]
        leader = Leader(heir, cluster.members[heir].ownership.check_leader(topic_id, number))
        assert (await order.load(partition, leader)).high_watermark == 0
        await cluster.start(victim.broker_id)
        await cluster.until(cluster.is_balanced)

    on_cluster(scenario)


def test_a_broker_that_stops_in_order_hands_over_at_once_and_gets_its_share_again() -> None:
    async def scenario(cluster: Cluster, _: PostgresOrder) -> None:
        leaver = cluster.members[cluster.owners()[CONTROLLER]]
        await leaver.stop()
        del cluster.members[leaver.broker_id]
        assert leaver.ownership.mine.is_empty
        await cluster.until(cluster.is_whole)
        await cluster.until(
            lambda: all(leaver.broker_id not in one.ownership.members for one in cluster.members.values())
        )
        await cluster.start(leaver.broker_id)
        await cluster.until(cluster.is_balanced)

    on_cluster(scenario)


def test_all_come_back_by_themselves_after_the_database_was_down() -> None:
    own = PostgresServer()

    async def scenario(cluster: Cluster, _: PostgresOrder) -> None:
        own.kill()
        await cluster.until(lambda: not cluster.owners())
        own.restart()
        await cluster.until(cluster.is_balanced)

    try:
        on_cluster(scenario, own)
    finally:
        own.close()


def test_a_database_that_stands_still_is_an_outage() -> None:
    own = PostgresServer()

    async def scenario(cluster: Cluster, _: PostgresOrder) -> None:
        with own.paused():
            await cluster.until(lambda: not cluster.owners())
        await cluster.until(cluster.is_balanced)

    try:
        on_cluster(scenario, own)
    finally:
        own.close()


def test_losses_are_told_before_gains_and_the_sum_is_what_is_owned() -> None:
    async def scenario(cluster: Cluster, _: PostgresOrder) -> None:
        gone = cluster.members.pop(1)
        await gone.kill()
        await cluster.start(1)  # at once: it is the same broker, at new epochs
        await cluster.until(cluster.is_balanced)
        for one in cluster.members.values():
            held: dict[object, int] = {}
            for event, things in one.events:
                for thing, epoch in (*things.leases.items(), *things.partitions.items()):
                    if event == "lost":
                        assert held.pop(thing) == epoch
                    else:
                        assert thing not in held
                        held[thing] = epoch
            mine = one.ownership.mine
            assert held == dict([*mine.leases.items(), *mine.partitions.items()])

    on_cluster(scenario)
