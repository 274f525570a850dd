"""Reading logs directly from an engine's files or objects, without the broker that serves them.

For jobs that read with many processes at once what a single broker would otherwise have to send (Spark's tasks), and
for checking stored logs. A reader gets a `DirectLog`: a small description of the log's place that can be pickled,
made by `storage.engines`. Data read from the log of a running broker must be the same as that broker would send.
"""

from abc import abstractmethod
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from tidelog.model import Offset, TopicPartition
from tidelog.storage.log import Located


class LogLeader(Protocol):
    """The broker that leads the partition, as the reading program can ask it. None: it does not answer, or has no
    answer."""

    @abstractmethod
    def first_batch(self, offset: Offset) -> bytes | None:
        """The header of the batch that holds an offset, or else of the first batch after it."""

    @abstractmethod
    def locate(self, start: Offset, end: Offset, *, committed: bool) -> Located | None:
        """See `PartitionLog.locate`."""


class Stretch(NamedTuple):
    """Whole batches: everything in the log from the requested offset up to `end`."""

    records: memoryview
    end: Offset


class LogProblem(NamedTuple):
    severity: str
    """"error", or "note": nothing is wrong, but an operator should know."""
    what: str
    file: str
    position: int | None
    offset: Offset | None


class CheckedLog(NamedTuple):
    """How much was checked, and the problems found."""

    batches: int
    records: int
    size_bytes: int
    problems: list[LogProblem]


class DirectLog(Protocol):
    """Where the log of one partition is kept. Can be pickled."""

    @abstractmethod
    def is_worth_a_try(self, *, leader_is_here: bool) -> bool:
        """Whether processes like this one can probably read the log. `leader_is_here`: its broker runs on this
        machine."""

    @abstractmethod
    def read(self, start: Offset, end: Offset, leader: LogLeader, *, committed: bool = False) -> Iterator[Stretch]:
        """As much of the range from `start` to `end` as this process can read, in order. Everything before `end` must
        be readable from the broker already (with `committed`: by readers of committed records; aborted records are
        left out). If anything is in doubt, such as a batch that differs from the leader's, the iterator ends without
        an error: the `end` of the last stretch says how far it got, and the caller must fetch the rest from the
        broker. The CRCs are not checked here; the code that decodes the batches does that."""


class CheckableLog(DirectLog, Protocol):
    """A log in files, which can be checked without a broker."""

    @abstractmethod
    def check(self, *, in_use: bool, deep: bool, most_problems: int) -> CheckedLog:
        """Check every batch, its place and the indexes; `deep`: every record too. `in_use`: a broker may be writing
        to the log."""


class KeptLog(NamedTuple):
    """A log that was found in a place where logs are stored."""

    partition: TopicPartition
    size_bytes: int
    in_use: bool
    log: CheckableLog
