"""A partition as clients see it: its log, the checks of batches that the topic's config requires, and long polls."""

import time
from collections.abc import Callable

from tidelog.broker.configs import TopicConfig
from tidelog.broker.refused_batches import RefusedBatches
from tidelog.broker.topics import Topic
from tidelog.errors import InvalidInput, InvalidRecord
from tidelog.model import (
    LeaderEpoch,
    Offset,
    ProducerEpoch,
    ProducerId,
    TimestampMs,
    TimestampType,
    TopicPartition,
)
from tidelog.promise import Promise
from tidelog.records.batch import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    HEADER,
    HEADER_SIZE,
    HIGHEST_CODEC,
    LENGTH_END,
    MAGIC,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    WriteBuffer,
    check_crc,
    header_struct,
    set_max_timestamp,
)
from tidelog.records.record import recompressed
from tidelog.records.validation import FREE_RECORD_BYTES, FREE_RECORDS, Demands, Level, Validator
from tidelog.records.walk import IS_COMPILED, MAX_TIMESTAMP, MIN_TIMESTAMP, walk
from tidelog.storage.log import Appended, PartitionLog

_MOST_RECORDS = 0x7FFF_FFFF
_LONGEST_AFTER_MS = MAX_TIMESTAMP >> 1  # so that no sum with the time of day overflows
_NO_BOUND = 0x7FFF_FFFF_FFFF_FFFF
_CHECKED_FIELDS = header_struct("length", "magic", "attributes", "base_timestamp", "max_timestamp", "record_count")
_UNUSUAL = COMPRESSION_MASK | TIMESTAMP_TYPE_BIT  # of attributes with CreateTime, this is the codec


class DataWait:
    """A wait for more bytes in several partitions together; with `committed`, for bytes of committed records."""

    __slots__ = ("_awake", "_missing", "_wake", "committed")

    def __init__(self, wake: Callable[[], None], missing_bytes: int, *, committed: bool = False) -> None:
        """`wake` is called during an append, and not again before `need` is called."""
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
    __slots__ = (
        *(
            "_after_max_ms",
            "_config",
            "_free_records",
            "_is_plain",
            "_progress",
            "_refused",
            "_validator",
            "_verifying",
            "_waits",
        ),
        *("leader_epoch", "log", "name"),
    )

    def __init__(
        self,
        name: TopicPartition,
        log: PartitionLog,
        topic: Topic,
        validator: Validator,
        refused: RefusedBatches,
        leader_epoch: LeaderEpoch,
    ) -> None:
        """All partitions of a broker share one validator, which belongs to the thread of the event loop, and what was
        refused. `leader_epoch` is the epoch in which this broker leads the partition; it is written into every
        batch."""
        self.name = name
        self.leader_epoch = leader_epoch
        self._validator = validator
        self._refused = refused
        self.log = log
        self._waits: set[DataWait] = set()
        self._verifying: dict[int, object] = {}  # the newest verification of each producer
        self._progress: tuple[Offset, Offset, Offset] = (0, 0, 0)  # start, stable, end, as last reported to the waits
        self.configure(topic)

    def configure(self, topic: Topic) -> None:
        config = self._config = topic.config
        # The usual case: the topic's config requires no check of records and no change of batches.
        self._is_plain = (
            config.message_timestamp_type is TimestampType.CREATE_TIME
            and config.message_timestamp_before_max_ms == _NO_BOUND
            and config.compression is None
            and not config.compacted
        )
        self._after_max_ms = min(config.message_timestamp_after_max_ms, _LONGEST_AFTER_MS)
        # In an uncompressed batch of up to this many records, or more if it is large, every record is checked.
        self._free_records = -_MOST_RECORDS
        if config.validate is Level.FULL:
            self._free_records = _MOST_RECORDS
        elif config.validate is Level.AUTO and IS_COMPILED:
            self._free_records = FREE_RECORDS

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
        self, batch: WriteBuffer, *, durable: bool, now_ms: TimestampMs | None = None, transactional: bool = False
    ) -> Appended | Promise[Appended]:
        """Check a producer's batch, also against the topic's config, and append it. `now_ms` replaces the time of
        day. `transactional`: the caller has checked that the partition is in the producer's open transaction."""
        if now_ms is None:
            now_ms = time.time_ns() // 1_000_000
        size = len(batch)
        config = self._config
        if size >= HEADER_SIZE:  # else the log raises the error
            length, magic, attributes, base_timestamp, max_timestamp, count = _CHECKED_FIELDS.unpack_from(batch)
            if magic == MAGIC and length + LENGTH_END <= size:
                if length + LENGTH_END < size:
                    raise InvalidRecord(
                        f"{size} bytes of records, but the batch ends after {length + LENGTH_END}: "
                        "a producer sends exactly one batch for a partition"
                    )
                if attributes & (CONTROL_BIT | TRANSACTIONAL_BIT):
                    _check_kind(attributes, transactional=transactional)
                newest = now_ms + self._after_max_ms
                codec_id = attributes & _UNUSUAL
                if not self._is_plain or codec_id > HIGHEST_CODEC or max_timestamp > newest:
                    batch = self._examined(batch, now_ms)
                elif codec_id:
                    if not self._validator.is_framed_only(batch, codec_id, count, config.validate):
                        batch = self._examined(batch, now_ms)
                elif count <= self._free_records + size // FREE_RECORD_BYTES:
                    flaw, _, found_max, refused, _ = walk(
                        batch, HEADER_SIZE, count, base_timestamp, False, False, MIN_TIMESTAMP, newest, 0
                    )
                    if flaw or refused or found_max != max_timestamp:
                        batch = self._examined(batch, now_ms)
                elif config.validate is Level.AUTO:
                    batch = self._examined(batch, now_ms)
        if self._refused:
            self._refused.check(self.name, batch, self.log, self.leader_epoch)
        stamp = config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
        return self.log.append(batch, now_ms=now_ms, leader_epoch=self.leader_epoch, durable=durable, stamp=stamp)

    def end_transaction(
        self,
        producer_id: ProducerId,
        epoch: ProducerEpoch,
        *,
        committed: bool,
        coordinator_epoch: int,
        now_ms: TimestampMs,
    ) -> Appended | Promise[Appended]:
        """Append the marker, if the producer has a transaction open here."""
        self._verifying.pop(producer_id, None)
        return self.log.end_transaction(
            producer_id,
            epoch,
            committed=committed,
            coordinator_epoch=coordinator_epoch,
            now_ms=now_ms,
            leader_epoch=self.leader_epoch,
        )

    def end_of_epoch(self, epoch: int) -> tuple[int, Offset]:
        """The largest leader epoch of the log that is not later than this one, and the offset where it ends; -1 for
        both if the log does not know."""
        if epoch == self.leader_epoch:
            return epoch, self.high_watermark
        epochs = self.log.epochs()
        later = next((index for index, (each, _) in enumerate(epochs) if each > epoch), None)
        if epoch < 0 or later is None:
            return -1, -1
        return (epochs[later - 1][0] if later else epoch), epochs[later][1]

    # Verification: see `remote_transactions`

    def begin_verification(self, producer_id: int) -> object:
        """A guard for a batch whose transaction is being looked up."""
        guard = self._verifying[producer_id] = object()
        return guard

    def end_verification(self, producer_id: int, guard: object) -> bool:
        """True if no marker of the producer has come since the verification began."""
        if self._verifying.get(producer_id) is not guard:
            return False
        del self._verifying[producer_id]
        return True

    # Waits for data. The log reports its progress while there are any.

    def add_wait(self, wait: DataWait) -> None:
        if not self._waits:
            self._progress = self._offsets()
            self.log.on_progress = self._progressed
        self._waits.add(wait)

    def remove_wait(self, wait: DataWait) -> None:
        self._waits.discard(wait)
        if not self._waits:
            self.log.on_progress = None

    def _offsets(self) -> tuple[Offset, Offset, Offset]:
        return self.log.start_offset, self.log.last_stable_offset, self.log.end_offset

    def _progressed(self, size: int) -> None:
        was_start, was_stable, was_end = self._progress
        start, stable, end = self._progress = self._offsets()
        is_plain = stable == end and was_stable == was_end  # then exactly the appended bytes became stable
        for wait in tuple(self._waits):
            if start > was_start:
                wait.wake()  # its offset may have been deleted
            elif not wait.committed or is_plain:
                wait.arrived(size)
            elif stable > was_stable:
                wait.wake()  # the fetch finds out how much became readable

    def retire(self) -> None:
        """The partition is deleted: wake all waits, so that their fetches read again and find out."""
        for wait in tuple(self._waits):
            wait.wake()

    def _examined(self, batch: WriteBuffer, now_ms: TimestampMs) -> WriteBuffer:
        """The batch to append, after all checks of its records. Raises what is wrong with it."""
        config = self._config
        view = memoryview(batch)
        header = BatchHeader._make(HEADER.unpack_from(view))
        is_create_time = config.message_timestamp_type is TimestampType.CREATE_TIME
        bounds = (
            (now_ms - config.message_timestamp_before_max_ms, now_ms + self._after_max_ms) if is_create_time else ()
        )
        demands = Demands(config.compacted, *bounds)
        is_anew = config.compression is not None and config.compression != header.codec_id
        must = (
            is_anew
            or demands.keys
            or (is_create_time and config.message_timestamp_before_max_ms != _NO_BOUND)
            or header.max_timestamp > demands.newest
        )
        try:
            examined = self._validator.examine(view, header, config.validate, demands, self.name.topic, must=must)
        except InvalidInput:
            check_crc(view, 0, header)  # if the bytes were damaged in transit, report that instead
            raise
        if examined is None:
            return batch
        if is_create_time and examined.max_timestamp != header.max_timestamp:
            check_crc(view, 0, header)  # before it is recomputed below
            header = set_max_timestamp(view, 0, header, examined.max_timestamp)
        if config.compression is not None and is_anew:
            check_crc(view, 0, header)
            return recompressed(header, examined.records, config.compression, config.compression_level)
        return batch


def _check_kind(attributes: int, *, transactional: bool) -> None:
    """Only a coordinator writes markers, and transactional batches need a request with a transactional id."""
    if attributes & CONTROL_BIT:
        raise InvalidRecord("producers may not send control batches")
    if not transactional:
        raise InvalidRecord("the batch is transactional, but the request has no transactional id")
