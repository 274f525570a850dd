"""The log against a plain list, over random operations, reopening and crashes included."""

import random
from dataclasses import dataclass, field

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.support.logs import NOW_MS, append, batch, open_log, read_records
from tests.support.memory_files import MemoryFiles, Mood
from tidelog.settings import FlushPolicy, LogSettings
from tidelog.storage.local.log import LocalLog


@dataclass
class Row:
    offset: int
    value: bytes
    timestamp: int
    batch: int


@dataclass
class Model:
    rows: list[Row] = field(default_factory=list)
    start: int = 0
    end: int = 0

    def readable(self) -> list[tuple[int, bytes, int]]:
        return [(row.offset, row.value, row.timestamp) for row in self.rows if row.offset >= self.start]


class LogMachine(RuleBasedStateMachine):
    log: LocalLog
    settings_: LogSettings

    @initialize(
        policy=st.sampled_from(FlushPolicy),
        segment_bytes=st.sampled_from([1024, 1500, 4000]),
        index_interval=st.sampled_from([0, 150, 4096]),
        tail_bytes=st.sampled_from([0, 500, 1 << 20]),
    )
    def begin(self, policy: FlushPolicy, segment_bytes: int, index_interval: int, tail_bytes: int) -> None:
        self.files = MemoryFiles()
        self.settings_ = LogSettings(
            segment_bytes=segment_bytes,
            index_interval_bytes=index_interval,
            flush=policy,
            flush_messages=5,
            retention_bytes=6000,
            retention_ms=-1,
        )
        self.tail_bytes = tail_bytes
        self.model = Model()
        self.batches = 0
        self.producer = 11
        self.sequence = 0
        self.last_produced: tuple[bytearray, int] | None = None
        self.open()

    def open(self) -> None:
        self.log = open_log(self.files, self.settings_, tail_bytes=self.tail_bytes, open_segments=3)

    @rule(
        sizes=st.lists(st.integers(0, 300), min_size=1, max_size=4), time=st.integers(0, 1000), durable=st.booleans()
    )
    def append(self, sizes: list[int], time: int, durable: bool) -> None:
        values = [b"%d:" % self.model.end + b"v" * size for size in sizes]
        if sum(map(len, values)) > 900:
            return
        append(self.log, batch(*values, timestamp=NOW_MS + time), durable=durable)
        self._took(values, NOW_MS + time)

    @rule(size=st.integers(0, 300))
    def produce(self, size: int) -> None:
        value = b"p" * size
        data = batch(value, producer_id=self.producer, producer_epoch=0, sequence=self.sequence)
        copy = bytearray(data)
        appended = append(self.log, data)
        assert not appended.duplicate
        self.last_produced = (copy, appended.base_offset)
        self.sequence += 1
        self._took([value], NOW_MS)

    @precondition(lambda self: self.last_produced is not None)
    @rule()
    def repeat_the_last_produced_batch(self) -> None:
        assert self.last_produced is not None
        data, offset = self.last_produced
        appended = append(self.log, bytearray(data))
        assert appended.duplicate
        assert appended.base_offset == offset

    @rule(share=st.floats(0, 1))
    def delete_before(self, share: float) -> None:
        offset = self.model.start + int(share * (self.model.end - self.model.start))
        assert self.log.delete_before(offset).result() == offset
        self.model.start = offset

    @rule()
    def retain(self) -> None:
        self.log.retain(NOW_MS)
        assert self.log.start_offset >= self.model.start
        self.model.start = self.log.start_offset

    @rule()
    def close_and_open(self) -> None:
        self.log.close()
        self.open()
        assert self.log.recovery.clean

    @rule()
    def kill_and_open(self) -> None:
        """The process dies, the machine does not: everything that was answered is there."""
        self.files = self.files.after_crash(Mood.KEEP, random.Random(0))
        self.open()

    @rule(at=st.integers(0, 1200), limit=st.integers(1, 3000))
    def look_up(self, at: int, limit: int) -> None:
        found = self.log.offset_for_time_now(NOW_MS + at)
        expected = next((row for row in self.model.readable() if row[2] >= NOW_MS + at), None)
        assert (None if found is None else found.offset) == (None if expected is None else expected[0])
        if self.model.end > self.model.start:
            offset = self.model.start + at % (self.model.end - self.model.start)
            result = self.log.read_now(offset, limit)
            assert 0 < result.size == len(result.read())

    @invariant()
    def the_log_equals_the_list(self) -> None:
        assert (self.log.start_offset, self.log.end_offset) == (self.model.start, self.model.end)
        found = [(record.offset, record.value, record.timestamp) for record in read_records(self.log)]
        assert found == self.model.readable()

    def _took(self, values: list[bytes], timestamp: int) -> None:
        self.batches += 1
        for value in values:
            self.model.rows.append(Row(self.model.end, value, timestamp, self.batches))
            self.model.end += 1


LogMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=30)
TestLogAgainstAList = LogMachine.TestCase
