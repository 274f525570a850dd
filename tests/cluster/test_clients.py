"""Kafka's clients over a cluster of three brokers: the tests of a single broker run again, unchanged. Those of groups
and idempotence, which take minutes, only with TIDELOG_TEST_CLUSTER=1 (`make test-cluster`)."""

import os
from collections.abc import Iterator

import pytest

from tests.e2e.conftest import client, make_topic  # noqa: F401
from tests.e2e.test_records import *  # noqa: F403
from tests.e2e.test_transactions import *  # noqa: F403
from tests.support.brokers import BrokerProcess
from tests.support.clusters import ClusterAsBroker

if os.environ.get("TIDELOG_TEST_CLUSTER"):
    from tests.e2e.test_groups import *  # noqa: F403
    from tests.e2e.test_idempotence import *  # noqa: F403

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with ClusterAsBroker(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster
        cluster.stop()
        assert "Traceback" not in cluster.logs, cluster.logs


@pytest.fixture
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with ClusterAsBroker(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster
        assert "Traceback" not in cluster.logs, cluster.logs
