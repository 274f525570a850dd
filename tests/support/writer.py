"""A process that appends to a log until it is killed. After each append it prints the offset up to which
appends are acknowledged."""

import asyncio
import sys

import structlog

from tests.support.logs import EPOCH, NOW_MS, batch, stored
from tidelog.promise import result_of
from tidelog.settings import FlushPolicy, LogSettings
from tidelog.storage.local.store import LocalStore


def log_settings(policy: str) -> LogSettings:
    return LogSettings(
        flush=FlushPolicy(policy), segment_bytes=8000, index_interval_bytes=300, flush_ms=3, flush_messages=10
    )


async def main(directory: str, policy: str, size: int) -> None:
    store = LocalStore(directory)
    log = store.open(stored("topic"), log_settings(policy), NOW_MS)
    sequence = log.end_offset
    print("ready", sequence, flush=True)
    while True:
        count = 1 + sequence % 3
        values = [b"%d:" % (sequence + number) + b"v" * size for number in range(count)]
        data = batch(*values, producer_id=1, producer_epoch=0, sequence=sequence)
        appended = await result_of(log.append(data, now_ms=NOW_MS, leader_epoch=EPOCH, durable=sequence % 2 == 0))
        assert appended.base_offset == sequence
        sequence += count
        if sequence % 5 == 0:
            log.delete_before(max(0, sequence - 200))
        print(sequence, flush=True)


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # stdout is for the counts
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
