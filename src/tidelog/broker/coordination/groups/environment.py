"""What the groups of a coordinator share: settings, topics, timers, replies of the current call, unwritten rows."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

from tidelog.broker.coordination.bounds import Bound
from tidelog.broker.coordination.groups.config import GroupConfig
from tidelog.broker.coordination.groups.messages import Reply
from tidelog.broker.coordination.ledger import Ledger
from tidelog.broker.coordination.timers import Timers

Token: TypeAlias = Hashable  # identifies a request for its sender; the coordinator only returns it with the reply
GROUP_ROW = ""  # in the ledger: the group's own row, not a member's; no member has an empty id


class Topic(NamedTuple):
    name: str
    topic_id: bytes
    partitions: int


class TopicCatalog(Protocol):
    """The existing topics, as groups see them."""

    def by_name(self, name: str) -> Topic | None: ...

    def by_id(self, topic_id: bytes) -> Topic | None: ...

    def names(self) -> Iterable[str]: ...


class Pace(NamedTuple):
    """How often members of the consumer protocol send heartbeats, and how long they may send none."""

    session_timeout_ms: int
    heartbeat_interval_ms: int


class GroupBounds:
    """The bounds of all groups together. `news` has messages for the operator; the shell logs and removes them."""

    __slots__ = ("groups", "member_bytes", "members", "news", "offset_bytes")

    def __init__(self, config: GroupConfig) -> None:
        self.news: list[str] = []
        self.groups = Bound("tidelog.max.groups", "groups", config.tidelog_max_groups, 1_500, self.news)
        self.members = Bound(
            "tidelog.max.group.members", "members of groups", config.tidelog_max_group_members, 2_000, self.news
        )
        self.member_bytes = Bound(
            "tidelog.max.group.bytes",
            "bytes of member metadata and assignments",
            config.tidelog_max_group_bytes,
            1,
            self.news,
        )
        self.offset_bytes = Bound(
            "tidelog.max.group.offset.bytes",
            "bytes of committed offsets",
            config.tidelog_max_group_offset_bytes,
            1,
            self.news,
        )

    def __iter__(self) -> Iterator[Bound]:
        return iter((self.groups, self.members, self.member_bytes, self.offset_bytes))


@dataclass(slots=True)
class Environment:
    """`wall_ms` returns the time of day, for stored timestamps. Deadlines use another clock, which callers pass as
    `now_ms`."""

    config: GroupConfig
    topics: TopicCatalog
    new_id: Callable[[], str]
    wall_ms: Callable[[], int]
    timers: Timers = field(default_factory=Timers)
    ledger: Ledger = field(default_factory=Ledger)
    replies: list[tuple[Token, Reply]] = field(default_factory=list)
    paces: dict[str, Pace] = field(default_factory=dict)  # of groups that have their own pace
    usual_pace: Pace = field(init=False)
    bounds: GroupBounds = field(init=False)

    def __post_init__(self) -> None:
        config = self.config
        self.bounds = GroupBounds(config)
        self.usual_pace = Pace(config.group_consumer_session_timeout_ms, config.group_consumer_heartbeat_interval_ms)

    def pace(self, group_id: str) -> Pace:
        return self.paces.get(group_id, self.usual_pace)

    def reply(self, token: Token, reply: Reply) -> None:
        self.replies.append((token, reply))

    def take_replies(self) -> list[tuple[Token, Reply]]:
        replies, self.replies = self.replies, []
        return replies
