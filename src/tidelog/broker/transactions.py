"""The shell around the transaction coordinator: it stores decisions, then writes markers, then sends replies. What
was decided before a crash is completed after the restart.

When a write fails with `Fenced`, another broker owns the transactions. From then on no request is answered from
memory and no marker is written: the other broker completes what is decided. Clients are told to look up their
coordinator.

A broker of a cluster learns late that another one owns the transactions. If it still said of a transaction which the
other one has ended that a partition is in it, a batch could begin a transaction that nobody ends. So the store
confirms the fence before such a reply is sent.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import structlog

from tidelog.broker.coordination.groups import GroupCoordinator
from tidelog.broker.coordination.transactions import Ending, Outcome, TransactionCoordinator
from tidelog.broker.coordination.transactions import messages as m
from tidelog.broker.coordination.transactions.coordinator import TransactionBounds
from tidelog.broker.coordination.transactions.errors import NotCoordinator
from tidelog.broker.ownership import NOBODY, Coordinated, NotLeader, Ownership
from tidelog.broker.partition import Partition
from tidelog.broker.producer_ids import ProducerIds
from tidelog.broker.shell import Alarm, monotonic_ms, now_ms, send, tell
from tidelog.broker.topics import Topic, UnknownTopic
from tidelog.broker.writes import Writes
from tidelog.errors import Fenced, InvalidProducerEpoch, TidelogError
from tidelog.metadata.store import Fence, MetadataStore
from tidelog.model import TopicPartition
from tidelog.promise import Promise
from tidelog.storage.trouble import Trouble

if TYPE_CHECKING:
    from tidelog.broker.remote_offsets import EndNotices
    from tidelog.broker.remote_transactions import Markers

MARKER_RETRY_S = 1.0
VISIBLE_WITHIN_S = 1.0
MARKED_AT_ONCE = 200  # partitions, in about 10 ms
_MAY_NEED_AN_ID = m.InitProducerId | m.EndTransaction | m.DecideTransactions

log = structlog.get_logger("tidelog.transactions")


def reached(step: str) -> None:
    """A point at which a crash must do no harm. Tests replace this function by one that ends the process."""


class ProducerLines:
    """The queues of producers' requests to the partitions of this broker, whoever coordinates their transactions."""

    def __init__(self) -> None:
        self._queues: dict[int, asyncio.Future[None]] = {}

    def wait_in_line(self, producer_id: int) -> "PlaceInLine | None":
        """A place after the waiting requests of a producer, because its batches are appended in the order in which
        they arrived. None: no request of the producer is waiting."""
        return PlaceInLine(self._queues, producer_id) if producer_id in self._queues else None

    def start_line(self, producer_id: int) -> "PlaceInLine":
        return PlaceInLine(self._queues, producer_id)


class Transactions(ProducerLines):
    """Belongs to the running event loop; one coordinator makes all decisions, in order."""

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        metadata: MetadataStore,
        producer_ids: ProducerIds,
        groups: GroupCoordinator | None,
        ownership: Ownership,
        fence: Fence | None = None,
        markers: "Markers | None" = None,
        notices: "EndNotices | None" = None,
    ) -> None:
        """`markers` writes to partitions that other brokers lead, and `notices` tells the coordinators of groups that
        their offsets are committed; without it, all groups are those of `groups`."""
        super().__init__()
        self.coordinator = coordinator
        self._ownership = ownership
        self._markers = markers
        self._epoch = None if fence is None else fence.epoch
        self._writes = Writes(metadata, fence)
        self._is_resigned = False
        self._news = coordinator.bounds.news
        self._producer_ids = producer_ids
        self._groups = groups
        self._notices = notices
        self._partition: Callable[[str, int], Partition]
        self._loop = asyncio.get_running_loop()
        self._alarm = Alarm(coordinator.next_deadline_ms, self.tick)
        self._asking: set[asyncio.Task[None]] = set()
        self._endings: set[Ending] = set()
        self._all_ended: asyncio.Future[None] | None = None
        self._trouble = Trouble(log, bad="a marker could not be written", good="markers can be written again")
        self._not_durable = Trouble(
            log, bad="a marker could not be flushed to disk", good="the markers of a transaction are on disk"
        )

    def begin(self, partition: Callable[[str, int], Partition], restored: Outcome) -> None:
        """Call it when partitions can be written to. Completes transactions that were decided before the restart."""
        self._partition = partition
        for ending in restored.endings:
            log.info(
                "completing a transaction that was decided before the restart",
                transactional_id=ending.transactional_id,
                commit=ending.committed,
            )
        self._carry_out(restored)

    def ask(self, request: m.Request) -> Any:  # noqa: ANN401  (the request's reply)
        """The reply, or a promise of it if it has to wait for a write or for markers."""
        token: Promise[Any] = Promise()
        if self._is_resigned:
            if isinstance(request, m.ListTransactions):  # clients ask every broker for those that it coordinates
                return m.ListTransactionsReply()
            return m.refusal(request, NotCoordinator.kafka_code)
        if self._producer_ids.are_few and isinstance(request, _MAY_NEED_AN_ID):
            task = self._loop.create_task(self._ask_with_ids(request, token))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)
            return token
        outcome = self.coordinator.handle(request, token, monotonic_ms())
        if self._news:
            tell(self._news, log.warning)
        must_confirm = self._epoch is not None and isinstance(request, m.AddPartitions)
        if not outcome.changes and not outcome.endings and not must_confirm and len(outcome.replies) == 1:
            ((of, reply),) = outcome.replies
            if of is token:
                return reply
        self._carry_out(outcome, must_confirm=must_confirm)
        return token

    async def _ask_with_ids(self, request: m.Request, token: Promise[Any]) -> None:
        try:
            await self._producer_ids.reserve()
        except TidelogError as error:
            log.error("producer ids could not be reserved; producers have to retry", reason=str(error))
        if self._is_resigned:
            send([(token, m.refusal(request, NotCoordinator.kafka_code))])
        else:
            self._carry_out(self.coordinator.handle(request, token, monotonic_ms()))

    @property
    def bounds(self) -> TransactionBounds:
        return self.coordinator.bounds

    def is_open_for(self, transactional_id: str, producer_id: int, epoch: int, partition: TopicPartition) -> bool:
        """See `TransactionCoordinator.is_open_for`."""
        return self.coordinator.is_open_for(transactional_id, producer_id, epoch, partition)

    def is_known_open(self, producer_id: int, partition: TopicPartition) -> bool:
        """See `TransactionCoordinator.is_known_open`."""
        return self.coordinator.is_known_open(producer_id, partition)

    # As a listener to topics

    def topic_created(self, _topic: Topic) -> None:
        pass

    def topic_changed(self, _before: Topic, _after: Topic) -> None:
        pass

    def topic_deleted(self, topic: Topic) -> None:
        self.topics_deleted([topic.name])

    def topics_deleted(self, names: Iterable[str]) -> None:
        """Drop the offsets of these topics from open transactions."""
        self._carry_out(self.coordinator.topics_deleted(names))

    def tick(self) -> None:
        self._carry_out(self.coordinator.tick(monotonic_ms()))

    # Carrying decisions out

    def resign(self) -> None:
        """Another broker owns the transactions."""
        if self._is_resigned:
            return
        self._is_resigned = True
        self._alarm.close()
        self._endings.clear()
        send(self.coordinator.resign())

    def _carry_out(self, outcome: Outcome, *, must_confirm: bool = False) -> None:
        if self._is_resigned:
            send([(token, reply.failed(NotCoordinator.kafka_code)) for token, reply in outcome.replies])
            return
        self._alarm.set()
        if outcome.changes or must_confirm:
            reached("deciding" if outcome.endings else "storing")
            self._writes.write(outcome.changes, partial(self._stored, outcome))
        else:
            self._go_on(outcome)

    def _stored(self, outcome: Outcome, error: TidelogError | None) -> None:
        if isinstance(error, Fenced):
            self.resign()
        if self._is_resigned:  # what is decided is completed by the next coordinator
            self._carry_out(outcome)
            return
        if error is not None:
            log.error(
                "the state of a transaction could not be stored or confirmed; clients have to retry",
                reason=str(error),
            )
            outcome = self.coordinator.failed(outcome, monotonic_ms())
            self._alarm.set()
        else:
            reached("decided" if outcome.endings else "stored")
            self.coordinator.written(outcome)
            if self._groups is not None:
                self._groups.offsets_committed(outcome.committed_offsets)
        self._go_on(outcome)

    def _go_on(self, outcome: Outcome) -> None:
        """Write the markers, and send the replies when all markers are in the logs."""
        if not outcome.endings:
            send(outcome.replies)
            return
        unmarked = len(outcome.endings)

        def marked() -> None:
            nonlocal unmarked
            unmarked -= 1
            if not unmarked:
                send(outcome.replies)

        for ending in outcome.endings:
            self._endings.add(ending)
            self._end(ending, marked)

    def _end(self, ending: Ending, marked: Callable[[], None] = lambda: None) -> None:
        """Append the markers, some at a time, then call `marked`. When they are durable, complete the transaction; if
        that fails, try again later. In a cluster readers see a marker when it is durable, so `marked` is called then,
        or soon: a leader that has died must not hold up the client. The coordinators of groups are told at the same
        time, and are waited for in the same way."""
        partitions = iter(ending.partitions)
        told = [self._notices.tell(ending, each) for each in ending.groups] if self._notices is not None else []
        waiting, is_done = 1, True  # 1 stands for the appending itself
        is_told = False

        def tell_marked() -> None:
            nonlocal is_told
            if not is_told:
                is_told = True
                marked()

        def one_less() -> None:
            nonlocal waiting
            waiting -= 1
            if not waiting:
                tell_marked()
                self._ended_or_not(ending, is_done=is_done)

        def durable(_: object, error: Exception | None) -> None:
            nonlocal is_done
            if error is not None:
                self._not_durable.failed(ending, error, transactional_id=ending.transactional_id)
                is_done = False
            one_less()

        def go_on() -> None:
            nonlocal waiting, is_done
            if ending not in self._endings:
                tell_marked()
                return  # the broker stops
            some = tuple(islice(partitions, MARKED_AT_ONCE))
            appended, all_are = self._append_markers(ending, some)
            appended += told
            told.clear()
            is_done = is_done and all_are
            waiting += len(appended)
            for marker in appended:
                marker.when_done(durable)
            if len(some) == MARKED_AT_ONCE:
                self._loop.call_soon(go_on)  # let the event loop run in between
            else:
                if self._markers is None:
                    tell_marked()
                else:
                    self._loop.call_later(VISIBLE_WITHIN_S, tell_marked)
                if waiting > 1:
                    one_less()
                else:
                    self._loop.call_soon(one_less)  # the client that ended the transaction is answered first

        go_on()

    def _ended_or_not(self, ending: Ending, *, is_done: bool) -> None:
        if ending not in self._endings:
            return
        if not is_done:
            self._go_on(self.coordinator.stuck(ending))
            self._loop.call_later(MARKER_RETRY_S, self._end, ending)
            return
        reached("completed")
        self._not_durable.worked(ending, transactional_id=ending.transactional_id)
        self._endings.remove(ending)
        self._carry_out(self.coordinator.completed(ending, monotonic_ms()))
        if not self._endings and self._all_ended is not None:
            self._all_ended.set_result(None)
            self._all_ended = None

    def _append_markers(
        self, ending: Ending, partitions: Sequence[TopicPartition]
    ) -> tuple[list[Promise[Any]], bool]:
        """Promises of the appended markers, and whether all markers could be appended."""
        appended: list[Promise[Any]] = []
        elsewhere: dict[int, list[TopicPartition]] = {}  # by leader
        is_done = True
        at_ms = now_ms()
        epoch = self._epoch
        if epoch is None:
            epoch = self._ownership.coordinator(Coordinated.TRANSACTIONAL_ID, ending.transactional_id).epoch
        for topic, index in partitions:
            try:
                partition = self._partition(topic, index)
                marker = partition.end_transaction(
                    ending.producer_id,
                    ending.epoch,
                    committed=ending.committed,
                    coordinator_epoch=epoch,
                    now_ms=at_ms,
                )
            except UnknownTopic:
                self._trouble.forget((topic, index))
                continue
            except NotLeader as error:
                leader = self._markers.leader_of(topic, index) if self._markers is not None else NOBODY
                if leader in (NOBODY, self._ownership.node_id):
                    self._trouble.failed((topic, index), error, partition=f"{topic}-{index}")
                    is_done = False
                else:
                    elsewhere.setdefault(leader, []).append(TopicPartition(topic, index))
            except InvalidProducerEpoch as error:  # a producer with a newer epoch has ended it
                log.warning("a marker is no longer needed", partition=f"{topic}-{index}", reason=str(error))
            except Exception as error:  # even a bug: try again later, and go on with the other partitions
                self._trouble.failed((topic, index), error, partition=f"{topic}-{index}")
                is_done = False
            else:
                reached("marked")
                self._trouble.worked((topic, index), partition=f"{topic}-{index}")
                if isinstance(marker, Promise):
                    appended.append(marker)
        for leader, those in elsewhere.items():
            assert self._markers is not None
            appended.append(self._markers.write(leader, ending, those, epoch))
        return appended, is_done

    async def close(self) -> None:
        """The next start completes transactions that are decided but not completed."""
        self._alarm.close()
        if self._endings:
            self._all_ended = self._loop.create_future()
            await asyncio.wait([self._all_ended], timeout=MARKER_RETRY_S)
            self._all_ended = None
            self._endings.clear()
        self._carry_out(self.coordinator.store_all())
        await self._writes.drain()


class PlaceInLine:
    """A place in the queue of a producer's requests. `turn` returns when all earlier ones have left. Always call
    `leave`, also after an error."""

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
