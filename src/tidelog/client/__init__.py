"""A client of Tidelog and of Kafka: `connect` for programs without an event loop, `AsyncClient` for those with one.

    blocking, asynchronous    the two faces
    producer, accumulator, partitioner    records on their way in
    transactions, transaction_admin       records that count together; ending them from outside
    consumer, group, fetcher, offsets     records on their way out
    membership, assignor, coordinator     groups, by the classic protocol
    admin, group_admin                    topics, configs, groups: asked for and changed
    tables                                the last values of keys
    cluster, connection                   brokers, who leads what, and how they are asked
    options, errors, deadline, content    values

It uses `wire` and `records` and nothing else. docs/client.md shows how it is used.
"""

from tidelog.client.accumulator import Delivered, Receipt
from tidelog.client.admin import ClusterInfo, ConfigEntry, PartitionInfo, TopicInfo
from tidelog.client.asynchronous import AsyncClient
from tidelog.client.blocking import (
    BlockingProducer,
    BlockingStream,
    BlockingTransactionalProducer,
    Client,
    connect,
)
from tidelog.client.consumer import ConsumedRecord, Member, RecordStream
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
from tidelog.client.fetcher import Fetched
from tidelog.client.group_admin import CommittedOffset, GroupDescription, GroupListing, GroupMember
from tidelog.client.offsets import EARLIEST, LATEST, OffsetAtTime, Start
from tidelog.client.options import ClientOptions, FetchOptions, GroupOptions, ProducerOptions
from tidelog.client.producer import Producer
from tidelog.client.tables import Freshness, TableInfo, TableValue
from tidelog.client.transaction_admin import (
    ProducerInPartition,
    TransactionAdmin,
    TransactionDescription,
    TransactionListing,
)
from tidelog.client.transactions import OpenTransaction, TransactionalProducer

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
]
