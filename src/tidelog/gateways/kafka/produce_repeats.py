"""Produce requests that repeat themselves, answered without being taken apart again.

A producer with one partition to a request (librdkafka always, others often) sends the same bytes over and over: only
the correlation id, the records and their length change. What an earlier request of the connection said is known by
those bytes, and its reply is a template in which the correlation id and three numbers change. The records go the same
way as always. Flexible versions only; a request that is not exactly of this form takes the long way, and so does one
that is refused, so that there is one place that says why.
"""

from collections.abc import Callable
from struct import Struct

from tidelog.broker.broker import Broker
from tidelog.broker.shell import now_ms
from tidelog.errors import TidelogError
from tidelog.gateways.kafka.context import code_of
from tidelog.model import TimestampType
from tidelog.storage.log import Appended
from tidelog.wire.apis import BY_NAME
from tidelog.wire.envelope import encode_response
from tidelog.wire.error_codes import ErrorCode
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
_HEADER_START = 8  # behind API key, version and correlation id
_NO_TAGS = bytes(3)  # of the partition, the topic and the request: what comes behind the records
_OUTCOME = Struct(">qqq")  # base offset, append time, log start offset
_PLACEHOLDER = (-0x0123456789ABCDEF, -0x1122334455667788, -0x0FEDCBA987654321)


class Known:
    """What the bytes of a request say, and its reply as a template."""

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

    def reply(self, frame: memoryview, base_offset: int, append_time_ms: int, start_offset: int) -> bytearray:
        reply = self._template[:]
        reply[4:8] = frame[4:8]
        _OUTCOME.pack_into(reply, self._outcome_at, base_offset, append_time_ms, start_offset)
        return reply

    def refusal(self, reply: bytearray, error: Exception) -> bytearray:
        """Instead of a reply that was to be sent after a sync that failed."""
        code = code_of(error) if isinstance(error, TidelogError) else int(ErrorCode.UNKNOWN_SERVER_ERROR)
        result = PartitionProduceResponse(self.index, code, -1, error_message=str(error))
        return self._reply(result, int.from_bytes(reply[4:8], "big", signed=True))

    def _reply(self, result: PartitionProduceResponse, correlation_id: int) -> bytearray:
        topic = TopicProduceResponse(self.topic, self.topic_id, [result])
        return bytearray().join(
            encode_response(PRODUCE, self.version, correlation_id, ProduceResponse([topic]))  # type: ignore[arg-type]
        )


class Durable:
    """A reply that is sent when the append is durable."""

    __slots__ = ("_appended", "_known", "_reply")

    def __init__(self, appended: Appended, known: Known, reply: bytearray) -> None:
        self._appended = appended
        self._known = known
        self._reply = reply

    def then(self, send: Callable[[bytearray], None]) -> None:
        def done(_: None, error: Exception | None) -> None:
            send(self._reply if error is None else self._known.refusal(self._reply, error))

        self._appended.when_done(done)


class ProduceRepeats:
    """The requests that one connection is known to repeat."""

    __slots__ = ("_broker", "_known", "_lengths")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._known: dict[bytes, Known] = {}
        self._lengths: list[int] = []  # of the beginnings in `_known`; nearly always one

    def answer(self, frame: memoryview) -> bytearray | Durable | None:
        """The reply, now or later; None: not known, and nothing was done."""
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
            partition = self._broker.partition(topic, known.index)
            appended = partition.append(frame[at:records_end], durable=known.durable, now_ms=now_ms())
        except (TidelogError, IndexError):
            return None
        stamped = partition.config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
        append_time_ms = appended.append_time_ms if stamped else -1
        reply = known.reply(frame, appended.base_offset, append_time_ms, partition.log.start_offset)
        return Durable(appended, known, reply) if not appended.done else reply

    def learn(self, frame: memoryview, version: int, topic: TopicProduceData, *, durable: bool) -> None:
        """A request for one partition, without a transaction, went well: know its like from now on."""
        index, records_size = topic.partition_data[0].index, len(topic.partition_data[0].records or b"")
        size_bytes = max(1, ((records_size + 1).bit_length() + 6) // 7)
        end = len(frame) - len(_NO_TAGS) - records_size - size_bytes
        if version < _FIRST_FLEXIBLE or not _HEADER_START < end <= LONGEST or frame[-len(_NO_TAGS) :] != _NO_TAGS:
            return
        beginning = frame[_HEADER_START:end].tobytes()
        if not beginning.endswith(index.to_bytes(4, "big")):
            return  # bytes behind the message, or a length in more bytes than it needs
        if end not in self._lengths:
            self._lengths = [end, *self._lengths[: MOST_LENGTHS - 1]]
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[beginning] = Known(frame[:4].tobytes(), version, topic.name, topic.topic_id, index, durable)
