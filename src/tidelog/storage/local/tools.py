"""The engine's interface for tools that work on its files without a broker: `tidelog log` and `tidelog log dump`.

Nothing else outside `tidelog.storage` imports this engine; the import contracts in pyproject.toml enforce that.
"""

from tidelog.storage.local.aborted import ABORTED_ENTRY_SIZE, ABORTED_INDEX, decode_aborted
from tidelog.storage.local.checkpoint import CHECKPOINT, Checkpoint, decode_checkpoint
from tidelog.storage.local.compaction_state import STATE, decode_state
from tidelog.storage.local.files import File, Files, OsFiles
from tidelog.storage.local.index import OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE
from tidelog.storage.local.inspect import (
    DamagedRange,
    OffsetIndexCheck,
    PartitionPlace,
    TimeIndexCheck,
    WrongEntry,
    find_partitions,
    holder_of,
    list_partition,
    log_name,
    offset_entries,
    time_entries,
    walk_segment,
    with_next,
    with_topic_id,
)
from tidelog.storage.local.layout import LOCK, LOGS
from tidelog.storage.local.repair import Repair
from tidelog.storage.local.scan import BatchScan
from tidelog.storage.local.segment import INDEX, INDEXES, LOG, TIME_INDEX, base_offset_of, segment_name
from tidelog.storage.local.store import LocalStore
from tidelog.storage.local.verify import Finding, PartitionCheck

__all__ = [
    "ABORTED_ENTRY_SIZE",
    "ABORTED_INDEX",
    "CHECKPOINT",
    "INDEX",
    "INDEXES",
    "LOCK",
    "LOG",
    "LOGS",
    "OFFSET_ENTRY_SIZE",
    "STATE",
    "TIME_ENTRY_SIZE",
    "TIME_INDEX",
    "BatchScan",
    "Checkpoint",
    "DamagedRange",
    "File",
    "Files",
    "Finding",
    "LocalStore",
    "OffsetIndexCheck",
    "OsFiles",
    "PartitionCheck",
    "PartitionPlace",
    "Repair",
    "TimeIndexCheck",
    "WrongEntry",
    "base_offset_of",
    "decode_aborted",
    "decode_checkpoint",
    "decode_state",
    "find_partitions",
    "holder_of",
    "list_partition",
    "log_name",
    "offset_entries",
    "segment_name",
    "time_entries",
    "walk_segment",
    "with_next",
    "with_topic_id",
]
