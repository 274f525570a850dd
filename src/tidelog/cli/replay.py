"""`tidelog replay`: copy a range of a topic to another topic."""

from collections.abc import Sequence
from pathlib import Path

import click

from tidelog.cli.cluster import START_HELP, broker_options, open_client, show, start_of
from tidelog.cli.output import count, exact, record_progress, text
from tidelog.errors import InvalidInput


@click.command("replay")
@click.argument("topic")
@click.option(
    "--to",
    "target",
    required=True,
    metavar="TOPIC",
    help="Topic to write to; created if the broker is configured to create topics.",
)
@click.option("-o", "--from", "start", default="earliest", show_default=True, help=f"Where to start: {START_HELP}.")
@click.option("-u", "--until", "end", default="latest", show_default=True, help="Where to end, in the same format.")
@click.option(
    "-p", "--partition", "partitions", type=int, multiple=True, help="Copy only this partition; may be repeated."
)
@click.option("--dry-run", is_flag=True, help="Show what would be copied, but do not copy it.")
@click.option("--again", is_flag=True, help="Copy again, even if this replay was done before.")
@click.option(
    "--journal",
    type=click.Path(path_type=Path),
    help="File that records the progress of the copy. [default: in your state directory]",
)
@broker_options
def command(
    topic: str,
    target: str,
    start: str,
    end: str,
    partitions: Sequence[int],
    dry_run: bool,
    again: bool,
    journal: Path | None,
    bootstrap: str,
    as_json: bool,
) -> None:
    """Copy records of TOPIC to another topic, with their keys, values, headers and timestamps.

    \b
    tidelog replay orders --to orders-test --from -1h
    tidelog replay orders --to orders-test --from 2026-11-15T08:00Z --until 2026-11-15T09:00Z --dry-run

    A record goes to the partition of the same number, or, if that does not exist, to the partition of its key. To
    continue a replay that was interrupted, give the same command again: no record is written twice.
    """
    if topic == target:
        raise InvalidInput("a topic cannot be replayed to itself; name another one with --to")
    context = click.get_current_context()
    begin, stop = (start_of(context, context.command.params[0], words) for words in (start, end))
    from tidelog.spark.jobs import replay as job

    path = journal or job.journal_path(bootstrap, topic, target, [start, end, *map(str, sorted(partitions))])
    shapes = {
        "range": [text("topic"), exact("partition"), exact("start"), exact("end"), count("records")],
        "replayed": [text("topic"), text("to"), count("records"), count("before", "copied earlier")],
    }
    rows = show(shapes, as_json=as_json)
    with open_client(bootstrap) as client:
        parts = job.plan(client, topic, begin, stop, partitions)
        if dry_run:
            for part in parts:
                rows.row("range", {**part._asdict(), "records": part.size})
            rows.finish()
            return
        if again:
            path.unlink(missing_ok=True)
        replay = job.Replay(client, target, parts, path)
        before = replay.copied
        if replay.is_resumed:
            done = "was done before; repeat it with --again" if not replay.left else "continues where it ended"
            rows.say(f"This replay {done}.")
        with record_progress(f"{topic} to {target}", replay.left) as advance:
            for copied in replay.copier.copy(replay.parts):
                advance(copied)
        fields = {"topic": topic, "to": target, "records": replay.copied, "before": before, "journal": str(path)}
    rows.row("replayed", fields)
    rows.finish()
