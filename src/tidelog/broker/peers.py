"""`Peers`: requests of this broker to the other brokers of its cluster, over the Kafka protocol.

Each broker has one connection, opened on first use and again after it was lost. Who is asked, and what an answer
means, is the caller's business; every answer may be out of date, so the receiver checks ownership as for any client.
"""

import asyncio
from typing import Any

from tidelog.broker.ownership import NO_ADDRESS, NOBODY, Ownership
from tidelog.client.connection import BrokerConnection
from tidelog.client.errors import ClientError
from tidelog.client.options import Address, ClientOptions
from tidelog.errors import TidelogError
from tidelog.wire.apis import BY_NAME
from tidelog.wire.primitives import Struct

_TIMEOUT_S = 10.0


class PeerUnavailable(TidelogError):
    """The other broker did not answer. It may have carried out the request."""

    kafka_code = 15  # COORDINATOR_NOT_AVAILABLE: clients look up the coordinator again, and retry
    retriable = True


class Peers:
    """Belongs to the running event loop."""

    def __init__(self, ownership: Ownership, listener: str) -> None:
        """`listener`: the name of the listener at which brokers reach each other."""
        self._ownership = ownership
        self._listener = listener
        self._options = ClientOptions(client_id=f"broker-{ownership.node_id}", connect_timeout_ms=3_000)
        self._connections: dict[Address, BrokerConnection] = {}
        self._opening: dict[Address, asyncio.Lock] = {}

    async def ask(self, broker_id: int, api: str, message: Struct, *, at_most: int | None = None) -> Any:  # noqa: ANN401
        """The response. Raises PeerUnavailable."""
        found = self._ownership.address(broker_id, self._listener)
        if broker_id == NOBODY or found == NO_ADDRESS:
            raise PeerUnavailable(f"broker {broker_id} is not up")
        address = Address(found.host, found.port)
        try:
            connection = await self._connection(address)
            return await connection.request(BY_NAME[api], message, timeout_s=_TIMEOUT_S, at_most=at_most)
        except ClientError as error:
            raise PeerUnavailable(f"broker {broker_id} does not answer {api}: {error}") from error

    async def _connection(self, address: Address) -> BrokerConnection:
        async with self._opening.setdefault(address, asyncio.Lock()):
            known = self._connections.get(address)
            if known is None or not known.is_open:
                await self._close_others()
                known = self._connections[address] = await BrokerConnection.open(address, self._options)
            return known

    async def _close_others(self) -> None:
        """Close connections to addresses at which no broker is any more."""
        known = {Address(each.host, each.port) for each in self._ownership.brokers(self._listener)}
        for address in self._connections.keys() - known:
            connection = self._connections.pop(address)
            connection.close()
            await connection.wait_closed()

    async def close(self) -> None:
        connections, self._connections = self._connections, {}
        for connection in connections.values():
            connection.close()
            await connection.wait_closed()
