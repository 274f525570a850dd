"""The two engines that tests run against: local files with SQLite, and a cluster of one broker over a real PostgreSQL
and a directory as object store. Both brokers have the id 0.

A conftest that wants both for its tests has a module-scoped fixture `engine` that returns `request.param`, and calls
`run_with_engines` in `pytest_generate_tests`. Tests that are marked `local_engine` are run with the local one only.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

import pytest

from tests.support.brokers import BrokerProcess, eventually
from tests.support.postgres import fresh_schema, server
from tidelog.embedding import EmbeddedBroker
from tidelog.settings import ClusterSettings, NodeSettings
from tidelog.testing.broker_process import START_SECONDS

WHOLE = bool(os.environ.get("TIDELOG_TEST_CLUSTER"))
"""Run all tests of the cluster, also those that take minutes."""

# A broker that gets no processor time for seconds stops serving by default, although there is no other.
_FENCE_AFTER_MS, _DEAD_AFTER_MS = 60_000, 75_000


_READY = ("this broker is the controller", "the groups and transactions of this broker are loaded")


class Engine(StrEnum):
    LOCAL = "local"
    CLUSTER = "cluster"


def run_with_engines(metafunc: pytest.Metafunc, *, cluster: bool) -> None:
    """`cluster`: also over a cluster, if the test can."""
    if "engine" in metafunc.fixturenames:
        engines = [Engine.LOCAL]
        if cluster and metafunc.definition.get_closest_marker("local_engine") is None:
            engines.append(Engine.CLUSTER)
        metafunc.parametrize("engine", engines, indirect=True, scope="module", ids=str)


def broker_process(
    engine: Engine,
    directory: Path,
    settings: Mapping[str, str] | None = None,
    *,
    is_killed: bool = False,
    **options: Any,
) -> BrokerProcess:
    """Not started yet; `options` are those of `BrokerProcess`. `is_killed`: the test kills it, and starts
    it again, which waits until the other is presumed dead; with the defaults that is soon."""
    if engine is Engine.LOCAL:
        return BrokerProcess(directory, settings, **options)
    cluster = {"cluster.storage": f"file://{directory}/objects"}
    if not is_killed:
        cluster["cluster.fence-after-ms"] = str(_FENCE_AFTER_MS)
        cluster["cluster.dead-after-ms"] = str(_DEAD_AFTER_MS)
    process = _ClusterOfOne(directory, {**cluster, **(settings or {})}, **options)
    process.environment["TIDELOG_CLUSTER_METADATA"] = _new_database()
    return process


class _ClusterOfOne(BrokerProcess):
    """It listens when it knows the controller, or after a while without one. Here it is the controller, and a test
    may ask as soon as it listens."""

    def until_it_listens(self) -> Self:
        super().until_it_listens()
        eventually(lambda: all(said in self.log[self._said_before :] for said in _READY), within=START_SECONDS)
        return self


class SharedBrokers:
    """One of each engine, which starts when it is first asked for."""

    def __init__(self, directories: pytest.TempPathFactory) -> None:
        self._directories = directories
        self._started: dict[Engine, BrokerProcess] = {}

    def get(self, engine: Engine) -> BrokerProcess:
        if engine not in self._started:
            process = broker_process(engine, self._directories.mktemp("broker"))
            self._started[engine] = process.start()
        return self._started[engine]

    @classmethod
    @contextmanager
    def started(cls, directories: pytest.TempPathFactory, *, forbidden: str) -> Iterator["SharedBrokers"]:
        """In the end they must stop in time, and none may have logged what is `forbidden`."""
        brokers = cls(directories)
        try:
            yield brokers
            for process in brokers._started.values():
                process.stop()
                assert forbidden not in process.log, process.log
        finally:
            for process in brokers._started.values():
                process.end()


class _EmbeddedCluster(EmbeddedBroker):
    def _settings(self, port: int, kafka: Mapping[str, str]) -> NodeSettings:
        cluster = ClusterSettings(_new_database(), f"file://{self.data_dir}/objects")
        cluster = replace(cluster, fence_after_ms=_FENCE_AFTER_MS, dead_after_ms=_DEAD_AFTER_MS)
        return replace(super()._settings(port, kafka), cluster=cluster)


def embedded_broker(engine: Engine, kafka: Mapping[str, str] | None = None) -> EmbeddedBroker:
    """A broker in this process, which has started."""
    return (EmbeddedBroker if engine is Engine.LOCAL else _EmbeddedCluster)(kafka=kafka)


def place_of(broker: BrokerProcess) -> str:
    """Where the records are: what Kafka calls a log directory."""
    return broker.settings.get("cluster.storage", str(broker.data_dir))


def tables_of(broker: BrokerProcess) -> Path:
    """The directory of the tables."""
    return broker.data_dir / ("broker-0/tables" if "cluster.storage" in broker.settings else "tables")


def assert_sound(broker: BrokerProcess) -> None:
    """Nothing that is stored is damaged or missing, as the command for operators sees it."""
    if "cluster.storage" in broker.settings:
        arguments = ["cluster", "check", "--deep", "--set", f"cluster.storage={place_of(broker)}"]
    else:
        arguments = ["log", "verify", str(broker.data_dir), "--deep"]
    command = [sys.executable, "-m", "tidelog", *arguments]
    ours = {name: value for name, value in os.environ.items() if not name.startswith("TIDELOG_")}
    done = subprocess.run(command, env=ours | broker.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _new_database() -> str:
    return f"{server().url()}?schema={fresh_schema()}"
