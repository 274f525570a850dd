"""What a new leader must know about a log's producers, packed, so that it need not read the log's objects.

*Facts* are about the batches of one extent and are stored with it. A *snapshot* is the sum of everything before an
offset. `replay` adds facts to `Producers`; a snapshot and the facts of all later extents, in order, give the same
`Producers` that the old leader had. Numbers are big-endian, except the remembered batches of a snapshot.

    facts       version (1) = 1, time of the appends (8), then entries of 35 bytes:
                kind (1), producer id (8), producer epoch (2), base sequence or coordinator epoch (4), last offset
                delta (4), base offset (8), max timestamp (8)
                kinds: 0 batch, 1 batch of a transaction, 2 commit marker, 3 abort marker
    snapshot    version (1) = 1, number of producers (4), then for each:
                producer id (8), epoch (2), last seen (8), coordinator epoch (4), first offset of its open
                transaction or -1 (8), number of remembered batches (1), these batches, the newest last
                a batch, little-endian: base sequence (4), last sequence (4), base offset (8), last offset (8),
                timestamp (8)

Facts are shorter than the list of batches. Of neighbouring batches of a producer in the same state only the first,
which may open a transaction, and the last five count, because `Producers` remembers no more.
"""

from struct import Struct

from tidelog.errors import CorruptBatch, CorruptLog, MetadataTooNew
from tidelog.model import NO_LEADER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP, Offset, ProducerEpoch, ProducerId, TimestampMs
from tidelog.records.batch import CONTROL_BIT, MAGIC, MIN_LENGTH, TRANSACTIONAL_BIT, BatchHeader, BatchView
from tidelog.records.record import ABORT_MARKER, COMMIT_MARKER, read_marker
from tidelog.storage.producers import PACKED_BATCH_SIZE, REMEMBERED_BATCHES, Producer, Producers

VERSION = 1
_BATCH, _TRANSACTIONAL, _COMMIT, _ABORT = range(4)
_HEAD = Struct(">Bq")
_ENTRY = Struct(">Bqhiiqq")
_SNAPSHOT_HEAD = Struct(">BI")
_PRODUCER = Struct(">qhqiqB")
_ATTRIBUTES = {
    _BATCH: 0,
    _TRANSACTIONAL: TRANSACTIONAL_BIT,
    _COMMIT: TRANSACTIONAL_BIT | CONTROL_BIT,
    _ABORT: TRANSACTIONAL_BIT | CONTROL_BIT,
}
_RunState = tuple[ProducerEpoch, bool, bool]


class Facts:
    """Gathers the facts about the batches of an extent, in the order of their offsets."""

    def __init__(self) -> None:
        self._entries: list[bytes] = []
        self._runs: dict[ProducerId, tuple[_RunState, list[int]]] = {}
        """For each producer the entries of its last batches, as long as they are in the same state."""

    def batch(self, header: BatchHeader, base_offset: Offset) -> None:
        """The batch was placed at `base_offset`. Not for markers; a batch without a producer adds nothing."""
        producer_id = header.producer_id
        if producer_id < 0:
            return
        assert not header.is_control, "markers are added by `marker`"
        kind = _TRANSACTIONAL if header.attributes & TRANSACTIONAL_BIT else _BATCH
        state = (header.producer_epoch, kind == _TRANSACTIONAL, header.base_sequence == NO_SEQUENCE)
        known = self._runs.get(producer_id)
        if known is None or known[0] != state:
            self._runs[producer_id] = known = (state, [])
        run = known[1]
        run.append(len(self._entries))
        if len(run) > 1 + REMEMBERED_BATCHES:
            self._entries[run.pop(1)] = b""
        self._entries.append(_entry(kind, header, header.base_sequence, base_offset))

    def marker(self, header: BatchHeader, base_offset: Offset, *, committed: bool, coordinator_epoch: int) -> None:
        self._runs.pop(header.producer_id, None)
        self._entries.append(_entry(_COMMIT if committed else _ABORT, header, coordinator_epoch, base_offset))

    def saw(self, batch: BatchView) -> None:
        """The next batch of a log, which has its offset already."""
        header = batch.header
        if not header.is_control:
            self.batch(header, header.base_offset)
            return
        try:
            marker = read_marker(batch)
        except CorruptBatch:  # a control batch of another kind
            return
        if marker.type in (COMMIT_MARKER, ABORT_MARKER):
            committed = marker.type == COMMIT_MARKER
            self.marker(header, header.base_offset, committed=committed, coordinator_epoch=marker.coordinator_epoch)

    def packed(self, now_ms: TimestampMs) -> bytes:
        """Empty if no batch has a producer. `now_ms` is the time at which the producers were last seen."""
        if not self._entries:
            return b""
        return b"".join([_HEAD.pack(VERSION, now_ms), *self._entries])


def replay(facts: bytes, producers: Producers) -> None:
    """Update `producers` with the facts of the next extent. CorruptLog or MetadataTooNew: `producers` may be in any
    state."""
    if not facts:
        return
    _check_version(facts, "facts about producers")
    body = memoryview(facts)[_HEAD.size :]
    if len(facts) < _HEAD.size or len(body) % _ENTRY.size:
        raise _damaged("facts about producers", len(facts), "the last entry is not complete")
    _, now_ms = _HEAD.unpack_from(facts)
    for kind, producer_id, epoch, number, last_delta, base_offset, max_timestamp in _ENTRY.iter_unpack(body):
        attributes = _ATTRIBUTES.get(kind)
        if attributes is None or last_delta < 0:
            raise _damaged("facts about producers", 0, f"kind {kind}, last offset delta {last_delta}", base_offset)
        is_marker = kind in (_COMMIT, _ABORT)
        header = BatchHeader(
            base_offset,
            MIN_LENGTH,
            NO_LEADER_EPOCH,
            MAGIC,
            0,
            attributes,
            last_delta,
            NO_TIMESTAMP,
            max_timestamp,
            producer_id,
            epoch,
            NO_SEQUENCE if is_marker else number,
            last_delta + 1,
        )
        producers.update(header, base_offset, now_ms)
        if is_marker:
            producers.saw_marker(producer_id, number)
            producers.ended(header, base_offset, kind == _COMMIT)


def pack_snapshot(producers: Producers) -> bytes:
    parts = [_SNAPSHOT_HEAD.pack(VERSION, len(producers))]
    opened = producers.open
    assert all(map(producers.get, opened)), "a transaction of an unknown producer would be lost"
    for producer_id, known in producers:
        packed = known.packed_batches
        parts.append(
            _PRODUCER.pack(
                producer_id,
                known.epoch,
                known.last_seen_ms,
                known.coordinator_epoch,
                opened.get(producer_id, -1),
                len(packed) // PACKED_BATCH_SIZE,
            )
        )
        parts.append(packed)
    return b"".join(parts)


def read_snapshot(snapshot: bytes) -> Producers:
    """The producers of `pack_snapshot`. Empty bytes: there were none. CorruptLog, MetadataTooNew."""
    if not snapshot:
        return Producers()
    _check_version(snapshot, "snapshot of producers")
    size = len(snapshot)
    if size < _SNAPSHOT_HEAD.size:
        raise _damaged("snapshot of producers", size, "it is too short")
    _, count = _SNAPSHOT_HEAD.unpack_from(snapshot)
    position = _SNAPSHOT_HEAD.size
    known: list[tuple[ProducerId, Producer]] = []
    opened: list[tuple[Offset, ProducerId]] = []
    for _ in range(count):
        if position + _PRODUCER.size > size:
            raise _damaged("snapshot of producers", position, "it is too short")
        producer_id, epoch, last_seen_ms, coordinator_epoch, first_offset, batches = _PRODUCER.unpack_from(
            snapshot, position
        )
        position += _PRODUCER.size
        end = position + batches * PACKED_BATCH_SIZE
        if end > size or batches > REMEMBERED_BATCHES:
            raise _damaged("snapshot of producers", position, f"it claims {batches} batches of a producer")
        if first_offset >= 0:
            opened.append((first_offset, producer_id))
        known.append((producer_id, Producer(epoch, last_seen_ms, snapshot[position:end], coordinator_epoch)))
        position = end
    if position != size:
        raise _damaged("snapshot of producers", position, "bytes after its end")
    return Producers.restored(known, ((producer_id, first_offset) for first_offset, producer_id in sorted(opened)))


def _entry(kind: int, header: BatchHeader, number: int, base_offset: Offset) -> bytes:
    return _ENTRY.pack(
        kind,
        header.producer_id,
        header.producer_epoch,
        number,
        header.last_offset_delta,
        base_offset,
        header.max_timestamp,
    )


def _check_version(packed: bytes, what: str) -> None:
    version = packed[0]
    if version > VERSION:
        raise MetadataTooNew(
            f"{what} of version {version}: this Tidelog reads version {VERSION}; upgrade this broker"
        )
    if version != VERSION:
        raise _damaged(what, 0, f"unknown version {version}")


def _damaged(what: str, position: int, reason: str, offset: Offset = -1) -> CorruptLog:
    return CorruptLog(reason, file=what, position=position, offset=offset)
