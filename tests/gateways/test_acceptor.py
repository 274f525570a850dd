"""Taking connections; what happens when descriptors run out is in `test_descriptors.py`."""

import asyncio
import socket
from typing import cast

from tidelog.gateways.kafka.acceptor import Acceptor


def test_small_replies_do_not_wait_for_acknowledgements_of_earlier_ones() -> None:
    """With Nagle's algorithm a reply waits up to 40 ms for a client that delays its ACKs."""

    async def run() -> None:
        accepted: asyncio.Future[asyncio.Transport] = asyncio.get_running_loop().create_future()

        class Protocol(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                accepted.set_result(cast("asyncio.Transport", transport))

        acceptor = await Acceptor.bound("127.0.0.1", 0)
        acceptor.accept(Protocol)
        _, writer = await asyncio.open_connection(*acceptor.address)
        transport = await asyncio.wait_for(accepted, 20)
        assert transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        transport.close()
        writer.close()
        await writer.wait_closed()
        acceptor.close()

    asyncio.run(run())
