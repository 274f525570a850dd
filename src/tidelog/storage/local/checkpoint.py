"""The checkpoint of a partition: what is known to be durable, so that opening does not read it again.

One small JSON file beside the segments, replaced as a whole, ending in a line with the CRC32C of the first. It is a
promise about other files, so it is written after they are synced, and lowered before they are cut. If the log file
ends exactly at `position`, nothing was appended since and nothing needs to be scanned: that is a clean stop, without
any marker that could be stale. The prose is in docs/formats/local-log.md.
"""

import json
import sys
from dataclasses import dataclass, field, fields, replace
from typing import Any

from tidelog.model import Offset, TimestampMs
from tidelog.records.crc import crc32c
from tidelog.storage.local.files import TEMPORARY, Files, write_durably, write_whole
from tidelog.storage.local.producers import Producers

CHECKPOINT = "checkpoint"
_VERSION = 1
_ANY_SIZE = sys.maxsize


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything before `offset` is durable; it ends at `position` of the segment at `segment`."""

    start_offset: Offset = 0
    offset: Offset = 0
    segment: Offset = 0
    position: int = 0
    index_bytes: int = 0
    time_index_bytes: int = 0
    created_ms: TimestampMs = 0
    producers: list[Any] = field(default_factory=list)
    transactions: list[Any] = field(default_factory=list)
    aborted: list[Any] = field(default_factory=list)

    def starting_at(self, offset: Offset) -> "Checkpoint":
        return replace(self, start_offset=offset)

    def known_producers(self) -> Producers:
        return Producers.from_rows(self.producers, self.transactions)

    @property
    def stable_offset(self) -> Offset:
        """No record before it belongs to a transaction that was open at `offset`."""
        return min((first_offset for _, first_offset in self.transactions), default=self.offset)

    def aborted_in(self, segment: Offset) -> int:
        """How many aborted transactions its index holds, of those that this vouches for."""
        return next((count for base, count in self.aborted if base == segment), 0)

    def encode(self) -> bytes:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        line = json.dumps({"version": _VERSION, **values}, separators=(",", ":")).encode()
        return line + b"\n%08x\n" % crc32c(line)


def decode_checkpoint(content: bytes) -> Checkpoint | None:
    """None if it is damaged or of a version we do not know."""
    line, _, rest = content.partition(b"\n")
    if rest != b"%08x\n" % crc32c(line):
        return None
    try:
        values = json.loads(line)
        return Checkpoint(**values) if values.pop("version") == _VERSION else None
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def read_checkpoint(files: Files, directory: str) -> Checkpoint | None:
    file = files.open(f"{directory}/{CHECKPOINT}", writable=False)
    return decode_checkpoint(file.pread(file.size(), 0))


def write_checkpoint(files: Files, directory: str, checkpoint: Checkpoint) -> None:
    write_durably(files, f"{directory}/{CHECKPOINT}", checkpoint.encode())


def write_checkpoints(files: Files, filesystem: str, checkpoints: list[tuple[str, Checkpoint]]) -> None:
    """The same for many partitions, with two syncs of the file system instead of two a partition."""
    if len(checkpoints) > 1:
        for directory, checkpoint in checkpoints:
            write_whole(files, f"{directory}/{CHECKPOINT}{TEMPORARY}", checkpoint.encode())
    if len(checkpoints) == 1 or not files.sync_filesystem(filesystem, _ANY_SIZE):
        for directory, checkpoint in checkpoints:
            write_checkpoint(files, directory, checkpoint)
        return
    for directory, _ in checkpoints:
        files.rename(f"{directory}/{CHECKPOINT}{TEMPORARY}", f"{directory}/{CHECKPOINT}")
    files.sync_filesystem(filesystem, _ANY_SIZE)
