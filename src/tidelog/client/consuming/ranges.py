"""Reads one range of one partition as it is stored, for programs that decode batches themselves (Spark's tasks).

While one chunk is processed, the next is fetched. Chunks contain everything, control batches and batches of aborted
transactions too; `RawChunk.committed` leaves out the latter.
"""

import asyncio
from typing import NamedTuple

from tidelog.client.cluster import Cluster
from tidelog.client.consuming.fetcher import visible
from tidelog.client.errors import BrokerError, check
from tidelog.client.options import FetchOptions
from tidelog.model import Offset, TopicPartition
from tidelog.records.batch import ReadBuffer, iterate, read_header, whole_prefix
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

_LANE = "ranges"


class RawChunk(NamedTuple):
    """Whole batches; the first may begin before `from_offset`. A chunk without batches means that there are none
    between `from_offset` and `readable_end`, the end of what can be read."""

    from_offset: Offset
    next_offset: Offset
    readable_end: Offset
    records: memoryview
    aborted: list[AbortedTransaction]

    def committed(self) -> ReadBuffer:
        """The batches without those of aborted transactions; control batches may be left, for the decoder to skip."""
        if not self.aborted:
            return self.records
        shown = visible(iterate(self.records), self.aborted)
        return b"".join(batch.view for batch in shown)


class RangeReader:
    """Call `next` until it returns None: at the end of the range, or of the log. If the log is shorter than the
    range, the `readable_end` of the last chunk is before the end of the range."""

    def __init__(
        self,
        cluster: Cluster,
        partition: TopicPartition,
        start: Offset,
        end: Offset,
        options: FetchOptions,
        topic_id: bytes | None = None,
    ) -> None:
        """With a `topic_id`, a topic that was deleted and created again under the same name is UNKNOWN_TOPIC_ID."""
        self._cluster = cluster
        self._partition = partition
        self._position = start
        self._end = end
        self._options = options
        self._topic_id = topic_id
        self._limit = options.partition_max_bytes
        self._ahead: asyncio.Task[RawChunk] | None = None

    async def next(self) -> RawChunk | None:
        if self._ahead is None:
            if self._position >= self._end:
                return None
            self._ahead = asyncio.create_task(self._fetch())
        try:
            chunk = await self._ahead
        finally:
            self._ahead = None
        if chunk.next_offset == chunk.from_offset:  # nothing there: compacted away, or the log ends before
            self._position = self._end
            return chunk
        self._position = chunk.next_offset
        if self._position < self._end:
            self._ahead = asyncio.create_task(self._fetch())
        return chunk

    async def close(self) -> None:
        if self._ahead is not None:
            self._ahead.cancel()
            await asyncio.gather(self._ahead, return_exceptions=True)

    async def _fetch(self) -> RawChunk:
        while True:
            chunk = await self._cluster.retrying(self._attempt)
            if chunk is not None:
                return chunk
            self._limit = min(2 * self._limit, self._cluster.options.max_frame_bytes)

    async def _attempt(self) -> RawChunk | None:
        """None: the batch is larger than the limit, and the broker returned only a part of it."""
        cluster, options = self._cluster, self._options
        name, index = self._partition
        leader = await cluster.leader(self._partition)
        topic_id = cluster.topic_id(name)
        if self._topic_id is not None and topic_id != self._topic_id:
            anew = "the topic was deleted and created again"
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID, f"reading {self._partition}", anew)
        wanted = FetchPartition(partition=index, fetch_offset=self._position, partition_max_bytes=self._limit)
        request = FetchRequest(
            max_wait_ms=options.max_wait_ms,
            min_bytes=options.min_bytes,
            max_bytes=max(options.max_bytes, self._limit),
            isolation_level=1 if options.read_committed else 0,
            topics=[FetchTopic(topic=name, topic_id=topic_id, partitions=[wanted])],
        )
        timeout_ms = options.max_wait_ms + cluster.options.request_timeout_ms
        response: FetchResponse = await cluster.request(
            "Fetch", request, node=leader, lane=_LANE, timeout_ms=timeout_ms
        )
        tried = f"reading {self._partition} from offset {self._position}"
        check(response.error_code, tried)
        if not response.responses or not response.responses[0].partitions:
            raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, tried, "the reply does not mention the partition")
        data = response.responses[0].partitions[0]
        check(data.error_code, tried)
        return self._chunk(data)

    def _chunk(self, data: PartitionData) -> RawChunk | None:
        records = data.records
        assert records is None or isinstance(records, memoryview)  # as everything that was decoded
        whole, last = whole_prefix(records or memoryview(b""))
        if records and last < 0:
            return None
        position = self._position
        committed = self._options.read_committed
        end = data.last_stable_offset if committed and data.last_stable_offset >= 0 else data.high_watermark
        after = max(position, read_header(whole, last).next_offset) if last >= 0 else position
        return RawChunk(position, after, end, whole, data.aborted_transactions or [] if committed else [])
