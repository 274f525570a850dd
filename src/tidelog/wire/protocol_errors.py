"""Whose fault it is that a message does not fit the protocol.

    TidelogError
    └── ProtocolError
        ├── RemoteProtocolError      the peer's: what it sent is not a message of the protocol
        │   ├── UnsupportedApi       an API key that is not in the table
        │   ├── UnsupportedVersion   a version of a known API that is not in its range
        │   └── FrameTooLarge        a frame over the limit, or of no length at all
        └── LocalProtocolError       ours: the version cannot carry this value, or the value is of the wrong type

Frames are cut before they are decoded, so after a fault in one the position of the next is known; except after a
`FrameTooLarge` of `framing`, which leaves nothing to do but to close the connection.
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

    def __init__(self, api_key: int) -> None:
        super().__init__(f"API key {api_key} is not known")
        self.api_key = api_key


class UnsupportedVersion(RemoteProtocolError):
    kafka_code = 35

    def __init__(self, api: str, version: int, low: int, high: int) -> None:
        super().__init__(f"{api} v{version} is not supported; v{low} to v{high} are")
        self.version = version


class FrameTooLarge(RemoteProtocolError):
    kafka_code = 42
