"""`Peers`: requests of this broker to the other brokers of its cluster, over the Kafka protocol.

Connections belong to lanes, because brokers answer the requests of a connection in order: what waits at the other
broker must not hold up everything else. A connection is opened on first use, and again after it was lost. Who is
asked, and what an answer means, is the caller's business; every answer may be out of date, so the receiver checks
ownership as for any client.
"""

import asyncio
from collections.abc import Callable, Hashable
from typing import Any

from tidelog.broker.ownership import NO_ADDRESS, NOBODY, Ownership, PeerUnavailable
from tidelog.broker.sessions import PEER_CLIENT_ID
from tidelog.client.connection import BrokerConnection
from tidelog.client.errors import ClientError
from tidelog.client.options import Address, ClientOptions
from tidelog.wire.apis import BY_NAME
from tidelog.wire.primitives import Struct

_TIMEOUT_S = 10.0
_IN_FLIGHT = 10_000  # requests wait for their callers' decisions, not for each other


class _Link:
    """The connection of one lane to one address."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self.connection: BrokerConnection | None = None

    async def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
            await self.connection.wait_closed()


class Peers:
    """Belongs to the running event loop."""

    def __init__(self, ownership: Ownership, listener: str) -> None:
        """`listener`: the name of the listener at which brokers reach each other."""
        self._ownership = ownership
        self._listener = listener
        self._options = ClientOptions(
            client_id=f"{PEER_CLIENT_ID}{ownership.node_id}", connect_timeout_ms=3_000, max_in_flight=_IN_FLIGHT
        )
        self._links: dict[tuple[Address, Hashable], _Link] = {}
        self._is_closed = False

    async def ask(
        self,
        broker_id: int,
        api: str,
        message: Struct,
        *,
        at_most: int | None = None,
        lane: Hashable = "",
        timeout_s: float = _TIMEOUT_S,
        if_still: Callable[[], bool] = lambda: True,
    ) -> Any:  # noqa: ANN401  (one of the response classes)
        """The response. Raises PeerUnavailable. `if_still` is asked right before the request is sent."""
        found = self._ownership.address(broker_id, self._listener)
        if broker_id == NOBODY or found == NO_ADDRESS:
            raise PeerUnavailable(f"broker {broker_id} is not up")
        try:
            connection = await self._connection(Address(found.host, found.port), lane)
            if not if_still():
                raise PeerUnavailable(f"{api} is no longer to be sent to broker {broker_id}")
            return await connection.request(BY_NAME[api], message, timeout_s=timeout_s, at_most=at_most)
        except ClientError as error:
            raise PeerUnavailable(f"broker {broker_id} does not answer {api}: {error}") from error

    async def _connection(self, address: Address, lane: Hashable) -> BrokerConnection:
        link = self._links.get((address, lane))
        if link is None:
            self._forget_others()
            link = self._links[address, lane] = _Link()
        async with link.turn:
            if self._is_closed:
                raise PeerUnavailable("this broker is stopping")
            if link.connection is None or not link.connection.is_open:
                link.connection = await BrokerConnection.open(address, self._options)
            return link.connection

    def _forget_others(self) -> None:
        """Close connections to addresses at which no broker is any more."""
        known = {Address(each.host, each.port) for each in self._ownership.brokers(self._listener)}
        for key in [key for key in self._links if key[0] not in known]:
            link = self._links.pop(key)
            if link.connection is not None:
                link.connection.close()

    async def close(self) -> None:
        self._is_closed = True
        links, self._links = self._links, {}
        for link in links.values():
            async with link.turn:
                await link.close()
