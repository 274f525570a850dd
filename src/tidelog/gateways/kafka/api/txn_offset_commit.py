"""TxnOffsetCommit (28), v0 to v5: offsets that become a group's when the transaction commits.

The sender is checked as a member of its group, if it says which (v3+). Before v5 the group must have been added to
the transaction by AddOffsetsToTxn; from v5 on this adds it.
"""

from collections.abc import Awaitable

from tidelog.broker.coordination.groups import messages as g
from tidelog.broker.coordination.groups.errors import GroupError
from tidelog.broker.coordination.transactions import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of, code_of, now_ms
from tidelog.gateways.kafka.transaction_requests import ask, for_version
from tidelog.wire.generated.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_ADDS_FROM = 5
_NEVER = 1 << 15  # no version knows PRODUCER_FENCED here


def handle(
    request: Request, message: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse | Awaitable[TxnOffsetCommitResponse]:
    commit = g.OffsetCommit(
        group_id=message.group_id,
        topics=tuple(
            g.CommittedTopic(
                topic.name,
                tuple(
                    g.CommittedPartition(
                        each.partition_index,
                        each.committed_offset,
                        each.committed_leader_epoch,
                        each.committed_metadata,
                    )
                    for each in topic.partitions
                ),
            )
            for topic in message.topics
        ),
        generation_id_or_member_epoch=message.generation_id,
        member_id=message.member_id,
        group_instance_id=message.group_instance_id,
    )
    try:
        results, rows = broker_of(request).groups.coordinator.check_transactional(commit, now_ms())
    except GroupError as refusal:
        return _everywhere(message, code_of(refusal))
    question = m.CommitOffsets(
        message.transactional_id,
        message.producer_id,
        message.producer_epoch,
        message.group_id,
        tuple(rows),
        request.version >= _ADDS_FROM,
    )

    def translate(reply: m.CommitOffsetsReply) -> TxnOffsetCommitResponse:
        if reply.error_code:
            return _everywhere(message, for_version(reply.error_code, request, _NEVER))
        return TxnOffsetCommitResponse(
            topics=[
                TxnOffsetCommitResponseTopic(
                    topic.name, [TxnOffsetCommitResponsePartition(*each) for each in topic.partitions]
                )
                for topic in results
            ]
        )

    return ask(request, question, translate)


def _everywhere(message: TxnOffsetCommitRequest, code: int) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                topic.name,
                [TxnOffsetCommitResponsePartition(each.partition_index, code) for each in topic.partitions],
            )
            for topic in message.topics
        ]
    )
