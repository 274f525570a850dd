"""What every engine does with batches before and after it appends them: checks, offsets, producers, markers."""

from tidelog.errors import CorruptBatch, InvalidProducerEpoch, InvalidRecord, RecordTooLarge
from tidelog.model import LeaderEpoch, Offset, ProducerEpoch, ProducerId, TimestampMs, TopicPartition
from tidelog.records.batch import (
    CONTROL_BIT,
    LENGTH_END,
    BatchHeader,
    BatchView,
    place,
    read_produced,
    stamp_append_time,
)
from tidelog.records.record import ABORT_MARKER, COMMIT_MARKER, build_marker, read_marker
from tidelog.settings import LogSettings
from tidelog.storage.log import AbortedTransaction, ActiveProducer
from tidelog.storage.producers import Producers


def checked_headers(view: memoryview, settings: LogSettings, partition: TopicPartition) -> list[BatchHeader]:
    """The headers of all batches in `view`. Raises an error if one is not acceptable."""
    headers = []
    position, size = 0, len(view)
    while position < size:
        header = read_produced(view, position)
        batch_size = header.length + LENGTH_END
        if batch_size > settings.max_message_bytes and not header.attributes & CONTROL_BIT:
            raise RecordTooLarge(
                f"a batch has {batch_size} bytes; {partition} takes at most {settings.max_message_bytes} "
                f"(max.message.bytes)"
            )
        headers.append(header)
        position += batch_size
    if not headers:
        raise InvalidRecord("there is no batch to append")
    if len(headers) > 1 and any(header.producer_id >= 0 for header in headers):
        raise InvalidRecord(
            "several batches at once, some with a producer id; append such a batch alone, so that a repetition "
            "is recognised"
        )
    if size > settings.segment_bytes:
        raise RecordTooLarge(
            f"{size} bytes do not fit into a segment of {settings.segment_bytes} bytes (segment.bytes)"
        )
    return headers


def place_all(
    view: memoryview,
    headers: list[BatchHeader],
    offset: Offset,
    leader_epoch: LeaderEpoch,
    stamp_ms: TimestampMs | None,
) -> Offset:
    """Write offsets from `offset` on and the leader epoch, and `stamp_ms` if given, into the batches; returns the
    offset after them. `headers` get the stamp too."""
    position = 0
    for number, header in enumerate(headers):
        place(view, position, header, offset, leader_epoch)
        if stamp_ms is not None:
            headers[number] = stamp_append_time(view, position, header, stamp_ms)
        position += header.length + LENGTH_END
        offset += header.last_offset_delta + 1
    return offset


def saw_marker(producers: Producers, batch: BatchView, offset: Offset) -> AbortedTransaction | None:
    """Take note of a control batch that was appended at `offset`. Returns the transaction if the batch aborts
    one."""
    header = batch.header
    try:
        marker = read_marker(batch)
    except CorruptBatch:  # a control batch of another kind
        return None
    producers.saw_marker(header.producer_id, marker.coordinator_epoch)
    if marker.type not in (COMMIT_MARKER, ABORT_MARKER):
        return None
    return producers.ended(header, offset, marker.type == COMMIT_MARKER)


def marker_for(
    producers: Producers,
    partition: TopicPartition,
    producer_id: ProducerId,
    epoch: ProducerEpoch,
    *,
    committed: bool,
    coordinator_epoch: int,
    now_ms: TimestampMs,
) -> bytearray | None:
    """The control batch that ends the producer's open transaction; None if none is open."""
    if producer_id not in producers.open:
        return None
    producer = producers.get(producer_id)
    if producer is not None and epoch < producer.epoch:
        raise InvalidProducerEpoch(
            f"producer {producer_id} of epoch {epoch} was fenced by epoch {producer.epoch} in {partition}"
        )
    return build_marker(
        committed=committed,
        producer_id=producer_id,
        producer_epoch=epoch,
        coordinator_epoch=coordinator_epoch,
        timestamp=now_ms,
    )


def active_producers(producers: Producers) -> list[ActiveProducer]:
    return [
        ActiveProducer(
            id_,
            producer.epoch,
            producer.last_sequence,
            producer.newest.timestamp if producer.newest else producer.last_seen_ms,
            producers.open.get(id_, -1),
            producer.coordinator_epoch,
        )
        for id_, producer in producers
    ]
