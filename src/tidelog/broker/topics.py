"""`Topics`: the existing topics, in memory and in the metadata store.

A change is checked and written; when it is durable, it is applied in memory and reported to the listeners, in one
iteration of the event loop. So a topic that a client has seen exists after a crash. What new partitions need is
created before the write (`Preparation`): a topic is created, or grows, only if it can be used. Operations on the same
name run one after the other; those on different names run concurrently and share a commit. A change whose outcome is
unknown is repeated until it is decided; other operations on the same name wait for that.

    InvalidInput (errors.py)
    ├── UnknownTopic, UnknownTopicId    there is no such topic; it may be about to be created
    ├── InvalidTopic                    a name that no topic can have, or that is reserved for Kafka
    │   └── TopicNameCollision          a name that differs from an existing one only in "." and "_"
    ├── TopicAlreadyExists
    ├── InvalidPartitions, InvalidReplicationFactor, InvalidReplicaAssignment
    ├── TopicDeletionDisabled
    └── PolicyViolation                 more topics or partitions than the broker's limits allow
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol
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
)
from tidelog.broker.shell import to_the_end
from tidelog.broker.writes import Writes
from tidelog.errors import Conflict, InvalidInput, OutcomeUnknown
from tidelog.metadata.rows import ConfigRow, DeletedTopicRow, TopicRow
from tidelog.metadata.store import Change, Delete, Fence, Insert, MetadataStore, Put, Update
from tidelog.model import TimestampMs, is_topic_name

CLUSTER_METADATA = "__cluster_metadata"
RESERVED = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state", CLUSTER_METADATA})
"""Topics in which Kafka keeps what Tidelog keeps in the metadata store. Clients hide them from users, or expect
Kafka's own records in them, so they cannot be created."""
DEFAULT = -1  # as a number of partitions or replicas: the broker's default
_UNCHANGED = TopicRow("", b"", 0, 0)

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
    """An immutable topic; a change creates a new object. `configs` are those set on the topic, `config` has the
    values in force."""

    name: str
    topic_id: bytes
    partitions: int
    created_ms: TimestampMs
    configs: Mapping[str, str] = field(hash=False)
    config: TopicConfig


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A request for a topic. `assignments` are pairs of a partition and the brokers to hold it; they cannot be
    combined with a number of partitions or a replication factor."""

    name: str
    partitions: int = DEFAULT
    replication_factor: int = DEFAULT
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    configs: Sequence[tuple[str, str | None]] = ()


class TopicListener(Protocol):
    """Called when the change is durable, in the same iteration of the event loop. Must not raise: an exception is
    logged, and the change stays."""

    def topic_created(self, topic: Topic) -> None: ...
    def topic_changed(self, before: Topic, after: Topic) -> None:
        """More partitions, or another config."""

    def topic_deleted(self, topic: Topic) -> None: ...


class Preparation(Protocol):
    """Creates what new partitions need, before they are visible."""

    async def prepare(self, topic: Topic) -> None:
        """Called with the topic as it will be, before it is written; listeners are called after that. If this raises,
        nothing is changed, and the client that asked for the partitions gets the error."""

    def discard(self, topic: Topic) -> None:
        """The topic could not be written: remove what was prepared for it."""


class _NothingToPrepare:
    async def prepare(self, topic: Topic) -> None:
        pass

    def discard(self, topic: Topic) -> None:
        pass


def new_topic_id() -> bytes:
    """A random id. As in Kafka its text never begins with a dash, which command lines would take for an option."""
    while (topic_id := uuid4().bytes)[0] >> 2 == 0b111110:
        pass
    return topic_id


class Topics:
    def __init__(
        self,
        store: MetadataStore,
        broker_config: BrokerConfig,
        *,
        new_id: Callable[[], bytes] = new_topic_id,
        fence: Fence | None = None,
    ) -> None:
        self._store = store
        self.writes = Writes(store, fence)  # also used for configs, which have the same owner as topics
        self.broker_config = broker_config
        self._new_id = new_id
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[bytes, Topic] = {}
        self._plain_names: dict[str, str] = {}  # name with "_" for "." -> name
        self._listeners: list[TopicListener] = []
        self.preparation: Preparation = _NothingToPrepare()
        self.announce: Callable[[Topic], Awaitable[None]] | None = None
        """Tells other brokers of a new topic, before the client is answered."""
        self.brokers: Callable[[], Collection[int]] = lambda: (broker_config.node_id,)
        """Those that are up. As many replicas may be asked for: in a cluster the object store keeps the data,
        whatever their number is."""
        self.assign: Callable[[Topic, Mapping[int, int]], None] | None = None
        """Lets brokers lead new partitions, which are about to be created: by their numbers."""
        self._turns: dict[str, asyncio.Event] = {}
        self._partitions = 0  # this and the next include what is being created
        self._topics = 0
        broker_config.on_change.append(self._defaults_changed)

    async def load(self) -> None:
        """Load the topics from the store. For startup: listeners are not called."""
        configs: dict[str, dict[str, str]] = {}
        for row in await self._store.load(ConfigRow, (TOPIC,)):
            keep_known(TOPIC_CONFIGS, row, configs.setdefault(row.resource, {}))
        for topic in await self._store.load(TopicRow):
            own = configs.get(topic.name, {})
            config = self._config_or(own, self.broker_config.topic_config({}), topic.name)
            self._keep(Topic(topic.name, topic.topic_id, topic.partitions, topic.created_ms, own, config))
            self._topics += 1
            self._partitions += topic.partitions

    def listen(self, listener: TopicListener) -> None:
        self._listeners.append(listener)

    def stop_listening(self, listener: TopicListener) -> None:
        self._listeners.remove(listener)

    def follow(self, changes: Sequence[Put | Delete]) -> None:
        """Apply what another broker, the controller, has written. What this broker wrote itself is known already."""
        configs: dict[str, dict[str, str]] = {}

        def configs_of(name: str) -> dict[str, str]:
            known = self._by_name.get(name)
            return configs.setdefault(name, dict(known.configs) if known is not None else {})

        rows: dict[str, TopicRow | None] = {}
        for change in changes:
            if isinstance(change, Put) and isinstance(change.row, TopicRow):
                rows[change.row.name] = change.row
            elif isinstance(change, Put) and isinstance(change.row, ConfigRow) and change.row.kind == TOPIC:
                keep_known(TOPIC_CONFIGS, change.row, configs_of(change.row.resource))
            elif isinstance(change, Delete) and change.table is TopicRow:
                rows[str(change.key[0])] = None
            elif isinstance(change, Delete) and change.table is ConfigRow and change.key[0] == TOPIC:
                if len(change.key) == 2:
                    configs[str(change.key[1])] = {}
                elif len(change.key) == 3:
                    configs_of(str(change.key[1])).pop(str(change.key[2]), None)
        for name in rows.keys() | configs.keys():
            self._follow_topic(name, rows.get(name, _UNCHANGED), configs.get(name))

    async def reload(self) -> None:
        """Apply all that other brokers have written, if the single changes are no longer known."""
        configs = await self._store.load(ConfigRow, (TOPIC,))
        topics = await self._store.load(TopicRow)
        gone = self._by_name.keys() - {row.name for row in topics}
        self.follow(
            [
                *(Delete(TopicRow, (name,)) for name in gone),
                *(Delete(ConfigRow, (TOPIC, row.name)) for row in topics),
                *map(Put, topics),
                *map(Put, configs),
            ]
        )

    def _follow_topic(self, name: str, row: TopicRow | None, own: Mapping[str, str] | None) -> None:
        known = self._by_name.get(name)
        if known is not None and row is not _UNCHANGED and (row is None or row.topic_id != known.topic_id):
            self._forget(known)
            known = None
        if row is None or (row is _UNCHANGED and known is None):
            return
        if known is None:
            configs = own or {}
            config = self._config_or(configs, self.broker_config.topic_config({}), name)
            topic = Topic(name, row.topic_id, row.partitions, row.created_ms, configs, config)
            self._keep(topic)
            self._topics += 1
            self._partitions += topic.partitions
            self._tell(lambda listener: listener.topic_created(topic))
            return
        configs = known.configs if own is None else own
        partitions = known.partitions if row is _UNCHANGED else max(row.partitions, known.partitions)
        after = replace(
            known, partitions=partitions, configs=configs, config=self._config_or(configs, known.config, name)
        )
        if after != known or dict(after.configs) != dict(known.configs):
            self._partitions += after.partitions - known.partitions
            self._become(after)

    # Looking up

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Topic]:
        """All topics, sorted by name. Topics may change during the iteration."""
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

    def describe(self, name: str, names: Collection[str] | None = None) -> list[ConfigEntry]:
        return self.broker_config.describe_topic(self.get(name).configs, names)

    # Changing

    async def create(self, new: NewTopic, now_ms: TimestampMs, *, validate_only: bool = False) -> Topic:
        """The new topic; with `validate_only`, the topic that would be created."""
        return await to_the_end(self._create(new, now_ms, validate_only))

    async def auto_create(self, name: str, now_ms: TimestampMs) -> Topic:
        """The topic of this name, created with the broker's defaults if there is none and the broker allows it."""
        if not self.may_auto_create(name):
            return self.get(name)
        try:
            return await self.create(NewTopic(name), now_ms)
        except TopicAlreadyExists:
            return self.get(name)

    def may_auto_create(self, name: str) -> bool:
        return name not in RESERVED and self.broker_config.flag("auto.create.topics.enable")

    async def delete(self, name: str) -> Topic:
        return await to_the_end(self._delete(name, None))

    async def delete_id(self, topic_id: bytes) -> Topic:
        """Delete the topic with this id, never a newer topic of the same name."""
        return await to_the_end(self._delete(self.get_id(topic_id).name, topic_id))

    async def add_partitions(
        self,
        name: str,
        partitions: int,
        assignments: Sequence[Sequence[int]] | None = None,
        *,
        validate_only: bool = False,
    ) -> Topic:
        """Add partitions, up to `partitions` in total. `assignments` has the brokers of each new one."""
        return await to_the_end(self._add_partitions(name, partitions, assignments, validate_only))

    async def alter_configs(self, name: str, edit: Edit, *, validate_only: bool = False) -> Topic:
        return await to_the_end(self._alter_configs(name, edit, validate_only))

    async def _create(self, new: NewTopic, now_ms: TimestampMs, validate_only: bool) -> Topic:
        if not is_topic_name(new.name):
            raise InvalidTopic(_what_is_wrong_with(new.name))
        if new.name in RESERVED and new.name not in self._by_name:
            raise InvalidTopic(f"{new.name!r} is reserved for Kafka's own use: choose another name")
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
            with self._counted(topics=1, partitions=partitions):
                self._assign(topic, {number: brokers[0] for number, brokers in new.assignments})
                try:
                    await self._write_prepared(
                        topic, [Insert(_row(topic)), *row_changes(TOPIC, topic.name, {}, configs)]
                    )
                except Conflict as error:
                    raise TopicAlreadyExists(f"another broker has just created topic {new.name!r}") from error
            if topic.topic_id in self._by_id:  # it was written, and followed as if it were another broker's
                self._topics -= 1
                self._partitions -= partitions
                return self._by_id[topic.topic_id]
            topic = replace(topic, config=self._config_or(configs, config, topic.name))  # defaults may have changed
            self._keep(topic)
            self._tell(lambda listener: listener.topic_created(topic))
            if self.announce is not None:
                await self.announce(topic)
            return topic

    async def _delete(self, name: str, topic_id: bytes | None) -> Topic:
        if not self.broker_config.flag("delete.topic.enable"):
            raise TopicDeletionDisabled("topics cannot be deleted here: delete.topic.enable is false")
        async with self._turn(name):
            topic = self.get(name) if topic_id is None else self.get_id(topic_id)
            deleted = DeletedTopicRow(topic.topic_id, name)  # so that its logs are removed even after a crash
            changes: list[Change] = [Delete(TopicRow, (name,)), Delete(ConfigRow, (TOPIC, name)), Put(deleted)]
            await self.writes.decided(changes)
            if self._by_id.get(topic.topic_id) is not None:  # else another broker's change was followed first
                self._forget(topic)
            return topic

    async def _add_partitions(
        self, name: str, partitions: int, assignments: Sequence[Sequence[int]] | None, validate_only: bool
    ) -> Topic:
        async with self._turn(name):
            before = self.get(name)
            more = partitions - before.partitions
            if more <= 0:
                raise InvalidPartitions(
                    f"topic {name!r} has {before.partitions} partitions; the new number, {partitions}, must be higher"
                )
            if assignments is not None:
                if len(assignments) != more:
                    raise InvalidReplicaAssignment(f"{len(assignments)} assignments for {more} new partitions")
                for brokers in assignments:
                    self._check_assignment(brokers)
            self._check_room(topics=0, partitions=more)
            if validate_only:
                return replace(before, partitions=partitions)
            grown = replace(before, partitions=partitions)
            with self._counted(topics=0, partitions=more):
                first = before.partitions
                self._assign(grown, {first + number: brokers[0] for number, brokers in enumerate(assignments or ())})
                await self._write_prepared(grown, [Update(_row(before), _row(grown))])
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
            await self.writes.decided(row_changes(TOPIC, name, before.configs, configs))
            after = replace(after, config=self._config_or(configs, after.config, name))  # defaults may have changed
            self._become(after)
            return after

    # Limits of a topic

    def _partitions_of(self, new: NewTopic) -> int:
        if new.assignments:
            return self._partitions_assigned(new)
        brokers = max(1, len(self.brokers()))
        if new.replication_factor != DEFAULT and not 1 <= new.replication_factor <= brokers:
            raise InvalidReplicationFactor(
                f"replication factor {new.replication_factor} is not possible with "
                + ("one broker: it must be 1 or -1" if brokers == 1 else f"{brokers} brokers")
            )
        if new.partitions == 0 or new.partitions < DEFAULT:
            raise InvalidPartitions(
                f"a topic cannot have {new.partitions} partitions: give at least 1, or -1 for the default"
            )
        return self.broker_config.number("num.partitions") if new.partitions == DEFAULT else new.partitions

    def _partitions_assigned(self, new: NewTopic) -> int:
        if (new.partitions, new.replication_factor) != (DEFAULT, DEFAULT):
            raise InvalidInput("with assignments the number of partitions and the replication factor must be -1")
        if sorted(partition for partition, _ in new.assignments) != list(range(len(new.assignments))):
            raise InvalidReplicaAssignment("the assignments must name the partitions 0, 1, 2, ..., each once")
        for _, brokers in new.assignments:
            self._check_assignment(brokers)
        return len(new.assignments)

    def _check_assignment(self, brokers: Sequence[int]) -> None:
        known = self.brokers() or (self.broker_config.node_id,)
        if not brokers or len(set(brokers)) < len(brokers) or not set(brokers) <= set(known):
            there_are = f"brokers {', '.join(map(str, sorted(known)))}" if len(known) > 1 else f"broker {min(known)}"
            raise InvalidReplicaAssignment(
                f"a partition cannot be on {list(brokers)[:100]}: there {'are' if len(known) > 1 else 'is'} only"
                f" {there_are}"
            )

    def _check_room(self, *, topics: int, partitions: int) -> None:
        for what, name, wanted in (
            ("topics", "tidelog.max.topics", self._topics + topics),
            ("partitions", "tidelog.max.partitions", self._partitions + partitions),
        ):
            limit = self.broker_config.number(name)
            if wanted > limit:
                raise PolicyViolation(f"this would make {wanted} {what}; the limit of the broker is {limit} ({name})")

    @contextmanager
    def _counted(self, *, topics: int, partitions: int) -> Iterator[None]:
        """Count them towards the limits while they are being written and afterwards, but not if the write fails."""
        self._topics += topics
        self._partitions += partitions
        try:
            yield
        except BaseException:
            self._topics -= topics
            self._partitions -= partitions
            raise

    # Applying

    def _assign(self, topic: Topic, leaders: Mapping[int, int]) -> None:
        if leaders and self.assign is not None:
            self.assign(topic, leaders)

    async def _write_prepared(self, topic: Topic, changes: Sequence[Change]) -> None:
        """Store a topic when its new partitions can be used. If they cannot be prepared, nothing is stored."""
        await self.preparation.prepare(topic)
        try:
            await self.writes.decided(changes)
        except (OutcomeUnknown, asyncio.CancelledError):
            raise  # the topic may be stored, and then needs what was prepared; the next start cleans up
        except BaseException:
            self.preparation.discard(topic)
            raise

    @asynccontextmanager
    async def _turn(self, name: str) -> AsyncIterator[None]:
        """Hold the lock on a name, and on the names that would collide with it."""
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

    def _forget(self, topic: Topic) -> None:
        del self._by_name[topic.name], self._by_id[topic.topic_id], self._plain_names[_plain(topic.name)]
        self._topics -= 1
        self._partitions -= topic.partitions
        self._tell(lambda listener: listener.topic_deleted(topic))

    def _become(self, after: Topic) -> None:
        before = self._by_name[after.name]
        self._keep(after)
        self._tell(lambda listener: listener.topic_changed(before, after))

    def _tell(self, call: Callable[[TopicListener], None]) -> None:
        for listener in self._listeners:
            try:
                call(listener)
            except Exception:
                log.exception("a listener of topics raised an exception; the topic is changed nevertheless")

    def _defaults_changed(self) -> None:
        for topic in self:
            config = self._config_or(topic.configs, topic.config, topic.name)
            if config != topic.config:
                self._become(replace(topic, config=config))

    def _config_or(self, configs: Mapping[str, str], otherwise: TopicConfig, name: str) -> TopicConfig:
        """The config in force; `otherwise` if the topic's configs contradict the broker's."""
        try:
            return self.broker_config.topic_config(configs)
        except InvalidConfig as error:
            log.warning("configs of a topic contradict the broker's and are ignored", topic=name, reason=str(error))
            return otherwise


def _row(topic: Topic) -> TopicRow:
    return TopicRow(topic.name, topic.topic_id, topic.partitions, topic.created_ms)


def _plain(name: str) -> str:
    return name.replace(".", "_")


def _what_is_wrong_with(name: str) -> str:
    if not name or name in (".", ".."):
        return f"{name!r} is not a valid topic name"
    if len(name) > 249:
        return f"a topic name may have at most 249 characters, not {len(name)}"
    return f"{name!r} is not a valid topic name: only ASCII letters, digits, '.', '_' and '-' are allowed"
