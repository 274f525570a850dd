"""Compaction of one log: what stays, what goes, in both implementations, against a model that is a dict."""

import random
from contextlib import suppress
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.logs import DIRECTORY, NOW_MS, append, open_log, read_batches, read_records
from tests.support.memory_files import MemoryFiles
from tidelog.errors import CorruptBatch, CorruptLog, StorageError
from tidelog.model import ProducerEpoch, ProducerId
from tidelog.records import compaction as rules
from tidelog.records.batch import BatchView, iterate, reassemble
from tidelog.records.compression import Codec
from tidelog.records.record import BatchBuilder, Record, build_marker, decode
from tidelog.settings import CleanerSettings, CompactionSettings, LogSettings
from tidelog.storage.compaction import Throttle
from tidelog.storage.local.log import LocalLog
from tidelog.storage.local.repair import Repair
from tidelog.storage.local.verify import PartitionCheck

RETENTION_MS = 1000


@pytest.fixture(params=["kernels", "plain"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "plain":
        use_plain(monkeypatch)
    return str(request.param)


def use_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    from tidelog.storage.local import compaction_pass
    from tidelog.storage.shared import compaction as shared_compaction

    for module in (compaction_pass, shared_compaction):
        monkeypatch.setattr(module, "open_key_map", lambda memory, *_: rules.PlainKeyMap(memory))


def compacted(**others: int) -> LogSettings:
    return LogSettings(
        segment_bytes=others.pop("segment_bytes", 1 << 20),
        index_interval_bytes=others.pop("index_interval_bytes", 100),
        compaction=CompactionSettings(delete_retention_ms=RETENTION_MS, **others),
    )


def keyed(*pairs: tuple[bytes | None, bytes | None], timestamp: int = NOW_MS, codec: Codec = Codec.NONE) -> bytearray:
    builder = BatchBuilder(codec)
    for number, (key, value) in enumerate(pairs):
        builder.append(value, key=key, timestamp=timestamp + number)
    return builder.build()


def produced(
    producer_id: int, sequence: int, *pairs: tuple[bytes, bytes | None], epoch: int = 0, transactional: bool = False
) -> bytearray:
    builder = BatchBuilder(
        producer_id=ProducerId(producer_id),
        producer_epoch=ProducerEpoch(epoch),
        base_sequence=sequence,
        transactional=transactional,
    )
    for key, value in pairs:
        builder.append(value, key=key, timestamp=NOW_MS)
    return builder.build()


def marker(producer_id: int, *, committed: bool) -> bytearray:
    return build_marker(
        committed=committed,
        producer_id=ProducerId(producer_id),
        producer_epoch=ProducerEpoch(0),
        coordinator_epoch=0,
        timestamp=NOW_MS,
    )


def seal(log: LocalLog) -> None:
    """Begin a new segment, and let the checkpoint vouch for the others."""
    log._roll(NOW_MS)
    log.flush(checkpoint=True)


def latest(log: LocalLog) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in read_records(log)]


def check_files(files: MemoryFiles, directory: str = DIRECTORY) -> None:
    errors = [finding for finding in PartitionCheck(files, directory, deep=True) if finding.is_error]
    assert not errors, errors


def test_only_the_last_value_of_each_key_stays_at_its_offset(engine: str) -> None:
    files = MemoryFiles()
    log = open_log(files, compacted())
    append(log, keyed((b"a", b"1"), (b"b", b"1"), (b"a", b"2")))
    append(log, keyed((b"c", b"1"), (b"b", b"2")))
    append(log, keyed((b"a", b"3")))
    seal(log)
    append(log, keyed((b"a", b"4")))  # in the active segment, which is left alone

    log.compaction.run(NOW_MS)

    assert latest(log) == [(3, b"c", b"1"), (4, b"b", b"2"), (5, b"a", b"3"), (6, b"a", b"4")]
    assert [view.header.base_offset for view in read_batches(log)] == [3, 5, 6]
    assert log.start_offset == 0
    assert log.end_offset == 7
    check_files(files)


def test_an_offset_that_was_compacted_away_reads_what_follows_it(engine: str) -> None:
    log = open_log(MemoryFiles(), compacted(), tail_bytes=0)
    for number in range(20):
        append(log, keyed((b"k", b"%d" % number)))
    seal(log)
    append(log, keyed((b"other", b"x")))
    log.compaction.run(NOW_MS)
    for offset in range(20):
        (first, *_) = read_batches(log, offset)
        assert first.header.base_offset == 19


def test_the_last_batch_stays_so_that_readers_come_to_the_end_of_the_log(engine: str) -> None:
    files = MemoryFiles()
    log = open_log(files, compacted(), tail_bytes=0)
    append(log, keyed((b"a", b"1"), (b"b", b"1")))
    append(log, keyed((b"a", None), (b"b", None)))
    append(log, keyed((b"c", None)))
    seal(log)
    log.compaction.run(NOW_MS)
    log.compaction.run(NOW_MS + RETENTION_MS)
    assert [(view.header.base_offset, view.header.record_count) for view in read_batches(log)] == [(4, 0)]
    log.close()
    log = open_log(files, compacted(), tail_bytes=0)
    assert log.end_offset == 5
    check_files(files)
    append(log, keyed((b"d", b"1")))
    seal(log)
    log.compaction.run(NOW_MS + RETENTION_MS)
    assert latest(log) == [(5, b"d", b"1")]
    assert [view.header.base_offset for view in read_batches(log)] == [5]


def test_readers_keep_the_bytes_they_hold(engine: str) -> None:
    log = open_log(MemoryFiles(), compacted(), tail_bytes=0)
    for number in range(20):
        append(log, keyed((b"k", b"%d" % number)))
    seal(log)
    held = log.read_now(0, 1 << 20)
    log.compaction.run(NOW_MS)
    assert [view.header.base_offset for view in iterate(held.read())] == list(range(20))


def test_the_tail_cache_does_not_bring_back_what_was_compacted_away(engine: str) -> None:
    log = open_log(MemoryFiles(), compacted(), tail_bytes=1 << 20)
    for number in range(5):
        append(log, keyed((b"k", b"%d" % number)))
    seal(log)
    append(log, keyed((b"k", b"new")))
    log.compaction.run(NOW_MS)
    assert [value for _, _, value in latest(log)] == [b"4", b"new"]


def test_a_tombstone_stays_for_its_retention_and_then_goes(engine: str) -> None:
    files = MemoryFiles()
    log = open_log(files, compacted())
    append(log, keyed((b"a", b"1"), (b"b", b"1")))
    append(log, keyed((b"a", None), (b"c", b"1")))
    seal(log)
    log.compaction.run(NOW_MS + 5000)
    assert latest(log) == [(1, b"b", b"1"), (2, b"a", None), (3, b"c", b"1")]
    (_, view) = read_batches(log)
    assert view.header.has_delete_horizon
    assert view.header.base_timestamp == NOW_MS + 5000 + RETENTION_MS
    assert [record.timestamp for record in decode(view)] == [NOW_MS, NOW_MS + 1]
    assert not log.compaction.measure(NOW_MS + 5000 + RETENTION_MS - 1).wanted
    assert log.compaction.measure(NOW_MS + 5000 + RETENTION_MS).urgent

    log = reopened(log, files)
    log.compaction.run(NOW_MS + 5000 + RETENTION_MS)
    assert latest(log) == [(1, b"b", b"1"), (3, b"c", b"1")]
    assert not log.compaction.measure(NOW_MS + 10**9).wanted
    assert [record.timestamp for record in read_records(log)] == [NOW_MS + 1, NOW_MS + 1]
    check_files(files)


def reopened(log: LocalLog, files: MemoryFiles) -> LocalLog:
    settings = log.settings
    log.close()
    return open_log(files, settings)


def test_a_record_without_a_key_goes(engine: str) -> None:
    log = open_log(MemoryFiles(), compacted())
    append(log, keyed((None, b"1"), (b"b", b"1")))
    seal(log)
    log.compaction.run(NOW_MS)
    assert latest(log) == [(1, b"b", b"1")]


@pytest.mark.parametrize("codec", Codec)
def test_a_thinned_batch_keeps_its_codec(engine: str, codec: Codec) -> None:
    log = open_log(MemoryFiles(), compacted())
    append(log, keyed(*((b"%d" % (n % 7), b"value %d" % n * 20) for n in range(50)), codec=codec))
    append(log, keyed((b"3", None), codec=codec))
    seal(log)
    log.compaction.run(NOW_MS)
    assert [offset for offset, _, _ in latest(log)] == [43, 44, 46, 47, 48, 49, 50]
    assert {view.header.codec_id for view in read_batches(log)} == {codec}


def test_the_newest_batch_of_a_producer_stays_without_records(engine: str) -> None:
    files = MemoryFiles()
    log = open_log(files, compacted())
    append(log, produced(7, 0, (b"a", b"1")))
    append(log, produced(7, 1, (b"a", b"2"), (b"b", b"2")))
    append(log, keyed((b"a", b"3"), (b"b", b"3")))
    seal(log)
    log.compaction.run(NOW_MS)
    assert latest(log) == [(3, b"a", b"3"), (4, b"b", b"3")]
    views = read_batches(log)
    assert [(view.header.base_offset, view.header.record_count) for view in views] == [(1, 0), (3, 2)]
    assert log.max_timestamp_now() is not None

    # Without the checkpoint's memory the log itself must know where the producer stands.
    log.close()
    files.remove(f"{DIRECTORY}/checkpoint")
    log = open_log(files, compacted())
    assert log.recovery.lost == []
    (producer,) = log.active_producers()
    assert producer.last_sequence == 2
    assert append(log, produced(7, 1, (b"a", b"2"), (b"b", b"2"))).duplicate
    append(log, produced(7, 3, (b"z", b"3")))


def test_aborted_data_goes_at_once_and_markers_when_nothing_is_left_to_mark(engine: str) -> None:
    log = open_log(MemoryFiles(), compacted())
    append(log, produced(1, 0, (b"a", b"1"), transactional=True))
    append(log, marker(1, committed=True))
    append(log, produced(2, 0, (b"a", b"2"), (b"b", b"2"), transactional=True))
    append(log, marker(2, committed=False))
    append(log, produced(1, 1, (b"a", b"3"), transactional=True))
    append(log, marker(1, committed=True))
    append(log, produced(2, 2, (b"z", b"9"), transactional=True))
    append(log, marker(2, committed=True))
    append(log, produced(1, 2, (b"y", b"3"), transactional=True))
    append(log, marker(1, committed=True))
    seal(log)

    def found() -> list[int]:
        return [view.header.base_offset for view in read_batches(log)]

    log.compaction.run(NOW_MS)
    # The first pass takes out data: of the aborted transaction, and what is superseded. It has seen their batches, so
    # their markers stay; the newest batches of both producers would stay anyway.
    assert found() == [1, 4, 5, 6, 7, 8, 9, 10]
    assert [offset for offset, _, _ in data_of(log)] == [5, 7, 9]
    # The second finds nothing between those markers and gives them a horizon, the third takes them out.
    log.compaction.run(NOW_MS)
    markers = [view for view in read_batches(log) if view.header.is_control and view.header.has_delete_horizon]
    assert [view.header.base_offset for view in markers] == [1, 4]
    log.compaction.run(NOW_MS + RETENTION_MS)
    assert found() == [5, 6, 7, 8, 9, 10]


def data_of(log: LocalLog) -> list[tuple[int, bytes | None, bytes | None]]:
    return [
        (record.offset, record.key, record.value)
        for view in read_batches(log)
        if not view.header.is_control
        for record in decode(view)
    ]


def test_nothing_from_the_stable_offset_on_is_touched(engine: str) -> None:
    log = open_log(MemoryFiles(), compacted(segment_bytes=1024))
    for number in range(30):
        data = keyed((b"k", b"%d" % number + b"x" * 200))
        append(log, data if number != 10 else produced(1, 0, (b"k", b"10"), transactional=True))
    log.flush(checkpoint=True)
    log.compaction.run(NOW_MS)
    offsets = [offset for offset, _, _ in latest(log)]
    assert offsets[0] > 0
    assert offsets[-20:] == list(range(10, 30))


def test_a_transaction_counts_as_ended_when_its_marker_is_durable(engine: str) -> None:
    files = MemoryFiles()
    log = open_log(files, compacted())
    append(log, keyed((b"a", b"1")))
    append(log, produced(1, 0, (b"a", b"2"), transactional=True))
    seal(log)
    append(log, marker(1, committed=True))
    assert log.last_stable_offset == 3
    log.compaction.run(NOW_MS)
    assert [offset for offset, _, _ in data_of(log)] == [0, 1], "a crash could lose the marker"
    log.flush()
    log.compaction.run(NOW_MS)
    assert [offset for offset, _, _ in data_of(log)] == [1]


def test_young_records_are_safe(engine: str) -> None:
    log = open_log(MemoryFiles(), compacted(min_lag_ms=1000))
    append(log, keyed((b"a", b"1")))
    append(log, keyed((b"a", b"2"), timestamp=NOW_MS + 500))
    seal(log)
    assert not log.compaction.measure(NOW_MS + 1400).wanted
    assert log.compaction.run(NOW_MS + 1400) is None
    assert log.compaction.measure(NOW_MS + 1500).wanted
    log.compaction.run(NOW_MS + 1500)
    assert len(latest(log)) == 1


def test_a_log_is_wanted_when_dirty_enough_or_for_too_long(engine: str) -> None:
    log = open_log(MemoryFiles(), compacted(max_lag_ms=60_000))
    for number in range(100):
        append(log, keyed((b"%d" % number, b"x" * 100)))
    seal(log)
    assert log.compaction.measure(NOW_MS).ratio == 1.0
    log.compaction.run(NOW_MS)
    assert log.compaction.measure(NOW_MS) == (0, 0.0, False, False)
    for number in range(30):
        append(log, keyed((b"%d" % number, b"x" * 100)))
    seal(log)
    found = log.compaction.measure(NOW_MS)
    assert 0.2 < found.ratio < 0.3
    assert not found.wanted
    assert log.compaction.measure(NOW_MS + 60_001).urgent


def test_small_segments_become_one(engine: str) -> None:
    files = MemoryFiles()
    log = open_log(files, compacted(segment_bytes=2048))
    for number in range(200):
        append(log, keyed((b"%d" % (number % 10), b"%d" % number + b"x" * 100)))
    log.flush(checkpoint=True)
    before = log.stats().segments
    assert before > 10
    log.compaction.run(NOW_MS)
    assert log.stats().segments < 5
    assert {key: value for _, key, value in latest(log)} == {
        b"%d" % key: b"%d" % (190 + key) + b"x" * 100 for key in range(10)
    }
    check_files(files)
    again = reopened(log, files)
    assert again.recovery.clean
    assert latest(again) == latest(log)


@pytest.mark.parametrize("engine", ["kernels"], indirect=True)
def test_keys_that_do_not_fit_take_several_passes(engine: str) -> None:
    log = open_log(MemoryFiles(), compacted())
    for round_ in range(2):
        append(log, keyed(*((b"key %d" % n, b"%d" % round_) for n in range(500))))
    seal(log)
    cleaner = CleanerSettings(dedupe_buffer_bytes=24 * 100, load_factor=0.9)
    passes = 0
    while log.compaction.measure(NOW_MS).dirty_bytes:
        run = log.compaction.run(NOW_MS, cleaner=cleaner)
        assert run is not None
        assert run.keys <= 90
        passes += 1
    assert passes > 5
    assert [(key, value) for _, key, value in latest(log)] == [(b"key %d" % n, b"1") for n in range(500)]


def test_a_compacted_log_survives_the_loss_of_its_helper_files(engine: str) -> None:
    files = MemoryFiles()
    log = open_log(files, compacted(segment_bytes=2048))
    for number in range(100):
        append(log, keyed((b"%d" % (number % 10), b"%d" % number + b"x" * 100)))
    log.flush(checkpoint=True)
    log.compaction.run(NOW_MS)
    expected = latest(log)
    log.close()
    for name in [name for name in files.names if name.endswith(("index", "checkpoint"))]:
        files.remove(name)
    log = open_log(files, compacted(segment_bytes=2048))
    assert latest(log) == expected
    assert not log.recovery.cut
    assert not log.recovery.lost
    log.close()
    files.remove(f"{DIRECTORY}/compaction")
    log = open_log(files, compacted(segment_bytes=2048))
    assert latest(log) == expected
    assert log.compaction.state.clean_offset == 0


def test_time_lookups_see_only_what_is_left(engine: str) -> None:
    log = open_log(MemoryFiles(), compacted())
    for number in range(50):
        append(log, keyed((b"%d" % (number % 5), b"v" * 50), timestamp=NOW_MS + number))
    seal(log)
    log.compaction.run(NOW_MS)
    found = log.offset_for_time_now(NOW_MS)
    assert found is not None
    assert (found.offset, found.timestamp) == (45, NOW_MS + 45)
    newest = log.max_timestamp_now()
    assert newest is not None
    assert newest.offset == 49


def test_retention_deletes_compacted_segments_too(engine: str) -> None:
    settings = LogSettings(segment_bytes=1024, retention_ms=1000, compaction=CompactionSettings())
    log = open_log(MemoryFiles(), settings)
    for number in range(40):
        append(log, keyed((b"%d" % (number % 20), b"v" * 150), timestamp=NOW_MS + 100 * number))
    log.flush(checkpoint=True)
    log.compaction.run(NOW_MS + 4000)
    log.retain(NOW_MS + 4000)
    assert log.start_offset > 20
    offsets = [offset for offset, _, _ in latest(log)]
    assert offsets == sorted(offsets)
    assert offsets[-1] == 39


def test_damage_stops_the_pass_and_changes_nothing(engine: str) -> None:
    files = MemoryFiles()
    log = open_log(files, compacted(), tail_bytes=0)
    append(log, keyed((b"a", b"1" * 50)))
    append(log, keyed((b"a", b"2" * 50)))
    seal(log)
    inode = files.names[f"{DIRECTORY}/{0:020d}.log"]
    assert inode is not None
    inode.data[90] ^= 1
    with pytest.raises(CorruptLog, match="CRC"):
        log.compaction.run(NOW_MS)
    assert not any("cleaned" in name for name in files.names)
    assert log.compaction.state.clean_offset == 0


def test_a_full_disk_leaves_the_log_as_it_was(engine: str) -> None:
    files = MemoryFiles()
    log = open_log(files, compacted(segment_bytes=2048))
    for number in range(100):
        append(log, keyed((b"%d" % (number % 10), b"%d" % number + b"x" * 100)))
    log.flush(checkpoint=True)
    before = latest(log)

    def fail(operation: str, path: str) -> None:
        if operation == "write" and "cleaned" in path:
            raise OSError(28, "No space left on device", path)

    files.on_call = fail
    with pytest.raises(StorageError, match="free some space"):
        log.compaction.run(NOW_MS)
    files.on_call = None
    final = {key: value for _, key, value in before}
    assert {key: value for _, key, value in latest(log)} == final
    assert log.compaction.state.clean_offset == 0
    check_files(files)
    log.compaction.run(NOW_MS)
    assert {key: value for _, key, value in latest(log)} == final
    assert log.compaction.state.clean_offset > 80


@pytest.mark.parametrize("renamed", [False, True])
def test_an_exchange_that_was_cut_short_is_no_damage_and_repair_finishes_it(engine: str, renamed: bool) -> None:
    files = MemoryFiles()
    log = open_log(files, compacted(segment_bytes=2048))
    for number in range(60):
        append(log, keyed((b"%d" % (number % 10), b"%d" % number + b"x" * 100)))
    log.flush(checkpoint=True)
    final = {key: value for _, key, value in latest(log)}
    current = log.compaction.begin(NOW_MS, CleanerSettings(), Throttle())
    assert current is not None
    current.build_map()
    group = current.next_group()
    assert group is not None
    assert len(group.planned.replaced) > 1
    swap = log.compaction.begin_swap(group)
    assert swap is not None
    swap.commit()
    if renamed:
        base = f"{DIRECTORY}/{group.planned.base_offset:020d}"
        files.rename(f"{base}.cleaned.log", f"{base}.log")
    check_files(files)
    assert Repair(files, DIRECTORY).plan.steps == []
    check_files(files)
    assert not any("cleaned" in name for name in files.names)
    again = open_log(files, compacted(segment_bytes=2048))
    assert again.recovery.clean
    assert {key: value for _, key, value in latest(again)} == final
    assert again.stats().segments < log.stats().segments


# The model


Pairs = list[tuple[bytes, bytes | None]]
BATCHES = st.lists(
    st.tuples(
        st.lists(
            st.tuples(st.sampled_from([b"a", b"b", b"cc", b"", b"k" * 40]), st.none() | st.binary(max_size=40)),
            min_size=1,
            max_size=5,
        ),
        st.sampled_from(Codec),
        st.sampled_from([None, 1, 2]),  # the producer
        st.sampled_from(["", "seal", "compact", "reopen", "later"]),
    ),
    max_size=25,
)


@settings(max_examples=150)
@given(BATCHES, st.booleans(), st.sampled_from([600, 4096]))
def test_any_log_compacts_to_what_the_model_says(
    batches: list[tuple[Pairs, Codec, int | None, str]], plain: bool, segment_bytes: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if plain:
            use_plain(patch)
        play(batches, max(1024, segment_bytes))


def play(batches: list[tuple[Pairs, Codec, int | None, str]], segment_bytes: int) -> None:
    files = MemoryFiles()
    log = open_log(files, compacted(segment_bytes=segment_bytes))
    history: list[Record] = []
    sequences: dict[int, count[int]] = {}
    now_ms = NOW_MS
    for pairs, codec, producer, then in batches:
        sequence = -1
        if producer is not None:
            counter = sequences.setdefault(producer, count())
            sequence = next(counter)
            for _ in pairs[1:]:
                next(counter)
        builder = BatchBuilder(
            codec,
            producer_id=ProducerId(-1 if producer is None else producer),
            producer_epoch=ProducerEpoch(-1 if producer is None else 0),
            base_sequence=sequence,
        )
        for key, value in pairs:
            builder.append(value, key=key, timestamp=now_ms)
            history.append(Record(len(history), now_ms, key, value))
        append(log, builder.build(), now_ms=now_ms)
        if then == "seal":
            seal(log)
        elif then == "reopen":
            log = reopened(log, files)
        elif then == "later":
            now_ms += RETENTION_MS
        elif then == "compact":
            before = latest(log)
            log.compaction.run(now_ms)
            check_against(log, history, before)
    check_against(log, history, latest(log))
    check_files(files)
    assert {producer.producer_id: producer.last_sequence for producer in log.active_producers()} == {
        producer: next(counter) - 1 for producer, counter in sequences.items()
    }


def check_against(log: LocalLog, history: list[Record], before: list[tuple[int, bytes | None, bytes | None]]) -> None:
    found = read_records(log)
    assert set(found) <= set(history), "what is left is what was written, where it was written"
    assert [record.offset for record in found] == sorted(record.offset for record in found)
    assert {(record.offset, record.key, record.value) for record in found} <= set(before), "nothing comes back"
    final = {record.key: record for record in history}
    left = {record.key: record for record in found}
    for key, record in final.items():
        if record.value is not None:
            assert left[key] == record, "the last value of a key is there"
        else:
            assert key not in left or left[key].value is None, "a deleted key is not found"
    clean = log.compaction.state.clean_offset
    kept = [record.key for record in found if record.offset < clean]
    assert len(kept) == len(set(kept)), "one record a key, where it was compacted"
    assert log.end_offset == len(history)


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_both_implementations_agree(seed: int) -> None:
    from tidelog.records.compaction_columnar import HashedKeyMap

    rng = random.Random(seed)
    batches, offset = bytearray(), 0
    for _ in range(rng.randint(1, 30)):
        builder = BatchBuilder(
            Codec(rng.randint(0, 4)),
            base_offset=offset,
            producer_id=ProducerId(rng.choice([-1, 5])),
            producer_epoch=ProducerEpoch(0),
            base_sequence=0,
        )
        for _ in range(rng.randint(1, 6)):
            key = rng.choice([None, b"", b"k", rng.randbytes(2), b"long key" * rng.randint(1, 9)])
            value = None if rng.random() < 0.3 else rng.randbytes(rng.randint(0, 99))
            headers = [("name", b"value")] if rng.random() < 0.2 else []
            builder.append(value, key=key, timestamp=rng.randint(0, NOW_MS), headers=headers)
        offset += len(builder)
        batches += builder.build()
    chunk = memoryview(bytes(batches))
    end = rng.randint(0, offset)
    newest = {ProducerId(5): rules.Newest(ProducerEpoch(0), rng.randint(0, offset))}
    results = []
    for key_map in (HashedKeyMap(1 << 20, 0.9, 1000), rules.PlainKeyMap(1 << 20)):
        rule = rules.Rules(NOW_MS, 1000, 0, end, newest)
        key_map.add(chunk, rule)
        once = key_map.thin(chunk, rule, 100)
        data = bytes(once.data)
        again = key_map.thin(memoryview(data), rules.Rules(NOW_MS + 1000, 1000, 0, end, newest), 100)
        results.append([shown(data), shown(bytes(again.data)), rule.next_horizon_ms, once.records_kept])
        assert once.consumed == len(chunk)
    assert results[0] == results[1]


def shown(data: bytes) -> list[object]:
    views: list[BatchView] = list(rules.whole_batches(memoryview(data)))
    return [(view.header._replace(crc=0, length=0), decode(view)) for view in views]


@settings(max_examples=200)
@given(st.binary(min_size=0, max_size=120), st.integers(0, 400), st.integers(0, 255), st.integers(0, 20))
def test_records_of_any_bytes_are_thinned_or_refused(garbage: bytes, at: int, byte: int, claimed: int) -> None:
    """The CRC is right, so nothing but the kernels' own checks stands between these bytes and memory."""
    from tidelog.records.compaction_columnar import HashedKeyMap

    good = bytes(keyed((b"a", b"1"), (b"b", None), (b"a", b"2"), (b"long key", b"value" * 9)))
    payload = bytearray(good[61:] + garbage)
    payload[at % len(payload)] = byte
    header = next(iter(iterate(good))).header
    for number in (header.record_count, claimed):
        changed = header._replace(record_count=number, last_offset_delta=max(3, claimed))
        batch = memoryview(bytes(reassemble(changed, payload)))
        key_map, rule = HashedKeyMap(1 << 20, 0.9, 100), rules.Rules(NOW_MS, 1000)
        with suppress(CorruptBatch):
            key_map.add(batch, rule)
            thinned = bytes(key_map.thin(batch, rule, 100).data)
            for view in rules.whole_batches(memoryview(thinned)):
                assert view.header.record_count <= number
