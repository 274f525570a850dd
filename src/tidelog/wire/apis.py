"""The table of APIs: key, name, versions, and the codecs, which are imported when they are first needed.

Importing every module at start would cost more than everything else that a broker does before its first request.
"""

from importlib import import_module
from typing import Any

from tidelog.wire.codec import Codec
from tidelog.wire.generated.table import ROWS
from tidelog.wire.protocol_errors import UnsupportedApi

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

    request: Codec[Any]
    response: Codec[Any]

    def __init__(
        self, key: int, name: str, module: str, min_version: int, max_version: int, first_flexible: int | None
    ) -> None:
        self.key = key
        self.name = name
        self.module = f"tidelog.wire.generated.{module}"
        self.min_version = min_version
        self.max_version = max_version
        self.first_flexible_version = first_flexible

    def __getattr__(self, attribute: str) -> Codec[Any]:
        """Called for `request` and `response` only as long as their slots are empty."""
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

    def request_header_version(self, version: int) -> int:
        return 2 if self.is_flexible(version) else 1

    def response_header_version(self, version: int) -> int:
        """An ApiVersions response keeps the first header, so that a client can read it whatever it knows of us."""
        return 1 if self.is_flexible(version) and self.key != _API_VERSIONS else 0


APIS: dict[int, Api] = {row[0]: Api(*row) for row in ROWS}
BY_NAME: dict[str, Api] = {api.name: api for api in APIS.values()}


def api_of(key: int) -> Api:
    """The API of a key that a peer sent."""
    api = APIS.get(key)
    if api is None:
        raise UnsupportedApi(key)
    return api
