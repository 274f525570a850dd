"""The contract of `Registry`, kept by the fake and by PostgreSQL."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from random import Random
from typing import Protocol

import asyncpg
import pytest

from tests.support.fake_registry import FakeRegistry, RegistryDatabase
from tests.support.postgres import fresh_schema, server
from tests.support.postgres_proxy import Fate, LosingProxy
from tidelog.broker.membership.broker_ids import FIRST_AUTOMATIC_ID, automatic_broker_id
from tidelog.errors import Fenced, OutcomeUnknown
from tidelog.metadata.postgres import PostgresStore, registry
from tidelog.metadata.postgres.intake import PostgresMetadataIntake
from tidelog.metadata.postgres.registry import PostgresRegistry
from tidelog.metadata.postgres.registry_schema import DELETIONS_KEPT
from tidelog.metadata.registry import (
    CONTROLLER,
    NOBODY,
    Address,
    Changes,
    Lease,
    Membership,
    NoOtherBroker,
    Registry,
    UnknownBroker,
    group_shard,
    transaction_shard,
)
from tidelog.metadata.rows import ClusterRow
from tidelog.metadata.store import Fence, Put
from tidelog.model import TopicIdentity
from tidelog.postgres import Connection, PostgresSettings
from tidelog.storage.shared.order import LogId, LogPart
from tidelog.storage.shared.postgres.order import COMPONENT, PostgresOrder

TOPIC, OTHER = b"first topic id..", b"second topic id."


def member(broker_id: int, incarnation: str = "one", port: int = 9092) -> Membership:
    return Membership(broker_id, incarnation, {"PLAINTEXT": Address(f"host{broker_id}", port)}, rack="a")


class Engine(Protocol):
    @property
    def registry(self) -> Registry: ...

    async def create(self, topic_id: bytes, count: int) -> None: ...

    async def delete(self, topic_id: bytes) -> None: ...

    async def age(self, broker_id: int, seconds: float) -> None:
        """The last beat of a broker was longer ago."""


class FakeEngine:
    def __init__(self) -> None:
        self._database = RegistryDatabase(asyncio.get_running_loop().time)
        self.registry = FakeRegistry(self._database)

    async def create(self, topic_id: bytes, count: int) -> None:
        self._database.create_logs(topic_id, count)

    async def delete(self, topic_id: bytes) -> None:
        self._database.delete_logs(topic_id)

    async def age(self, broker_id: int, seconds: float) -> None:
        self._database.brokers[broker_id].beat -= seconds


class PostgresEngine:
    def __init__(self, settings: PostgresSettings, registry: PostgresRegistry, order: PostgresOrder) -> None:
        self.settings = settings
        self.registry = registry
        self._order = order

    async def create(self, topic_id: bytes, count: int) -> None:
        await self._order.create(TopicIdentity("a-topic", topic_id).partitions(count))

    async def delete(self, topic_id: bytes) -> None:
        await self._order.delete(topic_id, 0)

    async def age(self, broker_id: int, seconds: float) -> None:
        await self.sql(f"UPDATE brokers SET beat = beat - interval '{seconds} s' WHERE broker_id = {broker_id}")

    async def connect(self) -> Connection:
        return await asyncpg.connect(
            self.settings.url,
            password=self.settings.password,
            server_settings={"search_path": self.settings.schema},
        )

    async def sql(self, statement: str) -> list[asyncpg.Record]:
        connection = await self.connect()
        try:
            return await connection.fetch(statement)
        finally:
            await connection.close()


def on_postgres(scenario: Callable[[PostgresEngine], Awaitable[None]]) -> None:
    async def main() -> None:
        settings = PostgresSettings.parse(server().url(), schema=fresh_schema(), deadline_s=60)
        registry = await PostgresRegistry.open(settings, COMPONENT)
        try:
            order = await PostgresOrder.open(settings)
            try:
                await scenario(PostgresEngine(settings, registry, order))
            finally:
                await order.close()
        finally:
            await registry.close()

    asyncio.run(main())


def on_fake(scenario: Callable[[Engine], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario(FakeEngine())

    asyncio.run(main())


Run = Callable[[Callable[[Engine], Awaitable[None]]], None]


@pytest.fixture(params=["fake", "postgres"])
def run(request: pytest.FixtureRequest) -> Run:
    return on_fake if request.param == "fake" else on_postgres


def led(changes: Changes) -> dict[tuple[bytes, int], tuple[int, int]]:
    return {(topic_id, number): (broker, epoch) for topic_id, number, broker, epoch in changes.leaderships}


async def whole(registry: Registry) -> Changes:
    changes = await registry.changes_since(-1)
    assert changes.is_whole
    return changes


async def controller(registry: Registry, broker_id: int = 1) -> Fence:
    await registry.register(member(broker_id))
    fence = await registry.stand_for_controller(member(broker_id))
    assert fence is not None
    return fence


def test_a_broker_is_seen_as_it_registered(run: Run) -> None:
    async def scenario(engine: Engine) -> None:
        registry = engine.registry
        await registry.register(member(2))
        await registry.register(member(1)._replace(rack=None, addresses={}))
        changes = await whole(registry)
        assert list(changes.brokers) == [member(1)._replace(rack=None, addresses={}), member(2)]
        beat = await registry.beat(member(2))
        assert beat.version == changes.version
        assert not beat.has_controller
        await registry.register(member(1))  # it listens now
        changes = await registry.changes_since(changes.version)
        assert not changes.is_whole
        assert list(changes.brokers) == [member(1), member(2)]

    run(scenario)


def test_only_changes_make_a_new_version(run: Run) -> None:
    async def scenario(engine: Engine) -> None:
        registry = engine.registry
        fence = await controller(registry)
        version = (await registry.beat(member(1))).version
        for _ in range(3):
            assert (await registry.beat(member(1))).version == version
        assert await registry.bury(fence) == []
        assert await registry.stand_for_controller(member(1)) == fence
        await registry.drain(1, False)
        await registry.leave(member(1, "unknown"))
        assert (await registry.beat(member(1))).version == version

    run(scenario)


def test_a_new_incarnation_keeps_what_it_owned_at_new_epochs(run: Run) -> None:
    async def scenario(engine: Engine) -> None:
        registry = engine.registry
        await engine.create(TOPIC, 2)
        fence = await controller(registry)
        await registry.register(member(2))
        await registry.assign(fence, [(group_shard(3), 1)], [(TOPIC, 0, 1), (TOPIC, 1, 2)])
        before = await whole(registry)
        for _ in range(2):  # saying it again changes nothing
            await registry.register(member(1, "two"))
        changes = await registry.changes_since(before.version)
        assert led(changes) == {(TOPIC, 0): (1, led(before)[TOPIC, 0][1] + 1)}
        assert list(changes.leases) == [Lease(CONTROLLER, 1, fence.epoch + 1), Lease(group_shard(3), 1, 2)]
        with pytest.raises(Fenced):
            await registry.beat(member(1))
        with pytest.raises(Fenced):
            await registry.assign(fence, [], [(TOPIC, 0, 2)])
        await registry.leave(member(1))  # of the old one, too late
        assert (await registry.beat(member(1, "two"))).has_controller

    run(scenario)


def test_an_id_is_not_taken_from_a_live_broker_at_another_address(run: Run) -> None:
    async def scenario(engine: Engine) -> None:
        registry = engine.registry
        await registry.register(member(1))
        for other in (member(1, "two", port=9093), member(1, "two")._replace(addresses={})):
            with pytest.raises(Fenced):
                await registry.register(other)
        await registry.beat(member(1))
        await engine.age(1, 9)
        await registry.register(member(1, "two", port=9093))
        with pytest.raises(Fenced):
            await registry.beat(member(1))

    run(scenario)


def test_there_is_one_controller_until_it_is_gone(run: Run) -> None:
    async def scenario(engine: Engine) -> None:
        registry = engine.registry
        with pytest.raises(Fenced):
            await registry.stand_for_controller(member(1))
        first = await controller(registry)
        await registry.register(member(2))
        assert await registry.stand_for_controller(member(2)) is None
        assert (await registry.beat(member(2))).has_controller
        await engine.age(1, 9)
        assert not (await registry.beat(member(2))).has_controller
        second = await registry.stand_for_controller(member(2))
        assert second == Fence(CONTROLLER, first.epoch + 1)
        assert await registry.stand_for_controller(member(1)) is None
        for call in (registry.bury(first), registry.assign(first, [(group_shard(0), 1)], [])):
            with pytest.raises(Fenced):
                await call
        await registry.leave(member(2))
        await registry.beat(member(1))
        assert await registry.stand_for_controller(member(1)) == Fence(CONTROLLER, first.epoch + 2)

    run(scenario)


@pytest.mark.parametrize("seconds", [8.5, 1e6, -8.5, -1e6])
def test_brokers_that_do_not_beat_are_buried_and_keep_what_they_own(run: Run, seconds: float) -> None:
    async def scenario(engine: Engine) -> None:
        registry = engine.registry
        await engine.create(TOPIC, 1)
        fence = await controller(registry)
        for broker_id in (2, 3):
            await registry.register(member(broker_id))
        await registry.assign(fence, [(group_shard(0), 2)], [(TOPIC, 0, 2)])
        before = await whole(registry)
        await engine.age(2, seconds)
        await engine.age(1, seconds)  # itself is never buried
        assert await registry.bury(fence) == [2]
        assert await registry.bury(fence) == []
        changes = await registry.changes_since(before.version)
        assert [each.broker_id for each in changes.brokers] == [1, 3]
        assert changes.leases == before.leases
        assert changes.leaderships == []
        with pytest.raises(Fenced):
            await registry.beat(member(2))
        await registry.register(member(2, "two"))
        assert led(await registry.changes_since(changes.version)) == {(TOPIC, 0): (2, 1)}

    run(scenario)


def test_things_are_assigned_at_new_epochs_and_a_repetition_changes_nothing(run: Run) -> None:
    async def scenario(engine: Engine) -> None:
        registry = engine.registry
        await engine.create(TOPIC, 3)
        fence = await controller(registry)
        created = await whole(registry)
        assert led(created) == dict.fromkeys([(TOPIC, 0), (TOPIC, 1), (TOPIC, 2)], (NOBODY, -1))
        for _ in range(2):
            await registry.assign(
                fence,
                [(group_shard(1), 1), (group_shard(2), 2)],
                [(TOPIC, 0, 1), (TOPIC, 2, 2), (TOPIC, 3, 1), (OTHER, 0, 1)],
            )
        changes = await registry.changes_since(created.version)
        assert led(changes) == {(TOPIC, 0): (1, 0), (TOPIC, 2): (2, 0)}
        assert list(changes.leases) == [
            Lease(CONTROLLER, 1, fence.epoch),
            Lease(group_shard(1), 1, 1),
            Lease(group_shard(2), 2, 1),
        ]
        await registry.assign(fence, [(group_shard(1), 2), (CONTROLLER, 2)], [(TOPIC, 0, NOBODY)])
        changes = await registry.changes_since(changes.version)
        assert led(changes) == {(TOPIC, 0): (NOBODY, 1)}
        assert Lease(group_shard(1), 2, 2) in changes.leases
        assert Lease(CONTROLLER, 2, fence.epoch + 1) in changes.leases
        with pytest.raises(Fenced):
            await registry.assign(fence, [], [])
        await registry.register(member(2))
        assert await registry.stand_for_controller(member(2)) == Fence(CONTROLLER, fence.epoch + 2)

    run(scenario)


def test_topics_that_are_created_and_deleted_are_changes(run: Run) -> None:
    async def scenario(engine: Engine) -> None:
        registry = engine.registry
        await engine.create(TOPIC, 2)
        before = await whole(registry)
        await engine.create(OTHER, 1)
        changes = await registry.changes_since(before.version)
        assert led(changes) == {(OTHER, 0): (NOBODY, -1)}
        await engine.delete(TOPIC)
        assert list((await registry.changes_since(changes.version)).deleted) == [TOPIC]
        both = await registry.changes_since(before.version)
        assert (list(both.deleted), led(both)) == ([TOPIC], {(OTHER, 0): (NOBODY, -1)})
        assert led(await whole(registry)) == {(OTHER, 0): (NOBODY, -1)}
        for unknown in (both.version + 1, -7):  # the database was restored from a backup
            assert (await registry.changes_since(unknown)).is_whole

    run(scenario)


def test_the_wish_to_drain_a_broker_outlives_the_broker(run: Run) -> None:
    async def scenario(engine: Engine) -> None:
        registry = engine.registry
        await registry.register(member(1))
        await registry.register(member(2))
        version = (await whole(registry)).version
        await registry.set_drained(1, True)
        await registry.set_drained(1, True)  # changes nothing
        changes = await registry.changes_since(version)
        assert list(changes.drained) == [1]
        assert changes.version == version + 1
        await registry.leave(member(1))
        await registry.register(member(1, "two"))
        assert list((await whole(registry)).drained) == [1]
        await registry.leave(member(1, "two"))
        await registry.set_drained(1, False)  # also while it is down
        assert list((await whole(registry)).drained) == []

    run(scenario)


def test_the_last_broker_and_one_that_is_unknown_are_not_drained(run: Run) -> None:
    async def scenario(engine: Engine) -> None:
        registry = engine.registry
        for is_drained in (True, False):
            with pytest.raises(UnknownBroker):
                await registry.set_drained(1, is_drained)
        await registry.register(member(1))
        with pytest.raises(NoOtherBroker):
            await registry.set_drained(1, True)
        await registry.register(member(2)._replace(is_draining=True))
        await registry.register(member(3)._replace(addresses={}))
        with pytest.raises(NoOtherBroker):
            await registry.set_drained(1, True)
        await registry.register(member(2))
        await registry.set_drained(1, True)
        with pytest.raises(NoOtherBroker):
            await registry.set_drained(2, True)
        await registry.set_drained(1, False)
        await registry.set_drained(2, True)
        await engine.age(1, 60)
        with pytest.raises(NoOtherBroker):
            await registry.set_drained(3, True)
        assert list((await whole(registry)).drained) == [2]

    run(scenario)


def test_a_broker_that_is_about_to_stop_drains_until_it_registers_without(run: Run) -> None:
    async def scenario(engine: Engine) -> None:
        registry = engine.registry
        with pytest.raises(UnknownBroker):
            await registry.drain(1, True)
        await registry.register(member(1))
        for draining in (True, False, True):
            await registry.drain(1, draining)
            assert (await whole(registry)).brokers[0].is_draining == draining
        await registry.beat(member(1))
        await registry.register(member(1, "two"))
        assert not (await whole(registry)).brokers[0].is_draining

    run(scenario)


# PostgreSQL only


def test_the_epoch_of_a_lease_is_the_fence_of_the_metadata_store() -> None:
    async def scenario(engine: PostgresEngine) -> None:
        fence = await controller(engine.registry)
        store = await PostgresStore.open(engine.settings)
        try:
            await store.write([Put(ClusterRow("name", "value"))], fence)
            await engine.registry.assign(fence, [(CONTROLLER, 2)], [])
            with pytest.raises(Fenced):
                await store.write([Put(ClusterRow("name", "other"))], fence)
            await store.write([Put(ClusterRow("name", "other"))], Fence(CONTROLLER, fence.epoch + 1))
        finally:
            await store.close()

    on_postgres(scenario)


def test_an_automatic_id_is_new_each_time_and_not_in_use() -> None:
    async def scenario(engine: PostgresEngine) -> None:
        await engine.registry.register(member(FIRST_AUTOMATIC_ID + 1))
        store = await PostgresStore.open(engine.settings)
        try:
            ids = [await automatic_broker_id(store, engine.registry) for _ in range(3)]
        finally:
            await store.close()
        assert ids == [FIRST_AUTOMATIC_ID, FIRST_AUTOMATIC_ID + 2, FIRST_AUTOMATIC_ID + 3]

    on_postgres(scenario)


def test_whoever_is_too_far_behind_reads_everything() -> None:
    async def scenario(engine: PostgresEngine) -> None:
        await engine.create(TOPIC, 1)
        version = (await whole(engine.registry)).version
        await engine.delete(TOPIC)
        await engine.sql(f"UPDATE registry SET version = version + {DELETIONS_KEPT}")
        await engine.create(OTHER, 1)
        assert (await engine.registry.changes_since(version)).is_whole
        await engine.delete(OTHER)  # and what is no longer needed is forgotten
        assert [row["topic_id"] for row in await engine.sql("SELECT topic_id FROM deleted_topics")] == [OTHER]

    on_postgres(scenario)


def test_many_leaderships_are_read_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_PAGE", 10)

    async def scenario(engine: PostgresEngine) -> None:
        for topic_id, count in ((TOPIC, 25), (OTHER, 5)):
            await engine.create(topic_id, count)
        changes = await whole(engine.registry)
        assert len(changes.leaderships) == len(led(changes)) == 30

    on_postgres(scenario)


def test_changes_are_found_by_index_among_100_000_partitions() -> None:
    async def scenario(engine: PostgresEngine) -> None:
        await engine.sql(
            "INSERT INTO logs (topic_id, topic, partition)"
            " SELECT decode(md5((number / 100)::text), 'hex'), 'topic', number % 100"
            " FROM generate_series(0, 99999) AS number"
        )
        fence = await controller(engine.registry)
        some = await engine.sql("SELECT topic_id, partition FROM logs LIMIT 10")
        version = (await engine.registry.beat(member(1))).version
        await engine.registry.assign(fence, [], [(row["topic_id"], row["partition"], 1) for row in some])
        changes = await engine.registry.changes_since(version)
        assert [(each.broker_id, each.epoch) for each in changes.leaderships] == [(1, 0)] * 10
        prepared = registry._LEADERSHIPS
        for number, value in enumerate((f"{version}::bigint", f"{1 << 62}::bigint", "2000"), 1):
            prepared = prepared.replace(f"${number}::bigint", value).replace(f"${number}", value)
        for statistics in ("SELECT", "ANALYZE logs"):  # without them, and with them
            await engine.sql(statistics)
            plan = "\n".join(row[0] for row in await engine.sql("EXPLAIN (ANALYZE, BUFFERS) " + prepared))
            assert "Index Scan using logs_version" in plan
            assert "Seq Scan" not in plan
            assert "Sort" not in plan

    on_postgres(scenario)


def test_commits_need_no_new_entries_in_the_index_of_versions() -> None:
    async def scenario(engine: PostgresEngine) -> None:
        await engine.create(TOPIC, 1)
        version = (await whole(engine.registry)).version
        connection = await engine.connect()
        try:
            async with connection.transaction():
                await connection.execute("UPDATE logs SET high_watermark = high_watermark + 1")
                hot = await connection.fetchval("SELECT pg_stat_get_xact_tuples_hot_updated('logs'::regclass)")
        finally:
            await connection.close()
        assert hot == 1
        assert (await whole(engine.registry)).version == version

    on_postgres(scenario)


def test_leaderships_that_are_moved_at_the_same_time_are_all_reported() -> None:
    """Versions become visible in order: a follower misses nothing, whoever commits first."""

    async def scenario(engine: PostgresEngine) -> None:
        await engine.create(TOPIC, 40)
        fence = await controller(engine.registry)
        others = [await PostgresRegistry.open(engine.settings, COMPONENT) for _ in range(3)]
        try:
            seen = led(await whole(engine.registry))
            version = (await whole(engine.registry)).version

            async def mover(registry: Registry, first: int) -> None:
                for turn in range(10):
                    await registry.assign(fence, [], [(TOPIC, number, turn % 2) for number in range(first, 40, 3)])

            async def follow() -> None:
                nonlocal version
                changes = await engine.registry.changes_since(version)
                assert not changes.is_whole
                version = changes.version
                seen.update(led(changes))

            moving = asyncio.gather(*(mover(registry, first) for first, registry in enumerate(others)))
            while not moving.done():
                await follow()
            await moving
            await follow()
            assert seen == led(await whole(engine.registry)) == dict.fromkeys(seen, (1, 9))
        finally:
            for registry_ in others:
                await registry_.close()

    on_postgres(scenario)


def test_commits_and_moves_of_leaders_do_not_deadlock() -> None:
    async def scenario(engine: PostgresEngine) -> None:
        await engine.create(TOPIC, 30)
        fence = await controller(engine.registry)
        logs = [row["log_id"] for row in await engine.sql("SELECT log_id FROM logs")]
        seen = len(server().log)
        orders = [await PostgresOrder.open(engine.settings) for _ in range(3)]
        random = Random(1)

        async def committer(number: int, order: PostgresOrder) -> None:
            for turn in range(30):
                parts = [LogPart(LogId(each), 0, 0, 0, 0, 1, 0, 0, b"") for each in random.sample(logs, 20)]  # type: ignore[arg-type]
                await order.commit(f"{number} {turn}", 20, number, parts, 0)

        async def mover() -> None:
            for turn in range(30):
                some = random.sample(range(30), 20)
                await engine.registry.assign(fence, [], [(TOPIC, each, turn % 2) for each in some])

        try:
            await asyncio.gather(mover(), *(committer(number, order) for number, order in enumerate(orders)))
        finally:
            for order in orders:
                await order.close()
        assert "deadlock" not in server().log[seen:]

    on_postgres(scenario)


@pytest.mark.parametrize("fate", Fate)
def test_an_assignment_whose_outcome_is_unknown_can_be_made_again(fate: Fate) -> None:
    async def scenario(engine: PostgresEngine) -> None:
        await engine.create(TOPIC, 1)
        fence = await controller(engine.registry)
        async with LosingProxy(server().port) as proxy:
            url = engine.settings.url.replace(f":{server().port}/", f":{proxy.port}/")
            registry_ = await PostgresRegistry.open(replace(engine.settings, url=url), COMPONENT)
            try:
                proxy.lose(TOPIC, fate)
                with pytest.raises(OutcomeUnknown):
                    await registry_.assign(fence, [(group_shard(0), 1)], [(TOPIC, 0, 1)])
                await registry_.assign(fence, [(group_shard(0), 1)], [(TOPIC, 0, 1)])
                await registry_.assign(fence, [(group_shard(0), 2)], [(TOPIC, 0, 2)])
                if fate is Fate.LATE:
                    await proxy.deliver()  # and it has no effect
                changes = await whole(registry_)
                assert led(changes) == {(TOPIC, 0): (2, 1)}
                assert Lease(group_shard(0), 2, 2) in changes.leases
            finally:
                await registry_.close()

    on_postgres(scenario)


def test_markers_of_shards_have_higher_epochs_than_those_that_the_controller_wrote_in_earlier_versions() -> None:
    async def scenario(engine: PostgresEngine) -> None:
        await engine.sql(
            "INSERT INTO leases (scope, broker_id, epoch) VALUES ('controller', 1, 57), ('group/3', 2, 5)"
        )
        await engine.sql("DELETE FROM tidelog_schema WHERE component = 'registry' AND version = 4")
        await engine.sql("INSERT INTO tidelog_schema (component, version) VALUES ('registry', 3)")
        await (await PostgresRegistry.open(engine.settings, COMPONENT)).close()
        epochs = {row["scope"]: row["epoch"] for row in await engine.sql("SELECT scope, epoch FROM leases")}
        assert epochs == {"controller": 57, "group/3": 62}
        await (await PostgresRegistry.open(engine.settings, COMPONENT)).close()
        assert len(await engine.sql("SELECT FROM leases WHERE scope = 'group/3' AND epoch = 62")) == 1, "once"

    on_postgres(scenario)


def test_rows_from_elsewhere_fence_the_controller_and_all_coordinators() -> None:
    async def scenario(engine: PostgresEngine) -> None:
        store = await PostgresStore.open(engine.settings)
        intake = await PostgresMetadataIntake.open(engine.settings, COMPONENT)
        try:
            fences = [await store.acquire(scope) for scope in (CONTROLLER, group_shard(3), transaction_shard(9))]
            version = (await engine.registry.changes_since(-1)).version
            for fence in fences:
                await store.write([Put(ClusterRow(fence.scope, "before"))], fence)
            await intake.take_in([Put(ClusterRow("import", "done"))])
            for fence in fences:
                with pytest.raises(Fenced):
                    await store.write([Put(ClusterRow(fence.scope, "after"))], fence)
            assert (await engine.registry.changes_since(-1)).version > version, "brokers hear of it"
        finally:
            await intake.close()
            await store.close()

    on_postgres(scenario)
