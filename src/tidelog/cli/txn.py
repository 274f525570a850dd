"""`tidelog txn`: transactions, those that hang, and ending them."""

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
    """Milliseconds; -1 if nothing is said."""
    if value is None:
        return -1
    for unit, factor in _UNITS.items():
        number = value.removesuffix(unit)
        if number != value and number.isdecimal():
            return int(number) * factor
    raise click.BadParameter(f"{value!r} is not a duration; write 500ms, 90s, 15m, 2h or 1d.")


@click.group("txn")
def group() -> None:
    """Transactions: who has them open, in which partitions, and how to end them."""


@group.command("list")
@click.option(
    "--state", "states", multiple=True, type=click.Choice(_STATES, case_sensitive=False), help="Only in this state."
)
@click.option("--producer-id", "producer_ids", multiple=True, type=int, help="Only of this producer.")
@click.option("--longer-than", callback=_duration, metavar="TIME", help="Only those open for longer: 90s, 15m, 2h.")
@click.option("--pattern", metavar="REGEX", help="Only transactional ids that match as a whole (RE2).")
@click.option("--hanging", is_flag=True, help="Those open in a partition that no coordinator knows, and so will end.")
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

    Readers of committed records do not get past a transaction that is open. One that hangs is open for ever, because
    its coordinator has lost it: end it with `tidelog txn abort --partition`.
    """
    with open_client(bootstrap) as client:
        if hanging:
            if states or longer_than >= 0 or pattern:
                raise click.UsageError("--hanging goes with --producer-id only: the others are the coordinator's.")
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
        return f"{time.time() - int(fields['started']) / 1000:,.1f} s"

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
@click.option("--partition", "place", metavar="TOPIC-N", help="End what hangs in a partition.")
@click.option("--start-offset", type=int, help="Which of them: where it began, as `txn list --hanging` shows it.")
@click.option("--hanging", is_flag=True, help="End everything that hangs, in all partitions.")
@broker_options
def abort(
    ids: Sequence[str], place: str | None, start_offset: int | None, hanging: bool, bootstrap: str, as_json: bool
) -> None:
    """Abort transactions: by transactional id, or those that hang.

    By id, the producer is fenced: it cannot go on. What hangs has no coordinator any more, so an abort marker is
    written into the partition itself.
    """
    if (bool(ids) + (place is not None) + hanging) != 1:
        raise click.UsageError("Name transactional ids, or a --partition, or --hanging.")
    if start_offset is not None and place is None:
        raise click.UsageError("--start-offset goes with --partition.")
    shapes: dict[str, Shape] = {
        "aborted": [text("what", "aborted")],
    }
    rows = show(shapes, as_json=as_json)
    with open_client(bootstrap) as client:
        for id_ in ids:
            state = client.transaction(id_).state  # an id that nobody knows is not made by fencing it
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
        raise click.UsageError(f"--partition wants TOPIC-N, such as orders-0, not {place!r}.")
    partition = TopicPartition(topic, int(number))
    hanging = client.hanging_transactions([partition])
    chosen = [each for each in hanging if start_offset in (None, each.transaction_start)]
    if not chosen:
        opened = {each.transaction_start for each in client.producers([partition])} - {-1}
        if start_offset in opened or (start_offset is None and opened):
            raise InvalidInput(
                f"what is open in {partition} does not hang: its coordinator knows it; "
                "abort it by its transactional id, see `tidelog txn list --state Ongoing`"
            )
        raise InvalidInput(f"nothing hangs in {partition}; see `tidelog txn list --hanging`")
    return chosen
