"""Crash at every write, sync, rename and removal of a log that is compacted again and again, in every mood of the
file system; open it; check that no last value is lost, that nothing deleted comes back, that compaction goes on."""

import random
from contextlib import suppress

import pytest

from tests.storage.test_compaction import RETENTION_MS, check_files, compacted, keyed, produced, use_plain
from tests.support.logs import NOW_MS, append, open_log, read_records
from tests.support.memory_files import CrashError, MemoryFiles, Mood, moods
from tidelog.errors import StorageError
from tidelog.records.record import Record
from tidelog.settings import CleanerSettings
from tidelog.storage.compaction import Cancelled, Throttle
from tidelog.storage.local.log import LocalLog

SEGMENT_BYTES = 1024
ROUNDS = 4


class Run:
    """`deleting`: records are deleted in the middle of every pass, before, while and after segments are exchanged."""

    def __init__(self, files: MemoryFiles, *, deleting: bool = False) -> None:
        self.files = files
        self.deleting = deleting
        self.starts = [0]  # those asked for
        self.promised_start = 0
        self.history: list[Record] = []
        self.promised = 0
        self.now_ms = NOW_MS
        self.sequence = 0

    def play(self) -> None:
        log = open_log(self.files, compacted(segment_bytes=SEGMENT_BYTES))
        rng = random.Random(5)
        for round_ in range(ROUNDS):
            for number in range(12):
                self._write(log, rng, round_, number)
            if round_ == 2:
                log.close()
                log = open_log(self.files, compacted(segment_bytes=SEGMENT_BYTES))
            log.flush(checkpoint=True)
            if self.deleting:
                self._compact_and_delete(log)
            else:
                log.compaction.run(self.now_ms)
            self.now_ms += RETENTION_MS

    def _compact_and_delete(self, log: LocalLog) -> None:
        current = log.compaction.begin(self.now_ms, CleanerSettings(), Throttle())
        assert current is not None
        steps, number = log.compaction.steps(current), 0
        try:
            step = next(steps)
            while True:
                result = step()
                number += 1
                self._delete_some(log, number)
                step = steps.send(result)
        except (StopIteration, Cancelled):
            pass
        finally:
            with suppress(CrashError):
                steps.close()
        assert log.start_offset == self.starts[-1]
        self.promised_start = log.start_offset

    def _delete_some(self, log: LocalLog, number: int) -> None:
        if number % 3 and self.starts[-1] < log.end_offset - 30:
            is_exchanging = log.compaction.is_exchanging
            self.starts.append(self.starts[-1] + 1)
            moving = log.delete_before(self.starts[-1])
            assert moving.is_kept != is_exchanging, "the start stays while segments are exchanged"
        self.promised_start = log.start_offset

    def _write(self, log: LocalLog, rng: random.Random, round_: int, number: int) -> None:
        pairs = []
        for _ in range(rng.randint(1, 3)):
            value = None if rng.random() < 0.25 else b"%d.%d" % (round_, number) + b"x" * rng.randint(0, 60)
            pairs.append((b"key %d" % rng.randint(0, 8), value))
        base = len(self.history)
        self.history += [Record(base + n, NOW_MS + n, key, value) for n, (key, value) in enumerate(pairs)]
        if number % 3 == 0:
            data = produced(9, self.sequence, *pairs)
            self.history[base:] = [record._replace(timestamp=NOW_MS) for record in self.history[base:]]
            self.sequence += len(pairs)
        else:
            data = keyed(*pairs)
        append(log, data, durable=True)
        self.promised = len(self.history)

    def check(self, mood: Mood, rng: random.Random) -> None:
        files = self.files.after_crash(mood, rng)
        log = open_log(files, compacted(segment_bytes=SEGMENT_BYTES))
        self._check(log)
        assert not any("cleaned" in name for name in files.names), "leftovers are removed"
        log.close()
        check_files(files)
        # It goes on where it was.
        log = open_log(files, compacted(segment_bytes=SEGMENT_BYTES))
        assert log.recovery.clean
        log.compaction.run(self.now_ms)
        self._check(log)
        append(log, keyed((b"after", b"x")), durable=True)
        log.close()
        check_files(files)

    def _check(self, log: LocalLog) -> None:
        assert log.end_offset >= self.promised, "what was promised is there"
        assert log.end_offset <= len(self.history)
        assert log.start_offset in self.starts
        assert log.start_offset >= self.promised_start, "what was deleted does not come back"
        found = read_records(log)
        assert set(found) <= set(self.history)
        assert [record.offset for record in found] == sorted({record.offset for record in found})
        final = {record.key: record for record in self.history[: log.end_offset]}
        left = {record.key: record for record in found}
        for key, record in final.items():
            if record.offset < log.start_offset:
                assert key not in left
            elif record.value is not None:
                assert left.get(key) == record, "the last value of a key is there"
            else:
                assert key not in left or left[key].value is None, "a deleted key does not come back"


@pytest.mark.slow
@pytest.mark.parametrize("deleting", [False, True], ids=["alone", "while records are deleted"])
def test_a_crash_at_any_step_of_compaction_loses_and_revives_nothing(
    monkeypatch: pytest.MonkeyPatch, deleting: bool
) -> None:
    use_plain(monkeypatch)  # what is written when does not depend on it, and it is faster on a few records
    files = MemoryFiles()
    Run(files, deleting=deleting).play()
    steps = files.steps
    exchanges = sum(1 for call, path in files.calls if call == "rename" and path.endswith(".cleaned.log"))
    assert exchanges > (2 if deleting else 5)
    for crash_at in range(1, steps + 2):
        files = MemoryFiles()
        files.crash_at = crash_at
        run = Run(files, deleting=deleting)
        try:
            run.play()
        except CrashError:
            pass
        for mood, seed in moods(1):
            try:
                run.check(mood, random.Random(crash_at + seed))
            except Exception as error:
                where = f"crash at step {crash_at} {files.calls[-1:]}, {mood}, seed {seed}"
                raise AssertionError(f"{where}: {error}") from error


def test_a_call_that_fails_leaves_a_log_that_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call of a pass that changes something fails once, with an error instead of a crash."""
    use_plain(monkeypatch)
    number = 0
    while True:
        number += 1
        files = MemoryFiles()
        run = Run(files)
        log = open_log(files, compacted(segment_bytes=SEGMENT_BYTES))
        rng = random.Random(3)
        for index in range(40):
            run._write(log, rng, 0, index)
        log.flush(checkpoint=True)
        calls = 0

        def fail(operation: str, path: str, number: int = number) -> None:
            nonlocal calls
            if operation in ("create", "write", "sync", "rename", "remove", "sync_directory", "truncate"):
                calls += 1
                if calls == number:
                    raise OSError(5, "Input/output error", path)

        files.on_call = fail
        with suppress(StorageError):
            log.compaction.run(run.now_ms)
        files.on_call = None
        run._check(log)
        append(log, keyed((b"after", b"x")), durable=True)
        run.history.append(Record(len(run.history), NOW_MS, b"after", b"x"))
        log.close()
        again = open_log(files, compacted(segment_bytes=SEGMENT_BYTES))
        run._check(again)
        again.compaction.run(run.now_ms)
        run._check(again)
        check_files(files)
        if calls < number:
            break
    assert number > 20
