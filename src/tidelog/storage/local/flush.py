"""What has to reach the device before a promise can be given, as a value that any thread may carry out.

The log's owner makes a `FlushJob` (`LocalLog.begin_flush`), some thread runs it, and the owner takes the result back
(`LocalLog.end_flush`). A job only calls the file system; it never touches the log's state.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from tidelog.errors import StorageError
from tidelog.model import Offset
from tidelog.storage.local.checkpoint import Checkpoint, write_checkpoint, write_checkpoints
from tidelog.storage.local.files import File, Files, storage_error
from tidelog.storage.local.scan import BatchScan


class Range(NamedTuple):
    """Bytes of a segment's log file."""

    file: File
    base_offset: Offset
    start: int
    end: int


@dataclass(slots=True, eq=False)
class FlushJob:
    directory: str
    up_to: Offset
    size_bytes: int
    files: list[File]
    names_changed: bool
    checkpoint: Checkpoint | None
    rewrite: list[Range]
    """To be written again first: after a failed sync the system may have dropped the pages and forgotten it."""
    error: StorageError | None = None
    wait: Callable[[], None] | None = None
    """Blocks until it has run, if that is in another thread."""

    def run(self, files: Files) -> None:
        """Carry the job out; what fails is kept in `error`."""
        try:
            for range_ in self.rewrite:
                _write_again(*range_)
            for file in self.files:
                file.sync()
            if self.names_changed:
                files.sync_directory(self.directory)
        except OSError as error:
            self.error = storage_error(error, f"flush {self.directory}")
        except Exception as error:
            self.fail_unforeseen(error)
        else:
            if self.checkpoint is not None:
                # The data is durable: a checkpoint that cannot be written only makes the next opening slower.
                try:
                    write_checkpoint(files, self.directory, self.checkpoint)
                except OSError:
                    self.checkpoint = None

    def fail_unforeseen(self, error: Exception) -> None:
        """A bug of ours: nobody may take the bytes for durable, and nobody may wait for ever."""
        if self.error is None:
            self.error = StorageError(f"flush {self.directory}: {error!r}")


def finish_together(files: Files, filesystem: str, jobs: list[FlushJob]) -> None:
    """The rest of jobs whose files and names a sync of the whole file system has just made durable."""
    checkpointing = [job for job in jobs if job.checkpoint is not None]
    if checkpointing:
        try:
            write_checkpoints(
                files, filesystem, [(job.directory, job.checkpoint) for job in checkpointing if job.checkpoint]
            )
        except OSError:
            for job in checkpointing:
                job.checkpoint = None


def _write_again(file: File, base_offset: Offset, start: int, end: int) -> None:
    """Only whole valid batches: pages that are gone already must not be taken for data."""
    scan = BatchScan(file, start, end, base_offset=base_offset, verify=True)
    for batch in scan:
        file.pwrite(batch.view, batch.position)
    if scan.damage is not None:
        raise OSError(
            5, f"the bytes from position {scan.damage.position} did not survive the failed write-back", file.path
        )
