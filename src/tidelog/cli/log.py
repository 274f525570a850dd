"""`tidelog log`: inspect, verify and repair logs on disk, without a broker.

dump and verify only read, and may be used on the directory of a running broker; repair and sample hold its lock.
The work is done by tidelog.storage.local (inspect, verify, repair); this module has the commands and their output.
"""

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from random import Random

import click

from tidelog.cli.dump import Dump
from tidelog.cli.dump_object import is_url
from tidelog.cli.output import Rows, byte_progress, rows_for
from tidelog.errors import StorageUnavailable
from tidelog.model import (
    LeaderEpoch,
    Offset,
    PartitionIdentity,
    ProducerEpoch,
    ProducerId,
    TimestampMs,
    TopicIdentity,
)
from tidelog.records.compression import Codec
from tidelog.records.record import BatchBuilder
from tidelog.settings import LogSettings
from tidelog.storage.local.tools import (
    LOCK,
    LOGS,
    Finding,
    LocalStore,
    OsFiles,
    PartitionCheck,
    PartitionPlace,
    Repair,
    find_partitions,
    holder_of,
    list_partition,
    with_topic_id,
)

_DEFAULT_LIMIT = 100


class _LogPath(click.Path):
    """A path that exists, perhaps only after the id is added to the name of a topic."""

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        return super().convert(with_topic_id(os.fspath(value)), param, ctx)


class _LogPathOrUrl(_LogPath):
    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        return value if is_url(os.fspath(value)) else super().convert(value, param, ctx)


_EXISTING = _LogPathOrUrl(exists=True)
_EXISTING_DIRECTORY = _LogPath(exists=True, file_okay=False)


@click.group(name="log")
def group() -> None:
    """Inspect, verify and repair logs on disk, without a broker.

    A data directory has logs in logs/TOPIC~ID/PARTITION/. Every command accepts a data directory, or the directory of
    a topic or a partition in it. The ID may be left out: DATA_DIR/logs/TOPIC/PARTITION.
    """


# dump


@group.command()
@click.argument("path", type=_EXISTING)
@click.option("--batches", is_flag=True, help="Show every batch.")
@click.option("--records", is_flag=True, help="Show every record.")
@click.option("--indexes", is_flag=True, help="Show index entries, the checkpoint and its producers.")
@click.option("--from", "first", type=click.IntRange(0), default=0, metavar="OFFSET", help="First offset to show.")
@click.option("--to", "last", type=click.IntRange(0), metavar="OFFSET", help="Last offset to show.")
@click.option(
    "--limit",
    type=click.IntRange(0),
    metavar="N",
    help=f"Show at most N batches or records; 0: all. [default: {_DEFAULT_LIMIT}; all with --json]",
)
@click.option("--full", is_flag=True, help="Do not shorten keys and values.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.pass_context
def dump(
    ctx: click.Context,
    path: str,
    batches: bool,
    records: bool,
    indexes: bool,
    first: Offset,
    last: Offset | None,
    limit: int | None,
    full: bool,
    as_json: bool,
) -> None:
    """Show the contents of a data directory, of a partition's directory, of a single file, or of an object of a
    cluster.

    For a data directory its partitions are shown, for a partition its segments and its checkpoint; --batches,
    --records and --indexes show more. A single file (.log, .index, .timeindex, .txnindex, checkpoint, lock) is shown
    in full.

    An object (a bundle or a segment) is named by its URL in the store, such as s3://bucket/prefix/b/HOUR/ID with the
    credentials in the environment, or by the path of its file. Its footer, its partitions and their batches are
    shown, with --indexes also the index, aborted transactions and producers of a segment. Whether the batches are
    part of their logs is known only to the database: see tidelog cluster check.

    With --json every line has a "type": partition, segment, batch, record, offset_index_entry, time_index_entry,
    aborted_transaction, checkpoint, producer, lock or damage; for an object also object, region or
    segment_index_entry. Keys and values are text, null, or {"hex": ...} if they are not UTF-8.
    docs/formats/local-log.md explains the fields.

    Damage is reported at its place, and what follows is shown too. The exit code is 1 if there is any.
    """
    rows = rows_for(as_json=as_json, full=full)
    if limit is None:
        limit = 0 if as_json else _DEFAULT_LIMIT
    is_file = is_url(path) or os.path.isfile(path)
    batches = batches or (is_file and not records)
    shown = Dump(
        OsFiles(), rows, batches=batches, records=records, indexes=indexes, first=first, last=last, limit=limit
    )
    if is_url(path):
        shown.url(path)
    elif is_file:
        shown.file(path)
    else:
        places = find_partitions(OsFiles(), path)
        if shown.wants_details or (len(places) == 1 and places[0].directory == path.rstrip("/")):
            for place in places:
                if len(places) > 1 and not shown.exhausted:
                    rows.say(f"{place.name}:")
                shown.partition(place)
        else:
            shown.partitions(places)
            if places:
                rows.say(f"\nTo show records: tidelog log dump {places[0].directory} --records --limit 10")
    if shown.exhausted and not as_json:
        rows.say(f"Only the first {limit} are shown; see --limit and --from.")
    rows.finish()
    if shown.damaged:
        ctx.exit(1)


# verify


def _show_findings(rows: Rows, place: PartitionPlace, findings: Iterable[Finding]) -> tuple[int, int]:
    """The numbers of errors and of notes."""
    errors = notes = 0
    for finding in findings:
        errors += finding.is_error
        notes += not finding.is_error
        fields = {
            "severity": finding.severity.value,
            "kind": finding.kind.value,
            "partition": str(place.partition) if place.partition else None,
            "file": finding.path,
            "position": finding.position,
            "offset": finding.offset,
            "size_bytes": finding.size,
            "what": finding.what,
        }
        rows.row("finding", fields)
    return errors, notes


@group.command()
@click.argument("directories", type=_EXISTING_DIRECTORY, nargs=-1, required=True, metavar="DIR...")
@click.option("--deep", is_flag=True, help="Also decompress and check every record.")
@click.option("--compacted", is_flag=True, help="The topics are compacted: missing offsets are no error.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.pass_context
def verify(ctx: click.Context, directories: tuple[str, ...], deep: bool, compacted: bool, as_json: bool) -> None:
    """Check logs for damage: batches, offsets, indexes, checkpoints, leftover files.

    This only reads and takes no lock, so the directory of a running broker may be verified. Checking continues after
    damage. Notes are not errors. The exit code is 1 if there is any error.

    With --json every finding is a line of type "finding" (severity error or note, kind, partition, file, position,
    offset, size_bytes, what), and the last line has type "summary".
    """
    files = OsFiles()
    places = [place for directory in directories for place in find_partitions(files, directory)]
    holders = {data: holder_of(data) for data in {place.data_directory for place in places} if data is not None}
    rows = rows_for(as_json=as_json)
    for data, holder in sorted(holders.items()):
        if holder is not None:
            rows.say(f"{data} is in use by {holder}: unfinished writes are not counted as damage.")
    total = sum(sum(list_partition(files, place.directory).segments.values()) for place in places)
    counts = {"partitions": len(places), "segments": 0, "batches": 0, "records": 0, "size_bytes": 0}
    errors = notes = 0
    with byte_progress("verifying", total) as progress:
        for place in places:
            in_use = place.data_directory is not None and holders[place.data_directory] is not None
            check = PartitionCheck(
                files, place.directory, in_use=in_use, deep=deep, compacted=compacted, progress=progress
            )
            found = _show_findings(rows, place, check)
            errors, notes = errors + found[0], notes + found[1]
            for name, count in check.tally._asdict().items():
                counts[name] += count
    verdict = "sound" if not errors else _many(errors, "error")
    if notes:
        verdict += f", {_many(notes, 'note')}"
    measured = [_many(counts[f"{name}s"], name) for name in ("partition", "segment")]
    measured += [_many(counts["batches"], "batch"), _many(counts["records"], "record")]
    rows.say(f"{', '.join(measured)}, {_many(counts['size_bytes'], 'byte')}: {verdict}")
    if errors:
        rows.say("To repair: tidelog log repair DIR")
    if as_json:
        rows.row("summary", {**counts, "errors": errors, "notes": notes})
    rows.finish()
    if errors:
        ctx.exit(1)


def _many(number: int, thing: str) -> str:
    plural = "es" if thing.endswith("ch") else "s"
    return f"{number:,} {thing}{'' if number == 1 else plural}"


# repair


@group.command()
@click.argument("directory", type=_EXISTING_DIRECTORY, metavar="DIR")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option(
    "--cut-at-damage", is_flag=True, help="Cut a log off at its first damage; the rest is kept in .cut files."
)
@click.option("--compacted", is_flag=True, help="The topics are compacted: missing offsets are no error.")
@click.pass_context
def repair(ctx: click.Context, directory: str, yes: bool, cut_at_damage: bool, compacted: bool) -> None:
    """Repair logs: cut off an incomplete last write, rebuild indexes and checkpoints, remove leftover files.

    The steps are shown first, and are carried out only with --yes or after confirmation. The data directory must not
    be in use.

    Damage in the middle of a log is left as it is, because the records after it are good; with --cut-at-damage the
    log is cut off there. The exit code is 1 if damage is left.
    """
    files = OsFiles()
    places = find_partitions(files, directory)
    data_directories = sorted({place.data_directory for place in places if place.data_directory is not None})
    _locks = [files.lock(f"{data}/{LOCK}", f"process {os.getpid()} (repair)\n") for data in data_directories]
    repairs = []
    left = 0
    for place in places:
        repair_ = Repair(files, place.directory, cut_at_damage=cut_at_damage, compacted=compacted)
        plan = repair_.plan
        left += len(plan.left)
        if plan.steps:
            repairs.append(repair_)
        if plan.steps or plan.left:
            click.echo(f"{place.directory}:")
        for step in plan.steps:
            click.echo(f"  {step}")
        for finding in plan.left:
            name = os.path.basename(finding.path)
            click.echo(f"  leave {name}, position {finding.position} (offset {finding.offset}): {finding.what}")
    if not repairs:
        click.echo("Nothing to repair." if not left else "Nothing else can be repaired.")
    elif yes or (sys.stdin.isatty() and click.confirm("Carry out these steps?")):
        for repair_ in repairs:
            repair_.apply(_now_ms())
        click.echo("Done.")
    else:
        raise click.ClickException("nothing was changed; run again with --yes to carry out these steps")
    if left:
        if not cut_at_damage:
            click.echo(
                "With --cut-at-damage a log is cut off before its first damaged bytes; missing offsets stay missing."
            )
        ctx.exit(1)


def _now_ms() -> TimestampMs:
    return int(time.time() * 1000)


# sample

_SAMPLE_START_MS = 1_736_150_400_000  # 2025-01-06 08:00 UTC
_SAMPLE_SETTINGS = LogSettings(segment_bytes=4 << 10, index_interval_bytes=512)
_SAMPLE_PRODUCER = ProducerId(4711)
SAMPLE_CLICKS = TopicIdentity("clicks", bytes.fromhex("c1c45c1c45c1c45c1c45c1c45c1c45c1"))
SAMPLE_ORDERS = TopicIdentity("orders", bytes.fromhex("0bde50bde50bde50bde50bde50bde50b"))


@group.command()
@click.argument("directory", type=click.Path(file_okay=False), metavar="DIR")
@click.option("--if-missing", is_flag=True, help="Do nothing if the directory already has data.")
def sample(directory: str, if_missing: bool) -> None:
    """Write a small data directory with sample clicks and orders, to try the other commands on."""
    if os.path.isdir(directory) and os.listdir(directory):
        if if_missing and os.path.isdir(f"{directory}/{LOGS}"):
            return
        raise StorageUnavailable(f"{directory} is not empty; choose another directory, or remove it first")
    store = LocalStore(directory, inline=True)
    try:
        for partition in (0, 1):
            _write(store, SAMPLE_CLICKS.partition(partition), _sample_clicks(Random(partition)))  # noqa: S311, the same each time
        _write(store, SAMPLE_ORDERS.partition(0), _sample_orders(Random(2)))  # noqa: S311
    finally:
        failures = store.close_now()
    for error in failures.values():
        raise error
    click.echo(f"Wrote a sample to {directory}. To inspect it: tidelog log dump {directory}")


def _write(store: LocalStore, partition: PartitionIdentity, batches: Iterator[tuple[TimestampMs, bytearray]]) -> None:
    log = store.open(partition, _SAMPLE_SETTINGS, _SAMPLE_START_MS)
    for now_ms, batch in batches:
        log.append(batch, now_ms=now_ms, leader_epoch=LeaderEpoch(0), durable=False)


def _sample_clicks(chance: Random) -> Iterator[tuple[TimestampMs, bytearray]]:
    """Batches of ten clicks, with every codec in turn."""
    now_ms = _SAMPLE_START_MS
    for number in range(15):
        builder = BatchBuilder((Codec.NONE, Codec.ZSTD, Codec.LZ4, Codec.SNAPPY)[number % 4])
        for _ in range(10):
            now_ms += chance.randrange(50, 3000)
            user = f"user-{chance.randrange(40):02d}"
            page = chance.choice(("/", "/search", "/cart", "/product/17", "/product/23"))
            value = {"user": user, "page": page, "ms": chance.randrange(8, 400)}
            agent = chance.choice((b"web", b"ios", b"android"))
            builder.append(
                json.dumps(value).encode(), key=user.encode(), timestamp=now_ms, headers=[("source", agent)]
            )
        yield now_ms, builder.build()


def _sample_orders(chance: Random) -> Iterator[tuple[TimestampMs, bytearray]]:
    """Orders of an idempotent producer; some are cancelled by a tombstone."""
    now_ms = _SAMPLE_START_MS
    sequence = 0
    for _ in range(40):
        builder = BatchBuilder(
            Codec.GZIP if sequence % 3 == 0 else Codec.NONE,
            producer_id=_SAMPLE_PRODUCER,
            producer_epoch=ProducerEpoch(0),
            base_sequence=sequence,
        )
        for _ in range(chance.randrange(1, 6)):
            now_ms += chance.randrange(1000, 60_000)
            sequence += 1
            key = f"order-{sequence:04d}".encode()
            value = {
                "order": sequence,
                "user": f"user-{chance.randrange(40):02d}",
                "cents": chance.randrange(99, 9999),
            }
            builder.append(json.dumps(value).encode(), key=key, timestamp=now_ms, headers=[("schema", b"order/1")])
            if sequence % 25 == 0:
                sequence += 1
                builder.append(None, key=key, timestamp=now_ms + 500, headers=[("reason", b"cancelled")])
        yield now_ms, builder.build()
