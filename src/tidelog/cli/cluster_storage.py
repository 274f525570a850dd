"""`tidelog cluster check` and `gc`: the storage of a cluster, read directly, without a broker. Importing this module
completes the group of `tidelog cluster`."""

import asyncio
from collections.abc import AsyncIterator, Callable, Container, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tidelog.cli.cluster import group, json_option, show
from tidelog.cli.configuration import load
from tidelog.cli.output import Column, byte_progress, escape, text
from tidelog.errors import InvalidSettings

if TYPE_CHECKING:
    from tidelog.settings import NodeSettings
    from tidelog.storage.shared.checking import Count, Tally
    from tidelog.storage.shared.tools import Collected, StorageTools

__all__ = ["group"]

F = TypeVar("F", bound=Callable[..., Any])

_POLICY = "cleanup.policy"


def settings_options(command: F) -> F:
    """The settings of a cluster, from the same places as those of `tidelog serve`."""
    file = click.option(
        "--config",
        "file",
        envvar="TIDELOG_CONFIG",
        metavar="FILE",
        help="Settings file of the brokers, in TOML. [default: tidelog.toml]",
    )
    assignments = click.option(
        "--set",
        "assignments",
        multiple=True,
        metavar="NAME=VALUE",
        help="Set a setting, such as cluster.storage; may be repeated.",
    )
    decorated: F = file(assignments(json_option(command)))
    return decorated


def settings_of(file: str | None, assignments: Sequence[str]) -> "NodeSettings":
    flags: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise click.UsageError(f"--set must be NAME=VALUE, not {assignment!r}.")
        flags[name.strip()] = value
    try:
        node = load(file, flags).node
    except InvalidSettings as error:
        raise click.ClickException("; ".join(error.problems)) from None
    if node.cluster is None:
        raise click.ClickException(
            "no cluster is configured: set cluster.metadata and cluster.storage as for the brokers, for example by "
            "TIDELOG_CLUSTER_METADATA and TIDELOG_CLUSTER_STORAGE, or name their settings file with --config"
        )
    return node


@asynccontextmanager
async def _opened(node: "NodeSettings") -> "AsyncIterator[tuple[StorageTools, Container[str]]]":
    """The tools, and the topics that are compacted."""
    from tidelog.metadata.opening import open_for_reading
    from tidelog.metadata.rows import ClusterRow, ConfigRow, TopicRow
    from tidelog.node.parts import CLUSTER_ID
    from tidelog.storage.engines import open_cluster_tools

    assert node.cluster is not None
    metadata = await open_for_reading(node.cluster.metadata)
    try:
        facts = {row.name: row.value for row in await metadata.load(ClusterRow, (CLUSTER_ID,))}
        configs = {(row.kind, row.resource, row.name): row.value for row in await metadata.load(ConfigRow)}
        topics = [row.name for row in await metadata.load(TopicRow)]
    finally:
        await metadata.close()
    usual = configs.get(("broker", "", f"log.{_POLICY}"), node.kafka.get(f"log.{_POLICY}", "delete"))
    compacted = {name for name in topics if "compact" in configs.get(("topic", name, _POLICY), usual)}
    async with open_cluster_tools(node.cluster, facts.get(CLUSTER_ID, "")) as tools:
        yield tools, compacted


@group.command("check")
@click.option("--deep", is_flag=True, help="Read all data, and verify CRCs, batch headers and offsets.")
@settings_options
def check(deep: bool, file: str | None, assignments: Sequence[str], as_json: bool) -> None:
    """Check that the database and the object store agree; exit with 1 if something is wrong.

    Reads both directly, with the brokers' settings (--config, --set, or the environment), and changes nothing. The
    brokers may run. Without --deep the object store is only listed; with it, everything is read."""
    if asyncio.run(_check(settings_of(file, assignments), deep, as_json)):
        click.get_current_context().exit(1)


async def _check(node: "NodeSettings", deep: bool, as_json: bool) -> bool:
    """True if something is wrong."""
    columns = [
        text("severity", ""),
        Column("partition", lambda fields: f"{escape(fields['topic'])}:{fields['partition']}"),
        Column("offsets", lambda fields: f"{fields['base_offset']}-{fields['last_offset']}", right=True),
        text("what"),
        text("key", "object"),
        text("position"),
        text("advice", "what to do"),
    ]
    rows = show({"finding": columns}, as_json=as_json)
    async with _opened(node) as (tools, compacted):
        with byte_progress("checking", await tools.used_bytes()) as progress:
            tally = await tools.check(
                compacted, deep=deep, found=lambda each: rows.row("finding", each.fields()), progress=progress
            )
    if as_json:
        rows.row("summary", _summary(tally, deep))
    for line in _lines(tally, deep):
        rows.say(line)
    rows.finish()
    return tally.errors > 0


def _summary(tally: "Tally", deep: bool) -> dict[str, Any]:
    counts = {
        f"{name}_{unit}": value
        for name in ("used", "removable", "orphans", "recent")
        for unit, value in getattr(tally, name)._asdict().items()
    }
    found = {"errors": tally.errors, "notes": tally.notes}
    return {"deep": deep, "partitions": tally.logs, "extents": tally.extents, **counts, **found}


def _lines(tally: "Tally", deep: bool) -> list[str]:
    how = "all data was read" if deep else "data was not read: use --deep for that"
    seen = f"{_many(tally.logs, 'partition')}, {_many(tally.extents, 'extent')}, {_size(tally.used)} in use"
    lines = [f"checked {seen}; {how}"]
    if tally.removable.objects:
        lines.append(f"garbage: {_size(tally.removable)}; removed by the brokers, or now by: tidelog cluster gc")
    if tally.orphans.objects:
        lines.append(
            f"orphans: {_size(tally.orphans)} never committed; the brokers remove them, or: tidelog cluster gc"
        )
    if tally.recent.objects:
        lines.append(f"not in use, and too young to remove: {_size(tally.recent)}")
    found = f"{_many(tally.errors, 'error')}, {_many(tally.notes, 'note')}"
    lines.append(found if tally.errors or tally.notes else "nothing is wrong")
    return lines


@group.command("gc")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@settings_options
def gc(dry_run: bool, file: str | None, assignments: Sequence[str], as_json: bool) -> None:
    """Remove objects that nothing refers to and that are old enough.

    The brokers do the same in the background. Objects are removed when they have been dead for
    cluster.garbage-grace-ms. Orphans (uploaded and never committed) older than cluster.orphan-age-ms are declared
    dead, and removed after that time by the brokers, or by another run."""
    asyncio.run(_gc(settings_of(file, assignments), dry_run, as_json))


async def _gc(node: "NodeSettings", dry_run: bool, as_json: bool) -> None:
    async with _opened(node) as (tools, _):
        collected = await tools.collect(dry_run=dry_run)
    rows = show({}, as_json=as_json)
    if as_json:
        rows.row("collected", {"dry_run": dry_run, **_collected(collected)})
    would = "would be " if dry_run else ""
    rows.say(f"{would}removed: {_size(collected.removed)}")
    rows.say(f"{would}declared dead, to be removed after the grace: {_size(collected.declared_dead)}")
    rows.say(f"not in use, and too young to remove: {_size(collected.recent)}")
    rows.finish()


def _collected(collected: "Collected") -> dict[str, int]:
    return {
        f"{name}_{unit}": value
        for name, each in collected._asdict().items()
        for unit, value in each._asdict().items()
    }


def _size(each: "Count") -> str:
    return f"{_many(each.objects, 'object')} ({each.size_bytes / (1 << 20):,.1f} MiB)"


def _many(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'s' * (number != 1)}"
