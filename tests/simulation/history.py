"""What the clients of a simulation saw, and what must be true of it."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from tidelog.model import Offset, PartitionIdentity
from tidelog.records.batch import BatchView
from tidelog.records.record import decode


class Violation(AssertionError):
    pass


def need(condition: bool, what: str) -> None:
    if not condition:
        raise Violation(what)


class Stored(NamedTuple):
    """A record, or a marker (without a value), as it is in a log."""

    value: bytes | None
    producer_id: int
    sequence: int
    leader_epoch: int


def key_of(value: bytes) -> bytes:
    """The key of a record in a compacted log: a few for each producer."""
    producer, number = value.split(b":")
    return b"%s/%d" % (producer, int(number) % 3)


def records_of(batch: BatchView) -> dict[Offset, Stored]:
    header = batch.header
    if header.is_control:
        return {header.base_offset: Stored(None, header.producer_id, -1, header.leader_epoch)}
    return {
        record.offset: Stored(
            record.value,
            header.producer_id,
            header.base_sequence + record.offset - header.base_offset,
            header.leader_epoch,
        )
        for record in decode(batch)
    }


@dataclass
class History:
    acknowledged: dict[PartitionIdentity, dict[Offset, bytes]] = field(default_factory=lambda: defaultdict(dict))
    seen: dict[PartitionIdentity, dict[Offset, Stored]] = field(default_factory=lambda: defaultdict(dict))
    decided: dict[bytes, bool] = field(default_factory=dict)
    """The values that were written in transactions, and whether these were committed; missing: not decided yet."""
    transactional: set[bytes] = field(default_factory=set)
    deleted_up_to: dict[PartitionIdentity, Offset] = field(default_factory=lambda: defaultdict(int))
    """The highest offset that somebody asked to delete up to."""
    is_compacted: bool = False

    def was_acknowledged(self, partition: PartitionIdentity, base_offset: Offset, values: list[bytes]) -> None:
        for offset, value in enumerate(values, base_offset):
            before = self.acknowledged[partition].setdefault(offset, value)
            need(before == value, f"{partition.name} {offset} was given to {before!r} and to {value!r}")

    def was_seen(self, partition: PartitionIdentity, batch: BatchView, high_watermark: Offset) -> None:
        need(
            batch.header.last_offset < high_watermark,
            f"{partition.name} {batch.header.last_offset} was read before it was committed",
        )
        for offset, stored in records_of(batch).items():
            before = self.seen[partition].setdefault(offset, stored)
            need(before == stored, f"{partition.name} {offset} changed from {before} to {stored}")

    def was_seen_as_committed(self, value: bytes) -> None:
        if value in self.transactional:
            need(value in self.decided, f"{value!r} was read before its transaction ended")
            need(self.decided[value], f"{value!r} was read, but its transaction was aborted")

    def check_final(
        self,
        partition: PartitionIdentity,
        start: Offset,
        log: dict[Offset, Stored],
        committed: list[bytes],
    ) -> None:
        """The log when everything is over: all records from `start` on, and the values that readers of committed
        records see."""
        name = partition.name
        need(start <= self.deleted_up_to[partition], f"{name}: nobody asked to delete up to {start}")
        newest = {
            key_of(stored.value): offset
            for offset, stored in sorted(log.items())
            if self.is_compacted and stored.value is not None and self.decided.get(stored.value, True)
        }

        def is_compacted_away(offset: Offset, value: bytes | None) -> bool:
            """It may be missing: a marker, a record of an aborted transaction, or one with a later value."""
            if not self.is_compacted or offset in log:
                return False
            return value is None or not self.decided.get(value, True) or newest.get(key_of(value), -1) > offset

        for offset, value in self.acknowledged[partition].items():
            need(
                offset < start or (offset in log and log[offset].value == value) or is_compacted_away(offset, value),
                f"{name} {offset}: {value!r} was acknowledged and is lost; there is {log.get(offset)}",
            )
        for offset, stored in self.seen[partition].items():
            need(
                offset < start or log.get(offset) == stored or is_compacted_away(offset, stored.value),
                f"{name} {offset}: {stored} was read, and now there is {log.get(offset)}",
            )
        last_sequence: dict[int, int] = {}
        epoch = -1
        for offset in sorted(log):
            stored = log[offset]
            need(stored.leader_epoch >= epoch, f"{name} {offset}: epoch {stored.leader_epoch} after {epoch}")
            epoch = stored.leader_epoch
            if stored.producer_id >= 0 and stored.value is not None:
                last = last_sequence.get(stored.producer_id)
                need(
                    last is None or stored.sequence == last + 1 or (self.is_compacted and stored.sequence > last),
                    f"{name} {offset}: producer {stored.producer_id} has sequence {stored.sequence} after {last}",
                )
                last_sequence[stored.producer_id] = stored.sequence
        expected = [
            stored.value
            for _, stored in sorted(log.items())
            if stored.value is not None
            and (stored.value not in self.transactional or self.decided.get(stored.value, False))
        ]
        need(committed == expected, f"{name}: readers of committed records see {committed}, expected {expected}")
