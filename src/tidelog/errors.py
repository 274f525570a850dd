"""One tree for everything Tidelog can refuse or fail to do.

    TidelogError
    ├── InvalidInput              the caller's fault: asking again changes nothing, unless `retriable`
    │   ├── CorruptBatch          bytes that are not a whole, valid record batch
    │   ├── InvalidRecord         a well-formed batch that may not be appended
    │   ├── InvalidTimestamp
    │   ├── RecordTooLarge
    │   ├── UnsupportedCompression
    │   ├── OffsetOutOfRange
    │   ├── OutOfOrderSequence    idempotent producer: a gap or a repeat that is no longer known
    │   ├── InvalidProducerEpoch  idempotent producer: fenced by a newer epoch
    │   ├── InvalidTransactionState  what was asked for does not fit the state of the transaction
    │   └── InvalidSettings
    ├── MissingExtra              an optional part that is not installed
    ├── wire.ProtocolError        bytes that are not what the protocol says, theirs or ours
    └── StorageError              the disk's or the operator's fault: may work again when the cause is gone
        ├── StorageFull
        ├── StorageUnavailable    read-only, unreadable, too many open files, not a data directory
        ├── DirectoryInUse
        ├── CorruptLog            damage in stored data, with file, position and offset
        └── LogClosed

`kafka_code` and `retriable` are data for the transports, which map errors and never invent them.
"""

from typing import ClassVar


class TidelogError(Exception):
    kafka_code: ClassVar[int] = -1
    retriable: ClassVar[bool] = False


class InvalidInput(TidelogError):
    kafka_code = 42


class CorruptBatch(InvalidInput):
    kafka_code = 2
    retriable = True


class InvalidRecord(InvalidInput):
    kafka_code = 87


class InvalidTimestamp(InvalidInput):
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


class InvalidTransactionState(InvalidInput):
    kafka_code = 48


class InvalidSettings(InvalidInput):
    """All problems of one validation together, so that a user mends them in one go."""

    kafka_code = 40

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class MissingExtra(TidelogError):
    """Says which `pip install` adds it."""


class StorageError(TidelogError):
    kafka_code = 56
    retriable = True


class StorageFull(StorageError):
    pass


class StorageUnavailable(StorageError):
    pass


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
