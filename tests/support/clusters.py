"""A real cluster for tests: `tidelog serve` processes over a real PostgreSQL and a directory as object store."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from tests.support.brokers import STOP_SECONDS, BrokerProcess
from tests.support.postgres import fresh_schema, server
from tidelog.client import Client, connect


class ClusterProcesses:
    """Brokers 1 to `size`. Use it by `cluster_of`, which ends everything."""

    def __init__(self, directory: Path, size: int, settings: Mapping[str, str], storage: str) -> None:
        self.storage = storage
        shared = {"cluster.storage": storage, **settings}
        database = f"{server().url()}?schema={fresh_schema()}"
        self.brokers = [
            BrokerProcess(directory / f"broker-{number}", {**shared, "node-id": str(number)})
            for number in range(1, size + 1)
        ]
        for broker in self.brokers:
            broker.environment["TIDELOG_CLUSTER_METADATA"] = database

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers)

    def client(self) -> Client:
        return connect(self.bootstrap)

    def broker(self, broker_id: int) -> BrokerProcess:
        return self.brokers[broker_id - 1]


@contextmanager
def cluster_of(
    size: int, directory: Path, settings: Mapping[str, str] | None = None, *, storage: str | None = None
) -> Iterator[ClusterProcesses]:
    cluster = ClusterProcesses(directory, size, settings or {}, storage or f"file://{directory}/objects")
    try:
        for broker in cluster.brokers:
            broker.start()
        yield cluster
    finally:
        for broker in cluster.brokers:
            broker.end()


class ClusterAsBroker(BrokerProcess):
    """A cluster of three that tests use like one broker: they start, stop and kill all of it."""

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        self._cluster = ClusterProcesses(directory, 3, settings or {}, f"file://{directory}/objects")
        first, *self._others = self._cluster.brokers
        super().__init__(first.directory, first.settings)
        self.environment = first.environment

    @property
    def bootstrap(self) -> str:
        return ",".join([super().bootstrap, *(other.bootstrap for other in self._others)])

    def broker(self, broker_id: int) -> BrokerProcess:
        """One of them; the first one is this object, so start and stop it by the methods of `BrokerProcess`."""
        return [self, *self._others][broker_id - 1]

    @property
    def logs(self) -> str:
        """The output of all brokers."""
        return "\n".join([self.log, *(other.log for other in self._others)])

    def start(self) -> Self:
        super().start()
        for other in self._others:
            other.start()
        return self

    def kill(self) -> None:
        super().kill()
        for other in self._others:
            other.kill()

    def stop(self, within: float = STOP_SECONDS) -> float:
        return sum(other.stop(within) for other in self._others) + super().stop(within)

    def end(self) -> None:
        super().end()
        for other in self._others:
            other.end()
