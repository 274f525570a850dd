"""TableDescribe (10001), v0, Tidelog's own: the progress of the tables of topics."""

from tidelog.errors import TidelogError
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of, code_of
from tidelog.wire.generated.table_describe import (
    TableDescribePartition,
    TableDescribeRequest,
    TableDescribeResponse,
    TableDescribeTopic,
)


async def handle(request: Request, message: TableDescribeRequest) -> TableDescribeResponse:
    tables = broker_of(request).tables
    topics = []
    for name in message.topics:
        try:
            partitions = [TableDescribePartition(*state) for state in await tables.describe(name)]
            topics.append(TableDescribeTopic(name, 0, None, partitions))
        except TidelogError as error:
            topics.append(TableDescribeTopic(name, code_of(error), str(error), []))
    return TableDescribeResponse(topics=topics)
