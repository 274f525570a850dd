"""`OtherBrokers`: what a broker of a cluster asks of the others. A broker that is alone has none of them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from tidelog.broker.coordination.transactions.messages import CommitOffsets, CommitOffsetsReply
from tidelog.model import Offset, TopicPartition
from tidelog.promise import Promise

if TYPE_CHECKING:
    from tidelog.broker.remote_transactions import Verification
    from tidelog.broker.topics import Topic


class OtherBrokers(Protocol):
    verification: "Verification"
    """Asks the coordinators of transactions."""

    async def refresh(self) -> None:
        """Learn what others have changed before this call. If they do not answer, the knowledge stays as it is."""

    async def forward(self, api: str, version: int, message: Any, *, to: int | None = None) -> Any:  # noqa: ANN401
        """The response of a broker, or of the controller, to a request that a client sent to this broker. What the
        controller changed is known here when this returns. Raises PeerUnavailable."""

    async def create_topic(self, name: str) -> None:
        """Let the controller create a topic with the defaults, and wait until it is known here."""

    async def leaders_assigned(self, topic: "Topic") -> None:
        """The logs of new partitions exist: wait, for a bounded time, until they have leaders."""

    def move_leaders(self, leaders: Mapping[tuple[bytes, int], int]) -> None:
        """Let brokers lead partitions (topic id, number), all or none. Raises NotController, UnknownBroker,
        InvalidInput."""

    async def drain(self, broker_id: int, is_drained: bool) -> None:
        """Let a broker give everything away and get nothing new, or take that back. Raises UnknownBroker,
        NoOtherBroker."""

    def committed(self, group: str, partition: TopicPartition) -> Offset | None:
        """The committed offset of a group for which retention waits, as its coordinator told it a few seconds ago;
        None if it has told nothing."""

    def commit_in_transaction(self, question: CommitOffsets) -> Promise[CommitOffsetsReply]:
        """Let the coordinator of the transaction take offsets of a group that this broker coordinates, and has just
        checked."""
