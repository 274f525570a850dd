"""StoreTransactionOffsets (10007, Tidelog's own), v0: add offsets of a group to a transaction. Only brokers send it.

The coordinator of the group has got TxnOffsetCommit, has checked the member, and asks the coordinator of the
transaction. Repeating the request is harmless.
"""

from collections.abc import Awaitable

from tidelog.broker.coordination.transactions import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.coordinator_requests import ask_transactions
from tidelog.metadata.rows import OffsetRow
from tidelog.wire.generated.store_transaction_offsets import (
    StoreTransactionOffsetsRequest,
    StoreTransactionOffsetsResponse,
)


def handle(
    request: Request, message: StoreTransactionOffsetsRequest
) -> StoreTransactionOffsetsResponse | Awaitable[StoreTransactionOffsetsResponse]:
    question = m.CommitOffsets(
        message.transactional_id,
        message.producer_id,
        message.producer_epoch,
        message.group_id,
        tuple(
            OffsetRow(
                message.group_id,
                topic.name,
                each.partition_index,
                each.committed_offset,
                each.committed_leader_epoch,
                each.committed_metadata,
                message.committed_ms,
            )
            for topic in message.topics
            for each in topic.partitions
        ),
        message.adds_group,
    )

    def translate(reply: m.CommitOffsetsReply) -> StoreTransactionOffsetsResponse:
        return StoreTransactionOffsetsResponse(error_code=reply.error_code)

    return ask_transactions(request, question, translate)
