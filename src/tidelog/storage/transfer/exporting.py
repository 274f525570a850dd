"""Copies logs of a cluster, as of one moment, into a new data directory.

Each partition is written by `LogBuilder` and then checked: every file is read again, and must hold the same batches,
with right indexes. A file in the directory, `export`, lists the partitions that are complete and what each was made
from. An export that is repeated, after a crash or because an object was removed meanwhile, copies only those that are
missing or have changed. The directory has no metadata until everything is there: the caller adds it as the last
step.

Batches are written as they are, except for their leader epoch: a broker that is alone has only one.
"""

import asyncio
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any, NamedTuple
from uuid import uuid4

from tidelog.errors import InvalidInput, StorageError
from tidelog.model import FIRST_LEADER_EPOCH, PartitionIdentity, TimestampMs
from tidelog.records.batch import BatchView, place
from tidelog.records.crc import crc32c
from tidelog.settings import LogSettings
from tidelog.storage.local.building import LogBuilder
from tidelog.storage.local.files import Files, OsFiles, storage_error
from tidelog.storage.local.layout import LOGS, partition_directory
from tidelog.storage.local.store import LocalStore
from tidelog.storage.local.verify import PartitionCheck
from tidelog.storage.shared.log import producers_of
from tidelog.storage.shared.objects import ObjectStore
from tidelog.storage.shared.order import KnownLog
from tidelog.storage.shared.pieces import PIECE_BYTES, read_patiently
from tidelog.storage.shared.postgres.logs_as_of import LogAsOf
from tidelog.storage.transfer.importing import CopyDiffers, Progress
from tidelog.storage.transfer.tally import Tally, Totals
from tidelog.storage.whole_log import WholeLog

JOURNAL = "export"


class ExportedLog(NamedTuple):
    partition: PartitionIdentity
    source: Totals
    written: Totals
    is_copied: bool
    """False: an earlier run had written it."""


class Journal:
    """The file `export`: one JSON object per line. The first names the cluster and the export, each further one a
    partition that is complete. A line that a crash cut off does not count. OSError, ValueError, KeyError,
    TypeError."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.cluster_id: str | None = None
        self.export_id = uuid4().hex
        self.done: dict[tuple[bytes, int], tuple[str, Totals]] = {}
        self._size = 0
        for line in self._lines():
            if "cluster_id" in line:
                self.cluster_id, self.export_id = line["cluster_id"], line["export_id"]
            else:
                partition = (bytes.fromhex(line["topic_id"]), line["partition"])
                self.done[partition] = (line["made_from"], Totals(*line["totals"]))

    def _lines(self) -> list[dict[str, Any]]:
        try:
            with open(self._path, "rb") as file:
                content = file.read()
        except FileNotFoundError:
            return []
        self._size = content.rfind(b"\n") + 1
        return [json.loads(line) for line in content[: self._size].splitlines()]

    def begin(self, cluster_id: str) -> None:
        if self.cluster_id is None:
            self.cluster_id = cluster_id
            self._write({"cluster_id": cluster_id, "export_id": self.export_id})
            OsFiles().sync_directory(os.path.dirname(self._path) or ".")

    def note(self, partition: PartitionIdentity, made_from: str, totals: Totals) -> None:
        topic_id, number = partition.topic.topic_id, partition.number
        self.done[topic_id, number] = (made_from, totals)
        self._write({"topic_id": topic_id.hex(), "partition": number, "made_from": made_from, "totals": totals})

    def remove(self) -> None:
        with suppress(FileNotFoundError):
            os.remove(self._path)
        OsFiles().sync_directory(os.path.dirname(self._path) or ".")

    def _write(self, line: dict[str, Any]) -> None:
        content = json.dumps(line).encode() + b"\n"
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(descriptor, self._size)
            os.pwrite(descriptor, content, self._size)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._size += len(content)


class ExportStorage:
    """Use `begin_export`. Belongs to the running event loop, whose thread it blocks for the disk."""

    def __init__(
        self,
        data_dir: str,
        journal: Journal,
        objects: ObjectStore,
        *,
        clock: Callable[[], TimestampMs],
        files: Files | None = None,
    ) -> None:
        self._data_dir = data_dir.rstrip("/") or "/"
        self._journal = journal
        self._objects = objects
        self._clock = clock
        self._files: Files = files or OsFiles()
        self._lock = LocalStore(self._data_dir, files=self._files, inline=True)

    @property
    def export_id(self) -> str:
        """The same for all runs that complete one export."""
        return self._journal.export_id

    def is_done(self, log: LogAsOf) -> bool:
        """An earlier run has copied the log as it is now."""
        made_from, _ = self._journal.done.get(_place(log.partition), ("", Totals()))
        return made_from == _fingerprint(log.known)

    async def copy(self, log: LogAsOf, segment_bytes: int, progress: Progress) -> ExportedLog:
        """`progress` is told bytes that were copied. ObjectMissing: it was removed since the database was read.
        CopyDiffers, CorruptLog, or what the object store raises."""
        made_from = _fingerprint(log.known)
        is_done = self.is_done(log)
        if is_done:
            _, source = self._journal.done[_place(log.partition)]
        else:
            source = await self._write(log, segment_bytes, progress)
        written = self._check(log.partition, source)
        if not is_done:
            self._journal.note(log.partition, made_from, source)
        else:
            progress(source.size_bytes)
        return ExportedLog(log.partition, source, written, not is_done)

    def finish(self, wanted: Sequence[PartitionIdentity]) -> None:
        """Everything is copied. Topics that an earlier run has copied, and that are not wanted any more, are
        removed."""
        known = {partition.topic.topic_id for partition in wanted}
        for topic in {partition.topic for partition in self._lock.partitions()}:
            if topic.topic_id not in known:
                self._lock.delete_now(topic)

    def remove_journal(self) -> None:
        self._journal.remove()

    def close(self) -> None:
        self._lock.close_now()

    async def _write(self, log: LogAsOf, segment_bytes: int, progress: Progress) -> Totals:
        known = log.known
        settings = LogSettings(segment_bytes=segment_bytes)
        try:
            builder = LogBuilder(self._files, self._directory(log.partition), known.start_offset, settings)
            source = await self._add_batches(log, builder, progress)
            builder.finish(_whole(known), self._clock())
        except OSError as error:
            raise storage_error(error, f"write {log.partition.name}") from error
        return source

    async def _add_batches(self, log: LogAsOf, builder: LogBuilder, progress: Progress) -> Totals:
        crc = 0

        def add(batch: BatchView) -> None:
            nonlocal crc
            content = bytearray(batch.view)
            place(content, 0, batch.header, batch.header.base_offset, FIRST_LEADER_EPOCH)
            crc = crc32c(content, crc)
            builder.add(batch, content)

        tally = Tally(f"objects of {log.partition.name}", on_batch=add)
        for extent in log.known.extents:
            for at in range(0, extent.size, PIECE_BYTES):
                wanted = min(PIECE_BYTES, extent.size - at)
                tally.add(await read_patiently(self._objects, extent.key, extent.position + at, wanted))
                progress(wanted)
                await asyncio.sleep(0)
        return tally.finish()._replace(crc=crc)

    def _check(self, partition: PartitionIdentity, source: Totals) -> Totals:
        """Read what was written."""
        directory = self._directory(partition)
        check = PartitionCheck(self._files, directory)
        for finding in check:
            if finding.is_error:
                raise CopyDiffers(f"the copy of {partition.name} is damaged: {finding.path}: {finding.what}")
        written = Totals()
        for base in check.listing.segments:
            path = check.listing.path(f"{base:020d}.log")
            tally = Tally(path, written)
            file = self._files.open(path, writable=False)
            size = file.size()
            for at in range(0, size, PIECE_BYTES):
                tally.add(file.pread(min(PIECE_BYTES, size - at), at))
            written = tally.finish()
        if written != source:
            raise CopyDiffers(f"{partition.name} was read as {source}, but {directory} has {written}")
        return written

    def _directory(self, partition: PartitionIdentity) -> str:
        return f"{self._data_dir}/{LOGS}/{partition_directory(partition)}"


def begin_export(
    data_dir: str, cluster_id: str, objects: ObjectStore, *, clock: Callable[[], TimestampMs]
) -> ExportStorage:
    """InvalidInput if the directory holds anything but an unfinished export of this cluster."""
    try:
        os.makedirs(data_dir, mode=0o700, exist_ok=True)
        journal = Journal(os.path.join(data_dir, JOURNAL))
        if journal.cluster_id is None and set(os.listdir(data_dir)) - {JOURNAL}:
            raise InvalidInput(
                f"{data_dir} is not empty, and has no unfinished export: if you have exported to it before, that is"
                " complete; otherwise name a directory that does not exist yet"
            )
        if journal.cluster_id not in (None, cluster_id):
            raise InvalidInput(
                f"{data_dir} holds an unfinished export of the cluster {journal.cluster_id!r}, not of {cluster_id!r}"
            )
        journal.begin(cluster_id)
    except OSError as error:
        raise storage_error(error, f"export to {data_dir}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{data_dir}/{JOURNAL} cannot be read: {error!r}; export to another directory") from error
    return ExportStorage(data_dir, journal, objects, clock=clock)


def _place(partition: PartitionIdentity) -> tuple[bytes, int]:
    return partition.topic.topic_id, partition.number


def _whole(known: KnownLog) -> WholeLog:
    return WholeLog(
        known.start_offset,
        known.high_watermark,
        producers_of(known),
        known.aborted,
        known.cleaned.offset,
        known.cleaned.next_horizon_ms,
    )


def _fingerprint(known: KnownLog) -> str:
    """Equal for the same state of a log."""
    facts = (known.start_offset, known.high_watermark, tuple(known.cleaned), list(map(tuple, known.aborted)))
    extents = [tuple(extent) for extent in known.extents]
    return sha256(repr((facts, extents, known.snapshot and tuple(known.snapshot))).encode()).hexdigest()
