"""Logs read where they are kept. With a broker and its clients: tests/spark."""

import asyncio
import os
import pickle
from pathlib import Path

import pytest

from tests.storage.test_compaction import compacted, keyed, use_plain
from tests.support.logs import EPOCH, NOW_MS, LeaderWithFiles, at_once, batch, read_batches, stored
from tidelog.errors import StorageUnavailable
from tidelog.model import Offset, ProducerEpoch, ProducerId
from tidelog.records.batch import HEADER_SIZE, iterate
from tidelog.records.record import decode
from tidelog.settings import LogSettings, StorageSettings
from tidelog.storage.direct import DirectLog, LogLeader, Stretch
from tidelog.storage.engines import direct_log, kept_logs, open_log_store
from tidelog.storage.local.store import LocalStore
from tidelog.storage.log import PartitionLog

A = stored("a")
SETTINGS = LogSettings(segment_bytes=1024)
VALUES = [b"%d" % number * 100 for number in range(10, 40)]


@pytest.fixture
def data(tmp_path: Path) -> str:
    return str(tmp_path / "data")


def written(data: str, *batches: bytearray) -> tuple[LocalStore, PartitionLog]:
    store = LocalStore(data, inline=True)
    log = store.open(A, SETTINGS, NOW_MS)
    for one in batches or [batch(value) for value in VALUES]:
        log.append(one, now_ms=NOW_MS, leader_epoch=EPOCH, durable=True)
    return store, log


def leader_of(log: PartitionLog) -> LogLeader:
    return LeaderWithFiles(lambda offset: at_once(log.read(offset, 1)).read()[:HEADER_SIZE])


def values(stretches: list[Stretch], start: Offset, end: Offset) -> list[bytes | None]:
    return [
        record.value
        for stretch in stretches
        for view in iterate(stretch.records)
        if not view.header.is_control
        for record in decode(view)
        if start <= record.offset < end
    ]


@pytest.mark.parametrize(("start", "end"), [(0, 30), (0, 1), (7, 23), (29, 30), (5, 5)])
def test_a_range_is_read_to_its_end_also_from_the_segment_that_is_being_written(
    data: str, start: Offset, end: Offset
) -> None:
    _, log = written(data)
    stretches = list(direct_log(data, A).read(start, end, leader_of(log)))
    assert values(stretches, start, end) == VALUES[start:end]
    assert [stretch.end for stretch in stretches[-1:]] == [end][: len(stretches)]
    assert bool(stretches) == (start < end)


def test_the_place_of_a_log_that_a_store_names_can_be_sent_to_another_process(data: str) -> None:
    async def place() -> str:
        store = open_log_store(data, StorageSettings())
        await store.create([A], NOW_MS)
        try:
            return store.place().name
        finally:
            await store.close()

    name = asyncio.run(place())
    _, log = written(data)
    sent: DirectLog = pickle.loads(pickle.dumps(direct_log(name, A)))
    assert sent == direct_log(name, A)
    assert sent.is_worth_a_try(leader_is_here=True)
    assert not sent.is_worth_a_try(leader_is_here=False), "they may be files of another machine"
    assert values(list(sent.read(0, 30, leader_of(log))), 0, 30) == VALUES


def test_what_is_not_here_is_not_readable_and_reads_as_nothing(data: str) -> None:
    log = direct_log(data, A)
    assert not log.is_worth_a_try(leader_is_here=True)
    assert list(log.read(0, 10, LeaderWithFiles(lambda _: b""))) == []


def test_a_log_that_is_not_what_the_broker_has_is_not_read(data: str) -> None:
    written(data)
    for other in (None, b"", bytes(HEADER_SIZE)):
        assert list(direct_log(data, A).read(0, 30, LeaderWithFiles(lambda _, other=other: other))) == []  # type: ignore[misc]


def test_reading_ends_without_an_error_where_a_file_is_missing(data: str) -> None:
    _, log = written(data)
    (kept,) = kept_logs(data)
    directory = f"{data}/logs/{os.listdir(f'{data}/logs')[0]}/0"
    segments = sorted(name for name in os.listdir(directory) if name.endswith(".log"))
    os.unlink(f"{directory}/{segments[3]}")
    stretches = list(kept.log.read(0, 30, leader_of(log)))
    reached = stretches[-1].end
    assert 0 < reached < 30, "the file behind it was read as if there was none in between"
    assert values(stretches, 0, reached) == VALUES[:reached]


def test_holes_that_compaction_left_do_not_end_reading(data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_plain(monkeypatch)
    store = LocalStore(data, inline=True)
    log = store.open(A, compacted(segment_bytes=1024), NOW_MS)
    for number in range(60):
        key = b"%d" % number if number % 3 == 0 else b"again and again"
        log.append(keyed((key, b"v" * 100)), now_ms=NOW_MS, leader_epoch=EPOCH, durable=True)
    log.flush()
    assert log.compaction.run(NOW_MS + 1) is not None
    offsets = [view.header.base_offset for view in read_batches(log)]
    assert len(offsets) < 30, "nothing was compacted"
    segments = sorted(int(name[:-4]) for name in os.listdir(log.directory) if name.endswith(".log"))
    assert any(base - 1 not in offsets for base in segments[1:]), "no segment ends with a hole"
    for start in (0, 1, offsets[7]):
        stretches = list(direct_log(data, A).read(start, 60, leader_of(log)))
        found = [view.header.base_offset for stretch in stretches for view in iterate(stretch.records)]
        assert [offset for offset in found if offset >= start] == [one for one in offsets if one >= start], start
        assert stretches[-1].end == 60


def test_readers_of_committed_records_do_not_get_what_was_aborted(data: str) -> None:
    def sent(producer: int, value: bytes, sequence: int) -> bytearray:
        return batch(value, producer_id=producer, producer_epoch=0, sequence=sequence, transactional=True)

    _, log = written(data, sent(1, b"kept", 0), sent(2, b"aborted", 0), batch(b"plain"))
    for producer, committed in ((1, True), (2, False)):
        log.end_transaction(
            ProducerId(producer),
            ProducerEpoch(0),
            committed=committed,
            coordinator_epoch=0,
            now_ms=NOW_MS,
            leader_epoch=EPOCH,
        )
    log.append(sent(2, b"open", 1), now_ms=NOW_MS, leader_epoch=EPOCH, durable=True)
    direct, leader, end = direct_log(data, A), leader_of(log), log.last_stable_offset
    stretches = list(direct.read(0, end, leader, committed=True))
    assert values(stretches, 0, end) == [b"kept", b"plain"]
    assert stretches[-1].end == end
    assert values(list(direct.read(0, end + 1, leader)), 0, end + 1) == [b"kept", b"aborted", b"plain", b"open"]
    assert list(direct.read(end, end + 1, leader, committed=True)) == [], "nobody knows how it will end"


def test_what_is_kept_is_found_and_checked(data: str) -> None:
    store, log = written(data)
    (kept,) = kept_logs(data)
    assert (kept.partition, kept.size_bytes, kept.in_use) == (A.name, log.stats().size_bytes, True)
    assert store.close_now() == {}
    del store
    (kept,) = kept_logs(data)
    assert not kept.in_use
    checked = kept.log.check(in_use=False, deep=True, most_problems=10)
    assert checked == (30, 30, kept.size_bytes, [])


def test_damage_is_told_up_to_as_many_problems_as_are_wanted(data: str) -> None:
    store, _ = written(data)
    store.close_now()
    (kept,) = kept_logs(data)
    directory = Path(f"{data}/logs/{os.listdir(f'{data}/logs')[0]}/0")
    for path in directory.glob("*.log"):
        content = bytearray(path.read_bytes())
        content[100] ^= 0xFF
        path.write_bytes(content)
    checked = kept.log.check(in_use=False, deep=False, most_problems=100)
    errors = [problem for problem in checked.problems if problem.severity == "error"]
    assert len(errors) >= len(list(directory.glob("*.log"))) > 2
    assert all(problem.file.startswith(str(directory)) and problem.what for problem in errors)
    assert len(kept.log.check(in_use=False, deep=False, most_problems=2).problems) == 2


def test_a_place_without_logs_says_so(tmp_path: Path) -> None:
    with pytest.raises(StorageUnavailable, match="holds no log"):
        kept_logs(str(tmp_path))
