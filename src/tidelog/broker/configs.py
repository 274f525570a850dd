"""Kafka's configs of topics and brokers: what there is, what is valid, who set a value, and what it amounts to. Those
of groups are in `group_configs`, and are altered in the same way.

The definitions are in `config_table`. A topic's value is the one set on the topic, else the first that the
broker has among the config's synonyms, looked for in these layers: set for this broker, set for all brokers, from the
settings, default. `TopicConfig` is the result, in the types that the rest of the broker works with.

How appends become durable is Tidelog's own `tidelog.flush`. Kafka's flush.ms and flush.messages still mean what they
say: where one is set the policy is `interval`, unless `tidelog.flush` is set on the same level; what is set on
a topic goes before what is set on the broker. Kafka's own default (2^63 - 1: never) sets nothing, so that a topic
which spells out all of Kafka's defaults keeps the durability of `acks`.

    InvalidInput (errors.py)   a request that makes no sense: a config twice, no value, read-only
    └── InvalidConfig          a name or a value that Tidelog does not take
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias, TypeVar

import structlog

from tidelog.broker.config_table import (
    BROKER_CONFIGS,
    BROKER_DEFAULTS,
    NEVER,
    TOPIC_CONFIGS,
    ConfigType,
    Definition,
    InvalidConfig,
    Value,
    rendered,
    split,
)
from tidelog.errors import InvalidInput, InvalidSettings
from tidelog.metadata.rows import ConfigRow
from tidelog.metadata.store import Change, Delete, MetadataStore, Put
from tidelog.model import TimestampType
from tidelog.records.compression import Codec
from tidelog.settings import UNLIMITED, CleanerSettings, CompactionSettings, FlushPolicy, LogSettings
from tidelog.storage.table import INSTALL, is_installed

T = TypeVar("T")

TOPIC = "topic"  # kinds of `ConfigRow`
BROKER = "broker"
GROUP = "group"
ALL_BROKERS = ""  # the resource that stands for every broker

_OTHER_GROUPS = ("share.", "streams.")  # kinds of groups that Kafka has configs for
_LONGEST_TIMER_MS = 2**31 - 1
_MOST_CONFIGS_CACHED = 1024  # topics often have the same configs

log = structlog.get_logger("tidelog.broker")


class ConfigSource(IntEnum):
    """Who set a value, as DescribeConfigs numbers them."""

    TOPIC = 1
    BROKER = 2
    ALL_BROKERS = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    GROUP = 8


class Operation(IntEnum):
    """As IncrementalAlterConfigs numbers them."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Alteration(NamedTuple):
    name: str
    operation: int  # an `Operation`, if the client knows what it does
    value: str | None = None


class Alter(NamedTuple):
    """IncrementalAlterConfigs: what is not mentioned stays."""

    alterations: Sequence[Alteration]


class Replace(NamedTuple):
    """AlterConfigs: what is not mentioned goes back to its default."""

    configs: Sequence[tuple[str, str | None]]


Edit: TypeAlias = Alter | Replace


class ConfigSynonym(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """A line of DescribeConfigs. The value of a sensitive config is never told. `synonyms` are all places where the
    value could have come from, the one it did come from first."""

    name: str
    value: str | None
    source: ConfigSource
    is_sensitive: bool
    read_only: bool
    type: ConfigType
    synonyms: tuple[ConfigSynonym, ...]
    documentation: str


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """What the configs of a topic amount to. Configs without a meaning on a single node are not in it."""

    compacted: bool
    table: bool  # the last value of each key can be asked for
    expiring: bool  # retention deletes old segments
    compression: Codec | None  # None: as the producer sent it
    compression_level: int | None
    delete_retention_ms: int
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int
    min_cleanable_dirty_ratio: float
    max_message_bytes: int
    message_timestamp_type: TimestampType
    message_timestamp_before_max_ms: int
    message_timestamp_after_max_ms: int
    retention_ms: int
    retention_bytes: int
    retention_wait_for_group: str  # empty: for nobody
    segment_bytes: int
    segment_ms: int
    segment_jitter_ms: int
    segment_index_bytes: int
    index_interval_bytes: int
    flush: FlushPolicy
    flush_ms: int
    flush_messages: int
    producer_id_expiration_ms: int

    def log_settings(self, spread: float = 0.0) -> LogSettings:
        """`spread`, from 0 up to 1, is the partition's share of segment.jitter.ms, so that not all roll at once."""
        segment_ms = min(self.segment_ms, self.max_compaction_lag_ms) if self.compacted else self.segment_ms
        return LogSettings(
            segment_bytes=self.segment_bytes,
            segment_ms=max(1, segment_ms - int(spread * min(self.segment_jitter_ms, segment_ms))),
            index_interval_bytes=self.index_interval_bytes,
            segment_index_bytes=self.segment_index_bytes,
            max_message_bytes=self.max_message_bytes,
            retention_ms=self.retention_ms if self.expiring else UNLIMITED,
            retention_bytes=self.retention_bytes if self.expiring else UNLIMITED,
            flush=self.flush,
            flush_ms=min(max(1, self.flush_ms), _LONGEST_TIMER_MS),
            flush_messages=self.flush_messages,
            producer_id_expiration_ms=self.producer_id_expiration_ms,
            compaction=self._compaction() if self.compacted else None,
        )

    def _compaction(self) -> CompactionSettings:
        return CompactionSettings(
            delete_retention_ms=self.delete_retention_ms,
            min_lag_ms=self.min_compaction_lag_ms,
            max_lag_ms=self.max_compaction_lag_ms,
            min_dirty_ratio=self.min_cleanable_dirty_ratio,
        )


class BrokerConfig:
    """The broker's configs in their layers, and through them the defaults of all topics."""

    def __init__(self, static: Mapping[str, str] | None = None, *, node_id: int = 0) -> None:
        self.node_id = node_id
        self.on_change: list[Callable[[], None]] = []
        problems = []
        fixed: dict[str, str] = {}
        for name, text in {"node.id": str(node_id), **(static or {})}.items():
            try:
                fixed[name] = rendered(defined(BROKER_CONFIGS, BROKER, name).parse(text))
            except InvalidConfig as error:
                problems.append(str(error))
        self._turn = asyncio.Lock()
        self._dynamic: dict[str, dict[str, str]] = {str(node_id): {}, ALL_BROKERS: {}}
        self._static = fixed
        try:
            self._refresh()
        except InvalidConfig as error:
            problems.append(str(error))
        if problems:
            raise InvalidSettings(problems)

    def load(self, rows: Iterable[ConfigRow]) -> None:
        """What was altered in earlier runs. For the start: nobody is told."""
        for row in rows:
            if row.kind == BROKER and row.resource in self._dynamic:
                keep_known(BROKER_CONFIGS, row, self._dynamic[row.resource])
        self._refresh()

    def value(self, name: str) -> Value | None:
        """What is in force; None where a config has no value."""
        found = self.found((name,))
        text = found[0].value if found else None
        return None if text is None else BROKER_CONFIGS[name].parse(text)

    def number(self, name: str) -> int:
        value = self.value(name)
        assert isinstance(value, int), name
        return value

    def cleaner_settings(self) -> CleanerSettings:
        load_factor, bytes_per_second = (
            self.value(f"log.cleaner.io.{name}") for name in ("buffer.load.factor", "max.bytes.per.second")
        )
        assert isinstance(load_factor, float)
        assert isinstance(bytes_per_second, float)
        return CleanerSettings(
            dedupe_buffer_bytes=self.number("log.cleaner.dedupe.buffer.size"),
            load_factor=load_factor,
            bytes_per_second=bytes_per_second,
            backoff_ms=self.number("log.cleaner.backoff.ms"),
        )

    def flag(self, name: str) -> bool:
        return self.value(name) is True

    def found(self, names: Iterable[str]) -> list[ConfigSynonym]:
        """Where these names have a value, best first."""
        names = tuple(names)
        return [
            ConfigSynonym(name, layer[name], source)
            for source, layer in self._layers
            for name in names
            if name in layer
        ]

    def topic_config(self, overrides: Mapping[str, str]) -> TopicConfig:
        """What a topic with these configs of its own works with; InvalidConfig if they contradict each other."""
        key = frozenset(overrides.items())
        config = self._topic_configs.get(key)
        if config is None:
            values = self._topic_values | {name: TOPIC_CONFIGS[name].parse(text) for name, text in overrides.items()}
            config = _topic_config(values, _flush_policy(overrides) or self._flush, self._producer_id_expiration_ms)
            if len(self._topic_configs) < _MOST_CONFIGS_CACHED:
                self._topic_configs[key] = config
        return config

    def topic_default(self, name: str) -> str:
        """What a topic that does not set this config inherits."""
        return rendered(self._topic_values[name])

    def describe(self, resource: str, names: Collection[str] | None = None) -> list[ConfigEntry]:
        """All configs of this broker, or what is set for all brokers; those of `names` only, if any are given."""
        own = self._of(resource)
        wanted = [name for name in BROKER_CONFIGS if not names or name in names]
        if resource != ALL_BROKERS:
            return [config_entry(BROKER_CONFIGS[name], self.found((name,)), None) for name in wanted]
        return [
            config_entry(BROKER_CONFIGS[name], [ConfigSynonym(name, own[name], ConfigSource.ALL_BROKERS)], None)
            for name in wanted
            if name in own
        ]

    def describe_topic(self, overrides: Mapping[str, str], names: Collection[str] | None = None) -> list[ConfigEntry]:
        entries = []
        for definition in TOPIC_CONFIGS.values():
            if names and definition.name not in names:
                continue
            synonyms = self.found(name for name, _ in definition.synonyms)
            if definition.name in overrides:
                own = ConfigSynonym(definition.name, overrides[definition.name], ConfigSource.TOPIC)
                synonyms.insert(0, own)
            text = self._inherited(definition, synonyms)
            if definition.name == "tidelog.flush":
                text = _flush_policy(overrides) or self._flush  # flush.ms and flush.messages have a say in it
            entries.append(config_entry(definition, synonyms, text))
        return entries

    async def alter(self, store: MetadataStore, resource: str, edit: Edit, *, validate_only: bool = False) -> None:
        """In force when it returns. `resource` is this broker's number, or ALL_BROKERS."""
        await to_the_end(self._alter(store, resource, edit, validate_only))

    async def _alter(self, store: MetadataStore, resource: str, edit: Edit, validate_only: bool) -> None:
        async with self._turn:
            before = self._of(resource)
            after = edited(BROKER_CONFIGS, BROKER, before, edit, self._text_in_force)
            for name, _ in sorted(before.items() ^ after.items()):
                if not BROKER_CONFIGS[name].dynamic:
                    raise InvalidInput(f"{name} is read-only: it is set in the broker's settings, before it starts")
            trial = BrokerConfig(self._static, node_id=self.node_id)
            trial._dynamic = self._dynamic | {resource: after}
            trial._refresh()
            if validate_only:
                return
            await store.write(row_changes(BROKER, resource, before, after))
            self._dynamic[resource] = after
            self._refresh()
        for listener in self.on_change:
            listener()

    def _of(self, resource: str) -> dict[str, str]:
        own = self._dynamic.get(resource)
        if own is None:
            raise InvalidInput(
                f"there is no broker {resource!r} here: say {self.node_id}, or nothing for all brokers"
            )
        return own

    def _refresh(self) -> None:
        self._layers = (
            (ConfigSource.BROKER, self._dynamic[str(self.node_id)]),
            (ConfigSource.ALL_BROKERS, self._dynamic[ALL_BROKERS]),
            (ConfigSource.STATIC_BROKER, self._static),
            (ConfigSource.DEFAULT, BROKER_DEFAULTS),
        )
        self._topic_values: dict[str, Value] = {}
        for definition in TOPIC_CONFIGS.values():
            text = self._inherited(definition, self.found(name for name, _ in definition.synonyms))
            self._topic_values[definition.name] = definition.parse(text)
        self._flush = self._flush_of_broker()
        self._producer_id_expiration_ms = self.number("producer.id.expiration.ms")
        self._topic_configs: dict[frozenset[tuple[str, str]], TopicConfig] = {}
        self.topic_config({})  # refuses defaults that contradict each other

    def _inherited(self, definition: Definition, synonyms: Sequence[ConfigSynonym]) -> str:
        """The best synonym's value in the topic config's own unit."""
        if not synonyms or synonyms[0].value is None:
            return definition.default or ""
        factor = dict(definition.synonyms).get(synonyms[0].name, 1)
        text = synonyms[0].value
        return text if factor == 1 else str(max(-1, int(text) * factor))  # below zero: without limit

    def _text_in_force(self, name: str) -> str:
        found = self.found((name,))
        return (found[0].value if found else None) or ""

    def _flush_of_broker(self) -> FlushPolicy:
        level = {}
        for name in _FLUSH_CONFIGS:
            found = self.found(synonym for synonym, _ in TOPIC_CONFIGS[name].synonyms)
            if found[0].source is not ConfigSource.DEFAULT:
                level[name] = found[0].value or ""
        return _flush_policy(level) or FlushPolicy.ACKS


_FLUSH_CONFIGS = ("tidelog.flush", "flush.ms", "flush.messages")


def _flush_policy(level: Mapping[str, str]) -> FlushPolicy | None:
    """What the configs of one level (a topic's, or the broker's) say about it; None: nothing."""
    if "tidelog.flush" in level:
        return FlushPolicy(level["tidelog.flush"])
    intervals = (level.get(name) for name in ("flush.ms", "flush.messages"))
    return FlushPolicy.INTERVAL if any(text is not None and int(text) != NEVER for text in intervals) else None


_AS_THEY_ARE = (
    "delete.retention.ms",
    "flush.messages",
    "flush.ms",
    "index.interval.bytes",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.index.bytes",
    "segment.jitter.ms",
    "segment.ms",
)


def _topic_config(values: Mapping[str, Any], flush: FlushPolicy, producer_id_expiration_ms: int) -> TopicConfig:
    codec = values["compression.type"]
    shortest, longest = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    if shortest > longest:
        raise InvalidConfig(f"min.compaction.lag.ms ({shortest}) is above max.compaction.lag.ms ({longest})")
    create_time = values["message.timestamp.type"] == "CreateTime"
    return TopicConfig(
        compacted="compact" in values["cleanup.policy"],
        table=values["tidelog.table"],
        expiring="delete" in values["cleanup.policy"],
        compression=_codec(codec),
        compression_level=values.get(f"compression.{codec}.level"),
        message_timestamp_type=TimestampType.CREATE_TIME if create_time else TimestampType.LOG_APPEND_TIME,
        flush=flush,
        producer_id_expiration_ms=producer_id_expiration_ms,
        retention_wait_for_group=values["tidelog.retention.wait.for.group"],
        **{name.replace(".", "_"): values[name] for name in _AS_THEY_ARE},
    )


def _codec(name: str) -> Codec | None:
    return None if name == "producer" else Codec.NONE if name == "uncompressed" else Codec.named(name)


def config_entry(definition: Definition, synonyms: Sequence[ConfigSynonym], text: str | None) -> ConfigEntry:
    secret = definition.is_sensitive
    if text is None and synonyms:
        text = synonyms[0].value
    return ConfigEntry(
        name=definition.name,
        value=None if secret else text,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        is_sensitive=secret,
        read_only=not definition.dynamic,
        type=definition.type,
        synonyms=tuple(ConfigSynonym(s.name, None if secret else s.value, s.source) for s in synonyms),
        documentation=definition.documentation,
    )


# Altering: from what is set on a resource to what will be


def defined(table: Mapping[str, Definition], kind: str, name: str) -> Definition:
    definition = table.get(name)
    if definition is None:
        if kind == GROUP and name.startswith(_OTHER_GROUPS):
            raise InvalidConfig(
                f"{name[:100]} is not taken: there are no {name.partition('.')[0]} groups here, so nothing would"
                f" follow it; what groups have is {', '.join(table)}"
            )
        close = _closest(table, kind, name)
        raise InvalidConfig(f"unknown {kind} config {name[:100]!r}" + (f"; did you mean {close}?" if close else ""))
    return definition


def _closest(table: Mapping[str, Definition], kind: str, name: str) -> str | None:
    """What somebody who wrote this probably meant: the name on the other kind of resource, or a similar one."""
    for topic in TOPIC_CONFIGS.values():
        if kind == TOPIC and name in dict(topic.synonyms):
            return topic.name
        if kind == BROKER and name == topic.name and topic.synonyms:
            return topic.synonyms[0][0]
    if kind == GROUP and name.removeprefix("group.") in table:
        return name.removeprefix("group.")
    import difflib

    return next(iter(difflib.get_close_matches(name[:100], table, 1)), None)


def edited(
    table: Mapping[str, Definition],
    kind: str,
    current: Mapping[str, str],
    edit: Edit,
    inherited: Callable[[str], str],
) -> dict[str, str]:
    """What is set on a resource after the edit. A list that is not set yet grows from what the resource inherits."""
    after = dict(current)
    if isinstance(edit, Replace):
        edit, after = Alter([Alteration(name, Operation.SET, value) for name, value in edit.configs]), {}
    _refuse_repetition(alteration.name for alteration in edit.alterations)
    for alteration in edit.alterations:
        name, operation, text = alteration.name, alteration.operation, alteration.value
        definition = defined(table, kind, name)
        if operation == Operation.DELETE:
            after.pop(name, None)
            continue
        if operation not in tuple(Operation):
            raise InvalidInput(f"unknown operation {operation} on {name}")
        if text is None:
            raise InvalidInput(f"no value given for {name}")
        if operation != Operation.SET:
            if definition.type is not ConfigType.LIST:
                raise InvalidConfig(f"{name} is not a list: nothing can be appended to it or subtracted from it")
            had, given = split(current[name] if name in current else inherited(name)), split(text)
            kept = had + given if operation == Operation.APPEND else tuple(item for item in had if item not in given)
            text = ",".join(dict.fromkeys(kept))
        value = definition.parse(text)
        if name == "tidelog.table" and value is True and not is_installed():
            raise InvalidConfig(f"{name} cannot be true here: {INSTALL}")
        after[name] = rendered(value)
    return after


def _refuse_repetition(names: Iterable[str]) -> None:
    seen = set()
    for name in names:
        if name in seen:
            raise InvalidInput(f"{name} is given more than once")
        seen.add(name)


def row_changes(kind: str, resource: str, before: Mapping[str, str], after: Mapping[str, str]) -> list[Change]:
    """What to write so that the store has `after` instead of `before`."""
    gone: list[Change] = [Delete(ConfigRow, (kind, resource, name)) for name in before if name not in after]
    return gone + [
        Put(ConfigRow(kind, resource, name, value)) for name, value in after.items() if before.get(name) != value
    ]


def keep_known(table: Mapping[str, Definition], row: ConfigRow, into: dict[str, str]) -> None:
    """A stored config, unless this program no longer takes it: that must not keep a broker from starting."""
    try:
        into[row.name] = rendered(defined(table, row.kind, row.name).parse(row.value))
    except InvalidConfig as error:
        log.warning("a stored config is ignored", kind=row.kind, resource=row.resource, reason=str(error))


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Do the work also when the caller is cancelled: what is written is applied, so memory never lags the store."""
    return await asyncio.shield(asyncio.ensure_future(work))
