"""Rows as tables for people, or as one JSON object per line for programs.

A command describes what it has as rows: a type and fields. `JsonRows` writes them as they are; `TableRows` gathers
rows of one type into a table, with the columns that `_shapes` has for the type. rich is imported when the first table
is drawn.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import click

if TYPE_CHECKING:
    from rich.console import Console

Fields: TypeAlias = Mapping[str, Any]

_ROWS_PER_TABLE = 1000  # a longer listing comes in several tables, so that it starts at once and memory stays bounded
_PIPE_WIDTH = 100_000  # nothing is shortened to fit when nobody is looking
_SHOWN_CHARACTERS = 60


class Column(NamedTuple):
    title: str
    show: Callable[[Fields], str]
    right: bool = False


Shape: TypeAlias = Sequence[Column] | Callable[[Fields], str]
"""How a type of row looks: the columns of a table, or a line between the tables."""


class Rows(Protocol):
    def row(self, type_: str, fields: Fields) -> None: ...
    def say(self, line: str) -> None:
        """A line for people; left out of JSON."""

    def finish(self) -> None: ...


class JsonRows:
    def row(self, type_: str, fields: Fields) -> None:
        sys.stdout.write(json.dumps({"type": type_, **fields}, default=_json_of_bytes) + "\n")

    def say(self, line: str) -> None:
        pass

    def finish(self) -> None:
        sys.stdout.flush()


class TableRows:
    def __init__(self, shapes: Mapping[str, Shape]) -> None:
        self._shapes = shapes
        self._type = ""
        self._rows: list[Fields] = []
        self._console: Console | None = None

    def row(self, type_: str, fields: Fields) -> None:
        shape = self._shapes[type_]
        if callable(shape):
            self._draw()
            click.secho(shape(fields), fg="red")
            return
        if type_ != self._type or len(self._rows) >= _ROWS_PER_TABLE:
            self._draw()
            self._type = type_
        self._rows.append(fields)

    def say(self, line: str) -> None:
        self._draw()
        click.echo(line)

    def finish(self) -> None:
        self._draw()
        sys.stdout.flush()

    def _draw(self) -> None:
        columns = self._shapes.get(self._type)
        if not self._rows or columns is None or callable(columns):
            return
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for column in columns:
            table.add_column(column.title, justify="right" if column.right else "left", no_wrap=column.right)
        for fields in self._rows:
            table.add_row(*(Text(column.show(fields)) for column in columns))
        if self._console is None:
            width = None if sys.stdout.isatty() else _PIPE_WIDTH
            self._console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False, width=width)
        self._rows = []
        self._console.print(table)


def rows_for(*, as_json: bool, full: bool = False) -> Rows:
    """`full`: do not shorten keys and values."""
    return JsonRows() if as_json else TableRows(_shapes(full=full))


def text(field: str, title: str | None = None) -> Column:
    return Column(_title(field, title), lambda fields: "" if fields[field] is None else str(fields[field]))


def exact(field: str, title: str | None = None) -> Column:
    """A number without thousands separators, because people copy it: an offset, a position, an id."""
    return text(field, title)._replace(right=True)


def count(field: str, title: str | None = None) -> Column:
    """A number of things, with thousands separators."""
    return Column(_title(field, title), lambda fields: f"{fields[field]:,}", right=True)


def mebibytes(field: str, title: str | None = None) -> Column:
    title = field.removesuffix("_bytes") if title is None else title
    return Column(f"{title} (MiB)", lambda fields: f"{fields[field] / (1 << 20):,.1f}", right=True)


def moment(field: str, title: str | None = None) -> Column:
    return Column(f"{_title(field, title)} (UTC)", lambda fields: show_time(fields[field]))


def _title(field: str, title: str | None) -> str:
    return field.replace("_", " ") if title is None else title


def _shapes(*, full: bool) -> dict[str, Shape]:
    def file_name(fields: Fields) -> str:
        return os.path.basename(str(fields["file"]))

    def content(field: str) -> Callable[[Fields], str]:
        return lambda fields: show_bytes(fields[field], full=full)

    def value_or_marker(fields: Fields) -> str:
        return f"<{fields['control']}>" if fields["control"] else show_bytes(fields["value"], full=full)

    def headers(fields: Fields) -> str:
        return ", ".join(f"{escape(name)}={show_bytes(value, full=full)}" for name, value in fields["headers"])

    def producer(fields: Fields) -> str:
        if fields["producer_id"] < 0:
            return ""
        return f"{fields['producer_id']}/{fields['producer_epoch']} from {fields['base_sequence']}"

    def marks(fields: Fields) -> str:
        return " ".join(mark for mark in ("transactional", "control") if fields[mark])

    def offsets(fields: Fields) -> str:
        return f"{fields['base_offset']}-{fields['last_offset']}"

    def epoch(fields: Fields) -> str:
        return "" if fields["leader_epoch"] is None else str(fields["leader_epoch"])

    def damage(fields: Fields) -> str:
        place = f"{file_name(fields)}, position {fields['position']} (offset {fields['offset']})"
        return f"  ! {place}: {fields['what']}"

    return {
        "partition": [
            text("topic"),
            exact("partition"),
            exact("start_offset"),
            exact("end_offset"),
            count("segments"),
            count("size_bytes", "bytes"),
            count("producers"),
        ],
        "segment": [
            Column("segment", file_name),
            exact("end_offset"),
            count("size_bytes", "bytes"),
            count("batches"),
            count("records"),
            moment("max_timestamp"),
        ],
        "batch": [
            exact("position"),
            Column("offsets", offsets, right=True),
            count("records"),
            count("size_bytes", "bytes"),
            text("codec"),
            moment("max_timestamp"),
            exact("leader_epoch", "epoch"),
            Column("producer", producer),
            Column("", marks),
        ],
        "record": [
            exact("offset"),
            moment("timestamp"),
            Column("key", content("key")),
            Column("value", value_or_marker),
            Column("headers", headers),
        ],
        "offset_index_entry": [exact("number", "entry"), exact("offset", "last offset"), exact("log_position")],
        "time_index_entry": [exact("number", "entry"), moment("timestamp"), exact("offset", "up to offset")],
        "aborted_transaction": [
            exact("number", "entry"),
            exact("producer_id", "producer"),
            exact("first_offset", "aborted from offset"),
            exact("last_offset", "marker at offset"),
            exact("last_stable_offset", "stable offset then"),
        ],
        "checkpoint": [
            exact("offset", "durable up to offset"),
            exact("segment"),
            exact("position"),
            exact("start_offset", "log start"),
            exact("index_bytes"),
            exact("time_index_bytes"),
            moment("created_ms", "segment created"),
        ],
        "compaction": [
            exact("clean_offset", "compacted up to offset"),
            exact("compacted_to", "holes up to offset"),
            Column(
                "next tombstones go",
                lambda fields: "" if fields["next_horizon_ms"] is None else show_time(fields["next_horizon_ms"]),
            ),
            Column("aborted transactions", lambda fields: str(sum(count for _, count in fields["aborted"]))),
            Column(
                "exchange", lambda fields: "" if fields["swap"] is None else " ".join(map(str, fields["swap"][2]))
            ),
        ],
        "producer": [
            exact("producer_id", "producer"),
            exact("epoch"),
            moment("last_seen_ms", "last seen"),
            Column("last sequences", lambda fields: " ".join(f"{b[0]}-{b[1]}" for b in fields["batches"])),
            Column("last offsets", lambda fields: " ".join(f"{b[2]}-{b[3]}" for b in fields["batches"])),
        ],
        "object": [
            text("kind", "object"),
            count("size_bytes", "bytes"),
            exact("footer_position", "footer at"),
            count("footer_bytes"),
            count("partitions"),
        ],
        "region": [
            text("topic_id"),
            exact("partition"),
            Column("offsets", offsets, right=True),
            exact("position"),
            count("size_bytes", "bytes"),
            moment("max_timestamp"),
            Column("epoch", epoch, right=True),
        ],
        "segment_index_entry": [
            exact("number", "entry"),
            exact("offset", "base offset"),
            exact("position"),
            moment("timestamp", "max timestamp before"),
        ],
        "lock": [text("content", "lock"), Column("held by", lambda fields: fields["holder"] or "nobody")],
        "damage": damage,
        "finding": [text("severity", ""), text("file"), exact("position"), exact("offset"), text("what")],
    }


def show_time(timestamp_ms: int) -> str:
    if timestamp_ms < 0:
        return "-"
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return moment.replace(tzinfo=None).isoformat(sep=" ", timespec="milliseconds")


def show_bytes(content: bytes | None, *, full: bool) -> str:
    """Keys and values: text with control characters of terminals escaped; other bytes in hex."""
    if content is None:
        return "<null>"
    limit = len(content) if full else _SHOWN_CHARACTERS
    try:
        decoded = content.decode()
    except UnicodeDecodeError:
        shown, length = "0x" + content[:limit].hex(), len(content)
    else:
        shown, length = escape(decoded[:limit]), len(decoded)
    return shown if length <= limit else f"{shown}… ({len(content):,} bytes)"


def escape(untrusted: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in untrusted)


def _json_of_bytes(content: object) -> str | dict[str, str]:
    """A string for UTF-8; other bytes as an object, so that the two cannot be confused."""
    if not isinstance(content, bytes):
        raise TypeError(f"{type(content).__name__} in a row")
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"hex": content.hex()}


@contextmanager
def byte_progress(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr while the block runs; nothing if that is not a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda more: progress.advance(task, more)


@contextmanager
def record_progress(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """The same for records."""
    if not sys.stderr.isatty() or not total:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    began = time.monotonic()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total, rate="")

        def advance(more: int) -> None:
            rate = (progress.tasks[0].completed + more) / max(0.001, time.monotonic() - began)
            progress.update(task, advance=more, rate=f"{rate:,.0f} records/s")

        yield advance
