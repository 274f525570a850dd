"""The shell around the transaction coordinator: decisions are stored before markers are written, and replies go out
after both; what was decided before a crash is completed after it."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import structlog

from tidelog.broker.coordination.groups import GroupCoordinator
from tidelog.broker.coordination.transactions import Ending, Outcome, TransactionCoordinator
from tidelog.broker.coordination.transactions import messages as m
from tidelog.broker.partition import Partition
from tidelog.broker.producer_ids import ProducerIds
from tidelog.broker.shell import Alarm, Writes, now_ms, send
from tidelog.broker.topics import Topic, UnknownTopic
from tidelog.errors import InvalidProducerEpoch, TidelogError
from tidelog.metadata.store import MetadataStore
from tidelog.promise import Promise
from tidelog.storage.log import Appended

COORDINATOR_EPOCH = 0  # one node coordinates everything, from the beginning
MARKER_RETRY_S = 1.0
_MAY_NEED_AN_ID = m.InitProducerId | m.EndTransaction | m.DecideTransactions

log = structlog.get_logger("tidelog.transactions")


def reached(step: str) -> None:
    """A place where a crash must not matter. Tests put something here that ends the process."""


class Transactions:
    """Lives in the running event loop; one coordinator, one order of decisions."""

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        metadata: MetadataStore,
        producer_ids: ProducerIds,
        groups: GroupCoordinator,
    ) -> None:
        self.coordinator = coordinator
        self._writes = Writes(metadata)
        self._producer_ids = producer_ids
        self._groups = groups
        self._partition: Callable[[str, int], Partition]
        self._loop = asyncio.get_running_loop()
        self._alarm = Alarm(coordinator.next_deadline_ms, self.tick)
        self._asking: set[asyncio.Task[None]] = set()
        self._endings: set[Ending] = set()
        self._all_ended: asyncio.Future[None] | None = None
        self._queues: dict[int, asyncio.Future[None]] = {}

    def begin(self, partition: Callable[[str, int], Partition], restored: Outcome) -> None:
        """From here on there are partitions to write markers to; first for what was decided before."""
        self._partition = partition
        for ending in restored.endings:
            log.info("completing a transaction", transactional_id=ending.transactional_id, commit=ending.committed)
        self._carry_out(restored)

    def ask(self, request: m.Request) -> Any:  # noqa: ANN401  (the request's reply)
        """The reply, or a promise of it when it has to wait for a write or for markers."""
        token: Promise[Any] = Promise()
        if self._producer_ids.are_few and isinstance(request, _MAY_NEED_AN_ID):
            task = self._loop.create_task(self._ask_with_ids(request, token))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)
            return token
        outcome = self.coordinator.handle(request, token, now_ms())
        if not outcome.changes and not outcome.endings and len(outcome.replies) == 1:
            ((of, reply),) = outcome.replies
            if of is token:
                return reply
        self._carry_out(outcome)
        return token

    async def _ask_with_ids(self, request: m.Request, token: Promise[Any]) -> None:
        try:
            await self._producer_ids.reserve()
        except TidelogError as error:
            log.error("producer ids could not be reserved", reason=str(error))
        self._carry_out(self.coordinator.handle(request, token, now_ms()))

    def wait_in_line(self, producer_id: int) -> "PlaceInLine | None":
        """A producer's batches are appended in the order in which they came, also if the first of them had to wait.
        None: nobody waits."""
        return PlaceInLine(self._queues, producer_id) if producer_id in self._queues else None

    def start_line(self, producer_id: int) -> "PlaceInLine":
        return PlaceInLine(self._queues, producer_id)

    # As a listener to topics.

    def topic_created(self, _topic: Topic) -> None:
        pass

    def topic_changed(self, _before: Topic, _after: Topic) -> None:
        pass

    def topic_deleted(self, topic: Topic) -> None:
        self._carry_out(self.coordinator.topics_deleted([topic.name]))

    def tick(self) -> None:
        self._carry_out(self.coordinator.tick(now_ms()))

    # Carrying decisions out

    def _carry_out(self, outcome: Outcome) -> None:
        self._alarm.set()
        if outcome.changes:
            reached("deciding" if outcome.endings else "storing")
            self._writes.write(outcome.changes, partial(self._stored, outcome))
        else:
            self._go_on(outcome)

    def _stored(self, outcome: Outcome, error: TidelogError | None) -> None:
        if error is not None:
            log.error("a transaction's state could not be stored", reason=str(error))
            outcome = self.coordinator.failed(outcome, now_ms())
            self._alarm.set()
        else:
            reached("decided" if outcome.endings else "stored")
            self.coordinator.written(outcome)
            self._groups.offsets_committed(outcome.committed_offsets)
        self._go_on(outcome)

    def _go_on(self, outcome: Outcome) -> None:
        for ending in outcome.endings:
            self._endings.add(ending)
            self._end(ending)
        send(outcome.replies)

    def _end(self, ending: Ending) -> None:
        """Write the markers; see to the rest when they are durable."""
        if ending not in self._endings:
            return  # the broker stops
        appended, is_done = self._append_markers(ending)
        waiting = len(appended)

        def durable(_: None, error: Exception | None) -> None:
            nonlocal waiting, is_done
            waiting -= 1
            if error is not None:
                log.error("a marker could not be made durable", reason=str(error))
                is_done = False
            if not waiting:
                self._ended_or_not(ending, is_done=is_done)

        for marker in appended:
            marker.when_done(durable)
        if not appended:  # not at once: whoever asked for the end is answered first
            self._loop.call_soon(partial(self._ended_or_not, ending, is_done=is_done))

    def _ended_or_not(self, ending: Ending, *, is_done: bool) -> None:
        if ending not in self._endings:
            return
        if not is_done:
            self._go_on(self.coordinator.stuck(ending))
            self._loop.call_later(MARKER_RETRY_S, self._end, ending)
            return
        reached("completed")
        self._endings.remove(ending)
        self._carry_out(self.coordinator.completed(ending, now_ms()))
        if not self._endings and self._all_ended is not None:
            self._all_ended.set_result(None)
            self._all_ended = None

    def _append_markers(self, ending: Ending) -> tuple[list[Appended], bool]:
        """What to wait for, and whether that is all."""
        appended: list[Appended] = []
        is_done = True
        at_ms = now_ms()
        for topic, index in ending.partitions:
            try:
                partition = self._partition(topic, index)
                marker = partition.end_transaction(
                    ending.producer_id,
                    ending.epoch,
                    committed=ending.committed,
                    coordinator_epoch=COORDINATOR_EPOCH,
                    now_ms=at_ms,
                )
            except UnknownTopic:
                continue
            except InvalidProducerEpoch as error:  # somebody with a newer epoch has ended it
                log.warning("a marker is not needed", partition=f"{topic}-{index}", reason=str(error))
            except TidelogError as error:
                log.error("a marker could not be written", partition=f"{topic}-{index}", reason=str(error))
                is_done = False
            else:
                reached("marked")
                if not marker.done:
                    appended.append(marker)
        return appended, is_done

    async def close(self) -> None:
        """What is decided but not completed by now is completed by the next start."""
        self._alarm.close()
        if self._endings:
            self._all_ended = self._loop.create_future()
            await asyncio.wait([self._all_ended], timeout=MARKER_RETRY_S)
            self._all_ended = None
            self._endings.clear()
        self._carry_out(self.coordinator.store_all())
        await self._writes.drain()


class PlaceInLine:
    """Behind all others of its producer. `turn` comes when those have left; leave, whatever happens."""

    __slots__ = ("_before", "_lines", "_mine", "_producer_id")

    def __init__(self, lines: "dict[int, asyncio.Future[None]]", producer_id: int) -> None:
        self._lines = lines
        self._producer_id = producer_id
        self._before = lines.get(producer_id)
        self._mine = lines[producer_id] = asyncio.get_running_loop().create_future()

    async def turn(self) -> None:
        if self._before is not None:
            await self._before

    def leave(self) -> None:
        if not self._mine.done():
            self._mine.set_result(None)
        if self._lines.get(self._producer_id) is self._mine:
            del self._lines[self._producer_id]
