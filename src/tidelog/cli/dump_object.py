"""What `tidelog log dump` shows of an object of a cluster's store: its footer, its partitions, and their batches or
records."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from tidelog.errors import InvalidInput
from tidelog.records.crc import crc32c
from tidelog.storage.local.tools import DamagedRange, File, OsFiles, walk_segment
from tidelog.storage.shared.inspecting import ObjectContents, StoredRegion, contents_of, download

if TYPE_CHECKING:
    from tidelog.cli.dump import Dump

_PIECE_BYTES = 4 << 20


def is_url(path: str) -> bool:
    return "://" in path


@contextmanager
def local_copy(url: str) -> Iterator[str]:
    """The path of the object's content: of the file itself, or of a temporary file that is removed afterwards."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise InvalidInput(f"{url} names another host; write file:///path/of/object")
        yield unquote(parts.path)
        return
    with tempfile.NamedTemporaryFile(prefix="tidelog-object-") as file:
        download(url, file)
        file.flush()
        yield file.name


def show_object(dump: "Dump", path: str, name: str) -> None:
    """CorruptLog if nothing is known of the object, because its footer is damaged."""
    file = OsFiles().open(path, writable=False)
    found = contents_of(file.pread, file.size(), name)
    dump.rows.row(
        "object",
        {
            "file": name,
            "kind": found.kind,
            "size_bytes": found.size,
            "footer_position": found.footer_position,
            "footer_bytes": found.size - found.footer_position,
            "partitions": len(found.regions),
        },
    )
    for region in found.regions:
        fields = region._asdict()
        fields["topic_id"] = region.topic_id.hex()
        fields["size_bytes"] = fields.pop("size")
        dump.rows.row("region", {"file": name, **fields})
    for region in found.regions:
        if dump.exhausted:
            return
        _show_region(dump, file, region, name)
    if dump.wants_indexes:
        _show_indexes(dump, found, name)


def _show_region(dump: "Dump", file: File, region: StoredRegion, name: str) -> None:
    end = region.position + region.size
    if _crc(file, region.position, end) != region.crc:
        dump.damage(name, region.position, region.base_offset, "the CRC in the footer does not match", region.size)
    dump.rows.say(f"partition {region.partition} of topic {region.topic_id.hex()}:")
    next_offset = region.base_offset
    for part in walk_segment(file, end, region.base_offset, start=region.position):
        if isinstance(part, DamagedRange):
            dump.damage(name, part.position, part.offset, f"{part.size} bytes: {part.reason}", part.size)
            continue
        next_offset = part.header.next_offset
        if dump.in_range(part.header.base_offset, part.header.last_offset):
            dump.show_batch(name, part)
        if dump.exhausted:
            return
    if next_offset != region.last_offset + 1:
        what = f"the batches end before offset {next_offset}, the footer says {region.last_offset + 1}"
        dump.damage(name, end, next_offset, what, 0)


def _crc(file: File, position: int, end: int) -> int:
    crc = 0
    while position < end and (piece := file.pread(min(_PIECE_BYTES, end - position), position)):
        crc = crc32c(piece, crc)
        position += len(piece)
    return crc


def _show_indexes(dump: "Dump", found: ObjectContents, name: str) -> None:
    for number, entry in enumerate(found.index):
        if dump.in_range(entry.offset, entry.offset):
            dump.rows.row("segment_index_entry", {"file": name, "number": number, **entry._asdict()})
    for number, aborted in enumerate(found.aborted):
        if dump.in_range(aborted.last_offset, aborted.last_offset):
            dump.rows.row("aborted_transaction", {"file": name, "number": number, **aborted._asdict()})
    dump.show_producers(name, found.producers)
