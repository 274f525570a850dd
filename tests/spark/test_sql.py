"""`tidelog sql`, as a command of its own process, and topics as views."""

import json
import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from tests.spark.topics import fill, numbered
from tests.support.brokers import BrokerProcess
from tidelog.client import Client
from tidelog.spark.views import register_topics

pytestmark = pytest.mark.slow
MakeTopic = Callable[..., str]


def sql(broker: BrokerProcess, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TIDELOG_BOOTSTRAP": broker.bootstrap}
    command = [sys.executable, "-m", "tidelog", "sql", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=110, check=False)


def test_topics_are_tables_by_their_names(
    spark: SparkSession, broker: BrokerProcess, client: Client, make_topic: MakeTopic
) -> None:
    topic = make_topic(stem="with.dots-and-dashes", retention_ms="-1")
    fill(client, topic, numbered("v", 3))
    assert register_topics(spark, broker.bootstrap, [topic]) == [topic]
    assert spark.sql(f"SELECT key, value, offset FROM `{topic}` ORDER BY offset DESC LIMIT 1").collect() == [
        ("key", "v2", 2)
    ]
    assert topic in register_topics(spark, broker.bootstrap)


def test_a_question_is_answered_quietly(broker: BrokerProcess, client: Client, make_topic: MakeTopic) -> None:
    topic = make_topic(stem="orders", retention_ms="-1")
    fill(client, topic, ['{"id": 1, "amount": 2.5}', '{"id": 2, "amount": 4.0}', "broken"])
    query = f"SELECT count(*) n, sum(value.amount) total, count(_corrupt) bad FROM `{topic}`"
    told = sql(broker, query, "--schema", f"{topic}=id bigint, amount double", "--json")
    assert (told.returncode, told.stderr) == (0, "")
    assert [json.loads(line) for line in told.stdout.splitlines()] == [
        {"type": "row", "n": 3, "total": 6.5, "bad": 1}
    ]


def test_a_question_that_cannot_be_answered(broker: BrokerProcess) -> None:
    told = sql(broker, "SELECT * FROM nowhere_at_all")
    assert told.returncode == 1
    assert "nowhere_at_all" in told.stderr
    assert "the query names no existing topic; list them with: tidelog topic list" in told.stderr
    assert len(told.stderr.splitlines()) == 1, "no trace of Java"
