"""The shell around the group coordinator: replies go out after what they promise is stored, timers run."""

import asyncio
import time
from typing import Any, cast

import structlog

from tidelog.broker.coordination.groups import GroupCoordinator, Outcome
from tidelog.broker.topics import Topic
from tidelog.errors import TidelogError
from tidelog.metadata.store import MetadataStore

log = structlog.get_logger("tidelog.groups")


class Groups:
    """Lives in the running event loop; one coordinator, one order of decisions."""

    def __init__(self, coordinator: GroupCoordinator, metadata: MetadataStore) -> None:
        self.coordinator = coordinator
        self._metadata = metadata
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_ms = 0
        self._writes: set[asyncio.Task[None]] = set()
        self._closed = False

    def ask(self, request: Any) -> Any:  # noqa: ANN401  (a request of `coordination.groups`, and its reply)
        """The reply, or an awaitable of it when it has to wait for a write or for other members."""
        token: asyncio.Future[Any] = self._loop.create_future()
        outcome = self.coordinator.handle(request, token, _now_ms())
        if not outcome.changes and len(outcome.replies) == 1 and outcome.replies[0][0] is token:
            self._set_timer()
            return outcome.replies[0][1]
        self._carry_out(outcome)
        return token

    # As a listener to topics: the groups follow them.

    def topic_created(self, _topic: Topic) -> None:
        self.coordinator.topics_changed()
        self._set_timer()

    def topic_changed(self, _before: Topic, _after: Topic) -> None:
        self.coordinator.topics_changed()
        self._set_timer()

    def topic_deleted(self, topic: Topic) -> None:
        self._carry_out(self.coordinator.topics_deleted([topic.name]))

    def tick(self) -> None:
        self._timer = None
        self._carry_out(self.coordinator.tick(_now_ms()))

    def _carry_out(self, outcome: Outcome) -> None:
        self._set_timer()
        if outcome.changes:
            task = self._loop.create_task(self._store(outcome))
            self._writes.add(task)
            task.add_done_callback(self._writes.discard)
        else:
            _deliver(outcome)

    async def _store(self, outcome: Outcome) -> None:
        try:
            await self._metadata.write(outcome.changes)
        except TidelogError as error:
            log.error("group state could not be stored", reason=str(error))
            outcome = self.coordinator.failed(outcome, _now_ms())
            self._set_timer()
        else:
            self.coordinator.written(outcome)
        _deliver(outcome)

    def _set_timer(self) -> None:
        deadline = self.coordinator.next_deadline_ms()
        if deadline is None or self._closed:
            return
        if self._timer is not None:
            if self._timer_at_ms <= deadline:
                return
            self._timer.cancel()
        self._timer_at_ms = deadline
        self._timer = self._loop.call_later(max(0, deadline - _now_ms()) / 1000, self.tick)

    async def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._writes:
            await asyncio.wait(self._writes)


def _deliver(outcome: Outcome) -> None:
    for token, reply in outcome.replies:
        future = cast("asyncio.Future[Any]", token)
        if not future.done():  # else the client is gone
            future.set_result(reply)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
