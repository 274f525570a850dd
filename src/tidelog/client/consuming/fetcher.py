"""Fetches partitions from given offsets on: one fetch per leader in flight, the next one while the last is processed.

It returns whole batches as they are stored. A response may end in the middle of a batch, which is then fetched again.
Control batches are left out, and with `read_committed` the batches of aborted transactions too.
"""

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tidelog.client.cluster import Cluster
from tidelog.client.consuming.offsets import start_offsets
from tidelog.client.deadline import Backoff
from tidelog.client.errors import BrokerError, ClientClosed, ClientError, check
from tidelog.client.options import FetchOptions
from tidelog.model import Offset, TopicPartition
from tidelog.records.batch import BatchView, iterate, whole_prefix
from tidelog.records.record import ABORT_MARKER, Record, decode, read_marker
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)


class Fetched(NamedTuple):
    """What one fetch returned for one partition. The first batch may begin before `from_offset`."""

    partition: TopicPartition
    from_offset: Offset
    next_offset: Offset
    high_watermark: Offset
    batches: list[BatchView]

    def records(self) -> Iterator[Record]:
        first = self.from_offset
        for batch in self.batches:
            records = decode(batch)
            if batch.header.base_offset >= first:
                yield from records
            else:
                yield from (record for record in records if record.offset >= first)


class Fetcher:
    """`poll` returns what has arrived, and moves `positions` past it."""

    def __init__(self, cluster: Cluster, options: FetchOptions) -> None:
        self.positions: dict[TopicPartition, Offset] = {}
        self._cluster = cluster
        self._options = options
        self._fetches: dict[asyncio.Task[list[Fetched]], tuple[int, set[TopicPartition]]] = {}
        self._backoff = Backoff(cluster.options.retry_backoff_ms, cluster.options.retry_backoff_max_ms)
        self._stalled_since: dict[TopicPartition, float] = {}
        self._retry_at: dict[TopicPartition, float] = {}
        self._is_closed = False
        self._limits: dict[TopicPartition, int] = {}  # for partitions with a batch above the usual limit

    def assign(self, positions: Mapping[TopicPartition, Offset]) -> None:
        """Fetch these partitions only, from these offsets. Fetches in flight for other positions are dropped."""
        self.positions = dict(positions)
        self._stalled_since.clear()
        self._retry_at.clear()

    async def poll(self, timeout_s: float) -> list[Fetched]:
        """What has arrived; waits up to the timeout if nothing has.

        Retriable errors are retried; if a partition could not be read for `timeout_ms`, its error is raised.
        """
        await self._start_fetches()
        if not self._fetches:
            retry_in_s = min(self._retry_at.values(), default=float("inf")) - time.monotonic()
            await asyncio.sleep(max(0.0, min(timeout_s, retry_in_s)))
            return []
        done, _ = await asyncio.wait(self._fetches, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if self._is_closed:  # by another task, in the meantime
            raise ClientClosed("the stream was closed while it was read")
        arrived = []
        for fetch in done:
            del self._fetches[fetch]
            for fetched in fetch.result():
                if self.positions.get(fetched.partition) == fetched.from_offset:
                    self.positions[fetched.partition] = fetched.next_offset
                    if fetched.next_offset != fetched.from_offset:
                        arrived.append(fetched)
        if arrived:
            await self._start_fetches()
        return arrived

    async def close(self) -> None:
        self._is_closed = True
        fetches, self._fetches = self._fetches, {}
        for fetch in fetches:
            fetch.cancel()
        await asyncio.gather(*fetches, return_exceptions=True)
        await self._cluster.close_lane(self)

    async def _start_fetches(self) -> None:
        busy = {node for node, _ in self._fetches.values()}
        under_way: set[TopicPartition] = set().union(*(partitions for _, partitions in self._fetches.values()))
        now = time.monotonic()
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in self.positions:
            if partition in under_way or self._retry_at.get(partition, now) > now:
                continue
            try:
                by_leader.setdefault(await self._cluster.leader(partition), []).append(partition)
            except ClientError as error:
                self._stalled([partition], error)
        for node, partitions in by_leader.items():
            if node not in busy:
                wanted = {partition: self.positions[partition] for partition in partitions}
                self._fetches[asyncio.create_task(self._fetch(node, wanted))] = node, set(wanted)

    async def _fetch(self, node: int, wanted: dict[TopicPartition, Offset]) -> list[Fetched]:
        options = self._options
        try:
            response: FetchResponse = await self._cluster.request(
                "Fetch",
                self._request(wanted),
                node=node,
                lane=self,
                timeout_ms=options.max_wait_ms + self._cluster.options.request_timeout_ms,
            )
            check(response.error_code, f"fetching from node {node}")
        except ClientError as error:
            self._stalled(wanted, error)
            self._cluster.forget()
            return []
        fetched = []
        for topic in response.responses:
            name = self._cluster.topic_name(topic.topic, topic.topic_id)
            for data in topic.partitions:
                partition = TopicPartition(name, data.partition_index)
                if partition not in wanted:
                    continue
                if data.error_code == 0:
                    self._moving(partition)
                    fetched.append(self._read(partition, wanted[partition], data))
                elif data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and options.out_of_range != "error":
                    fetched.append(await self._reset(partition, wanted[partition]))
                else:
                    tried = f"reading {partition} from offset {wanted[partition]}"
                    self._stalled([partition], BrokerError(data.error_code, tried))
                    self._cluster.forget(name)
        return fetched

    def _request(self, wanted: dict[TopicPartition, Offset]) -> FetchRequest:
        options = self._options
        topics: dict[str, FetchTopic] = {}
        for partition, offset in wanted.items():
            name, index = partition
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = FetchTopic(topic=name, topic_id=self._cluster.topic_id(name))
            limit = self._limits.get(partition, options.partition_max_bytes)
            topic.partitions.append(FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=limit))
        return FetchRequest(
            max_wait_ms=options.max_wait_ms,
            min_bytes=options.min_bytes,
            max_bytes=max(options.max_bytes, *self._limits.values(), 0),
            isolation_level=1 if options.read_committed else 0,
            topics=list(topics.values()),
        )

    def _read(self, partition: TopicPartition, from_offset: Offset, data: PartitionData) -> Fetched:
        records = data.records
        assert records is None or isinstance(records, memoryview)  # as everything that was decoded
        whole, _ = whole_prefix(records or memoryview(b""))
        if records and not whole:  # brokers older than KIP-74 cut even the first batch
            doubled = 2 * self._limits.get(partition, self._options.partition_max_bytes)
            self._limits[partition] = min(doubled, self._cluster.options.max_frame_bytes)
        else:
            self._limits.pop(partition, None)
        batches = list(iterate(whole, verify=self._options.check_crcs))
        next_offset = max(from_offset, batches[-1].header.next_offset) if batches else from_offset
        aborted = (data.aborted_transactions or []) if self._options.read_committed else []
        shown = list(visible(batches, aborted))
        return Fetched(partition, from_offset, next_offset, data.high_watermark, shown)

    async def _reset(self, partition: TopicPartition, from_offset: Offset) -> Fetched:
        out_of_range = self._options.out_of_range
        assert out_of_range != "error"
        committed = self._options.read_committed
        found = await start_offsets(self._cluster, [partition], out_of_range, read_committed=committed)
        return Fetched(partition, from_offset, found[partition], -1, [])

    def _stalled(self, partitions: Iterable[TopicPartition], error: ClientError) -> None:
        """Pause these partitions; raises the error if it is not retriable, or has lasted for `timeout_ms`."""
        if not error.retriable:
            raise error
        now = time.monotonic()
        pause_s = self._backoff.next_s()
        for partition in partitions:
            if now - self._stalled_since.setdefault(partition, now) > self._cluster.options.timeout_ms / 1000:
                raise error
            self._retry_at[partition] = now + pause_s

    def _moving(self, partition: TopicPartition) -> None:
        if self._stalled_since.pop(partition, None) is not None:
            self._retry_at.pop(partition, None)
            self._backoff.reset()


def visible(batches: Iterable[BatchView], aborted: list[AbortedTransaction]) -> Iterator[BatchView]:
    """Without control batches, and without the batches of the aborted transactions that the broker listed."""
    upcoming = sorted(aborted, key=lambda transaction: -transaction.first_offset)
    aborting: set[int] = set()
    for batch in batches:
        header = batch.header
        while upcoming and upcoming[-1].first_offset <= header.last_offset:
            aborting.add(upcoming.pop().producer_id)
        if header.is_control:
            if header.producer_id in aborting and header.record_count and read_marker(batch).type == ABORT_MARKER:
                aborting.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborting):
            yield batch
