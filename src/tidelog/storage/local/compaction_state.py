"""The state file of a log's compaction, and the exchange of segments that it records.

The state file, `compaction`, is sealed JSON like the checkpoint. A crash before `Swap.commit` leaves `*.cleaned.*`
files, which opening the log removes. A crash after it leaves an unfinished exchange, which opening the log finishes
(`finish_swap`). The format is described in docs/formats/local-log.md.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple, Protocol

from tidelog.model import Offset, TimestampMs
from tidelog.storage.local.aborted import ABORTED_INDEX
from tidelog.storage.local.files import Files, write_durably
from tidelog.storage.local.sealed_json import as_json, seal, unseal
from tidelog.storage.local.segment import INDEXES, LOG, Leaving, segment_name

STATE = "compaction"
_CLEANED = ".cleaned"
_VERSION = 1


class CountedSegment(Protocol):
    base_offset: Offset

    @property
    def aborted_count(self) -> int: ...


class PlannedSwap(NamedTuple):
    """The new segment's base offset and size, and the segments that it replaces; the first has the same base
    offset."""

    base_offset: Offset
    size: int
    replaced: tuple[Offset, ...]
    aborted: int = 0
    """Number of aborted transactions in its index; 0: there is no index file."""


@dataclass(frozen=True, slots=True)
class CompactionState:
    """`clean_offset`: everything before it was compacted. `compacted_to`: offsets before it may have holes.
    `aborted`: compacted segments by their base offsets, with the number of their aborted transactions. For these
    segments this number counts, not the checkpoint's, because an exchange does not update the checkpoint."""

    clean_offset: Offset = 0
    compacted_to: Offset = 0
    next_horizon_ms: TimestampMs | None = None
    swap: PlannedSwap | None = None
    aborted: tuple[tuple[Offset, int], ...] = ()

    def encode(self) -> bytes:
        return seal(as_json({"version": _VERSION, **asdict(self)}).encode())

    def cut(self, end_offset: Offset, segment: Offset) -> "CompactionState":
        """The state after the log was cut at `end_offset`, in the segment with this base offset, which is now the
        active one."""
        return replace(
            self,
            clean_offset=min(self.clean_offset, end_offset),
            compacted_to=min(self.compacted_to, end_offset),
            aborted=tuple(entry for entry in self.aborted if entry[0] < segment),
        )

    def aborted_in(self, segment: Offset) -> int | None:
        """None: the segment was not compacted, so the checkpoint has the number."""
        return dict(self.aborted).get(segment)

    def recounted(self, segments: Iterable[CountedSegment]) -> "CompactionState":
        counts = {segment.base_offset: segment.aborted_count for segment in segments}
        return replace(self, aborted=tuple((base, counts[base]) for base, _ in self.aborted if base in counts))

    def exchanged(
        self, planned: PlannedSwap, end_offset: Offset, segments: Iterable[CountedSegment]
    ) -> "CompactionState":
        """The state after an exchange in a log with these segments."""
        known = {segment.base_offset: segment.aborted_count for segment in segments}
        gone, base_offset = planned.replaced[1:], planned.base_offset
        counts = {base: count for base, count in self.aborted if base in known and base not in gone}
        if planned.aborted or known[base_offset] or base_offset in counts:
            counts[base_offset] = planned.aborted
        return replace(self, compacted_to=max(self.compacted_to, end_offset), aborted=tuple(sorted(counts.items())))


def decode_state(content: bytes) -> CompactionState | None:
    """None if it is damaged or of a version we do not know."""
    values = unseal(content, _VERSION)
    if values is None:
        return None
    try:
        swap = values.pop("swap")
        planned = None if swap is None else PlannedSwap(int(swap[0]), int(swap[1]), tuple(swap[2]), *swap[3:])
        aborted = tuple((int(base), int(count)) for base, count in values.pop("aborted", ()))
        return CompactionState(**values, swap=planned, aborted=aborted)
    except (ValueError, TypeError, KeyError, AttributeError, IndexError):
        return None


def read_state(files: Files, directory: str) -> CompactionState | None:
    """None if there is no state file, or if it is damaged or of an unknown version."""
    try:
        file = files.open(f"{directory}/{STATE}", writable=False)
    except FileNotFoundError:
        return None
    return decode_state(file.pread(file.size(), 0))


def write_state(files: Files, directory: str, state: CompactionState) -> None:
    write_durably(files, f"{directory}/{STATE}", state.encode())


def cleaned_name(base_offset: Offset, suffix: str) -> str:
    return segment_name(base_offset, _CLEANED + suffix)


def is_cleaned(name: str) -> bool:
    return _CLEANED + "." in name


def finish_swap(
    files: Files, directory: str, state: CompactionState, sizes: dict[str, int | None]
) -> CompactionState:
    """Finish an exchange that a crash interrupted. `sizes` has the sizes of the directory's log files by name."""
    swap = state.swap
    assert swap is not None
    new, old = cleaned_name(swap.base_offset, LOG), segment_name(swap.base_offset, LOG)
    done = replace(state, swap=None)
    if sizes.get(new) == swap.size or (new not in sizes and sizes.get(old) == swap.size):
        for suffix in (LOG, *INDEXES):
            try:
                _put_into_place(files, directory, swap, suffix)
            except FileNotFoundError:
                pass
        for base in swap.replaced[1:]:
            for suffix in (LOG, *INDEXES):
                try:
                    files.remove(f"{directory}/{segment_name(base, suffix)}")
                except FileNotFoundError:
                    pass
        files.sync_directory(directory)
    else:
        done = replace(done, aborted=tuple(entry for entry in done.aborted if entry[0] != swap.base_offset))
    write_state(files, directory, done)
    return done


def _put_into_place(files: Files, directory: str, swap: PlannedSwap, suffix: str) -> None:
    """Rename one file of the new segment to its final name; FileNotFoundError if that has been done already."""
    place = f"{directory}/{segment_name(swap.base_offset, suffix)}"
    if suffix == ABORTED_INDEX and not swap.aborted:
        with suppress(FileNotFoundError):
            files.remove(place)
    else:
        files.rename(f"{directory}/{cleaned_name(swap.base_offset, suffix)}", place)


def remove_cleaned(files: Files, directory: str, base_offset: Offset) -> None:
    """Remove the files of a new segment that will not become part of the log."""
    for suffix in (LOG, *INDEXES):
        try:
            files.remove(f"{directory}/{cleaned_name(base_offset, suffix)}")
        except OSError:
            pass  # removed with its directory, or a leftover that opening the log removes


class Swap:
    """The file operations that exchange several segments for the one that was written from them. Any thread may run
    a step. Steps raise OSError."""

    def __init__(
        self, files: Files, directory: str, planned: PlannedSwap, before: CompactionState, after: CompactionState
    ) -> None:
        self._files = files
        self._directory = directory
        self.planned = planned
        self.before = before
        self.after = after
        self.is_applied = False
        """The new log file has its final name."""
        self.leaving: list[Leaving] = []
        """The segments that were replaced, set once no reader opens them by name any more."""

    def commit(self) -> None:
        """After this the exchange will take place, even if the machine crashes."""
        write_state(self._files, self._directory, replace(self.after, swap=self.planned))

    def exchange(self) -> None:
        _put_into_place(self._files, self._directory, self.planned, LOG)
        self.is_applied = True
        for suffix in INDEXES:
            _put_into_place(self._files, self._directory, self.planned, suffix)

    def finish(self) -> None:
        for segment in self.leaving[1:]:
            segment.remove()
        self.leaving.clear()  # the new segment has the first one's name; the old file is freed with its last reader
        self._files.sync_directory(self._directory)
        write_state(self._files, self._directory, self.after)

    def call_off(self) -> None:
        """Cancel the exchange: nothing was exchanged, and nothing will be."""
        write_state(self._files, self._directory, self.before)
        remove_cleaned(self._files, self._directory, self.planned.base_offset)
