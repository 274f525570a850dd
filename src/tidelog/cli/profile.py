"""`tidelog profile`: statistics of topics, as a table and as an HTML page."""

from collections.abc import Sequence
from pathlib import Path

import click

from tidelog.cli.cluster import broker_options, job_options, open_client, show
from tidelog.cli.output import Column, Fields, count, moment, record_progress, text


@click.command("profile")
@click.argument("topics", nargs=-1, metavar="[TOPIC]...")
@click.option(
    "--html", "page", type=click.Path(dir_okay=False, path_type=Path), help="Also write an HTML page with charts."
)
@job_options
@broker_options
def command(
    topics: Sequence[str], page: Path | None, master: str | None, conf: dict[str, str], bootstrap: str, as_json: bool
) -> None:
    """Read topics and show their number of records, sizes, time span and distribution of keys.

    \b
    tidelog profile orders clicks
    tidelog profile --html topics.html
    """
    from tidelog.spark.jobs import profile as job
    from tidelog.spark.jobs.page import render
    from tidelog.spark.jobs.workers import SMALL_RECORDS, run_units

    def share(fields: Fields) -> str:
        return f"{fields['top_key_share']:.1%}" if fields["top_keys"] else ""

    def sizes(fields: Fields) -> str:
        return " / ".join(f"{fields['value_size'][name]:,}" for name in ("p50", "p99", "max") if fields["value_size"])

    with open_client(bootstrap) as client:
        names = list(topics) or [row.name for row in client.topics() if not row.is_internal]
        units = job.plan(client, bootstrap, names)
        results = []
        total = sum(unit.size for unit in units)
        with record_progress("profiling", total) as advance:
            for part, facts in run_units(
                job.profile_unit, units, master=master, conf=conf, is_small=total < SMALL_RECORDS
            ):
                results.append((part, facts))
                advance(part.size)
        profiles = job.together(client, names, results)
    rows = show(
        {
            "profile": [
                text("topic"),
                count("partitions"),
                count("records"),
                count("value_bytes", "bytes"),
                Column("value size p50 / p99 / max", sizes, right=True),
                count("distinct_keys", "keys"),
                Column("top key", share, right=True),
                Column("skew", lambda fields: f"{fields['partition_skew']:.2f}", right=True),
                moment("first_ms", "first"),
                moment("last_ms", "last"),
            ]
        },
        as_json=as_json,
    )
    for profile in profiles:
        rows.row("profile", profile.as_row())
    if page is not None:
        page.write_text(render(profiles, bootstrap))
        rows.say(f"\nWrote {page}.")
    rows.finish()
