"""Repairing a partition's files: first a plan that people can read, then exactly the steps of that plan.

The log must not be open; the caller holds the data directory's lock. Repaired by default is what opening the log
would repair too, or what can be rebuilt from the log:

    torn tail of the last segment      cut off
    indexes, aborted transactions      rebuilt from the log
    leftovers of a crash               removed
    checkpoint                         written again, for the log as it is now

Damage in the middle is different: the records after it are good. It is left alone, unless the caller wants the log to
end there (`cut_at_damage`); the bytes that are cut are then kept in files that end in `.cut`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tidelog.model import Offset, ProducerId, TimestampMs
from tidelog.records.batch import BatchView
from tidelog.settings import LogSettings
from tidelog.storage.local.aborted import ABORTED_INDEX, AbortedIndex, TransactionTracker
from tidelog.storage.local.checkpoint import Checkpoint, write_checkpoint
from tidelog.storage.local.compaction_state import finish_swap, read_state, write_state
from tidelog.storage.local.files import File, Files, storage_error, write_whole
from tidelog.storage.local.index import OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE
from tidelog.storage.local.inspect import PartitionFiles, log_name, walk_segment
from tidelog.storage.local.recovery import CUT
from tidelog.storage.local.segment import (
    INDEXES,
    LOG,
    IndexSpec,
    SegmentIndexes,
    segment_name,
)
from tidelog.storage.local.verify import Finding, Kind, PartitionCheck
from tidelog.storage.producers import Producers

_COPY_CHUNK = 1 << 20
_CUTTABLE = (Kind.DAMAGE, Kind.ORDER, Kind.RECORDS)


@dataclass(frozen=True, slots=True)
class CutPoint:
    segment: Offset
    position: int
    end_offset: Offset
    is_torn_tail: bool


@dataclass(slots=True)
class RepairPlan:
    """The steps that repair one partition. `left` holds the findings that remain."""

    directory: str
    steps: list[str] = field(default_factory=list)
    left: list[Finding] = field(default_factory=list)
    cut: CutPoint | None = None
    set_aside: list[Offset] = field(default_factory=list)
    reindex: list[Offset] = field(default_factory=list)
    remove: list[str] = field(default_factory=list)
    fresh_checkpoint: bool = False


class Repair:
    """Checks the partition in the constructor; `plan` says what `apply` will do."""

    def __init__(
        self,
        files: Files,
        directory: str,
        *,
        cut_at_damage: bool = False,
        compacted: bool = False,
        deep: bool = False,
    ) -> None:
        self._files = files
        self._directory = directory
        settings = LogSettings()
        self._spec = IndexSpec(settings.index_interval_bytes, settings.segment_index_bytes)
        try:
            state = read_state(files, directory)
            if state is not None and state.swap is not None:  # committed already: finish it, then repair the result
                sizes = {entry.name: entry.size for entry in files.list(directory, sizes=LOG)}
                state = finish_swap(files, directory, state, sizes)
        except OSError as error:
            raise storage_error(error, f"repair {directory}") from error
        self._compaction = state
        check = PartitionCheck(files, directory, compacted=compacted, deep=deep)
        self._findings = list(check)
        self._listing: PartitionFiles = check.listing
        self._stored, self._known = check.stored_checkpoint, check.checkpoint
        self._end_offset = self._end_of_log(check.end_offset)
        self.plan = self._planned(cut_at_damage)

    def _end_of_log(self, end_of_batches: Offset) -> Offset:
        """Damage at the very end hides where the log ended. If the damage is not cut off, the checkpoint's offset
        counts."""
        last = max(self._listing.segments, default=None)
        for finding in self._findings:
            if finding.kind is Kind.DAMAGE and finding.segment == last and self._known is not None:
                return max(end_of_batches, self._known.offset)
        return end_of_batches

    def _planned(self, cut_at_damage: bool) -> RepairPlan:
        plan = RepairPlan(self._directory)
        bases = list(self._listing.segments)
        plan.cut = self._cut_point(cut_at_damage)
        cut = plan.cut
        if cut is not None:
            plan.set_aside = [base for base in bases if base > cut.segment]
            self._describe_cut(plan, cut)
        last = cut.segment if cut is not None else bases[-1] if bases else None
        for finding in self._findings:
            if cut is not None and self._is_behind(finding, cut):
                continue
            if finding.kind is Kind.INDEX and finding.segment is not None:
                if finding.segment == last or finding.path.endswith(ABORTED_INDEX):  # counted in the checkpoint
                    plan.fresh_checkpoint = True
                elif finding.segment not in plan.reindex:
                    plan.reindex.append(finding.segment)
            elif finding.kind is Kind.CHECKPOINT and bases:
                plan.fresh_checkpoint = True
            elif finding.kind is Kind.LEFTOVER:
                plan.remove += self._names_of(finding)
            elif finding.is_error and not (finding.kind is Kind.TORN_TAIL and cut is not None):
                plan.left.append(finding)
        plan.fresh_checkpoint = plan.fresh_checkpoint or cut is not None
        if plan.fresh_checkpoint:
            plan.reindex = sorted({*plan.reindex, *self._not_vouched_for(plan, last)})
        plan.steps += [f"rebuild the indexes of {log_name(base)}" for base in plan.reindex]
        plan.steps += [f"remove {name}" for name in plan.remove]
        if plan.fresh_checkpoint and last is not None:
            end = cut.end_offset if cut is not None else self._end_offset
            plan.steps.append(f"rebuild the indexes of {log_name(last)} and write a checkpoint up to offset {end}")
        return plan

    def _not_vouched_for(self, plan: RepairPlan, last: Offset | None) -> list[Offset]:
        """The segments whose indexes the new checkpoint will vouch for (all before the last), but the old one did
        not."""
        known = self._known.segment if self._known is not None else -1
        return [
            base
            for base in self._listing.segments
            if known <= base and base != last and base not in plan.set_aside and log_name(base) not in plan.remove
        ]

    def _cut_point(self, cut_at_damage: bool) -> CutPoint | None:
        """The first place where the log has to end."""
        bases = list(self._listing.segments)
        for finding in self._findings:
            segment, position = finding.segment, finding.position or 0
            is_torn_tail = finding.kind is Kind.TORN_TAIL
            if segment is None or not (is_torn_tail or (cut_at_damage and finding.kind in _CUTTABLE)):
                continue
            if position == 0 and segment != bases[0] and not is_torn_tail:  # the whole segment is cut
                segment = bases[bases.index(segment) - 1]
                position = self._listing.segments[segment]
            end_offset = segment
            for batch in self._batches(segment, position):
                end_offset = batch.header.next_offset
            return CutPoint(segment, position, end_offset, is_torn_tail)
        return None

    def _describe_cut(self, plan: RepairPlan, cut: CutPoint) -> None:
        size = self._listing.segments[cut.segment] - cut.position
        kept = "" if cut.is_torn_tail else f", keeping them in {self._cut_name(cut)}"
        if size:
            plan.steps.append(
                f"cut {size} bytes at position {cut.position} of {log_name(cut.segment)}, "
                f"after offset {cut.end_offset - 1}{kept}"
            )
        plan.steps += [f"move {log_name(base)} to {log_name(base)}{CUT}" for base in plan.set_aside]

    def _is_behind(self, finding: Finding, cut: CutPoint) -> bool:
        """True if the cut removes what the finding is about."""
        if finding.segment is None or finding.kind is Kind.INDEX:
            return finding.segment is not None and finding.segment > cut.segment
        return (finding.segment, finding.position or 0) >= (cut.segment, cut.position)

    def _names_of(self, finding: Finding) -> list[str]:
        if finding.segment is not None:
            return [segment_name(finding.segment, suffix) for suffix in (LOG, *INDEXES)]
        return [finding.path.rpartition("/")[2]]

    def apply(self, now_ms: TimestampMs) -> None:
        """Carry out the plan. If this is interrupted at any point, the log can still be opened, and a second repair
        finishes the work."""
        try:
            self._apply(now_ms)
        except OSError as error:
            raise storage_error(error, f"repair {self._directory}") from error

    def _apply(self, now_ms: TimestampMs) -> None:
        plan, sizes = self.plan, self._listing.segments
        producers = self._producers(now_ms) if plan.fresh_checkpoint else Producers()
        if plan.cut is not None:
            self._cut(plan.cut, plan.set_aside)
        for base in plan.reindex:
            self._reindex(base)
        aborted, open_transactions = self._transactions(plan)
        for base, index in aborted.items():
            if base in plan.reindex or plan.fresh_checkpoint:
                index.replace(self._files, self._listing.path(segment_name(base, "")))
        for name in plan.remove:
            try:
                self._files.remove(self._listing.path(name))
            except FileNotFoundError:
                pass
        self._files.sync_directory(self._directory)
        if plan.fresh_checkpoint:
            kept = [base for base in sizes if base not in plan.set_aside and log_name(base) not in plan.remove]
            producers.open = open_transactions
            self._write_checkpoint(kept, producers, aborted, now_ms)
            if self._compaction is not None:  # the new checkpoint has the current numbers
                state = replace(self._compaction.cut(self._end_offset, kept[-1]), aborted=())
                write_state(self._files, self._directory, state)

    def _cut(self, cut: CutPoint, set_aside: list[Offset]) -> None:
        sizes = self._listing.segments
        file = self._files.open(self._listing.path(log_name(cut.segment)))
        if not cut.is_torn_tail and sizes[cut.segment] > cut.position:
            self._keep(file, cut.position, sizes[cut.segment], self._cut_name(cut))
        if self._stored is not None and self._stored.offset > cut.end_offset:
            # The cut removes bytes that the checkpoint vouches for: it must not be trusted if we are interrupted.
            write_checkpoint(self._files, self._directory, Checkpoint(start_offset=self._stored.start_offset))
        for base in reversed(set_aside):  # newest first, so that a crash in between leaves no hole
            path = self._listing.path(log_name(base))
            self._files.rename(path, path + CUT)
            for suffix in INDEXES:
                if segment_name(base, suffix) in self._listing.indexes:
                    self._files.remove(self._listing.path(segment_name(base, suffix)))
        self._files.sync_directory(self._directory)
        file.truncate(cut.position)
        file.sync()
        sizes[cut.segment] = cut.position
        for base in set_aside:
            del sizes[base]
        self._end_offset = cut.end_offset

    def _cut_name(self, cut: CutPoint) -> str:
        """The name contains the position, so that a later cut of the same segment does not overwrite the file."""
        return f"{log_name(cut.segment)}.{cut.position}{CUT}"

    def _keep(self, file: File, start: int, end: int, name: str) -> None:
        kept = write_whole(self._files, self._listing.path(name), b"")
        for position in range(start, end, _COPY_CHUNK):
            kept.pwrite(file.pread(min(_COPY_CHUNK, end - position), position), position - start)
        kept.sync()
        self._files.sync_directory(self._directory)

    def _reindex(self, base: Offset) -> SegmentIndexes:
        """Rebuild both index files from the good batches of a log, durably. Batches after damage are indexed too."""
        indexes = SegmentIndexes(base)
        for batch in self._batches(base, self._listing.segments[base]):
            indexes.add(batch.header, batch.header.last_offset, batch.position, self._spec)
        indexes.close()
        for file in indexes.save(self._files, self._listing.path(segment_name(base, "")), anew=True):
            file.sync()
        return indexes

    def _transactions(self, plan: RepairPlan) -> tuple[dict[Offset, AbortedIndex], dict[ProducerId, Offset]]:
        """The transactions aborted in each segment and those open at the end, according to the remaining batches."""
        transactions = TransactionTracker()
        aborted: dict[Offset, AbortedIndex] = {}
        if plan.reindex or plan.fresh_checkpoint:
            for base, size in self._listing.segments.items():
                if log_name(base) not in plan.remove:
                    ended = (transactions.saw(batch) for batch in self._batches(base, size))
                    aborted[base] = AbortedIndex(entry for entry in ended if entry is not None)
        return aborted, transactions.open

    def _write_checkpoint(
        self,
        bases: list[Offset],
        producers: Producers,
        aborted: dict[Offset, AbortedIndex],
        now_ms: TimestampMs,
    ) -> None:
        stored, last = self._stored, bases[-1]
        self._files.open(self._listing.path(log_name(last))).sync()
        indexes = self._reindex(last)
        self._files.sync_directory(self._directory)
        start_offset = max(bases[0], stored.start_offset) if stored is not None else bases[0]
        checkpoint = Checkpoint(
            start_offset=min(start_offset, self._end_offset),
            offset=self._end_offset,
            segment=last,
            position=self._listing.segments[last],
            index_bytes=len(indexes.offsets) * OFFSET_ENTRY_SIZE,
            time_index_bytes=len(indexes.times) * TIME_ENTRY_SIZE,
            created_ms=stored.created_ms if stored is not None and stored.segment == last else now_ms,
            producers=producers.to_rows(),
            transactions=[list(entry) for entry in producers.open.items()],
            aborted=[[base, len(index)] for base, index in aborted.items() if len(index)],
        )
        write_checkpoint(self._files, self._directory, checkpoint)

    def _producers(self, now_ms: TimestampMs) -> Producers:
        """The producers in the checkpoint, if it can be trusted, and those in the log after it, up to the cut."""
        known, cut = self._known, self.plan.cut
        if known is not None and any(finding.kind is Kind.CHECKPOINT for finding in self._findings):
            known = None
        producers = known.known_producers() if known is not None else Producers()
        if cut is not None:
            producers.cut(cut.end_offset)
        for base in self._listing.segments:
            if (known is not None and base < known.segment) or base in self.plan.set_aside:
                continue
            up_to = cut.position if cut is not None and base == cut.segment else self._listing.segments[base]
            for batch in self._batches(base, up_to):
                header = batch.header
                if header.has_producer and (known is None or header.base_offset >= known.offset):
                    producers.update(header, header.base_offset, now_ms)
        return producers

    def _batches(self, base: Offset, up_to: int) -> Iterator[BatchView]:
        """The batches of a segment that are valid and in their place."""
        misplaced = {f.position for f in self._findings if f.kind is Kind.ORDER and f.segment == base and f.size}
        file = self._files.open(self._listing.path(log_name(base)), writable=False)
        for part in walk_segment(file, up_to, base):
            if isinstance(part, BatchView) and part.position not in misplaced:
                yield part
