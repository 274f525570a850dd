"""`Durability`: how much of a log is durable, and the flushes that make more of it durable.

A flush is a `FlushJob` that the log's owner begins, some thread runs, and the owner ends (`flush.py`). Some flushes
also write a checkpoint, which vouches for everything before it, so that opening the log reads only what follows it.
Some move the start of the log; the new start counts from the moment its checkpoint is written. A flush that failed
leaves a fault: the log takes no appends until a later flush has written the bytes again and synced them.
"""

from collections.abc import Collection, Iterable
from typing import Any

from tidelog.errors import StorageError
from tidelog.model import Offset, ProducerId, TopicPartition
from tidelog.promise import Promise
from tidelog.storage.local.checkpoint import Checkpoint
from tidelog.storage.local.files import Files, storage_error
from tidelog.storage.local.flush import FlushJob, Range, StartMove
from tidelog.storage.local.recovery import Recovered
from tidelog.storage.local.segment import LOG, ActiveSegment, SealedSegment, Segment
from tidelog.storage.local.segments import Segments

CHECKPOINT_EVERY_BYTES = 32 << 20


class Durability:
    def __init__(
        self,
        files: Files,
        directory: str,
        partition: TopicPartition,
        segments: Segments,
        recovered: Recovered,
        stable_offset: Offset,
    ) -> None:
        self._files = files
        self._directory = directory
        self._partition = partition
        self._segments = segments
        self._producers = recovered.producers
        self._checkpoint = recovered.checkpoint.without_producers()
        self.durable_offset = min(recovered.checkpoint.offset, segments.end_offset)
        """Everything before this offset survives a power loss."""
        self.decided_offset = min(recovered.checkpoint.stable_offset, stable_offset)
        """No record before this offset belongs to a transaction whose end is not durable: a crash changes nothing
        there."""
        self.fault: StorageError | None = None
        """The error of a failed flush. The log takes no appends until a later flush succeeds."""
        self.has_unfinished_write = False
        """Bytes of a failed write may follow the end of the log; a flush cuts them off."""
        self._unsynced: list[tuple[Segment, int]] = self._since_checkpoint()
        self._names_changed = not recovered.report.clean
        self._moves: list[tuple[Offset, Promise[Offset]]] = []  # new starts of the log that are not durable yet
        self._next_start = segments.start_offset
        self._job: FlushJob | None = None
        self._job_end: tuple[Offset, int] = (0, 0)
        self._job_stable: Offset = 0

    @property
    def is_flushing(self) -> bool:
        return self._job is not None

    @property
    def is_changing(self) -> bool:
        """The start is about to move, or a flush under way rewrites indexes of sealed segments."""
        return bool(self._moves) or (self._job is not None and bool(self._job.mend))

    @property
    def is_moving(self) -> bool:
        return bool(self._moves)

    @property
    def is_checkpointed(self) -> bool:
        """True if the checkpoint vouches for the whole log: opening it again scans nothing."""
        is_settled = self.fault is None and not self._names_changed and not self.has_unfinished_write
        return (
            is_settled
            and not self._moves
            and self._checkpoint == self._checkpoint_now(self._segments.start_offset, ())
        )

    @property
    def unchecked_bytes(self) -> int:
        """How many bytes opening the log again would scan."""
        return sum(segment.size - at for segment, at in self._since_checkpoint())

    def vouched_for(self) -> list[SealedSegment]:
        """The sealed segments before the checkpoint."""
        return [segment for segment in self._segments.sealed if segment.base_offset < self._checkpoint.segment]

    # What happens to the log

    def rolled(self, old: ActiveSegment, sealed: SealedSegment, new: ActiveSegment) -> None:
        self._unsynced = [(sealed if segment is old else segment, at) for segment, at in self._unsynced]
        self._unsynced.append((new, 0))
        self._names_changed = True

    def dropped(self, gone: Collection[Segment]) -> None:
        self._unsynced = [entry for entry in self._unsynced if entry[0] not in gone]

    def move_start(self, offset: Offset) -> Promise[Offset]:
        """Move the start with the next flush."""
        moved: Promise[Offset] = Promise()
        self._moves.append((offset, moved))
        self._next_start = max(self._next_start, offset)
        return moved

    def give_up_moves(self, error: StorageError) -> None:
        moves, self._moves, self._next_start = self._moves, [], self._segments.start_offset
        for _, moved in moves:
            moved.fail(self._not_moved(error))

    def abandon(self) -> None:
        """The log is closed: ignore the result of a flush that is under way."""
        self._job = None

    # Flushing

    def begin_plain(self, stable_offset: Offset) -> FlushJob | None:
        """The job of a usual flush: only the active segment has grown since the last one. None in any other case."""
        active = self._segments.active
        if (
            self._job is not None
            or self._names_changed
            or self._moves
            or self.fault is not None
            or self.has_unfinished_write
            or self._segments.has_unsaved_aborted
            or len(self._unsynced) != 1
        ):
            return None
        ((segment, at),) = self._unsynced
        size, checkpoint = active.size, self._checkpoint
        if (
            segment is not active
            or size == at
            or checkpoint.segment != active.base_offset
            or size - checkpoint.position >= CHECKPOINT_EVERY_BYTES
        ):
            return None
        self._job = job = FlushJob(self._directory, active.end_offset, size - at, [active.file], False, None, [])
        self._job_end = (active.base_offset, size)
        self._job_stable = stable_offset
        return job

    def begin(self, *, checkpoint: bool, stable_offset: Offset, may_change_files: bool) -> FlushJob | None:
        """The job that makes everything up to now durable; None if it already is, or if a flush is under way.

        The job writes a checkpoint if a segment was sealed, much was written since the last one, or the start
        moves."""
        if self._job is not None:
            return None
        try:
            return self._begin(checkpoint, stable_offset, may_change_files)
        except OSError as error:
            failure = storage_error(error, f"flush {self._partition}")
            self.give_up_moves(failure)
            raise failure from error
        except StorageError as error:
            self.give_up_moves(error)
            raise

    def _begin(self, checkpoint: bool, stable_offset: Offset, may_change_files: bool) -> FlushJob | None:
        segments = self._segments
        active = segments.active
        start = self._start_move() if self._moves and may_change_files else None
        unsaved = [segment for segment in segments.sealed if segment.aborted_is_unsaved and may_change_files]
        segments.has_unsaved_aborted = segments.has_unsaved_aborted and (bool(unsaved) or not may_change_files)
        checkpoint = checkpoint or start is not None or bool(unsaved)
        unsynced = [(segment, at) for segment, at in self._unsynced if segment.size > at]
        if not unsynced and not self._names_changed and not checkpoint and not self.has_unfinished_write:
            return None
        files = [segment.file for segment, _ in unsynced]
        rewrite = []
        if self.fault is not None:
            rewrite = [
                Range(self._files.open(segment.path + LOG), segment.base_offset, at, segment.size)
                for segment, at in unsynced
            ]
        sealed = [segment for segment, _ in self._unsynced if isinstance(segment, SealedSegment)]
        saved = None
        if checkpoint or sealed or self.unchecked_bytes >= CHECKPOINT_EVERY_BYTES:
            try:
                files += active.save_indexes()
                for segment in sealed:
                    files += segment.open_indexes()
            except (OSError, StorageError):
                pass  # a full disk must not prevent the sync of the data; the next flush tries again
            else:
                new_start = segments.start_offset if start is None else start.offset
                saved = self._checkpoint_now(new_start, self._producers.to_rows())
        size = sum(segment.size - at for segment, at in unsynced)
        cut = (active.file, active.size) if self.has_unfinished_write else None
        mend = [(segment.path, index) for segment in unsaved if (index := segment.load_aborted()) is not None]
        names_changed = self._names_changed or bool(mend)
        self._job = FlushJob(
            self._directory, segments.end_offset, size, files, names_changed, saved, rewrite, cut, start, mend
        )
        self._job_end = (active.base_offset, active.size)
        self._job_stable = stable_offset
        self._names_changed = False
        return self._job

    def _start_move(self) -> StartMove:
        segments = self._segments
        first_kept = next((one for one in segments.sealed if one.end_offset > self._next_start), segments.active)
        checkpointed = self._checkpoint.segment
        return StartMove(self._next_start, checkpointed if checkpointed >= first_kept.base_offset else None)

    def end(self, job: FlushJob) -> list[SealedSegment] | None:
        """Take the result of a job that has run. After a failure the log refuses appends until a later flush
        succeeds. Returns the segments that are before a new start; None if the start has not moved."""
        if self._job is not job:
            return None  # the log was closed meanwhile
        self._job = None
        if job.is_cut:
            self.has_unfinished_write = False
        if job.written is not None:
            self._checkpoint = job.written.without_producers()
        if job.error is not None:
            self.fault = job.error
            self._names_changed = True
        else:
            self.fault = None
            self._became_durable(job)
        if job.start is None or job.written is None:
            return None
        gone = self._segments.begin_at(job.start.offset)
        self.dropped(gone)
        return gone

    def answer_moves(self, job: FlushJob) -> None:
        """After `end`: settle the promises of a new start."""
        start = self._segments.start_offset
        done = [move for move in self._moves if move[0] <= start]
        failed = [move for move in self._moves if job.start and start < move[0] <= job.start.offset]
        self._moves = [move for move in self._moves if move not in done and move not in failed]
        self._next_start = max([start, *(offset for offset, _ in self._moves)])
        for _, moved in done:
            moved.settle(start)
        for _, moved in failed:
            moved.fail(self._not_moved(job.error or job.checkpoint_error))

    def _not_moved(self, error: StorageError | None) -> StorageError:
        """A new error of the same type. One error object for all would keep alive every frame it was raised
        through."""
        what = f"cannot move the start of {self._partition}"
        return StorageError(what) if error is None else type(error)(f"{what}: {error}")

    def _became_durable(self, job: FlushJob) -> None:
        self.durable_offset = max(self.durable_offset, job.up_to)
        self.decided_offset = self._job_stable
        if job.mend:
            self._segments.saved_aborted({path for path, _ in job.mend})
        base_offset, position = self._job_end
        still: list[tuple[Segment, int]] = []
        for segment, at in self._unsynced:
            if segment.base_offset == base_offset:
                still.append((segment, position))
            elif segment.base_offset > base_offset:
                still.append((segment, at))
            elif segment.base_offset >= self._checkpoint.segment:
                still.append((segment, segment.size))  # no checkpoint vouches for its indexes yet
        self._unsynced = still

    # Checkpoints

    def _checkpoint_now(self, start_offset: Offset, producers: Collection[Any]) -> Checkpoint:
        active = self._segments.active
        return Checkpoint(
            start_offset=start_offset,
            offset=self._segments.end_offset,
            segment=active.base_offset,
            position=active.size,
            index_bytes=active.saved.offsets_bytes,
            time_index_bytes=active.saved.times_bytes,
            created_ms=active.created_ms,
            producers=producers,
            transactions=_rows_of(self._producers.open),
            aborted=_counts_of(self._segments.all()),
        )

    def _since_checkpoint(self) -> list[tuple[Segment, int]]:
        """The segments that the checkpoint does not fully vouch for, each with the position where the rest begins."""
        at = self._checkpoint
        return [
            (segment, at.position if segment.base_offset == at.segment else 0)
            for segment in self._segments.all()
            if segment.base_offset >= at.segment
        ]


def _rows_of(open_transactions: dict[ProducerId, Offset]) -> list[list[int]]:
    return [[producer_id, first_offset] for producer_id, first_offset in open_transactions.items()]


def _counts_of(segments: Iterable[SealedSegment | ActiveSegment]) -> list[list[int]]:
    return [[segment.base_offset, segment.aborted_count] for segment in segments if segment.aborted_count]
