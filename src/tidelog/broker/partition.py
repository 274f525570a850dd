"""A partition as it is served: its log, what its topic's config demands of a batch, and who waits for data."""

from collections.abc import Callable
from struct import Struct

from tidelog.broker.configs import TopicConfig
from tidelog.broker.topics import Topic
from tidelog.errors import InvalidRecord, InvalidTimestamp
from tidelog.model import (
    LeaderEpoch,
    Offset,
    ProducerEpoch,
    ProducerId,
    TimestampMs,
    TimestampType,
    TopicPartition,
)
from tidelog.records.batch import (
    CONTROL_BIT,
    HEADER_SIZE,
    LENGTH_END,
    TRANSACTIONAL_BIT,
    WriteBuffer,
    iterate,
)
from tidelog.records.compaction import all_have_keys
from tidelog.records.record import decode, recompressed
from tidelog.storage.log import AbortedTransaction, Appended, PartitionLog, ReadResult

LEADER_EPOCH = LeaderEpoch(0)  # one node leads everything it has, from the beginning
_NO_BOUND = 0x7FFF_FFFF_FFFF_FFFF
_PEEK = Struct(">8xi9xh12xq")  # length, attributes and max timestamp


class FetchWait:
    """Somebody who waits for more bytes on any of some partitions; for `committed` ones, if it says so."""

    __slots__ = ("_awake", "_missing", "_wake", "committed")

    def __init__(self, wake: Callable[[], None], missing_bytes: int, *, committed: bool = False) -> None:
        """`wake` is called in the middle of an append, and not again before `need`."""
        self._wake = wake
        self.committed = committed
        self.need(missing_bytes)

    def need(self, missing_bytes: int) -> None:
        self._missing = missing_bytes
        self._awake = False

    def arrived(self, size: int) -> None:
        self._missing -= size
        if self._missing <= 0:
            self.wake()

    def wake(self) -> None:
        if not self._awake:
            self._awake = True
            self._wake()


class Partition:
    __slots__ = ("_config", "_waits", "log", "name", "plain")

    def __init__(self, name: TopicPartition, log: PartitionLog, topic: Topic) -> None:
        self.name = name
        self.log = log
        self._waits: set[FetchWait] = set()
        self.configure(topic)

    def configure(self, topic: Topic) -> None:
        config = self._config = topic.config
        # The usual case: nothing to look at but two header fields.
        self.plain = (
            config.message_timestamp_type is TimestampType.CREATE_TIME
            and config.message_timestamp_before_max_ms == _NO_BOUND
            and config.compression is None
            and not config.compacted
        )

    @property
    def config(self) -> TopicConfig:
        return self._config

    @property
    def high_watermark(self) -> Offset:
        return self.log.end_offset

    @property
    def last_stable_offset(self) -> Offset:
        return self.log.last_stable_offset

    def append(
        self, batches: WriteBuffer, *, durable: bool, now_ms: TimestampMs, transactional: bool = False
    ) -> Appended:
        """A producer's batches, checked against the topic's config; waiting fetches are woken. `transactional`: the
        caller has made sure that the partition is in the open transaction of whoever sent them."""
        if len(batches) >= HEADER_SIZE:  # else the log says what is wrong
            length, attributes, max_timestamp = _PEEK.unpack_from(batches)
            if attributes & (CONTROL_BIT | TRANSACTIONAL_BIT) or length + LENGTH_END != len(batches):
                _check_kinds(batches, transactional=transactional)
            if not self.plain:
                batches = self._fitted(batches, now_ms)
            elif max_timestamp - now_ms > self._config.message_timestamp_after_max_ms:
                raise self._out_of_bounds(max_timestamp, now_ms)
        stamp = self._config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
        appended = self.log.append(batches, now_ms=now_ms, leader_epoch=LEADER_EPOCH, durable=durable, stamp=stamp)
        if self._waits and not appended.duplicate:
            self._arrived(len(batches))
        return appended

    def _arrived(self, size: int) -> None:
        is_stable = self.log.last_stable_offset == self.log.end_offset
        for wait in tuple(self._waits):
            if is_stable or not wait.committed:
                wait.arrived(size)

    def end_transaction(
        self,
        producer_id: ProducerId,
        epoch: ProducerEpoch,
        *,
        committed: bool,
        coordinator_epoch: int,
        now_ms: TimestampMs,
    ) -> Appended:
        """Append the marker, if the producer has a transaction open here; await it to have it durable."""
        before = self.log.last_stable_offset
        appended = self.log.end_transaction(
            producer_id,
            epoch,
            committed=committed,
            coordinator_epoch=coordinator_epoch,
            now_ms=now_ms,
            leader_epoch=LEADER_EPOCH,
        )
        if self._waits and not appended.duplicate:
            is_news = self.log.last_stable_offset > before
            for wait in tuple(self._waits):
                if wait.committed and is_news:
                    wait.wake()  # how much became readable it finds out itself
                elif not wait.committed:
                    wait.arrived(HEADER_SIZE)
        return appended

    def read(self, offset: Offset, max_bytes: int, *, at_least_one: bool) -> ReadResult:
        return self.log.read(offset, max_bytes, at_least_one=at_least_one)

    def read_committed(
        self, offset: Offset, max_bytes: int, *, at_least_one: bool
    ) -> tuple[ReadResult, list[AbortedTransaction]]:
        return self.log.read_committed(offset, max_bytes, at_least_one=at_least_one)

    def add_wait(self, wait: FetchWait) -> None:
        self._waits.add(wait)

    def remove_wait(self, wait: FetchWait) -> None:
        self._waits.discard(wait)

    def retire(self) -> None:
        """The partition is deleted: whoever waits for it looks again and finds out."""
        for wait in tuple(self._waits):
            wait.wake()

    def _fitted(self, batches: WriteBuffer, now_ms: TimestampMs) -> WriteBuffer:
        """What only some topics ask for: single records are looked at, or the batch is compressed anew."""
        config = self._config
        fitted: WriteBuffer = batches
        anew: list[bytearray] = []
        for view in iterate(batches):
            header = view.header
            if config.message_timestamp_type is TimestampType.CREATE_TIME:
                if header.max_timestamp - now_ms > config.message_timestamp_after_max_ms:
                    raise self._out_of_bounds(header.max_timestamp, now_ms)
                if config.message_timestamp_before_max_ms != _NO_BOUND:
                    oldest = min(record.timestamp for record in decode(view))
                    if now_ms - oldest > config.message_timestamp_before_max_ms:
                        raise self._out_of_bounds(oldest, now_ms)
            if config.compacted and not all_have_keys(view.view):
                raise InvalidRecord(f"{self.name.topic} is compacted: every record needs a key")
            if config.compression is None:
                continue
            if config.compression != header.codec_id:
                anew.append(recompressed(view, config.compression, config.compression_level))
            else:
                anew.append(bytearray(view.view))
        if config.compression is not None:
            fitted = bytearray().join(anew)
        return fitted

    def _out_of_bounds(self, timestamp: TimestampMs, now_ms: TimestampMs) -> InvalidTimestamp:
        return InvalidTimestamp(
            f"timestamp {timestamp} is out of the bounds that {self.name.topic} sets around now ({now_ms})"
        )


def _check_kinds(batches: WriteBuffer, *, transactional: bool) -> None:
    """Nobody but a coordinator writes markers, and a transaction's batches come with its id."""
    for view in iterate(batches, verify=False):
        if view.header.is_control:
            raise InvalidRecord("control batches may not be produced")
        if view.header.is_transactional and not transactional:
            raise InvalidRecord("a batch of a transaction, but the request names no transactional id")
