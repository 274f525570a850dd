"""The shell around the group coordinator: replies go out after what they promise is stored, timers run.

JoinGroup and SyncGroup wait for other members, so long that a broker which stops cannot: they are told to look for
the coordinator again, and the group stays as it is. Its members go on with it after the restart.
"""

from functools import partial
from typing import Any

import structlog

from tidelog.broker.coordination.groups import GroupCoordinator, Outcome
from tidelog.broker.coordination.groups.messages import JoinGroup, JoinGroupReply, SyncGroup, SyncGroupReply
from tidelog.broker.group_configs import GroupConfigs
from tidelog.broker.shell import Alarm, Writes, now_ms, send
from tidelog.broker.topics import Topic
from tidelog.errors import TidelogError
from tidelog.metadata.store import MetadataStore
from tidelog.promise import Promise

_WAITS_FOR_MEMBERS = {JoinGroup: JoinGroupReply, SyncGroup: SyncGroupReply}

log = structlog.get_logger("tidelog.groups")


class Groups:
    """Lives in the running event loop; one coordinator, one order of decisions."""

    def __init__(self, coordinator: GroupCoordinator, metadata: MetadataStore, configs: GroupConfigs) -> None:
        self.coordinator = coordinator
        self.configs = configs
        self._writes = Writes(metadata)
        self._alarm = Alarm(coordinator.next_deadline_ms, self.tick)
        self._waiting: dict[Promise[Any], JoinGroupReply | SyncGroupReply] = {}  # what to say when stopping
        self._stopping = False

    def ask(self, request: Any) -> Any:  # noqa: ANN401  (a request of `coordination.groups`, and its reply)
        """The reply, or an awaitable of it when it has to wait for a write or for other members."""
        reply_kind = _WAITS_FOR_MEMBERS.get(type(request))
        if self._stopping and reply_kind is not None:
            return reply_kind().not_available()
        token: Promise[Any] = Promise()
        outcome = self.coordinator.handle(request, token, now_ms())
        if not outcome.changes and len(outcome.replies) == 1 and outcome.replies[0][0] is token:
            self._alarm.set()
            return outcome.replies[0][1]
        self._carry_out(outcome)
        if reply_kind is not None and not token.is_kept:
            self._waiting[token] = reply_kind().not_available()
            return token.then(lambda reply: self._answered(token, reply))
        return token

    def _answered(self, token: Promise[Any], reply: Any) -> Any:  # noqa: ANN401
        del self._waiting[token]
        return reply

    def stop_waiting(self) -> None:
        """The broker stops: nobody waits for other members any longer. No group changes by that."""
        self._stopping = True
        send(list(self._waiting.items()))

    # As a listener to topics: the groups follow them.

    def topic_created(self, _topic: Topic) -> None:
        self.coordinator.topics_changed()
        self._alarm.set()

    def topic_changed(self, _before: Topic, _after: Topic) -> None:
        self.coordinator.topics_changed()
        self._alarm.set()

    def topic_deleted(self, topic: Topic) -> None:
        self._carry_out(self.coordinator.topics_deleted([topic.name]))

    def tick(self) -> None:
        self._carry_out(self.coordinator.tick(now_ms()))

    def _carry_out(self, outcome: Outcome) -> None:
        self._alarm.set()
        if outcome.changes:
            self._writes.write(outcome.changes, partial(self._stored, outcome))
        else:
            send(outcome.replies)

    def _stored(self, outcome: Outcome, error: TidelogError | None) -> None:
        if error is not None:
            log.error("group state could not be stored", reason=str(error))
            outcome = self.coordinator.failed(outcome, now_ms())
            self._alarm.set()
        else:
            self.coordinator.written(outcome)
        send(outcome.replies)

    async def close(self) -> None:
        self._alarm.close()
        await self._writes.drain()
