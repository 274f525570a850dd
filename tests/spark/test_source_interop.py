"""Spark's own Kafka connector against our broker, both ways. Opt-in: TIDELOG_INTEROP=1, and Maven must be reachable.

It runs in a process of its own, since its jars must be there when the JVM starts.
"""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.support.brokers import BrokerProcess
from tidelog.client import Client

MakeTopic = Callable[..., str]

PROGRAM = """
import sys
from benchmarks.spark import connector_jars
from tidelog.spark.session import spark_session

bootstrap, theirs, ours = sys.argv[1:]
jars = connector_jars()
assert jars, "Maven cannot be reached"
spark = spark_session("interop", master="local[2]", conf={"spark.jars": ",".join(jars)})
at = {"kafka.bootstrap.servers": bootstrap}
rows = spark.range(5000).selectExpr("concat('key ', id) key", "concat('value ', id) value")
rows.write.format("kafka").options(**at, topic=theirs).save()
rows.write.format("tidelog").mode("append").options(**at, topic=ours).save()


def table(form, topic):
    read = spark.read.format(form).options(**at, subscribe=topic, includeHeaders="true").load()
    return read


for topic in (theirs, ours):
    one, other = table("kafka", topic), table("tidelog", topic)
    assert one.schema == other.schema, (one.schema, other.schema)
    assert one.count() == other.count() == 5000
    assert one.exceptAll(other).count() == 0
places = [table("tidelog", topic).selectExpr("key", "value", "partition") for topic in (theirs, ours)]
assert places[0].exceptAll(places[1]).count() == 0, "keys go to the same partitions"
streamed = (
    spark.readStream.format("kafka").options(**at, subscribe=theirs, startingOffsets="earliest").load()
    .selectExpr("key", "value")
    .writeStream.format("tidelog").options(**at, topic=ours)
    .option("checkpointLocation", sys.argv[0] + ".checkpoint").trigger(availableNow=True).start()
)
streamed.awaitTermination()
assert table("kafka", ours).count() == 10000
print("ok")
spark.stop()
"""


@pytest.mark.slow
@pytest.mark.skipif(
    os.environ.get("TIDELOG_INTEROP") != "1", reason="set TIDELOG_INTEROP=1 to fetch Spark's connector"
)
@pytest.mark.timeout(300)
def test_spark_s_kafka_connector_and_ours_see_the_same(
    broker: BrokerProcess, client: Client, make_topic: MakeTopic, tmp_path: "os.PathLike[str]"
) -> None:
    theirs, ours = make_topic(partitions=3), make_topic(partitions=3)
    program = os.path.join(tmp_path, "interop.py")
    with open(program, "w") as file:
        file.write(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])}
    told = subprocess.run(
        [sys.executable, program, broker.bootstrap, theirs, ours],
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert told.stdout.strip().endswith("ok"), told.stdout + told.stderr[-4000:]
