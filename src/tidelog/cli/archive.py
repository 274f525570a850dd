"""`tidelog archive`: export a topic to Parquet or Delta, each record exactly once."""

from typing import Literal

import click

from tidelog.cli.cluster import broker_options, job_options, open_client, show
from tidelog.cli.output import count, record_progress, text
from tidelog.errors import InvalidInput


@click.command("archive")
@click.argument("topic")
@click.option("--to", "path", required=True, metavar="PATH", help="Output directory; created if it does not exist.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["parquet", "delta"]),
    default="parquet",
    show_default=True,
    help="Format of the output.",
)
@click.option(
    "--value-format",
    type=click.Choice(["binary", "json"]),
    default="binary",
    show_default=True,
    help="Format of the records' values.",
)
@click.option("--schema", help="Schema of JSON values, as DDL: 'id bigint, amount double'.")
@click.option(
    "--compression", default="zstd", show_default=True, help="Compression of the files: zstd, snappy, gzip, none."
)
@click.option(
    "--group", help="Consumer group that records the progress of the archive. [default: tidelog-archive.TOPIC]"
)
@click.option(
    "--hold-retention", is_flag=True, help="From now on, do not delete records by retention before they are archived."
)
@click.option("--skip-lost", is_flag=True, help="Continue if records were deleted before they were archived.")
@job_options
@broker_options
def command(
    topic: str,
    path: str,
    format_: Literal["parquet", "delta"],
    value_format: str,
    schema: str | None,
    compression: str,
    group: str | None,
    hold_retention: bool,
    skip_lost: bool,
    master: str | None,
    conf: dict[str, str],
    bootstrap: str,
    as_json: bool,
) -> None:
    """Export the records of TOPIC that are not archived yet to Parquet files or a Delta table, partitioned by day.

    \b
    tidelog archive orders --to lake/orders
    tidelog archive orders --to lake/orders --format delta --value-format json --schema 'id bigint, amount double'

    Each run continues where the last one ended, even if that was killed; it can be run by cron.
    """
    if "://" in path:
        raise InvalidInput(
            f"--to {path} is not a directory of this machine; mount it, or archive to a local directory and copy it"
        )
    if (value_format == "json") != (schema is not None):
        raise click.UsageError("--value-format json and --schema go together.")
    from tidelog.spark.jobs.archive import Archive, ArchiveSettings
    from tidelog.spark.jobs.ddl import parse_ddl

    if schema is not None:
        parse_ddl(schema)
    settings = ArchiveSettings(bootstrap, topic, path, format_, schema, compression, group=group)
    with open_client(bootstrap) as client:
        if hold_retention:
            client.alter_topic_configs(topic, {"tidelog.retention.wait.for.group": settings.group_name})
        archive = Archive(client, settings)
        try:
            lost = archive.skip_lost() if skip_lost else 0
            units = archive.plan()
            records = files = size = 0
            total = sum(unit.range.size for unit in units)
            with record_progress(f"archiving {topic}", total) as advance:
                for done in archive.run(units, master=master, conf=conf):
                    records += sum(file.rows for file in done.files)
                    files += len(done.files)
                    size += sum(file.size_bytes for file in done.files)
                    advance(done.range.size)
        finally:
            archive.close()
    rows = show(
        {"archived": [text("topic"), text("path"), count("records"), count("files"), count("size_bytes", "bytes")]},
        as_json=as_json,
    )
    if archive.is_resumed:
        rows.say("Finished what an earlier run had begun.")
    fields = {"topic": topic, "path": path, "records": records, "files": files, "size_bytes": size}
    rows.row("archived", {**fields, "format": format_, "lost": lost, "resumed": archive.is_resumed})
    rows.finish()
