"""Crash at every write and sync of a workload, in every mood of the file system, under every flush policy; open it
again; check that all that was promised is there, that offsets are contiguous, that nothing was invented, and that
open and aborted transactions are those that the log's batches make."""

import random
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

import pytest

from tests.support.logs import EPOCH, NOW_MS, append, batch, open_log, read_batches
from tests.support.memory_files import CrashError, MemoryFiles, Mood, moods
from tidelog.model import ProducerEpoch, ProducerId
from tidelog.records.batch import BatchView, iterate
from tidelog.records.record import decode, read_marker
from tidelog.settings import FlushPolicy, LogSettings
from tidelog.storage.local.log import LocalLog

PRODUCER, PRODUCER_EPOCH = 77, 3
EARLY, LATE = 88, 99  # producers with transactions
TRANSACTIONAL = (EARLY, LATE)


class Stored(NamedTuple):
    base_offset: int
    values: tuple[bytes, ...]
    transaction: tuple[int, str] | None = None  # of whom; "begun", "commit" or "abort"

    @property
    def next_offset(self) -> int:
        return self.base_offset + len(self.values)


@dataclass
class Model:
    """What the log should hold."""

    start: int = 0
    batches: list[Stored] = field(default_factory=list)
    sequence: int = 0
    sequences: dict[int, int] = field(default_factory=lambda: dict.fromkeys(TRANSACTIONAL, 0))

    @property
    def end(self) -> int:
        return self.batches[-1].next_offset if self.batches else 0

    def copy(self) -> "Model":
        return replace(self, batches=list(self.batches), sequences=dict(self.sequences))


@dataclass
class Op:
    kind: str
    size: int = 0
    count: int = 1
    durable: bool = False
    producer: int = 0


WORKLOAD = [
    Op("append", 100, durable=True),
    Op("append", 50, 3),
    Op("produce", 80, 2),
    Op("transact", 60, 2, producer=EARLY),
    Op("append", 300, durable=True),
    Op("transact", 40, producer=LATE),
    Op("abort", producer=LATE),
    Op("append", 900),  # rolls
    Op("abort", producer=EARLY),
    Op("produce", 200, durable=True),
    Op("append", 700),
    Op("append", 700, 2, durable=True),  # rolls
    Op("transact", 90, durable=True, producer=EARLY),
    Op("delete", 4),
    Op("commit", producer=EARLY),
    Op("transact", 30, producer=LATE),
    Op("transact", 30, producer=EARLY),
    Op("abort", producer=EARLY),
    Op("append", 60),
    Op("append", 900, durable=True),  # rolls
    Op("abort", producer=LATE),
    Op("transact", 30, producer=EARLY),
    Op("append", 70, 2),
    Op("produce", 40, durable=True),
    Op("append", 900),  # rolls
    Op("append", 900),  # rolls
    Op("delete", 6),
    Op("abort", producer=EARLY),
    Op("transact", 30, producer=LATE),
    Op("close"),
    Op("transact", 30, producer=LATE),
    Op("abort", producer=LATE),
    Op("append", 500, durable=True),
    Op("produce", 500),
    Op("retain"),
    Op("append", 900),  # rolls
    Op("append", 900, durable=True),  # rolls
    Op("retain"),
    Op("transact", 30, producer=EARLY),
    Op("append", 10),
    Op("delete_all"),
    Op("commit", producer=EARLY),
    Op("append", 10, durable=True),
    Op("append", 10),
    Op("delete_all"),
    Op("append", 10),
]


def settings_for(policy: FlushPolicy) -> LogSettings:
    return LogSettings(
        segment_bytes=1600, index_interval_bytes=200, flush=policy, flush_messages=4, retention_bytes=2500
    )


class Run:
    """One run of the workload: the log, the model before and after the operation under way, and the promises."""

    def __init__(self, files: MemoryFiles, policy: FlushPolicy) -> None:
        self.files = files
        self.policy = policy
        self.before = Model()
        self.after = Model()
        self.promised_end = 0
        self.promised_start = 0
        self.log: LocalLog | None = None

    def play(self) -> None:
        self.log = open_log(self.files, settings_for(self.policy))
        for number, op in enumerate(WORKLOAD):
            self.before = self.after.copy()
            self._perform(number, op, self.log)
            self.promised_end = min(self.log.durable_offset, self.after.end)
            self.promised_start = self.after.start

    def _perform(self, number: int, op: Op, log: LocalLog) -> None:
        model = self.after
        if op.kind in ("append", "produce"):
            values = tuple(b"%03d.%d." % (number, n) + b"x" * op.size for n in range(op.count))
            sequence = model.sequence
            model.batches.append(Stored(model.end, values))
            if op.kind == "produce":
                model.sequence += op.count
                data = batch(*values, producer_id=PRODUCER, producer_epoch=PRODUCER_EPOCH, sequence=sequence)
            else:
                data = batch(*values)
            self._append(log, data, op)
        elif op.kind == "transact":
            values = tuple(b"%03d.%d." % (number, n) + b"t" * op.size for n in range(op.count))
            data = batch(
                *values,
                producer_id=op.producer,
                producer_epoch=1,
                sequence=model.sequences[op.producer],
                transactional=True,
            )
            model.sequences[op.producer] += op.count
            model.batches.append(Stored(model.end, values, (op.producer, "begun")))
            self._append(log, data, op)
        elif op.kind in ("commit", "abort"):
            model.batches.append(Stored(model.end, (op.kind.encode(),), (op.producer, op.kind)))
            assert op.producer in log.open_transactions()
            log.end_transaction(
                ProducerId(op.producer),
                ProducerEpoch(1),
                committed=op.kind == "commit",
                coordinator_epoch=0,
                now_ms=NOW_MS,
                leader_epoch=EPOCH,
            )
            assert op.producer not in log.open_transactions()
        elif op.kind == "delete":
            model.start = op.size
            assert log.delete_before(op.size).result() == op.size
        elif op.kind == "delete_all":
            model.start = model.end
            assert log.delete_before(model.end).result() == model.end
        elif op.kind == "retain":
            expired = log._expired(NOW_MS, None)
            assert 0 < expired < log.stats().segments
            model.start = log._segments.all()[expired - 1].end_offset
            moved = log.retain(NOW_MS)
            assert moved is not None
            assert moved.result() == model.start
        elif op.kind == "close":
            log.close()
            self.log = open_log(self.files, settings_for(self.policy))
            assert self.log.recovery.clean

    def _append(self, log: LocalLog, data: bytearray, op: Op) -> None:
        model = self.after
        appended = append(log, data, durable=op.durable)
        assert appended.base_offset == model.batches[-1].base_offset
        if self.policy is FlushPolicy.ALWAYS or (op.durable and self.policy is FlushPolicy.ACKS):
            assert log.durable_offset == model.end


def stored(view: BatchView) -> Stored:
    header = view.header
    if header.is_control:
        kind = read_marker(view).name
        return Stored(header.base_offset, (kind.encode(),), (header.producer_id, kind))
    transaction = (header.producer_id, "begun") if header.is_transactional else None
    return Stored(header.base_offset, tuple(record.value or b"" for record in decode(view)), transaction)


def check_transactions(log: LocalLog, model: Model) -> None:
    """What is open and what was aborted, against the batches that the log should hold, deleted ones included."""
    open_: dict[int, int] = {}
    aborted = []
    for base_offset, _, transaction in model.batches:
        if base_offset >= log.end_offset or transaction is None:
            continue
        producer, what = transaction
        if what == "begun":
            open_.setdefault(producer, base_offset)
        elif producer in open_:
            first = open_.pop(producer)
            if what == "abort":
                aborted.append((producer, first, base_offset))
    assert log.open_transactions() == open_
    assert log.last_stable_offset == max(log.start_offset, min(open_.values(), default=log.end_offset))
    offset = log.start_offset
    seen = set()
    while offset < log.last_stable_offset:
        result = log.read_now(offset, 200, committed=True)
        assert result.size
        batches = [*iterate(result.read())]
        end = batches[-1].header.next_offset
        assert {entry[:3] for entry in result.aborted} == {
            entry for entry in aborted if entry[1] < end and entry[2] >= offset
        }
        seen |= {entry[:3] for entry in result.aborted}
        offset = end
    assert seen == {entry for entry in aborted if log.start_offset <= entry[2] and entry[1] < log.last_stable_offset}


def check_after_crash(run: Run, mood: Mood, rng: random.Random, *, lose_index: bool) -> None:
    files = run.files.after_crash(mood, rng)
    log = open_log(files, settings_for(run.policy))
    found = [stored(view) for view in read_batches(log)]

    assert log.start_offset in {run.before.start, run.after.start} or (
        # Nothing promised: the log may end before its start was moved there.
        log.start_offset == log.end_offset
    )
    assert log.start_offset >= min(run.promised_start, log.end_offset)
    if found:
        assert found[0].base_offset <= log.start_offset < found[0].next_offset
    for earlier, later in pairwise(found):
        assert earlier.next_offset == later.base_offset, "offsets are contiguous"
    assert log.end_offset == (found[-1].next_offset if found else log.end_offset)
    promised = min(run.before.end, run.after.end) if mood is Mood.KEEP else run.promised_end
    assert log.end_offset >= promised, "what was promised is there"
    attempted = set(run.before.batches) | set(run.after.batches)
    assert set(found) <= attempted, "nothing is invented"
    model = run.after if set(found) <= set(run.after.batches) else run.before
    check_transactions(log, model)

    # The log goes on: it takes appends, knows its producer, and a clean stop needs no scan.
    log.append(batch(b"after"), now_ms=NOW_MS, leader_epoch=EPOCH, durable=True)
    assert log.read_now(log.end_offset - 1, 1).size
    log.close()
    again = open_log(files, settings_for(run.policy))
    assert again.recovery.clean
    assert again.end_offset == log.end_offset
    assert len(read_batches(again)) == len(found) + 1
    assert again.open_transactions() == log.open_transactions()
    again.abandon()
    if not lose_index:
        return
    lost = [entry.name for entry in files.list(again.directory) if entry.name.endswith(".txnindex")]
    for name in lost:
        files.remove(f"{again.directory}/{name}")
    again = open_log(files, settings_for(run.policy))
    model = with_one_more(model, log.end_offset)
    check_transactions(again, with_what_is_left(model, again) if lost else model)


def with_one_more(model: Model, end_offset: int) -> Model:
    """With the record that was appended last, which is in no transaction."""
    return replace(model, batches=[s for s in model.batches if s.base_offset < end_offset - 1])


def with_what_is_left(model: Model, log: LocalLog) -> Model:
    """Without the batches that are deleted: of transactions that began there, the log alone cannot tell."""
    first = log._segments.all()[0].base_offset
    return replace(model, batches=[s for s in model.batches if s.base_offset >= first])


def count_steps(policy: FlushPolicy) -> int:
    files = MemoryFiles()
    run = Run(files, policy)
    run.play()
    return files.steps


@pytest.mark.slow
@pytest.mark.parametrize("policy", FlushPolicy)
def test_a_crash_at_any_step_loses_nothing_that_was_promised(policy: FlushPolicy) -> None:
    steps = count_steps(policy)
    assert steps > 100
    for crash_at in range(1, steps + 2):
        files = MemoryFiles()
        files.crash_at = crash_at
        run = Run(files, policy)
        try:
            run.play()
        except CrashError:
            pass
        for mood, seed in moods(2):
            try:
                check_after_crash(run, mood, random.Random(seed), lose_index=crash_at % 5 == 0)
            except Exception as error:
                where = f"crash at step {crash_at} {files.calls[-1:]}, {mood}, seed {seed}"
                raise AssertionError(f"{where}: {error}") from error
