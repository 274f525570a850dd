"""Members that speak the consumer protocol, as tests see them."""

from dataclasses import dataclass, field, replace

from tests.broker.groups.world import World
from tidelog.broker.coordination.groups.messages import (
    ConsumerGroupHeartbeat,
    ConsumerGroupHeartbeatReply,
    TopicPartitions,
)


@dataclass
class Consumer:
    """A well-behaved client: it owns what it was last given, and gives up at once what it no longer should own; one
    that `lingers` gives up nothing until it is told to `settle`."""

    world: World
    name: str
    group: str = "g"
    instance: str | None = None
    topics: tuple[str, ...] | None = ("t",)
    pattern: str | None = None
    assignor: str | None = None
    rebalance_ms: int = 60_000
    epoch: int = 0
    owned: set[tuple[str, int]] = field(default_factory=set)
    told: set[tuple[str, int]] = field(default_factory=set)
    lingers: bool = False
    last: ConsumerGroupHeartbeatReply = field(default_factory=ConsumerGroupHeartbeatReply)
    has_news: bool = False

    @property
    def member_id(self) -> str:
        return f"{self.group}/{self.name}"

    def request(self, **changes: object) -> ConsumerGroupHeartbeat:
        """What it has to say: everything when it joins, else what has changed."""
        request = ConsumerGroupHeartbeat(
            self.group, self.member_id, self.epoch, self.instance, client_id=self.name, client_host="/127.0.0.1"
        )
        if self.epoch == 0:
            request = replace(
                request,
                rebalance_timeout_ms=self.rebalance_ms,
                subscribed_topic_names=self.topics,
                subscribed_topic_regex=self.pattern,
                server_assignor=self.assignor,
                topic_partitions=(),
            )
        elif self.has_news:
            request = replace(request, topic_partitions=self.reported())
        return replace(request, **changes)  # type: ignore[arg-type]

    def reported(self) -> tuple[TopicPartitions, ...]:
        by_topic: dict[str, list[int]] = {}
        for topic, partition in sorted(self.owned):
            by_topic.setdefault(topic, []).append(partition)
        return tuple(
            TopicPartitions(topic.encode().ljust(16, b"."), tuple(partitions))
            for topic, partitions in by_topic.items()
        )

    def beat(self, **changes: object) -> int:
        """One heartbeat. Returns its error code."""
        self.last = self.world.ask(self.request(**changes), ConsumerGroupHeartbeatReply)
        if self.last.error_code == 0 and self.last.member_epoch >= 0:
            self.take(self.last)
        return self.last.error_code

    def take(self, reply: ConsumerGroupHeartbeatReply) -> None:
        self.epoch = reply.member_epoch
        self.has_news = False
        if reply.assignment is not None:
            self.told = {
                (topic_id.rstrip(b".").decode(), partition)
                for topic_id, partitions in reply.assignment
                for partition in partitions
            }
            if self.lingers:
                self.owned |= self.told
            else:
                self.settle()

    def settle(self) -> None:
        """Owns exactly what it should."""
        self.has_news = self.has_news or self.owned != self.told
        self.owned = set(self.told)

    def subscribe(self, *topics: str) -> int:
        self.topics = topics
        return self.beat(subscribed_topic_names=topics)

    def leave(self, epoch: int = -1) -> int:
        code = self.beat(member_epoch=epoch)
        self.epoch = 0
        self.owned = set()
        self.told = set()
        return code


def converge(*consumers: Consumer) -> None:
    """Heartbeats of everyone until nothing changes."""
    for _ in range(20):
        before = [(consumer.epoch, set(consumer.owned), consumer.has_news) for consumer in consumers]
        for consumer in consumers:
            assert consumer.beat() == 0, (consumer.name, consumer.last)
        if before == [(consumer.epoch, consumer.owned, consumer.has_news) for consumer in consumers]:
            return
    raise AssertionError("the group does not settle")
