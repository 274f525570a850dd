"""`tidelog topic`: create, list, describe, alter and delete topics."""

import sys
from base64 import b64decode
from collections.abc import Callable, Sequence
from datetime import datetime

import click

from tidelog.cli.cluster import (
    START_HELP,
    broker_options,
    change_options,
    changes_of,
    open_client,
    pairs,
    refuse_unknown,
    show,
    start_of,
)
from tidelog.cli.output import Column, Fields, Shape, count, exact, show_bytes, text
from tidelog.client import EARLIEST, LATEST, BrokerError, Client, Freshness, Start, TableValue
from tidelog.client.admin.topics import HIGH_WATERMARK
from tidelog.errors import InvalidInput
from tidelog.model import Offset, TopicPartition
from tidelog.wire.error_codes import ErrorCode

_KEY_FORMATS: dict[str, Callable[[str], bytes]] = {
    "text": str.encode,
    "hex": bytes.fromhex,
    "base64": lambda text: b64decode(text, validate=True),
}
_yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")


@click.group("topic")
def group() -> None:
    """Create, list, describe, alter and delete topics."""


@group.command("create")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "-p",
    "--partitions",
    type=click.IntRange(min=1),
    help="Number of partitions. [default: the broker's num.partitions]",
)
@click.option(
    "-r",
    "--replication-factor",
    type=click.IntRange(min=1),
    help="Number of replicas of each partition. [default: the broker's]",
)
@click.option(
    "-c", "--config", "configs", multiple=True, metavar="NAME=VALUE", help="Set a topic config; may be repeated."
)
@click.option("--if-not-exists", is_flag=True, help="Do not fail if the topic exists.")
@click.option("--dry-run", is_flag=True, help="Check whether the topic could be created, but do not create it.")
@broker_options
def create(
    names: Sequence[str],
    partitions: int | None,
    replication_factor: int | None,
    configs: Sequence[str],
    if_not_exists: bool,
    dry_run: bool,
    bootstrap: str,
    as_json: bool,
) -> None:
    """Create topics."""
    settings = pairs(configs, "--config")
    rows = show({}, as_json=as_json)
    with open_client(bootstrap) as client:
        for name in names:
            try:
                client.create_topic(
                    name,
                    partitions=partitions or -1,
                    replication_factor=replication_factor or -1,
                    configs=settings,
                    validate_only=dry_run,
                )
            except BrokerError as error:
                if not (if_not_exists and error.kafka_code == ErrorCode.TOPIC_ALREADY_EXISTS):
                    raise
                rows.say(f"{name} exists already")
            else:
                rows.say(f"{name} {'would be created' if dry_run else 'created'}")
            if as_json and not dry_run:
                rows.row("topic", _topic_fields(client, name))
    rows.finish()


@group.command("list")
@click.option("--internal", is_flag=True, help="Also list internal topics.")
@broker_options
def list_(internal: bool, bootstrap: str, as_json: bool) -> None:
    """List the topics."""
    rows = show({"topic": [text("topic"), count("partitions"), count("replicas"), text("id")]}, as_json=as_json)
    with open_client(bootstrap) as client:
        for topic in client.topics():
            if internal or not topic.is_internal:
                replicas = len(topic.partitions[0].replicas) if topic.partitions else 0
                fields = {"topic": topic.name, "partitions": len(topic.partitions), "replicas": replicas}
                rows.row("topic", {**fields, "internal": topic.is_internal, "id": topic.topic_id.hex()})
    rows.finish()


@group.command("describe")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--all-configs", is_flag=True, help="Also show configs with their default value.")
@broker_options
def describe(names: Sequence[str], all_configs: bool, bootstrap: str, as_json: bool) -> None:
    """Show partitions, offsets and configs of topics."""

    def replicas(field: str) -> Column:
        return Column(field.replace("_", " "), lambda fields: " ".join(map(str, fields[field])))

    def leader(fields: Fields) -> str:
        return "none" if fields["leader"] < 0 else str(fields["leader"])

    shapes: dict[str, Shape] = {
        "partition": [
            exact("partition"),
            Column("leader", leader, right=True),
            replicas("replicas"),
            replicas("in_sync"),
            exact("start_offset"),
            exact("end_offset"),
            count("records", "offsets held"),
        ],
        "config": [text("name", "config"), text("value"), text("source")],
    }
    rows = show(shapes, as_json=as_json)
    with open_client(bootstrap) as client:
        for name in names:
            fields, has_table = _topic_fields(client, name), False
            partitions = client.partitions(name)
            rows.say(f"{name}: {len(partitions)} partition{'s' * (len(partitions) != 1)}, id {fields['id']}\n")
            if as_json:
                rows.row("topic", fields)
            for row in partitions:
                held = row.end_offset - row.start_offset
                rows.row("partition", {"topic": name, **row._asdict(), "records": held})
            rows.say("")
            for entry in client.topic_configs(name):
                if all_configs or as_json or not entry.is_default:
                    value = None if entry.sensitive else entry.value
                    rows.row("config", {"topic": name, "name": entry.name, "value": value, "source": entry.source})
                if entry.name == "tidelog.table" and entry.value == "true":
                    has_table = True
            if has_table:
                behind = client.table(name)
                lag = sum(part.lag for part in behind)
                rows.say(f"\ntable: lag {lag:,}, rows about {sum(part.rows for part in behind):,}")
                for part in behind if as_json else ():
                    rows.row("table", {"topic": name, **part._asdict(), "lag": part.lag})
    rows.finish()


@group.command("get")
@click.argument("name", metavar="TOPIC")
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@click.option(
    "-p",
    "--partition",
    type=click.IntRange(min=0),
    help="Partition of the key. [default: chosen by the key, as Kafka does]",
)
@click.option(
    "--key-format",
    type=click.Choice(list(_KEY_FORMATS)),
    default="text",
    show_default=True,
    help="Format of KEY.",
)
@click.option("--latest", is_flag=True, help="Wait until the table includes all records that are in the topic now.")
@click.option(
    "--at-least",
    type=click.IntRange(min=0),
    metavar="OFFSET",
    help="Wait until the table includes all records before this offset.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait.",
)
@broker_options
@click.pass_context
def get(
    ctx: click.Context,
    name: str,
    keys: Sequence[str],
    partition: int | None,
    key_format: str,
    latest: bool,
    at_least: int | None,
    timeout_s: float,
    bootstrap: str,
    as_json: bool,
) -> None:
    """Show the last value of keys, without reading the topic.

    The topic needs a table: tidelog topic alter TOPIC --set tidelog.table=true. A single value is written to stdout
    byte for byte. The exit code is 1 if a key is not found.
    """
    if latest and at_least is not None:
        raise click.UsageError("Use --latest or --at-least, not both.")
    try:
        wanted = [_KEY_FORMATS[key_format](key) for key in keys]
    except ValueError:
        raise click.BadParameter(f"not valid {key_format}: {', '.join(keys)}", param_hint="KEY") from None
    freshness: Freshness = "end" if latest else "any" if at_least is None else at_least
    with open_client(bootstrap) as client:
        found = client.get_many(
            name, wanted, partition=partition, at_least=freshness, timeout_ms=round(timeout_s * 1000)
        )
    if len(found) == 1 and not as_json:
        (one,) = found
        if one.value is None:
            click.echo(f"{name} has no such key (up to offset {one.applied_offset} of {_place(one)})", err=True)
        else:
            click.echo(f"offset {one.offset} of {_place(one)}, table at {one.applied_offset}", err=True)
            sys.stdout.buffer.write(one.value)
            if sys.stdout.isatty():
                click.echo()
    else:
        shape: Shape = [
            Column("key", lambda fields: show_bytes(fields["key"], full=False)),
            exact("partition"),
            Column("offset", lambda fields: str(fields["offset"]) if fields["found"] else "not found", right=True),
            Column("value", lambda fields: show_bytes(fields["value"], full=False) if fields["found"] else ""),
        ]
        rows = show({"value": shape}, as_json=as_json)
        for one in found:
            rows.row("value", {**one._asdict(), "found": one.found})
        rows.finish()
    ctx.exit(0 if all(one.found for one in found) else 1)


@group.command("table")
@click.argument("name", metavar="TOPIC")
@broker_options
def table(name: str, bootstrap: str, as_json: bool) -> None:
    """Show the progress of a topic's table."""
    shape: Shape = [
        exact("partition"),
        exact("applied_offset"),
        exact("end_offset"),
        count("lag"),
        count("rows", "rows, about"),
        count("size_bytes", "bytes, about"),
        Column("error", lambda fields: fields["error"] or ""),
    ]
    rows = show({"table": shape}, as_json=as_json)
    with open_client(bootstrap) as client:
        for row in client.table(name):
            rows.row("table", {"topic": name, **row._asdict(), "lag": row.lag})
    rows.finish()


@group.command("alter")
@click.argument("name")
@change_options
@broker_options
def alter(name: str, settings: Sequence[str], unset: Sequence[str], bootstrap: str, as_json: bool) -> None:
    """Change the configs of a topic."""
    changes = changes_of(settings, unset)
    with open_client(bootstrap) as client:
        if unset:
            refuse_unknown(unset, [entry.name for entry in client.topic_configs(name)])
        client.alter_topic_configs(name, changes)
        entries = {entry.name: entry for entry in client.topic_configs(name)}
    rows = show({"config": [text("name", "config"), text("value"), text("source")]}, as_json=as_json)
    for config in changes:
        entry = entries[config]
        rows.row("config", {"topic": name, "name": config, "value": entry.value, "source": entry.source})
    rows.finish()


@group.command("delete")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--if-exists", is_flag=True, help="Do not fail if the topic does not exist.")
@_yes_option
@broker_options
def delete(names: Sequence[str], if_exists: bool, yes: bool, bootstrap: str, as_json: bool) -> None:
    """Delete topics and all their records."""
    _make_sure(f"Delete {', '.join(names)} and all records?", yes=yes)
    rows = show({}, as_json=as_json)
    with open_client(bootstrap) as client:
        for name in names:
            try:
                client.delete_topic(name)
            except BrokerError as error:
                if not (if_exists and error.kafka_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                    raise
                rows.say(f"{name} does not exist")
            else:
                rows.say(f"{name} deleted")
                if as_json:
                    rows.row("deleted", {"topic": name})
    rows.finish()


@group.command("add-partitions")
@click.argument("name")
@click.option("--to", "total", type=click.IntRange(min=1), required=True, help="New total number of partitions.")
@broker_options
def add_partitions(name: str, total: int, bootstrap: str, as_json: bool) -> None:
    """Add partitions to a topic. Most keys then go to other partitions than before."""
    rows = show({}, as_json=as_json)
    with open_client(bootstrap) as client:
        client.add_partitions(name, total)
        rows.say(f"{name} has {total} partitions now")
        if as_json:
            rows.row("topic", _topic_fields(client, name))
    rows.finish()


@group.command("trim")
@click.argument("name")
@click.option(
    "--before",
    "start",
    metavar="START",
    callback=start_of,
    required=True,
    help=f"Delete records before this: {START_HELP}.",
)
@click.option("-p", "--partition", "numbers", type=int, multiple=True, help="Only this partition; may be repeated.")
@_yes_option
@broker_options
def trim(name: str, start: Start, numbers: Sequence[int], yes: bool, bootstrap: str, as_json: bool) -> None:
    """Delete the oldest records: all before an offset or a time. `--before latest` deletes all records."""
    _make_sure(f"Delete the records of {name} before {_say_start(start)}?", yes=yes)
    shapes: dict[str, Shape] = {"partition": [text("topic"), exact("partition"), exact("start_offset")]}
    rows = show(shapes, as_json=as_json)
    with open_client(bootstrap) as client:
        partitions = chosen_partitions(client, name, numbers)
        if start == "latest":
            before = dict.fromkeys(partitions, HIGH_WATERMARK)
        else:
            before = offsets_in_log(client, partitions, start)
        for partition, offset in sorted(client.delete_records(before).items()):
            fields = {"topic": name, "partition": partition.partition, "start_offset": offset}
            rows.row("partition", fields)
    rows.finish()


def chosen_partitions(client: Client, topic: str, numbers: Sequence[int]) -> list[TopicPartition]:
    """These partitions of a topic, or all of them."""
    known = [row.partition for row in client.topic(topic).partitions]
    for number in numbers:
        if number not in known:
            raise InvalidInput(f"{topic} has no partition {number}; it has {len(known)}")
    return [TopicPartition(topic, number) for number in numbers or known]


def offsets_in_log(
    client: Client, partitions: Sequence[TopicPartition], start: Start
) -> dict[TopicPartition, Offset]:
    """The offset that `start` means in each partition, moved into the range of offsets that the partition has."""
    first = client.offsets(dict.fromkeys(partitions, EARLIEST))
    end = client.offsets(dict.fromkeys(partitions, LATEST))
    return {
        partition: min(max(offset, first[partition].offset), end[partition].offset)
        for partition, offset in client.start_offsets(partitions, start).items()
    }


def _place(found: TableValue) -> str:
    return f"{found.topic}-{found.partition}"


def _topic_fields(client: Client, name: str) -> dict[str, object]:
    topic = client.topic(name)
    return {"topic": name, "partitions": len(topic.partitions), "id": topic.topic_id.hex()}


def _say_start(start: Start) -> str:
    return start.isoformat(sep=" ", timespec="seconds") if isinstance(start, datetime) else str(start)


def _make_sure(question: str, *, yes: bool) -> None:
    """Ask for confirmation, but only on a terminal."""
    if not yes and sys.stdin.isatty():
        click.confirm(question, abort=True, err=True)
