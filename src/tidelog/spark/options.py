"""The options of `format("tidelog")`: those of Spark's Kafka source and sink, and a few more, as frozen values.

Spark passes options with lower-case names. Every name is looked up in the tables below: an unknown name is refused
with the most similar known one, a name that Spark's Kafka source refuses is refused for the same reason, and options
that matter to a Kafka consumer but not here are accepted and ignored. All problems are reported together.
"""

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tidelog.client.options import Acks, ClientOptions, FetchOptions, ProducerOptions, parse_bootstrap
from tidelog.errors import InvalidSettings
from tidelog.records.compression import Codec

EARLIEST, LATEST = "earliest", "latest"
EARLIEST_OFFSET, LATEST_OFFSET = -2, -1

PerPartition: TypeAlias = dict[str, dict[int, int]]
"""Offsets or times by topic and partition."""
ReadFrom: TypeAlias = Literal["auto", "broker", "files"]
ValueFormat: TypeAlias = Literal["binary", "string", "json", "avro"]
Mode: TypeAlias = Literal["PERMISSIVE", "FAILFAST"]
Delivery: TypeAlias = Literal["at-least-once", "exactly-once"]

DEFAULT_VALUE_FORMAT: ValueFormat = "binary"
TRANSACTION_TIMEOUT_MS = 15 * 60_000  # the most that brokers allow by default

_SUBSCRIPTIONS = ("subscribe", "subscribePattern", "assign")
_CONNECTION = (
    "kafka.bootstrap.servers",
    "bootstrap.servers",
    "kafka.client.id",
    "kafka.request.timeout.ms",
    "kafka.default.api.timeout.ms",
    "kafka.security.protocol",
)
_READ = (
    *_CONNECTION,
    *_SUBSCRIPTIONS,
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "startingOffsetsByTimestamp",
    "endingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "maxRecordsPerPartition",
    "minPartitions",
    "failOnDataLoss",
    "includeHeaders",
    "groupIdPrefix",
    "isolation",
    "read",
    "keyFormat",
    "valueFormat",
    "schema",
    "mode",
    "kafka.group.id",
    "kafka.isolation.level",
    "kafka.fetch.max.bytes",
    "kafka.fetch.min.bytes",
    "kafka.fetch.max.wait.ms",
    "kafka.max.partition.fetch.bytes",
    "kafka.check.crcs",
)
_WRITE = (
    *_CONNECTION,
    "topic",
    "compression",
    "delivery",
    "keepTimestamp",
    "kafka.acks",
    "kafka.compression.type",
    "kafka.batch.size",
    "kafka.buffer.memory",
    "kafka.delivery.timeout.ms",
    "kafka.enable.idempotence",
    "kafka.transaction.timeout.ms",
    "txnAppId",
    "txnVersion",
)
# Options of a Kafka consumer or producer, or of Spark's Kafka source, that have no effect here.
_IGNORED_READING = (
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "kafka.session.timeout.ms",
    "kafka.heartbeat.interval.ms",
    "kafka.max.poll.records",
    "kafka.max.poll.interval.ms",
    "kafka.receive.buffer.bytes",
    "kafka.send.buffer.bytes",
    "kafka.metadata.max.age.ms",
    "kafka.connections.max.idle.ms",
    "kafka.reconnect.backoff.ms",
    "kafka.retry.backoff.ms",
)
_IGNORED_WRITING = (
    "checkpointLocation",
    "queryName",
    "kafka.linger.ms",
    "kafka.max.request.size",
    "kafka.max.in.flight.requests.per.connection",
    "kafka.retries",
    "kafka.max.block.ms",
    "kafka.metadata.max.age.ms",
    "kafka.connections.max.idle.ms",
    "kafka.reconnect.backoff.ms",
    "kafka.retry.backoff.ms",
    "kafka.receive.buffer.bytes",
    "kafka.send.buffer.bytes",
)
_DATAFRAME = "convert columns to keys and values with expressions of the DataFrame, not with a (de)serializer"
_REFUSED = {
    "kafka.auto.offset.reset": "use startingOffsets; a query stores its own offsets",
    "kafka.enable.auto.commit": "a query stores its offsets in its checkpoint and commits none",
    "kafka.interceptor.classes": "Tidelog's client is not written in Java",
    "kafka.key.deserializer": _DATAFRAME,
    "kafka.value.deserializer": _DATAFRAME,
    "kafka.key.serializer": _DATAFRAME,
    "kafka.value.serializer": _DATAFRAME,
    "kafka.transactional.id": "each task has its own; set delivery=exactly-once",
}
_SECURITY = ("kafka.sasl.", "kafka.ssl.")
_DURATION = re.compile(r"(\d+)\s*(ms|s|m|min|h|d)?")
_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True)
class Subscription:
    """Exactly one of the three fields is set."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: PerPartition | None = None

    def __str__(self) -> str:
        if self.pattern is not None:
            return f"subscribePattern {self.pattern!r}"
        return ", ".join(self.topics or self.assigned or ())


@dataclass(frozen=True)
class Limit:
    """Where reading starts or ends: earliest or latest, offsets (-1 latest, -2 earliest), one time, or times."""

    word: str | None = None
    offsets: PerPartition | None = None
    timestamp: int | None = None
    timestamps: PerPartition | None = None
    option: str = ""
    """The name of the option."""


@dataclass(frozen=True)
class ReadSettings:
    bootstrap: str
    subscription: Subscription
    start: Limit
    end: Limit
    client: ClientOptions
    fetch: FetchOptions
    no_match: Literal["error", "latest"] = "error"
    """What to do with a partition that has no record at or after the starting time."""
    max_per_trigger: int | None = None
    min_per_trigger: int | None = None
    max_trigger_delay_ms: int = 15 * 60_000
    max_records_per_partition: int | None = None
    min_partitions: int | None = None
    fail_on_data_loss: bool = True
    include_headers: bool = False
    read: ReadFrom = "auto"
    key_format: ValueFormat = DEFAULT_VALUE_FORMAT
    value_format: ValueFormat = DEFAULT_VALUE_FORMAT
    value_schema: str | None = None
    mode: Mode = "PERMISSIVE"


@dataclass(frozen=True)
class WriteSettings:
    bootstrap: str
    topic: str | None
    client: ClientOptions
    producer: ProducerOptions
    keep_timestamp: bool = False
    delivery: Delivery = "at-least-once"
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS
    job: tuple[str, int] | None = None
    """Name and number of a batch write: the same name and number are not written twice. Streams have their own."""


@dataclass
class _Given:
    """The options as given, and the problems found so far."""

    options: dict[str, str]
    problems: list[str] = field(default_factory=list)

    def text(self, *names: str) -> str | None:
        for name in names:
            value = self.options.get(name.lower())
            if value is not None:
                return value
        return None

    def one_of(self, name: str, allowed: tuple[str, ...], default: str) -> Any:  # noqa: ANN401  (one of the words)
        value = self.text(name)
        if value is None:
            return default
        found = next((word for word in allowed if word.lower() == value.strip().lower()), None)
        if found is None:
            self.problems.append(f"{name} must be {' or '.join(allowed)}, not {value!r}")
        return found or default

    def flag(self, name: str, default: bool) -> bool:
        return bool(self.one_of(name, ("true", "false"), str(default).lower()) == "true")

    def number(self, *names: str, least: int = 1) -> int | None:
        value = self.text(*names)
        if value is None:
            return None
        if not re.fullmatch(r"\d{1,18}", value.strip()) or int(value) < least:
            self.problems.append(f"{names[0]} must be a whole number of at least {least}, not {value!r}")
            return None
        return int(value)

    def duration_ms(self, name: str, default: int) -> int:
        value = self.text(name)
        if value is None:
            return default
        match = _DURATION.fullmatch(value.strip().lower())
        if match is None:
            self.problems.append(f"{name} must be a time such as 15m, 30s or 500ms, not {value!r}")
            return default
        return int(match[1]) * _MS[match[2] or "ms"]

    def per_partition(self, name: str, value: str, example: str) -> PerPartition | None:
        """JSON such as {"orders": {"0": 23, "1": -2}}."""
        try:
            read = {
                str(topic): {int(number): _whole(at) for number, at in partitions.items()}
                for topic, partitions in json.loads(value).items()
            }
        except (ValueError, TypeError, AttributeError):
            self.problems.append(f"{name} must be JSON such as {example}, not {value!r}")
            return None
        return read


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(value)
    return value


def read_settings(options: Mapping[str, str], *, streaming: bool) -> ReadSettings:
    given = _check_names(options, _READ, _IGNORED_READING)
    bootstrap, client = _connection(given)
    subscription = _subscription(given)
    group = given.text("kafka.group.id", "groupIdPrefix")
    if group and given.text("kafka.client.id") is None:
        client = _replace_client_id(client, group)
    start = _limit(given, "starting", LATEST if streaming else EARLIEST)
    end = _limit(given, "ending", LATEST)
    _check_limits(given, start, end, streaming=streaming)
    isolation_option = "isolation" if given.text("isolation") is not None else "kafka.isolation.level"
    isolation = given.one_of(isolation_option, ("read_uncommitted", "read_committed"), "read_uncommitted")
    value_format = given.one_of("valueFormat", ("binary", "string", "json", "avro"), DEFAULT_VALUE_FORMAT)
    value_schema = given.text("schema")
    if value_schema is not None and value_format not in ("json", "avro"):
        given.problems.append("the option schema needs valueFormat=json or valueFormat=avro")
    most, least = given.number("maxOffsetsPerTrigger"), given.number("minOffsetsPerTrigger")
    if most is not None and least is not None and least > most:
        given.problems.append(f"minOffsetsPerTrigger ({least}) is above maxOffsetsPerTrigger ({most})")
    fetch = FetchOptions(
        max_wait_ms=given.number("kafka.fetch.max.wait.ms", least=0) or 500,
        min_bytes=given.number("kafka.fetch.min.bytes") or 1,
        max_bytes=given.number("kafka.fetch.max.bytes") or 50 << 20,
        partition_max_bytes=given.number("kafka.max.partition.fetch.bytes") or 8 << 20,
        read_committed=isolation == "read_committed",
        check_crcs=given.flag("kafka.check.crcs", True),
        out_of_range="error",
    )
    settings = ReadSettings(
        bootstrap=bootstrap,
        subscription=subscription,
        start=start,
        end=end,
        client=client,
        fetch=fetch,
        no_match=given.one_of("startingOffsetsByTimestampStrategy", ("error", "latest"), "error"),
        max_per_trigger=most,
        min_per_trigger=least,
        max_trigger_delay_ms=given.duration_ms("maxTriggerDelay", 15 * 60_000),
        max_records_per_partition=given.number("maxRecordsPerPartition"),
        min_partitions=given.number("minPartitions"),
        fail_on_data_loss=given.flag("failOnDataLoss", True),
        include_headers=given.flag("includeHeaders", False),
        read=given.one_of("read", ("auto", "broker", "files"), "auto"),
        key_format=given.one_of("keyFormat", ("binary", "string"), DEFAULT_VALUE_FORMAT),
        value_format=value_format,
        value_schema=value_schema,
        mode=given.one_of("mode", ("PERMISSIVE", "FAILFAST"), "PERMISSIVE"),
    )
    _raise(given)
    return settings


def write_settings(options: Mapping[str, str], *, streaming: bool) -> WriteSettings:
    given = _check_names(options, _WRITE, _IGNORED_WRITING)
    bootstrap, client = _connection(given)
    words: dict[str, Acks] = {"0": 0, "1": 1, "-1": "all", "all": "all"}
    acks = words[given.one_of("kafka.acks", tuple(words), "all")]
    codec_option = "compression" if given.text("compression") is not None else "kafka.compression.type"
    codec = given.one_of(codec_option, ("none", "gzip", "snappy", "lz4", "zstd"), "none")
    idempotent = given.flag("kafka.enable.idempotence", acks == "all")
    if idempotent and acks != "all":
        given.problems.append("kafka.enable.idempotence=true needs kafka.acks=all")
    delivery: Delivery = given.one_of("delivery", ("at-least-once", "exactly-once"), "at-least-once")
    if delivery == "exactly-once" and not (idempotent and acks == "all"):
        given.problems.append("delivery=exactly-once needs kafka.acks=all and kafka.enable.idempotence=true")
    producer = ProducerOptions(
        acks=acks,
        compression=Codec[codec.upper()],
        idempotent=idempotent and acks == "all",
        batch_bytes=given.number("kafka.batch.size", least=1024) or 1_000_000,
        buffer_bytes=given.number("kafka.buffer.memory", least=1 << 20) or 32 << 20,
        delivery_timeout_ms=given.number("kafka.delivery.timeout.ms") or 120_000,
    )
    timeout_ms = given.number("kafka.transaction.timeout.ms")
    job = _job(given, streaming=streaming)
    if delivery != "exactly-once" and (timeout_ms or job):
        given.problems.append("kafka.transaction.timeout.ms, txnAppId and txnVersion need delivery=exactly-once")
    keep = given.flag("keepTimestamp", False)
    _raise(given)
    timeout_ms = timeout_ms or TRANSACTION_TIMEOUT_MS
    return WriteSettings(bootstrap, given.text("topic"), client, producer, keep, delivery, timeout_ms, job)


def _job(given: _Given, *, streaming: bool) -> tuple[str, int] | None:
    name, number = given.text("txnAppId"), given.number("txnVersion", least=0)
    if name is None and given.text("txnVersion") is None:
        return None
    if streaming:
        given.problems.append(
            "txnAppId and txnVersion are for batch writes; a stream uses the ids of its query and batches"
        )
    elif not name or given.text("txnVersion") is None:
        given.problems.append("give txnAppId, a name, and txnVersion, a number, together or not at all")
    return (name, number) if name and number is not None else None


def _check_names(options: Mapping[str, str], known: tuple[str, ...], ignored: tuple[str, ...]) -> _Given:
    given = _Given({name.lower(): value for name, value in options.items()})
    names = {name.lower(): name for name in (*known, *ignored)}
    refused = {name.lower(): why for name, why in _REFUSED.items()}
    for name in given.options:
        if name in names or name.startswith(_SECURITY):
            continue
        if name in refused:
            given.problems.append(f"the option {name} is not supported: {refused[name]}")
            continue
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
        if not near and f"kafka.{name}" in names:
            near = [f"kafka.{name}"]
        hint = f"; did you mean {names[near[0]]}?" if near else ""
        if name == "path":
            hint = "; name the topic with the option subscribe (reading) or topic (writing), not with a path"
        given.problems.append(f"unknown option {name}{hint}")
    return given


def _connection(given: _Given) -> tuple[str, ClientOptions]:
    bootstrap = given.text("kafka.bootstrap.servers", "bootstrap.servers")
    if bootstrap is None:
        given.problems.append("the option kafka.bootstrap.servers is missing: the broker's address as host:port")
        bootstrap = ""
    else:
        try:
            parse_bootstrap(bootstrap)
        except InvalidSettings as error:
            given.problems.extend(error.problems)
    protocol = (given.text("kafka.security.protocol") or "PLAINTEXT").strip().upper()
    if protocol not in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"):
        given.problems.append(
            f"kafka.security.protocol must be PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL, not {protocol}"
        )
    elif protocol != "PLAINTEXT":
        given.problems.append(
            f"kafka.security.protocol={protocol}: Tidelog's client supports PLAINTEXT only, for now"
        )
    elif any(name.startswith(_SECURITY) for name in given.options):
        given.problems.append("options kafka.sasl.* and kafka.ssl.* need a kafka.security.protocol with SASL or SSL")
    client = ClientOptions(
        client_id=given.text("kafka.client.id") or "tidelog-spark",
        timeout_ms=given.number("kafka.default.api.timeout.ms") or 30_000,
        request_timeout_ms=given.number("kafka.request.timeout.ms") or 30_000,
    )
    return bootstrap, client


def _replace_client_id(client: ClientOptions, name: str) -> ClientOptions:
    return ClientOptions(client_id=name, timeout_ms=client.timeout_ms, request_timeout_ms=client.request_timeout_ms)


def _subscription(given: _Given) -> Subscription:
    used = [name for name in _SUBSCRIPTIONS if given.text(name) is not None]
    if len(used) != 1:
        got = f"{' and '.join(used)} are set" if used else "none is set"
        given.problems.append(f"give exactly one of subscribe, subscribePattern and assign; {got}")
        return Subscription()
    text = (given.text(used[0]) or "").strip()
    if not text:
        given.problems.append(f"{used[0]} is empty")
    elif used[0] == "subscribe":
        return Subscription(topics=tuple(dict.fromkeys(filter(None, map(str.strip, text.split(","))))))
    elif used[0] == "subscribePattern":
        try:
            re.compile(text)
        except re.error as error:
            given.problems.append(f"subscribePattern is not a regular expression: {error}")
        return Subscription(pattern=text)
    else:
        try:
            assigned = {topic: {int(number): 0 for number in numbers} for topic, numbers in json.loads(text).items()}
        except (ValueError, TypeError, AttributeError):
            given.problems.append(f'assign must be JSON such as {{"orders": [0, 1]}}, not {text!r}')
        else:
            return Subscription(assigned=assigned)
    return Subscription()


def _limit(given: _Given, which: str, default: str) -> Limit:
    """With the precedence of Spark's Kafka source: one time for all, times, offsets."""
    option = f"{which}Timestamp"
    if given.text(option) is not None:
        return Limit(timestamp=given.number(option, least=0), option=option)
    option = f"{which}OffsetsByTimestamp"
    if (text := given.text(option)) is not None:
        example = '{"orders": {"0": 1767225600000}}'
        return Limit(timestamps=given.per_partition(option, text, example), option=option)
    option = f"{which}Offsets"
    text = given.text(option)
    word = (text or default).strip()
    if word.lower() in (EARLIEST, LATEST):
        return Limit(word=word.lower(), option=option)
    offsets = given.per_partition(option, word, 'earliest, latest or {"orders": {"0": 23, "1": -2}}')
    for topic, partitions in (offsets or {}).items():
        for number, offset in partitions.items():
            if offset < EARLIEST_OFFSET:
                given.problems.append(f"{option}: {topic}-{number} cannot be at {offset}; -1 is latest, -2 earliest")
    return Limit(offsets=offsets, option=option)


def _check_limits(given: _Given, start: Limit, end: Limit, *, streaming: bool) -> None:
    if streaming:
        for name in ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"):
            if given.text(name) is not None:
                given.problems.append(f"{name} is for batch queries; a stream has no end")
        return
    if start.word == LATEST or LATEST_OFFSET in _all(start.offsets):
        given.problems.append("startingOffsets: a batch query that starts at latest would read nothing")
    if end.word == EARLIEST or EARLIEST_OFFSET in _all(end.offsets):
        given.problems.append("endingOffsets: a batch query that ends at earliest would read nothing")


def _all(offsets: PerPartition | None) -> set[int]:
    return {offset for partitions in (offsets or {}).values() for offset in partitions.values()}


def _raise(given: _Given) -> None:
    if given.problems:
        raise InvalidSettings(list(dict.fromkeys(given.problems)))
