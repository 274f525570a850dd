"""The topics that exist: `Topics`, kept in memory and behind it in the metadata store.

A change is checked, written, and only then applied and told to the listeners, in one step of the event loop: whoever
sees a topic can rely on it after a crash. What takes long is done before that step (`Topics.prepare`). Operations on
the same name take turns; those on different names run at once and share a commit.

    InvalidInput (errors.py)
    ├── UnknownTopic, UnknownTopicId    there is no such topic; it may be coming
    ├── InvalidTopic                    a name that no topic can have
    │   └── TopicNameCollision          a name that differs from an existing one only in "." and "_"
    ├── TopicAlreadyExists
    ├── InvalidPartitions, InvalidReplicationFactor, InvalidReplicaAssignment
    ├── TopicDeletionDisabled
    └── PolicyViolation                 more topics or partitions than the broker is set to hold
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias
from uuid import uuid4

import structlog

from tidelog.broker.config_table import TOPIC_CONFIGS, InvalidConfig
from tidelog.broker.configs import (
    TOPIC,
    BrokerConfig,
    ConfigEntry,
    Edit,
    Replace,
    TopicConfig,
    edited,
    keep_known,
    row_changes,
    to_the_end,
)
from tidelog.errors import InvalidInput
from tidelog.metadata.rows import ConfigRow, TopicRow
from tidelog.metadata.store import Change, Delete, MetadataStore, Put
from tidelog.model import TimestampMs, TopicPartition, is_topic_name

DEFAULT = -1  # a number of partitions or replicas that is left to the broker

log = structlog.get_logger("tidelog.broker")


class UnknownTopic(InvalidInput):
    kafka_code = 3
    retriable = True


class UnknownTopicId(InvalidInput):
    kafka_code = 100
    retriable = True


class InvalidTopic(InvalidInput):
    kafka_code = 17


class TopicNameCollision(InvalidTopic):
    pass


class TopicAlreadyExists(InvalidInput):
    kafka_code = 36


class InvalidPartitions(InvalidInput):
    kafka_code = 37


class InvalidReplicationFactor(InvalidInput):
    kafka_code = 38


class InvalidReplicaAssignment(InvalidInput):
    kafka_code = 39


class PolicyViolation(InvalidInput):
    kafka_code = 44


class TopicDeletionDisabled(InvalidInput):
    kafka_code = 73


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as it is; a change makes a new one. `configs` are those set on the topic, `config` what is in force."""

    name: str
    topic_id: bytes
    partitions: int
    created_ms: TimestampMs
    configs: Mapping[str, str] = field(hash=False)
    config: TopicConfig


@dataclass(frozen=True, slots=True)
class NewTopic:
    """What a client asks for. `assignments` are pairs of a partition and the brokers that shall hold it; they go with
    neither a number of partitions nor a replication factor."""

    name: str
    partitions: int = DEFAULT
    replication_factor: int = DEFAULT
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    configs: Sequence[tuple[str, str | None]] = ()


class TopicListener(Protocol):
    """Called after the change is durable, before anybody else can act on it. It must not fail: what it raises is
    logged, and the change stays."""

    def topic_created(self, topic: Topic) -> None: ...
    def topic_changed(self, before: Topic, after: Topic) -> None:
        """More partitions, or another config."""

    def topic_deleted(self, topic: Topic) -> None: ...


Prepare: TypeAlias = Callable[[Topic], Awaitable[None]]
"""Given a topic that is durable and is told as created or changed next: time to make what its new partitions need."""


async def _nothing_to_prepare(_topic: Topic) -> None:
    pass


def new_topic_id() -> bytes:
    """Random. As in Kafka its text never begins with a dash, which command lines would take for an option."""
    while (topic_id := uuid4().bytes)[0] >> 2 == 0b111110:
        pass
    return topic_id


class Topics:
    def __init__(
        self, store: MetadataStore, broker_config: BrokerConfig, *, new_id: Callable[[], bytes] = new_topic_id
    ) -> None:
        self._store = store
        self.broker_config = broker_config
        self._new_id = new_id
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[bytes, Topic] = {}
        self._plain_names: dict[str, str] = {}  # without the difference between "." and "_" -> name
        self._listeners: list[TopicListener] = []
        self.prepare: Prepare = _nothing_to_prepare
        self._turns: dict[str, asyncio.Event] = {}
        self._partitions = 0  # these two count what is about to be created, too
        self._topics = 0
        broker_config.on_change.append(self._defaults_changed)

    async def load(self) -> None:
        """What the store has. For the start: nobody is told."""
        configs: dict[str, dict[str, str]] = {}
        for row in await self._store.load(ConfigRow):
            if row.kind == TOPIC:
                keep_known(TOPIC_CONFIGS, row, configs.setdefault(row.resource, {}))
        for topic in await self._store.load(TopicRow):
            own = configs.get(topic.name, {})
            config = self._config_or(own, self.broker_config.topic_config({}), topic.name)
            self._keep(Topic(topic.name, topic.topic_id, topic.partitions, topic.created_ms, own, config))
            self._topics += 1
            self._partitions += topic.partitions

    def listen(self, listener: TopicListener) -> None:
        self._listeners.append(listener)

    # Looking up

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Topic]:
        """By name. Safe against changes while it runs."""
        return iter(sorted(self._by_name.values(), key=lambda topic: topic.name))

    def find(self, name: str) -> Topic | None:
        return self._by_name.get(name)

    def find_id(self, topic_id: bytes) -> Topic | None:
        return self._by_id.get(topic_id)

    def get(self, name: str) -> Topic:
        topic = self._by_name.get(name)
        if topic is None:
            raise UnknownTopic(f"there is no topic {name[:249]!r}")
        return topic

    def get_id(self, topic_id: bytes) -> Topic:
        topic = self._by_id.get(topic_id)
        if topic is None:
            raise UnknownTopicId(f"there is no topic with the id {topic_id.hex()}")
        return topic

    def unknown(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Which of these belong to no topic: leftovers of a deletion that a crash cut short. They must be removed
        before a topic of that name is created, or it would begin with their records."""
        return [
            each
            for each in partitions
            if (topic := self._by_name.get(each.topic)) is None or each.partition >= topic.partitions
        ]

    def describe(self, name: str, names: Collection[str] | None = None) -> list[ConfigEntry]:
        return self.broker_config.describe_topic(self.get(name).configs, names)

    # Changing

    async def create(self, new: NewTopic, now_ms: TimestampMs, *, validate_only: bool = False) -> Topic:
        """The new topic, or the one that would be created."""
        return await to_the_end(self._create(new, now_ms, validate_only))

    async def auto_create(self, name: str, now_ms: TimestampMs) -> Topic:
        """The topic of this name, created with the broker's defaults if there is none and the broker allows it."""
        if not self.broker_config.flag("auto.create.topics.enable"):
            return self.get(name)
        try:
            return await self.create(NewTopic(name), now_ms)
        except TopicAlreadyExists:
            return self.get(name)

    async def delete(self, name: str) -> Topic:
        return await to_the_end(self._delete(name, None))

    async def delete_id(self, topic_id: bytes) -> Topic:
        """The topic with this id, never one that took its name since."""
        return await to_the_end(self._delete(self.get_id(topic_id).name, topic_id))

    async def add_partitions(
        self,
        name: str,
        partitions: int,
        assignments: Sequence[Sequence[int]] | None = None,
        *,
        validate_only: bool = False,
    ) -> Topic:
        """The topic with `partitions` in all; `assignments` are the brokers of each one that is new."""
        return await to_the_end(self._add_partitions(name, partitions, assignments, validate_only))

    async def alter_configs(self, name: str, edit: Edit, *, validate_only: bool = False) -> Topic:
        return await to_the_end(self._alter_configs(name, edit, validate_only))

    async def _create(self, new: NewTopic, now_ms: TimestampMs, validate_only: bool) -> Topic:
        if not is_topic_name(new.name):
            raise InvalidTopic(_what_is_wrong_with(new.name))
        async with self._turn(new.name):
            same = self._plain_names.get(_plain(new.name))
            if same == new.name:
                raise TopicAlreadyExists(f"topic {new.name!r} already exists")
            if same is not None:
                raise TopicNameCollision(f'{new.name!r} and the topic {same!r} differ only in "." and "_"')
            missing = [name for name, value in new.configs if value is None]
            if missing:
                raise InvalidConfig(f"no value given for {', '.join(missing)}")
            configs = edited(TOPIC_CONFIGS, TOPIC, {}, Replace(new.configs), self.broker_config.topic_default)
            config = self.broker_config.topic_config(configs)
            partitions = self._partitions_of(new)
            topic = Topic(new.name, self._new_id(), partitions, now_ms, configs, config)
            self._check_room(topics=1, partitions=partitions)
            if validate_only:
                return topic
            row = TopicRow(topic.name, topic.topic_id, topic.partitions, topic.created_ms)
            with self._counted(topics=1, partitions=partitions):
                await self._store.write([Put(row), *row_changes(TOPIC, topic.name, {}, configs)])
            await self._prepare(topic)
            topic = replace(topic, config=self._config_or(configs, config, topic.name))  # the defaults may be new
            self._keep(topic)
            self._tell(lambda listener: listener.topic_created(topic))
            return topic

    async def _delete(self, name: str, topic_id: bytes | None) -> Topic:
        if not self.broker_config.flag("delete.topic.enable"):
            raise TopicDeletionDisabled("topics cannot be deleted here: delete.topic.enable is false")
        async with self._turn(name):
            topic = self.get(name) if topic_id is None else self.get_id(topic_id)
            changes: list[Change] = [Delete(TopicRow, (name,)), Delete(ConfigRow, (TOPIC, name))]
            await self._store.write(changes)
            del self._by_name[name], self._by_id[topic.topic_id], self._plain_names[_plain(name)]
            self._topics -= 1
            self._partitions -= topic.partitions
            self._tell(lambda listener: listener.topic_deleted(topic))
            return topic

    async def _add_partitions(
        self, name: str, partitions: int, assignments: Sequence[Sequence[int]] | None, validate_only: bool
    ) -> Topic:
        async with self._turn(name):
            before = self.get(name)
            more = partitions - before.partitions
            if more <= 0:
                raise InvalidPartitions(
                    f"topic {name!r} has {before.partitions} partitions; {partitions} would not be more"
                )
            if assignments is not None:
                if len(assignments) != more:
                    raise InvalidReplicaAssignment(f"{len(assignments)} assignments for {more} new partitions")
                for brokers in assignments:
                    self._check_assignment(brokers)
            self._check_room(topics=0, partitions=more)
            if validate_only:
                return replace(before, partitions=partitions)
            with self._counted(topics=0, partitions=more):
                await self._store.write([Put(TopicRow(name, before.topic_id, partitions, before.created_ms))])
            await self._prepare(replace(self.get(name), partitions=partitions))
            after = replace(self.get(name), partitions=partitions)  # its config may have changed in the meantime
            self._become(after)
            return after

    async def _alter_configs(self, name: str, edit: Edit, validate_only: bool) -> Topic:
        async with self._turn(name):
            before = self.get(name)
            configs = edited(TOPIC_CONFIGS, TOPIC, before.configs, edit, self.broker_config.topic_default)
            after = replace(before, configs=configs, config=self.broker_config.topic_config(configs))
            if validate_only:
                return after
            await self._store.write(row_changes(TOPIC, name, before.configs, configs))
            after = replace(after, config=self._config_or(configs, after.config, name))  # the defaults may be new
            self._become(after)
            return after

    # What a topic may be

    def _partitions_of(self, new: NewTopic) -> int:
        if new.assignments:
            return self._partitions_assigned(new)
        if new.replication_factor not in (DEFAULT, 1):
            raise InvalidReplicationFactor(
                f"replication factor {new.replication_factor} is not possible with one broker: it must be 1 or -1"
            )
        if new.partitions == 0 or new.partitions < DEFAULT:
            raise InvalidPartitions(
                f"{new.partitions} partitions are not possible: at least 1, or -1 for the default"
            )
        return self.broker_config.number("num.partitions") if new.partitions == DEFAULT else new.partitions

    def _partitions_assigned(self, new: NewTopic) -> int:
        if (new.partitions, new.replication_factor) != (DEFAULT, DEFAULT):
            raise InvalidInput("with assignments the number of partitions and the replication factor must be -1")
        if sorted(partition for partition, _ in new.assignments) != list(range(len(new.assignments))):
            raise InvalidReplicaAssignment("the assignments must be of the partitions 0, 1, 2, ..., each once")
        for _, brokers in new.assignments:
            self._check_assignment(brokers)
        return len(new.assignments)

    def _check_assignment(self, brokers: Sequence[int]) -> None:
        node_id = self.broker_config.node_id
        if list(brokers) != [node_id]:
            raise InvalidReplicaAssignment(
                f"a partition cannot be on {list(brokers)}: there is only broker {node_id}"
            )

    def _check_room(self, *, topics: int, partitions: int) -> None:
        for what, name, wanted in (
            ("topics", "tidelog.max.topics", self._topics + topics),
            ("partitions", "tidelog.max.partitions", self._partitions + partitions),
        ):
            limit = self.broker_config.number(name)
            if wanted > limit:
                raise PolicyViolation(f"that would make {wanted} {what}; the broker is set to hold {limit} ({name})")

    @contextmanager
    def _counted(self, *, topics: int, partitions: int) -> Iterator[None]:
        """They count towards the limits while they are being written, and from then on; not if that fails."""
        self._topics += topics
        self._partitions += partitions
        try:
            yield
        except BaseException:
            self._topics -= topics
            self._partitions -= partitions
            raise

    # Applying

    async def _prepare(self, topic: Topic) -> None:
        try:
            await self.prepare(topic)
        except Exception:
            log.exception("partitions could not be prepared; the topic is changed all the same", topic=topic.name)

    @asynccontextmanager
    async def _turn(self, name: str) -> AsyncIterator[None]:
        """Alone with a name, and with those that would collide with it."""
        key = _plain(name)
        while (earlier := self._turns.get(key)) is not None:
            await earlier.wait()
        self._turns[key] = over = asyncio.Event()
        try:
            yield
        finally:
            del self._turns[key]
            over.set()

    def _keep(self, topic: Topic) -> None:
        self._by_name[topic.name] = self._by_id[topic.topic_id] = topic
        self._plain_names[_plain(topic.name)] = topic.name

    def _become(self, after: Topic) -> None:
        before = self._by_name[after.name]
        self._keep(after)
        self._tell(lambda listener: listener.topic_changed(before, after))

    def _tell(self, call: Callable[[TopicListener], None]) -> None:
        for listener in self._listeners:
            try:
                call(listener)
            except Exception:
                log.exception("a listener failed; the topic is changed all the same")

    def _defaults_changed(self) -> None:
        for topic in self:
            config = self._config_or(topic.configs, topic.config, topic.name)
            if config != topic.config:
                self._become(replace(topic, config=config))

    def _config_or(self, configs: Mapping[str, str], otherwise: TopicConfig, name: str) -> TopicConfig:
        """What is in force; `otherwise` where the topic's configs contradict the broker's."""
        try:
            return self.broker_config.topic_config(configs)
        except InvalidConfig as error:
            log.warning("a topic's configs contradict the broker's: not in force", topic=name, reason=str(error))
            return otherwise


def _plain(name: str) -> str:
    return name.replace(".", "_")


def _what_is_wrong_with(name: str) -> str:
    if not name or name in (".", ".."):
        return f"a topic cannot be called {name!r}"
    if len(name) > 249:
        return f"a topic name has at most 249 characters, not {len(name)}"
    return f"{name!r} is not a topic name: only ASCII letters, digits, '.', '_' and '-' may be in it"
