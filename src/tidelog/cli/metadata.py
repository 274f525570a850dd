"""`tidelog metadata`: inspect the metadata in a data directory, without a broker."""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple, TypeAlias

import click

from tidelog.cli.cluster import json_option, show
from tidelog.cli.output import Column, Fields, Rows, Shape, count, escape, exact, moment, show_time, text
from tidelog.metadata.opening import snapshot
from tidelog.metadata.rows import (
    ClusterRow,
    ConfigRow,
    DecisionRow,
    DeletedTopicRow,
    GroupMemberRow,
    GroupRow,
    OffsetRow,
    Row,
    TopicRow,
    TransactionOffsetRow,
    TransactionRow,
)
from tidelog.wire.embedded import decode_embedded
from tidelog.wire.generated.consumer_protocol_assignment import DATA
from tidelog.wire.protocol_errors import ProtocolError

Names: TypeAlias = Mapping[str, str]  # of topics, by their ids in hex

_JSON_FIELDS = ("details", "partitions", "groups")  # where they are text


@click.group("metadata")
def group() -> None:
    """Inspect the metadata in a data directory, without a broker."""


def _fields(row: Row, _names: Names) -> dict[str, Any]:
    """As they are stored, but JSON in them is parsed."""
    fields = asdict(row)
    for name in _JSON_FIELDS:
        if isinstance(fields.get(name), str):
            fields[name] = _parsed(fields[name])
    return fields


def _parsed(text_: str | bytes) -> Any:  # noqa: ANN401
    try:
        return json.loads(text_)
    except ValueError:
        return text_


def _topic(row: TopicRow | DeletedTopicRow, names: Names) -> dict[str, Any]:
    return {**_fields(row, names), "topic_id": row.topic_id.hex()}


def _member(row: GroupMemberRow, names: Names) -> dict[str, Any]:
    """The partitions of a member, by the names of their topics; None if its group is not one of consumers."""
    fields = _fields(row, names)
    if not row.assignment.startswith(b"{"):  # of the classic protocol, in Kafka's own format
        return {**fields, "partitions": _classic_partitions(row.assignment)}
    assignment = _parsed(row.assignment)
    partitions = {names.get(id_, id_): numbers for id_, numbers in assignment["assigned"].items()}
    return {
        **fields,
        "subscription": _parsed(row.subscription),
        "assignment": assignment,
        "partitions": partitions,
    }


def _classic_partitions(assignment: bytes) -> dict[str, list[int]] | None:
    if not assignment:
        return {}
    try:
        decoded = decode_embedded(DATA, assignment)
    except ProtocolError:
        return None
    return {each.topic: list(each.partitions) for each in decoded.assigned_partitions}


def _safe(field: str, title: str | None = None) -> Column:
    """Text that clients chose, with control characters of terminals escaped."""
    column = text(field, title)
    return column._replace(show=lambda fields: escape(column.show(fields)))


def _time_or_nothing(field: str, title: str) -> Column:
    return Column(
        f"{title} (UTC)", lambda fields: "" if not fields[field] or fields[field] < 0 else show_time(fields[field])
    )


def _partitions(fields: Fields) -> str:
    shares = fields["partitions"]
    if not isinstance(shares, dict):
        return "" if shares is None else escape(json.dumps(shares))
    return escape(" ".join(f"{topic}:{','.join(map(str, numbers))}" for topic, numbers in shares.items()))


class _Table(NamedTuple):
    """A kind of row: its names, its fields and its columns."""

    row: type[Row]
    kind: str
    plural: str
    fields: Callable[[Any, Names], dict[str, Any]]
    shape: Shape


_TABLES = (
    _Table(ClusterRow, "fact", "facts about the cluster", _fields, [text("name"), text("value")]),
    _Table(
        TopicRow,
        "topic",
        "topics",
        _topic,
        [text("name", "topic"), count("partitions"), text("topic_id", "id"), moment("created_ms", "created")],
    ),
    _Table(
        DeletedTopicRow,
        "deleted_topic",
        "deleted topics whose logs may still be on the disk",
        _topic,
        [text("name", "topic"), text("topic_id", "id")],
    ),
    _Table(
        ConfigRow,
        "config",
        "configs that were set",
        _fields,
        [
            text("kind", "of"),
            Column("name", lambda fields: escape(fields["resource"]) or "(all)"),
            text("name", "config"),
            _safe("value"),
        ],
    ),
    _Table(
        GroupRow,
        "group",
        "groups",
        _fields,
        [
            _safe("group"),
            text("kind", "type"),
            text("state"),
            exact("epoch"),
            _safe("protocol"),
            _safe("leader"),
            _time_or_nothing("state_since_ms", "since"),
        ],
    ),
    _Table(
        GroupMemberRow,
        "member",
        "members of groups",
        _member,
        [
            _safe("group"),
            _safe("member_id", "member"),
            _safe("instance_id", "instance"),
            _safe("client_id", "client"),
            _safe("client_host", "host"),
            exact("epoch"),
            Column("partitions", _partitions),
        ],
    ),
    _Table(
        OffsetRow,
        "offset",
        "committed offsets",
        _fields,
        [
            _safe("group"),
            text("topic"),
            exact("partition"),
            exact("offset"),
            _safe("metadata", "note"),
            moment("committed_ms", "committed"),
        ],
    ),
    _Table(
        TransactionRow,
        "transaction",
        "transactional ids",
        _fields,
        [
            _safe("transactional_id"),
            text("state"),
            exact("producer_id", "producer"),
            exact("epoch"),
            Column("partitions", _partitions),
            _time_or_nothing("started_ms", "started"),
            _time_or_nothing("updated_ms", "updated"),
        ],
    ),
    _Table(
        TransactionOffsetRow,
        "transaction_offset",
        "offsets of open transactions",
        _fields,
        [_safe("transactional_id"), _safe("group"), text("topic"), exact("partition"), exact("offset")],
    ),
    _Table(
        DecisionRow,
        "decision",
        "decisions over many transactions",
        _fields,
        [_safe("scope"), exact("number"), moment("decided_ms", "decided")],
    ),
)


@group.command("dump")
@click.argument("data_dir", type=click.Path())
@click.option(
    "-t",
    "--type",
    "kinds",
    type=click.Choice([table.kind for table in _TABLES]),
    multiple=True,
    help="Show only rows of this type; may be repeated.",
)
@json_option
def dump(data_dir: str, kinds: Sequence[str], as_json: bool) -> None:
    """Show the metadata in a data directory: topics, configs, groups, offsets, producer ids, transactions.

    This only reads, and may be used on the directory of a running broker: it shows a consistent snapshot.
    """
    tables = [table for table in _TABLES if not kinds or table.kind in kinds]
    asyncio.run(_dump(data_dir, tables, show({table.kind: table.shape for table in tables}, as_json=as_json)))


async def _dump(data_dir: str, tables: Iterable[_Table], rows: Rows) -> None:
    async with snapshot(data_dir) as store:
        names = {topic.topic_id.hex(): topic.name for topic in await store.load(TopicRow)}
        for number, table in enumerate(tables):
            found = await store.load(table.row)
            rows.say(f"{'' if number == 0 else chr(10)}{table.plural}: {len(found):,}")
            for row in found:
                rows.row(table.kind, table.fields(row, names))
    rows.finish()
