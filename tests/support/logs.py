"""Shared by the storage tests: batches, logs in memory or on disk, and reading everything back."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import TypeVar

from tidelog.model import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    LeaderEpoch,
    Offset,
    PartitionIdentity,
    ProducerEpoch,
    ProducerId,
    TopicIdentity,
    TopicPartition,
)
from tidelog.promise import Promise
from tidelog.records.batch import BatchView, iterate
from tidelog.records.compression import Codec
from tidelog.records.record import BatchBuilder, Record, decode, read_marker
from tidelog.settings import LogSettings, StorageSettings
from tidelog.storage.direct import LogLeader
from tidelog.storage.local.commit import InlineCommit
from tidelog.storage.local.files import Files
from tidelog.storage.local.handles import HandlePool
from tidelog.storage.local.log import LocalLog, Shared
from tidelog.storage.log import Appended
from tidelog.storage.tail import TailCache

T = TypeVar("T")

PARTITION = TopicPartition("topic", 0)
DIRECTORY = "/data/topic/0"
EPOCH = LeaderEpoch(0)
NOW_MS = 1_700_000_000_000


def stored(topic: str, number: int = 0) -> PartitionIdentity:
    """A partition of a topic; the topic's id is derived from its name."""
    return TopicIdentity(topic, sha256(topic.encode()).digest()[:16]).partition(number)


def batch(
    *values: bytes,
    timestamp: int = NOW_MS,
    codec: Codec = Codec.NONE,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    sequence: int = -1,
    transactional: bool = False,
    key_of: Callable[[bytes], bytes | None] = lambda _value: None,
) -> bytearray:
    builder = BatchBuilder(
        codec,
        producer_id=ProducerId(producer_id),
        producer_epoch=ProducerEpoch(producer_epoch),
        base_sequence=sequence,
        transactional=transactional,
    )
    for value in values:
        builder.append(value, key=key_of(value), timestamp=timestamp)
    return builder.build()


def open_log(
    files: Files,
    settings: LogSettings | None = None,
    *,
    directory: str = DIRECTORY,
    tail_bytes: int = StorageSettings().tail_cache_bytes,
    open_segments: int = 64,
    now_ms: int = NOW_MS,
) -> LocalLog:
    files.make_directories(directory)
    shared = Shared(files, HandlePool(open_segments), TailCache(tail_bytes), InlineCommit())
    return LocalLog(shared, directory, PARTITION, settings or LogSettings(), now_ms)


def append(log: LocalLog, data: bytearray, *, durable: bool = False, now_ms: int = NOW_MS) -> Appended:
    return at_once(log.append(data, now_ms=now_ms, leader_epoch=EPOCH, durable=durable))


def at_once(given: T | Promise[T]) -> T:
    """A result that must not be a promise."""
    assert not isinstance(given, Promise)
    return given


def read_batches(log: LocalLog, offset: int | None = None, max_bytes: int = 1 << 20) -> list[BatchView]:
    """Every batch from `offset` to the end, each checked, read in steps as a consumer would."""
    offset = log.start_offset if offset is None else offset
    found: list[BatchView] = []
    while offset < log.end_offset:
        data = log.read_now(offset, max_bytes).read()
        assert data, f"nothing to read at {offset} of {log.end_offset}"
        found += iterate(data)
        offset = found[-1].header.next_offset
    return found


def read_records(log: LocalLog) -> list[Record]:
    return [record for view in read_batches(log) for record in decode(view) if record.offset >= log.start_offset]


def read_committed_records(log: LocalLog, offset: int | None = None, max_bytes: int = 1 << 20) -> list[Record]:
    """What a reader of committed records sees from `offset` on. Like Kafka's clients, it skips aborted batches
    according to the aborted transactions in each reply."""
    offset = log.start_offset if offset is None else offset
    found: list[Record] = []
    while offset < log.last_stable_offset:
        result = log.read_now(offset, max_bytes, committed=True)
        if not result.size:  # compaction removed everything up to the last stable offset
            assert not log.read_now(offset, 1, up_to=log.last_stable_offset).size
            break
        aborting: set[int] = set()
        upcoming = sorted(result.aborted, key=lambda entry: entry.first_offset)
        for view in iterate(result.read()):
            header = view.header
            while upcoming and upcoming[0].first_offset <= header.last_offset:
                aborting.add(upcoming.pop(0).producer_id)
            if header.is_control:
                if header.record_count and read_marker(view).name == "abort":
                    aborting.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in aborting):
                found += (record for record in decode(view) if record.offset >= offset)
        offset = header.next_offset
    return found


def values(records: Sequence[Record]) -> list[bytes | None]:
    return [record.value for record in records]


class LeaderWithFiles(LogLeader):
    """The leader of a partition that is read from its files, which asks only for the first batch."""

    def __init__(self, first_batch: Callable[[Offset], bytes | None]) -> None:
        self._first_batch = first_batch

    def first_batch(self, offset: Offset) -> bytes | None:
        return self._first_batch(offset)

    def locate(self, start: Offset, end: Offset, *, committed: bool) -> None:
        raise AssertionError("the files say where records are")
