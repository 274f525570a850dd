"""Errors of the protocol, by fault: the peer's or ours.

    TidelogError
    └── ProtocolError
        ├── RemoteProtocolError      the peer's fault: its bytes are not a message of the protocol
        │   ├── UnsupportedApi       an API key that is not in the table, or an API that is not offered
        │   ├── UnsupportedVersion   a version of a known API that is not in its range
        │   ├── FrameTooLarge        the length of a frame is over the limit, zero or negative
        │   └── TooManyEntries       all lists of a request together have more entries than the limit
        └── LocalProtocolError       our fault: the version cannot carry a value, or a value has the wrong type

Frames are cut before they are decoded, so after an error in one frame the position of the next is known. The
exception is a `FrameTooLarge` raised by `framing`: close the connection.
"""

from tidelog.errors import TidelogError


class ProtocolError(TidelogError):
    pass


class RemoteProtocolError(ProtocolError):
    kafka_code = 42


class LocalProtocolError(ProtocolError):
    pass


class UnsupportedApi(RemoteProtocolError):
    kafka_code = 35

    def __init__(self, api_key: int, name: str | None = None) -> None:
        super().__init__(f"unknown API key {api_key}" if name is None else f"{name} is not offered")
        self.api_key = api_key


class UnsupportedVersion(RemoteProtocolError):
    kafka_code = 35

    def __init__(self, api: str, version: int, low: int, high: int) -> None:
        super().__init__(f"{api} v{version} is not supported; v{low} to v{high} are")
        self.version = version


class FrameTooLarge(RemoteProtocolError):
    kafka_code = 42


class TooManyEntries(RemoteProtocolError):
    kafka_code = 42
