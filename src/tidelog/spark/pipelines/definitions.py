"""Functions for the definitions files of a pipeline.

    from pyspark import pipelines as dp
    from tidelog.spark.pipelines import topic, to_topic

    topic("orders", schema="id string NOT NULL, amount double", expect={"amount is positive": "amount > 0"})

    @dp.table
    def large_orders():
        return spark.readStream.table("orders").where("amount > 1000")

    @to_topic("large-orders", key="id")
    def announce():
        return spark.readStream.table("orders").where("amount > 1000").select("id", "amount")

`topic` declares a view of the good records, for Python and for SQL files (`FROM STREAM orders`), and a flow that
sends the others to a topic of dead letters. `to_topic` declares a topic as a sink, and a flow into it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from tidelog.client.options import DEFAULT_BOOTSTRAP
from tidelog.errors import InvalidInput
from tidelog.spark.pipelines import letters

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

Query: TypeAlias = "Callable[[], DataFrame]"

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
"""Of `format("tidelog")`. A pipeline's queries may not ask a DataFrame for its columns."""
BOOTSTRAP_CONF = "spark.tidelog.bootstrap.servers"
_SOURCE, _RAW, _DECODED, _ERROR, _CORRUPT = "_source", "_raw", "_decoded", "_error", "_corrupt_record"


@dataclass
class Declared:
    """What the definitions files of a project have declared so far. The loader of the files reads and clears it."""

    sources: list[tuple[str, str]] = field(default_factory=list)
    """(bootstrap servers, topic)"""
    dead_letters: list[tuple[str, str]] = field(default_factory=list)
    sinks: list[tuple[str, str]] = field(default_factory=list)

    def clear(self) -> None:
        self.sources.clear()
        self.dead_letters.clear()
        self.sinks.clear()


DECLARED = Declared()


def topic(
    name: str,
    *,
    schema: "str | StructType | None" = None,
    expect: Mapping[str, str] | None = None,
    event_time: str | None = None,
    late: str = "10 seconds",
    view: str | None = None,
    dead_letters: str | None = None,
    bootstrap: str | None = None,
    options: Mapping[str, str] | None = None,
) -> str:
    """Declare a topic as a streaming view; returns the view's name: `view`, or by default the topic's.

    With a `schema` (DDL, or a StructType) values are JSON, and the view has its fields as columns, plus `_record`: a
    struct of key, topic, partition, offset, timestamp and headers. Without a schema, it has the columns of
    `format("tidelog")`.

    A record is bad if it cannot be decoded, if a field that is NOT NULL is missing, or if an expectation (a name and
    a SQL condition on the columns) does not hold. Bad records go to the topic `dead_letters`, by default the topic's
    name with `.dead-letters`.

    For windows, `event_time` (a SQL expression on the columns) becomes the column `_time`, with a watermark: records
    that are later than `late` may be left out. (`withWatermark` on the view does not work: Spark would have to know
    the view's columns while the pipeline is still being declared.)

    The first run begins at the earliest record. Records of aborted transactions are left out. `options` are passed to
    the source.
    """
    from pyspark import pipelines as dp

    servers = bootstrap or _bootstrap()
    wanted = {
        "kafka.bootstrap.servers": servers,
        "subscribe": name,
        "startingOffsets": "earliest",
        "includeHeaders": "true",
        "isolation": "read_committed",
        **(options or {}),
    }
    view = view or _identifier(name)
    checks = dict(expect or {})
    if checks and schema is None:
        raise InvalidInput(f"topic({name!r}): expectations are conditions on columns; add a schema")
    DECLARED.sources.append((servers, name))
    fields = parse_schema(schema) if schema is not None else None

    def read() -> "DataFrame":
        return _spark().readStream.format("tidelog").options(**wanted).load()

    if fields is None:
        dp.temporary_view(name=view)(read)
        return view

    def good() -> "DataFrame":
        from pyspark.sql import functions as F  # noqa: N812

        judged = decode_json(read(), fields, checks)
        rows = judged.where(F.col(_ERROR).isNull()).select(f"{_DECODED}.*", _record().alias("_record"))
        if event_time is None:
            return rows
        return rows.select("*", F.expr(event_time).cast("timestamp").alias("_time")).withWatermark("_time", late)

    def bad() -> "DataFrame":
        from pyspark.sql import functions as F  # noqa: N812

        return _as_letters(decode_json(read(), fields, checks).where(F.col(_ERROR).isNotNull()))

    letter_topic = dead_letters or name + letters.DEFAULT_SUFFIX
    DECLARED.dead_letters.append((servers, letter_topic))
    dp.temporary_view(name=view)(good)
    sink = f"{view}_dead_letters"
    dp.create_sink(sink, "tidelog", _sink_options(servers, letter_topic))
    dp.append_flow(target=sink, name=f"{sink}_flow")(bad)
    return view


def to_topic(
    name: str,
    *,
    key: "str | Column | None" = None,
    json: bool = True,
    bootstrap: str | None = None,
    options: Mapping[str, str] | None = None,
) -> Callable[[Query], None]:
    """Decorates a function that returns a streaming DataFrame: its rows are written to the topic.

    Each row is written as a JSON object; `key` is the column, or the expression, for the key. With `json=False` the
    DataFrame is written as it is: columns key, value, headers, partition. `options` are passed to the sink, which
    delivers exactly once by default.
    """

    def declare(query: Query) -> None:
        from pyspark import pipelines as dp

        servers = bootstrap or _bootstrap()
        DECLARED.sinks.append((servers, name))
        flow = query.__name__
        sink = f"{_identifier(name)}_topic"
        dp.create_sink(sink, "tidelog", {**_sink_options(servers, name), **(options or {})})
        dp.append_flow(target=sink, name=flow)(lambda: _as_json(query(), key) if json else query())

    return declare


def _sink_options(servers: str, topic: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": servers, "topic": topic, "delivery": "exactly-once"}


def parse_schema(schema: "str | StructType") -> "StructType":
    """Must not be called within a query: Spark parses the text."""
    from pyspark.sql.types import StructType

    if isinstance(schema, StructType):
        return schema
    parsed = StructType.fromDDL(schema)
    if not isinstance(parsed, StructType):
        raise InvalidInput(
            f"the schema {schema!r} has no fields; an example of a valid one: id bigint, amount double"
        )
    return parsed


def decode_json(records: "DataFrame", fields: "StructType", expect: Mapping[str, str] | None = None) -> "DataFrame":
    """Records of `format("tidelog")` (with headers), with two more columns: `_decoded`, a struct of these fields, and
    `_error`, which is null if the record is good."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import StringType, StructField, StructType

    everything = StructType([*_nullable(fields).fields, StructField(_CORRUPT, StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    text = F.col("value").cast("string")
    raw = records.select(F.struct(*COLUMNS).alias(_SOURCE), F.from_json(text, everything, options).alias(_RAW))
    decoded = F.struct(*[F.col(f"{_RAW}.`{one.name}`").alias(one.name) for one in fields.fields])
    # Conditions refer to the fields of the value, so these fields are columns while conditions are evaluated.
    judged = raw.withColumn(_DECODED, decoded).select(_SOURCE, _RAW, _DECODED, f"{_DECODED}.*")
    value = F.col(f"{_SOURCE}.value")
    unreadable = (
        F.when(value.isNull(), F.lit("the value is null"))
        .when(~F.is_valid_utf8(value.cast("string")), F.lit("the value is not UTF-8"))
        .when(F.col(f"{_RAW}.{_CORRUPT}").isNotNull(), F.lit("the value is not JSON of this schema"))
        .when(F.col(_RAW).isNull(), F.lit("the value is not a JSON object"))
    )
    missing = [
        F.when(F.col(f"{_DECODED}.`{one.name}`").isNull(), F.lit(f"{one.name} is missing"))
        for one in fields.fields
        if not one.nullable
    ]
    broken = [
        F.when(~F.coalesce(F.expr(condition), F.lit(False)), F.lit(f"expectation failed: {name}"))
        for name, condition in (expect or {}).items()
    ]
    problems = F.concat_ws("; ", *missing, *broken) if missing or broken else F.lit("")
    error = F.coalesce(unreadable, F.when(problems != "", problems))
    return judged.select(f"{_SOURCE}.*", _DECODED, error.alias(_ERROR))


def _nullable(fields: "StructType") -> "StructType":
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(one.name, one.dataType, True) for one in fields.fields])


def _record() -> "Column":
    from pyspark.sql import functions as F  # noqa: N812

    return F.struct("key", "topic", "partition", "offset", "timestamp", "headers")


def _as_letters(bad: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: N812

    about = {
        letters.ERROR: F.col(_ERROR),
        letters.TOPIC: F.col("topic"),
        letters.PARTITION: F.col("partition").cast("string"),
        letters.OFFSET: F.col("offset").cast("string"),
        letters.TIMESTAMP: F.unix_millis("timestamp").cast("string"),
    }
    added = F.array(
        *[F.struct(F.lit(name).alias("key"), said.cast("binary").alias("value")) for name, said in about.items()]
    )
    empty = F.array().cast("array<struct<key:string,value:binary>>")
    headers = F.concat(F.coalesce(F.col("headers"), empty), added)
    return bad.select("key", "value", headers.alias("headers"))


def _as_json(rows: "DataFrame", key: "str | Column | None") -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: N812

    value = F.to_json(F.struct("*")).alias("value")
    if key is None:
        return rows.select(value)
    chosen = F.col(key) if isinstance(key, str) else key
    return rows.select(chosen.cast("string").alias("key"), value)


def _identifier(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _spark() -> "SparkSession":
    from pyspark.sql import SparkSession

    return SparkSession.active()


def _bootstrap() -> str:
    told: Any = _spark().conf.get(BOOTSTRAP_CONF, None)
    return told or DEFAULT_BOOTSTRAP
