"""Configs of groups: set over the wire, told to members with their heartbeats, kept over restarts."""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.clients.base import SECONDS
from tests.e2e.clients.confluent import common
from tests.e2e.clients.confluent_admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from tests.gateways.raw import RawClient
from tests.support.brokers import BrokerProcess, eventually, unique
from tests.support.engines import Engine, broker_process
from tidelog.wire.generated.alter_configs import (
    AlterableConfig as ReplacedConfig,
)
from tidelog.wire.generated.alter_configs import (
    AlterConfigsRequest,
)
from tidelog.wire.generated.alter_configs import (
    AlterConfigsResource as ReplacedResource,
)
from tidelog.wire.generated.consumer_group_describe import ConsumerGroupDescribeRequest
from tidelog.wire.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from tidelog.wire.generated.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tidelog.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
)
from tidelog.wire.generated.list_config_resources import ListConfigResourcesRequest

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
SET, DELETE = 0, 1
INVALID_CONFIG, INVALID_REQUEST, UNKNOWN_MEMBER = 40, 42, 25
STATIC_BROKER, OF_GROUP = 4, 8
BOUNDS = {
    "kafka.group.consumer.session.timeout.ms": "30000",
    "kafka.group.consumer.min.session.timeout.ms": "500",
    "kafka.group.consumer.max.session.timeout.ms": "40000",
    "kafka.group.consumer.heartbeat.interval.ms": "1000",
    "kafka.group.consumer.min.heartbeat.interval.ms": "50",
    "kafka.group.consumer.max.heartbeat.interval.ms": "10000",
}


@pytest.fixture(scope="module")
def broker(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with broker_process(engine, tmp_path_factory.mktemp("broker"), BOUNDS) as process:
        yield process
        assert "Traceback" not in process.log, process.log


@pytest.fixture
def client(broker: BrokerProcess) -> Iterator[RawClient]:
    with RawClient(broker.port) as connected:
        yield connected


@pytest.fixture
def group() -> str:
    return unique("group")


def alter(
    client: RawClient, group: str, changes: dict[str, str | None], *, kind: int = GROUP, validate_only: bool = False
) -> AlterConfigsResourceResponse:
    configs = [AlterableConfig(name, DELETE if text is None else SET, text) for name, text in changes.items()]
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(kind, group, configs)], validate_only)
    answer: AlterConfigsResourceResponse = client.ask("IncrementalAlterConfigs", 1, request).responses[0]
    return answer


def described(client: RawClient, group: str) -> dict[str, tuple[str, int]]:
    request = DescribeConfigsRequest([DescribeConfigsResource(GROUP, group, None)])
    result = client.ask("DescribeConfigs", 4, request).results[0]
    assert result.error_code == 0, result
    return {config.name: (config.value, config.config_source) for config in result.configs}


def listed(client: RawClient, *kinds: int) -> list[str]:
    answer = client.ask("ListConfigResources", 1, ListConfigResourcesRequest(list(kinds)))
    assert answer.error_code == 0
    return [each.resource_name for each in answer.config_resources]


def heartbeat(client: RawClient, group: str, member: str, epoch: int = 0) -> ConsumerGroupHeartbeatResponse:
    joins = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["t"], "topic_partitions": []}
    request = ConsumerGroupHeartbeatRequest(group, member, epoch, **(joins if epoch == 0 else {}))  # type: ignore[arg-type]
    answer: ConsumerGroupHeartbeatResponse = client.ask("ConsumerGroupHeartbeat", 1, request)
    return answer


def members(client: RawClient, group: str) -> list[str]:
    answer = client.ask("ConsumerGroupDescribe", 0, ConsumerGroupDescribeRequest([group])).groups[0]
    return [member.member_id for member in answer.members]


def test_a_group_has_the_brokers_values_until_it_has_its_own(client: RawClient, group: str) -> None:
    usual = {HEARTBEAT: ("1000", STATIC_BROKER), SESSION: ("30000", STATIC_BROKER)}
    assert described(client, group) == usual
    assert alter(client, group, {HEARTBEAT: "300"}).error_code == 0
    assert described(client, group) == {**usual, HEARTBEAT: ("300", OF_GROUP)}
    assert group in listed(client, GROUP)
    assert group in listed(client)
    assert group not in listed(client, TOPIC, BROKER)
    assert alter(client, group, {HEARTBEAT: None}).error_code == 0
    assert described(client, group) == usual
    assert group not in listed(client, GROUP)


def test_synonyms_say_what_would_count_otherwise(client: RawClient, group: str) -> None:
    alter(client, group, {SESSION: "20000"})
    request = DescribeConfigsRequest([DescribeConfigsResource(GROUP, group, [SESSION])], include_synonyms=True)
    (config,) = client.ask("DescribeConfigs", 4, request).results[0].configs
    assert [(each.name, each.value, each.source) for each in config.synonyms] == [
        (SESSION, "20000", 8),
        ("group.consumer.session.timeout.ms", "30000", 4),
        ("group.consumer.session.timeout.ms", "45000", 5),
    ]


def test_replacing_all_configs_takes_back_what_is_not_named(client: RawClient, group: str) -> None:
    alter(client, group, {SESSION: "20000"})
    resource = ReplacedResource(GROUP, group, [ReplacedConfig(HEARTBEAT, "200")])
    assert client.ask("AlterConfigs", 2, AlterConfigsRequest([resource])).responses[0].error_code == 0
    assert described(client, group) == {HEARTBEAT: ("200", OF_GROUP), SESSION: ("30000", STATIC_BROKER)}


@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        ({SESSION: "499"}, INVALID_CONFIG, "from 500 to 40000"),
        ({SESSION: "40001"}, INVALID_CONFIG, "group.consumer.max.session.timeout.ms"),
        ({HEARTBEAT: "49"}, INVALID_CONFIG, "from 50 to 10000"),
        ({HEARTBEAT: "10001"}, INVALID_CONFIG, "group.consumer.max.heartbeat.interval.ms"),
        ({SESSION: "900"}, INVALID_CONFIG, "must be above consumer.heartbeat.interval.ms (1000)"),
        ({SESSION: "800", HEARTBEAT: "800"}, INVALID_CONFIG, "must be above"),
        ({SESSION: "soon"}, INVALID_CONFIG, "whole number"),
        ({SESSION: None, "retention.ms": "1"}, INVALID_CONFIG, "unknown group config"),
        ({"consumer.session.timeout": "9000"}, INVALID_CONFIG, f"did you mean {SESSION}?"),
        ({"group.consumer.session.timeout.ms": "9000"}, INVALID_CONFIG, f"did you mean {SESSION}?"),
        ({"share.session.timeout.ms": "45000"}, INVALID_CONFIG, "no share groups"),
        ({"streams.num.standby.replicas": "1"}, INVALID_CONFIG, "no streams groups"),
    ],
    ids=str,
)
def test_what_would_not_work_is_refused_and_changes_nothing(
    client: RawClient, group: str, changes: dict[str, str | None], code: int, said: str
) -> None:
    before = described(client, group)
    answer = alter(client, group, changes)
    assert answer.error_code == code
    assert said in (answer.error_message or "")
    assert described(client, group) == before


def test_a_group_needs_a_name(client: RawClient) -> None:
    assert alter(client, "", {SESSION: "20000"}).error_code == INVALID_REQUEST
    request = DescribeConfigsRequest([DescribeConfigsResource(GROUP, "", None)])
    assert client.ask("DescribeConfigs", 4, request).results[0].error_code == INVALID_REQUEST


def test_a_trial_changes_nothing(client: RawClient, group: str) -> None:
    assert alter(client, group, {SESSION: "20000"}, validate_only=True).error_code == 0
    assert alter(client, group, {SESSION: "1"}, validate_only=True).error_code == INVALID_CONFIG
    assert described(client, group)[SESSION] == ("30000", STATIC_BROKER)


def test_client_metrics_are_refused_since_nobody_would_take_them(client: RawClient) -> None:
    answer = alter(client, "metrics", {"interval.ms": "5000"}, kind=CLIENT_METRICS)
    assert (answer.error_code, "client metrics are not supported" in (answer.error_message or "")) == (
        INVALID_REQUEST,
        True,
    )
    request = DescribeConfigsRequest([DescribeConfigsResource(CLIENT_METRICS, "metrics", None)])
    answered = client.ask("DescribeConfigs", 4, request).results[0]
    assert (answered.error_code, answered.configs) == (0, [])
    assert listed(client, CLIENT_METRICS) == []
    assert client.ask("ListConfigResources", 0, ListConfigResourcesRequest()).config_resources == []


def test_confluents_admin_client_sets_and_shows_them(broker: BrokerProcess, group: str) -> None:
    admin = AdminClient(common(broker.bootstrap))
    entry = ConfigEntry(SESSION, "25000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
    (done,) = admin.incremental_alter_configs([resource]).values()
    done.result(SECONDS)
    (shown,) = admin.describe_configs([ConfigResource(ResourceType.GROUP, group)]).values()
    assert shown.result(SECONDS)[SESSION].value == "25000"


def test_members_learn_of_another_heartbeat_interval_with_their_next_heartbeat(client: RawClient, group: str) -> None:
    other = unique("other")
    epochs = {name: heartbeat(client, name, "m").member_epoch for name in (group, other)}

    def interval(name: str) -> int:
        return heartbeat(client, name, "m", epochs[name]).heartbeat_interval_ms

    for name in epochs:  # shorter for a while after somebody has joined
        eventually(partial(interval, name), until=(1000).__eq__, within=10)
    alter(client, group, {HEARTBEAT: "300"})
    assert (interval(group), interval(other)) == (300, 1000)
    alter(client, group, {HEARTBEAT: None})
    assert (interval(group), interval(other)) == (1000, 1000)


def test_a_shorter_session_counts_from_the_next_heartbeat_on(client: RawClient, group: str) -> None:
    epoch = heartbeat(client, group, "m").member_epoch
    alter(client, group, {SESSION: "600", HEARTBEAT: "100"})
    assert heartbeat(client, group, "m", epoch).error_code == 0
    began = time.monotonic()
    eventually(lambda: members(client, group), until=lambda left: not left, within=10)
    assert time.monotonic() - began > 0.4
    assert heartbeat(client, group, "m", epoch).error_code == UNKNOWN_MEMBER


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_configs_of_a_group_survive_a_restart_and_count_for_restored_members(
    engine: Engine, tmp_path: Path, how: str
) -> None:
    with broker_process(engine, tmp_path, BOUNDS, is_killed=True) as broker:
        with RawClient(broker.port) as client:
            alter(client, "g", {SESSION: "1500", HEARTBEAT: "200"})
            alter(client, "gone", {SESSION: "1500"})
            alter(client, "gone", {SESSION: None})
            epoch = heartbeat(client, "g", "m").member_epoch
        broker.stop() if how == "stopped" else broker.kill()
        broker.start()
        with RawClient(broker.port) as client:
            assert described(client, "g") == {HEARTBEAT: ("200", OF_GROUP), SESSION: ("1500", OF_GROUP)}
            assert listed(client, GROUP) == ["g"]
            assert heartbeat(client, "g", "m", epoch).heartbeat_interval_ms == 200
        broker.stop()
        broker.start()
        with RawClient(broker.port) as client:  # silent: the session that began with the restart is the group's own
            assert members(client, "g") == ["m"]
            eventually(lambda: members(client, "g"), until=lambda left: not left, within=10)


@pytest.mark.slow
def test_what_the_settings_no_longer_allow_is_ignored_with_a_warning(engine: Engine, tmp_path: Path) -> None:
    with broker_process(engine, tmp_path, BOUNDS, is_killed=True) as broker:
        with RawClient(broker.port) as client:
            alter(client, "g", {SESSION: "1500", HEARTBEAT: "200"})
        broker.stop()
        broker.settings["kafka.group.consumer.min.session.timeout.ms"] = "5000"
        broker.start()
        assert "the stored configs of a group are invalid and ignored" in broker.log
        with RawClient(broker.port) as client:
            assert described(client, "g")[SESSION] == ("30000", STATIC_BROKER)
            assert alter(client, "g", {SESSION: "6000"}).error_code == 0
