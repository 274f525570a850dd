"""`LogBuilder`: writes the files of a log whose batches come from elsewhere, with their offsets.

The directory becomes a log with the last step of `finish`, the checkpoint, which vouches for all files: opening the
log scans nothing. A directory that a crash left half-made is removed when the next builder begins.
"""

from collections.abc import Iterable
from contextlib import suppress

from tidelog.model import Offset, TimestampMs
from tidelog.records.batch import BatchHeader, BatchView, ReadBuffer
from tidelog.settings import LogSettings
from tidelog.storage.local.aborted import ABORTED_INDEX, encode_aborted, is_commit
from tidelog.storage.local.checkpoint import Checkpoint, write_checkpoint
from tidelog.storage.local.compaction_state import CompactionState, write_state
from tidelog.storage.local.files import File, Files, remove_tree, write_durably
from tidelog.storage.local.index import OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE
from tidelog.storage.local.scan import MAX_RELATIVE_OFFSET
from tidelog.storage.local.segment import LOG, IndexSpec, SegmentIndexes, segment_name
from tidelog.storage.log import AbortedTransaction
from tidelog.storage.whole_log import WholeLog

_WRITTEN_AT_ONCE = 1 << 20


class _Segment:
    """The segment that is being written."""

    def __init__(self, files: Files, directory: str, base_offset: Offset) -> None:
        self.base_offset = base_offset
        self.path = f"{directory}/{segment_name(base_offset, '')}"
        self.file: File = files.open(self.path + LOG, create=True)
        self.indexes = SegmentIndexes(base_offset)
        self.size = 0
        self._pending = bytearray()  # its last bytes, which are not in the file yet

    def add(self, content: ReadBuffer) -> None:
        self._pending += content
        self.size += len(content)
        if len(self._pending) >= _WRITTEN_AT_ONCE:
            self.write()

    def write(self) -> None:
        self.file.pwrite(self._pending, self.size - len(self._pending))
        self._pending = bytearray()


class LogBuilder:
    """Raises OSError."""

    def __init__(self, files: Files, directory: str, start_offset: Offset, settings: LogSettings) -> None:
        """Whatever is in the directory is removed."""
        self._files = files
        self._directory = directory
        self._start_offset = start_offset
        self._settings = settings
        self._spec = IndexSpec(settings.index_interval_bytes, settings.segment_index_bytes)
        self._bases: list[Offset] = []
        self._abort_markers: set[Offset] = set()
        self._holes_to: Offset = 0  # there is a gap before this offset
        self._next = start_offset
        with suppress(FileNotFoundError):
            remove_tree(files, directory)
        files.make_directories(directory)
        self._segment: _Segment | None = None

    def add(self, batch: BatchView, content: ReadBuffer) -> None:
        """The next batch; `content` are its bytes, which may differ from the view's in what its CRC does not
        cover."""
        header = batch.header
        if header.base_offset > self._next:
            self._holes_to = header.base_offset
        segment = self._segment
        if segment is None or self._is_full(segment, header):
            segment = self._roll(header.base_offset)
        segment.indexes.add(header, header.last_offset, segment.size, self._spec)
        segment.add(content)
        self._next = header.next_offset
        if header.is_control and is_commit(batch) is False:
            self._abort_markers.add(header.base_offset)

    def finish(self, whole: WholeLog, now_ms: TimestampMs) -> list[str]:
        """Make the directory a log. Returns the paths of its log files, in order."""
        if self._segment is None or self._next < whole.end_offset:  # compaction has removed the last records
            self._holes_to = max(self._holes_to, whole.end_offset if self._segment is not None else 0)
            self._roll(whole.end_offset)
        active = self._segment
        assert active is not None
        self._sync(active)
        counts = self._write_aborted(whole.aborted)
        compacted_to = max(whole.clean_offset, self._holes_to)
        if compacted_to or whole.next_horizon_ms is not None:
            state = CompactionState(min(whole.clean_offset, whole.end_offset), compacted_to, whole.next_horizon_ms)
            write_state(self._files, self._directory, state)
        self._files.sync_directory(self._directory)
        checkpoint = Checkpoint(
            start_offset=whole.start_offset,
            offset=whole.end_offset,
            segment=active.base_offset,
            position=active.size,
            index_bytes=len(active.indexes.offsets) * OFFSET_ENTRY_SIZE,
            time_index_bytes=len(active.indexes.times) * TIME_ENTRY_SIZE,
            created_ms=now_ms,
            producers=whole.producers.to_rows(),
            transactions=[[id_, first_offset] for id_, first_offset in whole.producers.open.items()],
            aborted=counts,
        )
        write_checkpoint(self._files, self._directory, checkpoint)
        return [f"{self._directory}/{segment_name(base, LOG)}" for base in self._bases]

    def _is_full(self, segment: _Segment, header: BatchHeader) -> bool:
        return segment.size > 0 and (
            segment.size + header.size > self._settings.segment_bytes
            or header.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET
            or segment.indexes.full
        )

    def _roll(self, base_offset: Offset) -> _Segment:
        """The first segment must not begin after the start of the log."""
        segment = self._segment
        if segment is None:
            base_offset = min(base_offset, self._start_offset)
        else:
            segment.indexes.close()
            self._sync(segment)
        self._segment = _Segment(self._files, self._directory, base_offset)
        self._bases.append(base_offset)
        return self._segment

    def _sync(self, segment: _Segment) -> None:
        segment.write()
        for file in [segment.file, *segment.indexes.save(self._files, segment.path)]:
            file.sync()

    def _write_aborted(self, aborted: Iterable[AbortedTransaction]) -> list[list[int]]:
        """Each index file has the transactions whose markers are in its segment. Returns their numbers, by segment.
        Without its marker an entry would hide later records."""
        kept = [one for one in aborted if one.last_offset in self._abort_markers]
        counts = []
        for number, base in enumerate(self._bases):
            end = self._bases[number + 1] if number + 1 < len(self._bases) else None
            entries = [one for one in kept if base <= one.last_offset and (end is None or one.last_offset < end)]
            if entries:
                path = f"{self._directory}/{segment_name(base, ABORTED_INDEX)}"
                write_durably(self._files, path, encode_aborted(entries))
                counts.append([base, len(entries)])
        return counts
