"""Compaction of logs with transactions, against a model: what was written, offset by offset, and nothing else.

Whoever reads committed records sees the last committed value of every key, at every step of a pass, after every
restart, and after a crash at every step; whoever reads all sees records that were written, at their offsets."""

import random
from dataclasses import replace
from typing import NamedTuple

import pytest

from tests.storage.test_compaction import (
    RETENTION_MS,
    check_files,
    compacted,
    data_of,
    keyed,
    produced,
    seal,
    use_plain,
)
from tests.support.logs import DIRECTORY, EPOCH, NOW_MS, append, open_log, read_committed_records, read_records
from tests.support.memory_files import CrashError, MemoryFiles, Mood
from tidelog.model import ProducerEpoch, ProducerId
from tidelog.settings import CleanerSettings, LogSettings
from tidelog.storage.compaction import Throttle
from tidelog.storage.local.compaction_state import read_state, write_state
from tidelog.storage.local.log import LocalLog
from tidelog.storage.local.repair import Repair
from tidelog.storage.local.verify import Kind, PartitionCheck

SETTINGS = compacted(segment_bytes=1024)
PRODUCERS = (1, 2, 3)


class Written(NamedTuple):
    """What stands at an offset: a record, or the end of a transaction."""

    producer: int | None
    key: bytes | None = None
    value: bytes | None = None
    committed: bool | None = None


class Expected(NamedTuple):
    open: dict[int, int]
    stable_offset: int
    aborted: set[int]
    last: dict[bytes | None, int]
    """The offsets of the last committed records of the keys."""


def expected(history: list[Written]) -> Expected:
    unfinished: dict[int, list[int]] = {}
    aborted: set[int] = set()
    for offset, written in enumerate(history):
        if written.producer is None:
            continue
        if written.committed is None:
            unfinished.setdefault(written.producer, []).append(offset)
        else:
            ended = unfinished.pop(written.producer)
            if not written.committed:
                aborted.update(ended)
    first = {producer: offsets[0] for producer, offsets in unfinished.items()}
    stable = min(first.values(), default=len(history))
    last = {
        written.key: offset
        for offset, written in enumerate(history[:stable])
        if written.committed is None and offset not in aborted
    }
    return Expected(first, stable, aborted, last)


class World:
    """A log and its history."""

    def __init__(self, files: MemoryFiles, rng: random.Random, settings: LogSettings = SETTINGS) -> None:
        self.files, self.rng, self._settings = files, rng, settings
        self.history: list[Written] = []
        self.sequences = dict.fromkeys(PRODUCERS, 0)
        self.newest: dict[int, bytes] = {}
        self.promised = 0
        self.now_ms = NOW_MS
        self.log = self.open()

    def open(self) -> LocalLog:
        return open_log(self.files, self._settings, tail_bytes=self.rng.choice((0, 1 << 16)))

    def write(self, producer: int | None) -> None:
        pairs = []
        for _ in range(self.rng.randint(1, 3)):
            value = b"%d" % len(self.history) + b"x" * self.rng.randint(0, 60) if self.rng.random() > 0.2 else None
            pairs.append((b"key %d" % self.rng.randint(0, 9), value))
        self.history += [Written(producer, *pair) for pair in pairs]
        if producer is None:
            data = keyed(*pairs)
        else:
            data = produced(producer, self.sequences[producer], *pairs, transactional=True)
            self.sequences[producer] += len(pairs)
            self.newest[producer] = bytes(data)
        append(self.log, data, durable=True)
        self.promised = len(self.history)

    def end(self, producer: int, *, committed: bool) -> None:
        self.history.append(Written(producer, committed=committed))
        end(self.log, producer, committed=committed)
        self.promised = len(self.history)

    def end_all(self) -> None:
        for producer in expected(self.history).open:
            self.end(producer, committed=self.rng.random() < 0.5)

    def resend(self, producer: int) -> None:
        """The newest batch again, by a producer that did not hear of it."""
        assert append(self.log, bytearray(self.newest[producer])).duplicate

    def seal(self) -> None:
        if self.log._segments.active.size:
            seal(self.log)
        else:
            self.log.flush(checkpoint=True)

    def compact(self) -> None:
        if self.rng.random() < 0.5:
            self.seal()
        self.log.flush(checkpoint=True)
        self.log.compaction.run(self.now_ms, small_map(self.rng))

    def compact_with_looks(self) -> None:
        """A pass, looking at the log at each of its steps."""
        self.seal()
        compaction = self.log.compaction
        current = compaction.begin(self.now_ms, small_map(self.rng), Throttle())
        if current is None:
            return
        steps = compaction.steps(current)
        step = next(steps)
        while True:
            result = step()
            self.check()
            try:
                step = steps.send(result)
            except StopIteration:
                break
            self.check()

    def check(self) -> None:
        log, history = self.log, self.history
        model = expected(history)
        assert log.end_offset == len(history)
        assert (log.open_transactions(), log.last_stable_offset) == (model.open, model.stable_offset)
        for offset, key, value in data_of(log):
            assert (key, value) == history[offset][1:3], "what is there is what was written there"
        start = self.rng.randint(0, max(0, model.stable_offset - 1)) if self.rng.random() < 0.5 else 0
        seen = read_committed_records(log, start, self.rng.choice((1, 300, 1 << 20)))
        offsets = [record.offset for record in seen]
        assert offsets == sorted(set(offsets))
        assert not set(offsets) & model.aborted, "nobody sees what was aborted"
        assert all((record.key, record.value) == history[record.offset][1:3] for record in seen)
        left = {record.key: record for record in seen}
        for key, offset in model.last.items():
            if offset >= start and history[offset].value is not None:
                assert left[key].offset == offset, "nobody misses what was committed"
            elif offset >= start:
                assert key not in left or left[key].value is None, "what was deleted does not come back"

    def check_producers(self) -> None:
        for producer, sequence in self.sequences.items():
            known = self.log.producers.get(ProducerId(producer))
            assert not sequence or (known is not None and known.batches[-1].last_sequence == sequence - 1)

    def restart(self) -> None:
        how = self.rng.choice(("clean", "kill", "no checkpoint", "no state", "no index"))
        if how == "kill":
            self.log.abandon()
        else:
            self.log.close()
        check_files(self.files)
        names = list(self.files.names)
        if how == "no checkpoint":
            self.files.remove(f"{DIRECTORY}/checkpoint")
        elif how == "no state" and f"{DIRECTORY}/compaction" in names:
            self.files.remove(f"{DIRECTORY}/compaction")
        elif how == "no index":
            for name in names:
                if name.endswith(".txnindex") and self.rng.random() < 0.5:
                    self.files.remove(name)
        self.log = self.open()
        if how == "clean":
            assert self.log.recovery.clean
        self.check()
        self.check_producers()


def end(log: LocalLog, producer: int, *, committed: bool) -> None:
    log.end_transaction(
        ProducerId(producer),
        ProducerEpoch(0),
        committed=committed,
        coordinator_epoch=0,
        now_ms=NOW_MS,
        leader_epoch=EPOCH,
    )


def small_map(rng: random.Random) -> CleanerSettings:
    """Sometimes one that does not hold all keys, so that a pass ends in the middle of transactions."""
    return CleanerSettings(dedupe_buffer_bytes=rng.choice((600, 1 << 20)))


@pytest.mark.parametrize("seed", range(24))
def test_readers_of_committed_records_see_the_last_committed_values_whatever_happens(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 3:
        use_plain(monkeypatch)
    rng = random.Random(seed)
    world = World(MemoryFiles(), rng)
    for _ in range(150):
        choice, producer = rng.random(), rng.choice(PRODUCERS)
        if choice < 0.25:
            world.write(None)
        elif choice < 0.6:
            world.write(producer)
        elif choice < 0.8:
            if producer in expected(world.history).open:
                world.end(producer, committed=rng.random() < 0.5)
        elif choice < 0.86:
            world.compact()
        elif choice < 0.9:
            world.end_all()
            world.compact_with_looks()
        elif choice < 0.93:
            world.now_ms += RETENTION_MS
        elif choice < 0.96:
            if world.newest.get(producer):
                world.resend(producer)
        else:
            world.restart()
        world.check()
    world.end_all()
    for _ in range(4):
        world.seal()
        while world.log.compaction.measure(world.now_ms).wanted:
            world.log.compaction.run(world.now_ms)
        world.check()
        world.now_ms += RETENTION_MS
        world.write(None)
    world.log.close()
    check_files(world.files)
    left = {record.offset for record in read_records(world.open()) if record.key}
    assert not left & expected(world.history).aborted
    world.files.remove(f"{DIRECTORY}/checkpoint")
    world.log = world.open()
    world.check()
    world.check_producers()


class CrashRun(World):
    """A little of everything, the same each time."""

    def play(self) -> None:
        for round_ in range(3):
            self.write(1)
            self.write(None)
            self.write(2)
            self.end(1, committed=round_ != 1)
            self.write(2)
            self.write(1)
            self.write(3)
            self.end(2, committed=False)
            self.write(None)
            self.end(1, committed=False)
            self.end(3, committed=True)
            if round_ == 1:
                self.write(3)  # open over a pass
            self.seal()
            self.log.compaction.run(self.now_ms)
            self.now_ms += RETENTION_MS
            if round_ == 1:
                self.end(3, committed=False)
                self.log.close()
                self.log = self.open()

    def check_after(self, mood: Mood, seed: int) -> None:
        self.files = self.files.after_crash(mood, random.Random(seed))
        self.log = self.open()
        assert self.promised <= self.log.end_offset <= len(self.history), "what was promised is there"
        del self.history[self.log.end_offset :]
        assert not any("cleaned" in name for name in self.files.names), "leftovers are removed"
        self.check()
        self.log.close()
        check_files(self.files)
        self.log = self.open()
        assert self.log.recovery.clean
        self.sequences = {
            producer: known.batches[-1].last_sequence + 1 if known is not None else 0
            for producer in PRODUCERS
            for known in (self.log.producers.get(ProducerId(producer)),)
        }
        self.end_all()
        for producer in PRODUCERS:
            self.write(producer)
        self.end_all()
        for _ in range(2):
            self.seal()
            self.log.compaction.run(self.now_ms)
            self.check()
        self.log.close()
        check_files(self.files)


@pytest.mark.slow
@pytest.mark.parametrize("mood", Mood, ids=lambda mood: mood.name.lower())
def test_a_crash_at_any_step_shows_no_aborted_record_and_hides_no_committed_one(
    mood: Mood, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_plain(monkeypatch)
    settings = compacted(segment_bytes=1024)
    files = MemoryFiles()
    CrashRun(files, random.Random(1), settings).play()
    carried = sum(1 for call, path in files.calls if call == "rename" and path.endswith(".cleaned.txnindex"))
    dropped = sum(1 for call, path in files.calls if call == "remove" and path.endswith(".txnindex"))
    assert carried > 2, "the scenario has exchanges with aborted transactions"
    assert dropped > 2, "and without"
    for crash_at in range(1, files.steps + 2):
        again = MemoryFiles()
        again.crash_at = crash_at
        run = None
        try:
            run = CrashRun(again, random.Random(1), settings)
            run.play()
        except CrashError:
            pass
        if run is None:
            continue  # before there was anything
        again.crash_at = None
        try:
            run.check_after(mood, crash_at)
        except Exception as error:
            raise AssertionError(f"crash at step {crash_at} {again.calls[-1:]}: {error}") from error


# One thing at a time.


def aborted_log(files: MemoryFiles) -> LocalLog:
    """Offsets 0..2 aborted by producer 1, over two segments; 3 its marker; 4, 5 committed by it; 6 something else."""
    log = open_log(files, compacted(), tail_bytes=0)
    append(log, produced(1, 0, (b"a", b"no"), transactional=True))
    append(log, produced(1, 1, (b"b", b"no"), transactional=True))
    seal(log)
    append(log, produced(1, 2, (b"c", b"no"), transactional=True))
    end(log, 1, committed=False)
    append(log, produced(1, 3, (b"a", b"yes"), transactional=True))
    end(log, 1, committed=True)
    append(log, keyed((b"d", b"yes")))
    seal(log)
    return log


def committed(log: LocalLog) -> list[int]:
    return [record.offset for record in read_committed_records(log)]


def txn_indexes(files: MemoryFiles) -> list[str]:
    return sorted(name.rpartition("/")[2] for name in files.names if name.endswith(".txnindex"))


def test_the_index_of_aborted_transactions_moves_with_the_marker_and_goes_when_no_batch_is_left() -> None:
    files = MemoryFiles()
    log = aborted_log(files)
    assert txn_indexes(files) == [f"{2:020d}.txnindex"]
    log.compaction.run(NOW_MS)
    assert txn_indexes(files) == [f"{0:020d}.txnindex"], "both segments are one now"
    assert [entry[:3] for entry in log.aborted_between(0, 3)] == [(1, 0, 3)], "as it was written"
    assert committed(log) == [4, 6]
    log.close()
    check_files(files)

    log = open_log(files, compacted(), tail_bytes=0)
    assert log.recovery.clean
    assert log.aborted_between(0, 3)
    append(log, keyed((b"e", b"yes")))
    seal(log)
    log.compaction.run(NOW_MS)
    assert txn_indexes(files) == []
    assert log.aborted_between(0, 3) == []
    assert committed(log) == [4, 6, 7]
    log.close()
    assert open_log(files, compacted()).recovery.clean
    check_files(files)


def test_a_checkpoint_from_before_the_exchange_does_not_mislead() -> None:
    """Counts of aborted transactions in a checkpoint are those of the segments as they were."""
    files = MemoryFiles()
    log = aborted_log(files)
    log.compaction.run(NOW_MS)
    log.abandon()
    log = open_log(files, compacted(), tail_bytes=0)
    assert log.recovery.clean
    assert [entry[:3] for entry in log.aborted_between(0, 3)] == [(1, 0, 3)]
    check_files(files)


@pytest.mark.parametrize("name", ["compaction", f"{0:020d}.txnindex"])
@pytest.mark.parametrize("damage", [True, False], ids=["damaged", "missing"])
def test_lost_notes_of_compaction_are_made_anew_from_the_log(name: str, damage: bool) -> None:
    files = MemoryFiles()
    log = open_log(files, compacted(), tail_bytes=0)
    append(log, keyed((b"x", b"1")))
    seal(log)
    append(log, keyed((b"x", b"2")))
    append(log, produced(1, 0, (b"a", b"no"), transactional=True))
    end(log, 1, committed=False)
    seal(log)
    log.compaction.run(NOW_MS)  # the batch stays without its record: it is the newest of its producer
    assert txn_indexes(files) == [f"{0:020d}.txnindex"]
    log.abandon()
    if damage:
        file = files.open(f"{DIRECTORY}/{name}")
        file.truncate(file.size() - 1)
    else:
        files.remove(f"{DIRECTORY}/{name}")
    log = open_log(files, compacted(), tail_bytes=0)
    assert [entry[:3] for entry in log.aborted_between(0, 4)] == [(1, 2, 3)]
    assert committed(log) == [1]
    log.close()
    check_files(files)
    log = open_log(files, compacted())
    assert [entry[:3] for entry in log.aborted_between(0, 4)] == [(1, 2, 3)]


def test_verify_finds_an_entry_without_its_marker_and_repair_takes_it_out() -> None:
    """It would hide what its producer committed later."""
    files = MemoryFiles()
    log = aborted_log(files)
    stored = files.open(f"{DIRECTORY}/{2:020d}.txnindex", writable=False)
    entry = stored.pread(stored.size(), 0)
    for number in range(3):
        log.compaction.run(NOW_MS + number * RETENTION_MS)
        append(log, keyed((b"e", b"%d" % number)))
        seal(log)
    assert txn_indexes(files) == []
    log.close()
    check_files(files)
    index = files.open(f"{DIRECTORY}/{0:020d}.txnindex", create=True)
    index.pwrite(entry, 0)
    state = read_state(files, DIRECTORY)
    assert state is not None
    assert state.aborted_in(0) == 0
    (finding,) = [one for one in PartitionCheck(files, DIRECTORY) if one.is_error]
    assert "1 of 0" in finding.what
    write_state(files, DIRECTORY, replace(state, aborted=((0, 1),)))
    (finding,) = [one for one in PartitionCheck(files, DIRECTORY) if one.is_error]
    assert finding.kind is Kind.INDEX
    assert "which the log does not show" in finding.what
    repair = Repair(files, DIRECTORY)
    assert repair.plan.steps
    repair.apply(NOW_MS)
    assert txn_indexes(files) == []
    check_files(files)
    log = open_log(files, compacted())
    assert log.recovery.clean
    assert committed(log)[0] == 4


def test_a_producer_goes_on_in_a_transaction_that_was_open_while_the_log_was_compacted() -> None:
    files = MemoryFiles()
    log = open_log(files, compacted(), tail_bytes=0)
    for number in range(5):
        append(log, produced(1, number, (b"a", b"%d" % number), transactional=True))
        end(log, 1, committed=number % 2 == 0)
    seal(log)
    append(log, produced(1, 5, (b"b", b"1"), transactional=True))
    log.compaction.run(NOW_MS)
    assert committed(log) == [8]
    log.close()
    log = open_log(files, compacted(), tail_bytes=0)
    assert log.open_transactions() == {1: 10}
    assert append(log, produced(1, 5, (b"b", b"1"), transactional=True)).duplicate
    append(log, produced(1, 6, (b"b", b"2"), transactional=True))
    end(log, 1, committed=True)
    assert committed(log) == [8, 10, 11]
