"""Records of topics as one stream, in order within each partition.

A source returns what was fetched: `Consumer` for chosen partitions and offsets, `group.GroupConsumer` for a share of
a group's partitions. `RecordStream` (`blocking` has the one for threads) iterates over the records. A record counts
as consumed when the next one is asked for, so a committed record has been processed.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from tidelog.client.cluster import Cluster
from tidelog.client.consuming.committed import Member
from tidelog.client.consuming.fetcher import Fetched, Fetcher
from tidelog.client.consuming.offsets import Start, end_offsets, start_offsets
from tidelog.client.options import FetchOptions
from tidelog.model import Offset, TimestampMs, TopicPartition
from tidelog.records.record import Headers

POLL_S = 0.5


class ConsumedRecord(NamedTuple):
    topic: str
    partition: int
    offset: Offset
    timestamp: TimestampMs
    key: bytes | None
    value: bytes | None
    headers: Headers


class StreamSource(Protocol):
    is_closed: bool

    @property
    def member(self) -> Member | None:
        """The member of a group that reads; None without a group."""

    @property
    def is_done(self) -> bool:
        """True if there will be no more records."""

    async def poll(self, timeout_s: float = POLL_S) -> list[Fetched]:
        """What has arrived; what the last call returned counts as consumed."""

    def consumed(self, partition: TopicPartition, next_offset: Offset) -> None: ...

    async def commit(self) -> None:
        """Commit the group's offsets of everything consumed."""

    async def close(self) -> None: ...


class Consumer:
    """Reads chosen partitions. With `follow=False` it ends after the records that were there at the start."""

    def __init__(
        self,
        cluster: Cluster,
        positions: Mapping[TopicPartition, Offset],
        ends: Mapping[TopicPartition, Offset] | None,
        options: FetchOptions,
    ) -> None:
        self.is_closed = False
        self._fetcher = Fetcher(cluster, options)
        self._ends = None if ends is None else dict(ends)
        self._fetcher.assign(positions)
        self._drop_finished()

    @classmethod
    async def open(
        cls,
        cluster: Cluster,
        partitions: Iterable[TopicPartition],
        start: Start | Mapping[TopicPartition, Offset],
        options: FetchOptions,
        *,
        follow: bool,
    ) -> "Consumer":
        partitions = list(partitions)
        committed = options.read_committed
        ends = None if follow else await end_offsets(cluster, partitions, read_committed=committed)
        if isinstance(start, Mapping):
            positions = {partition: start[partition] for partition in partitions}
        else:
            positions = await start_offsets(cluster, partitions, start, read_committed=committed)
        return cls(cluster, positions, ends, options)

    @property
    def member(self) -> None:
        return None

    @property
    def positions(self) -> Mapping[TopicPartition, Offset]:
        """The next offsets to fetch, without partitions that were read to their end."""
        return self._fetcher.positions

    @property
    def is_done(self) -> bool:
        return not self._fetcher.positions

    async def poll(self, timeout_s: float = POLL_S) -> list[Fetched]:
        if self.is_done:
            return []
        fetched = await self._fetcher.poll(timeout_s)
        self._drop_finished()
        return fetched

    def _drop_finished(self) -> None:
        if self._ends is not None:
            positions = self._fetcher.positions
            for partition in [p for p, offset in positions.items() if offset >= self._ends[p]]:
                del positions[partition]

    def consumed(self, partition: TopicPartition, next_offset: Offset) -> None:
        """Consumed offsets are not kept without a group."""

    async def commit(self) -> None:
        """There is no group to commit for."""

    async def close(self) -> None:
        self.is_closed = True
        await self._fetcher.close()


def records_of(fetched: Fetched, source: StreamSource) -> Iterator[ConsumedRecord]:
    partition = fetched.partition
    topic, number = partition
    for offset, timestamp, key, value, headers in fetched.records():
        yield ConsumedRecord(topic, number, offset, timestamp, key, value, headers)
        source.consumed(partition, offset + 1)
    source.consumed(partition, fetched.next_offset)


class RecordStream:
    """`async for record in stream`; ends after `limit` records. Close it, or use it in an `async with` statement."""

    def __init__(self, opened: Callable[[], Awaitable[StreamSource]], limit: int | None = None) -> None:
        self._opened = opened
        self._source: StreamSource | None = None
        self._left = limit

    async def __aiter__(self) -> AsyncIterator[ConsumedRecord]:
        source = self._source = self._source or await self._opened()
        while not source.is_done and self._left != 0:
            for fetched in await source.poll():
                for record in records_of(fetched, source):
                    yield record
                    if self._left is not None:
                        self._left -= 1
                        if self._left == 0:
                            source.consumed(fetched.partition, record.offset + 1)
                            return

    @property
    def member(self) -> Member | None:
        """For `TransactionalProducer.send_offsets`; None before the first record, and outside of a group."""
        return None if self._source is None else self._source.member

    async def commit(self) -> None:
        """Commit the group's offsets of everything consumed. A record counts as consumed when the next one is asked
        for, so the last one returned is not included."""
        if self._source is not None:
            await self._source.commit()

    async def close(self) -> None:
        if self._source is not None:
            await self._source.close()

    async def __aenter__(self) -> "RecordStream":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
