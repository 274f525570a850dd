"""`Session`: what the broker knows about a client while it is connected, independent of the protocol.

What only one protocol needs is in its gateway. Every request of a client comes with its session, so quotas will be
counted here, by principal and client id.
"""

from typing import NamedTuple

LONGEST_SOFTWARE = 128  # characters of a name or a version that are kept
PEER_CLIENT_ID = "tidelog-broker-"
"""How the client ids of brokers begin when they ask each other."""


class Principal(NamedTuple):
    """The user that a session acts for; printed as in Kafka: `User:ANONYMOUS`."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS = Principal("User", "ANONYMOUS")


class Endpoint(NamedTuple):
    """A listener by its name, and the address at which its clients reach this broker."""

    name: str
    host: str
    port: int


class Software(NamedTuple):
    """Name and version of the client software, as the client reports them; empty: not reported."""

    name: str
    version: str


class Session:
    """One client on one connection, in the event loop's thread."""

    __slots__ = ("client_id", "decided_at", "decisions", "listener", "peer", "principal", "software")

    def __init__(self, listener: Endpoint, peer: str = "", principal: Principal = ANONYMOUS) -> None:
        self.principal = principal
        self.listener = listener
        self.peer = peer
        """The client's address, without its port."""
        self.client_id: str | None = None
        """The client id of the last request."""
        self.software = Software("", "")
        self.decisions: dict[tuple[int, int, str], bool] = {}
        """Cached decisions of `Admission`: by operation, kind and name of the resource."""
        self.decided_at = -1
        """The version of the rules for these decisions."""

    @property
    def is_peer(self) -> bool:
        """The client says that it is a broker of the cluster."""
        return (self.client_id or "").startswith(PEER_CLIENT_ID)

    def introduce(self, name: str, version: str) -> None:
        """Set the client's software. A client may send any text, so only the first characters are kept."""
        self.software = Software(name[:LONGEST_SOFTWARE], version[:LONGEST_SOFTWARE])

    def __repr__(self) -> str:
        return f"<session of {self.principal} from {self.peer}, client id {self.client_id!r}>"
