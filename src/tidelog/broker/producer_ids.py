"""Producer ids. No id is given out twice: a block of ids is reserved durably before the first one is used. A crash
wastes the rest of a block, which is cheap: there are 2**63 ids."""

import asyncio
from collections import deque

from tidelog.errors import OutcomeUnknown
from tidelog.metadata.store import MetadataStore

NEXT_PRODUCER_ID = "next.producer.id"
BLOCK = 1000
_FEW = 100


class ProducerIds:
    def __init__(self, metadata: MetadataStore) -> None:
        self._metadata = metadata
        self._next = self._end = 0  # of the block in use
        self._blocks: deque[int] = deque()  # the first ids of the blocks to use after it
        self._lock = asyncio.Lock()

    async def next(self) -> int:
        while True:
            taken = self.take()
            if taken is not None:
                return taken
            await self.reserve()

    def take(self) -> int | None:
        """An id that is reserved already; None if none is left."""
        if self._next == self._end:
            if not self._blocks:
                return None
            self._next = self._blocks.popleft()
            self._end = self._next + BLOCK
        self._next += 1
        return self._next - 1

    @property
    def are_few(self) -> bool:
        """True if callers of `take`, which cannot wait, should `reserve` first."""
        return not self._blocks and self._end - self._next < _FEW

    async def reserve(self) -> None:
        async with self._lock:
            if self.are_few:
                try:
                    block = await self._metadata.reserve(NEXT_PRODUCER_ID, BLOCK)
                except OutcomeUnknown:  # a block may be lost, which does no harm: reserve another one
                    block = await self._metadata.reserve(NEXT_PRODUCER_ID, BLOCK)
                self._blocks.append(block)
