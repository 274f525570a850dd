"""The configs there are, as data: three tables, and how their lines and values are read.

`configs` gives them their meaning.
"""

import re
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from tidelog.errors import InvalidInput

Value: TypeAlias = bool | int | float | str | tuple[str, ...]
NEVER = 2**63 - 1
LONGEST_VALUE = 32_767  # characters; what the protocol's strings can hold


class InvalidConfig(InvalidInput):
    kafka_code = 40


class ConfigType(IntEnum):
    """As DescribeConfigs numbers them."""

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
    valid: tuple[str, ...]  # alternatives: a literal, a range "1..9" or "0..", a /pattern/; none: anything
    documentation: str
    synonyms: tuple[tuple[str, int], ...] = ()  # the broker's names, best first, and what to multiply them with
    dynamic: bool = True

    @property
    def is_sensitive(self) -> bool:
        return self.type is ConfigType.PASSWORD

    def parse(self, text: str) -> Value:
        """The value, or InvalidConfig with what it should be."""
        text = text.strip()
        if len(text) > LONGEST_VALUE:
            raise InvalidConfig(f"{self.name} has {len(text)} characters; at most {LONGEST_VALUE} are possible")
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
    """The canonical text of a value; this is what is stored and shown."""
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


# The definitions. A line each: name, type, default, valid values (- is any); then for topics and groups the broker's
# synonyms, best first, each with its factor to the topic's unit; for brokers whether it can be altered while it runs.
# Below it the documentation that DescribeConfigs gives.

_TOPICS = r"""
cleanup.policy list delete compact|delete log.cleanup.policy
    What becomes of old segments: "delete" removes them by age and size, "compact" keeps the newest record of each
    key; both can be combined. Empty keeps everything.
compression.gzip.level int -1 -1|1..9 compression.gzip.level
    How hard to try where compression.type is gzip; -1 leaves it to the library.
compression.lz4.level int 9 1..17 compression.lz4.level
    How hard to try where compression.type is lz4.
compression.type string producer uncompressed|zstd|lz4|snappy|gzip|producer compression.type
    How batches are compressed in the log. With "producer" they are stored as they came, which costs nothing.
compression.zstd.level int 3 -131072..22 compression.zstd.level
    How hard to try where compression.type is zstd.
delete.retention.ms long 86400000 0.. log.cleaner.delete.retention.ms
    How long compaction keeps the marker of a deleted key, for consumers that read from the beginning.
file.delete.delay.ms long 60000 0.. log.segment.delete.delay.ms
    Void in Tidelog: a deleted segment stays readable for those who are reading it, without a delay.
flush.messages long 10000 1.. log.flush.interval.messages
    Flush after so many records; nobody waits. Setting this chooses the policy "interval" of tidelog.flush.
flush.ms long 1000 0.. log.flush.interval.ms
    Flush after so many milliseconds; nobody waits. Setting this chooses the policy "interval" of tidelog.flush.
follower.replication.throttled.replicas list "" *|/[0-9]+:[0-9]+/
    Void on a single node, which has no followers.
index.interval.bytes int 4096 0.. log.index.interval.bytes
    How many bytes of the log lie between two entries of its index.
leader.replication.throttled.replicas list "" *|/[0-9]+:[0-9]+/
    Void on a single node, which has no followers.
local.retention.bytes long -2 -2.. log.local.retention.bytes
    Void without tiered storage: retention.bytes says what is kept.
local.retention.ms long -2 -2.. log.local.retention.ms
    Void without tiered storage: retention.ms says what is kept.
max.compaction.lag.ms long 9223372036854775807 1.. log.cleaner.max.compaction.lag.ms
    The longest time that a record of a compacted topic may wait until compaction looks at it.
max.message.bytes int 1048588 0.. message.max.bytes
    The largest record batch that the topic takes, as it was compressed by the producer.
message.timestamp.after.max.ms long 3600000 0.. log.message.timestamp.after.max.ms
    How far a record's timestamp may be ahead of the broker's clock. Without effect under LogAppendTime.
message.timestamp.before.max.ms long 9223372036854775807 0.. log.message.timestamp.before.max.ms
    How far a record's timestamp may be behind the broker's clock. Without effect under LogAppendTime.
message.timestamp.type string CreateTime CreateTime|LogAppendTime log.message.timestamp.type
    Whose clock dates the records: the producer's (CreateTime) or the broker's (LogAppendTime).
min.cleanable.dirty.ratio double 0.5 0..1 log.cleaner.min.cleanable.ratio
    Compaction begins when this share of the log has not been compacted yet.
min.compaction.lag.ms long 0 0.. log.cleaner.min.compaction.lag.ms
    For so long a new record is safe from compaction.
min.insync.replicas int 1 1.. min.insync.replicas
    Void on a single node: like Kafka, Tidelog asks for no more replicas than a partition has, which is one.
preallocate boolean false - log.preallocate
    Void in Tidelog: segments grow as they are written.
remote.log.copy.disable boolean false false
    Void without tiered storage; only false is taken.
remote.log.delete.on.disable boolean false false
    Void without tiered storage; only false is taken.
remote.storage.enable boolean false false
    Tiered storage. Tidelog has none, so only false is taken.
retention.bytes long -1 -1.. log.retention.bytes
    The oldest segments of a partition are deleted beyond this size; -1 is without limit.
retention.ms long 604800000 -1.. log.retention.ms,log.retention.minutes*60000,log.retention.hours*3600000
    A segment is deleted when its newest record is older than this; -1 is without limit.
segment.bytes int 1073741824 1024.. log.segment.bytes
    A new segment begins when the current one would grow beyond this size.
segment.index.bytes int 10485760 24.. log.index.size.max.bytes
    A new segment begins when the index of the current one has this size.
segment.jitter.ms long 0 0.. log.roll.jitter.ms,log.roll.jitter.hours*3600000
    Up to so much earlier than segment.ms a segment ends, so that not all partitions begin a new one at once.
segment.ms long 604800000 1.. log.roll.ms,log.roll.hours*3600000
    A new segment begins when the current one is so old.
tidelog.flush string acks acks|always|interval|os tidelog.flush
    When records are forced to the disk. "acks": before a producer with acks=all is answered. "always": before every
    producer is answered. "interval": every flush.ms or flush.messages, nobody waits. "os": when the system likes.
tidelog.retention.wait.for.group string "" -
    Retention keeps what this consumer group has not committed yet, whatever retention.ms and retention.bytes say. For
    `tidelog archive`: nothing is deleted before it is archived. Empty: it waits for nobody.
tidelog.table boolean false -
    Keep a table of the last value of each key beside the log, which is answered from without reading the topic. Needs
    the extra "table".
unclean.leader.election.enable boolean false - unclean.leader.election.enable
    Void on a single node, which elects no leaders.
"""

_GROUPS = """
consumer.heartbeat.interval.ms int 5000 1.. group.consumer.heartbeat.interval.ms
    How often a member of the group sends a heartbeat; members learn it with their next one. For groups of the
    consumer protocol: members of the classic one choose for themselves.
consumer.session.timeout.ms int 45000 1.. group.consumer.session.timeout.ms
    A member that is silent for so long leaves the group; it counts from the member's next heartbeat on. For groups of
    the consumer protocol: members of the classic one choose for themselves.
"""

_BROKERS = """
advertised.listeners string null - read-only
    The addresses that clients are told to connect to; those of listeners, if not set.
auto.create.topics.enable boolean true - read-only
    Create a topic that does not exist when a client asks for its metadata and allows that.
connections.max.idle.ms long 600000 1.. read-only
    A connection that is silent for so long is closed.
default.replication.factor int 1 1 read-only
    Copies of each partition. A single node has one.
delete.topic.enable boolean true - read-only
    Whether topics can be deleted.
fetch.max.bytes int 57671680 1024.. read-only
    The most that one fetch is answered with, however much the consumer asks for.
group.consumer.heartbeat.interval.ms int 5000 1.. read-only
    How often a member of the consumer protocol sends a heartbeat.
group.consumer.max.heartbeat.interval.ms int 15000 1.. read-only
    The longest consumer.heartbeat.interval.ms that a group may have; the broker's own, if that is longer.
group.consumer.max.session.timeout.ms int 60000 1.. read-only
    The longest consumer.session.timeout.ms that a group may have; the broker's own, if that is longer.
group.consumer.max.size int 2147483647 1.. read-only
    The most members of a group of the consumer protocol.
group.consumer.migration.policy string bidirectional disabled|upgrade|downgrade|bidirectional read-only
    Whether groups may change between the classic and the consumer protocol while they run, and which way.
group.consumer.min.heartbeat.interval.ms int 5000 1.. read-only
    The shortest consumer.heartbeat.interval.ms that a group may have; the broker's own, if that is shorter.
group.consumer.min.session.timeout.ms int 45000 1.. read-only
    The shortest consumer.session.timeout.ms that a group may have; the broker's own, if that is shorter.
group.consumer.session.timeout.ms int 45000 1.. read-only
    A member of the consumer protocol that is silent for so long leaves its group.
group.initial.rebalance.delay.ms int 3000 0.. read-only
    How long a new group of the classic protocol waits for more members before its first rebalance.
group.max.session.timeout.ms int 1800000 1.. read-only
    The longest session timeout that a member of the classic protocol may ask for.
group.max.size int 2147483647 1.. read-only
    The most members of a group of the classic protocol.
group.min.session.timeout.ms int 6000 1.. read-only
    The shortest session timeout that a member of the classic protocol may ask for.
listeners string null - read-only
    The addresses that the broker listens on.
log.cleaner.backoff.ms long 15000 1.. dynamic
    How long the cleaner rests when there is nothing to compact.
log.cleaner.dedupe.buffer.size long 134217728 1048576.. dynamic
    The memory for the keys of a compaction, over all its threads: 24 bytes a key. Logs with more keys than fit take
    several passes.
log.cleaner.enable boolean true - read-only
    Whether topics with cleanup.policy=compact are compacted.
log.cleaner.io.buffer.load.factor double 0.9 0.1..0.99 dynamic
    How full that memory may become. A fuller one holds more keys and finds them more slowly.
log.cleaner.io.max.bytes.per.second double 1.7976931348623157e+308 1024.. dynamic
    The most that compaction reads and writes in a second, over all its threads.
log.cleaner.threads int 1 1.. read-only
    How many logs are compacted at the same time.
log.dirs string null - read-only
    The data directory.
log.retention.check.interval.ms long 30000 1.. read-only
    How often retention looks for segments to delete.
log.retention.hours int 168 -1.. read-only
    The default of retention.ms in hours, where neither log.retention.ms nor log.retention.minutes is set.
log.retention.minutes int null -1.. read-only
    The default of retention.ms in minutes, where log.retention.ms is not set.
log.roll.hours int 168 1.. read-only
    The default of segment.ms in hours, where log.roll.ms is not set.
log.roll.jitter.hours int 0 0.. read-only
    The default of segment.jitter.ms in hours, where log.roll.jitter.ms is not set.
max.connections int 10000 0.. dynamic
    The most connections at a time.
max.connections.per.ip int 2147483647 0.. dynamic
    The most connections at a time from one address.
max.incremental.fetch.session.cache.slots int 1000 0.. read-only
    The most fetch sessions that are remembered.
node.id int 0 0.. read-only
    The number of this broker.
num.partitions int 1 1.. read-only
    How many partitions a topic gets when nobody says.
offset.metadata.max.bytes int 4096 0.. read-only
    The longest note that may go with a committed offset.
offsets.retention.check.interval.ms long 600000 1.. read-only
    How often expired offsets are looked for.
offsets.retention.minutes int 10080 1.. read-only
    How long the offsets of a group without members are kept.
producer.id.expiration.ms int 86400000 1.. dynamic
    For so long after its last batch an idempotent producer is remembered.
socket.request.max.bytes int 104857600 1.. read-only
    The largest request.
transaction.max.timeout.ms int 900000 1.. read-only
    The longest transaction.timeout.ms that a producer may ask for.
transaction.partition.verification.enable boolean true true|false read-only
    Batches of a transaction are only taken for partitions that are in it. This broker always checks.
transaction.remove.expired.transaction.cleanup.interval.ms int 3600000 1.. read-only
    How often transactional ids that nobody uses are looked for.
transaction.two.phase.commit.enable boolean false false read-only
    Transactions that another system coordinates. Not supported.
transactional.id.expiration.ms int 604800000 1.. read-only
    For so long after its last transaction a transactional id is remembered.
tidelog.max.partitions int 20000 1.. read-only
    The most partitions of all topics together.
tidelog.max.topics int 10000 1.. read-only
    The most topics.
"""


def _definitions(text: str, *, of_brokers: bool) -> dict[str, Definition]:
    found = {}
    for block in re.split(r"\n(?=\S)", text.strip()):
        line, _, prose = block.partition("\n")
        name, kind, default, valid, *last = line.split()
        found[name] = Definition(
            name,
            ConfigType[kind.upper()],
            {"null": None, '""': ""}.get(default, default),
            () if valid == "-" else tuple(valid.split("|")),
            " ".join(prose.split()),
            () if of_brokers or not last else tuple(_synonym(part) for part in last[0].split(",")),
            dynamic=not of_brokers or last == ["dynamic"],
        )
    return found


def _synonym(text: str) -> tuple[str, int]:
    name, _, factor = text.partition("*")
    return name, int(factor or 1)


def _defaults_of_topics(topics: Iterable[Definition]) -> dict[str, Definition]:
    """Each topic config has its default in a broker config; where it has more than one, all but the first are in the
    table of the brokers, and the first has no default of its own."""
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
    sorted((_definitions(_BROKERS, of_brokers=True) | _defaults_of_topics(TOPIC_CONFIGS.values())).items())
)
BROKER_DEFAULTS = {name: d.default for name, d in BROKER_CONFIGS.items() if d.default is not None}
