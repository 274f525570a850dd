"""`tidelog sql`: one query of topics, run by Spark in this process."""

import base64
import datetime
import decimal
import json
import logging
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from tidelog.cli.cluster import bootstrap_option, conf_option, json_option, open_client, pairs, show
from tidelog.cli.output import Column, Shape
from tidelog.errors import MissingExtra, TidelogError

if TYPE_CHECKING:
    from pyspark.sql import Row

_WORD = re.compile(r"[A-Za-z0-9._-]+")
_SHOWN_CHARACTERS = 200


@click.command("sql")
@click.argument("query")
@click.option(
    "--value-format",
    type=click.Choice(["string", "binary", "json", "avro"]),
    default="string",
    show_default=True,
    help="Format of the values; json and avro need --schema.",
)
@click.option(
    "--schema",
    "schemas",
    multiple=True,
    metavar="TOPIC=SCHEMA",
    help="Schema of a topic's JSON values, such as 'orders=id bigint, amount double', or its Avro schema.",
)
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=0),
    default=1000,
    show_default=True,
    help="Maximum number of rows to show.",
)
@click.option("--master", metavar="URL", help="Spark master to run on. [default: local[*]]")
@conf_option
@json_option
@bootstrap_option
def command(
    query: str,
    value_format: str,
    schemas: Sequence[str],
    limit: int,
    master: str | None,
    conf: dict[str, str],
    as_json: bool,
    bootstrap: str,
) -> None:
    """Run QUERY. Topics are tables with the columns key, value, topic, partition, offset and timestamp.

    \b
    tidelog sql "SELECT count(*), max(timestamp) FROM orders"
    tidelog sql "SELECT value.customer, sum(value.amount) FROM orders GROUP BY 1" \\
        --schema "orders=customer string, amount double"
    tidelog sql 'SELECT * FROM `page-views` LIMIT 5' --json

    Put names with dashes or dots in backticks.
    """
    by_topic = pairs(schemas, "--schema")
    topics = _topics_of(query, bootstrap, by_topic)
    if value_format in ("json", "avro") and (missing := [topic for topic in topics if topic not in by_topic]):
        raise click.UsageError(
            f"--value-format {value_format} needs the schema of each topic: add --schema '{missing[0]}=...'."
        )
    try:
        from pyspark.errors import PySparkException

        from tidelog.spark.session import spark_session
        from tidelog.spark.views import register_snapshot, register_topics
    except ImportError as error:
        raise MissingExtra('SQL needs an extra: pip install "tidelog[spark]"') from error
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # errors are reported below, in one line
    spark = spark_session("tidelog sql", master=master, conf=conf)
    try:
        for topic in topics:
            own = {topic: by_topic[topic]} if topic in by_topic and value_format != "avro" else None
            options = {} if own else {"valueFormat": value_format}
            if topic in by_topic and value_format == "avro":
                options["schema"] = by_topic[topic]
            if not register_snapshot(spark, bootstrap, topic, options=options, schemas=own):
                register_topics(spark, bootstrap, [topic], options=options, schemas=own)
        answer = spark.sql(query)
        columns = list(answer.columns)
        rows = answer.limit(limit + 1).collect()
    except PySparkException as error:
        raise TidelogError(_short(str(error), topics)) from None
    finally:
        spark.stop()
    _print(columns, rows[:limit], as_json=as_json)
    if len(rows) > limit and not as_json:
        click.echo(f"Only the first {limit} rows are shown; see --limit.", err=True)


def _topics_of(query: str, bootstrap: str, schemas: dict[str, str]) -> list[str]:
    """The topics that the query names; others need not be registered."""
    with open_client(bootstrap) as client:
        there = {topic.name for topic in client.topics()}
    unknown = [topic for topic in schemas if topic not in there]
    if unknown:
        raise click.UsageError(f"--schema: topic {unknown[0]!r} does not exist.")
    words = set(_WORD.findall(query)) | {word.lower() for word in _WORD.findall(query)}
    return sorted(topic for topic in there if topic in words)


def _short(message: str, topics: list[str]) -> str:
    """The part of Spark's message that matters to users: the cause given by our source, or its first line."""
    from tidelog.spark.clusters import advice

    known_cause = advice(message)
    if known_cause:
        return known_cause
    ours = re.findall(r"^tidelog\.[\w.]+: (.*)$", message, re.MULTILINE)
    if ours:
        return str(ours[-1])
    first = message.strip().splitlines()[0]
    if "TABLE_OR_VIEW_NOT_FOUND" in first:
        known = (
            f"the query names these topics: {', '.join(topics)}" if topics else "the query names no existing topic"
        )
        return f"{first} ({known}; list them with: tidelog topic list; quote names with dashes in backticks)"
    return first


def _print(columns: list[str], rows: "Sequence[Row]", *, as_json: bool) -> None:
    titles = _distinct(columns)
    shape: Shape = [Column(title, lambda fields, name=title: _text(fields[name])) for title in titles]  # type: ignore[misc]
    out = show({"row": shape}, as_json=as_json)
    for row in rows:
        values = map(_plain, row) if as_json else iter(row)
        out.row("row", dict(zip(titles, values, strict=True)))
    if not rows:
        out.say("No rows.")
    out.finish()
    sys.stdout.flush()


def _distinct(columns: list[str]) -> list[str]:
    """SQL allows the same name twice; an object does not."""
    seen: dict[str, int] = {}
    titles = []
    for name in columns:
        seen[name] = seen.get(name, 0) + 1
        titles.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return titles


def _plain(value: Any) -> Any:  # noqa: ANN401  (of any of Spark's types)
    """As JSON has it; bytes as text, or as {"base64": ...} if they are none."""
    if isinstance(value, bytes | bytearray):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return str(value)
    if hasattr(value, "asDict"):
        return {name: _plain(part) for name, part in value.asDict().items()}
    if isinstance(value, dict):
        return {str(_plain(name)): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value


def _text(value: Any) -> str:  # noqa: ANN401
    plain = _plain(value)
    if plain is None:
        return ""
    shown = plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
    return shown if len(shown) <= _SHOWN_CHARACTERS else shown[: _SHOWN_CHARACTERS - 1] + "…"
