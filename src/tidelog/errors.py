"""One tree for everything Tidelog can refuse or fail to do.

    TidelogError
    ├── InvalidInput              the caller's fault: a retry fails again, unless `retriable`
    │   ├── CorruptBatch          bytes that are not a whole, valid record batch
    │   ├── RefusedRecords        may name the records that caused it
    │   │   ├── InvalidRecord     a well-formed batch that may not be appended
    │   │   └── InvalidTimestamp
    │   ├── RecordTooLarge
    │   ├── UnsupportedCompression
    │   ├── OffsetOutOfRange
    │   ├── OutOfOrderSequence    idempotent producer: a gap, or a repeat of a batch that is no longer remembered
    │   ├── InvalidProducerEpoch  idempotent producer: fenced by a newer epoch
    │   ├── CoordinatorFenced     a marker of a coordinator that another one has replaced
    │   ├── InvalidTransactionState  the request does not fit the state of the transaction
    │   └── InvalidSettings
    ├── MissingExtra              an optional part that is not installed
    ├── wire.ProtocolError        bytes that do not follow the protocol, from the peer or from us
    ├── Fenced                    this broker no longer owns what it tried to change
    ├── Conflict                  the stored row is not the one that the change expects
    └── StorageError              the disk's or the operator's fault: may work again when the cause is gone
        ├── StorageFull
        ├── StorageUnavailable    read-only, unreadable, too many open files, not a data directory
        │   ├── MetadataTooNew    written by a newer Tidelog
        │   └── StoreClosed       the metadata store is closed: the broker is stopping
        ├── OutcomeUnknown        the change was made or not: only repeating the same request can tell
        ├── MetadataDamaged       the metadata file is damaged; nothing in it is used
        ├── DirectoryInUse
        ├── CorruptLog            damage in stored data, with file, position and offset
        └── LogClosed

`kafka_code` and `retriable` are data for the gateways, which translate errors and never invent them.
"""

from collections.abc import Sequence
from typing import ClassVar, TypeVar

E = TypeVar("E", bound=BaseException)


class TidelogError(Exception):
    kafka_code: ClassVar[int] = -1
    retriable: ClassVar[bool] = False


class InvalidInput(TidelogError):
    kafka_code = 42


class CorruptBatch(InvalidInput):
    kafka_code = 2
    retriable = True


class RefusedRecords(InvalidInput):
    """A batch that is refused as a whole. If some of its records are the reason, `records` has their numbers in the
    batch and what is wrong with each. The list may be incomplete."""

    kafka_code = 87

    def __init__(self, message: str, records: Sequence[tuple[int, str]] = ()) -> None:
        super().__init__(message)
        self.records = records


class InvalidRecord(RefusedRecords):
    pass


class InvalidTimestamp(RefusedRecords):
    kafka_code = 32


class RecordTooLarge(InvalidInput):
    kafka_code = 10


class UnsupportedCompression(InvalidInput):
    kafka_code = 76


class OffsetOutOfRange(InvalidInput):
    kafka_code = 1


class OutOfOrderSequence(InvalidInput):
    kafka_code = 45


class InvalidProducerEpoch(InvalidInput):
    kafka_code = 47


class CoordinatorFenced(InvalidInput):
    kafka_code = 52


class InvalidTransactionState(InvalidInput):
    kafka_code = 48


class InvalidSettings(InvalidInput):
    """All problems of one validation together, so that a user can fix them in one go."""

    kafka_code = 40

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class MissingExtra(TidelogError):
    """The message says which `pip install` adds the missing part."""


class Fenced(TidelogError):
    kafka_code = 41  # NOT_CONTROLLER: clients look up the controller again and send the request there
    retriable = True


class Conflict(TidelogError):
    kafka_code = 95


class StorageError(TidelogError):
    kafka_code = 56
    retriable = True


class StorageFull(StorageError):
    pass


class StorageUnavailable(StorageError):
    pass


class MetadataTooNew(StorageUnavailable):
    retriable = False


class StoreClosed(StorageUnavailable):
    pass


class OutcomeUnknown(StorageError):
    """Never undo a write that failed with this: it may have taken effect. Repeat it until the outcome is known."""

    kafka_code = 7  # REQUEST_TIMED_OUT: in Kafka, too, it leaves the outcome open


class MetadataDamaged(StorageError):
    retriable = False


class DirectoryInUse(StorageError):
    retriable = False


class CorruptLog(StorageError):
    kafka_code = 2
    retriable = False

    def __init__(self, reason: str, *, file: str, position: int, offset: int) -> None:
        super().__init__(f"{file}: {reason} at position {position} (offset {offset})")
        self.reason = reason
        self.file = file
        self.position = position
        self.offset = offset


class LogClosed(StorageError):
    pass


def fresh(error: E) -> E:
    """A copy of the error without its traceback. Raise such a copy instead of an error that is stored: every raise of
    the stored one would add to its traceback each frame on the way, and keep the objects in those frames alive."""
    again = type(error).__new__(type(error), *error.args)
    again.__dict__.update(error.__dict__)
    return again
