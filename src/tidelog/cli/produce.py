"""`tidelog produce`: write lines to a topic, byte for byte."""

import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import BinaryIO, NamedTuple

import click

from tidelog.cli.cluster import bootstrap_option, open_client, pairs
from tidelog.cli.output import JsonRows, byte_progress
from tidelog.client import ProducerOptions
from tidelog.client.options import Acks
from tidelog.errors import InvalidInput
from tidelog.records.compression import Codec

_ACKS: dict[str, Acks] = {"0": 0, "1": 1, "all": "all"}
_CHUNK_BYTES = 256 << 10
_WORTH_A_BAR_BYTES = 8 << 20


class _Record(NamedTuple):
    key: bytes | None
    value: bytes | None


@click.command("produce")
@click.argument("topic")
@click.option(
    "-f",
    "--file",
    "files",
    multiple=True,
    type=click.Path(),
    help="Read this file instead of stdin; may be repeated.",
)
@click.option("-k", "--key", help="Key of every record.")
@click.option("-K", "--key-separator", metavar="TEXT", help="Separator between key and value on each input line.")
@click.option(
    "-d",
    "--delimiter",
    default="\\n",
    show_default=True,
    help="Separator between records; \\n, \\t, \\0 and \\xNN are understood.",
)
@click.option("--whole", is_flag=True, help="Write each input file as one record.")
@click.option("-Z", "--empty-as-null", is_flag=True, help="Write empty keys and values as null.")
@click.option(
    "-H", "--header", "headers", multiple=True, metavar="NAME=VALUE", help="Header of every record; may be repeated."
)
@click.option(
    "-p",
    "--partition",
    type=click.IntRange(min=0),
    help="Partition to write to. [default: chosen by the key, as Kafka does]",
)
@click.option(
    "-a",
    "--acks",
    type=click.Choice(list(_ACKS)),
    default="all",
    show_default=True,
    help="Acknowledgements to wait for.",
)
@click.option(
    "-z",
    "--compression",
    type=click.Choice([codec.name.lower() for codec in Codec]),
    default="none",
    show_default=True,
    help="Compression of the batches.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the number of records written, as JSON.")
@bootstrap_option
def command(
    topic: str,
    files: Sequence[str],
    key: str | None,
    key_separator: str | None,
    delimiter: str,
    whole: bool,
    empty_as_null: bool,
    headers: Sequence[str],
    partition: int | None,
    acks: str,
    compression: str,
    as_json: bool,
    bootstrap: str,
) -> None:
    """Write each line of stdin, or of files, as a record to TOPIC.

    \b
    echo 'hello world' | tidelog produce greetings
    tidelog produce prices --key-separator : --file prices.txt
    """
    if key is not None and key_separator is not None:
        raise click.UsageError("Use --key or --key-separator, not both.")
    header_pairs = pairs(headers, "--header")
    separator = _unescaped(key_separator, "--key-separator") if key_separator is not None else None
    end = None if whole else _unescaped(delimiter, "--delimiter")
    fixed_key = None if key is None else os.fsencode(key)
    options = ProducerOptions(acks=_ACKS[acks], compression=Codec.named(compression))

    def record_of(line: bytes) -> _Record:
        value: bytes | None = line
        record_key = fixed_key
        if separator is not None:
            record_key, found, value = line.partition(separator)
            if not found:
                raise InvalidInput(f"line without the key separator {key_separator!r}: {line[:60]!r}")
        if empty_as_null:
            return _Record(record_key or None, value or None)
        return _Record(record_key, value)

    written = 0
    with open_client(bootstrap) as client, client.producer(options) as producer:
        for file in files or ("-",):
            with _opened(file) as (stream, advance):
                for line in _split(stream, end, advance):
                    record = record_of(line)
                    producer.send(topic, record.value, key=record.key, headers=header_pairs, partition=partition)
                    written += 1
                    if producer.has_failures:
                        producer.flush()  # raises the error now, not after the rest of the input
        producer.flush()
    if as_json:
        rows = JsonRows()
        rows.row("produced", {"topic": topic, "records": written})
        rows.finish()
    elif sys.stderr.isatty() and not sys.stdin.isatty():
        click.echo(f"{written:,} record{'s' * (written != 1)} written to {topic}", err=True)


@contextmanager
def _opened(file: str) -> Iterator[tuple[BinaryIO, Callable[[int], None]]]:
    """The input, and a function to call with the number of bytes read; a large file gets a progress bar."""
    with ExitStack() as stack:
        stream = sys.stdin.buffer if file == "-" else stack.enter_context(open(file, "rb"))
        size = _size_of(stream)
        advance: Callable[[int], None] = lambda _: None  # noqa: E731
        if size >= _WORTH_A_BAR_BYTES:
            advance = stack.enter_context(byte_progress("stdin" if file == "-" else os.path.basename(file), size))
        yield stream, advance


def _size_of(stream: BinaryIO) -> int:
    """0 for input without a size: a pipe, a terminal."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _split(stream: BinaryIO, delimiter: bytes | None, advance: Callable[[int], None]) -> Iterator[bytes]:
    """The records of the input as they arrive: a line of a slow pipe is not held back."""
    if delimiter is None:
        yield stream.read()
        return
    read = getattr(stream, "read1", stream.read)
    pending = bytearray()
    while chunk := read(_CHUNK_BYTES):
        advance(len(chunk))
        not_searched = max(0, len(pending) - len(delimiter) + 1)
        pending += chunk
        if pending.find(delimiter, not_searched) >= 0:
            *lines, rest = bytes(pending).split(delimiter)
            pending = bytearray(rest)
            yield from lines
    if pending:
        yield bytes(pending)


def _unescaped(text: str, option: str) -> bytes:
    r"""Bytes of an argument in which \n, \t, \0 and \xNN may be written."""
    try:
        plain = os.fsencode(text).decode("unicode_escape").encode("latin-1")
    except (UnicodeDecodeError, UnicodeEncodeError):
        raise click.UsageError(f"{option}: {text!r} has an invalid escape; use \\n, \\t, \\0 or \\xNN.") from None
    if not plain:
        raise click.UsageError(f"{option} must not be empty.")
    return plain
