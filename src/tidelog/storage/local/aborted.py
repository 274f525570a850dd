"""Aborted transactions of a segment: what readers of committed records must skip. Byte-compatible with Kafka's.

    .txnindex   34 bytes an entry, big-endian: version (2) = 0, producer id (8), first offset of the transaction (8),
                offset of its abort marker (8), last stable offset when the marker was written (8)

An entry is in the index of the segment that holds the marker; the transaction may have begun in an earlier segment.
Entries are in the order of their markers. A segment without aborted transactions has no file. The checkpoint (for a
compacted segment, the compaction's state file) says how many entries each segment has, so that a file that is missing
or has a wrong size is noticed and rebuilt from the log.

Compaction keeps an entry unchanged as long as it finds batches of the transaction. So the first offset in an entry
may no longer exist, but the marker always does: a reader skips a producer's batches from the first offset up to the
marker, and without the marker would skip those of the next transaction too.
"""

from bisect import bisect_left
from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from tidelog.errors import CorruptBatch
from tidelog.model import NO_TIMESTAMP, Offset, ProducerId
from tidelog.records.batch import BatchView
from tidelog.records.record import ABORT_MARKER, COMMIT_MARKER, read_marker
from tidelog.storage.local.files import File, Files, write_durably
from tidelog.storage.log import AbortedTransaction
from tidelog.storage.producers import Producers

ABORTED_INDEX = ".txnindex"
_VERSION = 0
_ENTRY = Struct(">hqqqq")
ABORTED_ENTRY_SIZE = _ENTRY.size


class AbortedRange(NamedTuple):
    """What the index of one segment says about a range of offsets."""

    transactions: list[AbortedTransaction]
    is_complete: bool
    """No later segment has anything to add."""


class AbortedIndex:
    """The aborted transactions of one segment, in memory."""

    __slots__ = ("_saved", "entries")

    def __init__(self, entries: Iterable[AbortedTransaction] = (), *, saved: bool = False) -> None:
        self.entries = list(entries)
        self._saved = len(self.entries) if saved else 0

    def __len__(self) -> int:
        return len(self.entries)

    def between(self, start: Offset, end: Offset) -> AbortedRange:
        """The transactions that have records from `start` up to, not including, `end`."""
        found = []
        entries = self.entries
        for number in range(bisect_left(entries, start, key=_marker_offset), len(entries)):
            entry = entries[number]
            if entry.first_offset < end:
                found.append(entry)
            if entry.last_stable_offset >= end:
                return AbortedRange(found, True)
        return AbortedRange(found, False)

    def save(self, files: Files, path: str) -> list[File]:
        """Write the entries that are not in the file yet. The caller syncs the returned files if they must be
        durable. Without entries no file is created."""
        if not self.entries:
            return []
        file = files.open(path + ABORTED_INDEX, create=True)
        if len(self.entries) > self._saved:
            file.pwrite(encode_aborted(self.entries[self._saved :]), self._saved * ABORTED_ENTRY_SIZE)
        if file.size() > len(self.entries) * ABORTED_ENTRY_SIZE:  # entries whose markers were lost in a crash
            file.truncate(len(self.entries) * ABORTED_ENTRY_SIZE)
        self._saved = len(self.entries)
        return [file]

    def replace(self, files: Files, path: str) -> None:
        """Replace the whole file, durably, because a checkpoint may already vouch for it."""
        if self.entries:
            write_durably(files, path + ABORTED_INDEX, encode_aborted(self.entries))
        else:
            try:
                files.remove(path + ABORTED_INDEX)
            except FileNotFoundError:
                pass
        self._saved = len(self.entries)


def _marker_offset(entry: AbortedTransaction) -> Offset:
    return entry.last_offset


def encode_aborted(entries: Iterable[AbortedTransaction]) -> bytes:
    return b"".join(_ENTRY.pack(_VERSION, *entry) for entry in entries)


def decode_aborted(content: bytes) -> list[AbortedTransaction]:
    """The whole entries of a .txnindex file, unchecked."""
    whole = len(content) - len(content) % ABORTED_ENTRY_SIZE
    return [AbortedTransaction._make(entry[1:]) for entry in _ENTRY.iter_unpack(memoryview(content)[:whole])]


def read_aborted(
    files: Files, path: str, count: int, base_offset: Offset, end_offset: Offset, *, is_sealed: bool
) -> list[AbortedTransaction] | None:
    """The first `count` entries of a segment's file; the file of a sealed segment must have no more. None if they
    cannot be right."""
    if count == 0:
        return []
    try:
        file = files.open(path + ABORTED_INDEX, writable=False)
        content = file.pread(count * ABORTED_ENTRY_SIZE, 0)
    except FileNotFoundError:
        return None
    if is_sealed and file.size() != count * ABORTED_ENTRY_SIZE:
        return None
    if len(content) != count * ABORTED_ENTRY_SIZE or any(
        entry[0] != _VERSION for entry in _ENTRY.iter_unpack(content)
    ):
        return None
    entries = decode_aborted(content)
    before = base_offset - 1
    for entry in entries:
        if (
            not before < entry.last_offset < end_offset
            or not 0 <= entry.first_offset <= entry.last_offset
            or entry.producer_id < 0
        ):
            return None
        before = entry.last_offset
    return entries


def is_commit(batch: BatchView) -> bool | None:
    """True if a control batch commits its producer's transaction, False if it aborts it, None if neither."""
    try:
        return {COMMIT_MARKER: True, ABORT_MARKER: False}.get(read_marker(batch).type)
    except CorruptBatch:
        return None


class TransactionTracker:
    """Follows the transactions of a log, batch by batch: which are open, which were aborted."""

    def __init__(self) -> None:
        self._producers = Producers()

    @property
    def open(self) -> dict[ProducerId, Offset]:
        return self._producers.open

    def saw(self, batch: BatchView) -> AbortedTransaction | None:
        """Take account of the next batch. Returns the transaction if the batch is a marker that aborts one."""
        header = batch.header
        if header.is_control:
            committed = is_commit(batch)
            return None if committed is None else self._producers.ended(header, header.base_offset, committed)
        if header.is_transactional:
            self._producers.update(header, header.base_offset, NO_TIMESTAMP)
        return None
