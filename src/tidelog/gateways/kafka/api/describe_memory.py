"""DescribeMemory (10004, Tidelog's own), v0: the broker's memory budget, its parts, and their use."""

from tidelog.broker.memory import resident_bytes
from tidelog.gateways.kafka.connection import Request
from tidelog.gateways.kafka.context import context_of
from tidelog.wire.generated.describe_memory import DescribeMemoryPart, DescribeMemoryRequest, DescribeMemoryResponse


def handle(request: Request, _message: DescribeMemoryRequest) -> DescribeMemoryResponse:
    memory = context_of(request).memory
    return DescribeMemoryResponse(
        budget_bytes=memory.budget_bytes,
        resident_bytes=resident_bytes(),
        parts=[
            DescribeMemoryPart(part.name, part.setting, part.limit_bytes, part.used_bytes) for part in memory.parts()
        ],
    )
