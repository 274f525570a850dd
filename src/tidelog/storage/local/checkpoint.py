"""The checkpoint of a partition: what is known to be durable, so that opening the log need not scan it.

One small file beside the segments (`sealed_json.py`), always replaced as a whole. It is a promise about other files,
so it is written after they are synced, and lowered before they are cut. If the log file ends exactly at `position`,
nothing was appended since and nothing needs to be scanned. So a clean stop needs no marker of its own, which could be
stale. The format is described in docs/formats/local-log.md.
"""

import math
import sys
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from typing import Any

from tidelog.model import Offset, TimestampMs
from tidelog.storage.local.files import TEMPORARY, Files, write_durably, write_whole
from tidelog.storage.local.sealed_json import as_json, seal, unseal
from tidelog.storage.producers import Producers

CHECKPOINT = "checkpoint"
_VERSION = 1
_ANY_SIZE = sys.maxsize
_ROWS_AT_ONCE = 500  # some milliseconds


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything before `offset` is durable. It ends at `position` in the segment with the base offset `segment`."""

    start_offset: Offset = 0
    offset: Offset = 0
    segment: Offset = 0
    position: int = 0
    index_bytes: int = 0
    time_index_bytes: int = 0
    created_ms: TimestampMs = 0
    producers: Collection[Any] = ()
    """One row for each producer, see `Producers.to_rows`."""
    transactions: list[Any] = field(default_factory=list)
    aborted: list[Any] = field(default_factory=list)

    def starting_at(self, offset: Offset) -> "Checkpoint":
        return replace(self, start_offset=offset)

    def without_producers(self) -> "Checkpoint":
        """The part that is kept in memory after the checkpoint is written."""
        return replace(self, producers=())

    def known_producers(self) -> Producers:
        return Producers.from_rows(self.producers, self.transactions)

    @property
    def stable_offset(self) -> Offset:
        """No record before this offset belongs to a transaction that was open at `offset`."""
        return min((first_offset for _, first_offset in self.transactions), default=self.offset)

    def aborted_in(self, segment: Offset) -> int:
        """How many aborted transactions in the segment's index this checkpoint vouches for."""
        return next((count for base, count in self.aborted if base == segment), 0)

    def encode(self) -> bytes:
        """There may be many producers, so they are encoded in pieces: the JSON encoder holds the GIL while it
        works."""
        members = [f'"version":{_VERSION}']
        for name in (one.name for one in fields(self)):
            value = _in_pieces(self.producers) if name == "producers" else as_json(getattr(self, name))
            members.append(f'"{name}":{value}')
        return seal(f"{{{','.join(members)}}}".encode())


def _in_pieces(rows: Iterable[Any]) -> str:
    left = iter(rows)
    pieces = iter(lambda: list(islice(left, _ROWS_AT_ONCE)), [])
    return f"[{','.join(as_json(piece)[1:-1] for piece in pieces)}]"


def decode_checkpoint(content: bytes) -> Checkpoint | None:
    """None if it is damaged or of a version we do not know."""
    values = unseal(content, _VERSION)
    try:
        return None if values is None else Checkpoint(**values)
    except TypeError:
        return None


def read_checkpoint(files: Files, directory: str) -> Checkpoint | None:
    file = files.open(f"{directory}/{CHECKPOINT}", writable=False)
    return decode_checkpoint(file.pread(file.size(), 0))


def write_checkpoint(files: Files, directory: str, checkpoint: Checkpoint) -> None:
    write_durably(files, f"{directory}/{CHECKPOINT}", checkpoint.encode())


def write_checkpoints(
    files: Files, filesystem: str, checkpoints: list[tuple[str, Checkpoint]], until: float = math.inf
) -> int:
    """The same for many partitions, with two syncs of the file system instead of two for each partition. None is
    begun after the monotonic time `until`. Returns how many were written, counted from the first."""
    if len(checkpoints) > 1:
        for number, (directory, checkpoint) in enumerate(checkpoints):
            if time.monotonic() >= until:
                checkpoints = checkpoints[:number]
                break
            write_whole(files, f"{directory}/{CHECKPOINT}{TEMPORARY}", checkpoint.encode())
    if len(checkpoints) <= 1 or not files.sync_filesystem(filesystem, _ANY_SIZE):
        for number, (directory, checkpoint) in enumerate(checkpoints):
            if time.monotonic() >= until:
                return number
            write_checkpoint(files, directory, checkpoint)
        return len(checkpoints)
    for directory, _ in checkpoints:
        files.rename(f"{directory}/{CHECKPOINT}{TEMPORARY}", f"{directory}/{CHECKPOINT}")
    files.sync_filesystem(filesystem, _ANY_SIZE)
    return len(checkpoints)
