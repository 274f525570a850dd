"""The last value of a key, from the table that a broker of Tidelog keeps of a topic (`tidelog.table=true`)."""

import asyncio
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from tidelog.client.cluster import Cluster
from tidelog.client.content import Content, as_bytes
from tidelog.client.errors import BrokerError, check
from tidelog.client.producing.partitioner import partition_of_key
from tidelog.errors import InvalidInput
from tidelog.model import Offset, TimestampMs, TopicPartition
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.table_describe import TableDescribeRequest, TableDescribeResponse
from tidelog.wire.generated.table_get import (
    TableGetKey,
    TableGetPartition,
    TableGetPartitionResult,
    TableGetRequest,
    TableGetResponse,
)

Freshness: TypeAlias = Literal["any", "end"] | Offset
"""What an answer must include: whatever the table has (`any`), all records that are in the partition now (`end`), or
all records before an offset."""
_ANY, _END = -1, -2


class TableValue(NamedTuple):
    """The last value of a key. The table includes all records of the partition before `applied_offset`. If there is
    no value, `value`, `offset` and `timestamp` are None."""

    topic: str
    partition: int
    key: bytes
    value: bytes | None
    offset: Offset | None
    timestamp: TimestampMs | None
    applied_offset: Offset

    @property
    def found(self) -> bool:
        return self.value is not None


class TableInfo(NamedTuple):
    """The progress of the table of a partition; `rows` and `size_bytes` are estimates."""

    partition: int
    applied_offset: Offset
    end_offset: Offset
    rows: int
    size_bytes: int
    error: str | None

    @property
    def lag(self) -> int:
        return max(0, self.end_offset - self.applied_offset)


class TableClient:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def get_many(
        self,
        topic: str,
        keys: Sequence[Content],
        *,
        partition: int | None = None,
        at_least: Freshness = "any",
        timeout_ms: int | None = None,
    ) -> list[TableValue]:
        """A value for each key, in the order of the keys."""
        wanted = [_key(key) for key in keys]
        if isinstance(at_least, int) and at_least < 0:
            raise InvalidInput(f"at_least must be an offset, 'any' or 'end', not {at_least}")
        freshness = at_least if isinstance(at_least, int) else _END if at_least == "end" else _ANY
        wait_ms = self._cluster.options.request_timeout_ms if timeout_ms is None else timeout_ms

        async def attempt() -> list[TableValue]:
            count = len((await self._cluster.ask_topic(topic)).partitions)
            places = [partition if partition is not None else partition_of_key(key, count) for key in wanted]
            by_node: dict[int, dict[int, list[int]]] = {}
            for number, place in enumerate(places):
                leader = await self._cluster.leader(TopicPartition(topic, place))
                by_node.setdefault(leader, {}).setdefault(place, []).append(number)
            found: dict[int, TableValue] = {}

            async def ask(node: int, rows: dict[int, list[int]]) -> None:
                request = TableGetRequest(
                    topic,
                    freshness,
                    wait_ms,
                    [TableGetPartition(p, [TableGetKey(wanted[n]) for n in numbers]) for p, numbers in rows.items()],
                )
                patience_ms = wait_ms + self._cluster.options.request_timeout_ms
                response: TableGetResponse = await self._cluster.request(
                    "TableGet", request, node=node, lane="tables", timeout_ms=patience_ms
                )
                for result in response.partitions:
                    _take(topic, result, wanted, rows[result.partition_index], found)

            await asyncio.gather(*(ask(node, rows) for node, rows in by_node.items()))
            return [found[number] for number in range(len(wanted))]

        return await self._cluster.retrying(attempt, repeatable=False)

    async def describe(self, topic: str) -> list[TableInfo]:
        async def attempt() -> list[TableInfo]:
            await self._cluster.ask_topic(topic)
            response: TableDescribeResponse = await self._cluster.request(
                "TableDescribe", TableDescribeRequest([topic])
            )
            (found,) = response.topics
            check(found.error_code, f"asking for the table of {topic!r}", found.error_message)
            return [
                TableInfo(
                    row.partition_index,
                    row.applied_offset,
                    row.end_offset,
                    row.rows,
                    row.size_bytes,
                    row.error_message,
                )
                for row in found.partitions
            ]

        return await self._cluster.retrying(attempt)


def _key(key: Content) -> bytes:
    content = as_bytes(key)
    if content is None:
        raise InvalidInput("a key must not be None: tables have no records without a key")
    return content


def _take(
    topic: str, result: TableGetPartitionResult, keys: list[bytes], numbers: list[int], found: dict[int, TableValue]
) -> None:
    index = result.partition_index
    try:
        check(result.error_code, f"looking up a key in {topic}-{index}", result.error_message)
    except BrokerError as error:
        if error.kafka_code == ErrorCode.REQUEST_TIMED_OUT:
            error.retriable = False  # type: ignore[misc]  # the broker has waited as long as it was to
        raise
    for number, row in zip(numbers, result.rows, strict=True):
        is_there = row.offset >= 0
        found[number] = TableValue(
            topic,
            index,
            keys[number],
            bytes(row.value) if is_there and row.value is not None else None,
            row.offset if is_there else None,
            row.timestamp if is_there else None,
            result.applied_offset,
        )
