"""DescribeShareGroupOffsets (90), v0 to v1: share groups are not supported, so none is found."""

from tidelog.gateways.kafka.connection import Request
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
)


def handle(_request: Request, message: DescribeShareGroupOffsetsRequest) -> DescribeShareGroupOffsetsResponse:
    return DescribeShareGroupOffsetsResponse(
        groups=[
            DescribeShareGroupOffsetsResponseGroup(
                group.group_id, [], ErrorCode.GROUP_ID_NOT_FOUND, "share groups are not supported"
            )
            for group in message.groups
        ]
    )
