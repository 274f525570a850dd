"""The registry of topics: what may be created, what a change does, who is told, what a restart finds."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import structlog

from tidelog.broker.config_table import InvalidConfig
from tidelog.broker.configs import Alter, Alteration, BrokerConfig, ConfigSource, Operation, Replace
from tidelog.broker.topics import (
    NewTopic,
    PolicyViolation,
    Topic,
    TopicAlreadyExists,
    TopicDeletionDisabled,
    TopicNameCollision,
    Topics,
    UnknownTopic,
    UnknownTopicId,
    new_topic_id,
)
from tidelog.broker.writes import Writes
from tidelog.errors import StorageFull, TidelogError
from tidelog.metadata.rows import ConfigRow, DeletedTopicRow, TopicRow
from tidelog.metadata.sqlite import SqliteStore
from tidelog.metadata.store import EVERYTHING, Change, Fence, News, R, Scope
from tidelog.promise import Promise

NOW_MS = 1_700_000_000_000


class Store:
    """A real store whose writes a test can hold up or fail."""

    def __init__(self, real: SqliteStore) -> None:
        self.real = real
        self.go = asyncio.Event()
        self.go.set()
        self.waiting = 0
        self.failing = 0
        self._tasks: list[asyncio.Task[None]] = []

    def load(self, table: type[R], scope: Scope = EVERYTHING) -> Promise[list[R]]:
        return self.real.load(table, scope)

    def acquire(self, scope: str) -> Promise[Fence]:
        return self.real.acquire(scope)

    def reserve(self, name: str, count: int) -> Promise[int]:
        return self.real.reserve(name, count)

    def changes_since(self, version: int) -> Promise[News]:
        return self.real.changes_since(version)

    def write(self, changes: Sequence[Change], _fence: Fence | None = None) -> Promise[None]:
        promise: Promise[None] = Promise()
        self._tasks.append(asyncio.ensure_future(self._write(changes, promise)))
        return promise

    async def _write(self, changes: Sequence[Change], promise: Promise[None]) -> None:
        self.waiting += 1
        await self.go.wait()
        self.waiting -= 1
        if self.failing:
            self.failing -= 1
            promise.fail(StorageFull("the disk is full"))
        else:
            await self.real.write(changes)
            promise.settle(None)

    async def close(self) -> None:
        await self.real.close()


class Heard:
    """A listener that remembers, and checks that it hears of nothing before it is in force."""

    def __init__(self, topics: Topics) -> None:
        self.topics = topics
        self.events: list[tuple[Any, ...]] = []

    def topic_created(self, topic: Topic) -> None:
        assert self.topics.get(topic.name) is topic
        assert self.topics.get_id(topic.topic_id) is topic
        self.events.append(("created", topic.name, topic.partitions))

    def topic_changed(self, before: Topic, after: Topic) -> None:
        assert self.topics.get(after.name) is after
        assert before.topic_id == after.topic_id
        self.events.append(("changed", after.name, after.partitions, after.config.retention_ms))

    def topic_deleted(self, topic: Topic) -> None:
        assert self.topics.find(topic.name) is None
        assert self.topics.find_id(topic.topic_id) is None
        self.events.append(("deleted", topic.name, topic.partitions))


class World:
    def __init__(self, real: SqliteStore, static: dict[str, str]) -> None:
        self.store = Store(real)
        self.broker = BrokerConfig(static)
        self.topics = Topics(self.store, self.broker)
        self.heard = Heard(self.topics)
        self.topics.listen(self.heard)

    async def create(self, name: str, partitions: int = -1, **more: Any) -> Topic:
        return await self.topics.create(NewTopic(name, partitions, **more), NOW_MS)

    async def until_writes_wait(self, count: int) -> None:
        while self.store.waiting < count:
            await asyncio.sleep(0)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "metadata.sqlite")


def run(path: str, play: Callable[[World], Awaitable[Any]], **static: str) -> Any:
    async def main() -> Any:
        store = await SqliteStore.open(path)
        try:
            world = World(store, {name.replace("_", "."): value for name, value in static.items()})
            await world.topics.load()
            return await play(world)
        finally:
            await store.close()

    return asyncio.run(main())


# Creating


def test_a_created_topic_is_there_by_name_and_id_also_after_a_restart(path: str) -> None:
    async def create(world: World) -> Topic:
        topic = await world.create(
            "orders", 3, configs=[("retention.ms", " 5 "), ("cleanup.policy", "compact, delete")]
        )
        assert (topic.name, topic.partitions, topic.created_ms, len(topic.topic_id)) == ("orders", 3, NOW_MS, 16)
        assert topic.configs == {"retention.ms": "5", "cleanup.policy": "compact,delete"}
        assert topic.config.retention_ms == 5
        assert world.heard.events == [("created", "orders", 3)]
        return topic

    async def look(world: World) -> None:
        assert list(world.topics) == [topic]
        assert world.topics.get("orders") == world.topics.get_id(topic.topic_id) == topic
        assert len(world.topics) == 1
        assert world.heard.events == []

    topic = run(path, create)
    run(path, look)


def test_in_a_cluster_the_first_broker_of_an_assignment_is_to_lead(path: str) -> None:
    async def play(world: World) -> None:
        assigned: list[tuple[str, dict[int, int]]] = []
        world.topics.brokers = lambda: {1, 2, 3}
        world.topics.assign = lambda topic, leaders: assigned.append((topic.name, dict(leaders)))
        await world.create("plain", 2)
        await world.create("a", assignments=[(1, [2, 1]), (0, [3])])
        await world.topics.add_partitions("a", 4, [[1], [2, 3]])
        await world.topics.add_partitions("a", 5, [[1]], validate_only=True)
        await world.topics.add_partitions("a", 5)
        assert assigned == [("a", {1: 2, 0: 3}), ("a", {2: 1, 3: 2})]
        for brokers in ([4], [1, 1], [], [0]):
            with pytest.raises(TidelogError, match="there are only brokers 1, 2, 3") as refused:
                await world.create("b", assignments=[(0, brokers)])
            assert refused.value.kafka_code == 39

    run(path, play)


def test_the_broker_says_how_many_partitions_when_nobody_does(path: str) -> None:
    async def play(world: World) -> None:
        assert (await world.create("a")).partitions == 7
        assert (await world.create("b", 2, replication_factor=1)).partitions == 2
        assert (await world.create("c", assignments=[(1, [0]), (0, [0])])).partitions == 2

    run(path, play, num_partitions="7")


@pytest.mark.parametrize(
    ("new", "code", "why"),
    [
        (NewTopic(""), 17, "'' is not a valid topic name"),
        (NewTopic(".."), 17, "'..' is not a valid topic name"),
        (NewTopic("x" * 250), 17, "at most 249 characters, not 250"),
        (NewTopic("a/b"), 17, "'a/b' is not a valid topic name"),
        (NewTopic("täg"), 17, "is not a valid topic name"),
        (NewTopic("new\n"), 17, "is not a valid topic name"),
        (NewTopic("taken"), 36, "topic 'taken' already exists"),
        (NewTopic("dot_ted"), 17, "'dot_ted' and the topic 'dot.ted' differ only"),
        (NewTopic("new", 0), 37, "cannot have 0 partitions"),
        (NewTopic("new", -2), 37, "cannot have -2 partitions"),
        (NewTopic("new", 1, 3), 38, "replication factor 3 is not possible with one broker"),
        (NewTopic("new", 1, 0), 38, "replication factor 0"),
        (NewTopic("new", 1, -2), 38, "replication factor -2"),
        (NewTopic("new", 1, assignments=[(0, [0])]), 42, "must be -1"),
        (NewTopic("new", -1, 1, assignments=[(0, [0])]), 42, "must be -1"),
        (NewTopic("new", assignments=[(0, [0]), (0, [0])]), 39, "partitions 0, 1, 2, ..., each once"),
        (NewTopic("new", assignments=[(1, [0])]), 39, "partitions 0, 1, 2, ..., each once"),
        (NewTopic("new", assignments=[(0, [1])]), 39, "there is only broker 0"),
        (NewTopic("new", assignments=[(0, [])]), 39, "there is only broker 0"),
        (NewTopic("new", assignments=[(0, [0, 0])]), 39, "there is only broker 0"),
        (NewTopic("new", configs=[("retention.ms", "soon")]), 40, "'soon' is not a whole number"),
        (NewTopic("new", configs=[("retention.mss", "1")]), 40, "did you mean retention.ms?"),
        (NewTopic("new", configs=[("retention.ms", None)]), 40, "no value given for retention.ms"),
        (NewTopic("new", configs=[("retention.ms", "1"), ("retention.ms", "1")]), 42, "more than once"),
        (NewTopic("new", 101), 44, "103 partitions; the limit of the broker is 102 (tidelog.max.partitions)"),
    ],
)
def test_a_topic_is_refused_with_kafkas_code_and_a_reason(new: NewTopic, code: int, why: str, path: str) -> None:
    async def play(world: World) -> None:
        await world.create("taken")
        await world.create("dot.ted")
        for validate_only in (True, False):
            with pytest.raises(TidelogError) as refused:
                await world.topics.create(new, NOW_MS, validate_only=validate_only)
            assert refused.value.kafka_code == code
            assert why in str(refused.value)
        assert len(world.topics) == len(await world.store.load(TopicRow)) == len(world.heard.events) == 2

    run(path, play, tidelog_max_partitions="102")


def test_validating_creates_nothing(path: str) -> None:
    async def play(world: World) -> None:
        for _ in range(3):
            topic = await world.topics.create(NewTopic("a", 2), NOW_MS, validate_only=True)
            assert topic.partitions == 2
        assert world.topics.find("a") is None
        assert world.heard.events == []
        assert await world.store.load(TopicRow) == []

    run(path, play, tidelog_max_topics="1")


def test_names_that_collide_are_free_again_when_the_other_is_gone(path: str) -> None:
    async def play(world: World) -> None:
        await world.create("a.b_c")
        with pytest.raises(TopicNameCollision):
            await world.create("a_b.c")
        await world.topics.delete("a.b_c")
        await world.create("a_b.c")

    run(path, play)


def test_ids_are_random_and_no_command_line_takes_one_for_an_option() -> None:
    from base64 import urlsafe_b64encode

    ids = {new_topic_id() for _ in range(2000)}
    assert len(ids) == 2000
    assert not any(urlsafe_b64encode(topic_id).startswith(b"-") for topic_id in ids)


# At the same time


def test_of_two_that_create_a_topic_at_once_one_succeeds(path: str) -> None:
    async def play(world: World) -> None:
        outcomes = await asyncio.gather(*(world.create("same") for _ in range(5)), return_exceptions=True)
        created = [outcome for outcome in outcomes if isinstance(outcome, Topic)]
        assert created == [world.topics.get("same")]
        assert [type(outcome) for outcome in outcomes].count(TopicAlreadyExists) == 4
        collided = await asyncio.gather(world.create("a.b"), world.create("a_b"), return_exceptions=True)
        assert [type(outcome) for outcome in collided] == [Topic, TopicNameCollision]

    run(path, play)


def test_if_the_first_of_two_cannot_be_written_the_second_is_created(path: str) -> None:
    async def play(world: World) -> None:
        world.store.failing = 1
        first, second = await asyncio.gather(world.create("same", 1), world.create("same", 2), return_exceptions=True)
        assert isinstance(first, StorageFull)
        assert isinstance(second, Topic)
        assert world.topics.get("same").partitions == 2

    run(path, play)


def test_a_topic_is_not_there_until_it_is_durable(path: str) -> None:
    async def play(world: World) -> None:
        world.store.go.clear()
        creating = asyncio.ensure_future(world.create("a"))
        await world.until_writes_wait(1)
        assert world.topics.find("a") is None
        assert world.heard.events == []
        world.store.go.set()
        await creating

    run(path, play)


def test_a_create_that_meets_a_delete_waits_for_it(path: str) -> None:
    async def play(world: World) -> None:
        await world.create("a", 1)
        world.store.go.clear()
        deleting = asyncio.ensure_future(world.topics.delete("a"))
        await world.until_writes_wait(1)
        creating = asyncio.ensure_future(world.create("a", 5))
        assert world.topics.get("a").partitions == 1
        world.store.go.set()
        await deleting
        assert (await creating).partitions == 5
        assert world.heard.events == [("created", "a", 1), ("deleted", "a", 1), ("created", "a", 5)]

    run(path, play)


def test_different_topics_share_a_commit(path: str) -> None:
    async def play(world: World) -> None:
        await asyncio.gather(*(world.create(f"topic-{number}") for number in range(50)))
        assert world.store.real.commits < 25
        assert len(world.topics) == len(await world.store.load(TopicRow)) == 50

    run(path, play)


def test_what_was_begun_is_carried_through_when_the_caller_leaves(path: str) -> None:
    async def play(world: World) -> None:
        world.store.go.clear()
        creating = asyncio.ensure_future(world.create("a"))
        await world.until_writes_wait(1)
        creating.cancel()
        with pytest.raises(asyncio.CancelledError):
            await creating
        world.store.go.set()
        with pytest.raises(TopicAlreadyExists):
            await world.create("a")
        assert world.heard.events == [("created", "a", 1)]

    run(path, play)


# Limits


def test_topics_and_partitions_have_a_limit_that_counts_what_is_under_way(path: str) -> None:
    async def play(world: World) -> None:
        outcomes = await asyncio.gather(
            *(world.create(f"t{number}", 2) for number in range(6)), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes] == [Topic] * 3 + [PolicyViolation] * 3
        assert "4 topics; the limit of the broker is 3 (tidelog.max.topics)" in str(outcomes[3])
        with pytest.raises(PolicyViolation, match="partitions"):
            await world.topics.add_partitions("t0", 5)
        await world.topics.delete("t1")
        await world.topics.add_partitions("t0", 5)
        world.store.failing = 1
        with pytest.raises(StorageFull):
            await world.create("t3", 1)
        await world.create("t3", 1)

    async def again(world: World) -> None:
        with pytest.raises(PolicyViolation):
            await world.create("t4", 1)

    run(path, play, tidelog_max_topics="3", tidelog_max_partitions="8")
    run(path, again, tidelog_max_topics="3", tidelog_max_partitions="8")


# Auto-creation


def test_a_missing_topic_is_created_with_the_brokers_defaults_once(path: str) -> None:
    async def play(world: World) -> None:
        topics = await asyncio.gather(*(world.topics.auto_create("a", NOW_MS) for _ in range(4)))
        assert topics == [world.topics.get("a")] * 4
        assert topics[0].partitions == 3
        assert len(world.heard.events) == 1
        with pytest.raises(TidelogError) as refused:
            await world.topics.auto_create("not a name", NOW_MS)
        assert refused.value.kafka_code == 17

    run(path, play, num_partitions="3")


def test_a_broker_can_be_set_to_create_nothing_by_itself(path: str) -> None:
    async def play(world: World) -> None:
        topic = await world.create("a")
        assert await world.topics.auto_create("a", NOW_MS) is topic
        with pytest.raises(UnknownTopic):
            await world.topics.auto_create("b", NOW_MS)

    run(path, play, auto_create_topics_enable="false")


# Deleting


def test_a_deleted_topic_is_gone_with_its_configs_and_its_name_is_free(path: str) -> None:
    async def play(world: World) -> None:
        first = await world.create("a", 2, configs=[("retention.ms", "5")])
        await world.create("b", 1, configs=[("retention.ms", "6")])
        assert await world.topics.delete("a") == first
        assert [row.resource for row in await world.store.load(ConfigRow)] == ["b"]
        second = await world.create("a")
        assert second.topic_id != first.topic_id
        assert second.configs == {}
        with pytest.raises(UnknownTopicId) as unknown:
            await world.topics.delete_id(first.topic_id)
        assert unknown.value.kafka_code == 100
        await world.topics.delete_id(second.topic_id)
        with pytest.raises(UnknownTopic) as missing:
            await world.topics.delete("a")
        assert missing.value.kafka_code == 3
        assert [event[:2] for event in world.heard.events] == [
            ("created", "a"),
            ("created", "b"),
            ("deleted", "a"),
            ("created", "a"),
            ("deleted", "a"),
        ]

    run(path, play)


def test_of_two_that_delete_a_topic_at_once_one_succeeds(path: str) -> None:
    async def play(world: World) -> None:
        topic = await world.create("a")
        outcomes = await asyncio.gather(
            world.topics.delete("a"), world.topics.delete_id(topic.topic_id), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes] == [Topic, UnknownTopicId]

    run(path, play)


def test_deleting_by_id_never_takes_a_newer_topic_of_the_same_name(path: str) -> None:
    async def play(world: World) -> None:
        old = await world.create("a")
        outcomes = await asyncio.gather(
            world.topics.delete("a"), world.create("a"), world.topics.delete_id(old.topic_id), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes] == [Topic, Topic, UnknownTopicId]
        assert world.topics.get("a") is outcomes[1]

    run(path, play)


def test_a_broker_can_be_set_to_delete_nothing(path: str) -> None:
    async def play(world: World) -> None:
        await world.create("a")
        with pytest.raises(TopicDeletionDisabled):
            await world.topics.delete("a")

    run(path, play, delete_topic_enable="false")


def test_a_topic_that_cannot_be_deleted_durably_stays(path: str) -> None:
    async def play(world: World) -> None:
        topic = await world.create("a")
        world.store.failing = 1
        with pytest.raises(StorageFull):
            await world.topics.delete("a")
        assert world.topics.get("a") is topic
        await world.topics.delete("a")

    run(path, play)


def test_a_deleted_topic_is_remembered_until_its_logs_are_gone(path: str) -> None:
    async def play(world: World) -> None:
        topic = await world.create("a", 2)
        assert await world.store.load(DeletedTopicRow) == []
        await world.topics.delete("a")
        assert await world.store.load(DeletedTopicRow) == [DeletedTopicRow(topic.topic_id, "a")]

    run(path, play)


# Partitions


def test_partitions_are_added_durably(path: str) -> None:
    async def play(world: World) -> None:
        await world.create("a", 2)
        assert (await world.topics.add_partitions("a", 3, validate_only=True)).partitions == 3
        assert world.topics.get("a").partitions == 2
        await world.topics.add_partitions("a", 4, [[0], [0]])
        assert world.heard.events[1:] == [("changed", "a", 4, 604_800_000)]

    async def again(world: World) -> None:
        assert world.topics.get("a").partitions == 4

    run(path, play)
    run(path, again)


@pytest.mark.parametrize(
    ("name", "partitions", "assignments", "code", "why"),
    [
        ("b", 3, None, 3, "no topic 'b'"),
        ("a", 2, None, 37, "has 2 partitions; the new number, 2, must be higher"),
        ("a", 1, None, 37, "has 2 partitions; the new number, 1, must be higher"),
        ("a", -1, None, 37, "must be higher"),
        ("a", 4, [[0]], 39, "1 assignments for 2 new partitions"),
        ("a", 3, [[9]], 39, "there is only broker 0"),
    ],
)
def test_partitions_are_refused(
    name: str, partitions: int, assignments: list[list[int]] | None, code: int, why: str, path: str
) -> None:
    async def play(world: World) -> None:
        await world.create("a", 2)
        with pytest.raises(TidelogError) as refused:
            await world.topics.add_partitions(name, partitions, assignments)
        assert refused.value.kafka_code == code
        assert why in str(refused.value)
        assert world.topics.get("a").partitions == 2

    run(path, play)


# Configs


def test_configs_are_altered_durably_and_take_effect(path: str) -> None:
    async def play(world: World) -> None:
        await world.create("a", configs=[("retention.ms", "5"), ("segment.ms", "7")])
        edit = Alter([Alteration("retention.ms", Operation.SET, "6"), Alteration("segment.ms", Operation.DELETE)])
        assert (await world.topics.alter_configs("a", edit, validate_only=True)).config.retention_ms == 6
        assert world.topics.get("a").config.retention_ms == 5
        await world.topics.alter_configs("a", edit)
        assert world.topics.get("a").configs == {"retention.ms": "6"}
        assert world.heard.events[1:] == [("changed", "a", 1, 6)]
        (entry,) = world.topics.describe("a", ["retention.ms"])
        assert (entry.value, entry.source) == ("6", ConfigSource.TOPIC)

    async def again(world: World) -> None:
        assert world.topics.get("a").configs == {"retention.ms": "6"}
        await world.topics.alter_configs("a", Replace([]))
        assert await world.store.load(ConfigRow) == []
        with pytest.raises(UnknownTopic):
            await world.topics.alter_configs("b", Replace([]))
        with pytest.raises(UnknownTopic):
            world.topics.describe("b")
        with pytest.raises(InvalidConfig, match="above"):
            await world.topics.alter_configs(
                "a", Replace([("min.compaction.lag.ms", str(2**62)), ("max.compaction.lag.ms", "1")])
            )

    run(path, play)
    run(path, again)


def test_changes_of_one_topic_at_once_all_take_effect(path: str) -> None:
    async def play(world: World) -> None:
        await world.create("a", 1)
        await asyncio.gather(
            world.topics.alter_configs("a", Alter([Alteration("retention.ms", Operation.SET, "6")])),
            world.topics.add_partitions("a", 3),
            world.topics.alter_configs("a", Alter([Alteration("segment.ms", Operation.SET, "7")])),
            world.broker.alter(Writes(world.store), "0", Replace([("message.max.bytes", "8")])),
        )
        topic = world.topics.get("a")
        assert (topic.partitions, topic.configs) == (3, {"retention.ms": "6", "segment.ms": "7"})
        assert topic.config == world.broker.topic_config(topic.configs)
        assert topic.config.max_message_bytes == 8

    run(path, play)


def test_a_change_of_the_brokers_defaults_reaches_the_topics_that_it_concerns(path: str) -> None:
    async def play(world: World) -> None:
        await world.create("a")
        await world.create("b", configs=[("retention.ms", "5")])
        await world.broker.alter(Writes(world.store), "0", Replace([("log.retention.ms", "9")]))
        assert world.heard.events[2:] == [("changed", "a", 1, 9)]
        assert world.topics.get("a").config.retention_ms == 9

    async def again(world: World) -> None:
        world.broker.load(await world.store.load(ConfigRow))
        await world.topics.load()
        assert world.topics.get("a").config.retention_ms == 9

    run(path, play)
    run(path, again)


def test_a_default_that_contradicts_a_topic_leaves_it_as_it_was(path: str) -> None:
    async def play(world: World) -> None:
        topic = await world.create("a", configs=[("min.compaction.lag.ms", "100")])
        with structlog.testing.capture_logs() as logs:
            await world.broker.alter(Writes(world.store), "0", Replace([("log.cleaner.max.compaction.lag.ms", "50")]))
        assert len(logs) == 1
        assert world.topics.get("a") == topic

    async def again(world: World) -> None:
        world.broker.load(await world.store.load(ConfigRow))
        with structlog.testing.capture_logs():
            await world.topics.load()
        assert world.topics.get("a").config == world.broker.topic_config({})

    run(path, play)
    run(path, again)


def test_a_listener_that_fails_keeps_neither_the_change_nor_the_others_back(path: str) -> None:
    class Bad(Heard):
        def topic_created(self, topic: Topic) -> None:
            raise RuntimeError("a bug")

    async def play(world: World) -> None:
        topics = Topics(world.store, world.broker)
        good = Heard(topics)
        topics.listen(Bad(topics))
        topics.listen(good)
        with structlog.testing.capture_logs() as logs:
            await topics.create(NewTopic("a"), NOW_MS)
        assert [log["log_level"] for log in logs] == ["error"]
        assert good.events == [("created", "a", 1)]

    run(path, play)


# Preparing


class Prepared:
    """Remembers what it has prepared and discarded; `work` is what it does to prepare a topic."""

    def __init__(self, work: Callable[[Topic], Awaitable[None]]) -> None:
        self.events: list[tuple[str, str, int]] = []
        self._work = work

    async def prepare(self, topic: Topic) -> None:
        await self._work(topic)
        self.events.append(("prepared", topic.name, topic.partitions))

    def discard(self, topic: Topic) -> None:
        self.events.append(("discarded", topic.name, topic.partitions))


def test_partitions_are_prepared_before_the_topic_is_written_and_anybody_sees_it(path: str) -> None:
    async def play(world: World) -> None:
        async def look(topic: Topic) -> None:
            known = world.topics.find(topic.name)
            assert known is None or known.partitions < topic.partitions
            assert (topic.name, topic.partitions) not in [
                (row.name, row.partitions) for row in await world.store.load(TopicRow)
            ]

        prepared = world.topics.preparation = Prepared(look)
        await world.create("a", 2)
        await world.topics.add_partitions("a", 5)
        assert prepared.events == [("prepared", "a", 2), ("prepared", "a", 5)]
        assert world.topics.get("a").partitions == 5

    run(path, play)


def test_a_topic_works_with_the_defaults_that_were_set_while_it_was_prepared(path: str) -> None:
    async def play(world: World) -> None:
        async def alter(_topic: Topic) -> None:
            edit = Alter([Alteration("log.retention.ms", Operation.SET, "77")])
            await world.broker.alter(Writes(world.store), "0", edit)

        world.topics.preparation = Prepared(alter)
        assert (await world.create("a")).config.retention_ms == 77
        assert world.topics.get("a").config.retention_ms == 77

    run(path, play)


def test_a_topic_whose_partitions_cannot_be_prepared_is_neither_created_nor_grown(path: str) -> None:
    async def play(world: World) -> None:
        await world.create("there", 2)

        async def fail(_topic: Topic) -> None:
            raise StorageFull("the disk is full")

        world.topics.preparation = Prepared(fail)
        with pytest.raises(StorageFull):
            await world.create("a")
        with pytest.raises(StorageFull):
            await world.topics.add_partitions("there", 3)
        assert world.heard.events == [("created", "there", 2)]
        assert world.topics.find("a") is None
        assert [(row.name, row.partitions) for row in await world.store.load(TopicRow)] == [("there", 2)]
        world.topics.preparation = Prepared(no_work)
        await world.create("a")
        assert (await world.topics.add_partitions("there", 3)).partitions == 3

    run(path, play)


async def no_work(_topic: Topic) -> None:
    pass


def test_what_was_prepared_is_discarded_if_the_topic_cannot_be_written(path: str) -> None:
    async def play(world: World) -> None:
        await world.create("there", 2)
        prepared = world.topics.preparation = Prepared(no_work)
        world.store.failing = 2
        with pytest.raises(StorageFull):
            await world.create("a")
        with pytest.raises(StorageFull):
            await world.topics.add_partitions("there", 3)
        both = [("prepared", "a", 1), ("discarded", "a", 1), ("prepared", "there", 3), ("discarded", "there", 3)]
        assert prepared.events == both

    run(path, play)
