"""A broker in the event loop of a test, without clients: for what gateways ask of it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar

from tidelog.broker.broker import Broker
from tidelog.broker.partition import Partition
from tidelog.broker.topics import NewTopic
from tidelog.node import Node
from tidelog.settings import ListenerSettings, NodeSettings

T = TypeVar("T")
NOW_MS = 1_700_000_000_000


def run(directory: Path, play: Callable[[Broker], Awaitable[T]]) -> T:
    """`play` with a broker whose data is in the directory, from its start to its clean end."""

    async def main() -> T:
        node = Node(NodeSettings(data_dir=str(directory / "data"), listeners=(ListenerSettings("127.0.0.1", 0),)))
        await node.start()
        try:
            return await play(node.broker)
        finally:
            await node.stop()

    return asyncio.run(main())


async def make_topic(
    broker: Broker, configs: Mapping[str, str] | None = None, *, name: str = "topic", partitions: int = 1
) -> Partition:
    """Its first partition."""
    await broker.topics.create(NewTopic(name, partitions, configs=list((configs or {}).items())), NOW_MS)
    return broker.partition(name, 0)
