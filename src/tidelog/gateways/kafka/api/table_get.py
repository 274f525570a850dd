"""TableGet (10000), v0, Tidelog's own: the last values of keys, from the table of a topic (`tidelog.table=true`).

`at_least` is the offset up to which the answer must know the log: -1 whatever the table has, -2 all that the
partition has now, else that offset; waited for up to `timeout_ms`. A key that is not there has a row with offset -1.
"""

import asyncio

from tidelog.broker.tables import Tables
from tidelog.errors import TidelogError
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of, code_of
from tidelog.wire.generated.table_get import (
    TableGetPartition,
    TableGetPartitionResult,
    TableGetRequest,
    TableGetResponse,
    TableGetRow,
)

MOST_SECONDS = 60.0


async def handle(request: Request, message: TableGetRequest) -> TableGetResponse:
    tables = broker_of(request).tables
    timeout_s = min(max(message.timeout_ms, 0) / 1000, MOST_SECONDS)
    answers = [_look_up(tables, message, wanted, timeout_s) for wanted in message.partitions]
    return TableGetResponse(partitions=list(await asyncio.gather(*answers)))


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
