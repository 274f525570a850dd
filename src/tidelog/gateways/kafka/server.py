"""Listens for Kafka clients and keeps their connections within bounds.

`OFFERED` is what ApiVersions advertises: the APIs with a handler, at Kafka 4.2's ranges, and from 10000 on Tidelog's
own (docs/adr/0005), which other clients pass over. A handler's module is
imported with its first request, so that starting does not wait for what nobody asked for yet.
"""

import asyncio
from collections import Counter
from importlib import import_module
from typing import Any

import structlog

from tidelog.errors import TidelogError
from tidelog.gateways.kafka.connection import Connection, Handler, Limits, Refusal
from tidelog.wire.apis import APIS, Api
from tidelog.wire.envelope import RequestHeader
from tidelog.wire.protocol_errors import LocalProtocolError, UnsupportedVersion

API_VERSIONS = 18
UNSUPPORTED_VERSION = 35

# API key -> module in tidelog.gateways.kafka.api
MODULES: dict[int, str] = {
    0: "produce",
    1: "fetch",
    2: "list_offsets",
    3: "metadata",
    8: "offset_commit",
    9: "offset_fetch",
    10: "find_coordinator",
    11: "join_group",
    12: "heartbeat",
    13: "leave_group",
    14: "sync_group",
    15: "describe_groups",
    16: "list_groups",
    18: "api_versions",
    19: "create_topics",
    20: "delete_topics",
    21: "delete_records",
    22: "init_producer_id",
    23: "offset_for_leader_epoch",
    24: "add_partitions_to_txn",
    25: "add_offsets_to_txn",
    26: "end_txn",
    27: "write_txn_markers",
    28: "txn_offset_commit",
    32: "describe_configs",
    33: "alter_configs",
    35: "describe_log_dirs",
    37: "create_partitions",
    42: "delete_groups",
    43: "elect_leaders",
    44: "incremental_alter_configs",
    45: "alter_partition_reassignments",
    46: "list_partition_reassignments",
    47: "offset_delete",
    60: "describe_cluster",
    61: "describe_producers",
    65: "describe_transactions",
    66: "list_transactions",
    68: "consumer_group_heartbeat",
    69: "consumer_group_describe",
    74: "list_config_resources",
    75: "describe_topic_partitions",
    10002: "decide_transactions",
    10003: "describe_decision",
    10000: "table_get",
    10001: "table_describe",
}
OFFERED: tuple[Api, ...] = tuple(APIS[key] for key in MODULES)

log = structlog.get_logger("tidelog.kafka")


class KafkaServer:
    """All listeners and connections of a broker. `context` is what the handlers work with."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.held_bytes = 0
        self._connections: set[Connection] = set()
        self._by_address: Counter[str] = Counter()
        self._to_flush: list[Connection] = []
        self._handlers: dict[int, Handler] = {}
        self._servers: list[asyncio.Server] = []
        self._sweeper: asyncio.Task[None] | None = None
        self._stopping = False

    async def listen(self, host: str, port: int, context: Any) -> tuple[str, int]:  # noqa: ANN401
        """Bind a listener; the address that it really has (port 0 asks for any)."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: Connection(self, context), host, port, backlog=1024, reuse_address=True
        )
        self._servers.append(server)
        if self._sweeper is None:
            self._sweeper = asyncio.create_task(self._sweep())
        bound = server.sockets[0].getsockname()
        return bound[0], bound[1]

    def limit(self, limits: Limits) -> None:
        """Other limits from now on; the size of a frame from the next connection on."""
        self.limits = limits

    async def close(self, grace_seconds: float = 5.0) -> None:
        """Take no more connections, answer what was asked, close; after the grace time without asking."""
        self._stopping = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        for server in self._servers:
            server.close()
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
        if api.key not in MODULES or not api.supports(header.api_version):
            if api.key == API_VERSIONS:
                from tidelog.gateways.kafka.api.api_versions import versions_response

                raise Refusal(0, versions_response(UNSUPPORTED_VERSION))
            raise UnsupportedVersion(api.name, header.api_version, api.min_version, api.max_version)
        handler = self._handlers.get(api.key)
        if handler is None:
            module = import_module(f"tidelog.gateways.kafka.api.{MODULES[api.key]}")
            handler = self._handlers[api.key] = module.handle
        return handler

    def opened(self, connection: Connection) -> bool:
        self._connections.add(connection)
        self._by_address[connection.peer] += 1
        there_is_room = (
            len(self._connections) <= self.limits.max_connections
            and self._by_address[connection.peer] <= self.limits.max_connections_per_address
        )
        if not there_is_room:
            log.warning("connection refused", peer=connection.peer, connections=len(self._connections) - 1)
        return there_is_room and not self._stopping

    def closed(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._by_address[connection.peer] -= 1
        if not self._by_address[connection.peer]:
            del self._by_address[connection.peer]

    def flush_soon(self, connection: Connection) -> None:
        """The replies that become ready in one turn of the loop leave together, those of all connections one after
        the other: the first wakes the clients' threads, and the others find them awake."""
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
            log.debug("a client hung up while it was being answered", peer=connection.peer)
        elif isinstance(error, TidelogError) and not isinstance(error, LocalProtocolError):
            happened = "request answered with an error" if answered else "connection closed"
            log.warning(happened, peer=connection.peer, request=what, reason=str(error))
        else:
            log.error("request failed", peer=connection.peer, request=what, exc_info=error)

    async def _sweep(self) -> None:
        """Close the connections that were silent, or did not read, for too long."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(10.0, self.limits.idle_seconds / 2))
            before = loop.time() - self.limits.idle_seconds
            for connection in list(self._connections):
                if connection.last_active < before:
                    if connection.is_stuck:
                        log.warning("connection closed", peer=connection.peer, reason="it does not read its replies")
                        connection.abort()
                    elif connection.is_idle:
                        connection.finish()
