"""`RefusedBatches`: the batches of idempotent producers that clients are about to send again.

A producer sends several batches ahead. The first may be refused for a moment, because the partition is being opened
on this broker, and the next one arrive when it is open. A log that does not know the producer would accept that one:
any sequence number may be the first that it sees, because it forgets producers after a while. The client would take
the acknowledgement for one of both batches, and the first would be lost. So later batches are refused until the first
one has arrived.
"""

import time
from collections.abc import Callable

from tidelog.errors import OutOfOrderSequence, TidelogError
from tidelog.model import NO_SEQUENCE, TopicPartition, is_topic_name
from tidelog.records.batch import HEADER_SIZE, ReadBuffer, read_header
from tidelog.storage.log import PartitionLog

KEPT_S = 300.0  # longer than clients try to deliver a batch
MOST = 10_000


class RefusedBatches:
    """Belongs to the thread of the event loop. False if there are none, which is the usual case."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._first: dict[tuple[TopicPartition, int, int], tuple[int, float]] = {}
        """The lowest sequence number that was refused, and when, by partition, producer and epoch; oldest first."""

    def __bool__(self) -> bool:
        return bool(self._first)

    def note(self, partition: TopicPartition, batch: ReadBuffer | None, error: Exception | None) -> None:
        """The batch was refused, or its append has failed."""
        if not isinstance(error, TidelogError) or not error.retriable or batch is None or len(batch) < HEADER_SIZE:
            return
        try:
            header = read_header(batch)
        except TidelogError:
            return
        if header.base_sequence == NO_SEQUENCE or not is_topic_name(partition.topic):
            return  # names that are refused for good may be long
        key = (partition, header.producer_id, header.producer_epoch)
        now = self._clock()
        known, _ = self._first.pop(key, (header.base_sequence, now))
        self._first[key] = (min(known, header.base_sequence), now)
        if len(self._first) > MOST:
            del self._first[next(iter(self._first))]

    def check(self, partition: TopicPartition, batch: ReadBuffer, log: PartitionLog) -> None:
        """Raises OutOfOrderSequence if an earlier batch of the producer was refused and has not arrived since."""
        if len(batch) < HEADER_SIZE:
            return
        header = read_header(batch)
        key = (partition, header.producer_id, header.producer_epoch)
        refused = self._first.get(key)
        if refused is None:
            return
        first, at = refused
        is_known = log.knows_producer(header.producer_id)
        if header.base_sequence <= first or is_known or at + KEPT_S < self._clock():
            del self._first[key]  # from here on the log itself sees gaps
            return
        raise OutOfOrderSequence(
            f"producer {header.producer_id} sent sequence {header.base_sequence}, but its batch with sequence {first}"
            " was refused and has not arrived again"
        )
