"""Spark's tasks read a cluster's topics from its object store; the long tests, only with TIDELOG_TEST_CLUSTER=1
(`make test-cluster`). The others: tests/spark/test_source_objects.py."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="needs the extra `spark`")

from tests.spark.test_source_objects import (
    BROKER,
    NARROW,
    OBJECT,
    SECONDS,
    filled,
    objects_of,
    process,
    rows,
    task_rows,
)
from tests.spark.topics import options
from tests.support.brokers import eventually, unique
from tests.support.clusters import cluster_of
from tests.support.object_server import shared_server
from tests.support.spark_cluster import standalone
from tidelog.client.admin.log_dirs import RecordsPiece
from tidelog.model import TopicPartition
from tidelog.records.batch import CRC_AT, CRC_START, iterate
from tidelog.records.crc import crc32c
from tidelog.spark.source import TidelogDataSource
from tidelog.storage.shared import direct

__all__ = ["process"]
pytestmark = pytest.mark.skipif("TIDELOG_TEST_CLUSTER" not in os.environ, reason="make test-cluster")
MERGING = {"cluster.merge-fan-in": "4", "cluster.merge-interval-ms": "100"}
NOT_MERGING = {"cluster.merge-interval-ms": "600000"}
COUNTED = """
import json, sys
from tidelog.spark.session import spark_session
master, bootstrap, topic = sys.argv[1:]
spark = spark_session("counting", master=master)
rows = spark.read.format("tidelog").option("bootstrap.servers", bootstrap).option("subscribe", topic).load()
counts = rows.selectExpr("CAST(value AS STRING) AS value").groupBy("value").count().collect()
print(json.dumps([list(row) for row in counts]))
"""
COLLECTING = {"cluster.garbage-grace-ms": "1000", "cluster.garbage-interval-ms": "1000"}


def test_objects_that_are_merged_and_removed_while_a_task_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("REQUEST_BYTES", "_STRETCH_BYTES"):
        monkeypatch.setattr(direct, name, 100)
    monkeypatch.setattr(direct, "REQUESTS_AT_ONCE", 1)
    with cluster_of(1, tmp_path, {**MERGING, **COLLECTING}) as cluster, cluster.client() as client:
        [broker] = cluster.brokers
        topic = unique("merged")
        client.create_topic(topic, partitions=1)
        place, topic_id = TopicPartition(topic, 0), client.topic(topic).topic_id
        for number in range(40):
            client.produce(topic, f"value {number}")
        told = options(broker, {"subscribe": topic, "read": "files"})
        reader = TidelogDataSource(told).reader(NARROW)
        [task] = reader.partitions()
        reading = task_rows(reader, task)
        before = client.locate_records(place, 0, 40, topic_id=topic_id).pieces
        found = [next(reading)]

        def are_gone() -> bool:
            client.produce(topic, "more, which is merged with what there is")
            return not any((objects_of(broker) / piece.key).exists() for piece in before)

        eventually(are_gone, within=SECONDS, every=0.01)
        found += reading
        assert [row["offset"] for row in found] == list(range(40))
        assert not caplog.records


def test_rows_come_from_s3_if_the_credentials_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server = shared_server()
    for name, value in server.options.items():
        monkeypatch.setenv(f"AWS_{name.upper()}".replace("AWS_ENDPOINT", "AWS_ENDPOINT_URL"), value)
    with cluster_of(1, tmp_path, storage=server.new_url()) as cluster, cluster.client() as client:
        [broker] = cluster.brokers
        topic = unique("s3")
        client.create_topic(topic, partitions=1, configs={"retention.ms": "-1"})
        filled(client, topic)
        given = {"subscribe": topic, "isolation": "read_committed"}
        expected = rows(broker, read="broker", **given)
        fetched: list[Any] = []
        begin = direct._ObjectReader.begin_to_read

        def spied(reader: Any, request: Any) -> Any:
            fetched.append(request)
            return begin(reader, request)

        monkeypatch.setattr(direct._ObjectReader, "begin_to_read", spied)
        assert rows(broker, read="files", **given) == expected
        assert fetched[-1].piece.last_offset + 1 == client.partitions(topic)[0].end_offset
        assert not caplog.records
        for name, value in (
            ("AWS_SECRET_ACCESS_KEY", "wrong"),
            ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
        ):
            monkeypatch.setenv(name, value)
            monkeypatch.setattr(direct, "_readers", {})
            monkeypatch.setattr(direct, "_left_alone", {})
            assert rows(broker, read="files", minPartitions=3, **given) == expected
            [said] = caplog.records
            assert said.levelno == logging.WARNING
            assert "access denied" in said.getMessage() or "no connection" in said.getMessage()
            assert "wrong" not in said.getMessage()
            caplog.clear()


@pytest.mark.timeout(600)
def test_executors_of_a_spark_cluster_read_from_the_store(tmp_path: Path) -> None:
    with (
        standalone(tmp_path / "spark") as master,
        cluster_of(1, tmp_path / "cluster", NOT_MERGING) as cluster,
        cluster.client() as client,
    ):
        topic = unique("direct")
        client.create_topic(topic, partitions=2)
        for number in range(100):
            client.produce(topic, BROKER, partition=number % 2)
        cluster.brokers[0].restart()  # it has nothing in memory
        cluster.wait_for_leaders(topic)
        assert {record.value for record in client.consume(topic, follow=False)} == {BROKER.encode()}
        topic_id = client.topic(topic).topic_id
        for partition in (0, 1):
            located = client.locate_records(TopicPartition(topic, partition), 0, 50, topic_id=topic_id)
            assert located.end_offset == 50
            for piece in located.pieces:
                _mark(objects_of(cluster.brokers[0]) / piece.key, piece)
        # What the broker tells comes from its memory: objects never change.
        assert {record.value for record in client.consume(topic, follow=False)} == {BROKER.encode()}
        asked = [sys.executable, "-c", COUNTED, master, cluster.bootstrap_servers, topic]
        ran = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert ran.returncode == 0, ran.stderr
        assert json.loads(ran.stdout.splitlines()[-1]) == [[OBJECT, 100]], ran.stderr


def _mark(path: Path, piece: RecordsPiece) -> None:
    """Exchange the values in an object for others, with the right CRCs."""
    content = bytearray(path.read_bytes())
    end = piece.position + piece.size
    batches = bytearray(content[piece.position : end].replace(BROKER.encode(), OBJECT.encode()))
    for batch in list(iterate(bytes(batches), verify=False)):
        crc = crc32c(batch.view[CRC_START:])
        batches[batch.position + CRC_AT : batch.position + CRC_START] = crc.to_bytes(4, "big")
    content[piece.position : end] = batches
    path.write_bytes(content)
