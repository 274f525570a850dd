"""One connection to one broker: requests are pipelined, replies are matched by their correlation id.

A connection is never reopened: any error closes it, and all requests that wait for a reply fail with that error. To
go on, a caller opens another one (`cluster`).

A reply that is overdue closes the connection too. Brokers answer the requests of a connection in order, so the
replies after it are overdue as well.
"""

import asyncio
import errno
import os
import socket
from struct import Struct as Layout
from typing import Any, NamedTuple

from tidelog import __version__
from tidelog.client.errors import ConnectionLost, IncompatibleBroker, RequestTimedOut, Unreachable
from tidelog.client.options import Address, ClientOptions
from tidelog.errors import TidelogError, fresh
from tidelog.wire.apis import BY_NAME, Api
from tidelog.wire.envelope import Chunks, decode_response, encode_request, response_correlation_id
from tidelog.wire.error_codes import ErrorCode, name_of
from tidelog.wire.framing import FrameReader
from tidelog.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tidelog.wire.primitives import Struct
from tidelog.wire.protocol_errors import RemoteProtocolError

_API_VERSIONS = BY_NAME["ApiVersions"]
_ERROR_CODE = Layout(">h")
_ERROR_CODE_AT = 4  # of an ApiVersions response, after the correlation id; the same in all versions
_MAX_CORRELATION_ID = 0x7FFF_FFFF


class _Waiting(NamedTuple):
    api: Api
    reply: asyncio.Future[memoryview]


class BrokerConnection(asyncio.BufferedProtocol):
    """Made by `BrokerConnection.open`, which also asks the broker for its API versions."""

    def __init__(self, address: Address, options: ClientOptions) -> None:
        self.address = address
        self._client_id = options.client_id
        self._frames = FrameReader(options.max_frame_bytes)
        self._transport: asyncio.Transport | None = None
        self._error: TidelogError | None = None
        self._ranges: dict[int, tuple[int, int]] = {}
        self.features: dict[str, int] = {}  # finalized features of the cluster, with their levels
        self._waiting: dict[int, _Waiting] = {}
        self._slots = asyncio.Semaphore(options.max_in_flight)  # one per entry of _waiting, and fair
        self._writable = asyncio.Event()
        self._writable.set()
        self._last_id = 0
        self._lost = asyncio.get_running_loop().create_future()

    @classmethod
    async def open(cls, address: Address, options: ClientOptions) -> "BrokerConnection":
        loop = asyncio.get_running_loop()
        connection = cls(address, options)
        try:
            async with asyncio.timeout(options.connect_timeout_ms / 1000):
                await loop.create_connection(lambda: connection, address.host, address.port)
                await connection._learn_versions(options.connect_timeout_ms / 1000)
        except TimeoutError:
            connection.close()
            raise Unreachable(f"cannot reach {address}: no answer in {options.connect_timeout_ms} ms") from None
        except OSError as error:
            raise Unreachable(_why_unreachable(address, error)) from None
        except BaseException:
            connection.close()
            raise
        return connection

    @property
    def is_open(self) -> bool:
        return self._error is None

    def close(self) -> None:
        self._end(ConnectionLost(f"the connection to {self.address} was closed"))

    async def wait_closed(self) -> None:
        """After `close`: wait until the socket is closed."""
        if self._transport is not None:
            await asyncio.shield(self._lost)

    def version_of(self, api: Api, at_most: int | None = None) -> int:
        """The highest version that both the broker and the client support, up to `at_most`."""
        low, high = self._ranges.get(api.key, (0, -1))
        version = min(high, api.max_version, api.max_version if at_most is None else at_most)
        if version < max(low, api.min_version):
            speaks = f"v{low} to v{high}" if high >= 0 else "no version"
            wants = f"v{api.min_version} to v{api.max_version}"
            raise IncompatibleBroker(
                f"the broker at {self.address} supports {speaks} of {api.name}, this client {wants}"
            )
        return version

    async def request(self, api: Api, message: Struct, *, timeout_s: float, at_most: int | None = None) -> Any:  # noqa: ANN401
        """Send a request and wait for its response. Waits first while `max_in_flight` requests are in flight."""
        version = self.version_of(api, at_most)
        frame = await self._exchange(api, version, message, timeout_s)
        return self._decode(api, version, frame)

    async def send(self, api: Api, message: Struct, *, timeout_s: float, at_most: int | None = None) -> None:
        """Send a request that has no response: Produce with acks=0."""
        version = self.version_of(api, at_most)
        try:
            async with asyncio.timeout(timeout_s):
                await self._writable.wait()
        except TimeoutError:
            raise self._overdue(api, timeout_s) from None
        self._write(encode_request(api, version, self._next_id(), self._client_id, message))

    # --- one exchange ---------------------------------------------------------------------------------------------

    async def _exchange(self, api: Api, version: int, message: Struct, timeout_s: float) -> memoryview:
        reply: asyncio.Future[memoryview] | None = None
        try:
            async with asyncio.timeout(timeout_s):
                await self._slots.acquire()
                reply = self._expect(api, version, message)
                await self._writable.wait()
                return await reply
        except TimeoutError:
            error = self._overdue(api, timeout_s)
            if reply is not None:
                self._end(error)
            raise error from None

    def _expect(self, api: Api, version: int, message: Struct) -> asyncio.Future[memoryview]:
        """Send; the slot is released when the reply arrives, also if nobody waits for it any more."""
        try:
            correlation_id = self._next_id()
            chunks = encode_request(api, version, correlation_id, self._client_id, message)
            if self._error is not None:
                raise fresh(self._error)
        except BaseException:
            self._slots.release()
            raise
        reply = asyncio.get_running_loop().create_future()
        self._waiting[correlation_id] = _Waiting(api, reply)
        self._write(chunks)
        return reply

    def _write(self, chunks: Chunks) -> None:
        if self._error is not None:
            raise fresh(self._error)
        assert self._transport is not None
        self._transport.writelines(chunks)  # type: ignore[arg-type]  # requests hold no records outside memory

    def _next_id(self) -> int:
        self._last_id = 1 if self._last_id == _MAX_CORRELATION_ID else self._last_id + 1
        return self._last_id

    def _decode(self, api: Api, version: int, frame: memoryview) -> Any:  # noqa: ANN401
        try:
            return decode_response(api, version, frame)
        except RemoteProtocolError as error:
            refusal = RemoteProtocolError(f"{self.address} sent a response that cannot be read: {error}")
            self._end(refusal)
            raise refusal from None

    def _overdue(self, api: Api, timeout_s: float) -> RequestTimedOut:
        return RequestTimedOut(f"no reply to {api.name} from {self.address} in {timeout_s * 1000:.0f} ms")

    async def _learn_versions(self, timeout_s: float) -> None:
        """A broker that does not support our version of ApiVersions answers in v0, with the versions that it
        supports."""
        request = ApiVersionsRequest(client_software_name="tidelog", client_software_version=__version__)
        version = _API_VERSIONS.max_version
        frame = await self._exchange(_API_VERSIONS, version, request, timeout_s)
        if _error_code_of(frame) == ErrorCode.UNSUPPORTED_VERSION:
            self._remember(self._decode(_API_VERSIONS, 0, frame))
            version = self.version_of(_API_VERSIONS) if self._ranges else 0
            frame = await self._exchange(_API_VERSIONS, version, request, timeout_s)
        response = self._decode(_API_VERSIONS, version, frame)
        if response.error_code:
            raise IncompatibleBroker(f"{self.address} refused ApiVersions: {name_of(response.error_code)}")
        self._remember(response)

    def _remember(self, response: ApiVersionsResponse) -> None:
        self._ranges = {row.api_key: (row.min_version, row.max_version) for row in response.api_keys}
        self.features = {row.name: row.max_version_level for row in response.finalized_features}

    # --- what the transport calls ---------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        raw = transport.get_extra_info("socket")
        if raw is not None and raw.family in (socket.AF_INET, socket.AF_INET6):
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        try:
            for frame in self._frames.received(nbytes):
                self._settle(frame)
        except RemoteProtocolError as error:
            self._end(RemoteProtocolError(f"{self.address} does not speak the Kafka protocol: {error}"))

    def _settle(self, frame: memoryview) -> None:
        correlation_id = response_correlation_id(frame)
        waiting = self._waiting.pop(correlation_id, None)
        if waiting is None:
            raise RemoteProtocolError(f"a response to request {correlation_id}, which was never sent")
        self._slots.release()
        if not waiting.reply.done():
            waiting.reply.set_result(frame)

    def eof_received(self) -> None:
        """The transport then closes itself."""

    def connection_lost(self, error: Exception | None) -> None:
        asked = ", ".join(sorted({waiting.api.name for waiting in self._waiting.values()}))
        what = f"{self.address} closed the connection"
        if asked:
            what += f" before it answered {asked}"
        self._end(ConnectionLost(what if error is None else f"{what}: {error}"))
        if not self._lost.done():
            self._lost.set_result(None)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _end(self, error: TidelogError) -> None:
        if self._error is not None:
            return
        self._error = error
        if self._transport is not None:
            self._transport.abort()
        waiting, self._waiting = self._waiting, {}
        for _, reply in waiting.values():
            self._slots.release()
            if not reply.done():
                reply.set_exception(fresh(error))
                reply.exception()  # mark it as seen: asyncio would log an error that nobody waits for
        self._writable.set()


def _error_code_of(frame: memoryview) -> int:
    if len(frame) < _ERROR_CODE_AT + _ERROR_CODE.size:
        return 0  # the decoder says what is wrong with it
    code: int = _ERROR_CODE.unpack_from(frame, _ERROR_CODE_AT)[0]
    return code


def _why_unreachable(address: Address, error: OSError) -> str:
    codes = {error.errno, *(getattr(inner, "errno", None) for inner in getattr(error, "exceptions", ()))}
    # With several addresses for a name, asyncio raises one OSError without an errno, and all texts in it.
    refused = errno.ECONNREFUSED in codes or "Connect call failed" in str(error)
    if isinstance(error, socket.gaierror):
        return f"cannot reach {address}: the host name cannot be resolved"
    if refused:
        return f"cannot reach {address}: connection refused; is the broker running? start it with: tidelog serve"
    reason = os.strerror(error.errno).lower() if error.errno else str(error)
    return f"cannot reach {address}: {reason}"
