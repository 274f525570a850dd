"""`tidelog log`: look into, verify and repair logs on disk, without a broker.

dump and verify only read, and may be used on the directory of a running broker; repair and sample hold its lock.
What reads and mends files is in tidelog.storage.local (inspect, verify, repair); here it is asked for and shown.
"""

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from random import Random

import click

from tidelog.cli.output import Fields, Rows, byte_progress, rows_for
from tidelog.errors import InvalidInput, StorageUnavailable
from tidelog.model import (
    NO_TIMESTAMP,
    LeaderEpoch,
    Offset,
    ProducerEpoch,
    ProducerId,
    TimestampMs,
    TopicPartition,
)
from tidelog.records.batch import BatchView
from tidelog.records.compression import Codec
from tidelog.records.record import BatchBuilder, decode, read_marker
from tidelog.settings import LogSettings
from tidelog.storage.local.aborted import ABORTED_ENTRY_SIZE, ABORTED_INDEX, decode_aborted
from tidelog.storage.local.checkpoint import CHECKPOINT, Checkpoint, decode_checkpoint
from tidelog.storage.local.compaction import STATE, decode_state
from tidelog.storage.local.files import Files, OsFiles
from tidelog.storage.local.index import OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE
from tidelog.storage.local.inspect import (
    DamagedRange,
    OffsetIndexCheck,
    PartitionPlace,
    TimeIndexCheck,
    WrongEntry,
    find_partitions,
    holder_of,
    list_partition,
    log_name,
    offset_entries,
    time_entries,
    walk_segment,
    with_next,
)
from tidelog.storage.local.repair import Repair
from tidelog.storage.local.scan import BatchScan
from tidelog.storage.local.segment import INDEX, INDEXES, LOG, TIME_INDEX, base_offset_of, segment_name
from tidelog.storage.local.store import LOCK, LOGS, LocalStore
from tidelog.storage.local.verify import Finding, PartitionCheck

_DEFAULT_LIMIT = 100
_EXISTING = click.Path(exists=True)
_EXISTING_DIRECTORY = click.Path(exists=True, file_okay=False)


@click.group(name="log")
def group() -> None:
    """Look into, verify and repair logs on disk, without a broker.

    A data directory holds logs/TOPIC/PARTITION/; every command takes it as a whole, or one topic's or partition's
    directory in it.
    """


# dump


class _Dump:
    """What to show, and of which offsets. `damaged` tells afterwards whether anything was."""

    def __init__(
        self,
        files: Files,
        rows: Rows,
        *,
        batches: bool,
        records: bool,
        indexes: bool,
        first: Offset,
        last: Offset | None,
        limit: int,
    ) -> None:
        self._files = files
        self._rows = rows
        self._batches = batches
        self._records = records
        self._indexes = indexes
        self._first = first
        self._last = last
        self._left = limit or sys.maxsize
        self.damaged = False

    @property
    def wants_details(self) -> bool:
        return self._batches or self._records or self._indexes

    @property
    def exhausted(self) -> bool:
        return self._left <= 0

    def partitions(self, places: list[PartitionPlace]) -> None:
        for place in places:
            listing = list_partition(self._files, place.directory)
            checkpoint = self._checkpoint(listing.path(CHECKPOINT)) if listing.has_checkpoint else None
            start = end = checkpoint.start_offset if checkpoint else 0
            if listing.segments:
                last = max(listing.segments)
                start = max(start, min(listing.segments))
                trusted = checkpoint.position if checkpoint and checkpoint.segment == last else 0
                end = checkpoint.offset if checkpoint and trusted else last
                file = self._files.open(listing.path(log_name(last)), writable=False)
                for batch in BatchScan(file, trusted, listing.segments[last], verify=False):
                    end = batch.header.next_offset
            self._rows.row(
                "partition",
                {
                    "topic": place.partition.topic if place.partition else None,
                    "partition": place.partition.partition if place.partition else None,
                    "directory": place.directory,
                    "start_offset": start,
                    "end_offset": end,
                    "segments": len(listing.segments),
                    "size_bytes": sum(listing.segments.values()),
                    "producers": len(checkpoint.producers) if checkpoint else 0,
                },
            )

    def partition(self, place: PartitionPlace) -> None:
        listing = list_partition(self._files, place.directory)
        for base, following in with_next(listing.segments):
            if self.exhausted or (self._last is not None and base > self._last):
                break
            if following is not None and following <= self._first:
                continue
            if self._batches or self._records or not self.wants_details:
                self.log_file(listing.path(log_name(base)), base)
            if self._indexes:
                for suffix in INDEXES:
                    if segment_name(base, suffix) in listing.indexes:
                        self.index_file(listing.path(segment_name(base, suffix)), base, suffix)
        if listing.has_checkpoint and (self._indexes or not self.wants_details):
            self.checkpoint_file(listing.path(CHECKPOINT), producers=self._indexes)
        if STATE in listing.others and (self._indexes or not self.wants_details):
            self.compaction_file(listing.path(STATE))

    def log_file(self, path: str, base: Offset) -> None:
        """Its batches or records if they are wanted, else one row about all of it."""
        file = self._files.open(path, writable=False)
        size = file.size()
        batches = records = 0
        end_offset, max_timestamp = base, NO_TIMESTAMP
        in_detail = self._batches or self._records
        damages: list[DamagedRange] = []
        if in_detail:
            self._rows.say(f"{os.path.basename(path)}:")
        for part in walk_segment(file, size, base):
            if isinstance(part, DamagedRange):
                damages.append(part)
                if in_detail:
                    self._damaged_range(path, part)
                continue
            header = part.header
            batches += 1
            records += header.record_count
            end_offset, max_timestamp = header.next_offset, max(max_timestamp, header.max_timestamp)
            if in_detail and self._in_range(header.base_offset, header.last_offset):
                self._show_batch(path, part)
            if self.exhausted:
                return
        if in_detail:
            return
        self._rows.row(
            "segment",
            {
                "file": path,
                "base_offset": base,
                "end_offset": end_offset,
                "size_bytes": size,
                "batches": batches,
                "records": records,
                "max_timestamp": max_timestamp,
            },
        )
        for part in damages:
            self._damaged_range(path, part)

    def _show_batch(self, path: str, batch: BatchView) -> None:
        header = batch.header
        if self._batches:
            self._rows.row(
                "batch",
                {
                    "file": path,
                    "position": batch.position,
                    "size_bytes": header.size,
                    "base_offset": header.base_offset,
                    "last_offset": header.last_offset,
                    "records": header.record_count,
                    "codec": Codec(header.codec_id).name.lower(),
                    "base_timestamp": header.base_timestamp,
                    "max_timestamp": header.max_timestamp,
                    "timestamp_type": header.timestamp_type.name.lower(),
                    "leader_epoch": header.leader_epoch,
                    "producer_id": header.producer_id,
                    "producer_epoch": header.producer_epoch,
                    "base_sequence": header.base_sequence,
                    "transactional": header.is_transactional,
                    "control": header.is_control,
                    "crc": header.crc,
                },
            )
            self._left -= not self._records
        if self._records:
            try:
                records = decode(batch)
                control = read_marker(batch).name if header.is_control else None
            except InvalidInput as error:
                self._damage(path, batch.position, header.base_offset, str(error), header.size)
                return
            for record in records:
                if self._in_range(record.offset, record.offset) and not self.exhausted:
                    self._rows.row("record", {"file": path, **record._asdict(), "control": control})
                    self._left -= 1

    def index_file(self, path: str, base: Offset, suffix: str) -> None:
        file = self._files.open(path, writable=False)
        content = file.pread(file.size(), 0)
        self._rows.say(f"{os.path.basename(path)}:")
        entry_size = {INDEX: OFFSET_ENTRY_SIZE, TIME_INDEX: TIME_ENTRY_SIZE}.get(suffix, ABORTED_ENTRY_SIZE)
        wrong: Iterator[WrongEntry]
        if suffix == INDEX:
            wrong = OffsetIndexCheck(base, content).out_of_order()
            for number, (relative, position) in enumerate(offset_entries(content)):
                fields = {"number": number, "offset": base + relative, "log_position": position}
                self._show_entry("offset_index_entry", path, base + relative, fields)
        elif suffix == ABORTED_INDEX:
            wrong = iter(())
            for number, aborted in enumerate(decode_aborted(content)):
                self._show_entry(
                    "aborted_transaction", path, aborted.last_offset, {"number": number, **aborted._asdict()}
                )
        else:
            wrong = TimeIndexCheck(base, content).out_of_order()
            for number, (timestamp, relative) in enumerate(time_entries(content)):
                fields = {"number": number, "timestamp": timestamp, "offset": base + relative}
                self._show_entry("time_index_entry", path, base + relative, fields)
        for entry in wrong:
            self._damage(path, entry.number * entry_size, entry.offset, entry.what, entry_size)
        rest = len(content) % entry_size
        if rest:
            self._damage(path, len(content) - rest, base, f"{rest} bytes behind the last whole entry", rest)

    def _show_entry(self, type_: str, path: str, offset: Offset, fields: Fields) -> None:
        if self._in_range(offset, offset):
            self._rows.row(type_, {"file": path, **fields})

    def checkpoint_file(self, path: str, *, producers: bool) -> None:
        checkpoint = self._checkpoint(path)
        if checkpoint is None:
            return
        self._rows.say(f"{os.path.basename(path)}:")
        fields = {name: getattr(checkpoint, name) for name in checkpoint.__slots__ if name != "producers"}
        self._rows.row("checkpoint", {"file": path, **fields})
        for id_, producer in checkpoint.known_producers() if producers else ():
            self._rows.row(
                "producer",
                {
                    "file": path,
                    "producer_id": id_,
                    "epoch": producer.epoch,
                    "last_seen_ms": producer.last_seen_ms,
                    "batches": list(producer.batches),
                },
            )

    def compaction_file(self, path: str) -> None:
        file = self._files.open(path, writable=False)
        state = decode_state(file.pread(file.size(), 0))
        if state is None:
            self._damage(path, 0, 0, "the checksum is wrong or the version unknown", file.size())
            return
        self._rows.say(f"{os.path.basename(path)}:")
        self._rows.row("compaction", {"file": path, **{name: getattr(state, name) for name in state.__slots__}})

    def lock_file(self, path: str) -> None:
        content = self._files.open(path, writable=False).pread(200, 0).decode(errors="replace").strip()
        self._rows.row(
            "lock", {"file": path, "content": content, "holder": holder_of(os.path.dirname(os.path.abspath(path)))}
        )

    def _checkpoint(self, path: str) -> Checkpoint | None:
        file = self._files.open(path, writable=False)
        content = file.pread(file.size(), 0)
        checkpoint = decode_checkpoint(content)
        if checkpoint is None:
            self._damage(path, 0, 0, "the checksum is wrong or the version unknown", len(content))
        return checkpoint

    def _in_range(self, first: Offset, last: Offset) -> bool:
        return last >= self._first and (self._last is None or first <= self._last)

    def _damaged_range(self, path: str, part: DamagedRange) -> None:
        self._damage(path, part.position, part.offset, f"{part.size} bytes: {part.reason}", part.size)

    def _damage(self, path: str, position: int, offset: Offset, what: str, size: int) -> None:
        self.damaged = True
        fields = {"file": path, "position": position, "offset": offset, "size_bytes": size, "what": what}
        self._rows.row("damage", fields)


def _dump_file(dump: _Dump, path: str) -> None:
    """A single file, by its name; one that was set aside (.cut, .unreachable, .tmp) like what it was."""
    name = os.path.basename(path)
    if name == LOCK:
        return dump.lock_file(path)
    if name.startswith(CHECKPOINT):
        return dump.checkpoint_file(path, producers=True)
    if name.startswith(STATE):
        return dump.compaction_file(path)
    for suffix in (LOG, *INDEXES):
        stem, found, _ = name.partition(suffix)
        base = base_offset_of(stem + found, suffix)
        if base is not None:
            return dump.log_file(path, base) if suffix == LOG else dump.index_file(path, base, suffix)
    raise StorageUnavailable(
        f"{path} is not a file of a log; those are named like {segment_name(0, LOG)}, {INDEX}, {TIME_INDEX}, "
        f"{ABORTED_INDEX}, {CHECKPOINT}, {STATE} or {LOCK}"
    )


@group.command()
@click.argument("path", type=_EXISTING)
@click.option("--batches", is_flag=True, help="Show every batch.")
@click.option("--records", is_flag=True, help="Show every record.")
@click.option("--indexes", is_flag=True, help="Show the index entries, the checkpoint and its producers.")
@click.option("--from", "first", type=click.IntRange(0), default=0, metavar="OFFSET", help="Begin at this offset.")
@click.option("--to", "last", type=click.IntRange(0), metavar="OFFSET", help="End with this offset.")
@click.option(
    "--limit",
    type=click.IntRange(0),
    help=f"Show so many batches or records; 0: all. Without it {_DEFAULT_LIMIT}, and all with --json.",
)
@click.option("--full", is_flag=True, help="Do not shorten keys and values.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, for programs.")
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
    """Show what is in a data directory, a partition's directory, or a single file.

    Of a data directory the partitions, of a partition its segments and checkpoint; more with --batches, --records and
    --indexes. A single file (.log, .index, .timeindex, .txnindex, checkpoint,
    lock) is shown with all it holds.

    With --json every line has a "type": partition, segment, batch, record, offset_index_entry, time_index_entry,
    aborted_transaction, checkpoint, producer, lock or damage. Keys and values are text, null, or {"hex": ...} if they
    are not UTF-8.
    docs/formats/local-log.md explains the fields.

    Damage is shown at its place, what is good behind it too, and the exit code is 1.
    """
    rows = rows_for(as_json=as_json, full=full)
    if limit is None:
        limit = 0 if as_json else _DEFAULT_LIMIT
    is_file = os.path.isfile(path)
    batches = batches or (is_file and not records)
    shown = _Dump(
        OsFiles(), rows, batches=batches, records=records, indexes=indexes, first=first, last=last, limit=limit
    )
    if is_file:
        _dump_file(shown, path)
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
                rows.say(f"\nLook into one: tidelog log dump {places[0].directory} --records --limit 10")
    if shown.exhausted and not as_json:
        rows.say(f"Shown are the first {limit}; there may be more (--limit, --from).")
    rows.finish()
    if shown.damaged:
        ctx.exit(1)


# verify


def _show_findings(rows: Rows, place: PartitionPlace, findings: Iterable[Finding]) -> tuple[int, int]:
    """How many errors and notes there were."""
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
@click.option("--deep", is_flag=True, help="Also decode every record.")
@click.option("--compacted", is_flag=True, help="The topics are compacted: missing offsets are legal.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, for programs.")
@click.pass_context
def verify(ctx: click.Context, directories: tuple[str, ...], deep: bool, compacted: bool, as_json: bool) -> None:
    """Find everything that is wrong in logs: batches, offsets, indexes, checkpoints, leftovers.

    Only reads, and takes no lock: the directory of a running broker may be verified. Goes on behind damage. Notes are
    no errors. The exit code is 1 if there is any error.

    With --json every finding is a line of type "finding" (severity error or note, kind, partition, file, position,
    offset, size_bytes, what), and the last line has type "summary".
    """
    files = OsFiles()
    places = [place for directory in directories for place in find_partitions(files, directory)]
    holders = {data: holder_of(data) for data in {place.data_directory for place in places} if data is not None}
    rows = rows_for(as_json=as_json)
    for data, holder in sorted(holders.items()):
        if holder is not None:
            rows.say(f"{data} is in use by {holder}: what it is writing now is not counted as damage.")
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
        rows.say("To mend what can be mended: tidelog log repair DIR")
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
@click.option("--yes", is_flag=True, help="Do it without asking.")
@click.option(
    "--cut-at-damage", is_flag=True, help="End a log at its first damage; what is cut is kept in .cut files."
)
@click.option("--compacted", is_flag=True, help="The topics are compacted: missing offsets are legal.")
@click.pass_context
def repair(ctx: click.Context, directory: str, yes: bool, cut_at_damage: bool, compacted: bool) -> None:
    """Mend logs: cut a torn tail, rebuild indexes, write a fresh checkpoint, remove leftovers.

    Says what it is going to do, and does it only with --yes or when you agree. The data directory must not be in use.

    Damage in the middle of a log is left as it is, because the records behind it are good; with --cut-at-damage the
    log ends there instead. The exit code is 1 if anything is still wrong.
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
    elif yes or (sys.stdin.isatty() and click.confirm("Do this?")):
        for repair_ in repairs:
            repair_.apply(_now_ms())
        click.echo("Done.")
    else:
        raise click.ClickException("nothing was changed; run again with --yes to do this")
    if left:
        if not cut_at_damage:
            click.echo(
                "With --cut-at-damage a log ends before its first damaged bytes; missing offsets stay missing."
            )
        ctx.exit(1)


def _now_ms() -> TimestampMs:
    return int(time.time() * 1000)


# sample

_SAMPLE_START_MS = 1_736_150_400_000  # 2025-01-06 08:00 UTC
_SAMPLE_SETTINGS = LogSettings(segment_bytes=4 << 10, index_interval_bytes=512)
_SAMPLE_PRODUCER = ProducerId(4711)


@group.command()
@click.argument("directory", type=click.Path(file_okay=False), metavar="DIR")
@click.option("--if-missing", is_flag=True, help="Do nothing if the directory is there already.")
def sample(directory: str, if_missing: bool) -> None:
    """Write a small data directory with clicks and orders, to try the other commands on. Always the same content."""
    if os.path.isdir(directory) and os.listdir(directory):
        if if_missing and os.path.isdir(f"{directory}/{LOGS}"):
            return
        raise StorageUnavailable(f"{directory} is not empty; choose another directory, or remove it first")
    store = LocalStore(directory, inline=True)
    try:
        for partition in (0, 1):
            _write(store, TopicPartition("clicks", partition), _sample_clicks(Random(partition)))  # noqa: S311, the same each time
        _write(store, TopicPartition("orders", 0), _sample_orders(Random(2)))  # noqa: S311
    finally:
        failures = store.close_now()
    for error in failures.values():
        raise error
    click.echo(f"Wrote a sample to {directory}. Look at it: tidelog log dump {directory}")


def _write(store: LocalStore, partition: TopicPartition, batches: Iterator[tuple[TimestampMs, bytearray]]) -> None:
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
    """Orders of an idempotent producer; every so often one is cancelled, which its tombstone says."""
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
