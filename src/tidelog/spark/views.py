"""Topics as temporary views, for SQL: `SELECT * FROM orders`."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from tidelog.spark.clients import connect_patiently

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SMALL_ROWS = 20_000
_SMALL_BYTES = 16 << 20


def register_topics(
    spark: "SparkSession",
    bootstrap_servers: str,
    topics: Iterable[str] | None = None,
    *,
    options: Mapping[str, str] | None = None,
    schemas: Mapping[str, str] | None = None,
) -> list[str]:
    """Make a temporary view of each topic, named like the topic; `topics` defaults to all. Returns the names.

    A name with dots or dashes is quoted in SQL with backticks. Keys and values are text unless `options`, which are
    those of `format("tidelog")`, say otherwise. A topic that `schemas` names has JSON values: its schema is DDL, such
    as `id bigint, amount double`.
    """
    if topics is None:
        with connect_patiently(bootstrap_servers) as client:
            topics = [topic.name for topic in client.topics() if not topic.is_internal]
    registered = []
    for topic in topics:
        given = _options(bootstrap_servers, topic, options, schemas)
        rows = spark.read.format("tidelog").options(**given).load()
        rows.createOrReplaceTempView(f"`{topic}`")
        registered.append(topic)
    return registered


def register_snapshot(
    spark: "SparkSession",
    bootstrap_servers: str,
    topic: str,
    *,
    options: Mapping[str, str] | None = None,
    schemas: Mapping[str, str] | None = None,
) -> bool:
    """Make a view of the current records of a small topic, read by this process. Returns False, without doing
    anything, if the topic is not small.

    Spark starts a Python process for every step of planning a source, which takes seconds. For one query of a few
    records that is most of the time.
    """
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    from tidelog.spark import offsets
    from tidelog.spark.columns import default_schema
    from tidelog.spark.options import read_settings
    from tidelog.spark.reading import read_range

    settings = read_settings(_options(bootstrap_servers, topic, options, schemas), streaming=False)
    with connect_patiently(bootstrap_servers, settings.client) as client:
        known = offsets.subscribed(client, settings.subscription)
        start = offsets.earliest(client, known.partitions)
        end = offsets.latest(client, known.partitions, read_committed=settings.fetch.read_committed)
        size = sum(place.size_bytes for place in client.log_places(known.partitions).values())
    if offsets.available(start, end) > _SMALL_ROWS or size > _SMALL_BYTES:
        return False
    schema = StructType.fromDDL(default_schema(settings))
    assert isinstance(schema, StructType)
    ranges = [offsets.OffsetRange(*place, start[place], end[place], known.ids[place.topic]) for place in end]
    batches = [batch for part in ranges for batch in read_range(settings, schema, part)]
    table = pa.Table.from_batches(batches, schema=to_arrow_schema(schema, timezone="UTC"))
    spark.createDataFrame(table).createOrReplaceTempView(f"`{topic}`")
    return True


def _options(
    bootstrap_servers: str, topic: str, options: Mapping[str, str] | None, schemas: Mapping[str, str] | None
) -> dict[str, str]:
    given = {"keyFormat": "string", "valueFormat": "string"}
    if schemas and topic in schemas:
        given |= {"valueFormat": "json", "schema": schemas[topic]}
    return given | dict(options or {}) | {"kafka.bootstrap.servers": bootstrap_servers, "subscribe": topic}
