"""TxnOffsetCommit (28), v0 to v5: offsets of a group that take effect when the transaction commits.

If the request names a member of the group (v3+), its membership is checked. Before v5 the group must have been added
to the transaction by AddOffsetsToTxn; from v5 on this request adds it.
"""

from collections.abc import Awaitable

from tidelog.broker.coordination.groups import messages as g
from tidelog.broker.coordination.groups.errors import GroupError
from tidelog.broker.coordination.transactions import messages as m
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import broker_of, code_of
from tidelog.gateways.kafka.coordinator_requests import fencing_known, translated
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_ADDS_FROM = 5
_NEVER = 1 << 15  # no version of this API has PRODUCER_FENCED


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
    broker = broker_of(request)
    try:
        results, rows = broker.groups.check_transactional(commit)
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
            code = fencing_known(reply.error_code, request, since=_NEVER)
            if code == ErrorCode.CONCURRENT_TRANSACTIONS and request.version < _ADDS_FROM:
                code = ErrorCode.COORDINATOR_NOT_AVAILABLE  # these clients retry it
            return _everywhere(message, code)
        return TxnOffsetCommitResponse(
            topics=[
                TxnOffsetCommitResponseTopic(
                    topic.name, [TxnOffsetCommitResponsePartition(*each) for each in topic.partitions]
                )
                for topic in results
            ]
        )

    return translated(broker.commit_in_transaction(question), translate)


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
