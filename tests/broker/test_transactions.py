"""The shell of transactions: decisions are stored before markers are written, whatever becomes of those."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
import structlog

from tests.broker.held_store import HeldStore
from tests.broker.test_shell import in_loop
from tidelog.broker import transactions as shell_module
from tidelog.broker.coordination.transactions import TransactionConfig, TransactionCoordinator
from tidelog.broker.coordination.transactions import messages as m
from tidelog.broker.ownership import SoleOwnership
from tidelog.broker.shell import monotonic_ms, now_ms
from tidelog.broker.topics import UnknownTopic
from tidelog.broker.transactions import Transactions
from tidelog.errors import StorageUnavailable
from tidelog.model import TopicPartition
from tidelog.promise import Promise
from tidelog.storage.log import Appended

NOT_AVAILABLE, CONCURRENT = 15, 51
MARKED = Appended(0, 0, 0)


class Log:
    """A partition: it takes markers, or fails."""

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.syncs_at_once = True
        self.markers: list[Promise[Appended]] = []

    def end_transaction(self, *_: Any, **__: Any) -> Appended | Promise[Appended]:
        if self.failure is not None:
            raise self.failure
        self.markers.append(Promise())
        return MARKED if self.syncs_at_once else self.markers[-1]


class Ids:
    def __init__(self) -> None:
        self.left: list[int] = list(range(200, 100, -1))
        self.reserving_fails = False

    def take(self) -> int | None:
        return self.left.pop() if self.left else None

    @property
    def are_few(self) -> bool:
        return len(self.left) < 10

    async def reserve(self) -> None:
        if self.reserving_fails:
            raise StorageUnavailable("no space")
        self.left = [500, 499] * 10


class Committed:
    def offsets_committed(self, _changes: Any) -> None:
        pass


class Shell:
    def __init__(self) -> None:
        self.store = HeldStore()
        self.ids = Ids()
        self.logs: dict[int, Log] = {}
        self.coordinator = TransactionCoordinator(TransactionConfig(), self.ids.take, now_ms)
        restored = self.coordinator.restore([], [], [], monotonic_ms())
        self.transactions = Transactions(
            self.coordinator,
            cast("Any", self.store),
            cast("Any", self.ids),
            cast("Any", Committed()),
            SoleOwnership(0),
        )
        self.transactions.begin(cast("Any", self._log), restored)

    def _log(self, topic: str, index: int) -> Log:
        if topic == "gone":
            raise UnknownTopic("there is none")
        return self.logs.setdefault(index, Log())

    def write(self) -> None:
        """What waits in the store is durable."""
        for _, written in self.store.asked:
            if not written.is_kept:
                written.settle(None)

    async def ask(self, request: m.Request) -> Any:
        reply = self.transactions.ask(request)
        self.write()
        return await reply if isinstance(reply, Promise) else reply

    async def begin(self, *partitions: TopicPartition) -> None:
        reply = await self.ask(m.InitProducerId("id", 60_000))
        self.producer_id, self.epoch = reply.producer_id, reply.epoch
        added = await self.ask(m.AddPartitions("id", self.producer_id, self.epoch, partitions))
        assert added.error_code == 0

    def end(self) -> Any:
        """Asks for a commit, and does not wait."""
        return self.transactions.ask(m.EndTransaction("id", self.producer_id, self.epoch, True))

    @property
    def marked(self) -> list[int]:
        return [index for index, log in sorted(self.logs.items()) if log.markers]

    def state(self) -> str:
        (described,) = self.transactions.ask(m.DescribeTransactions(("id",))).transactions
        return str(described.state)

    async def until(self, state: str) -> None:
        while self.state() != state:
            await asyncio.sleep(0.002)


Play = Callable[[Shell], Awaitable[None]]


def play(script: Play) -> None:
    async def run() -> None:
        await script(Shell())

    assert in_loop(run) == []


def partitions(count: int) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition("t", index) for index in range(count))


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Markers that failed are tried again soon."""
    monkeypatch.setattr(shell_module, "MARKER_RETRY_S", 0.005)


def test_the_decision_is_durable_before_the_first_marker_and_the_reply_comes_after() -> None:
    async def script(shell: Shell) -> None:
        await shell.begin(*partitions(2))
        reply = shell.end()
        assert not shell.marked
        shell.write()
        assert shell.marked == [0, 1]
        assert (await reply).error_code == 0
        await shell.until("CompleteCommit")

    play(script)


def test_no_marker_is_written_if_the_decision_could_not_be_stored() -> None:
    async def script(shell: Shell) -> None:
        await shell.begin(*partitions(1))
        reply = shell.end()
        shell.store.asked[-1][1].fail(StorageUnavailable("no space"))
        assert (await reply).error_code == NOT_AVAILABLE
        assert not shell.marked

    play(script)


def test_it_is_complete_when_all_markers_are_durable() -> None:
    async def script(shell: Shell) -> None:
        await shell.begin(*partitions(3))
        for index in range(3):
            shell.transactions._partition("t", index).syncs_at_once = False  # type: ignore[attr-defined]
        reply = shell.end()
        shell.write()
        assert (await reply).error_code == 0, "it is decided"
        for index in (2, 0, 1):
            assert shell.state() == "PrepareCommit"
            shell.logs[index].markers[0].settle(MARKED)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert shell.state() == "CompleteCommit"

    play(script)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("failure", [StorageUnavailable("no space"), OSError(5, "a bug: not wrapped")])
def test_one_log_that_fails_keeps_no_other_from_its_marker_and_is_tried_again(failure: Exception) -> None:
    async def script(shell: Shell) -> None:
        await shell.begin(*partitions(3))
        broken = shell.logs[1] = Log()
        broken.failure = failure
        with structlog.testing.capture_logs() as logged:
            reply = shell.end()
            shell.write()
            assert (await reply).error_code == 0
            assert shell.marked == [0, 2]
            while len(shell.logs[0].markers) < 3:  # tried again, and again
                await asyncio.sleep(0.002)
            assert shell.end().error_code == CONCURRENT
            broken.failure = None
            await shell.until("CompleteCommit")
        lines = [each["event"] for each in logged]
        assert lines == ["a marker could not be written", "markers can be written again"], "said once"
        assert shell.marked == [0, 1, 2]

    play(script)


@pytest.mark.usefixtures("hasty")
def test_a_marker_that_does_not_become_durable_is_tried_again() -> None:
    async def script(shell: Shell) -> None:
        await shell.begin(*partitions(1))
        log = shell.logs[0] = Log()
        log.syncs_at_once = False
        shell.end()
        shell.write()
        await asyncio.sleep(0)
        log.syncs_at_once = True
        log.markers[0].fail(StorageUnavailable("no space"))
        await shell.until("CompleteCommit")
        assert len(log.markers) == 2

    play(script)


def test_partitions_of_a_topic_that_is_gone_need_no_marker() -> None:
    async def script(shell: Shell) -> None:
        await shell.begin(TopicPartition("gone", 7), *partitions(1))
        shell.end()
        shell.write()
        await shell.until("CompleteCommit")
        assert shell.marked == [0]

    play(script)


def test_markers_of_many_partitions_are_written_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell_module, "MARKED_AT_ONCE", 2)

    async def script(shell: Shell) -> None:
        await shell.begin(*partitions(6))
        reply = shell.end()
        shell.write()
        seen = [(len(shell.marked), reply.is_kept)]
        while shell.state() != "CompleteCommit":
            await asyncio.sleep(0)
            seen.append((len(shell.marked), reply.is_kept))
        assert seen[:3] == [(2, False), (4, False), (6, False)], "others have their turn between"
        assert (await reply).error_code == 0, "when all are in the logs"

    play(script)


def test_who_needs_an_id_waits_until_some_are_reserved() -> None:
    async def script(shell: Shell) -> None:
        shell.ids.left = []
        reply = shell.transactions.ask(m.InitProducerId("id", 60_000))
        while not shell.store.asked:
            await asyncio.sleep(0)
        shell.write()
        assert (await reply).producer_id == 499
        shell.ids.left, shell.ids.reserving_fails = [], True
        with structlog.testing.capture_logs() as logged:
            assert (await shell.transactions.ask(m.InitProducerId("other", 60_000))).error_code == NOT_AVAILABLE
        assert [each["event"] for each in logged] == ["producer ids could not be reserved; producers have to retry"]

    play(script)


@pytest.mark.usefixtures("hasty")
def test_closing_leaves_what_cannot_be_completed_to_the_next_start() -> None:
    async def script(shell: Shell) -> None:
        await shell.begin(*partitions(1))
        shell.logs[0] = Log()
        shell.logs[0].failure = StorageUnavailable("no space")
        shell.end()
        shell.write()
        ending = shell.coordinator._transactions["id"].ending
        assert ending is not None
        await shell.transactions.close()
        assert shell.state() == "PrepareCommit"
        shell.logs[0].failure = None
        shell.transactions._end(ending)  # as the next attempt, whose time comes after the end
        assert not shell.logs[0].markers

    play(script)


def test_batches_of_a_producer_keep_their_order() -> None:
    async def script(shell: Shell) -> None:
        transactions, order = shell.transactions, []
        assert transactions.wait_in_line(1) is None
        places = [transactions.start_line(1), transactions.wait_in_line(1), transactions.wait_in_line(1)]

        async def go(number: int) -> None:
            place = places[number]
            assert place is not None
            await place.turn()
            order.append(number)
            place.leave()

        await asyncio.gather(go(2), go(1), go(0))
        assert order == [0, 1, 2]
        assert transactions.wait_in_line(1) is None

    play(script)
