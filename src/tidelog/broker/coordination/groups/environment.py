"""What the groups of a coordinator share: settings, topics, timers, the replies of this turn, unwritten rows."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple, Protocol, TypeAlias

from tidelog.broker.coordination.groups.config import GroupConfig
from tidelog.broker.coordination.groups.messages import Reply
from tidelog.broker.coordination.timers import Timers

Token: TypeAlias = Hashable  # names a request to whoever sent it; the coordinator only hands it back
GROUP_ROW = ""  # in the ledger: the group's own row, not a member's; no member has an empty id


class Topic(NamedTuple):
    name: str
    topic_id: bytes
    partitions: int


class Topics(Protocol):
    """The topics there are, as the groups see them."""

    def by_name(self, name: str) -> Topic | None: ...

    def by_id(self, topic_id: bytes) -> Topic | None: ...

    def names(self) -> Iterable[str]: ...


class Pace(NamedTuple):
    """How often members of the consumer protocol are to be heard from, and after what silence they are gone."""

    session_timeout_ms: int
    heartbeat_interval_ms: int


class Stamp(NamedTuple):
    """One state of one row: it is settled by a write only if the row has not changed since."""

    group_id: str
    member_id: str
    version: int


class Ledger:
    """The rows of groups and members in which memory may be ahead of the store."""

    def __init__(self) -> None:
        self._unwritten: dict[str, dict[str, int]] = {}
        self._versions = count(1)

    def touch(self, group_id: str, member_id: str = GROUP_ROW) -> None:
        """The row has changed, or is gone."""
        self._unwritten.setdefault(group_id, {})[member_id] = next(self._versions)

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._unwritten

    def group_ids(self) -> list[str]:
        return list(self._unwritten)

    def stamps(self, group_id: str) -> Iterator[Stamp]:
        for member_id, version in self._unwritten.get(group_id, {}).items():
            yield Stamp(group_id, member_id, version)

    def settle(self, stamps: Iterable[Stamp]) -> None:
        """These states of these rows are durable."""
        for group_id, member_id, version in stamps:
            rows = self._unwritten.get(group_id)
            if rows is not None and rows.get(member_id) == version:
                del rows[member_id]
                if not rows:
                    del self._unwritten[group_id]


@dataclass(slots=True)
class Environment:
    config: GroupConfig
    topics: Topics
    new_id: Callable[[], str]
    timers: Timers = field(default_factory=Timers)
    ledger: Ledger = field(default_factory=Ledger)
    replies: list[tuple[Token, Reply]] = field(default_factory=list)
    paces: dict[str, Pace] = field(default_factory=dict)  # of groups that have a pace of their own
    usual_pace: Pace = field(init=False)

    def __post_init__(self) -> None:
        config = self.config
        self.usual_pace = Pace(config.group_consumer_session_timeout_ms, config.group_consumer_heartbeat_interval_ms)

    def pace(self, group_id: str) -> Pace:
        return self.paces.get(group_id, self.usual_pace)

    def reply(self, token: Token, reply: Reply) -> None:
        self.replies.append((token, reply))

    def take_replies(self) -> list[tuple[Token, Reply]]:
        replies, self.replies = self.replies, []
        return replies
