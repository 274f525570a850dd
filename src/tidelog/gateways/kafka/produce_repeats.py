"""Produce requests that repeat an earlier one, answered without being decoded again.

A producer with one partition per request (librdkafka always, others often) sends the same bytes over and over: only
the correlation id, the records and their length change. Those bytes are the key to what an earlier request of the
connection meant, and to a template of its reply, in which only the correlation id and three numbers change. The
records are appended as in any other request. This works for flexible versions only. A request that does not have
exactly this form is decoded and handled as usual, and so is one that is refused, so that only one place makes error
replies.
"""

from functools import partial
from struct import Struct

from tidelog.broker.admission import Operation, ResourceKind
from tidelog.broker.broker import Broker
from tidelog.broker.partition import Partition
from tidelog.broker.sessions import Session
from tidelog.errors import TidelogError
from tidelog.gateways.kafka.context import code_of
from tidelog.model import TimestampType
from tidelog.promise import Promise
from tidelog.storage.log import Appended
from tidelog.wire.apis import BY_NAME
from tidelog.wire.envelope import encode_response
from tidelog.wire.generated.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from tidelog.wire.reading import long_uvarint

PRODUCE = BY_NAME["Produce"]
MOST_KNOWN = 250
MOST_LENGTHS = 4
LONGEST = 600  # bytes before the records: a client id may have 32,767, and would be kept for each partition
_FIRST_FLEXIBLE = 9
_FIRST_BY_ID = 13
_HEADER_START = 8  # after API key, version and correlation id
_NO_TAGS = bytes(3)  # of the partition, the topic and the request: the bytes after the records
_CORRELATION_ID = Struct(">i")
_OUTCOME = Struct(">qqq")  # base offset, append time, log start offset
_PLACEHOLDER = (-0x0123456789ABCDEF, -0x1122334455667788, -0x0FEDCBA987654321)


class Known:
    """A decoded request, and a template of its reply."""

    __slots__ = ("_outcome_at", "_template", "durable", "index", "kind", "topic", "topic_id", "version")

    def __init__(self, kind: bytes, version: int, topic: str, topic_id: bytes, index: int, durable: bool) -> None:
        self.kind = kind
        self.version = version
        self.topic = topic
        self.index = index
        self.durable = durable
        self.topic_id = topic_id
        self._template = self._reply(PartitionProduceResponse(index, 0, *_PLACEHOLDER), 0)
        self._outcome_at = self._template.index(_OUTCOME.pack(*_PLACEHOLDER))

    def reply(self, correlation_id: int, partition: Partition, appended: Appended) -> bytearray:
        reply = self._template[:]
        _CORRELATION_ID.pack_into(reply, 4, correlation_id)
        stamped = partition.config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
        append_time_ms = appended.append_time_ms if stamped else -1
        _OUTCOME.pack_into(reply, self._outcome_at, appended.base_offset, append_time_ms, partition.log.start_offset)
        return reply

    def refusal(self, correlation_id: int, error: Exception) -> bytearray:
        """The reply to an append that failed after it had begun."""
        result = PartitionProduceResponse(self.index, code_of(error), -1, error_message=str(error))
        return self._reply(result, correlation_id)

    def _reply(self, result: PartitionProduceResponse, correlation_id: int) -> bytearray:
        topic = TopicProduceResponse(self.topic, self.topic_id, [result])
        return bytearray().join(
            encode_response(PRODUCE, self.version, correlation_id, ProduceResponse([topic]))  # type: ignore[arg-type]
        )


class ProduceRepeats:
    """The requests that one connection has repeated or may repeat."""

    __slots__ = ("_admission", "_broker", "_known", "_lengths", "_session")

    def __init__(self, broker: Broker, session: Session) -> None:
        self._broker = broker
        self._admission = broker.admission
        self._session = session
        self._known: dict[bytes, Known] = {}
        self._lengths: list[int] = []  # of the keys of `_known`; nearly always one

    def answer(self, frame: memoryview) -> bytearray | Promise[bytearray] | None:
        """The reply or a promise of it; None if the request is not known: nothing was done."""
        for end in self._lengths:
            known = self._known.get(frame[_HEADER_START:end].tobytes())
            if known is not None and frame[:4] == known.kind:
                break
        else:
            return None
        try:
            size, at = frame[end], end + 1
            if size > 127:
                size, at = long_uvarint(frame, at, size)
            records_end = at + size - 1
            if frame[records_end:] != _NO_TAGS:
                return None
            topic = known.topic if known.version < _FIRST_BY_ID else self._broker.topic_name(known.topic_id)
            if topic is None:
                return None
            if self._admission.authorizer is not None:
                self._admission.check(self._session, Operation.WRITE, ResourceKind.TOPIC, topic)
            partition = self._broker.partition(topic, known.index)
            batch = frame[at:records_end]
            appended = partition.append(batch, durable=known.durable)
        except (TidelogError, IndexError):
            return None
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame, 4)
        if not isinstance(appended, Promise):
            return known.reply(correlation_id, partition, appended)
        failed = partial(known.refusal, correlation_id)
        if not self._broker.ownership.is_sole:
            failed = partial(self._failed, known, correlation_id, partition, batch)
        return appended.then(partial(known.reply, correlation_id, partition), failed)

    def _failed(
        self, known: Known, correlation_id: int, partition: Partition, batch: memoryview, error: Exception
    ) -> bytearray:
        self._broker.batch_refused(partition.name, batch, error)
        return known.refusal(correlation_id, error)

    def learn(self, frame: memoryview, version: int, topic: TopicProduceData, *, durable: bool) -> None:
        """Remember a request for one partition, without a transaction, that succeeded."""
        index, records_size = topic.partition_data[0].index, len(topic.partition_data[0].records or b"")
        size_bytes = max(1, ((records_size + 1).bit_length() + 6) // 7)
        end = len(frame) - len(_NO_TAGS) - records_size - size_bytes
        if version < _FIRST_FLEXIBLE or not _HEADER_START < end <= LONGEST or frame[-len(_NO_TAGS) :] != _NO_TAGS:
            return
        beginning = frame[_HEADER_START:end].tobytes()
        if not beginning.endswith(index.to_bytes(4, "big")):
            return  # bytes after the message, or a length in more bytes than necessary
        if end not in self._lengths:
            self._lengths = [end, *self._lengths[: MOST_LENGTHS - 1]]
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[beginning] = Known(frame[:4].tobytes(), version, topic.name, topic.topic_id, index, durable)
