"""Configs: what is taken, who wins, what it amounts to, what is shown, and how it is altered."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
import structlog
from hypothesis import given, settings

from tidelog.broker.config_table import (
    BROKER_CONFIGS,
    NEVER,
    TOPIC_CONFIGS,
    ConfigType,
    Definition,
    InvalidConfig,
    rendered,
)
from tidelog.broker.configs import (
    ALL_BROKERS,
    Alter,
    Alteration,
    BrokerConfig,
    ConfigEntry,
    ConfigSource,
    ConfigSynonym,
    Edit,
    Operation,
    Replace,
    edited,
)
from tidelog.broker.writes import Writes
from tidelog.errors import InvalidInput, InvalidSettings, TidelogError
from tidelog.metadata.rows import ConfigRow
from tidelog.metadata.sqlite import SqliteStore
from tidelog.model import TimestampType
from tidelog.records.compression import Codec
from tidelog.settings import CleanerSettings, CompactionSettings, FlushPolicy, LogSettings

HOUR_MS = 3_600_000
SET, DELETE, APPEND, SUBTRACT = Operation


def brokers(**static: str) -> BrokerConfig:
    return BrokerConfig({name.replace("_", "."): value for name, value in static.items()})


def entry(entries: list[ConfigEntry], name: str) -> ConfigEntry:
    (found,) = (each for each in entries if each.name == name)
    return found


# The definitions


def test_every_definition_is_whole() -> None:
    for table in (TOPIC_CONFIGS, BROKER_CONFIGS):
        for name, definition in table.items():
            assert definition.name == name
            assert definition.documentation.endswith("."), name
            assert definition.valid_in_words() or not definition.valid
            if definition.default is not None:
                assert rendered(definition.parse(definition.default)) == definition.default
            for synonym, _ in definition.synonyms:
                assert BROKER_CONFIGS[synonym].type in (definition.type, ConfigType.INT)


def test_kafkas_topic_configs_are_there_with_kafkas_defaults() -> None:
    defaults = {name: definition.default for name, definition in TOPIC_CONFIGS.items()}
    assert defaults == {
        "cleanup.policy": "delete",
        "compression.gzip.level": "-1",
        "compression.lz4.level": "9",
        "compression.type": "producer",
        "compression.zstd.level": "3",
        "delete.retention.ms": "86400000",
        "file.delete.delay.ms": "60000",
        "flush.messages": "10000",  # Kafka: never. Here only the policy `interval` uses it.
        "flush.ms": "1000",  # likewise
        "follower.replication.throttled.replicas": "",
        "index.interval.bytes": "4096",
        "leader.replication.throttled.replicas": "",
        "local.retention.bytes": "-2",
        "local.retention.ms": "-2",
        "max.compaction.lag.ms": "9223372036854775807",
        "max.message.bytes": "1048588",
        "message.timestamp.after.max.ms": "3600000",
        "message.timestamp.before.max.ms": "9223372036854775807",
        "message.timestamp.type": "CreateTime",
        "min.cleanable.dirty.ratio": "0.5",
        "min.compaction.lag.ms": "0",
        "min.insync.replicas": "1",
        "preallocate": "false",
        "remote.log.copy.disable": "false",
        "remote.log.delete.on.disable": "false",
        "remote.storage.enable": "false",
        "retention.bytes": "-1",
        "retention.ms": "604800000",
        "segment.bytes": "1073741824",
        "segment.index.bytes": "10485760",
        "segment.jitter.ms": "0",
        "segment.ms": "604800000",
        "tidelog.flush": "acks",
        "tidelog.retention.wait.for.group": "",
        "tidelog.table": "false",
        "tidelog.validate": "auto",
        "unclean.leader.election.enable": "false",
    }


def test_without_any_config_a_log_has_the_default_settings() -> None:
    assert brokers().topic_config({}).log_settings() == LogSettings()


@pytest.mark.parametrize(
    ("name", "text", "canonical"),
    [
        ("preallocate", " TRUE ", "true"),
        ("segment.bytes", "+2048", "2048"),
        ("retention.ms", "-1", "-1"),
        ("retention.ms", "9223372036854775807", "9223372036854775807"),
        ("cleanup.policy", "compact , delete", "compact,delete"),
        ("cleanup.policy", "", ""),
        ("min.cleanable.dirty.ratio", "1", "1.0"),
        ("min.cleanable.dirty.ratio", "5e-1", "0.5"),
        ("compression.gzip.level", "-1", "-1"),
        ("compression.zstd.level", "-131072", "-131072"),
        ("leader.replication.throttled.replicas", "*", "*"),
        ("leader.replication.throttled.replicas", "0:1, 12:0", "0:1,12:0"),
        ("remote.storage.enable", "false", "false"),
        ("message.timestamp.type", "LogAppendTime", "LogAppendTime"),
    ],
)
def test_a_good_value_is_taken_in_its_canonical_form(name: str, text: str, canonical: str) -> None:
    assert rendered(TOPIC_CONFIGS[name].parse(text)) == canonical


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("preallocate", "yes", "true or false"),
        ("segment.bytes", "", "a whole number of 32 bits"),
        ("segment.bytes", "1e9", "a whole number of 32 bits"),
        ("segment.bytes", "1_000_000", "a whole number of 32 bits"),
        ("segment.bytes", "2147483648", "a whole number of 32 bits"),
        ("segment.bytes", "٣٣٣٣", "a whole number of 32 bits"),
        ("segment.bytes", "1000", "at least 1024"),
        ("retention.ms", "9223372036854775808", "a whole number of 64 bits"),
        ("retention.ms", "-2", "at least -1"),
        ("min.cleanable.dirty.ratio", "nan", "a number"),
        ("min.cleanable.dirty.ratio", "1.1", "between 0 and 1"),
        ("cleanup.policy", "delete,shred", "a list of compact or delete"),
        ("cleanup.policy", "delete,delete", "a list without repetitions"),
        ("cleanup.policy", "Delete", "a list of compact or delete"),
        ("compression.type", "brotli", "uncompressed or zstd or lz4 or snappy or gzip or producer"),
        ("compression.gzip.level", "0", "-1 or between 1 and 9"),
        ("compression.lz4.level", "18", "between 1 and 17"),
        ("message.timestamp.type", "createtime", "CreateTime or LogAppendTime"),
        ("leader.replication.throttled.replicas", "0-1", "something that matches"),
        ("remote.storage.enable", "true", "false"),
        ("tidelog.flush", "never", "acks or always or interval or os"),
        ("tidelog.validate", "none", "auto or header or full"),
    ],
)
def test_a_bad_value_is_refused_with_what_it_should_be(name: str, text: str, wanted: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        TOPIC_CONFIGS[name].parse(text)
    assert name in str(refused.value)
    assert wanted in str(refused.value)
    assert refused.value.kafka_code == 40


def test_a_value_has_a_longest_length() -> None:
    with pytest.raises(InvalidConfig, match="at most 32767"):
        TOPIC_CONFIGS["leader.replication.throttled.replicas"].parse("0:1," * 10_000)


# Who wins


@pytest.mark.parametrize(
    ("static", "expected"),
    [
        ({}, 7 * 24 * HOUR_MS),
        ({"log.retention.hours": "2"}, 2 * HOUR_MS),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
    ],
)
def test_the_finest_unit_that_is_set_gives_the_default_of_retention(static: dict[str, str], expected: int) -> None:
    assert BrokerConfig(static).topic_config({}).retention_ms == expected
    assert BrokerConfig(static).topic_config({"retention.ms": "5"}).retention_ms == 5


def test_what_is_set_nearer_to_the_topic_wins(tmp_path: Path) -> None:
    broker = BrokerConfig({"message.max.bytes": "1000"}, node_id=3)
    assert broker.topic_config({}).max_message_bytes == 1000
    broker.load([ConfigRow("broker", "", "message.max.bytes", "2000")])
    assert broker.topic_config({}).max_message_bytes == 2000
    broker.load([ConfigRow("broker", "3", "message.max.bytes", "3000")])
    assert broker.topic_config({}).max_message_bytes == 3000
    assert broker.topic_config({"max.message.bytes": "4000"}).max_message_bytes == 4000
    assert broker.describe_topic({"max.message.bytes": "4000"}, ["max.message.bytes"])[0].synonyms == (
        ConfigSynonym("max.message.bytes", "4000", ConfigSource.TOPIC),
        ConfigSynonym("message.max.bytes", "3000", ConfigSource.BROKER),
        ConfigSynonym("message.max.bytes", "2000", ConfigSource.ALL_BROKERS),
        ConfigSynonym("message.max.bytes", "1000", ConfigSource.STATIC_BROKER),
        ConfigSynonym("message.max.bytes", "1048588", ConfigSource.DEFAULT),
    )


def test_all_problems_of_the_settings_are_told_together() -> None:
    with pytest.raises(InvalidSettings) as refused:
        brokers(
            num_partition="3",
            log_retention_ms="soon",
            auto_create_topics_enable="true",
            log_cleaner_min_compaction_lag_ms="2",
            log_cleaner_max_compaction_lag_ms="1",
        )
    assert refused.value.problems == [
        "unknown broker config 'num.partition'; did you mean num.partitions?",
        "invalid value for log.retention.ms: 'soon' is not a whole number of 64 bits",
        "min.compaction.lag.ms (2) is above max.compaction.lag.ms (1)",
    ]


def test_a_stored_config_that_is_no_longer_taken_does_not_keep_the_broker_from_starting() -> None:
    broker = brokers()
    with structlog.testing.capture_logs() as logs:
        broker.load(
            [
                ConfigRow("broker", "0", "from.the.future", "1"),
                ConfigRow("broker", "0", "log.segment.bytes", "tiny"),
                ConfigRow("broker", "0", "log.segment.ms", "5"),
                ConfigRow("broker", "0", "log.roll.ms", "5"),
                ConfigRow("broker", "77", "log.roll.ms", "6"),
                ConfigRow("topic", "0", "log.roll.ms", "7"),
            ]
        )
    assert len(logs) == 3
    assert broker.topic_config({}).segment_ms == 5


def test_values_have_the_types_of_their_definitions() -> None:
    broker = brokers(auto_create_topics_enable="FALSE", num_partitions="4")
    assert broker.flag("auto.create.topics.enable") is False
    assert broker.number("num.partitions") == 4
    assert broker.value("log.retention.ms") is None


# What it amounts to


@pytest.mark.parametrize(
    ("configs", "expected"),
    [
        ({"cleanup.policy": "compact"}, {"compacted": True, "expiring": False}),
        ({"cleanup.policy": "compact,delete"}, {"compacted": True, "expiring": True}),
        ({"cleanup.policy": ""}, {"compacted": False, "expiring": False}),
        ({"compression.type": "producer"}, {"compression": None, "compression_level": None}),
        ({"compression.type": "uncompressed"}, {"compression": Codec.NONE, "compression_level": None}),
        ({"compression.type": "snappy"}, {"compression": Codec.SNAPPY, "compression_level": None}),
        (
            {"compression.type": "zstd", "compression.zstd.level": "7", "compression.gzip.level": "2"},
            {"compression": Codec.ZSTD, "compression_level": 7},
        ),
        ({"message.timestamp.type": "LogAppendTime"}, {"message_timestamp_type": TimestampType.LOG_APPEND_TIME}),
        ({"message.timestamp.before.max.ms": "7"}, {"message_timestamp_before_max_ms": 7}),
        ({"min.cleanable.dirty.ratio": "0.1"}, {"min_cleanable_dirty_ratio": 0.1}),
        ({"min.insync.replicas": "2", "unclean.leader.election.enable": "true", "preallocate": "true"}, {}),
    ],
)
def test_the_configs_of_a_topic_amount_to(configs: dict[str, str], expected: dict[str, Any]) -> None:
    plain = brokers().topic_config({})
    assert brokers().topic_config(configs) == replace(plain, **expected)


@pytest.mark.parametrize(
    ("configs", "expected"),
    [
        ({"segment.bytes": "4096", "segment.ms": "9"}, {"segment_bytes": 4096, "segment_ms": 9}),
        (
            {"index.interval.bytes": "0", "segment.index.bytes": "24"},
            {"index_interval_bytes": 0, "segment_index_bytes": 24},
        ),
        ({"retention.ms": "5", "retention.bytes": "6"}, {"retention_ms": 5, "retention_bytes": 6}),
        (
            {"retention.ms": "5", "cleanup.policy": "compact"},
            {"retention_ms": -1, "compaction": CompactionSettings()},
        ),
        (
            {
                "cleanup.policy": "compact,delete",
                "delete.retention.ms": "1",
                "min.compaction.lag.ms": "2",
                "min.cleanable.dirty.ratio": "0.25",
            },
            {"compaction": CompactionSettings(delete_retention_ms=1, min_lag_ms=2, min_dirty_ratio=0.25)},
        ),
        ({"retention.bytes": "5", "cleanup.policy": ""}, {"retention_ms": -1, "retention_bytes": -1}),
        ({"max.message.bytes": "100"}, {"max_message_bytes": 100}),
        ({"max.compaction.lag.ms": "50"}, {}),
        (
            {"max.compaction.lag.ms": "50", "cleanup.policy": "compact,delete"},
            {"segment_ms": 50, "compaction": CompactionSettings(max_lag_ms=50)},
        ),
        ({"tidelog.flush": "interval", "flush.ms": "0"}, {"flush": FlushPolicy.INTERVAL, "flush_ms": 1}),
    ],
)
def test_the_log_of_a_topic_is_kept_so(configs: dict[str, str], expected: dict[str, Any]) -> None:
    assert brokers().topic_config(configs).log_settings() == replace(LogSettings(), **expected)


def test_jitter_spreads_the_age_at_which_segments_end() -> None:
    config = brokers().topic_config({"segment.ms": "1000", "segment.jitter.ms": "400"})
    assert [config.log_settings(spread).segment_ms for spread in (0.0, 0.5, 0.999)] == [1000, 800, 601]
    config = brokers().topic_config({"segment.ms": "1000", "segment.jitter.ms": str(NEVER)})
    assert config.log_settings(0.9999).segment_ms == 1


def test_an_idempotent_producer_is_remembered_as_long_as_the_broker_says() -> None:
    broker = brokers(producer_id_expiration_ms="1234")
    assert broker.topic_config({}).log_settings().producer_id_expiration_ms == 1234


ACKS, ALWAYS, INTERVAL, OS = FlushPolicy


@pytest.mark.parametrize(
    ("static", "topic", "policy"),
    [
        ({}, {}, ACKS),
        ({}, {"tidelog.flush": "always"}, ALWAYS),
        ({}, {"flush.ms": "100"}, INTERVAL),
        ({}, {"flush.messages": "1"}, INTERVAL),
        ({}, {"flush.messages": "1", "tidelog.flush": "acks"}, ACKS),
        ({}, {"flush.messages": str(NEVER), "flush.ms": str(NEVER)}, ACKS),
        ({}, {"flush.messages": str(NEVER), "flush.ms": "5"}, INTERVAL),
        ({"log.flush.interval.ms": "100"}, {}, INTERVAL),
        ({"log.flush.interval.messages": "100"}, {}, INTERVAL),
        ({"log.flush.interval.messages": str(NEVER)}, {}, ACKS),
        ({"log.flush.interval.ms": "100", "tidelog.flush": "always"}, {}, ALWAYS),
        ({"log.flush.interval.ms": "100"}, {"tidelog.flush": "os"}, OS),
        ({"tidelog.flush": "always"}, {"flush.ms": "100"}, INTERVAL),
        ({"tidelog.flush": "always"}, {"flush.ms": str(NEVER)}, ALWAYS),
        ({"tidelog.flush": "os"}, {}, OS),
    ],
)
def test_who_says_when_records_are_flushed(
    static: dict[str, str], topic: dict[str, str], policy: FlushPolicy
) -> None:
    broker = BrokerConfig(static)
    assert broker.topic_config(topic).flush is policy
    assert broker.describe_topic(topic, ["tidelog.flush"])[0].value == policy


def test_configs_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(
        InvalidConfig, match=r"min\.compaction\.lag\.ms \(10\) is above max\.compaction\.lag\.ms \(9\)"
    ):
        brokers().topic_config({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "9"})


def text_for(definition: Definition) -> st.SearchStrategy[str]:
    numbers = st.integers(-3, 30) | st.integers(-(2**63), 2**63 - 1)
    literals = st.sampled_from([rule for rule in definition.valid if ".." not in rule] or ["true"])
    return numbers.map(str) | st.floats(0, 1).map(str) | literals | st.sampled_from(["false", "", str(NEVER)])


@given(st.fixed_dictionaries({}, optional={name: text_for(definition) for name, definition in TOPIC_CONFIGS.items()}))
@settings(max_examples=200)
def test_whatever_is_taken_gives_settings_a_log_can_work_with(configs: dict[str, str]) -> None:
    taken = {}
    for name, text in configs.items():
        try:
            taken[name] = rendered(TOPIC_CONFIGS[name].parse(text))
        except InvalidConfig:
            continue
        assert rendered(TOPIC_CONFIGS[name].parse(taken[name])) == taken[name]
    try:
        config = brokers().topic_config(taken)
    except InvalidConfig:
        return
    config.log_settings()
    config.log_settings(0.99)
    described = {each.name: each.value for each in brokers().describe_topic(taken)}
    assert described == {**described, **taken}


# What is shown


def test_a_topic_shows_every_config_with_its_source() -> None:
    entries = brokers(log_roll_hours="1").describe_topic({"retention.ms": "5"})
    assert [each.name for each in entries] == list(TOPIC_CONFIGS)
    assert entry(entries, "retention.ms") == ConfigEntry(
        name="retention.ms",
        value="5",
        source=ConfigSource.TOPIC,
        is_sensitive=False,
        read_only=False,
        type=ConfigType.LONG,
        synonyms=(
            ConfigSynonym("retention.ms", "5", ConfigSource.TOPIC),
            ConfigSynonym("log.retention.hours", "168", ConfigSource.DEFAULT),
        ),
        documentation=TOPIC_CONFIGS["retention.ms"].documentation,
    )
    segment_ms = entry(entries, "segment.ms")
    assert (segment_ms.value, segment_ms.source) == (str(HOUR_MS), ConfigSource.STATIC_BROKER)
    assert segment_ms.synonyms[0] == ConfigSynonym("log.roll.hours", "1", ConfigSource.STATIC_BROKER)
    remote = entry(entries, "remote.storage.enable")
    assert (remote.value, remote.source, remote.synonyms) == ("false", ConfigSource.DEFAULT, ())


def test_only_the_configs_asked_for_are_shown() -> None:
    names = ["retention.ms", "no.such.config", "segment.ms"]
    assert [each.name for each in brokers().describe_topic({}, names)] == ["retention.ms", "segment.ms"]
    assert [each.name for each in brokers().describe("0", ["num.partitions"])] == ["num.partitions"]
    assert len(brokers().describe_topic({}, [])) == len(TOPIC_CONFIGS)


def test_a_broker_shows_its_configs_and_which_are_read_only() -> None:
    broker = BrokerConfig({"num.partitions": "3"}, node_id=5)
    broker.load([ConfigRow("broker", "", "log.segment.bytes", "2048")])
    entries = broker.describe("5")
    assert [each.name for each in entries] == list(BROKER_CONFIGS)
    shown = {each.name: (each.value, each.source, each.read_only) for each in entries}
    assert shown["num.partitions"] == ("3", ConfigSource.STATIC_BROKER, True)
    assert shown["node.id"] == ("5", ConfigSource.STATIC_BROKER, True)
    assert shown["log.segment.bytes"] == ("2048", ConfigSource.ALL_BROKERS, False)
    assert shown["log.retention.ms"] == (None, ConfigSource.DEFAULT, False)
    assert shown["log.retention.hours"] == ("168", ConfigSource.DEFAULT, True)
    assert [(each.name, each.value, each.source) for each in broker.describe(ALL_BROKERS)] == [
        ("log.segment.bytes", "2048", ConfigSource.ALL_BROKERS)
    ]
    with pytest.raises(InvalidInput, match="no broker '6' here: use 5"):
        broker.describe("6")


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("authorizer.class.name", "Strict", "authorizer.class.name cannot be set. Not supported here"),
        ("ssl.keystore.location", "/keys", "ssl.keystore.location cannot be set. Not supported here"),
        ("ssl.client.auth", "required", "only the default is accepted"),
        ("listeners", "PLAINTEXT://:9092", "listeners cannot be set as a config: use the setting listeners"),
        ("log.dirs", "/data", "use the setting data-dir"),
        ("node.id", "7", "use the setting node-id"),
        ("num.io.threads", "none", "'none' is not a whole number"),
        ("num.io.threads", "0", "'0' is not at least 1"),
    ],
)
def test_what_would_promise_something_that_is_not_there_keeps_a_broker_from_starting(
    name: str, value: str, why: str
) -> None:
    with pytest.raises(InvalidSettings, match=why):
        BrokerConfig({name: value})


def test_kafkas_defaults_can_be_spelled_out() -> None:
    """As in configuration files that people bring along."""
    taken = {"authorizer.class.name": "", "ssl.client.auth": "none", "num.io.threads": "8", "broker.rack": "r"}
    shown = {each.name: each.value for each in BrokerConfig(taken).describe("0", list(taken))}
    assert shown == taken


def test_what_the_node_learns_when_it_starts_is_shown_and_outlives_a_change() -> None:
    broker = BrokerConfig()
    broker.show({"listeners": "PLAINTEXT://127.0.0.1:9092,PLAINTEXT_2://[::1]:9093"})
    broker.load([ConfigRow("broker", "", "log.segment.bytes", "2048")])
    shown = entry(broker.describe("0"), "listeners")
    assert shown.value == "PLAINTEXT://127.0.0.1:9092,PLAINTEXT_2://[::1]:9093"
    assert (shown.source, shown.read_only) == (ConfigSource.STATIC_BROKER, True)


def test_a_secret_is_never_told() -> None:
    secret = Definition("password", ConfigType.PASSWORD, None, ("/x+/",), "A secret.")
    with pytest.raises(InvalidConfig) as refused:
        secret.parse("hunter2")
    assert "hunter2" not in str(refused.value)
    assert secret.is_sensitive


# Altering


def edit_topic(current: Mapping[str, str], edit: Edit) -> dict[str, str]:
    return edited(TOPIC_CONFIGS, "topic", current, edit, brokers().topic_default)


@pytest.mark.parametrize(
    ("before", "edit", "expected"),
    [
        ({"retention.ms": "1"}, Replace([("segment.ms", " 5 ")]), {"segment.ms": "5"}),
        ({"retention.ms": "1"}, Replace([]), {}),
        ({"retention.ms": "1"}, Alter([]), {"retention.ms": "1"}),
        ({"retention.ms": "1"}, Alter([Alteration("retention.ms", SET, "2")]), {"retention.ms": "2"}),
        ({"retention.ms": "1"}, Alter([Alteration("retention.ms", DELETE)]), {}),
        ({}, Alter([Alteration("retention.ms", DELETE, "ignored")]), {}),
        ({"retention.ms": "1"}, Alter([Alteration("no.such.config", DELETE)]), {"retention.ms": "1"}),
        ({}, Alter([Alteration("cleanup.policy", APPEND, "compact")]), {"cleanup.policy": "delete,compact"}),
        ({}, Alter([Alteration("cleanup.policy", APPEND, "delete")]), {"cleanup.policy": "delete"}),
        (
            {"cleanup.policy": ""},
            Alter([Alteration("cleanup.policy", APPEND, "compact")]),
            {"cleanup.policy": "compact"},
        ),
        (
            {"cleanup.policy": "compact,delete"},
            Alter([Alteration("cleanup.policy", SUBTRACT, "delete")]),
            {"cleanup.policy": "compact"},
        ),
        ({}, Alter([Alteration("cleanup.policy", SUBTRACT, "delete")]), {"cleanup.policy": ""}),
        ({}, Alter([Alteration("cleanup.policy", SUBTRACT, "compact")]), {"cleanup.policy": "delete"}),
    ],
)
def test_an_edit_leaves(before: dict[str, str], edit: Edit, expected: dict[str, str]) -> None:
    assert edit_topic(before, edit) == expected


@pytest.mark.parametrize(
    ("edit", "code", "why"),
    [
        (Replace([("retention.ms", "1"), ("retention.ms", "2")]), 42, "retention.ms is given more than once"),
        (Replace([("retention.ms", None)]), 42, "no value given for retention.ms"),
        (
            Replace([("log.retention.ms", "1")]),
            40,
            "unknown topic config 'log.retention.ms'; did you mean retention.ms?",
        ),
        (Replace([("xyz", "1")]), 40, "unknown topic config 'xyz'"),
        (Replace([("retention.ms", "x")]), 40, "'x' is not a whole number"),
        (Alter([Alteration("retention.ms", SET, None)]), 42, "no value given for retention.ms"),
        (Alter([Alteration("retention.ms", APPEND, "1")]), 40, "retention.ms is not a list"),
        (Alter([Alteration("retention.ms", SUBTRACT, "1")]), 40, "retention.ms is not a list"),
        (Alter([Alteration("retention.ms", 4, "1")]), 42, "unknown operation 4 on retention.ms"),
        (Alter([Alteration("retention", SET, "1")]), 40, "unknown topic config 'retention'"),
        (Alter([Alteration("cleanup.policy", APPEND, "shred")]), 40, "not a list of compact or delete"),
        (
            Alter([Alteration("retention.ms", SET, "1"), Alteration("retention.ms", DELETE)]),
            42,
            "retention.ms is given more than once",
        ),
    ],
)
def test_an_edit_is_refused_with_a_reason(edit: Edit, code: int, why: str) -> None:
    with pytest.raises(TidelogError) as refused:
        edit_topic({}, edit)
    assert refused.value.kafka_code == code
    assert why in str(refused.value)


def test_broker_configs_are_altered_durably_and_listeners_are_told(tmp_path: Path) -> None:
    path = str(tmp_path / "metadata.sqlite")

    async def play() -> None:
        store = await SqliteStore.open(path)
        broker = brokers()
        told: list[int] = []
        broker.on_change.append(lambda: told.append(broker.topic_config({}).segment_ms))
        await broker.alter(Writes(store), "0", Alter([Alteration("log.roll.ms", SET, "100")]))
        await broker.alter(Writes(store), ALL_BROKERS, Replace([("log.roll.ms", "200"), ("message.max.bytes", "9")]))
        await broker.alter(Writes(store), "0", Alter([Alteration("log.roll.ms", DELETE)]))
        await broker.alter(Writes(store), "0", Replace([("log.roll.ms", "300")]), validate_only=True)
        assert told == [100, 100, 200]
        again = brokers()
        again.load(await store.load(ConfigRow))
        assert again.describe("0") == broker.describe("0")
        assert again.topic_config({}).max_message_bytes == 9
        await store.close()

    asyncio.run(play())


def test_the_controller_alters_configs_of_other_brokers_which_do_not_hold_for_itself(tmp_path: Path) -> None:
    async def play() -> None:
        store = await SqliteStore.open(str(tmp_path / "metadata.sqlite"))
        controller = BrokerConfig({}, node_id=1)
        controller.is_other_broker = {"2", "3"}.__contains__
        edit = Replace([("log.retention.ms", "5")])
        await controller.alter(Writes(store), "2", edit)
        assert controller.topic_config({}).retention_ms != 5
        with pytest.raises(InvalidInput, match="there is no broker '4'"):
            await controller.alter(Writes(store), "4", edit)
        with pytest.raises(InvalidInput, match="there is no broker '2' here"):
            controller.describe("2")
        other = BrokerConfig({}, node_id=2)
        other.reload(await store.load(ConfigRow))
        assert other.topic_config({}).retention_ms == 5
        next_controller = BrokerConfig({}, node_id=3)
        next_controller.is_other_broker = {"1", "2"}.__contains__
        next_controller.reload(await store.load(ConfigRow))
        await next_controller.alter(Writes(store), "2", Replace([]))
        assert await store.load(ConfigRow) == []
        await store.close()

    asyncio.run(play())


@pytest.mark.parametrize(
    ("resource", "edit", "code", "why"),
    [
        ("0", Replace([("num.partitions", "3")]), 42, "num.partitions is read-only"),
        ("", Alter([Alteration("log.retention.hours", SET, "3")]), 42, "log.retention.hours is read-only"),
        ("1", Replace([]), 42, "there is no broker '1' here: use 0"),
        ("0", Replace([("retention.ms", "3")]), 40, "did you mean log.retention.ms?"),
        ("0", Replace([("log.segment.bytes", "3")]), 40, "not at least 1024"),
        (
            "0",
            Replace([("log.cleaner.min.compaction.lag.ms", "9"), ("log.cleaner.max.compaction.lag.ms", "8")]),
            40,
            "above",
        ),
    ],
)
def test_a_broker_refuses(resource: str, edit: Edit, code: int, why: str, tmp_path: Path) -> None:
    async def play() -> None:
        store = await SqliteStore.open(str(tmp_path / "metadata.sqlite"))
        broker = brokers()
        before = broker.describe("0")
        with pytest.raises(TidelogError) as refused:
            await broker.alter(Writes(store), resource, edit)
        assert refused.value.kafka_code == code
        assert why in str(refused.value)
        assert broker.describe("0") == before
        assert await store.load(ConfigRow) == []
        await store.close()

    asyncio.run(play())


def test_the_cleaner_is_set_by_the_broker_and_while_it_runs() -> None:
    config = brokers()
    assert config.cleaner_settings() == CleanerSettings(bytes_per_second=1.7976931348623157e308)
    altered = BrokerConfig(
        {
            "log.cleaner.backoff.ms": "7",
            "log.cleaner.dedupe.buffer.size": "2097152",
            "log.cleaner.io.buffer.load.factor": "0.5",
            "log.cleaner.io.max.bytes.per.second": "5000",
        }
    )
    assert altered.cleaner_settings() == CleanerSettings(2 << 20, 0.5, 5000.0, 7)
