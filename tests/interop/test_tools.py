"""Kafka's own command line tools against a broker: what each says, and whether it takes that for a success.

The expectations are what Kafka 4.2 itself answers, but for services that Tidelog does not have.
"""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.peers.maven import Artifact, Repository, Unresolved, download, from_central
from tests.gateways.raw import RawClient
from tests.interop.conftest import CACHE, tool
from tests.support.brokers import BrokerProcess, unique

VERSION = "4.2.0"
TOOLS = "org.apache.kafka.tools."
CONFIGS = "kafka.admin.ConfigCommand"
SECONDS = 120.0


@pytest.fixture(scope="session")
def jars() -> str:
    directory = CACHE / f"kafka-tools-{VERSION}"
    complete = directory / "complete"
    if not complete.exists():
        repository = Repository(from_central)
        group = "org.apache.kafka"
        wanted = [Artifact(group, "kafka-tools", VERSION), Artifact(group, "kafka_2.13", VERSION)]
        try:
            download(repository.resolve(wanted), str(directory))
        except (OSError, Unresolved) as error:
            pytest.skip(f"Kafka's tools cannot be had from Maven Central: {error}")
        complete.touch()
    return str(directory)


class Ran(NamedTuple):
    code: int
    printed: str


Run = Callable[..., Ran]


@pytest.fixture
def run(broker: BrokerProcess, jars: str) -> Run:
    def run(main: str, *arguments: str) -> Ran:
        first, rest = (arguments[:1], arguments[1:]) if main.endswith("ClusterTool") else ((), arguments)
        java = [tool("java"), "-Xmx256M", "-XX:TieredStopAtLevel=1", "-cp", os.path.join(jars, "*"), main]
        command = [*java, *first, "--bootstrap-server", broker.bootstrap, *rest]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        return Ran(done.returncode, done.stdout + done.stderr)

    return run


@pytest.fixture
def topic(broker: BrokerProcess) -> str:
    name = unique("topic")
    with RawClient(broker.port) as client:
        client.create_topic(name, 2)
    return name


NOTHING = r"\A\s*\Z"
SECURITY_DISABLED = "SecurityDisabledException"
NO_TOKENS = "Delegation Token requests are not allowed on PLAINTEXT"

# Main class, arguments, exit code, and a pattern of what is printed. TOPIC is a topic with two partitions.
TABLE: list[tuple[str, str, int, str]] = [
    ("TopicCommand", "--list", 0, "TOPIC"),
    ("TopicCommand", "--describe --topic TOPIC", 0, r"Partition: 1\s+Leader: 0\s+Replicas: 0\s+Isr: 0"),
    ("TopicCommand", "--describe --topic nobody", 1, "does not exist"),
    ("TopicCommand", "--create --topic TOPIC-2 --partitions 3 --config retention.ms=5", 0, "Created topic TOPIC-2."),
    ("TopicCommand", "--alter --topic TOPIC --partitions 5", 0, NOTHING),
    ("TopicCommand", "--delete --topic TOPIC", 0, NOTHING),
    ("TopicCommand", "--create --topic __consumer_offsets", 1, "is reserved for Kafka's own use"),
    (CONFIGS, "--describe --entity-type brokers", 0, "Default configs for brokers in the cluster are:"),
    (
        CONFIGS,
        "--describe --all --entity-type brokers --entity-name 0",
        0,
        "advertised.listeners=PLAINTEXT://127.0.0.1:",
    ),
    (
        CONFIGS,
        "--describe --all --entity-type brokers --entity-name 0",
        0,
        "ssl.keystore.password=null sensitive=true",
    ),
    (CONFIGS, "--describe --entity-type topics --entity-name TOPIC", 0, "Dynamic configs for topic TOPIC are:"),
    (CONFIGS, "--describe --all --entity-type topics --entity-name TOPIC", 0, "retention.ms=604800000"),
    (
        CONFIGS,
        "--describe --entity-type broker-loggers --entity-name 0",
        0,
        "Dynamic configs for broker-logger 0 are:",
    ),
    (CONFIGS, "--describe --entity-type users", 0, NOTHING),
    (CONFIGS, "--describe --entity-type users --entity-name nobody", 0, NOTHING),
    (CONFIGS, "--describe --entity-type clients", 0, NOTHING),
    (CONFIGS, "--describe --entity-type ips", 0, NOTHING),
    (CONFIGS, "--describe --entity-type groups", 0, r"\A"),
    (CONFIGS, "--describe --entity-type client-metrics", 0, NOTHING),
    (
        CONFIGS,
        "--alter --entity-type brokers --entity-name 0 --add-config num.partitions=3",
        1,
        "InvalidRequestException",
    ),
    (
        CONFIGS,
        "--alter --entity-type users --entity-name nobody --add-config SCRAM-SHA-256=[password=x]",
        1,
        "UnsupportedSaslMechanismException",
    ),
    ("consumer.group.ConsumerGroupCommand", "--list", 0, r"\A"),
    ("consumer.group.ConsumerGroupCommand", "--describe --all-groups", 0, r"\A"),
    ("consumer.group.ConsumerGroupCommand", "--describe --group nobody", 0, "GroupIdNotFoundException"),
    (
        "consumer.group.ConsumerGroupCommand",
        "--group TOPIC-group --reset-offsets --to-earliest --topic TOPIC --execute",
        0,
        r"TOPIC-group\s+TOPIC\s+1\s+0",
    ),
    ("GroupsCommand", "--list", 0, "GROUP"),
    ("consumer.group.ShareGroupCommand", "--list", 0, NOTHING),
    ("consumer.group.ShareGroupCommand", "--describe --group nobody", 0, "share groups are not supported"),
    ("streams.StreamsGroupCommand", "--list", 0, NOTHING),
    ("streams.StreamsGroupCommand", "--describe --group nobody", 1, "streams groups are not supported"),
    ("FeatureCommand", "describe", 0, r"group.version\s.*FinalizedVersionLevel: 1\s"),
    ("FeatureCommand", "describe", 0, r"metadata.version\s.*FinalizedVersionLevel: 4.2-IV1\s"),
    ("FeatureCommand", "describe", 0, r"share.version\s.*FinalizedVersionLevel: 0\s"),
    ("FeatureCommand", "describe", 0, r"transaction.version\s.*FinalizedVersionLevel: 2\s"),
    ("FeatureCommand", "upgrade --feature transaction.version=2", 0, "transaction.version was upgraded to 2"),
    ("FeatureCommand", "downgrade --feature transaction.version=1", 1, "which cannot be changed"),
    ("AclCommand", "--list", 1, SECURITY_DISABLED),
    ("AclCommand", "--add --allow-principal User:a --operation Read --topic TOPIC", 1, SECURITY_DISABLED),
    ("LogDirsCommand", "--describe", 0, r'"partition":"TOPIC-1","size":0'),
    ("MetadataQuorumCommand", "describe --status", 0, r"LeaderId:\s+0\n"),
    ("MetadataQuorumCommand", "describe --replication", 0, r"0\s.*\sLeader"),
    ("reassign.ReassignPartitionsCommand", "--list", 0, "No partition reassignments found."),
    ("TransactionsCommand", "list", 0, "TransactionalId"),
    ("TransactionsCommand", "find-hanging --broker-id 0", 0, "ProducerId"),
    ("TransactionsCommand", "describe-producers --topic TOPIC --partition 0", 0, "ProducerId"),
    ("TransactionsCommand", "describe --transactional-id nobody", 1, "could not be found"),
    ("BrokerApiVersionsCommand", "", 0, r"DescribeQuorum\(55\): 0 to 2 \[usable: 2\]"),
    ("ClusterTool", "cluster-id", 0, r"Cluster ID: \S{22}\n"),
    ("ClusterTool", "list-endpoints", 0, r"0\s+127.0.0.1\s+\d+"),
    ("ClusterTool", "unregister --id 77", 1, "BrokerIdNotRegisteredException"),
    ("GetOffsetShell", "--topic TOPIC", 0, "TOPIC:0:0\nTOPIC:1:0"),
    ("GetOffsetShell", "--topic TOPIC --time -6", 0, NOTHING),
    ("LeaderElectionCommand", "--election-type preferred --all-topic-partitions", 0, NOTHING),
    (
        "LeaderElectionCommand",
        "--election-type unclean --topic TOPIC --partition 0",
        0,
        "Valid replica already elected",
    ),
    ("ClientMetricsCommand", "--list", 0, NOTHING),
    ("ClientMetricsCommand", "--describe", 0, NOTHING),
    ("DelegationTokenCommand", "--describe --command-config /dev/null", 1, NO_TOKENS),
]


def _without_logging(printed: str) -> str:
    """Warnings that there is nothing to log with."""
    return re.sub(r"(?m)^(SLF4J|ERROR StatusLogger|\S+ main (ERROR|WARN)).*\n?", "", printed)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("main", "arguments", "code", "pattern"),
    TABLE,
    ids=[f"{row[0].rpartition('.')[2]} {row[1][:40]}" for row in TABLE],
)
def test_a_tool(run: Run, topic: str, main: str, arguments: str, code: int, pattern: str) -> None:
    main = main if main == CONFIGS else TOOLS + main
    ran = run(main, *arguments.replace("TOPIC", topic).split())
    printed = _without_logging(ran.printed)
    assert ran.code == code, printed
    assert re.search(pattern.replace("TOPIC", topic), printed), printed
    assert "UnsupportedVersionException" not in printed, "the broker lacks what the tool asks for"


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("entity", ["--entity-default", "--entity-name 0"])
def test_configs_of_brokers_are_set_shown_and_deleted(run: Run, entity: str) -> None:
    which = ("--entity-type", "brokers", *entity.split())
    names = ("num.io.threads", "log.retention.ms", "leader.replication.throttled.rate")
    added = run(CONFIGS, "--alter", *which, "--add-config", ",".join(f"{name}=1000000" for name in names))
    assert (added.code, "Completed updating" in added.printed) == (0, True), added.printed
    shown = run(CONFIGS, "--describe", *which).printed
    assert all(f"{name}=1000000" in shown for name in names), shown
    deleted = run(CONFIGS, "--alter", *which, "--delete-config", ",".join(names))
    assert deleted.code == 0, deleted.printed
    left = run(CONFIGS, "--describe", *which).printed
    assert not any(f"{name}=1000000" in left for name in names), left


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_reassignment_is_planned_executed_verified_and_cancelled(run: Run, topic: str, tmp_path: Path) -> None:
    moved, plan = tmp_path / "topics.json", tmp_path / "plan.json"
    moved.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    partitions = [{"topic": topic, "partition": index, "replicas": [0], "log_dirs": ["any"]} for index in (0, 1)]
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    main = f"{TOOLS}reassign.ReassignPartitionsCommand"
    for arguments, said in (
        (
            ["--generate", "--topics-to-move-json-file", str(moved), "--broker-list", "0"],
            "Proposed partition reassignment",
        ),
        (["--execute", "--reassignment-json-file", str(plan), "--throttle", "1000"], "Successfully started"),
        (["--verify", "--reassignment-json-file", str(plan)], f"Reassignment of partition {topic}-1 is completed."),
        (
            ["--cancel", "--reassignment-json-file", str(plan)],
            "None of the specified partition reassignments are active.",
        ),
    ):
        ran = run(main, *arguments)
        assert (ran.code, said in ran.printed) == (0, True), ran.printed
    left = run(CONFIGS, "--describe", "--entity-type", "brokers", "--entity-name", "0")
    assert "throttled" not in left.printed


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_records_are_deleted_but_not_of_a_topic_that_is_only_compacted(run: Run, topic: str, tmp_path: Path) -> None:
    wanted = tmp_path / "offsets.json"
    wanted.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 0}]}))
    deleted = run(f"{TOOLS}DeleteRecordsCommand", "--offset-json-file", str(wanted))
    assert "low_watermark: 0" in deleted.printed
    policy = ("--alter", "--entity-type", "topics", "--entity-name", topic, "--add-config", "cleanup.policy=compact")
    assert run(CONFIGS, *policy).code == 0
    refused = run(f"{TOOLS}DeleteRecordsCommand", "--offset-json-file", str(wanted))
    assert "PolicyViolationException" in refused.printed
