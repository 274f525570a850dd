"""Checks that a partition's files are valid and agree with each other: an iterator of findings, for tools, jobs and
tests.

What is checked, and what counts as an error:

    log file      every batch: length, magic, CRC, counts, offsets that follow one another; `deep`: its records can
                  be read, by Kafka's clients as well as by ours
    between them  offsets without holes from one file to the next
    .index        every entry names a batch start and that batch's last offset; entries increase
    .timeindex    every entry is the largest timestamp up to its offset; entries increase; the last one of a sealed
                  segment is the largest of all
    .txnindex     an entry for every transaction that was aborted in the segment, and no other: compaction may have
                  removed the transaction's records, but never its marker alone
    checkpoint    readable; its segment, position, offsets, producers and open transactions
                  agree with the log

The checkpoint says what must be right. After the checkpoint, an index that is missing or wrong is only a note,
because opening the log rebuilds it, and a torn tail is only a note while a process holds the directory's lock and may
be writing.

A hole in the offsets is an error unless the log was compacted there. The state file of the compaction says how far
the log is compacted; the caller can declare the whole log compacted (`compacted`); and a batch with fewer records
than offsets proves it.
"""

from collections.abc import Callable, Generator, Iterator
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from tidelog.errors import InvalidInput, StorageError
from tidelog.model import Offset, ProducerId
from tidelog.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT, BatchHeader, BatchView
from tidelog.records.validation import Validator
from tidelog.storage.local.aborted import (
    ABORTED_ENTRY_SIZE,
    ABORTED_INDEX,
    TransactionTracker,
    decode_aborted,
    is_commit,
)
from tidelog.storage.local.checkpoint import CHECKPOINT, Checkpoint, read_checkpoint
from tidelog.storage.local.compaction_state import STATE, CompactionState, cleaned_name, is_cleaned, read_state
from tidelog.storage.local.files import TEMPORARY, Files, storage_error
from tidelog.storage.local.index import OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE
from tidelog.storage.local.inspect import (
    DamagedRange,
    OffsetIndexCheck,
    PartitionFiles,
    SegmentPart,
    TimeIndexCheck,
    WrongEntry,
    list_partition,
    log_name,
    walk_segment,
    with_next,
)
from tidelog.storage.local.recovery import CUT, UNREACHABLE
from tidelog.storage.local.segment import INDEX, LOG, TIME_INDEX, segment_name
from tidelog.storage.log import AbortedTransaction

_EVERYTHING = 1 << 62
_MOST_TOLD = 20  # wrong entries that are reported for one index file


class Severity(StrEnum):
    ERROR = "error"
    NOTE = "note"


class Kind(StrEnum):
    DAMAGE = "damage"  # bytes that are not valid batches
    TORN_TAIL = "torn-tail"  # invalid bytes at the log's end, as a crash leaves them
    ORDER = "order"  # a valid batch with a wrong offset
    GAP = "gap"
    RECORDS = "records"  # a batch with a correct CRC whose records cannot be decoded
    EPOCH = "epoch"
    INDEX = "index"
    CHECKPOINT = "checkpoint"
    COMPACTION = "compaction"  # an exchange of segments that opening the log finishes
    LEFTOVER = "leftover"  # a file that opening the log removes
    SET_ASIDE = "set-aside"  # data that a recovery or a repair removed from the log
    UNKNOWN_FILE = "unknown-file"
    UNREADABLE = "unreadable"


class Finding(NamedTuple):
    severity: Severity
    kind: Kind
    path: str
    what: str
    position: int | None = None
    offset: Offset | None = None
    size: int | None = None
    """How many bytes are affected, if known."""
    segment: Offset | None = None

    @property
    def is_error(self) -> bool:
        return self.severity is Severity.ERROR


class Tally(NamedTuple):
    segments: int
    batches: int
    records: int
    size_bytes: int


class _Gap(NamedTuple):
    segment: Offset
    position: int
    start: Offset
    end: Offset


class PartitionCheck:
    """One check of a partition's directory; iterate over it to get the findings. `in_use`: a process holds the
    lock."""

    def __init__(
        self,
        files: Files,
        directory: str,
        *,
        in_use: bool = False,
        deep: bool = False,
        compacted: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self._files = files
        self._directory = directory
        self._in_use = in_use
        self._deep = deep
        self._validator = Validator()
        self._compacted = compacted
        self._compaction = CompactionState()
        self._progress = progress
        self._remembered: dict[Offset, tuple[ProducerId, int, int, Offset]] = {}
        self._gaps: list[_Gap] = []
        self._told: dict[str, int] = {}  # number of wrong entries by index file
        self._hidden: dict[str, Finding] = {}  # by index file, one of the findings that are not reported
        self._expected: Offset | None = None  # None: after damage, where any later offset may follow
        self._leader_epoch = -1
        self._transactions: TransactionTracker | None = TransactionTracker()  # None: unknown after damage
        self._segments = self._batches = self._records = self._bytes = 0
        self.listing = PartitionFiles(directory)
        self.stored_checkpoint: Checkpoint | None = None
        self.checkpoint: Checkpoint | None = None
        """The stored checkpoint, if it can be trusted."""
        self.end_offset: Offset = 0
        """The offset after the last good batch, when the check has finished."""

    @property
    def tally(self) -> Tally:
        return Tally(self._segments, self._batches, self._records, self._bytes)

    def __iter__(self) -> Iterator[Finding]:
        # Read the checkpoint first: files that are listed afterwards can only be newer than what it vouches for.
        unreadable = list(self._read_checkpoint())
        self.listing = list_partition(self._files, self._directory)
        yield from unreadable
        yield from self._check_checkpoint()
        yield from self._check_compaction()
        for base, following in with_next(self.listing.segments):
            try:
                yield from self._check_segment(base, following)
            except FileNotFoundError:
                if self._in_use:
                    yield self._note(Kind.LEFTOVER, log_name(base), "was deleted while it was being checked")
                else:
                    yield self._error(Kind.UNREADABLE, log_name(base), "disappeared", segment=base)
            except (OSError, StorageError) as error:
                yield self._unreadable(log_name(base), error, segment=base)
                self._expected = None
                self._transactions = None
            yield from self._hidden_entries()
        yield from self._judge_gaps()
        if self.checkpoint is not None and self.checkpoint.start_offset > self.end_offset:
            start = self.checkpoint.start_offset
            yield self._wrong_checkpoint(
                f"says that the log starts at offset {start}, but the log ends at {self.end_offset}", start
            )
        yield from self._leftovers()

    # The checkpoint

    def _read_checkpoint(self) -> Iterator[Finding]:
        try:
            self.checkpoint = self.stored_checkpoint = read_checkpoint(self._files, self._directory)
        except FileNotFoundError:
            return
        except OSError as error:
            yield self._unreadable(CHECKPOINT, error)
            return
        if self.checkpoint is None:
            yield self._wrong_checkpoint(
                "its checksum is wrong or its version unknown; opening the log will scan all of it", None
            )

    def _check_checkpoint(self) -> Iterator[Finding]:
        """The checks that do not need the batches."""
        at, segments = self.checkpoint, self.listing.segments
        if at is None:
            if segments and not self.listing.has_checkpoint:
                yield self._note(Kind.CHECKPOINT, CHECKPOINT, "missing; opening the log will scan all of it")
            return
        first = next(iter(segments), None)
        if first is not None and at.start_offset < first and not self._in_use:
            what = f"the log starts at offset {at.start_offset}, but its first segment starts at {first}"
            yield self._error(Kind.GAP, log_name(first), what, position=0, offset=at.start_offset)
        size = segments.get(at.segment)
        if size is None or size < at.position:
            if at.offset or at.position:
                found = "is missing" if size is None else f"has {size} bytes"
                yield self._wrong_checkpoint(
                    f"vouches for {at.position} bytes of {log_name(at.segment)}, up to offset {at.offset}, "
                    f"but the file {found}: durable records are lost",
                    at.offset,
                )
            self.checkpoint = None
            return
        for producer_id, producer in at.known_producers():
            for batch in producer.batches:
                remembered = (producer_id, producer.epoch, batch.base_sequence, batch.last_offset)
                self._remembered[batch.base_offset] = remembered
                if batch.last_offset >= at.offset:
                    yield self._wrong_checkpoint(
                        f"names offset {batch.last_offset} of producer {producer_id}, but ends at {at.offset}",
                        batch.last_offset,
                    )

    def _check_compaction(self) -> Iterator[Finding]:
        if STATE not in self.listing.others:
            return
        try:
            state = read_state(self._files, self._directory)
        except OSError as error:
            yield self._unreadable(STATE, error)
            self._compacted = True
            return
        if state is None:
            yield self._note(
                Kind.COMPACTION, STATE, "damaged; compaction will start over from the beginning of the log"
            )
            self._compacted = True
            return
        self._compaction = state
        if state.swap is not None and not self._in_use:
            base = log_name(state.swap.base_offset)
            yield self._note(
                Kind.COMPACTION,
                STATE,
                f"an exchange of segments for segment {base} is unfinished; opening the log finishes it",
            )
        if state.swap is not None and cleaned_name(state.swap.base_offset, LOG) not in self.listing.others:
            for replaced in state.swap.replaced[1:]:
                self.listing.segments.pop(replaced, None)

    def _check_remembered(self, header: BatchHeader) -> Iterator[Finding]:
        remembered = self._remembered.get(header.base_offset)
        stored = (header.producer_id, header.producer_epoch, header.base_sequence, header.last_offset)
        if remembered is not None and remembered != stored:
            yield self._wrong_checkpoint(
                f"names a batch of producer {remembered[0]} at offset {header.base_offset}, "
                f"but the log has a different batch there",
                header.base_offset,
            )

    def _check_boundary(self, base: Offset, part: SegmentPart | None, size: int) -> Iterator[Finding]:
        """The checkpoint's position, which is in `part` (None: the file's end), must be a batch boundary with the
        checkpoint's offset."""
        at = self.checkpoint
        if at is None or at.segment != base:
            return
        start = part.position if part is not None else size
        if start == at.position:
            yield from self._check_open_transactions(at)
            if self._expected is not None and self._expected != at.offset:
                yield self._wrong_checkpoint(
                    f"says offset {at.offset} for position {at.position} of {log_name(base)}, "
                    f"but the log is at {self._expected} there",
                    at.offset,
                )
        elif isinstance(part, BatchView):
            yield self._wrong_checkpoint(
                f"names position {at.position} of {log_name(base)}, inside the batch at {start}", at.offset
            )

    def _check_open_transactions(self, at: Checkpoint) -> Iterator[Finding]:
        if self._transactions is None:
            return
        first = min(self.listing.segments)
        stored = {id_: max(first, offset) for id_, offset in at.transactions}
        for id_ in sorted(stored.keys() ^ self._transactions.open.keys()):
            known, offset = stored.get(id_), self._transactions.open.get(id_)
            if known != first:  # else it began before the start of the log
                says = "says that it is" if known is not None else "does not say that it is"
                yield self._wrong_checkpoint(
                    f"a transaction of producer {id_} is {'not ' if offset is None else ''}open at {at.offset}, "
                    f"but the checkpoint {says}",
                    at.offset,
                )

    def _vouched(self, base: Offset) -> tuple[int, int, int]:
        """How many bytes of a segment's log, index and time index must be right."""
        at = self.checkpoint
        if at is None or base > at.segment:
            return 0, 0, 0
        if self._compaction.swap is not None and base == self._compaction.swap.base_offset:
            return _EVERYTHING, 0, 0  # compaction may have replaced its log but not yet its indexes
        if base < at.segment:
            return _EVERYTHING, _EVERYTHING, _EVERYTHING
        return at.position, at.index_bytes, at.time_index_bytes

    # Log files

    def _check_segment(self, base: Offset, following: Offset | None) -> Iterator[Finding]:
        name, size = log_name(base), self.listing.segments[base]
        file = self._files.open(self.listing.path(name), writable=False)
        if self._in_use and self._vouched(base)[0] == _EVERYTHING:
            size = file.size()  # compaction may have replaced the file since it was listed
        self._segments += 1
        yield from self._check_start(name, base)
        _, index_bytes, time_bytes = self._vouched(base)
        offset_index = yield from self._index(base, INDEX, OFFSET_ENTRY_SIZE, index_bytes)
        time_index = yield from self._index(base, TIME_INDEX, TIME_ENTRY_SIZE, time_bytes)
        offsets, times = OffsetIndexCheck(base, offset_index or b""), TimeIndexCheck(base, time_index or b"")
        yield from self._wrong_entries(base, INDEX, offsets.out_of_order())
        yield from self._wrong_entries(base, TIME_INDEX, times.out_of_order())
        aborted: list[AbortedTransaction] = []
        markers: dict[Offset, ProducerId] = {}
        boundary = self.checkpoint.position if self.checkpoint and self.checkpoint.segment == base else -1
        for part, next_part in with_next(walk_segment(file, size, base, progress=self._progress)):
            if part.position <= boundary < (next_part.position if next_part is not None else size):
                yield from self._check_boundary(base, part, size)
            if isinstance(part, DamagedRange):
                yield self._damage(base, size, part, following)
                self._transactions = None
                passed = offsets.passed_damage(part.position, part.position + part.size)
                yield from self._wrong_entries(base, INDEX, passed)
                times.passed_damage()
                continue
            header = part.header
            if header.attributes & (TRANSACTIONAL_BIT | CONTROL_BIT) and self._transactions is not None:
                ended = self._transactions.saw(part)
                if ended is not None:
                    aborted.append(ended)
                if header.is_control and is_commit(part) is False:
                    markers[header.base_offset] = header.producer_id
            last_offset: Offset | None = header.last_offset
            if not self._is_next(header):
                last_offset = yield from self._check_batch(name, base, part, _offset_of(next_part, following))
            if part.position >= offsets.next_position:
                yield from self._wrong_entries(base, INDEX, offsets.saw(part.position, last_offset))
            if last_offset is None:
                times.passed_damage()
            elif times.concerns(last_offset, header.max_timestamp):
                wrong = times.saw(header.base_offset, last_offset, header.max_timestamp)
                yield from self._wrong_entries(base, TIME_INDEX, wrong)
        yield from self._check_boundary(base, None, size)
        self._bytes += size
        yield from self._wrong_entries(base, INDEX, offsets.rest())
        if time_index is not None:
            yield from self._wrong_entries(base, TIME_INDEX, times.rest(sealed=time_bytes == _EVERYTHING))
        yield from self._check_aborted(base, aborted, markers)

    def _check_start(self, name: str, base: Offset) -> Iterator[Finding]:
        if self._segments > 1 and self._expected is not None and base != self._expected:
            if base > self._expected:
                self._gaps.append(_Gap(base, 0, self._expected, base))
            else:
                what = f"starts at offset {base}, but the previous segment goes up to offset {self._expected - 1}"
                yield self._error(Kind.ORDER, name, what, position=0, offset=base, segment=base)
                self._expected, self.end_offset = None, base
                return
        self._expected = self.end_offset = base

    def _is_next(self, header: BatchHeader) -> bool:
        """True if the batch simply continues the log, as nearly all do; then it is counted and needs no finding."""
        if (
            header.base_offset != self._expected
            or header.leader_epoch != self._leader_epoch
            or header.record_count <= header.last_offset_delta
            or header.base_offset in self._remembered
            or self._deep
        ):
            return False
        self._batches += 1
        self._records += header.record_count
        self._expected = self.end_offset = header.next_offset
        return True

    def _check_batch(
        self, name: str, base: Offset, batch: BatchView, next_base: Offset | None
    ) -> Generator[Finding, None, Offset | None]:
        """The generator returns the batch's last offset, or None if it cannot be trusted."""
        header = batch.header
        self._batches += 1
        self._records += header.record_count
        if header.record_count <= header.last_offset_delta:
            self._compacted = True
        if header.leader_epoch < self._leader_epoch:
            what = f"leader epoch {header.leader_epoch} follows epoch {self._leader_epoch}"
            yield self._note(Kind.EPOCH, name, what, position=batch.position, offset=header.base_offset)
        self._leader_epoch = header.leader_epoch
        if self._deep:
            yield from self._check_records(name, base, batch)
        if header.base_offset != self._expected and not (yield from self._check_order(name, base, batch, next_base)):
            return None
        self._expected = self.end_offset = header.next_offset
        yield from self._check_remembered(header)
        return header.last_offset

    def _check_order(
        self, name: str, base: Offset, batch: BatchView, next_base: Offset | None
    ) -> Generator[Finding, None, bool]:
        """A batch that does not begin where the previous one ended: either there is a hole, or the batch's own
        offset, which the CRC does not cover, is wrong. The batch after it decides. The generator returns whether the
        batch's offsets can be trusted."""
        header = batch.header
        if self._expected is None and header.base_offset >= self.end_offset:
            return True
        should_be = self.end_offset
        should_end = should_be + header.last_offset_delta + 1
        goes_on_inside = next_base is not None and should_end <= next_base < header.next_offset
        if header.base_offset > should_be and not goes_on_inside:
            self._gaps.append(_Gap(base, batch.position, should_be, header.base_offset))
            return True
        yield self._error(
            Kind.ORDER,
            name,
            f"a batch has base offset {header.base_offset} where offset {should_be} is expected",
            position=batch.position,
            offset=header.base_offset,
            size=header.size,
            segment=base,
        )
        if next_base is None or next_base >= should_end:
            self._expected = self.end_offset = should_end
        return False

    def _check_records(self, name: str, base: Offset, batch: BatchView) -> Iterator[Finding]:
        try:
            self._validator.check_stored(batch)
        except InvalidInput as error:
            yield self._error(
                Kind.RECORDS,
                name,
                f"the CRC is correct, but {error}",
                position=batch.position,
                offset=batch.header.base_offset,
                size=batch.header.size,
                segment=base,
            )

    def _damage(self, base: Offset, size: int, part: DamagedRange, following: Offset | None) -> Finding:
        name, end = log_name(base), part.position + part.size
        offset = self.end_offset
        self._expected = None
        details = {"position": part.position, "offset": offset, "size": part.size, "segment": base}
        if following is None and end == size and part.position >= self._vouched(base)[0]:
            what = f"torn tail of {part.size} bytes: {part.reason}"
            if self._in_use:
                what = f"{part.size} bytes after the checkpoint are being written or torn; the directory is in use"
                return self._note(Kind.TORN_TAIL, name, what, **details)
            return self._error(Kind.TORN_TAIL, name, f"{what}; opening the log cuts it off", **details)
        goes_on = part.next_offset if part.next_offset is not None else following
        what = f"{part.size} bytes are damaged: {part.reason}"
        if goes_on is not None and goes_on > offset:
            what += f"; offsets {offset} to {goes_on - 1} are lost"
        elif goes_on is None:
            what += f"; offsets from {offset} on are lost"
        return self._error(Kind.DAMAGE, name, what, **details)

    def _judge_gaps(self) -> Iterator[Finding]:
        orphans = set(self.listing.orphans.values())
        for segment, position, start, end in self._gaps:
            name = log_name(segment)
            what = f"offsets {start} to {end - 1} are missing"
            details = {"position": position, "offset": start, "segment": segment}
            if any(start <= base < end for base in orphans):
                yield self._error(Kind.GAP, name, f"{what}: only the indexes of their segment are left", **details)
            elif self._compacted or end <= self._compaction.compacted_to:
                yield self._note(Kind.GAP, name, f"{what}, as compaction leaves it", **details)
            else:
                yield self._error(Kind.GAP, name, f"{what} (legal only in a compacted topic)", **details)

    # Indexes and other files

    def _index(
        self, base: Offset, suffix: str, entry_size: int, vouched: int
    ) -> Generator[Finding, None, bytes | None]:
        """The index file's content, after checking its size. None if it cannot be read."""
        name = segment_name(base, suffix)
        if name not in self.listing.indexes:
            if vouched:
                yield self._error(Kind.INDEX, name, "missing; opening or repairing the log rebuilds it", segment=base)
            return b""
        try:
            file = self._files.open(self.listing.path(name), writable=False)
            content = file.pread(file.size(), 0)
        except FileNotFoundError:
            raise
        except OSError as error:
            yield self._unreadable(name, error, segment=base)
            return None
        if len(content) < vouched < _EVERYTHING:
            what = f"has {len(content)} bytes, but the checkpoint vouches for {vouched}"
            yield self._error(Kind.INDEX, name, what, position=len(content), segment=base)
        extra = len(content) % entry_size
        if extra:
            severity = Severity.ERROR if len(content) <= vouched else Severity.NOTE
            what = f"{extra} bytes after the last whole entry"
            yield self._finding(severity, Kind.INDEX, name, what, position=len(content) - extra, segment=base)
        return content

    def _wrong_entries(self, base: Offset, suffix: str, entries: Iterator[WrongEntry]) -> Iterator[Finding]:
        """Wrong entries after those that the checkpoint vouches for are only notes: opening the log does not use
        them. If very many entries of a file are wrong, not each of them is reported."""
        _, index_bytes, time_bytes = self._vouched(base)
        vouched, size = (index_bytes, OFFSET_ENTRY_SIZE) if suffix == INDEX else (time_bytes, TIME_ENTRY_SIZE)
        for entry in entries:
            position = entry.number * size
            severity = Severity.ERROR if position < vouched else Severity.NOTE
            name = segment_name(base, suffix)
            told = self._told.get(name, 0)
            self._told[name] = told + 1
            finding = self._finding(
                severity, Kind.INDEX, name, entry.what, position=position, offset=entry.offset, segment=base
            )
            if told < _MOST_TOLD:
                yield finding
            elif name not in self._hidden or finding.is_error:
                self._hidden[name] = finding

    def _hidden_entries(self) -> Iterator[Finding]:
        """At the end of a segment: how many wrong entries there are in addition to the reported ones."""
        for name, finding in self._hidden.items():
            yield finding._replace(what=f"{finding.what}; {self._told[name] - _MOST_TOLD} more entries are wrong")
        self._told, self._hidden = {}, {}

    def _check_aborted(
        self, base: Offset, expected: list[AbortedTransaction], markers: dict[Offset, ProducerId]
    ) -> Iterator[Finding]:
        """Checks only what the checkpoint vouches for: opening the log rebuilds the rest."""
        at, name, state = self.checkpoint, segment_name(base, ABORTED_INDEX), self._compaction
        if at is None or base > at.segment or (state.swap is not None and base in state.swap.replaced):
            return
        try:
            found = list(self._wrong_aborted(at, base, name, expected, markers))
        except FileNotFoundError:
            raise
        except OSError as error:
            yield self._unreadable(name, error, segment=base)
            return
        if found and self._in_use and read_state(self._files, self._directory) != state:
            return  # compaction has replaced the segment meanwhile
        yield from found

    def _wrong_aborted(
        self,
        at: Checkpoint,
        base: Offset,
        name: str,
        expected: list[AbortedTransaction],
        markers: dict[Offset, ProducerId],
    ) -> Iterator[Finding]:
        compacted = self._compaction.aborted_in(base) if base < at.segment else None
        count = at.aborted_in(base) if compacted is None else compacted
        content = b""
        if name in self.listing.indexes:
            file = self._files.open(self.listing.path(name), writable=False)
            content = file.pread(file.size() if base < at.segment else count * ABORTED_ENTRY_SIZE, 0)
        stored = decode_aborted(content)
        if len(stored) != count:
            what = f"has {len(stored)} of {count} aborted transactions; opening or repairing the log rebuilds it"
            yield self._error(Kind.INDEX, name, what, position=len(content), segment=base)
            return
        if self._transactions is None:
            return
        # Of transactions that began before this offset, compaction or retention may have removed the first records,
        # or everything but the marker.
        whole_from = max(
            min(self.listing.segments), _EVERYTHING if self._compacted else self._compaction.compacted_to
        )
        missing = {entry.last_offset: entry for entry in expected if entry.last_offset < at.offset}
        for number, entry in enumerate(stored):
            shown = missing.pop(entry.last_offset, None)
            first = shown.first_offset if shown is not None else entry.last_offset
            if (
                markers.get(entry.last_offset) != entry.producer_id
                or entry.first_offset > first
                or (entry.first_offset < first and entry.first_offset >= whole_from)
            ):
                what = (
                    f"says that producer {entry.producer_id} aborted offsets {entry.first_offset} to "
                    f"{entry.last_offset}, which the log does not show"
                )
                at_byte = number * ABORTED_ENTRY_SIZE
                yield self._error(Kind.INDEX, name, what, position=at_byte, offset=entry.last_offset, segment=base)
        for entry in missing.values():
            what = f"lacks the transaction of producer {entry.producer_id} that was aborted at {entry.last_offset}"
            yield self._error(Kind.INDEX, name, what, position=0, offset=entry.last_offset, segment=base)

    def _leftovers(self) -> Iterator[Finding]:
        listing = self.listing
        for name in listing.orphans:
            yield self._note(Kind.LEFTOVER, name, "an index without its log; opening the log removes it")
        if self.checkpoint is not None:
            for base, end in pairwise(listing.segments):
                if end <= self.checkpoint.start_offset:
                    what = f"ends before the log's start {self.checkpoint.start_offset}; opening the log removes it"
                    yield self._note(Kind.LEFTOVER, log_name(base), what, segment=base)
        for name in listing.others:
            if name == STATE:
                continue
            if name.endswith(TEMPORARY) or (is_cleaned(name) and self._compaction.swap is None):
                yield self._note(Kind.LEFTOVER, name, "an unfinished file; opening the log removes it")
            elif is_cleaned(name):
                yield self._note(Kind.COMPACTION, name, "a compacted segment; opening the log moves it into place")
            elif name.endswith((UNREACHABLE, CUT)):
                yield self._note(
                    Kind.SET_ASIDE, name, "data that was removed from the log; delete the file if you do not need it"
                )
            else:
                yield self._note(Kind.UNKNOWN_FILE, name, "not a file of the log")

    def _error(self, kind: Kind, name: str, what: str, **details: int | None) -> Finding:
        return self._finding(Severity.ERROR, kind, name, what, **details)

    def _note(self, kind: Kind, name: str, what: str, **details: int | None) -> Finding:
        return self._finding(Severity.NOTE, kind, name, what, **details)

    def _unreadable(self, name: str, error: Exception, *, segment: Offset | None = None) -> Finding:
        reason = str(storage_error(error, "read it")) if isinstance(error, OSError) else str(error)
        return self._error(Kind.UNREADABLE, name, reason, segment=segment)

    def _wrong_checkpoint(self, what: str, offset: Offset | None) -> Finding:
        return self._error(Kind.CHECKPOINT, CHECKPOINT, what, position=0, offset=offset)

    def _finding(self, severity: Severity, kind: Kind, name: str, what: str, **details: int | None) -> Finding:
        return Finding(severity, kind, self.listing.path(name), what, **details)


def _offset_of(part: SegmentPart | None, following: Offset | None) -> Offset | None:
    """The offset at which the log continues after a batch, if known."""
    if part is None:
        return following
    return part.header.base_offset if isinstance(part, BatchView) else part.next_offset
