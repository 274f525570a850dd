"""`tidelog cluster import` and `export`: between the data directory of a single broker and a cluster. Importing this
module completes the group of `tidelog cluster`."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from tidelog.cli.cluster import show
from tidelog.cli.cluster_storage import group, settings_of, settings_options
from tidelog.cli.output import Column, Fields, Rows, byte_progress, escape, exact, text

if TYPE_CHECKING:
    from tidelog.node.importing import ImportPlan
    from tidelog.node.transferring import Moved
    from tidelog.settings import ClusterSettings, NodeSettings

__all__ = ["group"]

_topic_option = click.option(
    "--topic", "topics", multiple=True, metavar="NAME", help="Topic to copy; may be repeated. [default: all]"
)
_dry_run_option = click.option("--dry-run", is_flag=True, help="Only show what would be copied.")


@group.command("import")
@click.argument("data_dir", metavar="DATA_DIR")
@_topic_option
@_dry_run_option
@click.option("--abandon", is_flag=True, help="Give up an unfinished import: what it has copied becomes garbage.")
@settings_options
def import_(
    data_dir: str,
    topics: Sequence[str],
    dry_run: bool,
    abandon: bool,
    file: str | None,
    assignments: Sequence[str],
    as_json: bool,
) -> None:
    """Copy the topics of a single broker into a cluster, with their offsets, groups and transactions.

    DATA_DIR is the data directory of a broker that is stopped; nothing in it is changed. The cluster's brokers may
    run. Everything that is copied is read again and compared. After a failure or a crash, run the same command again:
    it continues."""
    if abandon and dry_run:
        raise click.UsageError("--abandon and --dry-run exclude each other.")
    cluster = _cluster(settings_of(file, assignments))
    asyncio.run(_import(cluster, data_dir, topics, dry_run, abandon, as_json))


async def _import(
    cluster: "ClusterSettings", data_dir: str, topics: Sequence[str], dry_run: bool, abandon: bool, as_json: bool
) -> None:
    from tidelog.node.importing import open_import

    rows = show({"partition": _columns(dry_run)}, as_json=as_json)
    async with open_import(cluster, data_dir) as importing:
        if abandon:
            count = await importing.abandon(topics)
            rows.row("abandoned", {"count": count}) if as_json else rows.say(f"abandoned: {count} logs and objects")
            rows.finish()
            return
        plan = await importing.plan(topics)
        moved = plan.partitions()
        if not dry_run:
            with byte_progress("importing", plan.size_bytes) as progress:
                plan, moved = await importing.run(topics, progress)
    _show_moved(rows, moved)
    summary = {
        "dry_run": dry_run,
        "topics": len(plan.new),
        "groups": plan.groups,
        "transactional_ids": plan.transactional_ids,
        "forgotten_producers": plan.forgotten_producers,
    }
    if as_json:
        rows.row("summary", summary)
    for line in _import_lines(plan, dry_run):
        rows.say(line)
    rows.finish()


def _import_lines(plan: "ImportPlan", dry_run: bool) -> list[str]:
    if not plan.new:
        return ["nothing to import: the cluster has these topics already"]
    what = f"{len(plan.new)} topics, offsets of {plan.groups} groups, {plan.transactional_ids} transactional ids"
    lines = [f"would import {what}" if dry_run else f"imported {what}; both sides have the same batches"]
    if plan.forgotten_producers:
        lines.append(
            f"{plan.forgotten_producers} idempotent producers are not known to the cluster, which has given their ids"
            " to others: restart producers that still run before they write to the cluster"
        )
    return lines


@group.command("export")
@click.argument("data_dir", metavar="DATA_DIR")
@_topic_option
@_dry_run_option
@settings_options
def export(
    data_dir: str, topics: Sequence[str], dry_run: bool, file: str | None, assignments: Sequence[str], as_json: bool
) -> None:
    """Copy topics of a cluster into a new data directory for a single broker, with offsets, groups and transactions.

    DATA_DIR must not exist, or be empty. The cluster's brokers may run: everything is copied as of the moment at
    which the command begins. What is written is read again and compared. After a failure or a crash, run the same
    command again: it continues."""
    cluster = _cluster(settings_of(file, assignments))
    asyncio.run(_export(cluster, data_dir, topics, dry_run, as_json))


async def _export(
    cluster: "ClusterSettings", data_dir: str, topics: Sequence[str], dry_run: bool, as_json: bool
) -> None:
    from tidelog.node.exporting import ClusterExport

    rows = show({"partition": _columns(dry_run)}, as_json=as_json)
    exporting = ClusterExport(cluster, data_dir, topics)
    state = await exporting.state()
    moved = state.partitions()
    if not dry_run:
        with byte_progress("exporting", state.size_bytes) as progress:
            state, moved = await exporting.run(progress)
    _show_moved(rows, moved)
    if as_json:
        rows.row("summary", {"dry_run": dry_run, "topics": len(state.topics), "groups": state.groups})
    what = f"{len(state.topics)} topics, offsets of {state.groups} groups"
    rows.say(f"would export {what}" if dry_run else f"exported {what}; both sides have the same batches")
    if not dry_run:
        rows.say(f"serve it with: tidelog serve --data-dir {data_dir}")
    rows.finish()


def _cluster(node: "NodeSettings") -> "ClusterSettings":
    assert node.cluster is not None
    return node.cluster


def _columns(dry_run: bool) -> list[Column]:
    columns = [
        Column("partition", lambda fields: f"{escape(fields['topic'])}:{fields['partition']}"),
        exact("start_offset"),
        exact("end_offset"),
        text("state", ""),
    ]
    return columns if dry_run else [*columns, *map(_number, ("batches", "records", "size_bytes")), text("crc")]


def _number(field: str) -> Column:
    def shown(fields: Fields) -> str:
        value: Any = fields[field]
        return "" if value is None else f"{value:,}"

    return Column(field.removeprefix("size_"), shown, right=True)


def _show_moved(rows: Rows, moved: "Iterable[Moved]") -> None:
    for each in moved:
        rows.row("partition", each.fields())
