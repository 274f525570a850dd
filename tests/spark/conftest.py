"""One Spark session and one broker for all tests here (`tests.conftest` has one process run those that use them)."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.brokers import BrokerProcess, unique
from tidelog.client import Client, connect

pytest.importorskip("pyspark", reason="needs the extra `spark`")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """local[2], with `format("tidelog")`."""
    from tidelog.spark.session import spark_session

    warehouse = tmp_path_factory.mktemp("warehouse")
    log = tmp_path_factory.mktemp("spark-log") / "spark.log"
    session = spark_session(
        "tests", master="local[2]", conf={"spark.sql.warehouse.dir": str(warehouse)}, log_file=log
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker in a process of its own. Nobody restarts it: whoever needs that starts another."""
    with BrokerProcess(tmp_path_factory.mktemp("broker")) as process:
        yield process


@pytest.fixture(scope="session")
def client(broker: BrokerProcess) -> Iterator[Client]:
    with connect(broker.bootstrap) as connected:
        yield connected


@pytest.fixture
def make_topic(client: Client) -> Callable[..., str]:
    """Makes a topic that no other test has: `make_topic(partitions=3)`. Records may be as old as a test likes."""

    def make(partitions: int = 1, *, stem: str = "topic", **configs: str) -> str:
        name = unique(stem)
        settings = {"retention.ms": "-1", **{key.replace("_", "."): value for key, value in configs.items()}}
        client.create_topic(name, partitions=partitions, configs=settings)
        return name

    return make
