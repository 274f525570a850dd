"""A client of Tidelog and of Kafka: `connect` for programs without an event loop, `AsyncClient` for those with one.

    blocking, asynchronous    the two clients; `loop_thread` runs the blocking one
    producing/                records, batches and transactions on their way in
    consuming/                streams, groups and ranges on their way out
    admin/                    topics, configs, groups and transactions of others: asked for and changed
    tables                    the last values of keys
    cluster, connection, coordinator    brokers, who leads what, and how they are asked
    options, errors, deadline, content  values

It uses `wire` and `records` and nothing else. docs/client.md shows how it is used.
"""

from tidelog.client.admin.groups import GroupDescription, GroupListing, GroupMember
from tidelog.client.admin.topics import ClusterInfo, ConfigEntry, MemoryInfo, PartitionInfo, TopicInfo
from tidelog.client.admin.transactions import (
    ProducerInPartition,
    TransactionAdmin,
    TransactionDescription,
    TransactionListing,
)
from tidelog.client.asynchronous import AsyncClient
from tidelog.client.blocking import Client, connect
from tidelog.client.consuming.blocking import BlockingStream
from tidelog.client.consuming.committed import CommittedOffset, Member
from tidelog.client.consuming.consumer import ConsumedRecord, RecordStream
from tidelog.client.consuming.fetcher import Fetched
from tidelog.client.consuming.offsets import EARLIEST, LATEST, OffsetAtTime, Start
from tidelog.client.errors import (
    BrokerError,
    ClientClosed,
    ClientError,
    ConnectionLost,
    DeliveryFailed,
    IncompatibleBroker,
    RequestTimedOut,
    TransactionFailed,
    Unreachable,
)
from tidelog.client.options import ClientOptions, FetchOptions, GroupOptions, ProducerOptions
from tidelog.client.producing.accumulator import Delivered, Receipt
from tidelog.client.producing.blocking import BlockingProducer, BlockingTransactionalProducer
from tidelog.client.producing.producer import Producer
from tidelog.client.producing.transactions import OpenTransaction, TransactionalProducer, id_of_task
from tidelog.client.tables import Freshness, TableInfo, TableValue

__all__ = [
    "EARLIEST",
    "LATEST",
    "AsyncClient",
    "BlockingProducer",
    "BlockingStream",
    "BlockingTransactionalProducer",
    "BrokerError",
    "Client",
    "ClientClosed",
    "ClientError",
    "ClientOptions",
    "ClusterInfo",
    "CommittedOffset",
    "ConfigEntry",
    "ConnectionLost",
    "ConsumedRecord",
    "Delivered",
    "DeliveryFailed",
    "FetchOptions",
    "Fetched",
    "Freshness",
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "GroupOptions",
    "IncompatibleBroker",
    "Member",
    "MemoryInfo",
    "OffsetAtTime",
    "OpenTransaction",
    "PartitionInfo",
    "Producer",
    "ProducerInPartition",
    "ProducerOptions",
    "Receipt",
    "RecordStream",
    "RequestTimedOut",
    "Start",
    "TableInfo",
    "TableValue",
    "TopicInfo",
    "TransactionAdmin",
    "TransactionDescription",
    "TransactionFailed",
    "TransactionListing",
    "TransactionalProducer",
    "Unreachable",
    "connect",
    "id_of_task",
]
