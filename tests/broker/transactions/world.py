"""A coordinator with a store and logs that are plain memory, a clock that is told, and crashes at will."""

from collections.abc import Callable
from typing import Any

from tidelog.broker.coordination.transactions import Ending, Outcome, TransactionConfig, TransactionCoordinator
from tidelog.broker.coordination.transactions import messages as m
from tidelog.metadata.rows import DecisionRow, OffsetRow, Row, TransactionOffsetRow, TransactionRow
from tidelog.metadata.store import Change, Delete, Put
from tidelog.model import TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


class World:
    """`writes_hang` keeps writes open until `settle`, `markers_hang` markers until `retry_markers`; `writes_fail` and
    `markers_fail` are what they say; `failures_stick`: a write that fails took effect all the same, which its writer
    cannot know."""

    def __init__(self, config: TransactionConfig | None = None) -> None:
        self.config = config or TransactionConfig()
        self.now_ms = 1_000_000  # the clock of deadlines
        self.step_ms = 0  # how far the wall clock was put forward, or back
        self.rows: dict[tuple[Any, ...], Row] = {}
        self.markers: list[tuple[TopicPartition, int, int, bool]] = []
        self.last_id = 99
        self.has_ids = True
        self.writes_fail = self.writes_hang = self.markers_fail = self.markers_hang = False
        self.failures_stick = False
        self.hanging: list[Outcome] = []
        self.failed_endings: list[Ending] = []
        self.replies: dict[int, Any] = {}
        self.logs: set[tuple[TopicPartition, int]] | None = None  # what is open; None: everything
        self._tokens = 0
        self.start()

    def start(self) -> None:
        """As after a crash: only rows and markers are left."""
        self.hanging, self.failed_endings = [], []
        self.coordinator = TransactionCoordinator(self.config, self._new_id, lambda: self.now_ms + self.step_ms)
        self._carry_out(
            self.coordinator.restore(
                self.table(TransactionRow), self.table(TransactionOffsetRow), self.table(DecisionRow), self.now_ms
            )
        )

    def _new_id(self) -> int | None:
        if not self.has_ids:
            return None
        self.last_id += 1
        return self.last_id

    def table(self, kind: type[Any]) -> list[Any]:
        return [row for row in self.rows.values() if isinstance(row, kind)]

    def offsets(self) -> dict[tuple[str, str, int], int]:
        return {(row.group, row.topic, row.partition): row.offset for row in self.table(OffsetRow)}

    def ask(self, request: m.Request) -> Any:
        """The reply, or None if it has to wait."""
        self._tokens += 1
        token = self._tokens
        self._carry_out(self.coordinator.handle(request, token, self.now_ms))
        return self.replies.get(token)

    def later(self) -> Any:
        """The reply to what was asked last."""
        return self.replies.get(self._tokens)

    def pass_time(self, ms: int) -> None:
        self.now_ms += ms
        self._carry_out(self.coordinator.tick(self.now_ms))

    def settle(self) -> None:
        hanging, self.hanging = self.hanging, []
        for outcome in hanging:
            self._written(outcome)

    def retry_markers(self) -> None:
        failed, self.failed_endings = self.failed_endings, []
        for ending in failed:
            self._end(ending)

    def _carry_out(self, outcome: Outcome) -> None:
        if not outcome.changes:
            self._go_on(outcome)
        elif self.writes_hang:
            self.hanging.append(outcome)
        else:
            self._written(outcome)

    def _written(self, outcome: Outcome) -> None:
        if not self.writes_fail or self.failures_stick:
            for change in outcome.changes:
                self._apply(change)
        if self.writes_fail:
            outcome = self.coordinator.failed(outcome, self.now_ms)
        else:
            self.coordinator.written(outcome)
        self._go_on(outcome)

    def _apply(self, change: Change) -> None:
        if isinstance(change, Put):
            row = change.row
            self.rows[type(row), *(getattr(row, name) for name in row.KEY)] = row
        else:
            assert isinstance(change, Delete)
            prefix = (change.table, *change.key)
            for key in [key for key in self.rows if key[: len(prefix)] == prefix]:
                del self.rows[key]

    def _go_on(self, outcome: Outcome) -> None:
        for ending in outcome.endings:
            self._end(ending)
        for token, reply in outcome.replies:
            assert isinstance(token, int)
            assert token not in self.replies, "answered twice"
            self.replies[token] = reply
        known = self.coordinator._transactions.values()
        bounds = self.coordinator.bounds
        assert (bounds.ids.used, bounds.entries.used) == (len(known), sum(each.entries for each in known))

    def _end(self, ending: Ending) -> None:
        row = self.rows[TransactionRow, ending.transactional_id]
        assert isinstance(row, TransactionRow)
        assert row.state == ("PrepareCommit" if ending.committed else "PrepareAbort"), "the decision is stored first"
        if self.markers_hang:
            self.failed_endings.append(ending)
            return
        if self.markers_fail:
            self.failed_endings.append(ending)
            self._carry_out(self.coordinator.stuck(ending))
            return
        for partition in ending.partitions:
            if self.logs is not None:
                if (partition, ending.producer_id) not in self.logs:
                    continue
                self.logs.remove((partition, ending.producer_id))
            self.markers.append((partition, ending.producer_id, ending.epoch, ending.committed))
        self._carry_out(self.coordinator.completed(ending, self.now_ms))


class Client:
    """A transactional producer, as clients of transactions 1 or 2 behave."""

    def __init__(self, world: World, id_: str = "id", *, version: int = 2, timeout_ms: int = 60_000) -> None:
        self.world = world
        self.id = id_
        self.version = version
        self.timeout_ms = timeout_ms
        self.producer_id = self.epoch = -1

    def init(self) -> m.InitProducerIdReply:
        reply: m.InitProducerIdReply = self.world.ask(m.InitProducerId(self.id, self.timeout_ms))
        if reply is not None and not reply.error_code:
            self.producer_id, self.epoch = reply.producer_id, reply.epoch
        return reply

    def add(self, *partitions: TopicPartition, verify: bool = False) -> m.AddPartitionsReply:
        request = m.AddPartitions(self.id, self.producer_id, self.epoch, partitions, verify)
        reply: m.AddPartitionsReply = self.world.ask(request)
        return reply

    def commit_offsets(self, offset: int, group: str = "group", partition: TopicPartition = A0) -> int:
        row = OffsetRow(group, *partition, offset, -1, "", self.world.now_ms)
        request = m.CommitOffsets(self.id, self.producer_id, self.epoch, group, (row,), self.version >= 2)
        code: int = self.world.ask(request).error_code
        return code

    def end(self, committed: bool = True) -> m.EndTransactionReply | None:
        request = m.EndTransaction(self.id, self.producer_id, self.epoch, committed, self.version >= 2)
        reply: m.EndTransactionReply | None = self.world.ask(request)
        if reply is not None and not reply.error_code and self.version >= 2:
            self.producer_id, self.epoch = reply.producer_id, reply.epoch
        return reply

    def state(self) -> str:
        (described,) = self.world.ask(m.DescribeTransactions((self.id,))).transactions
        state: str = described.state
        return state


Make = Callable[[World], Client]
