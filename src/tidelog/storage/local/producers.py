"""What a partition remembers of its idempotent producers: the newest epoch and the last five batches of each.

batch from producer      known producer            answer
older epoch              newer epoch               InvalidProducerEpoch: fenced
same epoch, same range   among the last five       duplicate: its first offset again
same epoch, next         any                       accepted
same epoch, other        any                       OutOfOrderSequence
newer epoch, from 0      any                       accepted, forgets the older epoch's batches
newer epoch, other       any                       OutOfOrderSequence
any                      unknown or expired        accepted: its history may have been deleted by retention
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tidelog.errors import InvalidProducerEpoch, OutOfOrderSequence
from tidelog.model import NO_SEQUENCE, Offset, ProducerEpoch, ProducerId, TimestampMs
from tidelog.records.batch import BatchHeader

REMEMBERED_BATCHES = 5


class AppendedBatch(NamedTuple):
    base_sequence: int
    last_sequence: int
    base_offset: Offset
    last_offset: Offset
    timestamp: TimestampMs


class Producer:
    __slots__ = ("batches", "epoch", "last_seen_ms")

    def __init__(self, epoch: ProducerEpoch, batches: Iterable[AppendedBatch], last_seen_ms: TimestampMs) -> None:
        self.epoch = epoch
        self.batches = deque(batches, REMEMBERED_BATCHES)
        self.last_seen_ms = last_seen_ms


class Producers:
    """One partition's producers. `check` before a batch is written, `update` after."""

    def __init__(self) -> None:
        self._producers: dict[ProducerId, Producer] = {}

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
        for batch in producer.batches:
            if batch.base_sequence == first and batch.last_sequence == last:
                return batch
        if producer.batches:
            newest = producer.batches[-1].last_sequence
            if first != (newest + 1) & 0x7FFF_FFFF:
                raise OutOfOrderSequence(
                    f"producer {header.producer_id} sent sequence {first}, expected {(newest + 1) & 0x7FFF_FFFF}"
                )
        return None

    def update(self, header: BatchHeader, base_offset: Offset, now_ms: TimestampMs) -> None:
        producer = self._producers.get(header.producer_id)
        if producer is not None and header.producer_epoch < producer.epoch:
            return
        if producer is None or header.producer_epoch > producer.epoch:
            producer = self._producers[header.producer_id] = Producer(header.producer_epoch, (), now_ms)
        producer.last_seen_ms = now_ms
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

    def expire(self, before_ms: TimestampMs) -> None:
        """Forget the producers that appended nothing since."""
        for producer_id in [id_ for id_, known in self._producers.items() if known.last_seen_ms < before_ms]:
            del self._producers[producer_id]

    def cut(self, end_offset: Offset) -> None:
        """Forget the batches from `end_offset` on, and the producers of which nothing else is known."""
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
    def from_rows(cls, rows: list[Any]) -> "Producers":
        producers = cls()
        for id_, epoch, last_seen_ms, *batches in rows:
            producers._producers[id_] = Producer(epoch, map(AppendedBatch._make, batches), last_seen_ms)
        return producers
