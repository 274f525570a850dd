"""A small Kafka cluster in memory, on real sockets in the test's own event loop, that does wrong when it is told to.

`cluster.fail("Produce", drop_before)` makes the next Produce go wrong; several are used up in their order. What every
node shares (topics, groups) is in `FakeCluster`; a `FakeNode` is a listener that answers for the partitions it leads.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any, NamedTuple, TypeAlias

from tests.client.fake_groups import FakeGroups
from tidelog.client import AsyncClient, ClientOptions
from tidelog.model import LeaderEpoch
from tidelog.records.batch import BatchHeader, iterate, place, read_produced
from tidelog.records.record import Record, decode
from tidelog.wire.apis import BY_NAME
from tidelog.wire.envelope import RequestHeader, decode_request_body, decode_request_header, encode_response
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.framing import FrameReader
from tidelog.wire.generated import (
    api_versions,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_configs,
    fetch,
    incremental_alter_configs,
    init_producer_id,
    list_offsets,
    metadata,
    produce,
)
from tidelog.wire.primitives import Struct

FAST = ClientOptions(retry_backoff_ms=1, retry_backoff_max_ms=5, timeout_ms=5_000, unknown_topic_ms=30)


class Reply(NamedTuple):
    """What a fault makes of a response: bytes to send in its place, and whether to hang up after them."""

    data: bytes
    hang_up: bool = False


Answer: TypeAlias = Callable[[], Awaitable[bytes]]
Fault: TypeAlias = Callable[[Answer, Struct], Awaitable[Reply]]


async def drop_before(answer: Answer, request: Struct) -> Reply:
    """Hang up without having done what was asked."""
    return Reply(b"", hang_up=True)


async def drop_after(answer: Answer, request: Struct) -> Reply:
    """Do what was asked, and hang up without saying so."""
    await answer()
    return Reply(b"", hang_up=True)


async def linger_and_drop(answer: Answer, request: Struct) -> Reply:
    """As `drop_after`, but not before some milliseconds have passed."""
    await answer()
    await asyncio.sleep(0.01)
    return Reply(b"", hang_up=True)


async def cut_short(answer: Answer, request: Struct) -> Reply:
    """Hang up in the middle of the response."""
    data = await answer()
    return Reply(data[: len(data) // 2], hang_up=True)


async def garbage(answer: Answer, request: Struct) -> Reply:
    return Reply(b"HTTP/1.1 400 Bad Request\r\n\r\n")


async def garbled_body(answer: Answer, request: Struct) -> Reply:
    """A frame of the right length and correlation id, with nonsense in it."""
    data = await answer()
    return Reply(data[:8] + b"\xff" * (len(data) - 8))


async def silence(answer: Answer, request: Struct) -> Reply:
    await asyncio.get_running_loop().create_future()
    raise AssertionError


def after(event: asyncio.Event) -> Fault:
    """The right answer, but not before the event."""

    async def wait(answer: Answer, request: Struct) -> Reply:
        await event.wait()
        return Reply(await answer())

    return wait


def refuse(code: int) -> Fault:
    """The error for every partition, or topic, of the request: what the handler makes of `request.fault`."""

    async def answer_with_code(answer: Answer, request: Struct) -> Reply:
        _REFUSALS[id(request)] = code
        try:
            return Reply(await answer())
        finally:
            del _REFUSALS[id(request)]

    return answer_with_code


_REFUSALS: dict[int, int] = {}


class Partition:
    def __init__(self, leader: int) -> None:
        self.leader = leader
        self.epoch = 0
        self.start = 0
        self.batches: list[bytearray] = []
        self.aborted: list[fetch.AbortedTransaction] = []
        self.sequences: dict[
            int, tuple[int, int, int]
        ] = {}  # producer: epoch, next sequence, offset of the last batch

    @property
    def end(self) -> int:
        return _header_of(self.batches[-1]).next_offset if self.batches else self.start

    def append(self, data: bytes | bytearray | memoryview) -> tuple[int, int]:
        batch = bytearray(data)
        header = read_produced(memoryview(batch), 0)
        if header.has_producer:
            epoch, expected, last = self.sequences.get(header.producer_id, (header.producer_epoch, 0, -1))
            if header.base_sequence + header.record_count == expected and last >= 0:
                return 0, last  # a repeat
            if header.base_sequence != expected:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            self.sequences[header.producer_id] = epoch, expected + header.record_count, self.end
        offset = self.end
        place(batch, 0, header, offset, LeaderEpoch(self.epoch))
        self.batches.append(batch)
        return 0, offset

    def read_from(self, offset: int) -> bytes:
        return b"".join(batch for batch in self.batches if _header_of(batch).last_offset >= offset)

    def records(self) -> list[Record]:
        return [record for batch in self.batches for view in iterate(batch) for record in decode(view)]


def _header_of(batch: bytearray) -> BatchHeader:
    return next(iterate(batch, verify=False)).header


class Topic:
    def __init__(self, number: int, partitions: int, nodes: int) -> None:
        self.id = number.to_bytes(16)
        self.partitions = [Partition(leader=index % nodes) for index in range(partitions)]
        self.configs: dict[str, str] = {}


class FakeCluster:
    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.nodes: list[FakeNode] = []
        self.groups = FakeGroups()
        self.requests: list[tuple[int, str, int]] = []
        self.changed = asyncio.Event()
        self.auto_create = False
        self.controller = 0
        self.ranges: dict[str, tuple[int, int]] = {}
        self.fetch_tail = b""  # what a fetch ends in, after its whole batches
        self._faults: dict[str, deque[Fault]] = defaultdict(deque)
        self._ids = 0

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    def create(self, name: str, partitions: int = 1) -> Topic:
        self._ids += 1
        topic = self.topics[name] = Topic(self._ids, partitions, len(self.nodes))
        return topic

    def partition(self, name: str, number: int = 0) -> Partition:
        return self.topics[name].partitions[number]

    def values(self, name: str, number: int = 0) -> list[bytes | None]:
        return [record.value for record in self.partition(name, number).records()]

    def fail(self, api: str, *faults: Fault) -> None:
        self._faults[api].extend(faults)

    def next_fault(self, api: str) -> Fault | None:
        faults = self._faults[api]
        return faults.popleft() if faults else None

    def asked(self, api: str) -> list[int]:
        """The nodes that were asked for it, in order."""
        return [node for node, name, _ in self.requests if name == api]

    def new_producer_id(self) -> int:
        self._ids += 1
        return 1000 + self._ids

    def topic_of(self, name: str, topic_id: bytes) -> tuple[str, Topic | None]:
        if name:
            return name, self.topics.get(name)
        found = [(name, topic) for name, topic in self.topics.items() if topic.id == topic_id]
        return found[0] if found else ("", None)

    def tell(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


class FakeNode:
    def __init__(self, cluster: FakeCluster, number: int) -> None:
        self.cluster = cluster
        self.number = number
        self.port = 0
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._handlers: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        for handler in list(self._handlers):
            handler.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        self._writers.add(writer)
        frames = FrameReader()
        try:
            while data := await reader.read(1 << 16):
                for frame in frames.feed(data):
                    reply = await self._reply(bytes(frame))
                    writer.write(reply.data)
                    if reply.hang_up:
                        return
                    await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._handlers.discard(task)
            self._writers.discard(writer)
            writer.close()

    async def _reply(self, frame: bytes) -> Reply:
        view = memoryview(frame)
        header = decode_request_header(view)
        name = header.api.name
        self.cluster.requests.append((self.number, name, header.api_version))
        if name == "ApiVersions" and not self._range(name)[0] <= header.api_version <= self._range(name)[1]:
            response = self._api_versions()
            response.error_code = ErrorCode.UNSUPPORTED_VERSION
            return Reply(b"".join(encode_response(header.api, 0, header.correlation_id, response)))  # type: ignore[arg-type]
        request = decode_request_body(header, view)

        async def answer() -> bytes:
            response = await self._handle(header, request)
            if response is None:
                return b""
            chunks = encode_response(header.api, header.api_version, header.correlation_id, response)
            return b"".join(chunks)  # type: ignore[arg-type]

        fault = self.cluster.next_fault(name)
        return Reply(await answer()) if fault is None else await fault(answer, request)

    def _range(self, api: str) -> tuple[int, int]:
        known = BY_NAME[api]
        return self.cluster.ranges.get(api, (known.min_version, known.max_version))

    def _api_versions(self) -> api_versions.ApiVersionsResponse:
        rows = []
        for name in [*self._handlers_by_name(), *self.cluster.groups.handlers()]:
            low, high = self._range(name)
            rows.append(api_versions.ApiVersion(api_key=BY_NAME[name].key, min_version=low, max_version=high))
        return api_versions.ApiVersionsResponse(api_keys=rows)

    async def _handle(self, header: RequestHeader, request: Any) -> Struct | None:
        name = header.api.name
        group_handler = self.cluster.groups.handlers().get(name)
        if group_handler is not None:
            return await group_handler(request, self.number, self.port, _REFUSALS.get(id(request), 0))
        return await self._handlers_by_name()[name](request)

    def _handlers_by_name(self) -> dict[str, Callable[[Any], Coroutine[Any, Any, Struct | None]]]:
        return {
            "ApiVersions": self._answer_api_versions,
            "Metadata": self._metadata,
            "Produce": self._produce,
            "Fetch": self._fetch,
            "ListOffsets": self._list_offsets,
            "InitProducerId": self._init_producer_id,
            "CreateTopics": self._create_topics,
            "DeleteTopics": self._delete_topics,
            "CreatePartitions": self._create_partitions,
            "DeleteRecords": self._delete_records,
            "DescribeConfigs": self._describe_configs,
            "IncrementalAlterConfigs": self._alter_configs,
        }

    async def _answer_api_versions(self, request: api_versions.ApiVersionsRequest) -> Struct:
        return self._api_versions()

    async def _metadata(self, request: metadata.MetadataRequest) -> Struct:
        cluster = self.cluster
        names = list(cluster.topics) if request.topics is None else [row.name or "" for row in request.topics]
        rows = []
        for name in names:
            if name not in cluster.topics and cluster.auto_create and request.allow_auto_topic_creation:
                cluster.create(name)
            topic = cluster.topics.get(name)
            code = _REFUSALS.get(id(request), 0) or (0 if topic else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            partitions = [
                metadata.MetadataResponsePartition(
                    partition_index=index,
                    leader_id=partition.leader,
                    leader_epoch=partition.epoch,
                    replica_nodes=[partition.leader],
                    isr_nodes=[partition.leader],
                )
                for index, partition in enumerate(topic.partitions if topic and not code else [])
            ]
            rows.append(
                metadata.MetadataResponseTopic(
                    error_code=code, name=name, topic_id=topic.id if topic else bytes(16), partitions=partitions
                )
            )
        brokers = [
            metadata.MetadataResponseBroker(node_id=node.number, host="127.0.0.1", port=node.port)
            for node in cluster.nodes
        ]
        return metadata.MetadataResponse(
            brokers=brokers, cluster_id="fake", controller_id=cluster.controller, topics=rows
        )

    def _own(self, request: Struct, name: str, topic_id: bytes, number: int) -> tuple[int, Partition | None]:
        """The error to answer with, or the partition, if we lead it."""
        if id(request) in _REFUSALS:
            return _REFUSALS[id(request)], None
        _, topic = self.cluster.topic_of(name, topic_id)
        if topic is None or number >= len(topic.partitions):
            return (ErrorCode.UNKNOWN_TOPIC_ID if not name else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), None
        partition = topic.partitions[number]
        return (0, partition) if partition.leader == self.number else (ErrorCode.NOT_LEADER_OR_FOLLOWER, None)

    async def _produce(self, request: produce.ProduceRequest) -> Struct | None:
        topics = []
        for topic in request.topic_data:
            answer = produce.TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
            for row in topic.partition_data:
                code, partition = self._own(request, topic.name, topic.topic_id, row.index)
                offset = -1
                if partition is not None:
                    assert row.records is not None
                    code, offset = partition.append(row.records)
                answer.partition_responses.append(
                    produce.PartitionProduceResponse(index=row.index, error_code=code, base_offset=offset)
                )
            topics.append(answer)
        self.cluster.tell()
        return produce.ProduceResponse(responses=topics) if request.acks else None

    async def _fetch(self, request: fetch.FetchRequest) -> Struct:
        deadline = asyncio.get_running_loop().time() + request.max_wait_ms / 1000
        while True:
            changed = self.cluster.changed
            response, found = self._read(request)
            left = deadline - asyncio.get_running_loop().time()
            if found or left <= 0:
                return response
            try:
                await asyncio.wait_for(changed.wait(), left)
            except TimeoutError:
                pass

    def _read(self, request: fetch.FetchRequest) -> tuple[Struct, bool]:
        topics, found = [], False
        for topic in request.topics:
            answer = fetch.FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id)
            for row in topic.partitions:
                code, partition = self._own(request, topic.topic, topic.topic_id, row.partition)
                data = fetch.PartitionData(partition_index=row.partition, error_code=code, high_watermark=-1)
                if partition is not None:
                    if not partition.start <= row.fetch_offset <= partition.end:
                        data.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
                    else:
                        data.records = partition.read_from(row.fetch_offset) or None
                        if data.records:
                            data.records += self.cluster.fetch_tail
                    data.high_watermark = partition.end
                    if request.isolation_level:
                        data.aborted_transactions = partition.aborted
                found = found or bool(data.records) or data.error_code != 0
                answer.partitions.append(data)
            topics.append(answer)
        return fetch.FetchResponse(responses=topics), found

    async def _list_offsets(self, request: list_offsets.ListOffsetsRequest) -> Struct:
        topics = []
        for topic in request.topics:
            answer = list_offsets.ListOffsetsTopicResponse(name=topic.name)
            for row in topic.partitions:
                code, partition = self._own(request, topic.name, bytes(16), row.partition_index)
                offset, timestamp = -1, -1
                if partition is not None:
                    if row.timestamp < 0:
                        offset = partition.end if row.timestamp == -1 else partition.start
                    else:
                        later = (record for record in partition.records() if record.timestamp >= row.timestamp)
                        offset, timestamp = next(((found.offset, found.timestamp) for found in later), (-1, -1))
                answer.partitions.append(
                    list_offsets.ListOffsetsPartitionResponse(
                        partition_index=row.partition_index, error_code=code, offset=offset, timestamp=timestamp
                    )
                )
            topics.append(answer)
        return list_offsets.ListOffsetsResponse(topics=topics)

    async def _init_producer_id(self, request: init_producer_id.InitProducerIdRequest) -> Struct:
        code = _REFUSALS.get(id(request), 0)
        return init_producer_id.InitProducerIdResponse(
            error_code=code, producer_id=self.cluster.new_producer_id(), producer_epoch=0
        )

    async def _create_topics(self, request: create_topics.CreateTopicsRequest) -> Struct:
        rows = []
        for topic in request.topics:
            code = _REFUSALS.get(id(request), 0)
            if topic.name in self.cluster.topics:
                code = ErrorCode.TOPIC_ALREADY_EXISTS
            elif not code and not request.validate_only:
                made = self.cluster.create(topic.name, max(1, topic.num_partitions))
                made.configs = {config.name: config.value or "" for config in topic.configs}
            rows.append(create_topics.CreatableTopicResult(name=topic.name, error_code=code, error_message=None))
        return create_topics.CreateTopicsResponse(topics=rows)

    async def _delete_topics(self, request: delete_topics.DeleteTopicsRequest) -> Struct:
        rows = []
        for state in request.topics:
            gone = self.cluster.topics.pop(state.name or "", None)
            code = 0 if gone else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            rows.append(delete_topics.DeletableTopicResult(name=state.name, error_code=code))
        return delete_topics.DeleteTopicsResponse(responses=rows)

    async def _create_partitions(self, request: create_partitions.CreatePartitionsRequest) -> Struct:
        rows = []
        for row in request.topics:
            partitions = self.cluster.topics[row.name].partitions
            code = ErrorCode.INVALID_PARTITIONS if row.count <= len(partitions) else 0
            partitions += [Partition(leader=0) for _ in range(row.count - len(partitions))]
            rows.append(create_partitions.CreatePartitionsTopicResult(name=row.name, error_code=code))
        return create_partitions.CreatePartitionsResponse(results=rows)

    async def _delete_records(self, request: delete_records.DeleteRecordsRequest) -> Struct:
        topics = []
        for topic in request.topics:
            answer = delete_records.DeleteRecordsTopicResult(name=topic.name)
            for row in topic.partitions:
                code, partition = self._own(request, topic.name, bytes(16), row.partition_index)
                if partition is not None:
                    partition.start = partition.end if row.offset < 0 else row.offset
                answer.partitions.append(
                    delete_records.DeleteRecordsPartitionResult(
                        partition_index=row.partition_index,
                        low_watermark=partition.start if partition else -1,
                        error_code=code,
                    )
                )
            topics.append(answer)
        return delete_records.DeleteRecordsResponse(topics=topics)

    async def _describe_configs(self, request: describe_configs.DescribeConfigsRequest) -> Struct:
        results = []
        for resource in request.resources:
            configs = [
                describe_configs.DescribeConfigsResourceResult(name=name, value=value, config_source=1)
                for name, value in self.cluster.topics[resource.resource_name].configs.items()
            ]
            results.append(
                describe_configs.DescribeConfigsResult(
                    resource_type=2, resource_name=resource.resource_name, configs=configs, error_message=None
                )
            )
        return describe_configs.DescribeConfigsResponse(results=results)

    async def _alter_configs(self, request: incremental_alter_configs.IncrementalAlterConfigsRequest) -> Struct:
        rows = []
        for resource in request.resources:
            configs = self.cluster.topics[resource.resource_name].configs
            for config in resource.configs:
                if config.config_operation == 1:
                    configs.pop(config.name, None)
                else:
                    configs[config.name] = config.value or ""
            rows.append(
                incremental_alter_configs.AlterConfigsResourceResponse(
                    error_message=None, resource_type=2, resource_name=resource.resource_name
                )
            )
        return incremental_alter_configs.IncrementalAlterConfigsResponse(responses=rows)


@asynccontextmanager
async def fake_cluster(nodes: int = 1) -> AsyncIterator[FakeCluster]:
    cluster = FakeCluster()
    cluster.nodes = [FakeNode(cluster, number) for number in range(nodes)]
    for node in cluster.nodes:
        await node.start()
    try:
        yield cluster
    finally:
        for node in cluster.nodes:
            await node.stop()


Test: TypeAlias = Callable[[FakeCluster, AsyncClient], Coroutine[Any, Any, None]]


def against_a_fake(nodes: int = 1, options: ClientOptions = FAST) -> Callable[[Test], Callable[[], None]]:
    """Runs an async test with a cluster and a client of it, and sees that no task is left behind."""

    def decorate(test: Test) -> Callable[[], None]:
        @wraps(test)
        def run() -> None:
            async def main() -> None:
                async with (
                    asyncio.timeout(20),
                    fake_cluster(nodes) as cluster,
                    AsyncClient(cluster.bootstrap, options) as client,
                ):
                    await test(cluster, client)
                left = asyncio.all_tasks() - {asyncio.current_task()}
                assert not left, left

            asyncio.run(main())

        del run.__wrapped__  # pytest would look for fixtures of its arguments
        return run

    return decorate
