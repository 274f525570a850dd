"""Fetch (1), v4 to v18: read batches, waiting for them if asked to. Topic ids replace names from v13.

A fetch is answered when its partitions hold `min_bytes` together, or after `max_wait_ms`, or at once when a partition
has an error or the broker stops. Whole batches come back, from the one that holds the offset asked for; the first
batch of the first partition with data comes whole however large it is, so that a consumer can always go on. Sessions
(KIP-227) let a consumer name its partitions once: `fetch_sessions`. With read_committed a fetch ends at the last
stable offset and tells which transactions were aborted; it waits for transactions to end, not for their records.
"""

import asyncio
import os
from collections import deque

from tidelog.broker.broker import Broker
from tidelog.broker.partition import LEADER_EPOCH, FetchWait
from tidelog.errors import StorageError, TidelogError
from tidelog.gateways.kafka.connection import FULL_BYTES, Request
from tidelog.gateways.kafka.context import broker_of, code_of, context_of, now_ms
from tidelog.gateways.kafka.fetch_sessions import FetchSession, FetchTarget, SessionError
from tidelog.promise import Promise
from tidelog.storage.log import AbortedTransaction as Aborted
from tidelog.storage.log import FileRange, ReadResult
from tidelog.wire.error_codes import ErrorCode
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
_SENDFILE_FROM = 32 << 10  # below it a read and a write are as cheap
_PIECE = 2 * FULL_BYTES
_MOST_AT_ONCE = 4 << 20  # then it is others' turn, also if the client takes it as fast as it comes
NONE_ABORTED: list[Aborted] = []
Found = list[tuple[FetchTarget, PartitionData]]


class StoredRecords(RecordSource):
    """Batches in memory and byte ranges of segments; the ranges are read when the reply is written."""

    __slots__ = ("_parts", "_position", "_size")

    def __init__(self, result: ReadResult) -> None:
        self._parts = deque(result.parts)
        self._position = -1  # in the file of the first part, if some of it is written
        self._size = result.size

    def __len__(self) -> int:
        return self._size

    def write(self, transport: asyncio.Transport, socket: int | None, out: list[Buffer]) -> bool:
        parts = self._parts
        while parts:
            part = parts[0]
            if isinstance(part, bytes | bytearray | memoryview):
                out.append(part)
            elif part.size < _SENDFILE_FROM:
                out.append(part.read())
            else:
                if out:
                    transport.writelines(out)
                    out.clear()
                if not self._send(transport, socket, part):
                    return False
            parts.popleft()
        return True

    def _send(self, transport: asyncio.Transport, socket: int | None, part: FileRange) -> bool:
        """From the page cache to the socket, without a copy of ours, as far as the socket takes it. When it is full a
        piece goes through the transport, which tells when there is room again."""
        position = max(self._position, part.position)
        end, pause = part.position + part.size, position + _MOST_AT_ONCE
        while position < end:
            if position >= pause:
                self._position = position
                return False
            if socket is not None and transport.get_write_buffer_size() == 0:
                try:
                    sent = os.sendfile(socket, part.fileno(), position, min(end, pause) - position)
                except BlockingIOError:
                    pass
                else:
                    if sent == 0:
                        raise StorageError("a segment is shorter than its size")
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
    broker = broker_of(request)
    try:
        sessions = context_of(request).fetch_sessions
        session = sessions.begin(message, by_id=request.version >= 13, now_ms=now_ms())
    except SessionError as error:
        return FetchResponse(error_code=error.code)
    room = min(message.max_bytes, context_of(request).fetch_max_bytes)
    found, size, failed = _read(broker, session, message, room)
    missing = min(message.min_bytes, room) - size
    if failed or missing <= 0 or message.max_wait_ms <= 0 or broker.is_stopping:
        return _response(session, found)
    return _Waiting(request, session, message, room, missing).reply


class _Waiting:
    """A fetch that waits for data. It looks again when enough has come, at the end of that turn of the event loop, so
    that it finds everything that came in it; and for the last time when its time is over."""

    def __init__(
        self, request: Request, session: FetchSession, message: FetchRequest, room: int, missing_bytes: int
    ) -> None:
        self.reply: Promise[FetchResponse] = Promise()
        self._broker = broker = broker_of(request)
        self._connection = request.connection
        self._session = session
        self._message = message
        self._room = room
        self._is_over = False
        self._loop = asyncio.get_running_loop()
        self._wait = FetchWait(self._look_soon, missing_bytes, committed=message.isolation_level == READ_COMMITTED)
        self._partitions = [
            partition for target in session.targets() if (partition := broker.find(target.topic, target.index))
        ]
        for partition in self._partitions:
            partition.add_wait(self._wait)
        broker.fetches.add(self._wait)
        self._connection.waiting.add(self)
        self._timer = self._loop.call_later(min(message.max_wait_ms, MAX_WAIT_MS) / 1000, self.hurry)

    def hurry(self) -> None:
        self._is_over = True
        self._look()

    def abandon(self) -> None:
        self._timer.cancel()
        self._broker.fetches.discard(self._wait)
        for partition in self._partitions:
            partition.remove_wait(self._wait)
        self._partitions = []

    def _look_soon(self) -> None:
        self._loop.call_soon(self._look)

    def _look(self) -> None:
        if self._wait not in self._broker.fetches:
            return  # it was answered, or abandoned, in the meantime
        try:
            found, size, failed = _read(self._broker, self._session, self._message, self._room)
            missing = min(self._message.min_bytes, self._room) - size
            if missing > 0 and not (failed or self._is_over or self._broker.is_stopping):
                self._wait.need(missing)
                return
            response = _response(self._session, found)
        except Exception as bug:
            self._end()
            self.reply.fail(bug)
        else:
            self._end()
            self.reply.settle(response)

    def _end(self) -> None:
        self._connection.waiting.discard(self)
        self.abandon()


def _read(broker: Broker, session: FetchSession, message: FetchRequest, room: int) -> tuple[Found, int, bool]:
    """Every partition's data within the limits; how many bytes, and whether any partition has an error. A partition
    that an incremental session has nothing to say of, most of them in most requests, is passed over quickly."""
    committed = message.isolation_level == READ_COMMITTED
    found: Found = []
    total, failed = 0, False
    for target in session.targets():
        if session.is_incremental and _is_quiet(broker, target):
            continue
        data = PartitionData(target.index, 0, -1, records=b"")
        found.append((target, data))
        if target.topic is None:
            data.error_code, failed = ErrorCode.UNKNOWN_TOPIC_ID, True
            continue
        try:
            partition = broker.partition(target.topic, target.index)
            check_epoch(target.leader_epoch)
            limit = min(target.max_bytes, room - total)
            result, aborted = None, NONE_ABORTED
            if limit > 0 or not total:
                if committed:
                    result, aborted = partition.read_committed(target.offset, max(limit, 0), at_least_one=total == 0)
                else:
                    result = partition.read(target.offset, max(limit, 0), at_least_one=total == 0)
        except TidelogError as error:
            data.error_code, failed = code_of(error), True
            known = broker.find(target.topic, target.index)
            if known is not None:
                data.log_start_offset = known.log.start_offset
            continue
        data.high_watermark = partition.high_watermark
        data.last_stable_offset = partition.last_stable_offset
        data.log_start_offset = partition.log.start_offset
        if committed:
            data.aborted_transactions = [AbortedTransaction(id_, first) for id_, first, _, _ in aborted]
        else:
            data.aborted_transactions = None
        if result is not None and result.size:
            data.records = _records(result)
            total += result.size
    return found, total, failed


def _is_quiet(broker: Broker, target: FetchTarget) -> bool:
    """There is nothing to read, and the client knows it."""
    told = target.told
    if told is None or told[0] != target.offset or target.leader_epoch > LEADER_EPOCH:
        return False
    partition = broker.find(target.topic, target.index)
    if partition is None:
        return False
    log = partition.log
    return told == (log.end_offset, log.last_stable_offset, log.start_offset)


def _records(result: ReadResult) -> Buffer | StoredRecords:
    if len(result.parts) == 1 and isinstance(result.parts[0], bytes | bytearray | memoryview):
        return result.parts[0]
    return StoredRecords(result)


def check_epoch(epoch: int) -> None:
    """What a client believes of the leader: nothing (-1), or an epoch that must be ours."""
    if epoch >= 0 and epoch != LEADER_EPOCH:
        raise WrongEpoch(epoch)


class WrongEpoch(TidelogError):
    """The client knows another leader epoch than ours."""

    def __init__(self, epoch: int) -> None:
        super().__init__(f"leader epoch {epoch}, ours is {LEADER_EPOCH}")
        self.kafka_code = (  # type: ignore[misc]
            ErrorCode.UNKNOWN_LEADER_EPOCH if epoch > LEADER_EPOCH else ErrorCode.FENCED_LEADER_EPOCH
        )


def _response(session: FetchSession, found: Found) -> FetchResponse:
    """By topic; in an incremental session only what has news."""
    topics: dict[object, FetchableTopicResponse] = {}
    for target, data in found:
        if not session.has_news(target, data):
            continue
        key = target.topic_key
        topic = topics.get(key)
        if topic is None:
            topic = topics[key] = FetchableTopicResponse(target.topic or "", target.topic_id, [])
        topic.partitions.append(data)
    return FetchResponse(session_id=session.id, responses=list(topics.values()))
