"""`RefusedBatches`: the batches of idempotent producers that clients are about to send again.

A producer sends several batches ahead. The first may be refused for a moment, because the partition is being opened
on this broker, and the next one arrive when it is open. What then happens to that one could be wrong:

    the log does not know the producer   it would accept it: any sequence number may be the first that it sees, for
                                         it forgets producers after a while. The client would take the
                                         acknowledgement for one of both batches, and the first would be lost
    the log sees a gap                   OUT_OF_ORDER_SEQUENCE: librdkafka then takes a new epoch, and sends again
                                         all that is not acknowledged, also to other partitions. What is stored
                                         there, but was not acknowledged, would be stored twice

So later batches are refused with the same error as the first one, until that one has arrived. Clients try again, in
order.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

from tidelog.broker.ownership import NotLeader
from tidelog.errors import TidelogError
from tidelog.model import NO_SEQUENCE, LeaderEpoch, TopicPartition, is_topic_name
from tidelog.records.batch import HEADER_SIZE, ReadBuffer, read_header
from tidelog.storage.log import PartitionLog

KEPT_S = 300.0  # longer than clients try to deliver a batch
SOON_S = 10.0  # longer than clients wait before they try again
MOST = 10_000


class EarlierBatchAwaited(NotLeader):
    """An earlier batch of the producer was refused a moment ago, and has to arrive first."""


class _Refused(NamedTuple):
    first: int
    """The lowest sequence number that was refused."""
    at: float
    leader_epoch: LeaderEpoch | None
    """The epoch in which this broker was about to lead the partition; no other broker can acknowledge the batch any
    more."""


class RefusedBatches:
    """Belongs to the thread of the event loop. False if there are none, which is the usual case."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._refused: dict[tuple[TopicPartition, int, int], _Refused] = {}
        """By partition, producer and its epoch; oldest first."""

    def __bool__(self) -> bool:
        return bool(self._refused)

    def note(
        self,
        partition: TopicPartition,
        batch: ReadBuffer | None,
        error: Exception | None,
        leader_epoch: LeaderEpoch | None = None,
    ) -> None:
        """The batch was refused, or its append has failed. `leader_epoch`: that of this broker, if it is the leader,
        whether the partition is open or not."""
        if not isinstance(error, TidelogError) or not error.retriable or batch is None or len(batch) < HEADER_SIZE:
            return
        if isinstance(error, EarlierBatchAwaited):
            return
        try:
            header = read_header(batch)
        except TidelogError:
            return
        if header.base_sequence == NO_SEQUENCE or not is_topic_name(partition.topic):
            return  # names that are refused for good may be long
        key = (partition, header.producer_id, header.producer_epoch)
        epoch = leader_epoch if isinstance(error, NotLeader) else None
        known = self._refused.pop(key, None)
        first = header.base_sequence if known is None else min(known.first, header.base_sequence)
        self._refused[key] = _Refused(first, self._clock(), epoch)
        if len(self._refused) > MOST:
            del self._refused[next(iter(self._refused))]

    def check(
        self, partition: TopicPartition, batch: ReadBuffer, log: PartitionLog, leader_epoch: LeaderEpoch
    ) -> None:
        """Raises EarlierBatchAwaited if an earlier batch of the producer was refused and has not arrived since."""
        if len(batch) < HEADER_SIZE:
            return
        header = read_header(batch)
        key = (partition, header.producer_id, header.producer_epoch)
        refused = self._refused.get(key)
        if refused is None:
            return
        passed_s = self._clock() - refused.at
        is_about_to_come = refused.leader_epoch == leader_epoch and passed_s < SOON_S
        is_seen_by_log = log.knows_producer(header.producer_id) and not is_about_to_come
        if header.base_sequence <= refused.first or is_seen_by_log or passed_s > KEPT_S:
            del self._refused[key]
            return
        raise EarlierBatchAwaited(
            f"producer {header.producer_id} sent sequence {header.base_sequence}, but its batch with sequence"
            f" {refused.first} was refused and has not arrived again"
        )
