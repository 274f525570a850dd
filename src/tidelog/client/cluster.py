"""The brokers as the client knows them: their addresses, the leaders of partitions, and the connections to them.

Connections belong to a lane. Most requests share the lane `SHARED`, with one connection per broker. Requests that the
broker may hold back for long (a fetch, a join) have lanes of their own, because brokers answer the requests of a
connection in order: a heartbeat must not wait behind a fetch.

Cached metadata may be out of date at any time. Brokers then answer with retriable errors, and `retrying` drops the
cache and tries again.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from tidelog.client.connection import BrokerConnection
from tidelog.client.deadline import Backoff, Deadline
from tidelog.client.errors import (
    BrokerError,
    ClientClosed,
    ClientError,
    ConnectionLost,
    RequestTimedOut,
    Unreachable,
    check,
    is_unknown_topic,
)
from tidelog.client.options import Address, ClientOptions
from tidelog.model import LeaderEpoch, TopicPartition
from tidelog.wire.apis import BY_NAME
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from tidelog.wire.primitives import NO_UUID, Struct

T = TypeVar("T")

SHARED = "shared"
NO_NODE = -1


class BrokerNode(NamedTuple):
    id: int
    address: Address
    rack: str | None


class PartitionMetadata(NamedTuple):
    partition: int
    leader: int
    leader_epoch: LeaderEpoch
    replicas: Sequence[int]
    in_sync: Sequence[int]


class TopicMetadata(NamedTuple):
    name: str
    topic_id: bytes
    is_internal: bool
    partitions: dict[int, PartitionMetadata]
    led: list[int]
    """The partitions that have a leader now."""
    learned_at: float


class _Link:
    """The connection of one lane to one address, opened on first use, and again after it was lost."""

    def __init__(self, address: Address, options: ClientOptions) -> None:
        self._address = address
        self._options = options
        self._opening = asyncio.Lock()
        self._backoff = Backoff(options.retry_backoff_ms, options.retry_backoff_max_ms)
        self._not_before = 0.0
        self.connection: BrokerConnection | None = None

    @property
    def is_open(self) -> bool:
        return self.connection is not None and self.connection.is_open

    async def get(self) -> BrokerConnection:
        async with self._opening:
            if self.connection is not None and self.connection.is_open:
                return self.connection
            await asyncio.sleep(max(0.0, self._not_before - time.monotonic()))
            try:
                self.connection = await BrokerConnection.open(self._address, self._options)
            except ClientError:
                self._not_before = time.monotonic() + self._backoff.next_s()
                raise
            self._backoff.reset()
            return self.connection

    async def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
            await self.connection.wait_closed()


class Cluster:
    def __init__(self, bootstrap: Sequence[Address], options: ClientOptions) -> None:
        self.options = options
        self.nodes: dict[int, BrokerNode] = {}
        self.cluster_id: str | None = None
        self.controller_id = NO_NODE
        self._knows_controller = False
        self._bootstrap = list(bootstrap)
        self._links: dict[tuple[Hashable, Address], _Link] = {}
        self._topics: dict[str, TopicMetadata] = {}
        self._ids: dict[str, bytes] = {}  # with _names: stays when a topic is forgotten, for requests under way
        self._names: dict[bytes, str] = {}
        self._is_closed = False

    async def start(self) -> None:
        """Find a broker. One try: a client that starts should fail at once if no broker is there."""
        await self._ask_metadata(MetadataRequest(topics=[]))

    async def close(self) -> None:
        self._is_closed = True
        links, self._links = self._links, {}
        for link in links.values():
            await link.close()

    def deadline(self) -> Deadline:
        return Deadline(self.options.timeout_ms)

    # --- requests -------------------------------------------------------------------------------------------------

    async def request(
        self,
        api: str,
        message: Struct,
        *,
        node: int | None = None,
        lane: Hashable = SHARED,
        timeout_ms: int | None = None,
        at_most: int | None = None,
    ) -> Any:  # noqa: ANN401  (one of the response classes)
        """Send one request to one broker (any, if `node` is None); one try."""
        connection = await self.connection(node, lane)
        timeout_s = (self.options.request_timeout_ms if timeout_ms is None else timeout_ms) / 1000
        return await connection.request(BY_NAME[api], message, timeout_s=timeout_s, at_most=at_most)

    async def retrying(
        self,
        attempt: Callable[[], Awaitable[T]],
        *,
        repeatable: bool = True,
    ) -> T:
        """The result of `attempt`, tried again after retriable errors until `timeout_ms` has passed; then the last
        error.

        With `repeatable=False` it is not tried again if the broker may have carried it out: for requests that are not
        idempotent. An unknown topic is looked up again for `unknown_topic_ms` only.
        """
        deadline = self.deadline()
        unknown_topic_deadline = Deadline(self.options.unknown_topic_ms)
        backoff = Backoff(self.options.retry_backoff_ms, self.options.retry_backoff_max_ms)
        while True:
            try:
                return await attempt()
            except ClientError as error:
                pause_s = backoff.next_s()
                may_be_done = isinstance(error, ConnectionLost | RequestTimedOut)
                if (
                    not error.retriable
                    or (may_be_done and not repeatable)
                    or (is_unknown_topic(error) and unknown_topic_deadline.passed)
                    or deadline.left_s() <= pause_s
                    or self._is_closed
                ):
                    raise
                self.forget()
            await asyncio.sleep(pause_s)

    async def controller(self) -> int | None:
        """The node that changes the cluster, or None if no broker says which one that is. One try."""
        if not self._knows_controller:
            await self._ask_metadata(MetadataRequest(topics=[]))
        return self.controller_id if self.controller_id in self.nodes else None

    async def connection(self, node: int | None = None, lane: Hashable = SHARED) -> BrokerConnection:
        if node is None:
            return await self._any_connection(lane)
        if node not in self.nodes:
            await self._ask_metadata(MetadataRequest(topics=[]))
            if node not in self.nodes:
                raise Unreachable(f"cannot reach node {node}: no broker has this id")
        return await self._link(lane, self.nodes[node].address).get()

    async def _any_connection(self, lane: Hashable) -> BrokerConnection:
        known = [node.address for node in self.nodes.values()]
        addresses = list(dict.fromkeys([*known, *self._bootstrap]))
        links = sorted((self._link(lane, address) for address in addresses), key=lambda link: not link.is_open)
        problems: list[ClientError] = []
        for link in links:
            try:
                return await link.get()
            except ClientError as error:
                problems.append(error)
        if len(problems) == 1:
            raise problems[0]
        raise Unreachable("; ".join(dict.fromkeys(map(str, problems))))

    def _link(self, lane: Hashable, address: Address) -> _Link:
        if self._is_closed:
            raise ClientClosed("the client is closed")
        link = self._links.get((lane, address))
        if link is None:
            link = self._links[lane, address] = _Link(address, self.options)
        return link

    async def close_lane(self, lane: Hashable) -> None:
        for key in [key for key in self._links if key[0] == lane]:
            await self._links.pop(key).close()

    # --- what is known of topics ----------------------------------------------------------------------------------

    def cached_topic(self, name: str) -> TopicMetadata | None:
        """From the cache, or None; may be called from other threads."""
        topic = self._topics.get(name)
        if topic is None or time.monotonic() - topic.learned_at > self.options.metadata_max_age_ms / 1000:
            return None
        return topic

    def topic_name(self, name: str, topic_id: bytes) -> str:
        """Newer versions of some responses carry a topic's id in place of its name."""
        return name or self._names.get(topic_id, "")

    def topic_id(self, name: str) -> bytes:
        return self._ids.get(name, NO_UUID)

    def forget(self, topic: str | None = None) -> None:
        """Drop the cached metadata of a topic; or of all topics, and of the controller."""
        if topic is None:
            self._topics.clear()
            self._knows_controller = False
        else:
            self._topics.pop(topic, None)

    async def topic(self, name: str, *, create: bool = False) -> TopicMetadata:
        """With `create` the broker may create the topic, if it is configured to."""
        return await self.retrying(lambda: self.ask_topic(name, create=create))

    async def ask_topic(self, name: str, *, create: bool = False) -> TopicMetadata:
        """From the cache or the broker; one try."""
        topic = self.cached_topic(name)
        if topic is not None:
            return topic
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=create)
        response = await self._ask_metadata(request)
        for found in response.topics:
            if found.name == name:
                if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    break
                check(found.error_code, f"looking for topic {name!r}")
                return self._topics[name]
        advice = f"it does not exist; create it with: tidelog topic create {name}"
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"looking for topic {name!r}", advice)

    async def all_topics(self) -> list[TopicMetadata]:
        """Every topic, straight from a broker."""
        response = await self.retrying(lambda: self._ask_metadata(MetadataRequest(topics=None)))
        return [self._topics[topic.name] for topic in response.topics if not topic.error_code and topic.name]

    async def leader(self, partition: TopicPartition) -> int:
        """One try; raises a retriable error if the partition has no leader now."""
        topic = await self.ask_topic(partition.topic)
        known = topic.partitions.get(partition.partition)
        if known is None:
            last = f"the topic has {len(topic.partitions)} partition{'s' * (len(topic.partitions) != 1)}"
            self.forget(partition.topic)
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"looking for partition {partition}", last)
        if known.leader == NO_NODE:
            self.forget(partition.topic)
            raise BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, f"looking for the leader of {partition}")
        return known.leader

    async def by_leader(self, partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        groups: dict[int, list[TopicPartition]] = {}
        for partition in partitions:
            groups.setdefault(await self.leader(partition), []).append(partition)
        return groups

    async def _ask_metadata(self, request: MetadataRequest) -> MetadataResponse:
        response: MetadataResponse = await self.request("Metadata", request)
        check(response.error_code, "asking for metadata")
        now = time.monotonic()
        if response.brokers:
            self.nodes = {
                broker.node_id: BrokerNode(broker.node_id, Address(broker.host, broker.port), broker.rack)
                for broker in response.brokers
            }
        self.cluster_id, self.controller_id = response.cluster_id, response.controller_id
        self._knows_controller = True
        for topic in response.topics:
            if topic.error_code == 0:
                self._learn(topic, now)
        return response

    def _learn(self, topic: MetadataResponseTopic, now: float) -> None:
        partitions = {
            row.partition_index: PartitionMetadata(
                row.partition_index, row.leader_id, LeaderEpoch(row.leader_epoch), row.replica_nodes, row.isr_nodes
            )
            for row in sorted(topic.partitions, key=lambda row: row.partition_index)
        }
        name = topic.name or ""
        led = [index for index, partition in partitions.items() if partition.leader != NO_NODE]
        self._topics[name] = TopicMetadata(name, topic.topic_id, topic.is_internal, partitions, led, now)
        self._names.pop(self._ids.get(name, NO_UUID), None)
        self._ids[name], self._names[topic.topic_id] = topic.topic_id, name
