"""Fetch sessions (KIP-227): a consumer names its partitions once and afterwards only what changes.

    session id, epoch     meaning
    any, -1               no session; one that is named is closed
    any, 0                a new session with the partitions of this request; one that is named is closed
    known, next epoch     the session's partitions, with this request's additions, changes and removals
    unknown               FETCH_SESSION_ID_NOT_FOUND
    known, other epoch    INVALID_FETCH_SESSION_EPOCH

A reply within a session carries only the partitions with news. Sessions are bounded: when there is no room, the one
that was silent longest makes it if it was silent long enough; else the client gets session 0 and sends everything.
"""

import random
from collections import OrderedDict
from collections.abc import Callable, Iterable

from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.fetch import FetchPartition, FetchRequest, PartitionData
from tidelog.wire.primitives import NO_UUID

NO_SESSION, FINAL_EPOCH, FIRST_EPOCH = 0, -1, 0
LAST_EPOCH = 0x7FFF_FFFF
SLOTS = 1000
SILENT_MS = 120_000

NameOf = Callable[[bytes], str | None]


class SessionError(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class FetchTarget:
    """A partition that a client fetches, and what it was told last."""

    __slots__ = ("index", "leader_epoch", "max_bytes", "offset", "told", "topic", "topic_id")

    def __init__(self, topic: str | None, topic_id: bytes, wanted: FetchPartition) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = wanted.partition
        self.told: tuple[int, int, int] | None = None
        self.update(wanted)

    def update(self, wanted: FetchPartition) -> None:
        self.offset = wanted.fetch_offset
        self.max_bytes = wanted.partition_max_bytes
        self.leader_epoch = wanted.current_leader_epoch

    @property
    def topic_key(self) -> str | bytes | None:
        return self.topic if self.topic_id == NO_UUID else self.topic_id


Key = tuple[str | bytes | None, int]


class FetchSession:
    """`id` 0 is none: everything is asked and told each time."""

    __slots__ = ("_targets", "epoch", "id", "is_incremental", "last_used_ms")

    def __init__(self, id_: int, targets: dict[Key, FetchTarget]) -> None:
        self.id = id_
        self.epoch = 1
        self.last_used_ms = 0
        self._targets = targets
        self.is_incremental = False

    def targets(self) -> list[FetchTarget]:
        return list(self._targets.values())

    def change(self, added: dict[Key, FetchTarget], removed: Iterable[Key]) -> None:
        self.is_incremental = True
        for key in removed:
            self._targets.pop(key, None)
        for key, target in added.items():
            known = self._targets.get(key)
            if known is None:
                self._targets[key] = target
            else:
                known.offset, known.max_bytes, known.leader_epoch = (
                    target.offset,
                    target.max_bytes,
                    target.leader_epoch,
                )

    def has_news(self, target: FetchTarget, data: PartitionData) -> bool:
        """Whether to tell it; what is told with records goes to the back, so that every partition has its turn."""
        told = (data.high_watermark, data.last_stable_offset, data.log_start_offset)
        news = not self.is_incremental or bool(data.records) or data.error_code != 0 or told != target.told
        target.told = None if data.error_code else told
        if self.id != NO_SESSION and data.records:
            key = (target.topic_key, target.index)
            self._targets[key] = self._targets.pop(key, target)
        return news


class FetchSessions:
    def __init__(self, name_of: NameOf, slots: int = SLOTS) -> None:
        self._name_of = name_of
        self._slots = slots
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()  # the least recently used first

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, message: FetchRequest, *, by_id: bool, now_ms: int) -> FetchSession:
        """The session that a request belongs to, with its partitions as they are after it."""
        if message.session_epoch in (FINAL_EPOCH, FIRST_EPOCH):
            self._sessions.pop(message.session_id, None)
            targets = self._wanted(message, by_id=by_id)
            if message.session_epoch == FINAL_EPOCH:
                return FetchSession(NO_SESSION, targets)
            return self._new(targets, now_ms)
        session = self._sessions.get(message.session_id)
        if session is None:
            raise SessionError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != message.session_epoch:
            raise SessionError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        session.epoch = 1 if session.epoch == LAST_EPOCH else session.epoch + 1
        session.last_used_ms = now_ms
        self._sessions.move_to_end(session.id)
        removed: list[Key] = [
            (topic.topic_id if by_id else topic.topic, index)
            for topic in message.forgotten_topics_data
            for index in topic.partitions
        ]
        session.change(self._wanted(message, by_id=by_id) if message.topics else {}, removed)
        if by_id:
            for target in session.targets():  # a topic may have come or gone
                target.topic = self._name_of(target.topic_id)
        return session

    def _wanted(self, message: FetchRequest, *, by_id: bool) -> dict[Key, FetchTarget]:
        wanted: dict[Key, FetchTarget] = {}
        for topic in message.topics:
            name = self._name_of(topic.topic_id) if by_id else topic.topic
            for partition in topic.partitions:
                target = FetchTarget(name, topic.topic_id, partition)
                wanted[target.topic_key, partition.partition] = target
        return wanted

    def _new(self, targets: dict[Key, FetchTarget], now_ms: int) -> FetchSession:
        if len(self._sessions) >= self._slots:
            oldest = next(iter(self._sessions.values()))
            if now_ms - oldest.last_used_ms < SILENT_MS:
                return FetchSession(NO_SESSION, targets)
            del self._sessions[oldest.id]
        while (id_ := random.randint(1, LAST_EPOCH)) in self._sessions:  # noqa: S311  (not a secret)
            pass
        session = self._sessions[id_] = FetchSession(id_, targets)
        session.last_used_ms = now_ms
        return session
