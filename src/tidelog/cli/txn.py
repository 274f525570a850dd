"""`tidelog txn`: list, describe and abort transactions, also hanging ones."""

import time
from collections.abc import Sequence

import click

from tidelog.cli.cluster import broker_options, open_client, show
from tidelog.cli.output import Column, Fields, Shape, exact, text
from tidelog.client import Client, ProducerInPartition
from tidelog.errors import InvalidInput
from tidelog.model import TopicPartition

_STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort")
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def _duration(ctx: click.Context, param: click.Parameter, value: str | None) -> int:  # noqa: ARG001
    """Milliseconds; -1 if the option is not given."""
    if value is None:
        return -1
    for unit, factor in _UNITS.items():
        number = value.removesuffix(unit)
        if number != value and number.isdecimal():
            return int(number) * factor
    raise click.BadParameter(f"{value!r} is not a duration; examples: 500ms, 90s, 15m, 2h, 1d.")


@click.group("txn")
def group() -> None:
    """List, describe and abort transactions."""


@group.command("list")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(_STATES, case_sensitive=False),
    help="Only transactions in this state; may be repeated.",
)
@click.option(
    "--producer-id",
    "producer_ids",
    multiple=True,
    type=int,
    help="Only transactions of this producer; may be repeated.",
)
@click.option(
    "--longer-than",
    callback=_duration,
    metavar="TIME",
    help="Only transactions open for longer than this: 90s, 15m, 2h.",
)
@click.option(
    "--pattern", metavar="REGEX", help="Only transactional ids that match this regular expression (RE2) as a whole."
)
@click.option(
    "--hanging", is_flag=True, help="Only transactions that are open in a partition but unknown to their coordinator."
)
@broker_options
def list_(
    states: Sequence[str],
    producer_ids: Sequence[int],
    longer_than: int,
    pattern: str | None,
    hanging: bool,
    bootstrap: str,
    as_json: bool,
) -> None:
    """List transactional ids and the states of their transactions.

    Consumers of committed records cannot read past an open transaction. A hanging transaction stays open for ever,
    because its coordinator does not know it: end it with `tidelog txn abort --partition`.
    """
    with open_client(bootstrap) as client:
        if hanging:
            if states or longer_than >= 0 or pattern:
                raise click.UsageError(
                    "--hanging can be combined with --producer-id only: coordinators apply the other filters."
                )
            _list_hanging(client, producer_ids, as_json=as_json)
            return
        shapes: dict[str, Shape] = {
            "transaction": [
                text("transactional_id", "transactional id"),
                exact("producer_id", "producer"),
                text("state"),
            ]
        }
        rows = show(shapes, as_json=as_json)
        for listed in client.transactions(
            states=states, producer_ids=producer_ids, longer_than_ms=longer_than, pattern=pattern
        ):
            rows.row("transaction", listed._asdict())
        rows.finish()


def _list_hanging(client: Client, producer_ids: Sequence[int], *, as_json: bool) -> None:
    shapes: dict[str, Shape] = {
        "hanging": [
            text("topic"),
            exact("partition"),
            exact("start_offset", "since offset"),
            exact("producer_id", "producer"),
            exact("epoch"),
            Column("last record", _age, right=True),
        ]
    }
    rows = show(shapes, as_json=as_json)
    for producer in client.hanging_transactions():
        if not producer_ids or producer.producer_id in producer_ids:
            rows.row("hanging", _fields(producer))
    rows.finish()


def _fields(producer: ProducerInPartition) -> Fields:
    return {
        "topic": producer.partition.topic,
        "partition": producer.partition.partition,
        "start_offset": producer.transaction_start,
        "producer_id": producer.producer_id,
        "epoch": producer.epoch,
        "last_timestamp": producer.last_timestamp,
    }


def _age(fields: Fields) -> str:
    seconds = max(0, int(time.time()) - int(fields["last_timestamp"]) // 1000)
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit} ago"
    return f"{seconds}s ago"


@group.command("describe")
@click.argument("ids", nargs=-1, required=True, metavar="TRANSACTIONAL_ID...")
@broker_options
def describe(ids: Sequence[str], bootstrap: str, as_json: bool) -> None:
    """Show the producer, the state and the partitions of transactional ids."""

    def open_for(fields: Fields) -> str:
        if int(fields["started"]) < 0:
            return "-"
        return f"{max(0.0, time.time() - int(fields['started']) / 1000):,.1f} s"

    shapes: dict[str, Shape] = {
        "transaction": [
            text("transactional_id", "transactional id"),
            text("state"),
            exact("producer_id", "producer"),
            exact("epoch"),
            Column("open for", open_for, right=True),
            Column("timeout", lambda fields: f"{int(fields['timeout_ms']) / 1000:g} s", right=True),
            Column("partitions", lambda fields: " ".join(fields["partitions"]) or "-"),
        ]
    }
    rows = show(shapes, as_json=as_json)
    with open_client(bootstrap) as client:
        for id_ in ids:
            described = client.transaction(id_)
            rows.row(
                "transaction", {**described._asdict(), "partitions": [str(each) for each in described.partitions]}
            )
    rows.finish()


@group.command("abort")
@click.argument("ids", nargs=-1, metavar="[TRANSACTIONAL_ID...]")
@click.option("--partition", "place", metavar="TOPIC-N", help="Abort hanging transactions in this partition.")
@click.option(
    "--start-offset", type=int, help="Only the transaction that began at this offset; see `txn list --hanging`."
)
@click.option("--hanging", is_flag=True, help="Abort all hanging transactions, in all partitions.")
@broker_options
def abort(
    ids: Sequence[str], place: str | None, start_offset: int | None, hanging: bool, bootstrap: str, as_json: bool
) -> None:
    """Abort transactions by transactional id, or hanging transactions.

    By transactional id, the producer is fenced: whatever it sends afterwards is refused. A hanging transaction is
    unknown to its coordinator, so an abort marker is written directly into the partition.
    """
    if (bool(ids) + (place is not None) + hanging) != 1:
        raise click.UsageError("Give transactional ids, or --partition, or --hanging.")
    if start_offset is not None and place is None:
        raise click.UsageError("--start-offset needs --partition.")
    shapes: dict[str, Shape] = {
        "aborted": [text("what", "aborted")],
    }
    rows = show(shapes, as_json=as_json)
    with open_client(bootstrap) as client:
        for id_ in ids:
            state = client.transaction(id_).state  # fails for an unknown id, which fencing would create
            client.fence_producer(id_)
            rows.row("aborted", {"what": id_, "transactional_id": id_, "state_before": state})
        for producer in _chosen(client, place, start_offset) if not ids else ():
            client.abort_in(producer)
            what = f"{producer.partition} from offset {producer.transaction_start}"
            rows.row("aborted", {"what": what, **_fields(producer)})
    rows.finish()


def _chosen(client: Client, place: str | None, start_offset: int | None) -> list[ProducerInPartition]:
    if place is None:
        return client.hanging_transactions()
    topic, dash, number = place.rpartition("-")
    if not dash or not number.isdecimal():
        raise click.UsageError(f"--partition must be TOPIC-N, such as orders-0, not {place!r}.")
    partition = TopicPartition(topic, int(number))
    hanging = client.hanging_transactions([partition])
    chosen = [each for each in hanging if start_offset in (None, each.transaction_start)]
    if not chosen:
        opened = {each.transaction_start for each in client.producers([partition])} - {-1}
        if start_offset in opened or (start_offset is None and opened):
            raise InvalidInput(
                f"the open transaction in {partition} does not hang: its coordinator knows it; "
                "abort it by its transactional id, see `tidelog txn list --state Ongoing`"
            )
        raise InvalidInput(f"no hanging transaction in {partition}; see `tidelog txn list --hanging`")
    return chosen
