"""One client's connection: frames in, replies out, in order.

Requests are handled as they arrive, also while earlier ones still wait (a fetch for data, a produce for its sync);
replies leave in the order of the requests, as many as are ready with one write. What can grow is bounded: a frame's
size, the requests that are not answered yet, the replies that the client does not read. At a bound no further request
is handled, also none that is here already, and the connection is not read until the client has caught up. All
connections together have a bound, too.

A request that fails for a reason nobody foresaw, which is a bug of ours, is answered with an error in its API's own
fields (`error_replies`), and the connection lives on. What is not a request, or cannot be answered, ends it.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias, cast

from tidelog.errors import TidelogError
from tidelog.promise import Promise
from tidelog.wire.envelope import Chunks, RequestHeader, decode_request_body, decode_request_header, encode_response
from tidelog.wire.framing import FrameReader
from tidelog.wire.primitives import Buffer, RecordSource, Struct
from tidelog.wire.protocol_errors import FrameTooLarge, ProtocolError, RemoteProtocolError

Reply: TypeAlias = Struct | None
Handler: TypeAlias = Callable[["Request", Any], Reply | Awaitable[Reply]]

UNKNOWN_SERVER_ERROR = -1
_WORTH_A_WRITE = 8  # requests that came together: their replies need not wait for those of others
FULL_BYTES = 64 << 10  # that wait for a socket with room: the client reads more slowly than we write


class StoredChunk(Protocol):
    """A `RecordSource` of ours, when it is time to write it."""

    def write(self, transport: asyncio.Transport, socket: int | None, out: list[Buffer]) -> bool:
        """Add it to `out`, which is written next; or write what is in `out`, empty it, and send the rest directly to
        the socket, if there is one that may be written to directly. False, with `out` empty: that was enough for now;
        call again, when the transport has room if it has more than `FULL_BYTES`."""


class Request:
    """What a handler may want to know besides the message."""

    __slots__ = ("connection", "frame", "header")

    def __init__(self, header: RequestHeader, frame: memoryview, connection: "Connection") -> None:
        self.header = header
        self.frame = frame
        self.connection = connection

    @property
    def version(self) -> int:
        return self.header.api_version


class Repeats(Protocol):
    """Requests that say what an earlier one of the connection said, answered without being taken apart again. An API
    that has such requests leaves one of these in `Connection.repeats`."""

    def answer(self, frame: memoryview) -> "bytearray | Later | None":
        """The reply, with its length; None: take the long way."""


class Later(Protocol):
    """A reply that has to wait for something."""

    def then(self, send: Callable[[bytearray], None]) -> None:
        """Call `send` with the reply when there is one."""


class Waiting(Protocol):
    """A request that may wait for long, and is in `Connection.waiting` as long as it does."""

    def hurry(self) -> None:
        """Answer with what there is."""

    def abandon(self) -> None:
        """The client is gone."""


class Pending:
    """A request whose reply is not written yet; `chunks` is the reply once there is one (empty: none is sent)."""

    __slots__ = ("chunks", "reply_size", "size", "written")

    def __init__(self, size: int) -> None:
        self.size = size
        self.reply_size = 0
        self.written = 0  # chunks
        self.chunks: Chunks | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What connections may cost."""

    max_frame_bytes: int = 100 << 20
    max_pending_bytes: int = 32 << 20
    max_total_bytes: int = 512 << 20
    max_pending_requests: int = 1000
    write_buffer_bytes: int = 4 << 20
    max_connections: int = 10_000
    max_connections_per_address: int = 10_000
    idle_seconds: float = 600.0


class Owner(Protocol):
    """The server, as its connections see it."""

    limits: Limits
    held_bytes: int
    """Of requests that are not answered or not whole yet, over all connections."""

    def handler_for(self, header: RequestHeader) -> Handler:
        """Raises what is to be said of an API or a version that is not offered."""

    def opened(self, connection: "Connection") -> bool:
        """False: there is no room for another one."""

    def closed(self, connection: "Connection") -> None: ...
    def flush_soon(self, connection: "Connection") -> None:
        """Flush it when this turn of the loop is over."""

    def failed(
        self, connection: "Connection", request: RequestHeader | None, error: Exception, *, answered: bool
    ) -> None:
        """`answered`: the client learns of it; else the connection is closed."""


class Connection(asyncio.BufferedProtocol):
    def __init__(self, owner: Owner, context: Any) -> None:  # noqa: ANN401  (what the handlers of this listener need)
        self._owner = owner
        self.context = context
        self.repeats: Repeats | None = None
        self._loop = asyncio.get_running_loop()
        self._reader = FrameReader(owner.limits.max_frame_bytes)
        self._pending: deque[Pending] = deque()
        self._pending_bytes = 0
        self._reply_bytes = 0  # of the pending requests' replies
        self._held_bytes = 0
        self._frames: deque[memoryview] = deque()  # not handled yet, for want of room
        self._tasks: set[asyncio.Task[None]] = set()
        self.waiting: set[Waiting] = set()
        self._transport: asyncio.Transport | None = None
        self._socket: int | None = None
        self._paused_by_writes = False
        self._reading = True
        self._closing = False
        self._flush_scheduled = False
        self.peer = ""
        self.last_active = 0.0

    # asyncio calls these

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        plain = transport.get_extra_info("sslcontext") is None
        self._socket = transport.get_extra_info("socket").fileno() if plain else None
        self._transport.set_write_buffer_limits(FULL_BYTES, 0)
        peer = transport.get_extra_info("peername")
        self.peer = f"{peer[0]}" if isinstance(peer, tuple) else str(peer)
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
        self._pending_bytes = self._reply_bytes = 0
        self._owner.held_bytes -= self._held_bytes
        self._held_bytes = 0
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
        """Replies to what was asked are still sent; who asks nothing more has no patience either."""
        for waiting in tuple(self.waiting):
            waiting.hurry()
        self.finish()
        return True

    def pause_writing(self) -> None:
        self._paused_by_writes = True
        self._read_or_not()

    def resume_writing(self) -> None:
        """Not the moment to write: a transport that is closed, or fails, while it calls this loses its connection
        twice."""
        self._paused_by_writes = False
        self._flush_soon()

    # the server calls these

    def finish(self) -> None:
        """Answer what was asked, then close."""
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
        """There are bytes for a client that does not read them."""
        return self._transport is not None and self._transport.get_write_buffer_size() > 0

    # requests and replies

    def _handle(self) -> None:
        """The requests that are here, as far as there is room for their replies."""
        frames = self._frames
        many = len(frames) >= _WORTH_A_WRITE
        while frames and self._has_room():
            self._take(frames.popleft())
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
                    answer.then(lambda reply: self._encoded_later(pending, reply))
                return
            header = decode_request_header(frame)
            handle = self._owner.handler_for(header)
            reply = handle(Request(header, frame, self), decode_request_body(header, frame))
            if reply is None or isinstance(reply, Struct):
                self._answer(pending, header, reply)
            elif isinstance(reply, Promise):
                reply.when_done(partial(self._answer_later, pending, header, frame))
            else:
                task = asyncio.ensure_future(self._wait(pending, header, frame, reply))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        except Refusal as refusal:
            pending.chunks = refusal.encoded(cast("RequestHeader", header))
        except Exception as error:
            self._answer_failure(pending, header, frame, error)

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
        """With the error in the API's own fields, if the request could be read and there is a place for it."""
        if isinstance(error, RemoteProtocolError | ConnectionError):
            self._fail(header, error)
            return
        from tidelog.gateways.kafka.error_replies import error_reply

        code, message = UNKNOWN_SERVER_ERROR, "the broker failed at this request; its log says why"
        if isinstance(error, TidelogError) and not isinstance(error, ProtocolError):
            code, message = error.kafka_code or UNKNOWN_SERVER_ERROR, str(error)
        try:
            header = header or decode_request_header(
                frame
            )  # one that was answered as a repeat of another was not read
            chunks = error_reply(header, frame, code, message)
        except Exception as another:
            another.__context__ = error  # both are in the log
            self._fail(header, another)
            return
        if chunks is None:
            self._fail(header, error)
            return
        self._owner.failed(self, header, error, answered=True)
        self._encoded(pending, chunks, sum(map(len, chunks)))

    def _answer(self, pending: Pending, header: RequestHeader, reply: Reply) -> None:
        if reply is None:
            pending.chunks = []
        else:
            chunks = encode_response(header.api, header.api_version, header.correlation_id, reply)
            self._encoded(pending, chunks, sum(map(len, chunks)))

    def _encoded(self, pending: Pending, chunks: Chunks, size: int) -> None:
        pending.chunks = chunks
        pending.reply_size = size
        self._reply_bytes += size

    def _encoded_later(self, pending: Pending, reply: bytearray) -> None:
        self._encoded(pending, [reply], len(reply))
        self._flush_soon()

    def _flush_soon(self) -> None:
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._owner.flush_soon(self)

    def flush(self) -> None:
        """Write the replies that are ready, up to the first request that still waits, as fast as the client reads."""
        self._flush_scheduled = False
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        try:
            pending = self._pending
            while pending and pending[0].chunks is not None and not self._paused_by_writes:
                if not self._write_some(transport):
                    break
        except Exception as error:  # the reply's first bytes may be out: it cannot be taken back
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
        """As many replies as go well into one write. False: of a large one more is to be written, later."""
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
        """What this connection holds counts for all: the one that goes over their common bound has to go."""
        held = self._pending_bytes + self._reader.pending
        if self._frames:
            held += sum(map(len, self._frames))
        self._owner.held_bytes += held - self._held_bytes
        grown, self._held_bytes = held > self._held_bytes, held
        if grown and self._owner.held_bytes > self._owner.limits.max_total_bytes:
            self._fail(
                None, FrameTooLarge(f"requests of all connections hold {self._owner.held_bytes} bytes already")
            )

    def _fail(self, header: RequestHeader | None, error: Exception) -> None:
        """What cannot be answered ends the connection, as Kafka does."""
        self._closing = True
        self._frames.clear()
        self._owner.failed(self, header, error, answered=False)
        self.abort()


class Refusal(Exception):
    """An answer that is not the one the request's version asks for: ApiVersions in the oldest form."""

    def __init__(self, version: int, reply: Struct) -> None:
        super().__init__()
        self._version = version
        self._reply = reply

    def encoded(self, header: RequestHeader) -> Chunks:
        return encode_response(header.api, self._version, header.correlation_id, self._reply)
