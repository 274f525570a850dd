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

from collections.abc import Collection, Iterable, Iterator
from heapq import nsmallest
from struct import Struct
from typing import Any, NamedTuple

from tidelog.errors import InvalidProducerEpoch, InvalidTransactionState, OutOfOrderSequence
from tidelog.model import NO_SEQUENCE, Offset, ProducerEpoch, ProducerId, TimestampMs
from tidelog.records.batch import TRANSACTIONAL_BIT, BatchHeader
from tidelog.storage.log import AbortedTransaction

REMEMBERED_BATCHES = 5
MOST_PRODUCERS = 20_000
"""Per partition: some 8 MB. Beyond that, the producers that were silent for longest are forgotten, unless they are in
a transaction. A producer that is forgotten between a batch and its repetition, because 18,000 others wrote meanwhile,
appends the batch twice."""
_FORGOTTEN_AT_ONCE = MOST_PRODUCERS // 10
_BATCH = Struct("<iiqqq")  # the fields of `AppendedBatch`; also stored, see shared/producer_facts.py
PACKED_BATCH_SIZE = _BATCH.size
_LAST_SEQUENCE = Struct("<4xi24x")
_KEPT_BYTES = (REMEMBERED_BATCHES - 1) * _BATCH.size


class AppendedBatch(NamedTuple):
    base_sequence: int
    last_sequence: int
    base_offset: Offset
    last_offset: Offset
    timestamp: TimestampMs


class Producer(NamedTuple):
    """What is known of one producer. Immutable, so that a copy of the dictionary of producers is a snapshot. The
    batches are packed, because there may be many producers."""

    epoch: ProducerEpoch
    last_seen_ms: TimestampMs
    packed_batches: bytes = b""
    coordinator_epoch: int = -1
    """The coordinator epoch in the last marker since the log was opened; -1 if there was none."""

    @property
    def batches(self) -> list[AppendedBatch]:
        """The remembered batches, the newest last."""
        return list(map(AppendedBatch._make, _BATCH.iter_unpack(self.packed_batches)))

    @property
    def newest(self) -> AppendedBatch | None:
        packed = self.packed_batches
        return AppendedBatch._make(_BATCH.unpack_from(packed, len(packed) - _BATCH.size)) if packed else None

    @property
    def last_sequence(self) -> int:
        """The last sequence number of its newest batch; NO_SEQUENCE if it has none."""
        packed = self.packed_batches
        return _LAST_SEQUENCE.unpack_from(packed, len(packed) - _BATCH.size)[0] if packed else NO_SEQUENCE


class Producers:
    """The producers of one partition. Call `check` before a batch is written, `update` after."""

    def __init__(self) -> None:
        self._producers: dict[ProducerId, Producer] = {}
        self.open: dict[ProducerId, Offset] = {}
        """The first offset of each open transaction, in the order of these offsets."""

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
        first = header.base_sequence
        if header.producer_epoch > producer.epoch:
            if first != 0:
                raise OutOfOrderSequence(
                    f"producer {header.producer_id} begins epoch {header.producer_epoch} with sequence {first}, not 0"
                )
            return None
        if header.producer_id in self.open and not header.attributes & TRANSACTIONAL_BIT:
            raise InvalidTransactionState(
                f"producer {header.producer_id} has an open transaction, but the batch is not transactional"
            )
        newest = producer.last_sequence
        if first == ((newest + 1) & 0x7FFF_FFFF if producer.packed_batches else 0):
            return None
        last = header.last_sequence
        for batch in producer.batches:
            if batch.base_sequence == first and batch.last_sequence == last:
                return batch
        if producer.packed_batches:
            raise OutOfOrderSequence(
                f"producer {header.producer_id} sent sequence {first}, expected {(newest + 1) & 0x7FFF_FFFF}"
            )
        raise OutOfOrderSequence(
            f"producer {header.producer_id} begins epoch {header.producer_epoch} with sequence {first}, not 0"
        )

    def update(self, header: BatchHeader, base_offset: Offset, now_ms: TimestampMs) -> None:
        producer_id = header.producer_id
        producer = self._producers.get(producer_id)
        packed, coordinator_epoch = b"", -1
        if producer is not None:
            if header.producer_epoch < producer.epoch:
                return
            if header.producer_epoch == producer.epoch:
                packed, coordinator_epoch = producer.packed_batches, producer.coordinator_epoch
        elif len(self._producers) >= MOST_PRODUCERS:
            self._forget_some()
        if header.attributes & TRANSACTIONAL_BIT and producer_id not in self.open and not header.is_control:
            self.open[producer_id] = base_offset
        if header.base_sequence != NO_SEQUENCE:
            packed = packed[-_KEPT_BYTES:] + _BATCH.pack(
                header.base_sequence,
                header.last_sequence,
                base_offset,
                base_offset + header.last_offset_delta,
                header.max_timestamp,
            )
        self._producers[producer_id] = Producer(header.producer_epoch, now_ms, packed, coordinator_epoch)

    def saw_marker(self, producer_id: ProducerId, coordinator_epoch: int) -> None:
        producer = self._producers.get(producer_id)
        if producer is not None:
            epoch, updated_ms, packed, _ = producer  # `_replace` takes four times as long
            self._producers[producer_id] = Producer(epoch, updated_ms, packed, coordinator_epoch)

    def ended(self, header: BatchHeader, base_offset: Offset, committed: bool) -> AbortedTransaction | None:
        """Take note of the marker with this header at `base_offset`. Returns the transaction if one was open and the
        marker aborts it. `update` must be called for the marker too."""
        first_offset = self.open.pop(header.producer_id, None)
        if first_offset is None or committed:
            return None
        last_stable = next(iter(self.open.values()), base_offset + 1)
        return AbortedTransaction(header.producer_id, first_offset, base_offset, last_stable)

    def is_in_transaction(self, producer_id: ProducerId, epoch: ProducerEpoch) -> bool:
        known = self._producers.get(producer_id)
        return producer_id in self.open and known is not None and known.epoch == epoch

    def get(self, producer_id: ProducerId) -> Producer | None:
        return self._producers.get(producer_id)

    def expire(self, before_ms: TimestampMs) -> None:
        """Forget the producers that have appended nothing since `before_ms` and have no open transaction."""
        old = [id_ for id_, known in self._producers.items() if known.last_seen_ms < before_ms]
        for producer_id in old:
            if producer_id not in self.open:
                del self._producers[producer_id]

    def _forget_some(self) -> None:
        """Many at once, because finding the oldest means going through all."""
        idle = [(known.last_seen_ms, id_) for id_, known in self._producers.items() if id_ not in self.open]
        for _, producer_id in nsmallest(_FORGOTTEN_AT_ONCE, idle):
            del self._producers[producer_id]

    def cut(self, end_offset: Offset) -> None:
        """Forget the batches from `end_offset` on, and the producers that have no batch left. The caller must find
        out which transactions are then open."""
        for producer_id, producer in list(self):
            kept = [batch for batch in producer.batches if batch.last_offset < end_offset]
            if kept:
                self._producers[producer_id] = producer._replace(packed_batches=_packed(kept))
            else:
                del self._producers[producer_id]

    def to_rows(self) -> Collection[Any]:
        """A snapshot of the producers as rows for the checkpoint: plain lists, made while iterating."""
        return _Rows(dict(self._producers))

    @classmethod
    def restored(
        cls, known: Iterable[tuple[ProducerId, Producer]], open_transactions: Iterable[tuple[ProducerId, Offset]]
    ) -> "Producers":
        """The producers that another object had, with its open transactions in the order of their first offsets."""
        producers = cls()
        producers._producers.update(known)
        producers.open.update(open_transactions)
        return producers

    @classmethod
    def from_rows(cls, rows: Iterable[Any], open_transactions: Iterable[Any] = ()) -> "Producers":
        producers = cls()
        producers.open.update((id_, first_offset) for id_, first_offset in open_transactions)
        for id_, epoch, last_seen_ms, *batches in rows:
            producers._producers[id_] = Producer(epoch, last_seen_ms, _packed(batches))
        while len(producers) > MOST_PRODUCERS + len(producers.open):
            producers._forget_some()
        return producers


class _Rows(Collection[Any]):
    """A snapshot of the producers; iterating makes the rows."""

    def __init__(self, producers: dict[ProducerId, Producer]) -> None:
        self._producers = producers

    def __len__(self) -> int:
        return len(self._producers)

    def __contains__(self, row: object) -> bool:
        return any(row == one for one in self)

    def __iter__(self) -> Iterator[Any]:
        for id_, known in self._producers.items():
            yield [id_, known.epoch, known.last_seen_ms, *map(list, known.batches)]


def _packed(batches: Iterable[Iterable[int]]) -> bytes:
    return b"".join([_BATCH.pack(*batch) for batch in batches][-REMEMBERED_BATCHES:])
