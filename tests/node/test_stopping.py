"""A broker that is told to stop answers those who wait at once, and is gone; groups are afterwards as they were."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.gateways.raw import RawClient, fetch_request
from tests.support.brokers import BrokerProcess, eventually
from tidelog.storage.table import is_installed
from tidelog.wire.generated.api_versions import ApiVersionsRequest
from tidelog.wire.generated.consumer_group_describe import ConsumerGroupDescribeRequest
from tidelog.wire.generated.describe_groups import DescribeGroupsRequest
from tidelog.wire.generated.heartbeat import HeartbeatRequest
from tidelog.wire.generated.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from tidelog.wire.generated.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tidelog.wire.generated.table_get import TableGetKey, TableGetPartition, TableGetRequest
from tidelog.wire.primitives import Struct

LONG_MS = 60_000  # longer than a broker may take to stop
COORDINATOR_NOT_AVAILABLE, REQUEST_TIMED_OUT = 15, 7


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path, {"kafka.group.consumer.session.timeout.ms": "20000"}) as process:
        yield process


@pytest.fixture
def clients(broker: BrokerProcess) -> Iterator[list[RawClient]]:
    connected = [RawClient(broker.port) for _ in range(5)]
    yield connected
    for client in connected:
        client.close()


def begin(client: RawClient, api: str, version: int, message: Struct) -> None:
    """When it returns, the broker has the request: it came in one packet with one that was answered."""
    packet = client.framed("ApiVersions", 0, ApiVersionsRequest()) + client.framed(api, version, message)
    client.socket.sendall(packet)
    assert client.reply().api_keys


def joining(group: str, member: str = "") -> JoinGroupRequest:
    protocols = [JoinGroupRequestProtocol("range", b"\x00\x01\x00\x00\x00\x00\xff\xff\xff\xff")]
    return JoinGroupRequest(group, LONG_MS, LONG_MS, member, protocol_type="consumer", protocols=protocols)


def join(client: RawClient, group: str, member: str = "") -> JoinGroupResponse:
    joined: JoinGroupResponse = client.ask("JoinGroup", 3, joining(group, member))
    assert joined.error_code == 0
    return joined


def sync(client: RawClient, group: str, joined: JoinGroupResponse) -> None:
    shares = [SyncGroupRequestAssignment(member.member_id, b"x") for member in joined.members]
    message = SyncGroupRequest(group, joined.generation_id, joined.member_id, assignments=shares)
    assert client.ask("SyncGroup", 2, message).error_code == 0


def test_waiting_requests_are_answered_at_once_when_the_broker_stops(
    broker: BrokerProcess, clients: list[RawClient]
) -> None:
    one, two, three, fetching, idle = clients
    idle.create_topic("t")
    stable = join(idle, "stable")
    sync(idle, "stable", stable)
    # a newcomer waits for the member that there is
    sync(one, "joining", join(one, "joining"))
    begin(two, "JoinGroup", 3, joining("joining"))
    # a follower waits for its leader's assignment
    leader = join(one, "syncing")
    three.send("JoinGroup", 3, joining("syncing"))
    eventually(lambda: state_of(idle, "syncing"), until=lambda state: state == "PreparingRebalance")
    join(one, "syncing", leader.member_id)
    follower = three.reply()
    begin(three, "SyncGroup", 2, SyncGroupRequest("syncing", follower.generation_id, follower.member_id))
    begin(fetching, "Fetch", 12, fetch_request("t", {0: 0}, max_wait_ms=LONG_MS, min_bytes=1))

    broker.stop()
    assert two.reply().error_code == COORDINATOR_NOT_AVAILABLE
    assert three.reply().error_code == COORDINATOR_NOT_AVAILABLE
    fetched = fetching.reply()
    assert (fetched.error_code, fetched.responses[0].partitions[0].error_code) == (0, 0)

    broker.start()
    with RawClient(broker.port) as again:
        heartbeat = HeartbeatRequest("stable", stable.generation_id, stable.member_id)
        assert again.ask("Heartbeat", 3, heartbeat).error_code == 0
        assert state_of(again, "stable") == "Stable"


def test_a_fetch_returns_what_there_is_when_the_broker_stops(broker: BrokerProcess, clients: list[RawClient]) -> None:
    fetching, nothing, writing, *_ = clients
    writing.create_topic("t")
    begin(fetching, "Fetch", 12, fetch_request("t", {0: 0}, max_wait_ms=LONG_MS, min_bytes=1 << 20))
    begin(nothing, "Fetch", 12, fetch_request("t", {}, max_wait_ms=LONG_MS, min_bytes=1))
    assert writing.produce("t", b"a little").error_code == 0
    broker.stop()
    assert fetching.reply().responses[0].partitions[0].records
    assert nothing.reply().error_code == 0


@pytest.mark.skipif(not is_installed(), reason="needs the extra: table")
def test_who_waits_for_a_table_is_told_when_the_broker_stops(broker: BrokerProcess, clients: list[RawClient]) -> None:
    client = clients[0]
    client.create_topic("t", tidelog_table="true")
    begin(client, "TableGet", 0, TableGetRequest("t", 10, LONG_MS, [TableGetPartition(0, [TableGetKey(b"k")])]))
    broker.stop()
    result = client.reply().partitions[0]
    assert result.error_code == REQUEST_TIMED_OUT
    assert "stopped" in result.error_message


class Member:
    """A real consumer that polls in a thread, and counts how often it is given partitions."""

    def __init__(self, bootstrap: str, group: str, protocol: str) -> None:
        config: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 20_000,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
        }
        if protocol == "classic":
            config["session.timeout.ms"] = 20_000
        self.assignments = 0
        self.values: list[bytes | None] = []
        self._leave = threading.Event()
        self._consumer = Consumer(config)
        self._consumer.subscribe(["t"], on_assign=self._assigned)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _assigned(self, _consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        self.assignments += 1

    def _run(self) -> None:
        while not self._leave.is_set():
            message = self._consumer.poll(0.05)
            if message is not None and message.error() is None:
                self.values.append(message.value())
        self._consumer.close()

    def leave(self) -> None:
        self._leave.set()
        self._thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_idle_consumers_hold_nothing_up_and_carry_on_without_a_rebalance(
    broker: BrokerProcess, protocol: str
) -> None:
    with RawClient(broker.port) as client:
        client.create_topic("t", 2)
    members = [Member(broker.bootstrap, "g", protocol) for _ in range(2)]
    try:
        eventually(lambda: epoch_and_state(broker, protocol)[1], until=lambda state: state == "Stable")
        eventually(lambda: [member.assignments for member in members], until=all)
        with RawClient(broker.port) as client:
            for partition in range(2):
                assert client.produce("t", b"before", partition=partition).error_code == 0
        eventually(lambda: sum(len(member.values) for member in members), until=lambda seen: seen == 2)
        assignments = [member.assignments for member in members]
        before = epoch_and_state(broker, protocol)
        broker.stop()
        broker.start()
        with RawClient(broker.port) as client:
            for partition in range(2):
                assert client.produce("t", b"after", partition=partition).error_code == 0
        eventually(lambda: sum(member.values.count(b"after") for member in members), until=lambda seen: seen >= 2)
        assert [member.assignments for member in members] == assignments
        assert epoch_and_state(broker, protocol) == before
    finally:
        for member in members:
            member.leave()


def state_of(client: RawClient, group: str) -> str:
    state: str = client.ask("DescribeGroups", 4, DescribeGroupsRequest([group])).groups[0].group_state
    return state


def epoch_and_state(broker: BrokerProcess, protocol: str) -> tuple[object, str]:
    """Of group g: the epoch of the consumer protocol, or the ids of the members of the classic one."""
    with RawClient(broker.port) as client:
        if protocol == "consumer":
            group = client.ask("ConsumerGroupDescribe", 0, ConsumerGroupDescribeRequest(["g"])).groups[0]
            return group.group_epoch, group.group_state
        group = client.ask("DescribeGroups", 4, DescribeGroupsRequest(["g"])).groups[0]
        return {member.member_id for member in group.members}, group.group_state
