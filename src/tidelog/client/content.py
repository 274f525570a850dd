"""Converts values, keys, headers and timestamps of callers to those of records."""

import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TypeAlias

from tidelog.errors import InvalidInput, InvalidTimestamp
from tidelog.model import TimestampMs
from tidelog.records.record import Headers

Content: TypeAlias = bytes | bytearray | memoryview | str | None
"""Text is sent as UTF-8; None is null."""
AnyHeaders: TypeAlias = Mapping[str, Content] | Iterable[tuple[str, Content]]
Moment: TypeAlias = TimestampMs | datetime


def as_bytes(content: Content) -> bytes | None:
    if content is None or type(content) is bytes:
        return content
    if isinstance(content, str):
        return _utf8(content)
    if isinstance(content, bytes | bytearray | memoryview):
        return bytes(content)
    raise InvalidInput(f"a key or value must be bytes, str or None, not {type(content).__name__}")


def as_headers(headers: AnyHeaders) -> Headers:
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    checked = [(name, as_bytes(content)) for name, content in pairs]
    for name, _ in checked:
        _utf8(name)
    return checked


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"the text is not valid Unicode: {error.reason}") from None


def as_timestamp(moment: Moment | None) -> TimestampMs:
    """Milliseconds since 1970; now if None. A datetime without a time zone is local time, as always in Python."""
    if moment is None:
        return time.time_ns() // 1_000_000
    timestamp = round(moment.timestamp() * 1000) if isinstance(moment, datetime) else moment
    if not 0 <= timestamp < 1 << 63:
        raise InvalidTimestamp(f"a timestamp must be milliseconds since 1970, not {timestamp}")
    return timestamp
