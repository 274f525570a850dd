"""Listens for Kafka clients and keeps their connections within limits.

Requests reach their handlers through the `gate`. A handler's module is imported with the first request of its API, so
that the broker starts faster.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial
from importlib import import_module

import structlog

from tidelog.broker.broker import Broker
from tidelog.errors import TidelogError
from tidelog.gateways.kafka.acceptor import Acceptor
from tidelog.gateways.kafka.api_table import TABLE
from tidelog.gateways.kafka.connection import Connection, Handler, Limits, Refusal
from tidelog.gateways.kafka.context import Context
from tidelog.gateways.kafka.gate import answered, is_open
from tidelog.wire.envelope import RequestHeader
from tidelog.wire.protocol_errors import LocalProtocolError, UnsupportedApi, UnsupportedVersion

API_VERSIONS = 18
UNSUPPORTED_VERSION = 35
_REFUSALS_TOLD_SECONDS = 10.0

log = structlog.get_logger("tidelog.kafka")


class KafkaServer:
    """All listeners and connections of a broker."""

    def __init__(self, limits: Limits, broker: Broker) -> None:
        self.limits = limits
        self._broker = broker
        self.held_bytes = 0
        self.reply_bytes = 0
        self.turns = asyncio.Lock()
        self._connections: set[Connection] = set()
        self._by_address: Counter[str] = Counter()
        self._to_flush: list[Connection] = []
        self._handlers: dict[int, Handler] = {}
        self._acceptors: list[tuple[Acceptor, Context]] = []
        self._refused = 0  # connections, since refusals were last logged
        self._sweeper: asyncio.Task[None] | None = None
        self._stopping = False

    async def listen(self, host: str, port: int, context: Callable[[int], Context]) -> tuple[str, int]:
        """Bind a listener and return its actual address (port 0 means any free port). `context` makes the context of
        its handlers from the port. Clients can connect, but have to wait until `accept` is called."""
        acceptor = await Acceptor.bound(host, port)
        self._acceptors.append((acceptor, context(acceptor.address[1])))
        return acceptor.address

    def accept(self) -> None:
        """Begin to accept connections, on all listeners."""
        for acceptor, context in self._acceptors:
            acceptor.accept(partial(Connection, self, context))
        self._sweeper = asyncio.create_task(self._sweep())

    def limit(self, limits: Limits) -> None:
        """Change the limits. The size of a frame changes for new connections only."""
        self.limits = limits

    async def close(self, grace_seconds: float = 5.0) -> None:
        """Accept no more connections, answer the requests that were received, and close. After the grace time the
        remaining connections are aborted."""
        self._stopping = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        for acceptor, _ in self._acceptors:
            acceptor.close()
        for connection in list(self._connections):
            connection.finish()
        deadline = asyncio.get_running_loop().time() + grace_seconds
        while self._connections and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.01)
        for connection in list(self._connections):
            connection.abort()
        while self._connections:
            await asyncio.sleep(0)

    # for the connections

    def handler_for(self, header: RequestHeader) -> Handler:
        api = header.api
        if api.key not in TABLE or not api.supports(header.api_version):
            if api.key == API_VERSIONS:
                from tidelog.gateways.kafka.api.api_versions import versions_response

                raise Refusal(0, versions_response(0, UNSUPPORTED_VERSION))
            if api.key not in TABLE:
                raise UnsupportedApi(api.key, api.name)
            raise UnsupportedVersion(api.name, header.api_version, api.min_version, api.max_version)
        handler = self._handlers.get(api.key)
        if handler is None:
            module = import_module(f"tidelog.gateways.kafka.api.{TABLE[api.key].module}")
            handler = self._handlers[api.key] = module.handle
        return handler if is_open(self._broker) else partial(answered, TABLE[api.key], handler)

    def opened(self, connection: Connection) -> bool:
        self._connections.add(connection)
        self._by_address[connection.session.peer] += 1
        there_is_room = (
            len(self._connections) <= self.limits.max_connections
            and self._by_address[connection.session.peer] <= self.limits.max_connections_per_address
        )
        if not there_is_room:
            if not self._refused:
                log.warning(
                    "connection refused", peer=connection.session.peer, connections=len(self._connections) - 1
                )
                asyncio.get_running_loop().call_later(_REFUSALS_TOLD_SECONDS, self._tell_refusals)
            self._refused += 1
        return there_is_room and not self._stopping

    def _tell_refusals(self) -> None:
        refused, self._refused = self._refused, 0
        if refused > 1:
            log.warning("connections refused", times=refused, seconds=_REFUSALS_TOLD_SECONDS)

    def closed(self, connection: Connection) -> None:
        self._connections.discard(connection)
        for acceptor, _ in self._acceptors:
            acceptor.descriptor_freed()
        self._by_address[connection.session.peer] -= 1
        if not self._by_address[connection.session.peer]:
            del self._by_address[connection.session.peer]

    def flush_soon(self, connection: Connection) -> None:
        """Write the replies that become ready in one iteration of the event loop together, connection by connection:
        the first write wakes the clients' threads, and the others find them awake."""
        if not self._to_flush:
            asyncio.get_running_loop().call_soon(self._flush_all)
        self._to_flush.append(connection)

    def _flush_all(self) -> None:
        connections, self._to_flush = self._to_flush, []
        for connection in connections:
            connection.flush()

    def failed(
        self, connection: Connection, request: RequestHeader | None, error: Exception, *, answered: bool
    ) -> None:
        what = f"{request.api.name} v{request.api_version}" if request is not None else None
        if isinstance(error, ConnectionError):
            log.debug("client disconnected before it was answered", peer=connection.session.peer)
        elif isinstance(error, TidelogError) and not isinstance(error, LocalProtocolError):
            happened = "request answered with an error" if answered else "connection closed"
            log.warning(happened, peer=connection.session.peer, request=what, reason=str(error))
        else:
            log.error("request failed", peer=connection.session.peer, request=what, exc_info=error)

    async def _sweep(self) -> None:
        """Close the connections that were idle, or did not read their replies, for too long."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(10.0, self.limits.idle_seconds / 2))
            before = loop.time() - self.limits.idle_seconds
            for connection in list(self._connections):
                if connection.last_active < before:
                    try:
                        self._sweep_out(connection)
                    except Exception as error:  # a bug: the other connections are still swept
                        self.failed(connection, None, error, answered=False)

    def _sweep_out(self, connection: Connection) -> None:
        if connection.is_stuck:
            log.warning(
                "connection closed", peer=connection.session.peer, reason="the client does not read its replies"
            )
            connection.abort()
        elif connection.is_idle:
            connection.finish()
