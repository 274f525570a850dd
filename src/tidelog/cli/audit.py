"""`tidelog audit`: check every CRC and look for missing offsets, in parallel."""

import os
from collections.abc import Sequence
from typing import Any

import click

from tidelog.cli.cluster import broker_options, job_options, open_client, show
from tidelog.cli.main import FAILED
from tidelog.cli.output import byte_progress, count, exact, record_progress, text


@click.command("audit")
@click.argument("topics", nargs=-1, metavar="[TOPIC]...")
@click.option(
    "--data-dir",
    type=click.Path(exists=True, file_okay=False),
    help="Read the files of this data directory instead of asking a broker.",
)
@click.option("--deep", is_flag=True, help="Also decode every record.")
@job_options
@broker_options
def command(
    topics: Sequence[str],
    data_dir: str | None,
    deep: bool,
    master: str | None,
    conf: dict[str, str],
    bootstrap: str,
    as_json: bool,
) -> None:
    """Check the CRC of every batch, and that no offset is missing. The exit code is 1 if something is wrong.

    \b
    tidelog audit                           everything that the broker serves
    tidelog audit orders --deep             one topic, record by record
    tidelog audit --data-dir tidelog-data   files and their indexes, without a broker
    """
    from tidelog.spark.jobs import audit as job
    from tidelog.spark.jobs.workers import SMALL_BYTES, SMALL_RECORDS, run_units

    results: list[Any] = []
    if data_dir is not None:
        where = data_dir if master is None else os.path.abspath(data_dir)  # workers have other working directories
        directories = job.plan_directory(where, topics, deep=deep)
        sizes = {(unit.topic, unit.partition): unit.size for unit in directories}
        total = sum(sizes.values())
        with byte_progress("checking", total) as advance:
            for result in run_units(
                job.audit_directory, directories, master=master, conf=conf, is_small=total < SMALL_BYTES
            ):
                results.append(result)
                advance(sizes[result.topic, result.partition])
    else:
        with open_client(bootstrap) as client:
            units = job.plan_broker(client, bootstrap, topics, deep=deep)
        total = sum(unit.size for unit in units)
        with record_progress("checking", total) as advance:
            for result in run_units(
                job.audit_broker, units, master=master, conf=conf, is_small=total < SMALL_RECORDS
            ):
                results.append(result)
                advance(result.records)
    rows = show(
        {
            "partition": [
                text("topic"),
                exact("partition"),
                count("batches"),
                count("records"),
                count("size_bytes", "bytes"),
                count("errors"),
            ],
            "problem": [text("severity", ""), text("topic"), exact("partition"), exact("offset"), text("what")],
            "audited": [count("partitions"), count("batches"), count("records"), count("errors")],
        },
        as_json=as_json,
    )
    audited = list(job.by_partition(results))
    errors = 0
    for one in audited:
        wrong = sum(problem.severity == "error" for problem in one.problems)
        errors += wrong
        rows.row("partition", {**one._asdict(), "problems": len(one.problems), "errors": wrong})
    rows.say("")
    for one in audited:
        for problem in one.problems:
            rows.row("problem", problem._asdict())
    totals = {name: sum(getattr(one, name) for one in audited) for name in ("batches", "records", "size_bytes")}
    rows.row("audited", {"partitions": len(audited), **totals, "errors": errors})
    rows.say("" if errors else "No errors found.")
    rows.finish()
    if errors:
        click.get_current_context().exit(FAILED)
