"""`WholeLog`: everything that a log consists of besides its batches. With the batches it is the whole log, whichever
engine stores it."""

from collections.abc import Sequence
from typing import NamedTuple

from tidelog.model import Offset, TimestampMs
from tidelog.storage.log import AbortedTransaction
from tidelog.storage.producers import Producers


class WholeLog(NamedTuple):
    start_offset: Offset
    end_offset: Offset
    producers: Producers
    """After the last batch, with their open transactions."""
    aborted: Sequence[AbortedTransaction]
    """Those whose markers are at or after `start_offset`, in the order of the markers."""
    clean_offset: Offset = 0
    """Everything before this offset was compacted."""
    next_horizon_ms: TimestampMs | None = None
    """When the first tombstone or marker that compaction has kept may be removed."""

    @property
    def stable_offset(self) -> Offset:
        return max(self.start_offset, next(iter(self.producers.open.values()), self.end_offset))
