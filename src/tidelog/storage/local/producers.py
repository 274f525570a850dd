"""What a partition remembers of its idempotent producers: the newest epoch, the last five batches of each, and where
its open transaction began.

batch from producer      known producer            answer
older epoch              newer epoch               InvalidProducerEpoch: fenced
same epoch, same range   among the last five       duplicate: its first offset again
same epoch, next         any                       accepted
same epoch, other        any                       OutOfOrderSequence
newer epoch, from 0      any                       accepted, forgets the older epoch's batches
newer epoch, other       any                       OutOfOrderSequence
same epoch, not from 0   begun by a marker         OutOfOrderSequence
not transactional        in a transaction          InvalidTransactionState
any                      unknown or expired        accepted: its history may have been deleted by retention
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tidelog.errors import InvalidProducerEpoch, InvalidTransactionState, OutOfOrderSequence
from tidelog.model import NO_SEQUENCE, Offset, ProducerEpoch, ProducerId, TimestampMs
from tidelog.records.batch import TRANSACTIONAL_BIT, BatchHeader
from tidelog.storage.log import AbortedTransaction

REMEMBERED_BATCHES = 5


class AppendedBatch(NamedTuple):
    base_sequence: int
    last_sequence: int
    base_offset: Offset
    last_offset: Offset
    timestamp: TimestampMs


class Producer:
    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_seen_ms")

    def __init__(self, epoch: ProducerEpoch, batches: Iterable[AppendedBatch], last_seen_ms: TimestampMs) -> None:
        self.epoch = epoch
        self.batches = deque(batches, REMEMBERED_BATCHES)
        self.last_seen_ms = last_seen_ms
        self.coordinator_epoch = -1  # of the last marker since the log was opened


class Producers:
    """One partition's producers. `check` before a batch is written, `update` after."""

    def __init__(self) -> None:
        self._producers: dict[ProducerId, Producer] = {}
        self.open: dict[ProducerId, Offset] = {}
        """Where each transaction that has not ended began; in that order."""

    def __len__(self) -> int:
        return len(self._producers)

    def __iter__(self) -> Iterator[tuple[ProducerId, Producer]]:
        return iter(self._producers.items())

    def check(self, header: BatchHeader) -> AppendedBatch | None:
        """None if the batch may be appended; the earlier batch if this one is its repetition."""
        producer = self._producers.get(header.producer_id)
        if producer is None or header.is_control:
            return None
        if header.producer_epoch < producer.epoch:
            raise InvalidProducerEpoch(
                f"producer {header.producer_id} of epoch {header.producer_epoch} was fenced by epoch {producer.epoch}"
            )
        first, last = header.base_sequence, header.last_sequence
        if header.producer_epoch > producer.epoch:
            if first != 0:
                raise OutOfOrderSequence(
                    f"producer {header.producer_id} begins epoch {header.producer_epoch} with sequence {first}, not 0"
                )
            return None
        if header.producer_id in self.open and not header.attributes & TRANSACTIONAL_BIT:
            raise InvalidTransactionState(f"producer {header.producer_id} is in a transaction, but the batch is not")
        for batch in producer.batches:
            if batch.base_sequence == first and batch.last_sequence == last:
                return batch
        if producer.batches:
            newest = producer.batches[-1].last_sequence
            if first != (newest + 1) & 0x7FFF_FFFF:
                raise OutOfOrderSequence(
                    f"producer {header.producer_id} sent sequence {first}, expected {(newest + 1) & 0x7FFF_FFFF}"
                )
        elif first != 0:
            raise OutOfOrderSequence(
                f"producer {header.producer_id} begins epoch {header.producer_epoch} with sequence {first}, not 0"
            )
        return None

    def update(self, header: BatchHeader, base_offset: Offset, now_ms: TimestampMs) -> None:
        producer = self._producers.get(header.producer_id)
        if producer is not None and header.producer_epoch < producer.epoch:
            return
        if producer is None or header.producer_epoch > producer.epoch:
            producer = self._producers[header.producer_id] = Producer(header.producer_epoch, (), now_ms)
        producer.last_seen_ms = now_ms
        if header.attributes & TRANSACTIONAL_BIT and header.producer_id not in self.open and not header.is_control:
            self.open[header.producer_id] = base_offset
        if header.base_sequence != NO_SEQUENCE:
            producer.batches.append(
                AppendedBatch(
                    header.base_sequence,
                    header.last_sequence,
                    base_offset,
                    base_offset + header.last_offset_delta,
                    header.max_timestamp,
                )
            )

    def ended(self, header: BatchHeader, base_offset: Offset, committed: bool) -> AbortedTransaction | None:
        """The marker with this header stands at `base_offset`; the transaction, if there was one and this aborts it.
        `update` sees the marker too."""
        first_offset = self.open.pop(header.producer_id, None)
        if first_offset is None or committed:
            return None
        last_stable = next(iter(self.open.values()), base_offset + 1)
        return AbortedTransaction(header.producer_id, first_offset, base_offset, last_stable)

    def get(self, producer_id: ProducerId) -> Producer | None:
        return self._producers.get(producer_id)

    def expire(self, before_ms: TimestampMs) -> None:
        """Forget the producers that appended nothing since."""
        old = [id_ for id_, known in self._producers.items() if known.last_seen_ms < before_ms]
        for producer_id in old:
            if producer_id not in self.open:
                del self._producers[producer_id]

    def cut(self, end_offset: Offset) -> None:
        """Forget the batches from `end_offset` on, and the producers of which nothing else is known. Which
        transactions are open then, the caller has to find out."""
        for producer_id, producer in list(self):
            kept = [batch for batch in producer.batches if batch.last_offset < end_offset]
            if not kept:
                del self._producers[producer_id]
            elif len(kept) < len(producer.batches):
                producer.batches = deque(kept, REMEMBERED_BATCHES)

    def to_rows(self) -> list[Any]:
        """Plain lists for the checkpoint."""
        return [[id_, known.epoch, known.last_seen_ms, *map(list, known.batches)] for id_, known in self]

    @classmethod
    def from_rows(cls, rows: list[Any], open_transactions: Iterable[Any] = ()) -> "Producers":
        producers = cls()
        producers.open.update((id_, first_offset) for id_, first_offset in open_transactions)
        for id_, epoch, last_seen_ms, *batches in rows:
            producers._producers[id_] = Producer(epoch, map(AppendedBatch._make, batches), last_seen_ms)
        return producers
