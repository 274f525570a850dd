"""The definitions of all configs, as data: three tables, and the parsers of their lines and values. Kafka's broker
configs that have no meaning here are in `config_compatibility`.

`configs` gives them their meaning.
"""

import re
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from tidelog.broker.config_compatibility import ONLY_DEFAULT, WITHOUT_EFFECT
from tidelog.errors import InvalidInput

Value: TypeAlias = bool | int | float | str | tuple[str, ...]
NEVER = 2**63 - 1
LONGEST_VALUE = 32_767  # characters; the longest string of the protocol


class InvalidConfig(InvalidInput):
    kafka_code = 40


class ConfigType(IntEnum):
    """The numbers are those of DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Definition(NamedTuple):
    name: str
    type: ConfigType
    default: str | None
    valid: tuple[str, ...]  # alternatives: a literal, a range "1..9" or "0..", a /pattern/; empty: anything
    documentation: str
    synonyms: tuple[tuple[str, int], ...] = ()  # broker configs, the preferred one first, each with its unit factor
    dynamic: bool = True
    only_default: bool = False  # only the default is accepted; the documentation says why

    @property
    def is_sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD

    def parse(self, text: str) -> Value:
        """The value. Raises InvalidConfig, which says what is valid."""
        text = text.strip()
        if len(text) > LONGEST_VALUE:
            raise InvalidConfig(f"{self.name} has {len(text)} characters; at most {LONGEST_VALUE} are allowed")
        if self.only_default and text != (self.default or ""):
            raise InvalidConfig(f"{self.name} cannot be set. {self.documentation}")
        try:
            value = _PARSERS[self.type](text)
        except ValueError:
            raise self._refused(text, _TYPE_IN_WORDS[self.type]) from None
        items = value if isinstance(value, tuple) else (value,)
        if self.valid and not all(any(_allows(rule, item) for rule in self.valid) for item in items):
            raise self._refused(text, self.valid_in_words())
        if len(set(items)) < len(items):
            raise self._refused(text, "a list without repetitions")
        return value

    def valid_in_words(self) -> str:
        kind = "a list of " if self.type is ConfigType.LIST else ""
        return kind + " or ".join(_in_words(rule) for rule in self.valid)

    def _refused(self, text: str, wanted: str) -> InvalidConfig:
        shown = "the given value" if self.is_sensitive else repr(text[:100])
        return InvalidConfig(f"invalid value for {self.name}: {shown} is not {wanted}")


def rendered(value: Value) -> str:
    """The canonical text of a value, as it is stored and shown."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, tuple) else str(value)


# Parsing


def _whole_number(bits: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9]{1,19}", text) or not -(1 << bits - 1) <= int(text) < 1 << bits - 1:
            raise ValueError
        return int(text)

    return parse


def _fraction(text: str) -> float:
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", text):
        raise ValueError
    return float(text)


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError
    return text.lower() == "true"


def split(text: str) -> tuple[str, ...]:
    return tuple(item for item in re.split(r"\s*,\s*", text.strip()) if item)


_PARSERS: dict[ConfigType, Callable[[str], Value]] = {
    ConfigType.BOOLEAN: _truth,
    ConfigType.STRING: str,
    ConfigType.INT: _whole_number(32),
    ConfigType.SHORT: _whole_number(16),
    ConfigType.LONG: _whole_number(64),
    ConfigType.DOUBLE: _fraction,
    ConfigType.LIST: split,
    ConfigType.CLASS: str,
    ConfigType.PASSWORD: str,
}
_TYPE_IN_WORDS = {
    ConfigType.BOOLEAN: "true or false",
    ConfigType.INT: "a whole number of 32 bits",
    ConfigType.SHORT: "a whole number of 16 bits",
    ConfigType.LONG: "a whole number of 64 bits",
    ConfigType.DOUBLE: "a number",
}


def _allows(rule: str, value: Value) -> bool:
    if rule.startswith("/"):
        return re.fullmatch(rule[1:-1], str(value)) is not None
    least, dots, most = rule.partition("..")
    if not dots:
        return isinstance(value, (str, bool, int)) and rendered(value) == rule
    assert isinstance(value, (int, float)), rule
    return float(least) <= value and (not most or value <= float(most))


def _in_words(rule: str) -> str:
    least, dots, most = rule.partition("..")
    if rule.startswith("/"):
        return f"something that matches {rule[1:-1]}"
    return rule if not dots else f"between {least} and {most}" if most else f"at least {least}"


# The definitions. Each has a line: name, type, default, valid values (- is any). For topics and groups the broker's
# synonyms follow, the preferred one first, each with its factor to the topic's unit; for brokers "dynamic" if the
# config can be altered while the broker runs, else "read-only". The indented lines below are the documentation that
# DescribeConfigs returns.

_TOPICS = r"""
cleanup.policy list delete compact|delete log.cleanup.policy
    What to do with old segments: "delete" removes them by age and size, "compact" keeps the newest record of each
    key; both can be combined. Empty keeps everything.
compression.gzip.level int -1 -1|1..9 compression.gzip.level
    Compression level if compression.type is gzip; -1 is the default of the library.
compression.lz4.level int 9 1..17 compression.lz4.level
    Compression level if compression.type is lz4.
compression.type string producer uncompressed|zstd|lz4|snappy|gzip|producer compression.type
    How batches are compressed in the log. With "producer" they are stored as the producer sent them, which costs
    nothing.
compression.zstd.level int 3 -131072..22 compression.zstd.level
    Compression level if compression.type is zstd.
delete.retention.ms long 86400000 0.. log.cleaner.delete.retention.ms
    How long compaction keeps the marker of a deleted key, for consumers that read from the beginning.
file.delete.delay.ms long 60000 0.. log.segment.delete.delay.ms
    Accepted for compatibility; has no effect. A deleted segment stays readable for reads that are in progress.
flush.messages long 10000 1.. log.flush.interval.messages
    Flush after this many records; producers do not wait for the flush. Setting this selects tidelog.flush=interval.
flush.ms long 1000 0.. log.flush.interval.ms
    Flush after this many milliseconds; producers do not wait for the flush. Setting this selects
    tidelog.flush=interval.
follower.replication.throttled.replicas list "" *|/[0-9]+:[0-9]+/
    Accepted for compatibility; has no effect: a single node has no followers.
index.interval.bytes int 4096 0.. log.index.interval.bytes
    Number of bytes of the log between two entries of its index.
leader.replication.throttled.replicas list "" *|/[0-9]+:[0-9]+/
    Accepted for compatibility; has no effect: a single node has no followers.
local.retention.bytes long -2 -2.. log.local.retention.bytes
    Accepted for compatibility; has no effect without tiered storage: retention.bytes applies.
local.retention.ms long -2 -2.. log.local.retention.ms
    Accepted for compatibility; has no effect without tiered storage: retention.ms applies.
max.compaction.lag.ms long 9223372036854775807 1.. log.cleaner.max.compaction.lag.ms
    The longest time that a record of a compacted topic may remain uncompacted.
max.message.bytes int 1048588 0.. message.max.bytes
    The largest record batch that the topic accepts, in bytes as compressed by the producer.
message.timestamp.after.max.ms long 3600000 0.. log.message.timestamp.after.max.ms
    How far a record's timestamp may be ahead of the broker's clock. Has no effect with LogAppendTime.
message.timestamp.before.max.ms long 9223372036854775807 0.. log.message.timestamp.before.max.ms
    How far a record's timestamp may be behind the broker's clock. Has no effect with LogAppendTime.
message.timestamp.type string CreateTime CreateTime|LogAppendTime log.message.timestamp.type
    Which clock sets the timestamps of records: the producer's (CreateTime) or the broker's (LogAppendTime).
min.cleanable.dirty.ratio double 0.5 0..1 log.cleaner.min.cleanable.ratio
    Compaction starts when this fraction of the log has not been compacted yet.
min.compaction.lag.ms long 0 0.. log.cleaner.min.compaction.lag.ms
    The shortest time that a new record stays uncompacted.
min.insync.replicas int 1 1.. min.insync.replicas
    Accepted for compatibility; has no effect: a partition has one replica, and no more are required.
preallocate boolean false - log.preallocate
    Accepted for compatibility; has no effect: segments grow as they are written.
remote.log.copy.disable boolean false false
    Has no effect without tiered storage; only false is accepted.
remote.log.delete.on.disable boolean false false
    Has no effect without tiered storage; only false is accepted.
remote.storage.enable boolean false false
    Tiered storage. Tidelog has none, so only false is accepted.
retention.bytes long -1 -1.. log.retention.bytes
    The oldest segments of a partition are deleted when it exceeds this size; -1 is unlimited.
retention.ms long 604800000 -1.. log.retention.ms,log.retention.minutes*60000,log.retention.hours*3600000
    A segment is deleted when its newest record is older than this; -1 is unlimited.
segment.bytes int 1073741824 1024.. log.segment.bytes
    A new segment is started when the current one would exceed this size.
segment.index.bytes int 10485760 24.. log.index.size.max.bytes
    A new segment is started when the index of the current one reaches this size.
segment.jitter.ms long 0 0.. log.roll.jitter.ms,log.roll.jitter.hours*3600000
    A segment is closed up to this much earlier than segment.ms, so that partitions do not all start a new one at the
    same time.
segment.ms long 604800000 1.. log.roll.ms,log.roll.hours*3600000
    A new segment is started when the current one reaches this age.
tidelog.flush string acks acks|always|interval|os tidelog.flush
    When records are flushed to disk. "acks": before a producer with acks=all is answered. "always": before any
    producer is answered. "interval": every flush.ms or flush.messages; producers do not wait. "os": when the
    operating system decides.
tidelog.retention.wait.for.group string "" -
    Retention keeps the records that this consumer group has not committed yet, regardless of retention.ms and
    retention.bytes. Use it with `tidelog archive`: nothing is deleted before it is archived. Empty: retention does
    not wait for any group.
tidelog.table boolean false -
    Maintain a table with the last value of each key beside the log, for lookups that do not read the topic. Requires
    the extra "table".
tidelog.validate string auto auto|header|full tidelog.validate
    How thoroughly produced batches are checked before they are acknowledged. "full": every record of every batch, as
    Kafka does. "auto": every record of uncompressed batches; also the records of compressed batches, as long as that
    takes no more than a tenth of the time that the broker spends on them. "header": the batch header, and the frame
    of compressed data.
unclean.leader.election.enable boolean false - unclean.leader.election.enable
    Accepted for compatibility; has no effect: a single node elects no leaders.
"""

_GROUPS = """
consumer.heartbeat.interval.ms int 5000 1.. group.consumer.heartbeat.interval.ms
    How often a member of the group sends a heartbeat; members learn a new value with their next heartbeat. Only for
    the consumer protocol: members of the classic protocol choose for themselves.
consumer.session.timeout.ms int 45000 1.. group.consumer.session.timeout.ms
    A member that sends no heartbeat for this long is removed from the group; a new value applies from the member's
    next heartbeat on. Only for the consumer protocol: members of the classic protocol choose for themselves.
"""

_BROKERS = """
advertised.listeners list null - read-only
    The addresses that clients are told to connect to. Set by Tidelog's own setting `listeners`.
auto.create.topics.enable boolean true - read-only
    Create a topic that does not exist when a client asks for its metadata and allows that.
broker.id int -1 -1.. read-only
    The number of this broker, as node.id. Set by Tidelog's own setting `node-id`.
connections.max.idle.ms long 600000 1.. read-only
    A connection that is idle for this long is closed.
default.replication.factor int 1 1 read-only
    Number of replicas of each partition. A single node has one.
delete.topic.enable boolean true - read-only
    Whether topics can be deleted.
fetch.max.bytes int 57671680 1024.. read-only
    The most bytes that one fetch returns, even if the consumer asks for more.
group.consumer.heartbeat.interval.ms int 5000 1.. read-only
    How often a member of the consumer protocol sends a heartbeat.
group.consumer.max.heartbeat.interval.ms int 15000 1.. read-only
    The longest consumer.heartbeat.interval.ms that a group may have. If the broker's own interval is longer, that is
    the limit.
group.consumer.max.session.timeout.ms int 60000 1.. read-only
    The longest consumer.session.timeout.ms that a group may have. If the broker's own timeout is longer, that is the
    limit.
group.consumer.max.size int 2147483647 1.. read-only
    The most members of a group of the consumer protocol.
group.consumer.migration.policy string bidirectional disabled|upgrade|downgrade|bidirectional read-only
    Whether groups may switch between the classic and the consumer protocol while they run, and in which direction.
group.consumer.min.heartbeat.interval.ms int 5000 1.. read-only
    The shortest consumer.heartbeat.interval.ms that a group may have. If the broker's own interval is shorter, that
    is the limit.
group.consumer.min.session.timeout.ms int 45000 1.. read-only
    The shortest consumer.session.timeout.ms that a group may have. If the broker's own timeout is shorter, that is
    the limit.
group.consumer.session.timeout.ms int 45000 1.. read-only
    A member of the consumer protocol that sends no heartbeat for this long is removed from its group.
group.initial.rebalance.delay.ms int 3000 0.. read-only
    How long a new group of the classic protocol waits for more members before its first rebalance.
group.max.session.timeout.ms int 1800000 1.. read-only
    The longest session timeout that a member of the classic protocol may ask for.
group.max.size int 2147483647 1.. read-only
    The most members of a group of the classic protocol.
group.min.session.timeout.ms int 6000 1.. read-only
    The shortest session timeout that a member of the classic protocol may ask for.
listener.security.protocol.map string PLAINTEXT:PLAINTEXT - read-only
    The security protocol of each listener. All are PLAINTEXT: no authentication, no encryption. Follows from
    Tidelog's own setting `listeners`.
listeners list null - read-only
    The addresses that the broker listens on. Set by Tidelog's own setting `listeners`.
log.cleaner.backoff.ms long 15000 1.. dynamic
    How long the cleaner sleeps when there is nothing to compact.
log.cleaner.dedupe.buffer.size long 134217728 1048576.. dynamic
    Memory for the keys of compactions, over all threads: 24 bytes per key. A log with more keys than fit takes
    several passes.
log.cleaner.enable boolean true - read-only
    Whether topics with cleanup.policy=compact are compacted.
log.cleaner.io.buffer.load.factor double 0.9 0.1..0.99 dynamic
    How full the memory of log.cleaner.dedupe.buffer.size may become. With a higher factor more keys fit, but lookups
    are slower.
log.cleaner.io.max.bytes.per.second double 1.7976931348623157e+308 1024.. dynamic
    The most bytes that compaction reads and writes per second, over all threads.
log.cleaner.threads int 1 1.. read-only
    How many logs are compacted at the same time.
log.dir list null - read-only
    The data directory. Set by Tidelog's own setting `data-dir`.
log.dirs list null - read-only
    The data directory. Set by Tidelog's own setting `data-dir`.
log.retention.check.interval.ms long 30000 1.. read-only
    How often retention looks for segments to delete.
log.retention.hours int 168 -1.. read-only
    The default of retention.ms in hours, if neither log.retention.ms nor log.retention.minutes is set.
log.retention.minutes int null -1.. read-only
    The default of retention.ms in minutes, if log.retention.ms is not set.
log.roll.hours int 168 1.. read-only
    The default of segment.ms in hours, if log.roll.ms is not set.
log.roll.jitter.hours int 0 0.. read-only
    The default of segment.jitter.ms in hours, if log.roll.jitter.ms is not set.
max.connections int 10000 0.. dynamic
    The most open connections.
max.connections.per.ip int 2147483647 0.. dynamic
    The most open connections from one address.
max.incremental.fetch.session.cache.slots int 1000 0.. read-only
    The most fetch sessions that the broker keeps.
node.id int 0 0.. read-only
    The number of this broker. Set by Tidelog's own setting `node-id`.
num.partitions int 1 1.. read-only
    Number of partitions of a new topic, if the request does not give one.
offset.metadata.max.bytes int 4096 0.. read-only
    The longest metadata text of a committed offset.
offsets.retention.check.interval.ms long 600000 1.. read-only
    How often the broker looks for expired offsets.
offsets.retention.minutes int 10080 1.. read-only
    How long the offsets of a group without members are kept.
producer.id.expiration.ms int 86400000 1.. dynamic
    How long an idempotent producer is remembered after its last batch.
socket.request.max.bytes int 104857600 1.. read-only
    The largest request, in bytes.
transaction.max.timeout.ms int 900000 1.. read-only
    The longest transaction.timeout.ms that a producer may ask for.
transaction.partition.verification.enable boolean true true|false read-only
    Whether the broker checks that a transactional batch is for a partition that was added to the transaction. This
    broker always checks.
transaction.remove.expired.transaction.cleanup.interval.ms int 3600000 1.. read-only
    How often the broker looks for expired transactional ids.
transaction.two.phase.commit.enable boolean false false read-only
    Two-phase commit, coordinated by another system. Not supported.
transactional.id.expiration.ms int 604800000 1.. read-only
    How long a transactional id is remembered after its last transaction.
tidelog.max.fetch.session.partitions int 150000 0.. read-only
    The most partitions of all fetch sessions together. Beyond it a consumer gets no session, and names all its
    partitions in each fetch.
tidelog.max.group.bytes long 134217728 1.. read-only
    The most bytes of member metadata and assignments, over all groups. A member that would exceed it is refused with
    GROUP_MAX_SIZE_REACHED.
tidelog.max.group.members int 50000 1.. read-only
    The most members of all groups together. More are refused with GROUP_MAX_SIZE_REACHED.
tidelog.max.group.offset.bytes long 268435456 1.. read-only
    The most memory for committed offsets of all groups together, at about 350 bytes each. More are refused with
    INVALID_COMMIT_OFFSET_SIZE; a group can still update the offsets that it has.
tidelog.max.groups int 50000 1.. read-only
    The most groups, including groups that have offsets but no members. More are refused with GROUP_MAX_SIZE_REACHED
    or, if an offset is committed for a group without members, with INVALID_COMMIT_OFFSET_SIZE.
tidelog.max.partitions int 20000 1.. read-only
    The most partitions of all topics together.
tidelog.max.request.entries int 65536 1000.. read-only
    The most entries of all lists of a request together. Each list inside an entry counts as at least one. The limit
    is never below three times tidelog.max.partitions.
tidelog.max.topics int 10000 1.. read-only
    The most topics.
tidelog.max.transaction.entries int 400000 1.. read-only
    The most partitions, groups and offsets of all open transactions together. More are refused with POLICY_VIOLATION.
tidelog.max.transactional.ids int 100000 1.. read-only
    The most transactional ids that are remembered; see transactional.id.expiration.ms. More are refused with
    POLICY_VIOLATION.
"""


_NO_EFFECT = "Accepted for compatibility; has no effect."
_NOT_HERE = "Not supported here; only the default is accepted."


def _definitions(text: str, *, of_brokers: bool) -> dict[str, Definition]:
    found = {}
    for block in re.split(r"\n(?=\S)", text.strip()):
        line, _, prose = block.partition("\n")
        name, kind, default, valid, *last = line.split()
        synonyms = () if of_brokers or not last else tuple(_synonym(part) for part in last[0].split(","))
        dynamic = not of_brokers or last == ["dynamic"]
        found[name] = _definition(name, kind, default, valid, " ".join(prose.split()), synonyms, dynamic=dynamic)
    return found


def _without_effect() -> dict[str, Definition]:
    found = {}
    for line in WITHOUT_EFFECT.split("\n")[1:-1]:
        name, kind, default, valid, mode = line.split()
        found[name] = _definition(name, kind, default, valid, _NO_EFFECT, dynamic=mode == "dynamic")
    for line in ONLY_DEFAULT.split("\n")[1:-1]:
        name, kind, default = line.split()
        found[name] = _definition(name, kind, default, "-", _NOT_HERE, dynamic=False, only_default=True)
    return found


def _definition(
    name: str,
    kind: str,
    default: str,
    valid: str,
    documentation: str,
    synonyms: tuple[tuple[str, int], ...] = (),
    *,
    dynamic: bool = True,
    only_default: bool = False,
) -> Definition:
    return Definition(
        name,
        ConfigType[kind.upper()],
        {"null": None, '""': ""}.get(default, default),
        () if valid == "-" else tuple(valid.split("|")),
        documentation,
        synonyms,
        dynamic,
        only_default,
    )


def _synonym(text: str) -> tuple[str, int]:
    name, _, factor = text.partition("*")
    return name, int(factor or 1)


def _defaults_of_topics(topics: Iterable[Definition]) -> dict[str, Definition]:
    """The broker configs that are defaults of topic configs. If a topic config has several synonyms, all but the
    first are in the table of the brokers, and the first has no default of its own."""
    found = {}
    for topic in topics:
        for name, _ in topic.synonyms[:1]:
            default = topic.default if len(topic.synonyms) == 1 else None
            prose = f"The default of the topic config {topic.name}. {topic.documentation}"
            found[name] = Definition(name, topic.type, default, topic.valid, prose)
    return found


TOPIC_CONFIGS = _definitions(_TOPICS, of_brokers=False)
GROUP_CONFIGS = _definitions(_GROUPS, of_brokers=False)
BROKER_CONFIGS = dict(
    sorted(
        (
            _without_effect() | _definitions(_BROKERS, of_brokers=True) | _defaults_of_topics(TOPIC_CONFIGS.values())
        ).items()
    )
)
BROKER_SYNONYMS = {
    name: tuple(each for each, _ in topic.synonyms)
    for topic in TOPIC_CONFIGS.values()
    if len(topic.synonyms) > 1
    for name, _ in topic.synonyms
}
"""Broker configs for the same thing in different units, by each of their names; the preferred one first."""
BROKER_DEFAULTS = {name: d.default for name, d in BROKER_CONFIGS.items() if d.default is not None}
