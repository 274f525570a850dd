"""One client's connection: frames in, replies out, in order.

Requests are handled as they arrive, even while earlier ones still wait (a fetch for data, a produce for its sync).
Replies are sent in the order of the requests; those that are ready share one write. Everything that can grow is
bounded: the size of a frame, the unanswered requests, the replies that the client has not read. At a bound no further
request is handled, not even one that was received already, and the connection is not read until the client has caught
up. All connections together have a bound, too. Requests with long lists are handled in steps (`long_requests`); the
requests after one wait until it is done.

A request that fails because of a bug of ours is answered with an error in its API's own fields (`error_replies`), and
the connection stays open. Bytes that are not a request, and failures that cannot be answered, close the connection.
"""

import asyncio
import gc
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from tidelog.broker.sessions import Session
from tidelog.errors import TidelogError
from tidelog.gateways.kafka.long_requests import FEW, SLICE_SECONDS, LongRequest, Parts, ReplyTooLarge, is_long
from tidelog.promise import Promise
from tidelog.wire.envelope import Chunks, RequestHeader, decode_bounded_body, decode_request_header, encode_response
from tidelog.wire.framing import FrameReader
from tidelog.wire.primitives import Buffer, RecordSource, Struct
from tidelog.wire.protocol_errors import (
    FrameTooLarge,
    LocalProtocolError,
    ProtocolError,
    RemoteProtocolError,
    TooManyEntries,
)

if TYPE_CHECKING:
    from tidelog.gateways.kafka.context import Context

Reply: TypeAlias = Struct | None
Handler: TypeAlias = Callable[["Request", Any], Reply | Parts | Awaitable[Reply]]

UNKNOWN_SERVER_ERROR = -1
_WORTH_A_WRITE = 8  # requests received together: flush their replies without waiting for other connections
_LARGE_FRAME = 64 << 10  # such a frame may hold thousands of entries
_NO_FRAME = memoryview(b"")  # a piece of a request has no frame
FULL_BYTES = 64 << 10  # in the transport's buffer: the client reads more slowly than we write


class StoredChunk(Protocol):
    """A `RecordSource` of ours that writes itself."""

    def write(self, transport: asyncio.Transport, socket: int | None, out: list[Buffer]) -> bool:
        """Append the chunk to `out`, which the caller writes next; or write and empty `out`, then send the rest
        directly to the socket, unless `socket` is None. Returns False, with `out` empty, if the chunk is not written
        completely: call again, but not before the transport has room if it holds more than `FULL_BYTES`."""


class Request:
    """What a handler may need besides the message."""

    __slots__ = ("connection", "frame", "header")

    def __init__(self, header: RequestHeader, frame: memoryview, connection: "Connection") -> None:
        self.header = header
        self.frame = frame
        self.connection = connection

    @property
    def version(self) -> int:
        return self.header.api_version

    @property
    def session(self) -> Session:
        return self.connection.session


class Repeats(Protocol):
    """Answers requests that repeat an earlier one of the connection, without decoding them again. An API that has
    such requests sets `Connection.repeats`."""

    def answer(self, frame: memoryview) -> "bytearray | Promise[bytearray] | None":
        """The encoded reply, with its length; None if the request must be decoded and handled."""


class Waiting(Protocol):
    """A request that may wait for a long time, such as a long poll; while it waits it is in `Connection.waiting`."""

    def hurry(self) -> None:
        """Answer now, with the data that is available."""

    def abandon(self) -> None:
        """Stop waiting: the client has disconnected."""


class Pending:
    """A request whose reply is not written yet; `chunks` is the reply when it is ready (empty: no reply is sent)."""

    __slots__ = ("chunks", "in_memory", "reply_size", "size", "written")

    def __init__(self, size: int) -> None:
        self.size = size
        self.reply_size = 0
        self.in_memory = 0  # part of `reply_size` that is not read from a file while it is written
        self.written = 0  # number of chunks
        self.chunks: Chunks | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of connections: bytes, requests, entries and time."""

    max_frame_bytes: int = 100 << 20
    max_entries: int = 1 << 16
    """In all lists of a request together; decoding them must not take longer than 100 ms."""
    max_reply_bytes: int = 100 << 20
    """Size of a reply without records. librdkafka accepts no more than this by default."""
    max_pending_bytes: int = 32 << 20
    max_total_bytes: int = 512 << 20
    max_total_reply_bytes: int = 256 << 20
    max_pending_requests: int = 1000
    write_buffer_bytes: int = 4 << 20
    max_connections: int = 10_000
    max_connections_per_address: int = 10_000
    idle_seconds: float = 600.0


class Owner(Protocol):
    """The server, as its connections see it."""

    limits: Limits
    held_bytes: int
    """Bytes of requests that are incomplete or unanswered, in all connections."""
    reply_bytes: int
    """Bytes of replies that clients have not read yet, in all connections."""
    turns: asyncio.Lock
    """Held by the long request that runs its current step."""

    def handler_for(self, header: RequestHeader) -> Handler:
        """Raises the error to answer with if the API or its version is not offered."""

    def opened(self, connection: "Connection") -> bool:
        """False: there is no room for this connection."""

    def closed(self, connection: "Connection") -> None: ...
    def flush_soon(self, connection: "Connection") -> None:
        """Flush the connection at the end of this iteration of the event loop."""

    def failed(
        self, connection: "Connection", request: RequestHeader | None, error: Exception, *, answered: bool
    ) -> None:
        """Log the failure. `answered`: the client gets an error reply; otherwise the connection is closed."""


class Connection(asyncio.BufferedProtocol):
    def __init__(self, owner: Owner, context: "Context") -> None:
        self._owner = owner
        self.context = context
        self.session = Session(context.listener)
        self.repeats: Repeats | None = None
        self._loop = asyncio.get_running_loop()
        self._reader = FrameReader(owner.limits.max_frame_bytes)
        self._pending: deque[Pending] = deque()
        self._pending_bytes = 0
        self._reply_bytes = 0  # of the pending requests' replies
        self._reply_memory = 0
        self._held_replies = 0
        self._held_bytes = 0
        self._frames: deque[memoryview] = deque()  # not handled yet: a bound is reached
        self._tasks: set[asyncio.Task[None]] = set()
        self.waiting: set[Waiting] = set()
        self._transport: asyncio.Transport | None = None
        self._socket: int | None = None
        self._paused_by_writes = False
        self._reading = True
        self._closing = False
        self._busy = False  # with a long request
        self._flush_scheduled = False
        self.last_active = 0.0

    # asyncio calls these

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        plain = transport.get_extra_info("sslcontext") is None
        self._socket = transport.get_extra_info("socket").fileno() if plain else None
        self._transport.set_write_buffer_limits(FULL_BYTES, 0)
        peer = transport.get_extra_info("peername")
        self.session.peer = f"{peer[0]}" if isinstance(peer, tuple) else str(peer)
        self.last_active = self._loop.time()
        if not self._owner.opened(self):
            self._transport.abort()

    def connection_lost(self, _exc: Exception | None) -> None:
        self._closing = True
        for task in self._tasks:
            task.cancel()
        for waiting in self.waiting:
            waiting.abandon()
        self.waiting.clear()
        self._pending.clear()
        self._frames.clear()
        self._pending_bytes = self._reply_bytes = self._reply_memory = 0
        self._owner.held_bytes -= self._held_bytes
        self._owner.reply_bytes -= self._held_replies
        self._held_bytes = self._held_replies = 0
        self._owner.closed(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        try:
            frames = self._reader.received(nbytes)
        except ProtocolError as error:
            self._fail(None, error)
            return
        if frames and not self._closing:
            self._frames += frames
            self._handle()
        else:
            self._account()

    def eof_received(self) -> bool:
        """The client half-closed the connection: answer its long polls now, send all replies, then close."""
        for waiting in tuple(self.waiting):
            waiting.hurry()
        self.finish()
        return True

    def pause_writing(self) -> None:
        self._paused_by_writes = True
        self._read_or_not()

    def resume_writing(self) -> None:
        """Must not write: if the transport fails or is closed within this call, asyncio calls `connection_lost`
        twice."""
        self._paused_by_writes = False
        self._flush_soon()

    # the server calls these

    def finish(self) -> None:
        """Close when all requests that were received are answered."""
        self._closing = True
        if self._transport is not None and self.is_idle:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    @property
    def is_idle(self) -> bool:
        return not (self._pending or self._frames)

    @property
    def is_stuck(self) -> bool:
        """Replies wait for the client to read them."""
        return self._transport is not None and self._transport.get_write_buffer_size() > 0

    # requests and replies

    def _handle(self) -> None:
        """Handle the requests that were received, until a bound is reached or the time slice is over."""
        frames = self._frames
        many = len(frames) >= _WORTH_A_WRITE
        until = time.monotonic() + SLICE_SECONDS if len(frames) > 1 else 0.0
        while frames and self._has_room():
            self._take(frames.popleft())
            if frames and time.monotonic() > until:
                break  # `flush` schedules the others for the next iteration of the event loop
        if many:
            self.flush()
        else:
            self._flush_soon()

    def _take(self, frame: memoryview) -> None:
        header: RequestHeader | None = None
        pending = Pending(len(frame))
        self._pending.append(pending)
        self._pending_bytes += pending.size
        try:
            if self.repeats is not None and (answer := self.repeats.answer(frame)) is not None:
                if isinstance(answer, bytearray):
                    self._encoded(pending, [answer], len(answer))
                else:
                    answer.when_done(partial(self._repeat_answered, pending, frame))
                return
            header = decode_request_header(frame)
            self.session.client_id = header.client_id
            handle = self._owner.handler_for(header)
            message, entries = self._decoded(header, frame)
            if entries > FEW and is_long(header.api, header.api_version, entries, len(frame)):
                self._busy = True
                self._start(self._handle_in_steps(pending, header, handle, message, entries))
                return
            reply = handle(Request(header, frame, self), message)
            if reply is None or isinstance(reply, Struct):
                self._answer(pending, header, reply)
            elif isinstance(reply, Promise):
                reply.when_done(partial(self._answer_later, pending, header, frame))
            elif isinstance(reply, Parts):
                self._busy = True
                self._start(self._join(pending, header, frame, reply))
            else:
                self._start(self._wait(pending, header, frame, reply))
        except Refusal as refusal:
            pending.chunks = refusal.encoded(cast("RequestHeader", header))
        except Exception as error:
            self._answer_failure(pending, header, frame, error)

    def _decoded(self, header: RequestHeader, frame: memoryview) -> tuple[Any, int]:
        """The message, and the number of its entries."""
        most = self._owner.limits.max_entries
        if len(frame) < _LARGE_FRAME or not gc.isenabled():
            return decode_bounded_body(header, frame, most)
        gc.disable()  # it would scan thousands of new objects again and again and find no garbage
        try:
            return decode_bounded_body(header, frame, most)
        finally:
            gc.enable()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _handle_in_steps(
        self, pending: Pending, header: RequestHeader, handle: Handler, message: Struct, entries: int
    ) -> None:
        request = Request(header, _NO_FRAME, self)

        def fail(piece: Struct, error: Exception) -> Struct:
            reply = self._failure_reply(header, piece, error)
            if reply is None:
                raise error
            self._owner.failed(self, header, error, answered=True)
            return reply

        reply = self._long_request(header).answered(
            message, entries, pending.size, lambda piece: handle(request, piece), fail
        )
        await self._answer_in_steps(pending, header, reply, lambda error: self._fail(header, error))

    async def _join(self, pending: Pending, header: RequestHeader, frame: memoryview, parts: Parts) -> None:
        reply = self._long_request(header).joined(parts)
        await self._answer_in_steps(
            pending, header, reply, lambda error: self._answer_failure(pending, header, frame, error)
        )

    def _long_request(self, header: RequestHeader) -> LongRequest:
        owner = self._owner
        return LongRequest(header.api, header.api_version, owner.turns, owner.limits.max_reply_bytes)

    async def _answer_in_steps(
        self,
        pending: Pending,
        header: RequestHeader,
        reply: Awaitable[Reply],
        failed: Callable[[Exception], None],
    ) -> None:
        try:
            self._answer(pending, header, await reply)
        except ReplyTooLarge as error:
            self._refuse(pending, header, error)
        except Exception as error:
            failed(error)
        finally:
            self._busy = False
            self._flush_soon()

    def _answer_later(
        self, pending: Pending, header: RequestHeader, frame: memoryview, reply: Reply, error: Exception | None
    ) -> None:
        try:
            if error is not None:
                raise error
            self._answer(pending, header, reply)
        except Exception as failure:
            self._answer_failure(pending, header, frame, failure)
        self._flush_soon()

    async def _wait(
        self, pending: Pending, header: RequestHeader, frame: memoryview, reply: Awaitable[Reply]
    ) -> None:
        try:
            answer, failure = await reply, None
        except Exception as error:
            answer, failure = None, error
        self._answer_later(pending, header, frame, answer, failure)

    def _answer_failure(
        self, pending: Pending, header: RequestHeader | None, frame: memoryview, error: Exception
    ) -> None:
        """Answer with the error in the API's own fields; close the connection if the request could not be decoded or
        its API has no field for the error."""
        if header is not None and isinstance(error, ReplyTooLarge | TooManyEntries):
            self._refuse(pending, header, error)
            return
        if isinstance(error, RemoteProtocolError | ConnectionError):
            self._fail(header, error)
            return
        try:
            header = header or decode_request_header(frame)  # None if the request was handled as a repeat
            reply = self._failure_reply(header, self._decoded(header, frame)[0], error)
        except Exception as another:
            another.__context__ = error  # both are in the log
            self._fail(header, another)
            return
        self._answer_with_error(pending, header, reply, error)

    def _refuse(self, pending: Pending, header: RequestHeader, error: Exception) -> None:
        """Answer a request that asks for too much with an error, if its API has an error field outside its lists."""
        from tidelog.gateways.kafka.error_replies import request_without_entries

        try:
            reply = self._failure_reply(header, request_without_entries(header.api), error)
        except Exception as another:
            another.__context__ = error
            self._fail(header, another)
            return
        self._answer_with_error(pending, header, reply, error)

    def _failure_reply(self, header: RequestHeader, message: Struct, error: Exception) -> Reply:
        if isinstance(error, ConnectionError):
            return None
        from tidelog.gateways.kafka.error_replies import error_reply

        code, text = UNKNOWN_SERVER_ERROR, "internal error of the broker; see its log for the reason"
        if isinstance(error, TidelogError) and not isinstance(error, LocalProtocolError):
            code, text = error.kafka_code or UNKNOWN_SERVER_ERROR, str(error)
        return error_reply(header, message, code, text)

    def _answer_with_error(self, pending: Pending, header: RequestHeader, reply: Reply, error: Exception) -> None:
        if reply is None:
            self._fail(header, error)
        else:
            self._owner.failed(self, header, error, answered=True)
            self._answer(pending, header, reply)

    def _answer(self, pending: Pending, header: RequestHeader, reply: Reply) -> None:
        if reply is None:
            pending.chunks = []
        else:
            chunks = encode_response(header.api, header.api_version, header.correlation_id, reply)
            size = sum(map(len, chunks))
            if size > self._owner.limits.max_reply_bytes and len(chunks) == 1:
                raise ReplyTooLarge(f"the reply would have {size} bytes; split the request into smaller ones")
            self._encoded(pending, chunks, size)

    def _encoded(self, pending: Pending, chunks: Chunks, size: int) -> None:
        pending.chunks = chunks
        pending.reply_size = size
        self._reply_bytes += size
        if len(chunks) > 1:
            size = sum(len(chunk) for chunk in chunks if not isinstance(chunk, RecordSource))
        pending.in_memory = size
        self._reply_memory += size

    def _repeat_answered(
        self, pending: Pending, frame: memoryview, reply: bytearray | None, error: Exception | None
    ) -> None:
        if reply is not None:
            self._encoded(pending, [reply], len(reply))
        elif error is not None:
            self._answer_failure(pending, None, frame, error)
        self._flush_soon()

    def _flush_soon(self) -> None:
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._owner.flush_soon(self)

    def flush(self) -> None:
        """Write the replies that are ready, up to the first unanswered request, as fast as the client reads them."""
        self._flush_scheduled = False
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        try:
            pending = self._pending
            while pending and pending[0].chunks is not None and not self._paused_by_writes:
                if not self._write_some(transport):
                    break
        except Exception as error:  # a part of the reply may have been sent: it cannot become an error reply
            self._fail(None, error)
            return
        self.last_active = self._loop.time()
        self._account()
        if self._frames and self._has_room():
            self._loop.call_soon(self._handle)
        self._read_or_not()
        if self._closing and self.is_idle:
            transport.close()

    def _write_some(self, transport: asyncio.Transport) -> bool:
        """Write as many replies as fit into one write. False: a part of a large reply remains to be written."""
        out: list[Buffer] = []
        pending, most, size = self._pending, self._owner.limits.write_buffer_bytes, 0
        while pending and size < most and (chunks := pending[0].chunks) is not None:
            answered = pending[0]
            for chunk in chunks[answered.written :] if answered.written else chunks:
                if not isinstance(chunk, RecordSource):
                    out.append(chunk)
                elif not cast("StoredChunk", chunk).write(transport, self._socket, out):
                    if not self._paused_by_writes:
                        self._flush_soon()
                    return False
                answered.written += 1
            pending.popleft()
            self._pending_bytes -= answered.size
            self._reply_bytes -= answered.reply_size
            self._reply_memory -= answered.in_memory
            size += answered.reply_size + 1
        if len(out) == 1:
            transport.write(out[0])
        elif out:
            transport.writelines(out)
        return True

    def _has_room(self) -> bool:
        limits = self._owner.limits
        return not (
            self._paused_by_writes
            or self._busy
            or self._pending_bytes > limits.max_pending_bytes
            or self._reply_bytes > limits.write_buffer_bytes
            or len(self._pending) > limits.max_pending_requests
        )

    def _read_or_not(self) -> None:
        transport = self._transport
        read = not self._frames and self._has_room()
        if read != self._reading and transport is not None and not transport.is_closing():
            self._reading = read
            transport.resume_reading() if read else transport.pause_reading()

    def _account(self) -> None:
        """Update the totals of all connections; close this one if its growth makes a total exceed its limit."""
        owner = self._owner
        held = self._pending_bytes + self._reader.pending
        if self._frames:
            held += sum(map(len, self._frames))
        if held != self._held_bytes:
            owner.held_bytes += held - self._held_bytes
            grown, self._held_bytes = held > self._held_bytes, held
            if grown and owner.held_bytes > owner.limits.max_total_bytes:
                self._fail(
                    None,
                    FrameTooLarge(
                        f"requests of all connections hold {owner.held_bytes} bytes (max-total-pending-bytes)"
                    ),
                )
                return
        replies = self._reply_memory
        if self._transport is not None:
            replies += self._transport.get_write_buffer_size()
        if replies != self._held_replies:
            owner.reply_bytes += replies - self._held_replies
            grown, self._held_replies = replies > self._held_replies, replies
            if grown and owner.reply_bytes > owner.limits.max_total_reply_bytes:
                self._fail(
                    None,
                    FrameTooLarge(
                        f"unread replies of all connections hold {owner.reply_bytes} bytes (max-total-reply-bytes)"
                    ),
                )

    def _fail(self, header: RequestHeader | None, error: Exception) -> None:
        """Close the connection, as Kafka does after a failure that cannot be answered."""
        self._closing = True
        self._frames.clear()
        self._owner.failed(self, header, error, answered=False)
        self.abort()


class Refusal(Exception):
    """A reply in another version than the request's: ApiVersions at v0, for versions that are not supported."""

    def __init__(self, version: int, reply: Struct) -> None:
        super().__init__()
        self._version = version
        self._reply = reply

    def encoded(self, header: RequestHeader) -> Chunks:
        return encode_response(header.api, self._version, header.correlation_id, self._reply)
