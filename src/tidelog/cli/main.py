"""The `tidelog` command: finds the subcommand, and turns every error into one line and an exit code.

exit code  meaning
0          done
1          the command failed, or found something wrong
2          the command line is wrong
130        interrupted
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from tidelog import __version__
from tidelog.errors import TidelogError

FAILED, INTERRUPTED = 1, 130

# name: (module, attribute, what the help says), so that neither `--help` nor another command imports it.
_COMMANDS = {
    "archive": ("tidelog.cli.archive", "command", "Export a topic to Parquet or Delta, each record exactly once."),
    "audit": ("tidelog.cli.audit", "command", "Check every CRC and look for missing offsets, in parallel."),
    "cluster": (
        "tidelog.cli.cluster_transfer",
        "group",
        "Show brokers and leaders, move and drain them; check, import, export.",
    ),
    "completion": ("tidelog.cli.completion", "command", "Print a shell completion script."),
    "config": ("tidelog.cli.serve", "config", "Show a broker's settings and where they come from."),
    "consume": ("tidelog.cli.consume", "command", "Read records from a topic."),
    "demo": ("tidelog.cli.demo", "command", "Run a broker and a Spark pipeline on sample events."),
    "group": ("tidelog.cli.group", "group", "List, describe, alter, seek and delete consumer groups."),
    "log": ("tidelog.cli.log", "group", "Inspect, verify and repair logs on disk."),
    "metadata": ("tidelog.cli.metadata", "group", "Inspect topics, groups and offsets on disk."),
    "pipeline": ("tidelog.cli.pipeline", "group", "Create, check, run and watch Spark pipelines on topics."),
    "produce": ("tidelog.cli.produce", "command", "Write lines to a topic."),
    "profile": ("tidelog.cli.profile", "command", "Show statistics of topics: sizes, times, keys."),
    "replay": ("tidelog.cli.replay", "command", "Copy a range of a topic to another topic."),
    "serve": ("tidelog.cli.serve", "serve", "Run a broker."),
    "sql": ("tidelog.cli.sql", "command", "Query topics with SQL."),
    "txn": ("tidelog.cli.txn", "group", "List, describe and abort transactions."),
    "topic": ("tidelog.cli.topic", "group", "Create, list, describe, alter and delete topics."),
}


class _LazyCommands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        module, attribute, _ = _COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in sorted(_COMMANDS.items())])


@click.group(
    cls=_LazyCommands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, prog_name="tidelog", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Tidelog: a log-based message broker in Python that speaks the Kafka protocol."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def run(arguments: Sequence[str]) -> int:
    """Run a command; returns the exit code of the process."""
    try:
        code = cli.main(list(arguments), prog_name="tidelog", standalone_mode=False)
        sys.stdout.flush()
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "tidelog"
        return _fail(f"{error.format_message()} Run '{command} --help' for usage.", error.exit_code)
    except click.ClickException as error:
        return _fail(error.format_message(), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        return _reader_is_gone()
    except TidelogError as error:
        return _fail(str(error), FAILED)
    except OSError as error:
        where = f": {os.fsdecode(error.filename)}" if error.filename is not None else ""
        return _fail(f"{error.strerror or error}{where}; check the path and its permissions", FAILED)
    return code if isinstance(code, int) else 0


def _fail(message: str, code: int) -> int:
    click.echo(f"tidelog: error: {' '.join(message.split())}", err=True)
    return code


def _reader_is_gone() -> int:
    """The reader of our pipe has ended (`| head`). The interpreter must not complain about it at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FAILED


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")  # a terminal that cannot show a character is no reason to fail
    sys.exit(run(sys.argv[1:]))
