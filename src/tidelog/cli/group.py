"""`tidelog group`: consumer groups, their lag and their committed offsets."""

from collections.abc import Sequence
from typing import Any

import click

from tidelog.cli.cluster import (
    START_HELP,
    broker_options,
    change_options,
    changes_of,
    open_client,
    refuse_unknown,
    show,
    start_of,
)
from tidelog.cli.output import Column, Fields, Shape, exact, text
from tidelog.cli.topic import chosen_partitions, offsets_in_log
from tidelog.client import LATEST, BrokerError, Client, GroupMember, Start
from tidelog.client.admin.topics import ConfigEntry
from tidelog.errors import InvalidInput
from tidelog.model import TopicPartition
from tidelog.wire.error_codes import ErrorCode

_CONFIG_SHAPE: Shape = [text("name", "config"), text("value"), text("source")]


@click.group("group")
def group() -> None:
    """List, describe, alter, seek and delete consumer groups."""


@group.command("list")
@broker_options
def list_(bootstrap: str, as_json: bool) -> None:
    """List the groups."""
    shapes: dict[str, Shape] = {"group": [text("group"), text("state"), text("kind", "type"), text("protocol")]}
    rows = show(shapes, as_json=as_json)
    with open_client(bootstrap) as client:
        for listed in client.groups():
            fields = {"group": listed.group, "state": listed.state, "kind": listed.type}
            rows.row("group", {**fields, "protocol": listed.protocol_type})
    rows.finish()


@group.command("describe")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--all-configs", is_flag=True, help="Also show configs with their default value.")
@broker_options
def describe(names: Sequence[str], all_configs: bool, bootstrap: str, as_json: bool) -> None:
    """Show committed offsets, lag, members and configs of groups."""

    def or_dash(field: str, title: str | None = None) -> Column:
        return exact(field, title)._replace(show=lambda fields: "-" if fields[field] is None else f"{fields[field]}")

    def lag(fields: Fields) -> str:
        return "-" if fields["lag"] is None else f"{fields['lag']:,}"

    shapes: dict[str, Shape] = {
        "offset": [
            text("topic"),
            exact("partition"),
            or_dash("committed"),
            or_dash("end_offset", "end"),
            Column("lag", lag, right=True),
            text("client"),
            text("host"),
            text("member"),
        ],
        "config": _CONFIG_SHAPE,
    }
    rows = show(shapes, as_json=as_json)
    with open_client(bootstrap) as client:
        for name in names:
            described = client.group(name)
            offsets = _offsets(client, name, described.members)
            configs = _configs(client, name)
            own = [entry for entry in configs if not entry.is_default]
            if described.state == "Dead" and not offsets and not own:
                raise InvalidInput(f"no such group: {name!r}; see: tidelog group list")
            lags = [row["lag"] for row in offsets if row["lag"] is not None]
            members = f"{len(described.members)} member{'s' * (len(described.members) != 1)}"
            rows.say(f"{name}: {described.state}, {members}, lag {sum(lags):,}\n")
            if as_json:
                fields = {"group": name, "state": described.state, "assignor": described.assignor}
                rows.row("group", {**fields, "members": len(described.members), "lag": sum(lags)})
            for row in offsets:
                rows.row("offset", {"group": name, **row})
            for entry in configs if all_configs or as_json else own:
                rows.row("config", _config_fields(name, entry))
    rows.finish()


def _configs(client: Client, name: str) -> list[ConfigEntry]:
    """An empty list if the broker has no configs of groups."""
    try:
        return client.group_configs(name)
    except BrokerError as error:
        if error.kafka_code != ErrorCode.INVALID_REQUEST:
            raise
        return []


def _config_fields(name: str, entry: ConfigEntry) -> dict[str, str | None]:
    return {"group": name, "name": entry.name, "value": entry.value, "source": entry.source}


def _offsets(client: Client, name: str, members: Sequence[GroupMember]) -> list[dict[str, Any]]:
    """Committed offsets and assigned partitions, with the end offset of each partition that still exists."""
    owners = {partition: member for member in members for partition in member.partitions}
    committed = {partition: row.offset for partition, row in client.committed(name).items()}
    partitions = sorted(owners.keys() | committed.keys())
    existing = {TopicPartition(topic.name, row.partition) for topic in client.topics() for row in topic.partitions}
    ends = client.offsets({partition: LATEST for partition in partitions if partition in existing})
    found = []
    for partition in partitions:
        owner = owners.get(partition)
        at = committed.get(partition)
        end = ends[partition].offset if partition in ends else None
        found.append(
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "committed": at,
                "end_offset": end,
                "lag": None if at is None or end is None else max(0, end - at),
                "member": owner.member_id if owner else None,
                "client": owner.client_id if owner else None,
                "host": owner.host if owner else None,
            }
        )
    return found


@group.command("seek")
@click.argument("name")
@click.argument("topic")
@click.option(
    "--to", "start", metavar="START", callback=start_of, required=True, help=f"Where to continue: {START_HELP}."
)
@click.option("-p", "--partition", "numbers", type=int, multiple=True, help="Only this partition; may be repeated.")
@click.option("--dry-run", is_flag=True, help="Show the offsets, but do not commit them.")
@broker_options
def seek(
    name: str, topic: str, start: Start, numbers: Sequence[int], dry_run: bool, bootstrap: str, as_json: bool
) -> None:
    """Set the committed offsets of a group in a topic.

    The group must have no members. If it does not exist, it is created.
    """
    shapes: dict[str, Shape] = {
        "offset": [text("topic"), exact("partition"), text("before"), exact("committed", "now")]
    }
    rows = show(shapes, as_json=as_json)
    with open_client(bootstrap) as client:
        partitions = chosen_partitions(client, topic, numbers)
        before = client.committed(name, partitions)
        offsets = offsets_in_log(client, partitions, start)
        if not dry_run:
            client.set_committed(name, offsets)
        for partition, offset in sorted(offsets.items()):
            was = before[partition].offset if partition in before else None
            fields = {"group": name, "topic": topic, "partition": partition.partition}
            rows.row("offset", {**fields, "before": was, "committed": offset})
    rows.finish()


@group.command("alter")
@click.argument("name")
@change_options
@broker_options
def alter(name: str, settings: Sequence[str], unset: Sequence[str], bootstrap: str, as_json: bool) -> None:
    """Change the configs of a group, which need not exist yet.

    Groups of the consumer protocol have consumer.session.timeout.ms and consumer.heartbeat.interval.ms. Members are
    told with their next heartbeat.
    """
    changes = changes_of(settings, unset)
    with open_client(bootstrap) as client:
        if unset:
            refuse_unknown(unset, [entry.name for entry in client.group_configs(name)])
        client.alter_group_configs(name, changes)
        entries = {entry.name: entry for entry in client.group_configs(name)}
    rows = show({"config": _CONFIG_SHAPE}, as_json=as_json)
    for config in changes:
        rows.row("config", _config_fields(name, entries[config]))
    rows.finish()


@group.command("delete")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--topic", help="Delete only the offsets of this topic, not the group.")
@broker_options
def delete(names: Sequence[str], topic: str | None, bootstrap: str, as_json: bool) -> None:
    """Delete groups and their committed offsets. They must have no members."""
    rows = show({}, as_json=as_json)
    with open_client(bootstrap) as client:
        for name in names:
            if topic is None:
                client.delete_group(name)
                rows.say(f"{name} deleted")
            else:
                partitions = [partition for partition in client.committed(name) if partition.topic == topic]
                client.delete_committed(name, partitions)
                rows.say(f"{len(partitions)} offset{'s' * (len(partitions) != 1)} of {name} deleted")
            if as_json:
                rows.row("deleted", {"group": name, "topic": topic})
    rows.finish()
