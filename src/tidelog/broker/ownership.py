"""Ownership: which broker leads a partition, coordinates a group or a transactional id, or is the controller.

Everything has one owner at a time, and an epoch that grows whenever the owner changes. Gateways use it to tell
clients where to connect, and the broker refuses requests for what another broker owns. `SoleOwnership` is for a
broker without others: it owns everything, always.

    NotOwner             retriable: the client looks up the owner again
    ├── NotLeader        6   another broker leads the partition
    ├── NotCoordinator  16   another broker coordinates the group or the transactional id
    └── NotController   41   another broker is the controller
    WrongEpoch      74, 75   the client's leader epoch is not ours
    PeerUnavailable     15   the owner, whom this broker asked, did not answer
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from tidelog.broker.sessions import Endpoint
from tidelog.errors import TidelogError
from tidelog.model import LeaderEpoch

NOBODY = -1


class Coordinated(Enum):
    """The things that have a coordinator."""

    GROUP = "group"
    TRANSACTIONAL_ID = "transactional id"


class Owner(NamedTuple):
    """`broker_id` is `NOBODY` while there is no owner."""

    broker_id: int
    epoch: int


class BrokerAddress(NamedTuple):
    """Where clients of one listener reach a broker."""

    broker_id: int
    host: str
    port: int
    rack: str | None = None


NO_ADDRESS = BrokerAddress(NOBODY, "", -1)


class NotOwner(TidelogError):
    retriable = True


class NotLeader(NotOwner):
    kafka_code = 6


class NotCoordinator(NotOwner):
    kafka_code = 16


class NotController(NotOwner):
    kafka_code = 41


class WrongEpoch(TidelogError):
    """The client's leader epoch is not ours."""

    def __init__(self, epoch: int, ours: int) -> None:
        super().__init__(f"the request has leader epoch {epoch}, ours is {ours}")
        self.kafka_code = 75 if epoch > ours else 74  # type: ignore[misc]


class PeerUnavailable(TidelogError):
    """The other broker did not answer. It may have carried out the request."""

    kafka_code = 15  # COORDINATOR_NOT_AVAILABLE: clients look up the coordinator again, and retry
    retriable = True


def check_epoch(epoch: int, ours: LeaderEpoch) -> None:
    """Raises WrongEpoch unless the client's leader epoch is ours, or not given (-1)."""
    if 0 <= epoch != ours:
        raise WrongEpoch(epoch, ours)


class Ownership(ABC):
    """The ownership as one broker knows it. Answers come from memory, because every request checks them."""

    node_id: int
    """The id of this broker."""
    version: int
    """Grows with every change of ownership."""
    is_sole: bool
    """True if there is no other broker, so that nothing has to be checked."""
    drained: frozenset[int] = frozenset()
    """The brokers that an operator has drained, whether they are up or not: they get nothing to own."""

    @abstractmethod
    def brokers(self, listener: str) -> Sequence[BrokerAddress]:
        """All brokers that are up, with their addresses for clients of this listener."""

    @abstractmethod
    def controller(self) -> Owner: ...

    def controller_for_clients(self) -> int:
        """The broker to which clients send requests for the controller. While there is none, this broker: it refuses
        them, and the clients look again. Told that there is none, some clients would wait for minutes."""
        controller = self.controller().broker_id
        return self.node_id if controller == NOBODY else controller

    @abstractmethod
    def leader(self, topic_id: bytes, index: int) -> Owner: ...

    @abstractmethod
    def coordinator(self, kind: Coordinated, key: str) -> Owner: ...

    @abstractmethod
    def advertise(self, endpoint: Endpoint) -> None:
        """Publish an address at which clients reach this broker."""

    def address(self, broker_id: int, listener: str) -> BrokerAddress:
        """`NO_ADDRESS` if the broker is not up, or has no such listener."""
        return next((each for each in self.brokers(listener) if each.broker_id == broker_id), NO_ADDRESS)

    def check_leader(self, topic_id: bytes, index: int) -> LeaderEpoch:
        """The epoch at which this broker leads the partition; `NotLeader` if it does not."""
        leader = self.leader(topic_id, index)
        if leader.broker_id != self.node_id:
            raise NotLeader(f"broker {self.node_id} does not lead the partition; {_told(leader)}")
        return LeaderEpoch(leader.epoch)

    def check_coordinator(self, kind: Coordinated, key: str) -> None:
        owner = self.coordinator(kind, key)
        if owner.broker_id != self.node_id:
            raise NotCoordinator(f"broker {self.node_id} does not coordinate this {kind.value}; {_told(owner)}")

    def check_controller(self) -> None:
        owner = self.controller()
        if owner.broker_id != self.node_id:
            raise NotController(f"broker {self.node_id} is not the controller; {_told(owner)}")


def _told(owner: Owner) -> str:
    return "nobody does at the moment" if owner.broker_id == NOBODY else f"broker {owner.broker_id} does"


class SoleOwnership(Ownership):
    """The ownership of an only broker: it owns everything, at epoch 0."""

    version = 0
    is_sole = True

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self._me = Owner(node_id, 0)
        self._addresses: dict[str, tuple[BrokerAddress]] = {}

    def brokers(self, listener: str) -> Sequence[BrokerAddress]:
        return self._addresses.get(listener, ())

    def controller(self) -> Owner:
        return self._me

    def leader(self, topic_id: bytes, index: int) -> Owner:  # noqa: ARG002  (all are alike)
        return self._me

    def coordinator(self, kind: Coordinated, key: str) -> Owner:  # noqa: ARG002
        return self._me

    def advertise(self, endpoint: Endpoint) -> None:
        self._addresses[endpoint.name] = (BrokerAddress(self.node_id, endpoint.host, endpoint.port),)
