"""A real cluster for tests: `tidelog serve` processes over a real PostgreSQL and a directory as object store."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from tests.support.brokers import BrokerProcess
from tests.support.postgres import fresh_schema, server
from tidelog.testing import broker_process
from tidelog.testing.broker_process import STOP_SECONDS
from tidelog.testing.local_cluster import LocalCluster


class ClusterProcesses(LocalCluster):
    """With the settings and the watchdog of our tests, over the PostgreSQL of this test process. Use it by
    `cluster_of`, which ends everything."""

    def __init__(
        self, directory: Path, size: int, settings: Mapping[str, str] | None = None, storage: str | None = None
    ) -> None:
        database = f"{server().url()}?schema={fresh_schema()}"
        super().__init__(directory, size, settings, database=database, storage=storage)

    def _new_broker(self, directory: Path, settings: Mapping[str, str]) -> broker_process.BrokerProcess:
        return BrokerProcess(directory, settings)

    @property
    def bootstrap(self) -> str:
        """As a `BrokerProcess` has it."""
        return self.bootstrap_servers


@contextmanager
def cluster_of(
    size: int, directory: Path, settings: Mapping[str, str] | None = None, *, storage: str | None = None
) -> Iterator[ClusterProcesses]:
    with ClusterProcesses(directory, size, settings, storage) as cluster:
        yield cluster


class ClusterAsBroker(BrokerProcess):
    """A cluster that tests use like one broker: they start, stop and kill all of it."""

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None, *, size: int = 3) -> None:
        self._cluster = ClusterProcesses(directory, size, settings)
        first, *self._others = self._cluster.brokers
        super().__init__(first.directory, first.settings)
        self.environment = first.environment

    @property
    def bootstrap(self) -> str:
        return ",".join([super().bootstrap, *(other.bootstrap for other in self._others)])

    def broker(self, broker_id: int) -> broker_process.BrokerProcess:
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
