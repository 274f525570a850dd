"""`tidelog cluster`, and what all commands that talk to a broker share: its address, and the syntax of offsets and
times."""

import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import click

from tidelog.cli.output import Column, JsonRows, Rows, Shape, TableRows, count, exact, mebibytes, text
from tidelog.client import Client, ClientOptions, Start, connect
from tidelog.client.admin.topics import MemoryPartInfo, TopicInfo
from tidelog.client.errors import BrokerError, RequestTimedOut
from tidelog.client.options import DEFAULT_BOOTSTRAP, parse_bootstrap
from tidelog.errors import InvalidSettings
from tidelog.model import TopicPartition

F = TypeVar("F", bound=Callable[..., Any])

_AGO = re.compile(r"-(\d+)([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_LOOK_EVERY_S = 0.2
START_HELP = (
    "earliest, latest, an offset, -N (the last N offsets of each partition), a time (2026-07-01T08:00Z, "
    "2026-07-01), or a time before now (-90s, -15m, -2h, -1d)"
)


def _bootstrap(ctx: click.Context, param: click.Parameter, value: str) -> str:  # noqa: ARG001
    try:
        parse_bootstrap(value)
    except InvalidSettings as error:
        raise click.BadParameter(f"{error}.") from None
    return value


def start_of(ctx: click.Context, param: click.Parameter, value: str) -> Start:  # noqa: ARG001
    """Parses an offset or a time in a topic; called by click."""
    if value == "earliest":
        return "earliest"
    if value == "latest":
        return "latest"
    if re.fullmatch(r"-?\d+", value):
        return int(value)
    ago = _AGO.fullmatch(value)
    try:
        if ago is not None:
            return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        return datetime.fromisoformat(value).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        raise click.BadParameter(f"{value!r} is not one of: {START_HELP}.") from None


bootstrap_option = click.option(
    "-b",
    "--bootstrap",
    metavar="HOST:PORT",
    callback=_bootstrap,
    envvar="TIDELOG_BOOTSTRAP",
    default=DEFAULT_BOOTSTRAP,
    show_default=True,
    show_envvar=True,
    help="Addresses of one or more brokers, separated by commas.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")


def broker_options(command: F) -> F:
    """For commands that ask a broker and show its answer."""
    decorated: F = bootstrap_option(json_option(command))
    return decorated


def _confs(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> dict[str, str]:  # noqa: ARG001
    return pairs(value, "--conf")


conf_option = click.option(
    "--conf",
    multiple=True,
    callback=_confs,
    metavar="NAME=VALUE",
    help="Spark configuration property; may be repeated.",
)


def job_options(command: F) -> F:
    """For commands that run in processes of this machine, or on a Spark cluster."""
    master = click.option(
        "--master", metavar="URL", help="Run on this Spark cluster. [default: processes of this machine]"
    )
    decorated: F = master(conf_option(command))
    return decorated


def open_client(bootstrap: str) -> Client:
    return connect(bootstrap, ClientOptions(client_id="tidelog-cli"))


def show(shapes: Mapping[str, Shape], *, as_json: bool) -> Rows:
    return JsonRows() if as_json else TableRows(shapes)


def pairs(assignments: Sequence[str], option: str) -> dict[str, str]:
    """The names and values of `--config k=v --config ...`."""
    split = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or not name:
            raise click.UsageError(f"{option} must be NAME=VALUE, not {assignment!r}.")
        split[name] = value
    return split


def change_options(command: F) -> F:
    """`--set` and `--unset`; see `changes_of`."""
    command = click.option(
        "-u",
        "--unset",
        "unset",
        multiple=True,
        metavar="NAME",
        help="Restore the default of a config; may be repeated.",
    )(command)
    return click.option(
        "-s", "--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a config; may be repeated."
    )(command)


def changes_of(settings: Sequence[str], unset: Sequence[str]) -> dict[str, str | None]:
    changes: dict[str, str | None] = {**pairs(settings, "--set"), **dict.fromkeys(unset)}
    if not changes:
        raise click.UsageError("Nothing to change: give --set NAME=VALUE or --unset NAME.")
    return changes


def refuse_unknown(unset: Sequence[str], known: Collection[str]) -> None:
    """As Kafka does, a broker accepts the removal of a config that does not exist; for a person it is a typing
    error."""
    unknown = [name for name in unset if name not in known]
    if unknown:
        raise click.UsageError(f"Unknown config: {', '.join(unknown)}.")


@click.group("cluster")
def group() -> None:
    """Show brokers and leaders, move leaders, drain brokers; check and clean the object store."""


@group.command("info")
@broker_options
def info(bootstrap: str, as_json: bool) -> None:
    """Show the brokers, the number of topics and groups, and the brokers' memory use."""
    with open_client(bootstrap) as client:
        cluster = client.cluster_info()
        topics = client.topics()
        groups = client.groups()
        memory = {node.id: client.memory(node.id) for node in cluster.nodes}
    shapes: dict[str, Shape] = {
        "cluster": [text("cluster_id", "cluster"), count("topics"), count("partitions"), count("groups")],
        "broker": [exact("id", "broker"), text("address"), text("rack"), text("role", "")],
        "memory": [
            exact("broker"),
            text("memory"),
            mebibytes("used_bytes"),
            mebibytes("limit_bytes"),
            text("setting"),
        ],
    }
    rows = show(shapes, as_json=as_json)
    partitions = sum(len(topic.partitions) for topic in topics)
    fields = {"topics": len(topics), "partitions": partitions, "groups": len(groups)}
    rows.row("cluster", {"cluster_id": cluster.cluster_id, "controller_id": cluster.controller_id, **fields})
    for node in cluster.nodes:
        role = "controller" if node.id == cluster.controller_id else ""
        rows.row("broker", {"id": node.id, "address": str(node.address), "rack": node.rack, "role": role})
    for id_, known in memory.items():
        if known is None:
            continue
        whole = MemoryPartInfo("whole process", "memory-budget-bytes", known.budget_bytes, known.resident_bytes)
        for part in (*known.parts, whole):
            use = {"used_bytes": part.used_bytes, "limit_bytes": part.limit_bytes, "setting": part.setting}
            rows.row("memory", {"broker": id_, "memory": part.name, **use})
    rows.finish()


@group.command("brokers")
@broker_options
def brokers(bootstrap: str, as_json: bool) -> None:
    """Show the brokers that are up: addresses, the controller, and the number of partitions that each leads."""
    with open_client(bootstrap) as client:
        drained = set(client.drained_brokers())
        topics = client.topics()
        cluster = client.cluster_info()
    led = Counter(row.leader for topic in topics for row in topic.partitions)
    columns = [
        *(exact("id", "broker"), text("address"), text("rack"), count("partitions", "leads"), text("role", "")),
        Column("", lambda fields: "drained" if fields["drained"] else ""),
    ]
    rows = show({"broker": columns}, as_json=as_json)
    for node in cluster.nodes:
        role = "controller" if node.id == cluster.controller_id else ""
        about = {"id": node.id, "address": str(node.address), "rack": node.rack, "role": role}
        rows.row("broker", {**about, "partitions": led.pop(node.id, 0), "drained": node.id in drained})
    if down := drained - {node.id for node in cluster.nodes}:
        rows.say(f"drained and not up: {', '.join(map(str, sorted(down)))}")
    if leaderless := led.total():
        rows.say(f"{leaderless:,} partition{'s' * (leaderless != 1)} without a leader: see tidelog cluster leaders")
    rows.finish()


@group.command("leaders")
@click.argument("topic", required=False)
@broker_options
def leaders(topic: str | None, bootstrap: str, as_json: bool) -> None:
    """Show which broker leads each partition, and in which epoch: of one topic, or of all.

    The epoch grows whenever the leader changes."""
    with open_client(bootstrap) as client:
        topics: Sequence[TopicInfo] = client.topics() if topic is None else [client.topic(topic)]
        up = {node.id for node in client.cluster_info().nodes}
    columns = [
        text("topic"),
        exact("partition"),
        Column("leader", lambda fields: "none" if fields["leader"] is None else str(fields["leader"]), right=True),
        exact("epoch"),
    ]
    rows = show({"leader": columns}, as_json=as_json)
    for each in topics:
        for row in each.partitions:
            leader = row.leader if row.leader in up else None
            place = {"topic": each.name, "partition": row.partition}
            rows.row("leader", {**place, "leader": leader, "epoch": row.leader_epoch})
    rows.finish()


def _partition_of(ctx: click.Context, param: click.Parameter, value: str) -> TopicPartition:  # noqa: ARG001
    topic, colon, number = value.rpartition(":")
    if not colon or not topic or not number.isdecimal():
        raise click.BadParameter(f"must be TOPIC:PARTITION, such as orders:0, not {value!r}.")
    return TopicPartition(topic, int(number))


@group.command("move")
@click.argument("partition", metavar="TOPIC:PARTITION", callback=_partition_of)
@click.argument("broker", type=click.IntRange(min=0))
@broker_options
def move(partition: TopicPartition, broker: int, bootstrap: str, as_json: bool) -> None:
    """Let another broker lead a partition.

    No data is copied. The partition stays there until that broker goes down, or until another broker becomes the
    controller, which spreads partitions evenly."""
    with open_client(bootstrap) as client:
        known = {row.partition: row for row in client.topic(partition.topic).partitions}
        if partition.partition not in known:
            raise click.ClickException(
                f"topic {partition.topic} has no partition {partition.partition}: it has {len(known)}, counted from 0"
            )
        up = [node.id for node in client.cluster_info().nodes]
        if broker not in up:
            raise click.ClickException(f"broker {broker} is not up; these are: {', '.join(map(str, up))}")
        before = known[partition.partition].leader
        try:
            client.move_leader(partition, broker)
        except RequestTimedOut as error:
            raise click.ClickException(f"{error}. Look at the log of the controller, and try again") from None
    columns = [text("topic"), exact("partition"), exact("from_broker", "from"), exact("to_broker", "to")]
    rows = show({"moved": columns}, as_json=as_json)
    rows.row(
        "moved",
        {**partition._asdict(), "from_broker": before if before in up else None, "to_broker": broker},
    )
    rows.finish()


@group.command("drain")
@click.argument("broker", type=click.IntRange(min=0))
@click.option("--undo", is_flag=True, help="Let the broker get partitions again.")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait until the broker leads nothing.",
)
@broker_options
def drain(broker: int, undo: bool, timeout_s: float, bootstrap: str, as_json: bool) -> None:
    """Let a broker give its partitions to others, and get no new ones.

    Waits until the broker leads nothing and is not the controller. It stays up, and stays drained after a restart,
    until --undo. No data is copied."""
    columns = [exact("broker"), count("partitions", "still leads"), text("role", "")]
    rows = show(
        {"draining": columns, "drained": [exact("broker", "drained")], "undone": [exact("broker", "undone")]},
        as_json=as_json,
    )
    with open_client(bootstrap) as client:
        up = [node.id for node in client.cluster_info().nodes]
        if broker not in up and not (undo and broker in client.drained_brokers()):
            raise click.ClickException(f"broker {broker} is not up; these are: {', '.join(map(str, up))}")
        try:
            client.drain_broker(broker, not undo)
        except BrokerError as error:
            raise click.ClickException(error.message or str(error)) from None
        if not undo:
            _wait_until_idle(client, broker, timeout_s, rows)
    rows.row("undone" if undo else "drained", {"broker": broker})
    rows.finish()


def _wait_until_idle(client: Client, broker: int, timeout_s: float, rows: Rows) -> None:
    deadline = time.monotonic() + timeout_s
    told: tuple[int, str] | None = None
    while True:
        led = sum(row.leader == broker for topic in client.topics() for row in topic.partitions)
        role = "controller" if client.cluster_info().controller_id == broker else ""
        if not led and not role:
            return
        if (led, role) != told:
            told = (led, role)
            rows.row("draining", {"broker": broker, "partitions": led, "role": role})
            rows.finish()
        if time.monotonic() > deadline:
            raise click.ClickException(
                f"broker {broker} is drained, but after {timeout_s:g} s it still leads {led:,} partitions"
                f"{' and is the controller' * bool(role)}. Look at the log of the controller; run the same command "
                "again to go on waiting, or with --undo to take it back"
            )
        time.sleep(_LOOK_EVERY_S)
