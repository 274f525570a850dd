"""Kafka's configs of topics and brokers: which exist, which values are valid, where a value comes from, and the value
in force. The configs of groups are in `group_configs`, and are altered in the same way.

The definitions are in `config_table`. If Tidelog has its own setting for a config of Kafka, such as the addresses to
listen on, the config can be read but not set (`OWN_SETTINGS`).

A topic config has the value set on the topic, or else the first value that is found among its synonyms on the broker,
in these layers: set for this broker, set for all brokers, from the settings, default. `TopicConfig` has the resulting
values, in the types that the rest of the broker works with.

Tidelog's own `tidelog.flush` decides when appends become durable. Kafka's flush.ms and flush.messages keep their
meaning: setting one of them selects the policy `interval`, unless `tidelog.flush` is set on the same level. Configs
of the topic take precedence over those of the broker. A value of 2^63 - 1, Kafka's own default (never), selects
nothing, so that a topic that spells out all of Kafka's defaults keeps the durability of `acks`.

    InvalidInput (errors.py)   an invalid request: a config given twice, no value, read-only
    └── InvalidConfig          a name or a value that Tidelog does not accept
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from enum import IntEnum
from itertools import dropwhile
from typing import Any, NamedTuple, TypeAlias

import structlog

from tidelog.broker.config_table import (
    BROKER_CONFIGS,
    BROKER_DEFAULTS,
    BROKER_SYNONYMS,
    NEVER,
    TOPIC_CONFIGS,
    ConfigType,
    Definition,
    InvalidConfig,
    Value,
    rendered,
    split,
)
from tidelog.broker.shell import to_the_end
from tidelog.broker.writes import Writes
from tidelog.errors import InvalidInput, InvalidSettings
from tidelog.metadata.rows import ConfigRow
from tidelog.metadata.store import Change, Delete, Put
from tidelog.model import TimestampType
from tidelog.records.compression import Codec
from tidelog.records.validation import Level
from tidelog.settings import UNLIMITED, CleanerSettings, CompactionSettings, FlushPolicy, LogSettings
from tidelog.storage.table import INSTALL, is_installed

TOPIC = "topic"  # kinds of `ConfigRow`
BROKER = "broker"
GROUP = "group"
ALL_BROKERS = ""  # the resource that stands for every broker

# Configs that follow from one of Tidelog's own settings -> that setting
OWN_SETTINGS = {
    "advertised.listeners": "listeners",
    "broker.id": "node-id",
    "listener.security.protocol.map": "listeners",
    "listeners": "listeners",
    "log.dir": "data-dir",
    "log.dirs": "data-dir",
    "node.id": "node-id",
}
_OTHER_GROUPS = ("share.", "streams.")  # kinds of groups that Kafka has, and Tidelog does not
_LONGEST_TIMER_MS = 2**31 - 1
_MOST_CONFIGS_CACHED = 1024  # topics often have the same configs

log = structlog.get_logger("tidelog.broker")


class ConfigSource(IntEnum):
    """Where a value comes from. The numbers are those of DescribeConfigs."""

    TOPIC = 1
    BROKER = 2
    ALL_BROKERS = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    GROUP = 8


class Operation(IntEnum):
    """The numbers are those of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Alteration(NamedTuple):
    name: str
    operation: int  # an `Operation`; from a client it may be any number
    value: str | None = None


class Alter(NamedTuple):
    """IncrementalAlterConfigs: configs that are not mentioned keep their values."""

    alterations: Sequence[Alteration]


class Replace(NamedTuple):
    """AlterConfigs: configs that are not mentioned are reset to their defaults."""

    configs: Sequence[tuple[str, str | None]]


Edit: TypeAlias = Alter | Replace


class ConfigSynonym(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """A line of DescribeConfigs. The value of a sensitive config is never included. `synonyms` has all places that
    set a value, in order of precedence: the first is in force."""

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
    """The configs of a topic that are in force. Configs without a meaning on a single node are left out."""

    compacted: bool
    table: bool  # the last value of each key can be looked up
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
    retention_wait_for_group: str  # empty: retention waits for no group
    segment_bytes: int
    segment_ms: int
    segment_jitter_ms: int
    segment_index_bytes: int
    index_interval_bytes: int
    flush: FlushPolicy
    flush_ms: int
    flush_messages: int
    producer_id_expiration_ms: int
    validate: Level  # how thoroughly produced batches are checked

    def log_settings(self, spread: float = 0.0) -> LogSettings:
        """`spread`, from 0 to 1, is the partition's share of segment.jitter.ms, so that partitions do not all start a
        new segment at the same time."""
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
    """The broker's configs in their layers, which are also the defaults of all topics."""

    def __init__(self, static: Mapping[str, str] | None = None, *, node_id: int = 0) -> None:
        self.node_id = node_id
        self.on_change: list[Callable[[], None]] = []
        self.is_other_broker: Callable[[str], bool] = lambda _resource: False
        """Whether a resource is another broker of the cluster, whose configs the controller may alter."""
        problems = []
        fixed = {"node.id": str(node_id), "broker.id": str(node_id)}
        for name, text in (static or {}).items():
            try:
                if name in OWN_SETTINGS:
                    raise InvalidConfig(f"{name} cannot be set as a config: use the setting {OWN_SETTINGS[name]}")
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
        """Load what was altered in earlier runs. For startup: listeners are not called."""
        for row in rows:
            if row.kind == BROKER:  # also those of other brokers: this one may have to alter them
                keep_known(BROKER_CONFIGS, row, self._dynamic.setdefault(row.resource, {}))
        self._refresh()

    def reload(self, rows: Iterable[ConfigRow]) -> None:
        """Apply all that other brokers have altered. Listeners are called if something is different."""
        before, self._dynamic = self._dynamic, {str(self.node_id): {}, ALL_BROKERS: {}}
        try:
            self.load(rows)
        except InvalidConfig as error:
            self._dynamic = before
            self._refresh()
            log.warning("configs of the cluster contradict this broker's settings and are ignored", reason=str(error))
        if self._dynamic != before:
            for listener in self.on_change:
                listener()

    def show(self, facts: Mapping[str, str]) -> None:
        """Set the values of the configs in `OWN_SETTINGS`, which the node knows once it listens."""
        self._static |= {name: rendered(BROKER_CONFIGS[name].parse(text)) for name, text in facts.items()}

    def value(self, name: str) -> Value | None:
        """The value in force; None if the config has no value."""
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
        """All layers in which these names have a value, in order of precedence."""
        names = tuple(names)
        return [
            ConfigSynonym(name, layer[name], source)
            for source, layer in self._layers
            for name in names
            if name in layer
        ]

    def _found_of_broker(self, name: str) -> list[ConfigSynonym]:
        """The layers in which this broker config has a value, followed by its synonyms in other units that would
        apply without it. Empty, as in Kafka, if only synonyms have a value."""
        found = self.found(BROKER_SYNONYMS.get(name, (name,)))
        return list(dropwhile(lambda synonym: synonym.name != name, found))

    def topic_config(self, overrides: Mapping[str, str]) -> TopicConfig:
        """The config in force for a topic that sets `overrides`. Raises InvalidConfig if values contradict."""
        key = frozenset(overrides.items())
        config = self._topic_configs.get(key)
        if config is None:
            values = self._topic_values | {name: TOPIC_CONFIGS[name].parse(text) for name, text in overrides.items()}
            config = _topic_config(values, _flush_policy(overrides) or self._flush, self._producer_id_expiration_ms)
            if len(self._topic_configs) < _MOST_CONFIGS_CACHED:
                self._topic_configs[key] = config
        return config

    def topic_default(self, name: str) -> str:
        """The value that a topic inherits if it does not set this config."""
        return rendered(self._topic_values[name])

    def describe(self, resource: str, names: Collection[str] | None = None) -> list[ConfigEntry]:
        """All configs of this broker, or those set for all brokers; only those in `names`, if it is given."""
        own = self._of(resource, may_be_other=False)
        wanted = [name for name in BROKER_CONFIGS if not names or name in names]
        if resource != ALL_BROKERS:
            return [config_entry(BROKER_CONFIGS[name], self._found_of_broker(name), None) for name in wanted]
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
                text = _flush_policy(overrides) or self._flush  # flush.ms and flush.messages may select a policy
            entries.append(config_entry(definition, synonyms, text))
        return entries

    async def alter(self, writes: Writes, resource: str, edit: Edit, *, validate_only: bool = False) -> None:
        """The change is in force when this returns; at another broker of a cluster, a second later. `resource` is the
        number of a broker, or ALL_BROKERS."""
        await to_the_end(self._alter(writes, resource, edit, validate_only))

    async def _alter(self, writes: Writes, resource: str, edit: Edit, validate_only: bool) -> None:
        async with self._turn:
            before = self._of(resource, may_be_other=True)
            after = edited(BROKER_CONFIGS, BROKER, before, edit, self._text_in_force)
            for name, _ in sorted(before.items() ^ after.items()):
                if not BROKER_CONFIGS[name].dynamic:
                    raise InvalidInput(f"{name} is read-only: set it in the broker's settings and restart the broker")
            trial = copy(self)
            trial.node_id = int(resource) if resource != ALL_BROKERS else self.node_id
            trial._dynamic = self._dynamic | {resource: after}
            trial._refresh()
            if validate_only:
                return
            await writes.decided(row_changes(BROKER, resource, before, after))
            self._dynamic[resource] = after
            self._refresh()
        for listener in self.on_change:
            listener()

    def _of(self, resource: str, *, may_be_other: bool) -> dict[str, str]:
        if resource in (str(self.node_id), ALL_BROKERS) or (may_be_other and self.is_other_broker(resource)):
            return self._dynamic.get(resource, {})
        raise InvalidInput(
            f"there is no broker {resource!r} here: use {self.node_id}, or an empty name for all brokers"
        )

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
        self.topic_config({})  # raises if the defaults contradict each other

    def _inherited(self, definition: Definition, synonyms: Sequence[ConfigSynonym]) -> str:
        """The value of the first synonym, in the unit of the topic config."""
        if not synonyms or synonyms[0].value is None:
            return definition.default or ""
        factor = dict(definition.synonyms).get(synonyms[0].name, 1)
        text = synonyms[0].value
        return text if factor == 1 else str(max(-1, int(text) * factor))  # below zero: unlimited

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
    """The policy that the configs of one level (a topic's, or the broker's) select; None: they select none."""
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
        validate=Level(values["tidelog.validate"]),
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


# Altering: from the configs set on a resource to those set after an edit


def defined(table: Mapping[str, Definition], kind: str, name: str) -> Definition:
    definition = table.get(name)
    if definition is None:
        if kind == GROUP and name.startswith(_OTHER_GROUPS):
            raise InvalidConfig(
                f"{name[:100]} is not supported: there are no {name.partition('.')[0]} groups here; a group has the"
                f" configs {', '.join(table)}"
            )
        close = _closest(table, kind, name)
        raise InvalidConfig(f"unknown {kind} config {name[:100]!r}" + (f"; did you mean {close}?" if close else ""))
    return definition


def _closest(table: Mapping[str, Definition], kind: str, name: str) -> str | None:
    """The name that the user probably meant: the one for the other kind of resource, or a similar one."""
    for topic in TOPIC_CONFIGS.values():
        if kind == TOPIC and name in dict(topic.synonyms):
            return topic.name
        if kind == BROKER and name == topic.name and topic.synonyms:
            return topic.synonyms[0][0]
    if kind == GROUP and name.removeprefix("group.") in table:
        return name.removeprefix("group.")
    import difflib

    return next(iter(difflib.get_close_matches(name[:100], table, 1)), None)


def sets_something(edit: Edit) -> bool:
    """False if the edit only resets configs to their defaults."""
    if isinstance(edit, Replace):
        return bool(edit.configs)
    return any(alteration.operation != Operation.DELETE for alteration in edit.alterations)


def edited(
    table: Mapping[str, Definition],
    kind: str,
    current: Mapping[str, str],
    edit: Edit,
    inherited: Callable[[str], str],
) -> dict[str, str]:
    """The configs set on a resource after the edit. Appending to a list that is not set starts from the inherited
    value."""
    after = dict(current)
    if isinstance(edit, Replace):
        edit, after = Alter([Alteration(name, Operation.SET, value) for name, value in edit.configs]), {}
    _refuse_repetition(alteration.name for alteration in edit.alterations)
    for alteration in edit.alterations:
        name, operation, text = alteration.name, alteration.operation, alteration.value
        if operation == Operation.DELETE:  # of any name: as in Kafka, deleting an unknown config is no error
            after.pop(name, None)
            continue
        definition = defined(table, kind, name)
        if operation not in tuple(Operation):
            raise InvalidInput(f"unknown operation {operation} on {name}")
        if text is None:
            raise InvalidInput(f"no value given for {name}")
        if operation != Operation.SET:
            if definition.type is not ConfigType.LIST:
                raise InvalidConfig(f"{name} is not a list: APPEND and SUBTRACT work on lists only")
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
    """The changes that replace `before` by `after` in the store."""
    gone: list[Change] = [Delete(ConfigRow, (kind, resource, name)) for name in before if name not in after]
    return gone + [
        Put(ConfigRow(kind, resource, name, value)) for name, value in after.items() if before.get(name) != value
    ]


def keep_known(table: Mapping[str, Definition], row: ConfigRow, into: dict[str, str]) -> None:
    """Add a stored config to `into`, or ignore it if this version no longer accepts it: that must not keep a broker
    from starting."""
    try:
        into[row.name] = rendered(defined(table, row.kind, row.name).parse(row.value))
    except InvalidConfig as error:
        log.warning("a stored config is invalid and ignored", kind=row.kind, resource=row.resource, reason=str(error))
