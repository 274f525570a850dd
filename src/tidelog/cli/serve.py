"""`tidelog serve`: the broker in the foreground, until Ctrl-C or SIGTERM. `tidelog config` shows its settings."""

import asyncio
import contextlib
import gc
import json
import os
import resource
import signal
import sys
from typing import TYPE_CHECKING, Any

import click

from tidelog.cli.configuration import KAFKA, KEYS, Configuration, load, shown
from tidelog.errors import InvalidSettings

if TYPE_CHECKING:
    from tidelog.node import Node

_ENOUGH_FILES = 65_536


def _settings_options(command: Any) -> Any:  # noqa: ANN401  (click's own decorators are untyped)
    for option in (
        click.option(
            "--set", "assignments", multiple=True, metavar="NAME=VALUE", help="Set any setting; may be repeated."
        ),
        click.option("--listen", multiple=True, metavar="HOST:PORT", help="Address to listen on; may be repeated."),
        click.option("--data-dir", metavar="DIR", help="Directory of all data. [default: tidelog-data]"),
        click.option(
            "--node-id", metavar="ID", help="Id of this broker; auto in a cluster: an unused one. [default: 0]"
        ),
        click.option(
            "--config",
            "file",
            envvar="TIDELOG_CONFIG",
            metavar="FILE",
            help="Settings file in TOML. [default: tidelog.toml]",
        ),
    ):
        command = option(command)
    return command


def _load(
    file: str | None,
    node_id: str | None,
    data_dir: str | None,
    listen: tuple[str, ...],
    assignments: tuple[str, ...],
) -> Configuration:
    flags: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise click.UsageError(f"--set must be NAME=VALUE, not {assignment!r}.")
        flags[name.strip()] = value
    if data_dir is not None:
        flags["data-dir"] = data_dir
    if node_id is not None:
        flags["node-id"] = node_id
    if listen:
        flags["listeners"] = list(listen)
    try:
        return load(file, flags)
    except InvalidSettings as error:
        for problem in error.problems:
            click.echo(f"tidelog: error: {problem}", err=True)
        raise SystemExit(1) from None


@click.command("serve")
@_settings_options
def serve(
    file: str | None,
    node_id: str | None,
    data_dir: str | None,
    listen: tuple[str, ...],
    assignments: tuple[str, ...],
) -> None:
    """Run a broker until Ctrl-C or SIGTERM."""
    configuration = _load(file, node_id, data_dir, listen, assignments)
    from tidelog.cli.logging_setup import configure_logs

    configure_logs(configuration.log_level, configuration.log_format)
    _raise_the_limit_of_open_files()
    os.umask(0o077)  # also for files that libraries create: records are private
    asyncio.run(_serve(configuration))


def _raise_the_limit_of_open_files() -> None:
    """To the hard limit, at most: each connection and each segment in use has one or more open files. Shells often
    start programs with 1,024, for old programs that cannot use more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH_FILES if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):  # the system has another limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _serve(configuration: Configuration) -> None:
    from tidelog.node import Node

    node = Node(configuration.node)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    if not await _started(node, stop):
        return
    first = str(node.listeners[0])
    click.echo(f"Tidelog listens on {', '.join(map(str, node.listeners))}, data in {configuration.node.data_dir}")
    if sys.stdout.isatty():
        at = "" if first == "127.0.0.1:9092" else f" --bootstrap {first}"
        click.echo(
            f"\nTry in another terminal:\n"
            f"  tidelog topic create hello --partitions 3{at}\n"
            f"  echo 'hello world' | tidelog produce hello{at}\n"
            f"  tidelog consume hello --from earliest{at}\n\n"
            f"Press Ctrl-C to stop."
        )
    sys.stdout.flush()
    _tell_if_checks_are_slow()
    gc.collect()
    gc.freeze()  # what is there now is never garbage, and scanning it took 30 ms, which stalled the loop
    await stop.wait()
    click.echo("stopping", err=True)
    await node.stop()


async def _started(node: "Node", stop: asyncio.Event) -> bool:
    """False if the broker was told to stop meanwhile. A broker of a cluster that cannot reach its database may start
    for a long time."""
    if node.settings.cluster is None:
        await node.start()
        return True
    starting, told = asyncio.create_task(node.start()), asyncio.create_task(stop.wait())
    await asyncio.wait((starting, told), return_when=asyncio.FIRST_COMPLETED)
    told.cancel()
    if starting.done():
        starting.result()
        return True
    click.echo("stopping", err=True)
    starting.cancel()
    await asyncio.wait((starting,))
    return False


def _tell_if_checks_are_slow() -> None:
    from tidelog.records.walk import IS_COMPILED

    if not IS_COMPILED:
        import structlog

        structlog.get_logger("tidelog.serve").warning(
            "batches are checked in Python, which is slow, so by default only some of them are; `pip install`"
            " compiles the checks if there is a C compiler (docs/adr/0015-batches-are-checked-at-the-door.md)"
        )


@click.command("config")
@_settings_options
@click.option("--json", "as_json", is_flag=True, help="Print the settings as one JSON array.")
def config(
    file: str | None,
    node_id: str | None,
    data_dir: str | None,
    listen: tuple[str, ...],
    assignments: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show the settings in force and where each one comes from."""
    configuration = _load(file, node_id, data_dir, listen, assignments)
    rows = [
        {
            "name": name,
            "value": ", ".join(map(str, each.value)) if isinstance(each.value, list) else shown(name, each),
            "source": each.source,
            "help": KEYS[name].help if name in KEYS else "A Kafka broker config.",
        }
        for name, each in sorted(configuration.given.items(), key=lambda item: (item[0].startswith(KAFKA), item[0]))
    ]
    if as_json:
        click.echo(json.dumps(rows))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("name", "value", "source", "help"):
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(str(row[column]) for column in ("name", "value", "source", "help")))
    Console().print(table)
