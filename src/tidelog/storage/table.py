"""A table: the last value of each key of a partition, in an LSM tree beside the log (extra `table`).

The table holds nothing that the log does not hold, and is rebuilt from the log whenever that is simpler than a
repair. So it is written without a journal (WAL): rows and the offset up to which they are right are written together,
and a crash loses both or neither, in the order in which they were written.

    "k" + key   offset int64, timestamp int64, the value
    "o"         the offset up to which the log was applied, int64
"""

import os
import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from tidelog.errors import MissingExtra, StorageError
from tidelog.model import Offset, TimestampMs
from tidelog.records.batch import read_header, whole_prefix
from tidelog.records.latest import latest_by_key
from tidelog.storage.log import ReadResult

if TYPE_CHECKING:
    from rocksdict import Rdict

INSTALL = 'tables need an extra: run pip install "tidelog[table]" and restart the broker'
_HEAD = Struct(">qq")
_OFFSET = Struct(">q")
_PRIVATE = 0o700
_APPLIED = b"o"
_KEY = b"k"
_WRITE_BUFFER_BYTES = 16 << 20
_BLOOM_BITS = 10  # per key: one lookup in a hundred of a missing key reads a block in vain


class Row(NamedTuple):
    offset: Offset
    timestamp: TimestampMs
    value: bytes


def is_installed() -> bool:
    return find_spec("rocksdict") is not None


class Table:
    """The table of one partition. All methods may block and may be called by any thread; `apply` by one at a time."""

    def __init__(self, directory: str) -> None:
        try:
            import rocksdict
        except ImportError as error:
            raise MissingExtra(INSTALL) from error
        options = rocksdict.Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_write_buffer_size(_WRITE_BUFFER_BYTES)
        options.set_keep_log_file_num(1)
        blocks = rocksdict.BlockBasedOptions()
        blocks.set_bloom_filter(_BLOOM_BITS, False)
        options.set_block_based_table_factory(blocks)
        self._library = rocksdict
        self._without_journal = rocksdict.WriteOptions()
        self._without_journal.disable_wal = True  # type: ignore[method-assign,assignment]  # wrong in its stubs
        try:
            _make_private(directory)  # the files that the library creates are readable by everyone
            self._rows: Rdict = rocksdict.Rdict(directory, options)
            stored = self._rows.get(_APPLIED)
        except Exception as error:  # the library has no errors of its own
            raise StorageError(f"cannot open the table in {directory}: {error}") from error
        self.applied: Offset = _OFFSET.unpack(stored)[0] if stored is not None else 0

    def apply(self, read: ReadResult, kernels: bool = True) -> int:
        """Apply whole batches, from `applied` on, to the table; returns how many rows changed. `kernels`: the
        compiled kernels may be used."""
        data = read.read()
        found = latest_by_key(data, self.applied, read.aborted, kernels)
        batch = self._library.WriteBatch(raw_mode=True)
        put, delete, pack = batch.put, batch.delete, _HEAD.pack
        for key, value, offset, timestamp in zip(*found, strict=True):
            if value is None:
                delete(_KEY + key)
            else:
                put(_KEY + key, pack(offset, timestamp) + value)
        self._write(batch, _end_of(data))
        return len(found.keys)

    def skip_to(self, offset: Offset) -> None:
        """Continue from `offset`: the log holds nothing before it."""
        self._write(self._library.WriteBatch(raw_mode=True), offset)

    def get(self, keys: Sequence[bytes]) -> list[Row | None]:
        try:
            stored: list[bytes | None] = self._rows.get([_KEY + key for key in keys]) or []
        except Exception as error:  # closed meanwhile, or a file that cannot be read
            raise StorageError(f"cannot read from a table: {error}") from error
        return [_row(one) for one in stored]

    def estimate(self) -> tuple[int, int]:
        """Approximate number of rows, and of bytes on disk and in memory."""
        rows = self._rows.property_int_value("rocksdb.estimate-num-keys") or 0
        size = self._rows.property_int_value("rocksdb.total-sst-files-size") or 0
        return max(0, rows - 1), size + (self._rows.property_int_value("rocksdb.cur-size-all-mem-tables") or 0)

    def close(self) -> None:
        """Make the table durable and close it."""
        self._rows.flush()
        self._rows.close()

    def _write(self, batch: object, applied: Offset) -> None:
        batch.put(_APPLIED, _OFFSET.pack(applied))  # type: ignore[attr-defined]
        self._rows.write(batch, self._without_journal)  # type: ignore[arg-type]
        self.applied = applied


def _row(stored: bytes | None) -> Row | None:
    if stored is None:
        return None
    offset, timestamp = _HEAD.unpack_from(stored)
    return Row(offset, timestamp, stored[_HEAD.size :])


def _end_of(data: bytes) -> Offset:
    _, last = whole_prefix(memoryview(data))
    return read_header(data, last).next_offset


def _make_private(directory: str) -> None:
    """Create the directory and its parents. Not synced: a table that a crash loses is rebuilt."""
    if not os.path.isdir(directory):
        _make_private(os.path.dirname(directory) or ".")
        try:
            os.mkdir(directory, _PRIVATE)
        except FileExistsError:
            pass  # made meanwhile, for another partition


def remove_table(directory: str) -> None:
    shutil.rmtree(directory, ignore_errors=True)
