"""Errors of the client.

    TidelogError
    └── ClientError
        ├── Unreachable         no broker answers at an address; nothing was sent
        ├── ConnectionLost      the connection was lost before the reply; the request may have been carried out
        ├── RequestTimedOut     no reply in time; the request may have been carried out
        ├── IncompatibleBroker  no version of an API that both sides support
        ├── BrokerError         the broker refused: `kafka_code`, `retriable` and `name` are those of Kafka's error
        ├── TransactionFailed   a transaction that can only be aborted
        ├── DeliveryFailed      records of a producer that were not written, and nobody asked for their receipts
        └── ClientClosed        used after `close()`

The client retries `retriable` errors until the deadline of the operation; an error that a caller sees is final.
"""

from tidelog.errors import TidelogError
from tidelog.wire.error_codes import RETRIABLE, ErrorCode, name_of

_NETWORK_EXCEPTION = 13
_REQUEST_TIMED_OUT = 7
_UNSUPPORTED_VERSION = 35

# Brokers rarely send a message with these. For other codes, the name must do.
_SAID = {
    ErrorCode.OFFSET_OUT_OF_RANGE: "the offset is not in the log",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "no such topic or partition",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "the broker is not the leader of the partition",
    ErrorCode.LEADER_NOT_AVAILABLE: "the partition has no leader",
    ErrorCode.MESSAGE_TOO_LARGE: "the batch is larger than the topic's max.message.bytes",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "not a valid topic name: use up to 249 letters, digits, '.', '_' and '-'",
    ErrorCode.TOPIC_ALREADY_EXISTS: "it exists already",
    ErrorCode.NON_EMPTY_GROUP: "the group has members; stop them first",
    ErrorCode.GROUP_ID_NOT_FOUND: "no such group",
    ErrorCode.UNKNOWN_MEMBER_ID: "the group has active members; stop them first",
    ErrorCode.UNKNOWN_TOPIC_ID: "no such topic",
    ErrorCode.PRODUCER_FENCED: "another producer has taken over this transactional id",
    ErrorCode.INVALID_PRODUCER_EPOCH: "another producer has taken over, or the transaction timed out",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "no such transactional id",
    ErrorCode.INVALID_TXN_STATE: "the transaction is not in a state that allows this",
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: "the transactional id belongs to another producer, or is unknown",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "the timeout is above the broker's transaction.max.timeout.ms",
}


class ClientError(TidelogError):
    pass


class Unreachable(ClientError):
    kafka_code = _NETWORK_EXCEPTION
    retriable = True


class ConnectionLost(ClientError):
    kafka_code = _NETWORK_EXCEPTION
    retriable = True


class RequestTimedOut(ClientError):
    kafka_code = _REQUEST_TIMED_OUT
    retriable = True


class IncompatibleBroker(ClientError):
    kafka_code = _UNSUPPORTED_VERSION


class DeliveryFailed(ClientError):
    """`records` is the number of records that were not written, `first` the error of the first of them."""

    def __init__(self, records: int, first: BaseException) -> None:
        super().__init__(records, first)
        self.records = records
        self.first = first

    def __str__(self) -> str:
        return f"{self.records} record{'s' * (self.records != 1)} not delivered: {self.first}"


class TransactionFailed(ClientError):
    """A record or an offset of the transaction was not written, so it cannot be committed: abort it, and begin
    again."""


class ClientClosed(ClientError):
    pass


class BrokerError(ClientError):
    """One of Kafka's errors, with what was tried. Unlike other errors, `kafka_code` and `retriable` differ by
    instance."""

    def __init__(self, code: int, tried: str, message: str | None = None) -> None:
        super().__init__(code, tried, message)  # all arguments, so that the error survives pickling
        self.kafka_code = code  # type: ignore[misc]
        self.retriable = code in RETRIABLE  # type: ignore[misc]
        self.tried = tried
        self.message = message

    @property
    def name(self) -> str:
        return name_of(self.kafka_code)

    def __str__(self) -> str:
        said = self.message or _SAID.get(self.kafka_code) or "the broker refused"
        return f"{self.tried}: {said} ({self.name})"


def check(code: int, tried: str, message: str | None = None) -> None:
    """Raise the error of a code in a response, if it is one; `tried` describes the request, for the message."""
    if code:
        raise BrokerError(code, tried, message)


def is_unknown_topic(error: BaseException) -> bool:
    return isinstance(error, BrokerError) and error.kafka_code in (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    )
