"""Producer ids: never given out twice. A block is reserved durably before its first id is used; a crash wastes the
rest of a block, which is cheap: there are 2**63 of them."""

import asyncio

from tidelog.metadata.rows import ClusterRow
from tidelog.metadata.store import MetadataStore, Put

NEXT_PRODUCER_ID = "next.producer.id"
BLOCK = 1000
_FEW = 100


class ProducerIds:
    def __init__(self, metadata: MetadataStore, reserved_up_to: int) -> None:
        self._metadata = metadata
        self._next = self._end = reserved_up_to

        self._lock = asyncio.Lock()

    async def next(self) -> int:
        while True:
            taken = self.take()
            if taken is not None:
                return taken
            await self.reserve()

    def take(self) -> int | None:
        """One that is reserved already, if there is any left."""
        if self._next == self._end:
            return None
        self._next += 1
        return self._next - 1

    @property
    def are_few(self) -> bool:
        """Time to `reserve`, for those who cannot wait when they need one."""
        return self._end - self._next < _FEW

    async def reserve(self) -> None:
        async with self._lock:
            if self.are_few:
                end = self._end + BLOCK
                await self._metadata.write([Put(ClusterRow(NEXT_PRODUCER_ID, str(end)))])
                self._end = end  # what is left of the last block is used up first: they follow one another
