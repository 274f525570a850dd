"""`tidelog replay`: a stretch of a topic to another one."""

from collections.abc import Sequence
from pathlib import Path

import click

from tidelog.cli.cluster import START_HELP, broker_options, open_client, show, start_of
from tidelog.cli.output import count, exact, record_progress, text
from tidelog.errors import InvalidInput


@click.command("replay")
@click.argument("topic")
@click.option("--to", "target", required=True, metavar="TOPIC", help="Where to; made if the broker does so.")
@click.option("-o", "--from", "start", default="earliest", show_default=True, help=f"The first: {START_HELP}.")
@click.option("-u", "--until", "end", default="latest", show_default=True, help="Up to here, in the same words.")
@click.option("-p", "--partition", "partitions", type=int, multiple=True, help="Only this one; may be repeated.")
@click.option("--dry-run", is_flag=True, help="Only say what would be copied.")
@click.option("--again", is_flag=True, help="Also if this replay was done before.")
@click.option(
    "--journal", type=click.Path(path_type=Path), help="Where it is kept what is copied. [default: your state folder]"
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
    """Write records of TOPIC to another topic: keys, values, headers and timestamps as they are.

    \b
    tidelog replay orders --to orders-test --from -1h
    tidelog replay orders --to orders-test --from 2026-11-15T08:00Z --until 2026-11-15T09:00Z --dry-run

    A record goes to the partition of the same number, or where its key belongs if there is none. A replay that was
    cut short goes on when the same command is given again, without writing anything twice.
    """
    if topic == target:
        raise InvalidInput("a topic cannot be replayed to itself; name another one with --to")
    context = click.get_current_context()
    begin, stop = (start_of(context, context.command.params[0], words) for words in (start, end))
    from tidelog.spark.jobs import replay as job

    path = journal or job.journal_path(bootstrap, topic, target, [start, end, *map(str, sorted(partitions))])
    shapes = {
        "range": [text("topic"), exact("partition"), exact("start"), exact("end"), count("records")],
        "replayed": [text("topic"), text("to"), count("records"), count("before", "of them earlier")],
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
            done = "was done before; --again does it once more" if not replay.left else "goes on where it ended"
            rows.say(f"This replay {done}.")
        with record_progress(f"{topic} to {target}", replay.left) as advance:
            for copied in replay.copier.copy(replay.parts):
                advance(copied)
        fields = {"topic": topic, "to": target, "records": replay.copied, "before": before, "journal": str(path)}
    rows.row("replayed", fields)
    rows.finish()
