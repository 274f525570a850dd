"""Opening a partition's directory in any state: after a clean stop, SIGKILL, a power loss, or with lost or damaged
index or checkpoint files.

What the checkpoint vouches for is trusted without reading it. What was written after it is scanned batch by batch.
The log ends at the first batch that is not whole and valid; the bytes from there on are cut off. That loses nothing
that was promised: a promise is kept only after everything before it was synced, and synced bytes are not damaged by a
crash.
"""

import os
from dataclasses import dataclass, field
from itertools import pairwise

from tidelog.model import Offset, TimestampMs
from tidelog.storage.local.aborted import ABORTED_INDEX, AbortedIndex, is_commit, read_aborted
from tidelog.storage.local.checkpoint import CHECKPOINT, Checkpoint, read_checkpoint, write_checkpoint
from tidelog.storage.local.compaction_state import (
    STATE,
    CompactionState,
    finish_swap,
    is_cleaned,
    read_state,
    write_state,
)
from tidelog.storage.local.files import TEMPORARY, Entry, Files, write_durably, write_whole
from tidelog.storage.local.handles import HandlePool
from tidelog.storage.local.scan import BatchScan, Damage
from tidelog.storage.local.segment import (
    INDEX,
    INDEXES,
    LOG,
    TIME_INDEX,
    ActiveSegment,
    IndexSpec,
    SavedIndexes,
    SealedSegment,
    base_offset_of,
    segment_name,
    transactions_in,
)
from tidelog.storage.producers import Producers

UNREACHABLE = ".unreachable"
CUT = ".cut"  # bytes that were removed from the log


@dataclass(slots=True)
class RecoveryReport:
    """What opening the log found and did. All lists are empty after a clean stop."""

    scanned_bytes: int = 0
    cut: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    rebuilt: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not (self.scanned_bytes or self.cut or self.lost or self.rebuilt or self.removed)

    def lines(self) -> list[str]:
        return [
            *self.lost,
            *self.cut,
            *(f"rebuilt the indexes of {name}" for name in self.rebuilt),
            *(f"removed {name}" for name in self.removed),
        ]


@dataclass(slots=True)
class Recovered:
    start_offset: Offset
    sealed: list[SealedSegment]
    active: ActiveSegment
    producers: Producers
    checkpoint: Checkpoint
    report: RecoveryReport
    compaction: CompactionState


def make_new(files: Files, root: str, directories: list[str], now_ms: TimestampMs) -> None:
    """Create the directories of new partitions below `root`, durably. The result is the same as if each was opened,
    which takes four syncs each; where the whole file system can be synced, two syncs are enough for all of them.
    Directories that a crash leaves half-made open as new partitions."""
    if not directories:
        return
    content = Checkpoint(created_ms=now_ms).encode()
    unsynced = []
    for directory in directories:
        files.make_directories(directory, durably=False)
        files.open(f"{directory}/{segment_name(0, LOG)}", create=True)
        unsynced.append(f"{directory}/{CHECKPOINT}{TEMPORARY}")
        write_whole(files, unsynced[-1], content)
    at_most_dirty = (8 + len(directories)) << 20  # with more, writing back other dirty data costs more than is saved
    if not files.sync_filesystem(root, at_most_dirty):
        for path in unsynced:
            files.open(path).sync()
    for directory in directories:
        files.rename(f"{directory}/{CHECKPOINT}{TEMPORARY}", f"{directory}/{CHECKPOINT}")
    if not files.sync_filesystem(root, at_most_dirty):
        for directory in [*directories, *dict.fromkeys(map(os.path.dirname, directories)), root]:
            files.sync_directory(directory)


class Recovery:
    """One recovery of one directory."""

    def __init__(self, files: Files, pool: HandlePool, directory: str, spec: IndexSpec, now_ms: TimestampMs) -> None:
        self._files = files
        self._pool = pool
        self._directory = directory
        self._spec = spec
        self._now_ms = now_ms
        self._report = RecoveryReport()
        self._aborted_is_wrong = False
        self._compaction = CompactionState()

    def run(self) -> Recovered:
        entries = self._files.list(self._directory, sizes=LOG)
        if any(entry.name == STATE for entry in entries) and self._finish_compaction(entries):
            entries = self._files.list(self._directory, sizes=LOG)
        names = {entry.name for entry in entries}
        known = self._checkpoint(names)
        checkpoint = known or Checkpoint(created_ms=self._now_ms)
        sizes = self._segments(entries, checkpoint.start_offset)
        if not sizes:
            return self._empty(checkpoint)
        bases = sorted(sizes)
        gaps_are_legal = known is None  # gaps of a compaction; after a checkpoint, a gap means that data is lost
        trusted = [base for base in bases if base < checkpoint.segment]
        to_scan = bases[len(trusted) :]
        if to_scan[:1] != [checkpoint.segment] or sizes[checkpoint.segment] < checkpoint.position:
            # The checkpoint's own segment is gone or too short: durable bytes are missing. Trust nothing.
            if checkpoint.offset:
                self._report.lost.append(
                    f"{self._name(checkpoint.segment)}: offsets up to {checkpoint.offset - 1} were durable, "
                    f"but the file is missing or too short; the whole log is scanned"
                )
            checkpoint = Checkpoint(start_offset=checkpoint.start_offset, segment=bases[0], offset=bases[0])
            trusted, to_scan, gaps_are_legal = [], bases, True
        sealed = [
            self._sealed(base, sizes[base], end, self._aborted_in(base, checkpoint))
            for base, end in zip(trusted, bases[1:], strict=False)
        ]
        for segment in sealed:
            self._check_indexes(segment, names)
        producers = checkpoint.known_producers()
        active = self._scan(to_scan, sizes, checkpoint, producers, sealed, gaps_are_legal=gaps_are_legal)
        self._check_aborted(sealed, active, names, producers, len(trusted))
        start_offset = max(checkpoint.start_offset, sealed[0].base_offset if sealed else active.base_offset)
        return Recovered(
            min(start_offset, active.end_offset),
            sealed,
            active,
            producers,
            checkpoint,
            self._report,
            self._compaction_of(sealed, active),
        )

    def _finish_compaction(self, entries: list[Entry]) -> bool:
        """Read what was compacted; True if an unfinished exchange of segments had to be finished."""
        state = read_state(self._files, self._directory)
        if state is None:
            self._report.lost.append(f"{STATE}: damaged; compaction will start over from the beginning of the log")
            self._aborted_is_wrong = True  # only this file had the number of transactions in compacted segments
            return False
        self._compaction = state
        if state.swap is None:
            return False
        sizes = {entry.name: entry.size for entry in entries if entry.name.endswith(LOG)}
        self._compaction = finish_swap(self._files, self._directory, state, sizes)
        return True

    def _aborted_in(self, base: Offset, checkpoint: Checkpoint) -> int:
        compacted = self._compaction.aborted_in(base)
        return checkpoint.aborted_in(base) if compacted is None else compacted

    def _compaction_of(self, sealed: list[SealedSegment], active: ActiveSegment) -> CompactionState:
        """The compaction state of the segments that are left; written to disk if it has changed."""
        state = self._compaction.cut(active.end_offset, active.base_offset).recounted(sealed)
        if state != self._compaction:
            write_state(self._files, self._directory, state)
        return state

    def _checkpoint(self, names: set[str]) -> Checkpoint | None:
        if CHECKPOINT not in names:
            return None
        checkpoint = read_checkpoint(self._files, self._directory)
        if checkpoint is None:
            self._report.lost.append(f"{CHECKPOINT}: damaged; the whole log is scanned")
        return checkpoint

    def _segments(self, entries: list[Entry], start_offset: Offset) -> dict[Offset, int]:
        """Sizes of the log files by base offset, after removing what a crash left over."""
        sizes: dict[Offset, int] = {}
        for entry in entries:
            base = base_offset_of(entry.name, LOG)
            if base is not None:
                sizes[base] = entry.size or 0
            elif entry.name.endswith(TEMPORARY) or is_cleaned(entry.name):
                self._remove(entry.name)
        for entry in entries:
            for suffix in INDEXES:
                base = base_offset_of(entry.name, suffix)
                if base is not None and base not in sizes:
                    self._remove(entry.name)
        bases = sorted(sizes)
        for base, end in pairwise(bases):
            if end <= start_offset:  # deleted before the crash, but the removal of the names was not durable
                del sizes[base]
                for suffix in (LOG, *INDEXES):
                    self._remove(segment_name(base, suffix))
        return sizes

    def _empty(self, checkpoint: Checkpoint) -> Recovered:
        """A new partition, or one whose first segment's name did not survive."""
        base = max(checkpoint.start_offset, checkpoint.offset)
        if checkpoint.position:
            self._report.lost.append(f"{self._name(checkpoint.segment)}: all segments are missing")
        active = ActiveSegment(self._files, self._pool, self._directory, base, self._spec, created_ms=self._now_ms)
        self._files.open(active.path + LOG, create=True).truncate(0)
        checkpoint = Checkpoint(
            start_offset=base,
            offset=base,
            segment=base,
            created_ms=self._now_ms,
            producers=checkpoint.producers,
            transactions=checkpoint.transactions,
        )
        write_checkpoint(self._files, self._directory, checkpoint)
        producers = checkpoint.known_producers()
        compaction = self._compaction_of([], active)
        return Recovered(base, [], active, producers, checkpoint, self._report, compaction)

    def _scan(
        self,
        bases: list[Offset],
        sizes: dict[Offset, int],
        checkpoint: Checkpoint,
        producers: Producers,
        sealed: list[SealedSegment],
        *,
        gaps_are_legal: bool,
    ) -> ActiveSegment:
        """Scan what the checkpoint does not vouch for; the last remaining segment becomes the active one."""
        active = self._first_to_scan(checkpoint)
        for number, base in enumerate(bases):
            if number:
                active = ActiveSegment(
                    self._files, self._pool, self._directory, base, self._spec, created_ms=self._now_ms
                )
            damage = self._extend(active, sizes[base], producers)
            following = bases[number + 1 :]
            if damage is None and following and following[0] != active.end_offset:
                if active.end_offset < following[0] <= self._compaction.compacted_to:
                    active.end_offset = following[0]  # compaction removed the records between them
                elif following[0] < active.end_offset or not gaps_are_legal:
                    damage = Damage(active.size, f"the next segment starts at offset {following[0]}")
                else:
                    self._report.lost.append(f"offsets {active.end_offset} to {following[0] - 1} are missing")
            if damage is not None:
                self._cut(active, sizes[base], damage, keep=gaps_are_legal)
                for unreachable in following:
                    self._set_aside(unreachable, sizes[unreachable])
                break
            if following:
                sealed.append(active.seal())
                self._report.rebuilt.append(self._name(base))
        return active

    def _first_to_scan(self, checkpoint: Checkpoint) -> ActiveSegment:
        active = ActiveSegment(
            self._files,
            self._pool,
            self._directory,
            checkpoint.segment,
            self._spec,
            size=checkpoint.position,
            end_offset=checkpoint.offset,
            created_ms=checkpoint.created_ms or self._now_ms,
            saved=SavedIndexes(checkpoint.index_bytes, checkpoint.time_index_bytes),
        )
        count = checkpoint.aborted_in(checkpoint.segment)
        aborted = read_aborted(
            self._files, active.path, count, active.base_offset, active.end_offset, is_sealed=False
        )
        if aborted is None:
            self._aborted_is_wrong = True
        else:
            active.aborted = AbortedIndex(aborted, saved=True)
        return active

    def _extend(self, active: ActiveSegment, size: int, producers: Producers) -> Damage | None:
        """Add the valid batches after the segment's known end to it."""
        if active.size == size:
            return None
        scan = BatchScan(active.file, active.size, size, base_offset=active.base_offset, verify=True)
        self._report.scanned_bytes += size - active.size
        for batch in scan:
            header = batch.header
            if header.base_offset < active.end_offset:
                return Damage(batch.position, f"base offset {header.base_offset} is before {active.end_offset}")
            active.recovered(header)
            if header.has_producer:
                producers.update(header, header.base_offset, self._now_ms)
                if header.is_control and (committed := is_commit(batch)) is not None:
                    aborted = producers.ended(header, header.base_offset, committed)
                    if aborted is not None:
                        active.aborted.entries.append(aborted)
        return scan.damage

    def _check_aborted(
        self,
        sealed: list[SealedSegment],
        active: ActiveSegment,
        names: set[str],
        producers: Producers,
        trusted: int,
    ) -> None:
        """Check the indexes of aborted transactions against the checkpoint, the compaction state and the scanned
        batches. If one is wrong, rebuild all of them, which means reading the whole log."""
        segments: list[SealedSegment | ActiveSegment] = [*sealed, active]
        for number, segment in enumerate(segments):
            has_file = segment_name(segment.base_offset, ABORTED_INDEX) in names
            if segment.aborted_count == 0 and has_file and number < trusted:
                self._aborted_is_wrong = True  # the file exists, so there were aborted transactions
            elif segment.aborted_count == 0 and has_file:
                self._remove(segment_name(segment.base_offset, ABORTED_INDEX))
            elif segment.aborted_count and not has_file and segment is not active:
                self._aborted_is_wrong |= segment.load_aborted() is None  # else it was sealed just now
        if self._aborted_is_wrong:
            anew, producers.open = transactions_in(segments)
            for segment in segments:
                if segment.replace_aborted(anew[segment.base_offset]):
                    self._report.rebuilt.append(segment_name(segment.base_offset, ABORTED_INDEX))

    def _cut(self, active: ActiveSegment, size: int, damage: Damage, *, keep: bool) -> None:
        """`keep`: without a checkpoint it is not known what was promised, so the bytes are saved in a separate
        file."""
        if size == active.size:
            return
        name = self._name(active.base_offset)
        kept = ""
        if keep:
            copy = f"{name}.{active.size}{CUT}"
            kept = f", kept in {copy}"
            write_durably(
                self._files, f"{self._directory}/{copy}", active.file.pread(size - active.size, active.size)
            )
        self._report.cut.append(
            f"{name}: cut {size - active.size} bytes at position {active.size} "
            f"(offset {active.end_offset}){kept}: {damage.reason}"
        )
        active.drop_unfinished()

    def _set_aside(self, base: Offset, size: int) -> None:
        """The log ends before this segment, so the segment cannot be part of it. Its records were not promised, but
        they may still be of value, so the file is renamed and not deleted."""
        for suffix in INDEXES:
            self._remove(segment_name(base, suffix))
        name = self._name(base)
        if size == 0:
            self._remove(name)
            return
        self._report.cut.append(f"{name}: set aside as {name}{UNREACHABLE}, because the log ends before it")
        self._files.rename(f"{self._directory}/{name}", f"{self._directory}/{name}{UNREACHABLE}")

    def _sealed(self, base: Offset, size: int, end_offset: Offset, aborted: int) -> SealedSegment:
        return SealedSegment(self._files, self._pool, self._directory, base, size, end_offset, self._spec, aborted)

    def _check_indexes(self, segment: SealedSegment, names: set[str]) -> None:
        if all(segment_name(segment.base_offset, suffix) in names for suffix in (INDEX, TIME_INDEX)):
            return
        segment.rebuild_indexes()
        self._report.rebuilt.append(self._name(segment.base_offset))

    def _remove(self, name: str) -> None:
        try:
            self._files.remove(f"{self._directory}/{name}")
        except FileNotFoundError:
            return
        self._report.removed.append(name)

    def _name(self, base: Offset) -> str:
        return segment_name(base, LOG)
