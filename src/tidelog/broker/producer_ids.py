"""Producer ids: never given out twice. A block is reserved durably before its first id is used; a crash wastes the
rest of a block, which is cheap: there are 2**63 of them."""

from tidelog.metadata.rows import ClusterRow
from tidelog.metadata.store import MetadataStore, Put

NEXT_PRODUCER_ID = "next.producer.id"
BLOCK = 1000


class ProducerIds:
    def __init__(self, metadata: MetadataStore, reserved_up_to: int) -> None:
        self._metadata = metadata
        self._next = self._end = reserved_up_to

    async def next(self) -> int:
        while self._next == self._end:
            begin = self._end
            await self._metadata.write([Put(ClusterRow(NEXT_PRODUCER_ID, str(begin + BLOCK)))])
            if self._end == begin:  # else another caller reserved the same block meanwhile
                self._next, self._end = begin, begin + BLOCK
        self._next += 1
        return self._next - 1
