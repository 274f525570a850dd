"""The APIs that are offered: for each its module in `api/`, and what a client must be allowed to do to use it.

`OFFERED` is what ApiVersions advertises, with Kafka 4.2's version ranges. It includes APIs of services that Tidelog
does not have, such as ACLs or quotas: they answer as a Kafka that does not use the service, so that tools which only
read work. Tidelog's own APIs have keys from 10000 on (docs/adr/0005); other clients ignore them.

The demands are Kafka's (its documentation: "Operations and resources on protocols"). `gate` checks them before a
handler sees a request. The few that are marked `by_handler` are checked by the handler itself, because it answers
with more than errors, or for more than the request names. An API without demands is open to every client.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from tidelog.broker.admission import Operation, ResourceKind
from tidelog.wire.apis import APIS, Api

Kind: TypeAlias = ResourceKind | Callable[[Any, Any], ResourceKind | None]

READ, WRITE, CREATE, DELETE = Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE
ALTER, DESCRIBE, CLUSTER_ACTION = Operation.ALTER, Operation.DESCRIBE, Operation.CLUSTER_ACTION
DESCRIBE_CONFIGS, ALTER_CONFIGS = Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS
TOPIC, GROUP, CLUSTER = ResourceKind.TOPIC, ResourceKind.GROUP, ResourceKind.CLUSTER
TRANSACTIONAL_ID = ResourceKind.TRANSACTIONAL_ID

_ANY_VERSION = 1 << 15


@dataclass(frozen=True, slots=True)
class Demand:
    """An operation that must be allowed on the resources that a request names."""

    operation: Operation
    kind: Kind
    """Or a function that returns it for the message and the entry; None: the handler reports what is wrong."""
    field: str = ""
    """The field of the message that names the resource. The whole request is refused."""
    lists: tuple[str, ...] = ()
    """The path of the list whose entries name resources, outermost first. The entries are refused one by one."""
    since: int = 0
    until: int = _ANY_VERSION
    when: Callable[[Any], bool] | None = None
    or_on_cluster: Operation | None = None
    """This operation on the cluster is sufficient, too."""
    all_or_none: bool = False
    """If one entry is refused, none of the others is attempted."""
    is_coordinated: bool = False
    """This broker must be the coordinator of the resource."""
    by_handler: bool = False


@dataclass(frozen=True, slots=True)
class ApiRow:
    module: str
    demands: tuple[Demand, ...]
    for_controller: bool = False
    """The request must be sent to the controller."""
    follows_group: bool = False
    """If the group has just moved, its new coordinator is asked (`moved_groups`)."""


def _row(module: str, *demands: Demand, for_controller: bool = False, follows_group: bool = False) -> ApiRow:
    return ApiRow(module, demands, for_controller, follows_group)


def _each(
    operation: Operation,
    kind: Kind,
    lists: str,
    *,
    since: int = 0,
    until: int = _ANY_VERSION,
    or_on_cluster: Operation | None = None,
    all_or_none: bool = False,
    is_coordinated: bool = False,
    by_handler: bool = False,
) -> Demand:
    return Demand(
        operation,
        kind,
        lists=tuple(lists.split(".")),
        since=since,
        until=until,
        or_on_cluster=or_on_cluster,
        all_or_none=all_or_none,
        is_coordinated=is_coordinated,
        by_handler=by_handler,
    )


def _on_cluster(operation: Operation, *, since: int = 0) -> Demand:
    return Demand(operation, CLUSTER, since=since)


def _on_group(operation: Operation, *, until: int = _ANY_VERSION) -> Demand:
    """A demand on the group; the request must be sent to its coordinator."""
    return Demand(operation, GROUP, "group_id", until=until, is_coordinated=True)


def _on_transaction(operation: Operation, *, is_coordinated: bool = True) -> Demand:
    return Demand(operation, TRANSACTIONAL_ID, "transactional_id", is_coordinated=is_coordinated)


def _coordinated_kind(message: Any, _entry: object) -> ResourceKind | None:  # noqa: ANN401  (FindCoordinator)
    return {0: GROUP, 1: TRANSACTIONAL_ID}.get(message.key_type)


def _config_kind(_message: object, entry: Any) -> ResourceKind | None:  # noqa: ANN401  (of an API for configs)
    """Brokers, their loggers and client metrics belong to the cluster."""
    return {2: TOPIC, 4: CLUSTER, 8: CLUSTER, 16: CLUSTER, 32: GROUP}.get(entry.resource_type)


def _is_not_transactional(message: Any) -> bool:  # noqa: ANN401  (InitProducerId)
    return message.transactional_id is None


def _changes_something(message: Any) -> bool:  # noqa: ANN401  (DrainBrokers)
    return bool(message.brokers)


TABLE: dict[int, ApiRow] = {
    0: _row("produce", _on_transaction(WRITE, is_coordinated=False), _each(WRITE, TOPIC, "topic_data")),
    1: _row("fetch", _each(READ, TOPIC, "topics", by_handler=True)),
    2: _row("list_offsets", _each(DESCRIBE, TOPIC, "topics")),
    3: _row("metadata", _each(DESCRIBE, TOPIC, "topics", by_handler=True)),
    8: _row("offset_commit", _on_group(READ), _each(READ, TOPIC, "topics")),
    9: _row(
        "offset_fetch",
        _on_group(DESCRIBE, until=7),
        _each(DESCRIBE, TOPIC, "topics", until=7),
        _each(DESCRIBE, GROUP, "groups", since=8, is_coordinated=True),
        _each(DESCRIBE, TOPIC, "groups.topics", since=8),
        follows_group=True,
    ),
    10: _row(
        "find_coordinator",
        Demand(DESCRIBE, _coordinated_kind, "key", until=3),
        _each(DESCRIBE, _coordinated_kind, "coordinator_keys", since=4),
    ),
    11: _row("join_group", _on_group(READ)),
    12: _row("heartbeat", _on_group(READ)),
    13: _row("leave_group", _on_group(READ)),
    14: _row("sync_group", _on_group(READ)),
    15: _row("describe_groups", _each(DESCRIBE, GROUP, "groups", is_coordinated=True)),
    16: _row("list_groups"),  # lists the groups that the client may describe
    17: _row("sasl_handshake"),
    18: _row("api_versions"),
    19: _row("create_topics", _each(CREATE, TOPIC, "topics", or_on_cluster=CREATE), for_controller=True),
    20: _row(
        "delete_topics",
        _each(DELETE, TOPIC, "topic_names", until=5),
        _each(DELETE, TOPIC, "topics", since=6),
        for_controller=True,
    ),
    21: _row("delete_records", _each(DELETE, TOPIC, "topics")),
    22: _row(
        "init_producer_id",
        _on_transaction(WRITE),
        Demand(Operation.IDEMPOTENT_WRITE, CLUSTER, when=_is_not_transactional),
    ),
    23: _row("offset_for_leader_epoch", _each(DESCRIBE, TOPIC, "topics", or_on_cluster=CLUSTER_ACTION)),
    24: _row(
        "add_partitions_to_txn",
        Demand(WRITE, TRANSACTIONAL_ID, "v3_and_below_transactional_id", until=3, is_coordinated=True),
        _each(WRITE, TOPIC, "v3_and_below_topics", until=3, all_or_none=True),
        _on_cluster(CLUSTER_ACTION, since=4),  # from v4 on, only brokers send it, for many clients at once
        _each(
            CLUSTER_ACTION,
            TRANSACTIONAL_ID,
            "transactions",
            since=4,
            or_on_cluster=CLUSTER_ACTION,
            is_coordinated=True,
        ),
    ),
    25: _row("add_offsets_to_txn", _on_transaction(WRITE), Demand(READ, GROUP, "group_id")),
    26: _row("end_txn", _on_transaction(WRITE)),
    27: _row("write_txn_markers", _on_cluster(CLUSTER_ACTION)),
    28: _row(
        "txn_offset_commit",
        _on_transaction(WRITE, is_coordinated=False),
        _on_group(READ),
        _each(READ, TOPIC, "topics"),
    ),
    29: _row("describe_acls", _on_cluster(DESCRIBE)),
    30: _row("create_acls", _on_cluster(ALTER)),
    31: _row("delete_acls", _on_cluster(ALTER)),
    32: _row("describe_configs", _each(DESCRIBE_CONFIGS, _config_kind, "resources")),
    33: _row("alter_configs", _each(ALTER_CONFIGS, _config_kind, "resources"), for_controller=True),
    34: _row("alter_replica_log_dirs", _on_cluster(ALTER)),
    35: _row("describe_log_dirs", _on_cluster(DESCRIBE)),
    36: _row("sasl_authenticate"),
    37: _row("create_partitions", _each(ALTER, TOPIC, "topics"), for_controller=True),
    38: _row("create_delegation_token"),  # these are about the client's own tokens
    39: _row("renew_delegation_token"),
    40: _row("expire_delegation_token"),
    41: _row("describe_delegation_token"),
    42: _row("delete_groups", _each(DELETE, GROUP, "groups_names", is_coordinated=True)),
    43: _row("elect_leaders", _on_cluster(ALTER), for_controller=True),
    44: _row("incremental_alter_configs", _each(ALTER_CONFIGS, _config_kind, "resources"), for_controller=True),
    45: _row("alter_partition_reassignments", _on_cluster(ALTER), for_controller=True),
    46: _row("list_partition_reassignments", _on_cluster(DESCRIBE), for_controller=True),
    47: _row("offset_delete", _on_group(DELETE), _each(READ, TOPIC, "topics")),
    48: _row("describe_client_quotas", _on_cluster(DESCRIBE_CONFIGS)),
    49: _row("alter_client_quotas", _on_cluster(ALTER_CONFIGS)),
    50: _row("describe_user_scram_credentials", _on_cluster(DESCRIBE)),
    51: _row("alter_user_scram_credentials", _on_cluster(ALTER)),
    55: _row("describe_quorum", _on_cluster(DESCRIBE)),
    57: _row("update_features", _on_cluster(ALTER), for_controller=True),
    60: _row("describe_cluster"),  # every client may see the brokers, as in Metadata
    61: _row("describe_producers", _each(READ, TOPIC, "topics")),
    64: _row("unregister_broker", _on_cluster(ALTER), for_controller=True),
    65: _row("describe_transactions", _each(DESCRIBE, TRANSACTIONAL_ID, "transactional_ids", is_coordinated=True)),
    66: _row("list_transactions"),  # lists those that the client may describe
    68: _row(
        "consumer_group_heartbeat",
        _on_group(READ),
        _each(DESCRIBE, TOPIC, "subscribed_topic_names", all_or_none=True),
    ),
    69: _row("consumer_group_describe", _each(DESCRIBE, GROUP, "group_ids", is_coordinated=True)),
    74: _row("list_config_resources", _on_cluster(DESCRIBE_CONFIGS)),
    75: _row("describe_topic_partitions", _each(DESCRIBE, TOPIC, "topics", by_handler=True)),
    77: _row("share_group_describe", _each(DESCRIBE, GROUP, "group_ids", is_coordinated=True)),
    89: _row("streams_group_describe", _each(DESCRIBE, GROUP, "group_ids", is_coordinated=True)),
    90: _row("describe_share_group_offsets", _each(DESCRIBE, GROUP, "groups", is_coordinated=True)),
    10000: _row("table_get", Demand(READ, TOPIC, "topic")),
    10001: _row("table_describe", _each(DESCRIBE, TOPIC, "topics")),
    10002: _row(
        "decide_transactions",
        Demand(DESCRIBE, TRANSACTIONAL_ID, "scope", is_coordinated=True),  # ids begin with their scope
        _each(WRITE, TRANSACTIONAL_ID, "transactions", all_or_none=True),
    ),
    10003: _row("describe_decision", Demand(DESCRIBE, TRANSACTIONAL_ID, "scope", is_coordinated=True)),
    10004: _row("describe_memory", _on_cluster(DESCRIBE)),
    10005: _row("drain_brokers", _on_cluster(DESCRIBE), Demand(ALTER, CLUSTER, when=_changes_something)),
    10006: _row("locate_records", Demand(READ, TOPIC, "topic")),
    10007: _row(
        "store_transaction_offsets",
        _on_cluster(CLUSTER_ACTION),
        Demand(
            CLUSTER_ACTION,
            TRANSACTIONAL_ID,
            "transactional_id",
            or_on_cluster=CLUSTER_ACTION,
            is_coordinated=True,
        ),
    ),
    10008: _row(
        "transaction_ended",
        _on_cluster(CLUSTER_ACTION),
        Demand(CLUSTER_ACTION, GROUP, "group_id", or_on_cluster=CLUSTER_ACTION, is_coordinated=True),
    ),
}
OFFERED: tuple[Api, ...] = tuple(APIS[key] for key in TABLE)
