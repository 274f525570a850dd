"""A running broker inside your own process: a thread with an event loop, real sockets, real files.

    with tidelog.embedded() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

Without a data directory the broker uses a temporary one, which is removed when it stops.
"""

import asyncio
import contextlib
import tempfile
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from tidelog.broker.shell import now_ms
from tidelog.broker.topics import NewTopic
from tidelog.errors import TidelogError
from tidelog.node import Node
from tidelog.settings import ListenerSettings, NodeSettings, StorageSettings

_START_SECONDS = 30


class EmbeddedBroker:
    """The constructor starts the broker. Call `stop` at the end, or use it as a context manager."""

    def __init__(self, data_dir: str | None = None, *, port: int = 0, kafka: Mapping[str, str] | None = None) -> None:
        """`kafka` has broker configs by their Kafka names; port 0 takes any free port."""
        self._temporary = None if data_dir is not None else tempfile.TemporaryDirectory(prefix="tidelog-")
        self.data_dir = data_dir or (self._temporary.name if self._temporary is not None else "")
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(
            target=self._run, args=(port, dict(kafka or {})), name="tidelog-broker", daemon=True
        )
        self._thread.start()
        if not self._started.wait(_START_SECONDS):
            raise TidelogError("the embedded broker did not start in time")
        if self._failure is not None:
            self.stop()
            raise self._failure

    @property
    def bootstrap_servers(self) -> str:
        """The value of `bootstrap.servers` for any Kafka client."""
        return str(self._node.listeners[0])

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        """Create a topic. Configs are Kafka's, with underscores for dots: `retention_ms="1000"`."""
        new = NewTopic(name, partitions, configs=[(key.replace("_", "."), value) for key, value in configs.items()])
        creating = self._node.broker.topics.create(new, now_ms())
        asyncio.run_coroutine_threadsafe(creating, self._loop).result(_START_SECONDS)

    def stop(self) -> None:
        """Answer pending requests, make everything durable, and release all files and sockets. Stopping twice is
        allowed."""
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()
        if self._temporary is not None:
            self._temporary.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self, port: int, kafka: Mapping[str, str]) -> None:
        try:
            self._loop.run_until_complete(self._serve(port, kafka))
        except BaseException as error:
            self._failure = error
        finally:
            self._loop.close()
            self._started.set()

    def _settings(self, port: int, kafka: Mapping[str, str]) -> NodeSettings:
        return NodeSettings(
            data_dir=self.data_dir,
            listeners=(ListenerSettings("127.0.0.1", port),),
            storage=StorageSettings(tail_cache_bytes=16 << 20),
            shutdown_grace_ms=500,
            kafka=kafka,
        )

    async def _serve(self, port: int, kafka: Mapping[str, str]) -> None:
        self._node = Node(self._settings(port, kafka))
        await self._node.start()
        self._started.set()
        await self._stopping.wait()
        await self._node.stop()


def embedded(data_dir: str | None = None, *, port: int = 0, kafka: Mapping[str, str] | None = None) -> EmbeddedBroker:
    """Start a broker in this process."""
    return EmbeddedBroker(data_dir, port=port, kafka=kafka)
