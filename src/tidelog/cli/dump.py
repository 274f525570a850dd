"""What `tidelog log dump` shows of a data directory, a partition or a file: every batch, record and entry at its
place, and damage too. Objects are in `dump_object.py`."""

import os
import sys

from tidelog.cli.dump_object import local_copy, show_object
from tidelog.cli.output import Fields, Rows
from tidelog.errors import InvalidInput, StorageUnavailable
from tidelog.model import NO_TIMESTAMP, Offset
from tidelog.records.batch import BatchView
from tidelog.records.compression import Codec
from tidelog.records.record import decode, read_marker
from tidelog.storage.local.tools import (
    ABORTED_ENTRY_SIZE,
    ABORTED_INDEX,
    CHECKPOINT,
    INDEX,
    INDEXES,
    LOCK,
    LOG,
    OFFSET_ENTRY_SIZE,
    STATE,
    TIME_ENTRY_SIZE,
    TIME_INDEX,
    BatchScan,
    Checkpoint,
    DamagedRange,
    Files,
    OffsetIndexCheck,
    PartitionPlace,
    TimeIndexCheck,
    WrongEntry,
    base_offset_of,
    decode_aborted,
    decode_checkpoint,
    decode_state,
    holder_of,
    list_partition,
    log_name,
    offset_entries,
    segment_name,
    time_entries,
    walk_segment,
    with_next,
)
from tidelog.storage.producers import Producers
from tidelog.storage.shared.inspecting import is_object


class Dump:
    """What to show, and of which offsets. `damaged` is True afterwards if damage was found."""

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
        self.rows = rows
        self._batches = batches
        self._records = records
        self.wants_indexes = indexes
        self._first = first
        self._last = last
        self._left = limit or sys.maxsize
        self.damaged = False

    @property
    def wants_details(self) -> bool:
        return self._batches or self._records or self.wants_indexes

    @property
    def exhausted(self) -> bool:
        return self._left <= 0

    def file(self, path: str) -> None:
        """A single file, by its name; a file that was set aside (.cut, .unreachable, .tmp) by the name it had
        before. A file with another name may be an object of a cluster's store."""
        name = os.path.basename(path)
        if name == LOCK:
            return self.lock_file(path)
        if name.startswith(CHECKPOINT):
            return self.checkpoint_file(path, producers=True)
        if name.startswith(STATE):
            return self.compaction_file(path)
        for suffix in (LOG, *INDEXES):
            stem, found, _ = name.partition(suffix)
            base = base_offset_of(stem + found, suffix)
            if base is not None:
                return self.log_file(path, base) if suffix == LOG else self.index_file(path, base, suffix)
        file = self._files.open(path, writable=False)
        if is_object(file.pread, file.size()):
            return show_object(self, path, path)
        raise StorageUnavailable(
            f"{path} is not a file of a log; their names are like {segment_name(0, LOG)}, {INDEX}, {TIME_INDEX}, "
            f"{ABORTED_INDEX}, {CHECKPOINT}, {STATE} or {LOCK}. "
            "It is no object of a cluster either: no footer at its end"
        )

    def url(self, url: str) -> None:
        """An object of a cluster's store."""
        with local_copy(url) as path:
            show_object(self, path, url)

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
            self.rows.row(
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
            if self.wants_indexes:
                for suffix in INDEXES:
                    if segment_name(base, suffix) in listing.indexes:
                        self.index_file(listing.path(segment_name(base, suffix)), base, suffix)
        if listing.has_checkpoint and (self.wants_indexes or not self.wants_details):
            self.checkpoint_file(listing.path(CHECKPOINT), producers=self.wants_indexes)
        if STATE in listing.others and (self.wants_indexes or not self.wants_details):
            self.compaction_file(listing.path(STATE))

    def log_file(self, path: str, base: Offset) -> None:
        """Its batches or records if they are wanted, else one row that sums it up."""
        file = self._files.open(path, writable=False)
        size = file.size()
        batches = records = 0
        end_offset, max_timestamp = base, NO_TIMESTAMP
        in_detail = self._batches or self._records
        damages: list[DamagedRange] = []
        if in_detail:
            self.rows.say(f"{os.path.basename(path)}:")
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
            if in_detail and self.in_range(header.base_offset, header.last_offset):
                self.show_batch(path, part)
            if self.exhausted:
                return
        if in_detail:
            return
        self.rows.row(
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

    def show_batch(self, path: str, batch: BatchView) -> None:
        header = batch.header
        if self._batches:
            self.rows.row(
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
                self.damage(path, batch.position, header.base_offset, str(error), header.size)
                return
            for record in records:
                if self.in_range(record.offset, record.offset) and not self.exhausted:
                    self.rows.row("record", {"file": path, **record._asdict(), "control": control})
                    self._left -= 1

    def index_file(self, path: str, base: Offset, suffix: str) -> None:
        file = self._files.open(path, writable=False)
        content = file.pread(file.size(), 0)
        self.rows.say(f"{os.path.basename(path)}:")
        entry_size = {INDEX: OFFSET_ENTRY_SIZE, TIME_INDEX: TIME_ENTRY_SIZE}.get(suffix, ABORTED_ENTRY_SIZE)
        wrong: list[WrongEntry] = []
        if suffix == INDEX:
            wrong += OffsetIndexCheck(base, content).out_of_order()
            for number, (relative, position) in enumerate(offset_entries(content)):
                fields = {"number": number, "offset": base + relative, "log_position": position}
                self._show_entry("offset_index_entry", path, base + relative, fields)
        elif suffix == ABORTED_INDEX:
            for number, aborted in enumerate(decode_aborted(content)):
                self._show_entry(
                    "aborted_transaction", path, aborted.last_offset, {"number": number, **aborted._asdict()}
                )
        else:
            wrong += TimeIndexCheck(base, content).out_of_order()
            for number, (timestamp, relative) in enumerate(time_entries(content)):
                fields = {"number": number, "timestamp": timestamp, "offset": base + relative}
                self._show_entry("time_index_entry", path, base + relative, fields)
        for entry in wrong:
            self.damage(path, entry.number * entry_size, entry.offset, entry.what, entry_size)
        rest = len(content) % entry_size
        if rest:
            self.damage(path, len(content) - rest, base, f"{rest} bytes after the last whole entry", rest)

    def _show_entry(self, type_: str, path: str, offset: Offset, fields: Fields) -> None:
        if self.in_range(offset, offset):
            self.rows.row(type_, {"file": path, **fields})

    def checkpoint_file(self, path: str, *, producers: bool) -> None:
        checkpoint = self._checkpoint(path)
        if checkpoint is None:
            return
        self.rows.say(f"{os.path.basename(path)}:")
        fields = {name: getattr(checkpoint, name) for name in checkpoint.__slots__ if name != "producers"}
        self.rows.row("checkpoint", {"file": path, **fields})
        if producers:
            self.show_producers(path, checkpoint.known_producers())

    def show_producers(self, path: str, producers: Producers) -> None:
        for id_, producer in producers:
            self.rows.row(
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
            self.damage(path, 0, 0, "the checksum is wrong or the version unknown", file.size())
            return
        self.rows.say(f"{os.path.basename(path)}:")
        self.rows.row("compaction", {"file": path, **{name: getattr(state, name) for name in state.__slots__}})

    def lock_file(self, path: str) -> None:
        content = self._files.open(path, writable=False).pread(200, 0).decode(errors="replace").strip()
        self.rows.row(
            "lock", {"file": path, "content": content, "holder": holder_of(os.path.dirname(os.path.abspath(path)))}
        )

    def _checkpoint(self, path: str) -> Checkpoint | None:
        file = self._files.open(path, writable=False)
        content = file.pread(file.size(), 0)
        checkpoint = decode_checkpoint(content)
        if checkpoint is None:
            self.damage(path, 0, 0, "the checksum is wrong or the version unknown", len(content))
        return checkpoint

    def in_range(self, first: Offset, last: Offset) -> bool:
        return last >= self._first and (self._last is None or first <= self._last)

    def _damaged_range(self, path: str, part: DamagedRange) -> None:
        self.damage(path, part.position, part.offset, f"{part.size} bytes: {part.reason}", part.size)

    def damage(self, path: str, position: int, offset: Offset, what: str, size: int) -> None:
        self.damaged = True
        fields = {"file": path, "position": position, "offset": offset, "size_bytes": size, "what": what}
        self.rows.row("damage", fields)
