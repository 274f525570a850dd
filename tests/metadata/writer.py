"""A process that writes rows until somebody kills it, saying after each commit which rows it vouches for."""

import asyncio
import sys

from tidelog.metadata.rows import OffsetRow
from tidelog.metadata.sqlite import SqliteStore
from tidelog.metadata.store import Put

CALLERS = 8


async def main(path: str, start: int) -> None:
    store = await SqliteStore.open(path)
    print("ready", flush=True)

    async def caller(number: int) -> None:
        sequence = start
        while True:
            pair = [OffsetRow(f"g{number}", topic, 0, sequence, 0, "x" * (sequence % 700), 0) for topic in "ab"]
            await store.write([Put(row) for row in pair])
            print(number, sequence, flush=True)
            sequence += 1

    await asyncio.gather(*map(caller, range(CALLERS)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
