"""`FlushJob`: the writes and syncs that must succeed before a promise is kept, as an object that any thread may run.

The log's owner makes a `FlushJob` (`LocalLog.begin_flush`), some thread runs it, and the owner takes the result
(`LocalLog.end_flush`). A job only calls the file system; it never touches the log's state.
"""

import math
import time
from dataclasses import dataclass, field
from typing import NamedTuple

from tidelog.errors import StorageError
from tidelog.model import Offset
from tidelog.storage.local.aborted import AbortedIndex
from tidelog.storage.local.checkpoint import (
    Checkpoint,
    read_checkpoint,
    write_checkpoint,
    write_checkpoints,
)
from tidelog.storage.local.files import File, Files, storage_error
from tidelog.storage.local.scan import BatchScan


class Range(NamedTuple):
    """Bytes of a segment's log file."""

    file: File
    base_offset: Offset
    start: int
    end: int


class StartMove(NamedTuple):
    """The log shall begin at `offset`. The job's checkpoint records that. If the job has none or cannot write it, the
    checkpoint on disk is written again with the new start, provided that its segment is the one at `checkpointed`.
    None: the segment of the checkpoint on disk is deleted by the move, so it cannot be used."""

    offset: Offset
    checkpointed: Offset | None


@dataclass(slots=True, eq=False)
class FlushJob:
    directory: str
    up_to: Offset
    size_bytes: int
    files: list[File]
    names_changed: bool
    checkpoint: Checkpoint | None
    rewrite: list[Range]
    """Written again before the sync: after a failed sync the kernel may have dropped the dirty pages, and the next
    sync would report success."""
    cut: tuple[File, int] | None = None
    """A file, and the size to truncate it to: a failed write may have left bytes after its end."""
    start: StartMove | None = None
    mend: list[tuple[str, AbortedIndex]] = field(default_factory=list)
    """Indexes of aborted transactions whose files are missing or wrong, with the paths of their segments."""
    error: StorageError | None = None
    """Why the appended data is not durable."""
    is_cut: bool = False
    written: Checkpoint | None = None
    """The checkpoint that is durable now."""
    checkpoint_error: StorageError | None = None

    @property
    def is_special(self) -> bool:
        """True if there is work to do before the sync, so that a sync of the whole file system is not enough."""
        return bool(self.rewrite or self.mend) or self.cut is not None

    def run(self, files: Files) -> None:
        """Run the job; a failure is stored in it."""
        try:
            if self.cut is not None:
                self._cut_off(*self.cut)
            for range_ in self.rewrite:
                _write_again(*range_)
            for path, index in self.mend:
                index.replace(files, path)
            for file in self.files:
                file.sync()
            if self.names_changed:
                files.sync_directory(self.directory)
        except OSError as error:
            self.error = storage_error(error, f"flush {self.directory}")
        except Exception as error:
            self.fail_unforeseen(error)
        self.write_checkpoint(files)

    def write_checkpoint(self, files: Files) -> None:
        """If the data is durable, a checkpoint that cannot be written only makes the next opening slower. But the
        start has not moved unless a checkpoint records it."""
        if self.checkpoint is not None and self.error is None:
            try:
                write_checkpoint(files, self.directory, self.checkpoint)
                self.written = self.checkpoint
            except OSError as error:
                self.checkpoint_error = storage_error(error, f"write the checkpoint of {self.directory}")
        if self.start is not None and self.written is None:
            try:
                self._move_start(files, *self.start)
            except OSError as error:
                self.checkpoint_error = storage_error(error, f"write the checkpoint of {self.directory}")

    def _move_start(self, files: Files, offset: Offset, checkpointed: Offset | None) -> None:
        if checkpointed is None:
            return
        stored = read_checkpoint(files, self.directory)
        if stored is not None and stored.segment == checkpointed:
            moved = stored.starting_at(offset)
            write_checkpoint(files, self.directory, moved)
            self.written = moved

    def _cut_off(self, file: File, size: int) -> None:
        """If this fails, the log cannot take appends, but what it has can still be made durable."""
        try:
            file.truncate(size)
            file.sync()
        except OSError:
            return
        self.is_cut = True

    def fail_unforeseen(self, error: Exception) -> None:
        """A bug of ours: the bytes must not count as durable, and no append may wait for ever."""
        if self.error is None:
            self.error = StorageError(f"cannot flush {self.directory}: {error!r}")


def finish_together(files: Files, filesystem: str, jobs: list[FlushJob], checkpoints_s: float = math.inf) -> None:
    """Finish jobs whose files and names a sync of the whole file system has just made durable. No checkpoint is begun
    after `checkpoints_s` seconds; the remaining jobs write none."""
    checkpointing = [(job, job.checkpoint) for job in jobs if job.checkpoint is not None]
    wanted = [(job.directory, checkpoint) for job, checkpoint in checkpointing]
    written = 0
    try:
        if wanted:
            written = write_checkpoints(files, filesystem, wanted, time.monotonic() + checkpoints_s)
    except OSError:
        for job in jobs:  # one job's directory may be the cause; retry only those whose start moves
            if job.start is not None:
                job.write_checkpoint(files)
    for job, checkpoint in checkpointing[:written]:
        job.written = checkpoint


def _write_again(file: File, base_offset: Offset, start: int, end: int) -> None:
    """Writes only whole valid batches: pages that the kernel has dropped already must not be taken for data."""
    scan = BatchScan(file, start, end, base_offset=base_offset, verify=True)
    for batch in scan:
        file.pwrite(batch.view, batch.position)
    if scan.damage is not None:
        raise OSError(
            5, f"the bytes from position {scan.damage.position} on were lost by the failed write-back", file.path
        )
