"""Where a broker's settings come from: defaults, then a TOML file, then the environment, then flags; later wins.

    data-dir = "tidelog-data"                     TIDELOG_DATA_DIR        --data-dir, --set data-dir=...
    listeners = ["127.0.0.1:9092"]                TIDELOG_LISTENERS       --listen
    [cluster]
    metadata = "postgresql://..."                 TIDELOG_CLUSTER_METADATA          --set cluster.metadata=...
    [kafka]
    "log.retention.ms" = 3600000                  TIDELOG_KAFKA_LOG_RETENTION_MS    --set kafka.log.retention.ms=...

A listener is HOST:PORT, or HOST:PORT=ADVERTISED_HOST:PORT where clients reach it under another address. Everything is
read first and checked together, so that all problems are shown at once, unknown names included.
"""

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, NamedTuple

from tidelog.errors import InvalidSettings
from tidelog.settings import AUTO, ClusterSettings, ListenerSettings, NodeSettings, StorageSettings

DEFAULT_FILE = "tidelog.toml"
ENVIRONMENT = "TIDELOG_"
KAFKA = "kafka."
CLUSTER = "cluster."
_METADATA, _METADATA_FILE = "cluster.metadata", "cluster.metadata-file"


class Given(NamedTuple):
    value: Any
    source: str


@dataclass(frozen=True, slots=True)
class Configuration:
    """The settings in force, and where each value comes from."""

    node: NodeSettings
    log_level: str
    log_format: str
    given: dict[str, Given]


class _Key(NamedTuple):
    default: str
    parse: Callable[[Any], Any]
    help: str


def _text(value: Any) -> str:  # noqa: ANN401
    if not isinstance(value, str):
        raise ValueError("a string")
    return value


def _number(value: Any) -> int:  # noqa: ANN401
    try:
        if isinstance(value, bool | float):
            raise ValueError
        return int(value)
    except ValueError:
        raise ValueError("a whole number") from None


def _node_id(value: Any) -> int:  # noqa: ANN401
    try:
        return AUTO if value == "auto" else _number(value)
    except ValueError:
        raise ValueError("a whole number, or auto in a cluster") from None


def _truth(value: Any) -> bool:  # noqa: ANN401
    if isinstance(value, bool):
        return value
    if str(value).lower() in ("true", "false"):
        return str(value).lower() == "true"
    raise ValueError("true or false")


def _one_of(*choices: str) -> Callable[[Any], str]:
    def parse(value: Any) -> str:  # noqa: ANN401
        if value not in choices:
            raise ValueError(" or ".join(choices))
        return str(value)

    return parse


def _listeners(value: Any) -> tuple[ListenerSettings, ...]:  # noqa: ANN401
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list | tuple):
        raise ValueError("a list of HOST:PORT")
    return tuple(_listener(str(item).strip()) for item in items)


def _listener(text: str) -> ListenerSettings:
    bound, _, advertised = text.partition("=")
    host, port = _address(bound)
    advertised_host, advertised_port = _address(advertised) if advertised else ("", 0)
    return ListenerSettings(host, port, advertised_host, advertised_port)


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal():
        raise ValueError("HOST:PORT, or HOST:PORT=ADVERTISED_HOST:PORT")
    return host.strip("[]"), int(port)


_NODE = NodeSettings()
_IN_CLUSTER = ClusterSettings("-", "-")
_STORAGE = StorageSettings()
_CLUSTER_KEYS = {
    f"{CLUSTER}{name}": _Key(str(getattr(_IN_CLUSTER, name.replace("-", "_"))), _number, help_)
    for name, help_ in (
        ("linger-ms", "How long appends are gathered before they are uploaded together."),
        ("bundle-bytes", "Appends of this size are uploaded without waiting for more."),
        ("buffer-bytes", "Limit of appended data that is not uploaded yet."),
        ("cache-bytes", "Memory that caches data read from the object store."),
        ("uploads", "Maximum number of uploads of appended data at the same time."),
        ("append-timeout-ms", "An append that is not committed after this time fails; the producer retries it."),
        ("heartbeat-ms", "Interval between heartbeats of a broker, and between two looks for changes."),
        ("fence-after-ms", "A broker whose heartbeats fail for this long stops serving until they succeed again."),
        ("dead-after-ms", "A broker without heartbeats for this long is presumed dead; others take over."),
        ("hand-over-ms", "How long a broker that stops waits for others to take over its partitions."),
        ("segment-bytes", "Size up to which small pieces of a partition are merged into one object."),
        ("merge-fan-in", "Number of neighboring pieces of similar size that are merged."),
        ("merge-interval-ms", "Interval between two searches for pieces to merge."),
        ("garbage-grace-ms", "How long an object is kept after the last partition stopped using it."),
        ("garbage-interval-ms", "Interval between two removals of such objects."),
        ("orphan-age-ms", "Objects of this age that were never committed are garbage."),
        ("orphan-interval-ms", "Interval between two searches for such objects, which list the whole object store."),
    )
}
KEYS: dict[str, _Key] = {
    "data-dir": _Key(_NODE.data_dir, _text, "Directory of all data."),
    "node-id": _Key(str(_NODE.node_id), _node_id, "Id of this broker; in a cluster also auto: an unused one."),
    "listeners": _Key("127.0.0.1:9092", _listeners, "Addresses to listen on: HOST:PORT[=ADVERTISED_HOST:PORT], ..."),
    "allow-anonymous": _Key("false", _truth, "Allow connections without authentication from other machines."),
    "max-pending-bytes": _Key(
        str(_NODE.max_pending_bytes),
        _number,
        "Stop reading from a client that has this many bytes of unanswered requests.",
    ),
    "max-total-pending-bytes": _Key(
        str(_NODE.max_total_pending_bytes),
        _number,
        "Limit for all clients together; a client that exceeds it is disconnected.",
    ),
    "max-total-reply-bytes": _Key(
        str(_NODE.max_total_reply_bytes),
        _number,
        "Limit of unread replies of all clients together; a client that exceeds it is disconnected.",
    ),
    "memory-budget-bytes": _Key(
        str(_NODE.memory_budget_bytes),
        _number,
        "Total memory of all caches, buffers and state; their limits must fit into it.",
    ),
    "shutdown-grace-ms": _Key(
        str(_NODE.shutdown_grace_ms), _number, "How long to wait for open requests when the broker stops."
    ),
    "tail-cache-bytes": _Key(str(_STORAGE.tail_cache_bytes), _number, "Memory that caches the newest batches."),
    "open-segments": _Key(
        str(_STORAGE.open_segments),
        _number,
        "Maximum number of segments with open files, if the system allows as many.",
    ),
    "flush-threads": _Key(str(_STORAGE.flush_threads), _number, "Number of threads that flush files to disk."),
    _METADATA: _Key("", _text, "URL of the cluster's database: postgresql://user:password@host/database."),
    _METADATA_FILE: _Key("", _text, "File that contains the URL of the cluster's database."),
    "cluster.storage": _Key(
        "", _text, "URL of the cluster's object store: s3://bucket/prefix, gs://..., az://..., file:///directory."
    ),
    **_CLUSTER_KEYS,
    "log-level": _Key("info", _one_of("debug", "info", "warning", "error"), "Lowest level of messages to log."),
    "log-format": _Key("auto", _one_of("auto", "human", "json"), "auto: human on a terminal, json otherwise."),
}
_IN_STORAGE = {field.name for field in fields(StorageSettings)}


def load(file: str | None, flags: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Configuration:
    """The settings in force; raises InvalidSettings with all problems."""
    problems: list[str] = []
    given: dict[str, Given] = {name: Given(key.default, "default") for name, key in KEYS.items()}
    for name, value, source in (
        *_from_file(file, problems),
        *_from_environment(os.environ if environment is None else environment),
        *((name, value, "flag") for name, value in flags.items()),
    ):
        if name in KEYS or name.startswith(KAFKA):
            given[name] = Given(value, source)
        else:
            problems.append(f"unknown setting {name!r} ({source}){_suggestion(name)}")
    values: dict[str, Any] = {}
    for name, key in KEYS.items():
        try:
            values[name] = key.parse(given[name].value)
        except ValueError as error:
            shown = given[name]
            wrong = "" if name == _METADATA else f", not {shown.value!r}"
            problems.append(f"{name} must be {error}{wrong} ({shown.source})")
    return Configuration(_node(values, given, problems), values["log-level"], values["log-format"], given)


def _node(values: dict[str, Any], given: dict[str, Given], problems: list[str]) -> NodeSettings:
    from tidelog.broker.configs import BrokerConfig

    kafka = {
        name.removeprefix(KAFKA): _kafka_text(each.value) for name, each in given.items() if name.startswith(KAFKA)
    }
    try:
        BrokerConfig(kafka)
    except InvalidSettings as error:
        problems += error.problems
    node = None
    cluster = _cluster(values, problems)
    try:
        arguments = {
            name.replace("-", "_"): value for name, value in values.items() if not name.startswith(("log-", CLUSTER))
        }
        storage = {name: arguments.pop(name) for name in _IN_STORAGE if name in arguments}
        if not problems or len(values) == len(KEYS):
            node = NodeSettings(**arguments, storage=StorageSettings(**storage), kafka=kafka, cluster=cluster)
    except InvalidSettings as error:
        problems += error.problems
    if problems or node is None:
        raise InvalidSettings(problems)
    return node


def _cluster(values: dict[str, Any], problems: list[str]) -> ClusterSettings | None:
    """None unless the database or the object store of a cluster is named."""
    named = dict(values)
    path = named.pop(_METADATA_FILE, "")
    if path and named.get(_METADATA):
        problems.append(f"{_METADATA} and {_METADATA_FILE} are both set: use one of them")
    elif path:
        try:
            with open(path) as file:
                named[_METADATA] = file.read().strip()
        except OSError as error:
            problems.append(f"{_METADATA_FILE}: cannot read {path}: {error.strerror or error}")
    if not named.get(_METADATA) and not named.get("cluster.storage"):
        return None
    try:
        return ClusterSettings(
            **{
                name.removeprefix(CLUSTER).replace("-", "_"): value
                for name, value in named.items()
                if name.startswith(CLUSTER)
            }
        )
    except InvalidSettings as error:
        problems += error.problems
    return None


def shown(name: str, given: Given) -> Any:  # noqa: ANN401
    """A setting's value, without secrets."""
    if name == _METADATA and given.value:
        return re.sub(r"(://[^:/@]*):.*@", r"\1:...@", str(given.value))
    return given.value


def _from_file(file: str | None, problems: list[str]) -> list[tuple[str, Any, str]]:
    path = file or DEFAULT_FILE
    try:
        with open(path, "rb") as opened:
            content = tomllib.load(opened)
    except FileNotFoundError:
        if file is not None:
            problems.append(f"settings file {file} does not exist")
        return []
    except tomllib.TOMLDecodeError as error:
        problems.append(f"{path} is not valid TOML: {error}")
        return []
    found: list[tuple[str, Any, str]] = []
    for prefix in (KAFKA, CLUSTER):
        name = prefix.rstrip(".")
        table = content.pop(name, {})
        if isinstance(table, dict):
            found += [(prefix + inner, value, path) for inner, value in _flat(table)]
        else:
            problems.append(f"[{name}] in {path} must be a table")
    return [*((name, value, path) for name, value in content.items()), *found]


def _flat(table: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """In TOML, `log.retention.ms = 1` without quotes makes nested tables."""
    flat: list[tuple[str, Any]] = []
    for name, value in table.items():
        flat += _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else [(prefix + name, value)]
    return flat


def _from_environment(environment: Mapping[str, str]) -> list[tuple[str, Any, str]]:
    found: list[tuple[str, Any, str]] = []
    for variable, value in environment.items():
        if not variable.startswith(ENVIRONMENT) or variable in _NOT_SETTINGS:
            continue
        name = variable.removeprefix(ENVIRONMENT).lower()
        if name.startswith("kafka_"):
            found.append((KAFKA + name.removeprefix("kafka_").replace("_", "."), value, variable))
        elif name.startswith("cluster_"):
            found.append((CLUSTER + name.removeprefix("cluster_").replace("_", "-"), value, variable))
        else:
            found.append((name.replace("_", "-"), value, variable))
    return found


_NOT_SETTINGS = {"TIDELOG_BOOTSTRAP", "TIDELOG_CONFIG"}


def _kafka_text(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _suggestion(name: str) -> str:
    close = get_close_matches(name, KEYS, 1)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; a Kafka config goes into [kafka], as {KAFKA}{name}" if "." in name else ""
