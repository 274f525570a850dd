"""The table of APIs: key, name, versions, and the codecs, which are imported on first use.

Importing all of them at start would take longer than everything else that a broker does before its first request.
"""

from importlib import import_module
from typing import Any

from tidelog.wire.codec import MessageCodec
from tidelog.wire.generated.table import ROWS

_API_VERSIONS = 18


class Api:
    """One API. `request` and `response` are its codecs."""

    __slots__ = (
        "first_flexible_version",
        "key",
        "max_version",
        "min_version",
        "module",
        "name",
        "request",
        "response",
    )

    request: MessageCodec[Any]
    response: MessageCodec[Any]

    def __init__(
        self, key: int, name: str, module: str, min_version: int, max_version: int, first_flexible: int | None
    ) -> None:
        self.key = key
        self.name = name
        self.module = f"tidelog.wire.generated.{module}"
        self.min_version = min_version
        self.max_version = max_version
        self.first_flexible_version = first_flexible

    def __getattr__(self, attribute: str) -> MessageCodec[Any]:
        """Python calls this for `request` and `response` only while their slots are empty."""
        if attribute not in ("request", "response"):
            raise AttributeError(attribute)
        module = import_module(self.module)
        self.request = module.REQUEST
        self.response = module.RESPONSE
        return self.request if attribute == "request" else self.response

    def __repr__(self) -> str:
        return f"<{self.name} (API key {self.key}), v{self.min_version} to v{self.max_version}>"

    def supports(self, version: int) -> bool:
        return self.min_version <= version <= self.max_version

    def is_flexible(self, version: int) -> bool:
        return self.first_flexible_version is not None and version >= self.first_flexible_version

    def response_header_version(self, version: int) -> int:
        """An ApiVersions response always has header v0, so that every client can read it."""
        return 1 if self.is_flexible(version) and self.key != _API_VERSIONS else 0


APIS: dict[int, Api] = {row[0]: Api(*row) for row in ROWS}
BY_NAME: dict[str, Api] = {api.name: api for api in APIS.values()}

UNUSED: dict[int, str] = {
    71: "GetTelemetrySubscriptions",
    72: "PushTelemetry",
    76: "ShareGroupHeartbeat",
    78: "ShareFetch",
    79: "ShareAcknowledge",
    88: "StreamsGroupHeartbeat",
    91: "AlterShareGroupOffsets",
    92: "DeleteShareGroupOffsets",
}
"""APIs of Kafka's clients that no part of Tidelog uses: they have no codecs, only names for error messages."""
