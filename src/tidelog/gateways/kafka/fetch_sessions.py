"""Fetch sessions (KIP-227): a consumer names its partitions once, and afterwards only the changes.

    session id, epoch     meaning
    any, -1               no session; the named session is closed, if there is one
    any, 0                a new session with the partitions of this request; the named session is closed
    known, next epoch     the session's partitions, with this request's additions, changes and removals
    unknown               FETCH_SESSION_ID_NOT_FOUND
    known, other epoch    INVALID_FETCH_SESSION_EPOCH

A reply within a session has only the partitions with news. The number of sessions is bounded, and so is the number of
partitions in all sessions. When there is no room, the sessions that were idle longest are evicted if they were idle
for `SILENT_MS`; otherwise the client gets session 0 (none) and names all partitions each time. A session that grows
beyond the bound is closed; its client starts a new one, by the same rules.
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
MOST_PARTITIONS = 150_000
MAX_TOPIC_NAME = 249
PARTITION_BYTES = 450  # memory of one partition of a session, measured
SILENT_MS = 120_000

NameOf = Callable[[bytes], str | None]


class SessionError(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class FetchTarget:
    """A partition that a client fetches, and the offsets that were last reported to it (`told`)."""

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
    """`id` 0 means no session: each request and each reply has all partitions."""

    __slots__ = ("_targets", "epoch", "id", "is_incremental", "last_used_ms")

    def __init__(self, id_: int, targets: dict[Key, FetchTarget]) -> None:
        self.id = id_
        self.epoch = 1
        self.last_used_ms = 0
        self._targets = targets
        self.is_incremental = False

    def targets(self) -> list[FetchTarget]:
        return list(self._targets.values())

    @property
    def size(self) -> int:
        return len(self._targets)

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
        """Whether the partition belongs in the reply. A partition with records moves to the end of the session, so
        that the next reply begins with others."""
        told = (data.high_watermark, data.last_stable_offset, data.log_start_offset)
        news = not self.is_incremental or bool(data.records) or data.error_code != 0 or told != target.told
        target.told = None if data.error_code else told
        if self.id != NO_SESSION and data.records:
            key = (target.topic_key, target.index)
            if self._targets.pop(key, None) is not None:  # else it was removed from the session
                self._targets[key] = target
        return news


class FetchSessions:
    def __init__(self, name_of: NameOf, slots: int = SLOTS, most_partitions: int = MOST_PARTITIONS) -> None:
        self._name_of = name_of
        self._slots = slots
        self.most_partitions = most_partitions
        self.partitions = 0  # of all sessions
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()  # the least recently used first

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, message: FetchRequest, *, by_id: bool, now_ms: int) -> FetchSession:
        """The session of a request, after the request's changes of its partitions."""
        if message.session_epoch in (FINAL_EPOCH, FIRST_EPOCH):
            self._forget(message.session_id)
            targets = self._wanted(message, by_id=by_id)
            if message.session_epoch == FINAL_EPOCH or not _may_be_kept(message):
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
        before = session.size
        session.change(self._wanted(message, by_id=by_id) if message.topics else {}, removed)
        self.partitions += session.size - before
        if (self.partitions > self.most_partitions and session.size > before) or not _may_be_kept(message):
            self._forget(session.id)
            raise SessionError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if by_id:
            for target in session.targets():  # a topic may have been created or deleted
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
        while len(self._sessions) >= self._slots or self.partitions + len(targets) > self.most_partitions:
            oldest = next(iter(self._sessions.values()), None)
            if oldest is None or now_ms - oldest.last_used_ms < SILENT_MS:
                return FetchSession(NO_SESSION, targets)
            self._forget(oldest.id)
        while (id_ := random.randint(1, LAST_EPOCH)) in self._sessions:  # noqa: S311  (not a secret)
            pass
        session = self._sessions[id_] = FetchSession(id_, targets)
        session.last_used_ms = now_ms
        self.partitions += session.size
        return session

    def _forget(self, id_: int) -> None:
        session = self._sessions.pop(id_, None)
        if session is not None:
            self.partitions -= session.size


def _may_be_kept(message: FetchRequest) -> bool:
    """False if a topic name is longer than any valid name: many of them would take far more memory than
    `PARTITION_BYTES`."""
    return all(len(topic.topic) <= MAX_TOPIC_NAME for topic in message.topics)
