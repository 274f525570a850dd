"""Fetch (1), v4 to v18: read batches, waiting up to max_wait_ms for them. Topic ids replace names from v13.

How a fetch waits, and what it finds: `broker.fetching`. Sessions (KIP-227) let a consumer name its partitions once:
`fetch_sessions`. With read_committed a fetch ends at the last stable offset and lists the aborted transactions.
"""

import asyncio
import os
from collections import deque
from functools import partial
from itertools import islice

from tidelog.broker.broker import Broker
from tidelog.broker.fetching import Fetched, FetchLimits, LongPoll, fetch
from tidelog.broker.shell import monotonic_ms
from tidelog.gateways.kafka.connection import FULL_BYTES, Request, Waiting
from tidelog.gateways.kafka.context import broker_of, code_of, context_of
from tidelog.gateways.kafka.fetch_sessions import FetchSession, FetchTarget, SessionError
from tidelog.promise import Promise
from tidelog.storage.log import FileRange, ReadResult
from tidelog.wire.generated.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from tidelog.wire.primitives import Buffer, RecordSource

READ_COMMITTED = 1
MAX_WAIT_MS = 300_000
_SENDFILE_FROM = 32 << 10  # for smaller ranges a read and a write are as cheap
_PIECE = 2 * FULL_BYTES
_MOST_AT_ONCE = 4 << 20  # then yield to other connections, even if this client reads as fast as we write
_MOST_BUFFERS = 256  # of one system call


class StoredRecords(RecordSource):
    """Batches in memory and byte ranges of segments; the ranges are read when the reply is written."""

    __slots__ = ("_buffers", "_parts", "_position", "_size")

    def __init__(self, result: ReadResult) -> None:
        self._parts = deque(result.parts)
        self._buffers: deque[memoryview] = deque()  # being sent; earlier than the parts
        self._position = -1  # next byte to send of the first part's file, if a part of it was sent
        self._size = result.size

    def __len__(self) -> int:
        return self._size

    def write(self, transport: asyncio.Transport, socket: int | None, out: list[Buffer]) -> bool:
        parts = self._parts
        while True:
            if self._buffers and not self._send_buffers(transport, socket):
                return False
            in_memory = 0
            while parts and isinstance(part := parts[0], bytes | bytearray | memoryview):
                in_memory += len(part)
                out.append(part)
                parts.popleft()
            if in_memory >= _PIECE:
                self._buffers.extend(memoryview(each) for each in out if each)
                out.clear()
                continue
            if not parts:
                return True
            assert not isinstance(part, bytes | bytearray | memoryview)
            if part.size < _SENDFILE_FROM:
                out.append(part.read())
            else:
                if out:
                    transport.writelines(out)
                    out.clear()
                if not self._send(transport, socket, part):
                    return False
            parts.popleft()

    def _send_buffers(self, transport: asyncio.Transport, socket: int | None) -> bool:
        """Send from where the buffers are: the transport would copy them into one, and once more what the socket does
        not take at once. When the socket is full, write one piece through the transport, as `_send` does."""
        buffers, left = self._buffers, _MOST_AT_ONCE
        while buffers:
            if left <= 0:
                return False
            sent = 0
            if socket is not None and transport.get_write_buffer_size() == 0:
                try:
                    sent = os.writev(socket, list(islice(buffers, _MOST_BUFFERS)))
                except OSError:  # socket full or broken: the write below will show
                    sent = 0
            if not sent:
                piece = buffers[0][:_PIECE]
                transport.write(piece)
                sent = len(piece)
                if transport.get_write_buffer_size() > FULL_BYTES:
                    left = 0
            left -= sent
            while sent:
                first = buffers.popleft()
                if sent < len(first):
                    buffers.appendleft(first[sent:])
                sent -= min(sent, len(first))
        return True

    def _send(self, transport: asyncio.Transport, socket: int | None, part: FileRange) -> bool:
        """Send from the page cache to the socket, without copying, until the socket is full. Then write one piece
        through the transport, which calls back when there is room again."""
        position = max(self._position, part.position)
        end, pause = part.position + part.size, position + _MOST_AT_ONCE
        while position < end:
            if position >= pause:
                self._position = position
                return False
            if socket is not None and transport.get_write_buffer_size() == 0:
                try:
                    sent = os.sendfile(socket, part.fileno(), position, min(end, pause) - position)
                except OSError:  # socket full or broken, or file unreadable: the read and write below will show
                    sent = 0
                if sent:
                    position += sent
                    continue
            piece = part.read(position, _PIECE)
            transport.write(piece)
            position += len(piece)
            if transport.get_write_buffer_size() > FULL_BYTES:
                pause = position
        self._position = -1
        return True


def handle(request: Request, message: FetchRequest) -> FetchResponse | Promise[FetchResponse]:
    broker, context = broker_of(request), context_of(request)
    try:
        session = context.fetch_sessions.begin(message, by_id=request.version >= 13, now_ms=monotonic_ms())
    except SessionError as error:
        return FetchResponse(error_code=error.code)
    limits = FetchLimits(
        message.min_bytes,
        min(message.max_bytes, context.fetch_max_bytes),
        max(0, min(message.max_wait_ms, MAX_WAIT_MS)),
        message.isolation_level == READ_COMMITTED,
    )
    is_quiet = partial(_is_quiet, broker) if session.is_incremental else None
    found = fetch(broker, request.session, session.targets, limits, is_quiet)
    if isinstance(found, LongPoll):
        return _later(request, found, session, limits.committed)
    return _response(session, found, limits.committed)


def _later(
    request: Request, poll: LongPoll[FetchTarget], session: FetchSession, committed: bool
) -> Promise[FetchResponse]:
    waiting = request.connection.waiting
    waiting.add(poll)
    return poll.answer.then(partial(_answered, waiting, poll, session, committed), partial(_failed, waiting, poll))


def _answered(
    waiting: set[Waiting],
    poll: LongPoll[FetchTarget],
    session: FetchSession,
    committed: bool,
    found: list[Fetched[FetchTarget]],
) -> FetchResponse:
    waiting.discard(poll)
    return _response(session, found, committed)


def _failed(waiting: set[Waiting], poll: LongPoll[FetchTarget], error: Exception) -> FetchResponse:
    waiting.discard(poll)
    raise error


def _response(session: FetchSession, found: list[Fetched[FetchTarget]], committed: bool) -> FetchResponse:
    """The reply, grouped by topic; in an incremental session only the partitions with news."""
    topics: dict[object, FetchableTopicResponse] = {}
    for fetched in found:
        target, error, result = fetched.target, fetched.error, fetched.result
        data = PartitionData(
            target.index, 0, fetched.high_watermark, fetched.last_stable_offset, fetched.start_offset, records=b""
        )
        if error is not None:
            data.error_code = code_of(error)
        else:
            aborted = result.aborted
            data.aborted_transactions = (
                [AbortedTransaction(each.producer_id, each.first_offset) for each in aborted] if committed else None
            )
            if result.size:
                data.records = _records(result)
        if not session.has_news(target, data):
            continue
        key = target.topic_key
        topic = topics.get(key)
        if topic is None:
            topic = topics[key] = FetchableTopicResponse(target.topic or "", target.topic_id, [])
        topic.partitions.append(data)
    return FetchResponse(session_id=session.id, responses=list(topics.values()))


def _is_quiet(broker: Broker, target: FetchTarget) -> bool:
    """True if there is nothing to read and the client, in an incremental session, knows that already. This is so for
    most partitions in most requests."""
    told = target.told
    if told is None or told[0] != target.offset:
        return False
    partition = broker.find(target.topic, target.index)
    if partition is None or target.leader_epoch > partition.leader_epoch:
        return False
    log = partition.log
    return told == (log.end_offset, log.last_stable_offset, log.start_offset)


def _records(result: ReadResult) -> Buffer | StoredRecords:
    first = result.parts[0]
    if len(result.parts) == 1 and isinstance(first, bytes | bytearray | memoryview):
        return first
    return StoredRecords(result)
