"""Topics as the tests read and write them through Spark."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, Row, SparkSession

from tidelog.client import Client
from tidelog.records.record import BatchBuilder
from tidelog.testing.broker_process import BrokerProcess


def options(broker: BrokerProcess, given: dict[str, object]) -> dict[str, str]:
    """`bootstrap_servers` is there; names with dots are written with them in a dict."""
    told = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items()}
    return {"kafka.bootstrap.servers": broker.bootstrap, **told}


def load(spark: SparkSession, broker: BrokerProcess, schema: str | None = None, /, **given: object) -> DataFrame:
    reader = spark.read.format("tidelog").options(**options(broker, given))
    return (reader.schema(schema) if schema else reader).load()


def stream(spark: SparkSession, broker: BrokerProcess, schema: str | None = None, /, **given: object) -> DataFrame:
    reader = spark.readStream.format("tidelog").options(**options(broker, given))
    return (reader.schema(schema) if schema else reader).load()


def save(rows: DataFrame, broker: BrokerProcess, /, **given: object) -> None:
    rows.write.format("tidelog").mode("append").options(**options(broker, given)).save()


def fill(client: Client, topic: str, values: Sequence[str], *, partition: int = 0, timestamp: int = 1000) -> None:
    """One batch; timestamps count on from `timestamp`."""
    builder = BatchBuilder()
    for number, value in enumerate(values):
        builder.append(value.encode(), key=b"key", timestamp=timestamp + number)
    client.produce_batches(topic, partition, builder.build())


def texts(rows: DataFrame) -> list[str]:
    """Values in the order of topic, partition and offset."""
    found: list[Row] = rows.selectExpr("topic", "partition", "offset", "cast(value as string) v").collect()
    return [row.v for row in sorted(found, key=lambda row: (row.topic, row.partition, row.offset))]


def numbered(stem: str, count: int, first: int = 0) -> list[str]:
    return [f"{stem}{number}" for number in range(first, first + count)]
