"""TableGet (10000), v0, Tidelog's own: the last values of keys, from the table of a topic (`tidelog.table=true`).

`at_least` is the offset up to which the table must have applied the log: -1 means its current state, -2 the current
end of the partition; the reply waits for it up to `timeout_ms`. A key that does not exist has a row with offset -1.
"""

from collections.abc import AsyncIterator

from tidelog.broker.tables import Tables
from tidelog.errors import TidelogError
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of, code_of
from tidelog.gateways.kafka.long_requests import Parts, in_batches
from tidelog.wire.generated.table_get import (
    TableGetPartition,
    TableGetPartitionResult,
    TableGetRequest,
    TableGetResponse,
    TableGetRow,
)

MOST_SECONDS = 60.0


def handle(request: Request, message: TableGetRequest) -> Parts:
    return Parts("partitions", _answered(request, message))


async def _answered(request: Request, message: TableGetRequest) -> AsyncIterator[TableGetResponse]:
    tables = broker_of(request).tables
    timeout_s = min(max(message.timeout_ms, 0) / 1000, MOST_SECONDS)
    async for results in in_batches(message.partitions, lambda wanted: _look_up(tables, message, wanted, timeout_s)):
        yield TableGetResponse(partitions=results)


async def _look_up(
    tables: Tables, message: TableGetRequest, wanted: TableGetPartition, timeout_s: float
) -> TableGetPartitionResult:
    index, keys = wanted.partition_index, [bytes(row.key) for row in wanted.keys]
    try:
        applied, found = await tables.get(message.topic, index, keys, message.at_least, timeout_s)
    except TidelogError as error:
        return TableGetPartitionResult(index, code_of(error), str(error), -1, [])
    rows = [TableGetRow(-1, -1, None) if row is None else TableGetRow(*row) for row in found]
    return TableGetPartitionResult(index, 0, None, applied, rows)
