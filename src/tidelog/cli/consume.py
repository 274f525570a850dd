"""`tidelog consume`: write records of topics to stdout, in a custom format or as JSON."""

import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import TypeAlias

import click

from tidelog.cli.cluster import START_HELP, bootstrap_option, json_option, open_client, start_of
from tidelog.cli.output import JsonRows
from tidelog.client import BlockingStream, ConsumedRecord, FetchOptions, Start

Piece: TypeAlias = Callable[[ConsumedRecord], bytes]

_TOKEN = re.compile(rb"%(.)|\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPES = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"0": b"\0", b"\\": b"\\"}
_FORMAT_HELP = (
    "%t topic, %p partition, %o offset, %T timestamp in ms, %k key, %v (or %s) value, %h headers, "
    "%K and %S length of key and value (-1: null), %%; \\n, \\t, \\0, \\xNN."
)


@click.command("consume")
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...")
@click.option(
    "-o",
    "--from",
    "start",
    metavar="START",
    callback=start_of,
    default="earliest",
    show_default=True,
    help=f"Where to start: {START_HELP}. With --group, only for partitions without a committed offset.",
)
@click.option(
    "-p", "--partition", "partitions", type=int, multiple=True, help="Read only this partition; may be repeated."
)
@click.option("-g", "--group", help="Join this consumer group, and commit the offsets of what was printed.")
@click.option("-n", "--max", "limit", type=click.IntRange(min=0), metavar="N", help="Stop after N records.")
@click.option(
    "--follow/--exit", default=True, help="At the end of the topic, wait for more records [default] or exit."
)
@click.option("-f", "--format", "template", default="%v\\n", show_default=True, help=f"Output format: {_FORMAT_HELP}")
@click.option("--null", "null_text", default="", metavar="TEXT", help="Text to print for a null key or value.")
@click.option("--read-committed", is_flag=True, help="Skip records of aborted and open transactions.")
@json_option
@bootstrap_option
def command(
    topics: Sequence[str],
    start: Start,
    partitions: Sequence[int],
    group: str | None,
    limit: int | None,
    follow: bool,
    template: str,
    null_text: str,
    read_committed: bool,
    as_json: bool,
    bootstrap: str,
) -> None:
    """Print the records of TOPIC, and wait for new ones.

    \b
    tidelog consume greetings
    tidelog consume prices --from -10 --exit -f '%p/%o %k=%v\\n'
    tidelog consume prices --group loader --json | jq .value
    """
    if group is not None and partitions:
        raise click.UsageError("The group assigns the partitions: use --group or --partition, not both.")
    pieces = compile_format(os.fsencode(template), os.fsencode(null_text))
    with (
        open_client(bootstrap) as client,
        client.consume(
            topics,
            partitions=partitions or None,
            start=start,
            follow=follow,
            limit=limit,
            group=group,
            fetch=FetchOptions(read_committed=read_committed),
        ) as stream,
    ):
        if as_json:
            _write_json(stream)
        else:
            _write_bytes(stream, pieces)


def _write_json(stream: BlockingStream) -> None:
    rows = JsonRows()
    for chunk in stream.chunks():
        for record in chunk:
            rows.row("record", record._asdict())
        rows.finish()  # before waiting for more, and before the offsets are committed


def _write_bytes(stream: BlockingStream, pieces: Sequence[Piece]) -> None:
    out = sys.stdout.buffer
    for chunk in stream.chunks():
        for record in chunk:
            out.write(b"".join([piece(record) for piece in pieces]))
        out.flush()


def compile_format(template: bytes, null: bytes) -> list[Piece]:
    """The parts of the output for a record, in order."""

    def number(get: Callable[[ConsumedRecord], int]) -> Piece:
        return lambda record: b"%d" % get(record)

    def headers(record: ConsumedRecord) -> bytes:
        return b",".join(name.encode() + b"=" + (null if value is None else value) for name, value in record.headers)

    def key(record: ConsumedRecord) -> bytes:
        return null if record.key is None else record.key

    def value(record: ConsumedRecord) -> bytes:
        return null if record.value is None else record.value

    directives: dict[bytes, Piece] = {
        b"t": lambda record: record.topic.encode(),
        b"p": number(lambda record: record.partition),
        b"o": number(lambda record: record.offset),
        b"T": number(lambda record: record.timestamp),
        b"k": key,
        b"K": number(lambda record: -1 if record.key is None else len(record.key)),
        b"v": value,
        b"s": value,
        b"S": number(lambda record: -1 if record.value is None else len(record.value)),
        b"h": headers,
    }
    pieces: list[Piece] = []
    position = 0
    for token in _TOKEN.finditer(template):
        pieces += _literal(template[position : token.start()])
        position = token.end()
        directive, escape = token.groups()
        if directive == b"%":
            pieces += _literal(b"%")
        elif directive is not None:
            if directive not in directives:
                raise click.UsageError(
                    f"--format: unknown directive %{os.fsdecode(directive)}; known are {_FORMAT_HELP}"
                )
            pieces.append(directives[directive])
        elif escape.startswith(b"x") and len(escape) == 3:
            pieces += _literal(bytes([int(escape[1:], 16)]))
        else:
            pieces += _literal(_ESCAPES.get(escape, b"\\" + escape))
    pieces += _literal(template[position:])
    return pieces


def _literal(content: bytes) -> list[Piece]:
    return [lambda _: content] if content else []
