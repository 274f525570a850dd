"""Requests and responses with their headers: the contents of whole frames.

    request header v1    api key int16, api version int16, correlation id int32, client id nullable string
    request header v2    the same (the client id is not compact), then tagged fields
    response header v0   correlation id int32
    response header v1   the same, then tagged fields

Frames to decode come without their length, as `framing` returns them; encoded chunks begin with it. Chunks are for
`writelines` or `sendmsg`: the records of a Fetch response are among them as they were passed in, never copied.
"""

from struct import Struct as Layout
from struct import error as StructError  # noqa: N812
from typing import Any, TypeAlias

from tidelog.wire.apis import APIS, UNUSED, Api
from tidelog.wire.codec import interleave
from tidelog.wire.primitives import Buffer, Records, Struct, new
from tidelog.wire.protocol_errors import (
    FrameTooLarge,
    LocalProtocolError,
    RemoteProtocolError,
    TooManyEntries,
    UnsupportedApi,
)
from tidelog.wire.reading import BUDGET, UNBOUNDED, skip_tagged_fields
from tidelog.wire.writing import put_nullable_string

Chunks: TypeAlias = list[Records]

MAX_STRUCTURED_SIZE = 8 * 1024 * 1024

_LENGTH = Layout(">i")
_CORRELATION_ID = Layout(">i")
_REQUEST_START = Layout(">hhih")
_REQUEST_HEAD = Layout(">ihhi")
_RESPONSE_HEAD = Layout(">ii")
_LENGTH_SIZE = 4
_MAX_LENGTH = 0x7FFFFFFF


class RequestHeader:
    """The header of a request. `body_at` is the position of the message in the frame."""

    __slots__ = ("api", "api_version", "body_at", "client_id", "correlation_id")

    api: Api
    api_version: int
    correlation_id: int
    client_id: str | None
    body_at: int

    def __repr__(self) -> str:
        return f"<{self.api.name} v{self.api_version} #{self.correlation_id} of {self.client_id!r}>"


def decode_request_header(frame: memoryview) -> RequestHeader:
    """The header of a request of any version of a known API.

    The version may be one that we do not support: an ApiVersions request of a future version must be answered, at
    version 0. Raises `UnsupportedApi` for an API key that is not in the table; clients must not send a key that
    ApiVersions does not list.
    """
    try:
        api_key, version, correlation_id, size = _REQUEST_START.unpack_from(frame, 0)
        api = APIS.get(api_key)
        if api is None:
            raise UnsupportedApi(api_key, UNUSED.get(api_key))
        pos = 10
        client_id = None
        if size >= 0:
            client_id = frame[10 : 10 + size].tobytes().decode()
            pos += size
        first_flexible = api.first_flexible_version
        if first_flexible is not None and version >= first_flexible:
            pos = skip_tagged_fields(frame, pos) if frame[pos] else pos + 1
    except (IndexError, StructError):
        raise RemoteProtocolError("the header of a request is cut short") from None
    except UnicodeDecodeError as error:
        raise RemoteProtocolError(f"the client id of a request is not UTF-8: {error.reason}") from None
    if pos > len(frame):
        raise RemoteProtocolError("the header of a request is cut short")
    header = new(RequestHeader)
    header.api = api
    header.api_version = version
    header.correlation_id = correlation_id
    header.client_id = client_id
    header.body_at = pos
    return header


def decode_request_body(header: RequestHeader, frame: memoryview) -> Any:  # noqa: ANN401  (one of the request classes)
    """The message of a request, without a limit on its entries. Raises `UnsupportedVersion`."""
    return decode_bounded_body(header, frame, UNBOUNDED)[0]


def decode_bounded_body(header: RequestHeader, frame: memoryview, max_entries: int) -> tuple[Any, int]:
    """The message, and the approximate number of entries in all its lists. Raises `TooManyEntries` if there are more
    than `max_entries`.

    The message's `bytes` and `records` are views of the frame and keep its buffer alive (see `framing`). As objects,
    structs take many times the memory of their bytes, so requests without `bytes` or `records` have a limit of their
    own. Bytes after the message are ignored, as by Kafka: librdkafka up to 2.16 sends three when it asks for the
    metadata of all topics.
    """
    codec = header.api.request
    if len(frame) > MAX_STRUCTURED_SIZE and not codec.holds_views:
        raise FrameTooLarge(f"{codec.name} of {len(frame)} bytes; the limit is {MAX_STRUCTURED_SIZE}")
    BUDGET.left = max_entries
    try:
        message, _ = codec.decode_prefix(frame, header.api_version, header.body_at)
        entries = max_entries - BUDGET.left
    except TooManyEntries:
        raise TooManyEntries(
            f"{codec.name} v{header.api_version}: more than {max_entries} entries; send several requests"
        ) from None
    finally:
        BUDGET.left = UNBOUNDED
    return message, entries


def encode_request(api: Api, version: int, correlation_id: int, client_id: str | None, message: Struct) -> Chunks:
    out = bytearray(_REQUEST_HEAD.pack(0, api.key, version, correlation_id))
    try:
        put_nullable_string(out, client_id)
    except (StructError, UnicodeEncodeError) as error:
        raise LocalProtocolError(f"the client id cannot be encoded: {error}") from error
    if api.is_flexible(version):
        out.append(0)
    return _framed(out, api.request.encode_into(out, message, version))


def encode_response(api: Api, version: int, correlation_id: int, message: Struct) -> Chunks:
    out = bytearray(_RESPONSE_HEAD.pack(0, correlation_id))
    if api.response_header_version(version):
        out.append(0)
    return _framed(out, api.response.encode_into(out, message, version))


def _framed(out: bytearray, inserts: list[tuple[int, Records]]) -> Chunks:
    length = len(out) - _LENGTH_SIZE
    for _, records in inserts:
        length += len(records)
    if length > _MAX_LENGTH:
        raise LocalProtocolError(f"a frame of {length} bytes is too large for its length field of 32 bits")
    _LENGTH.pack_into(out, 0, length)
    return interleave(out, inserts) if inserts else [out]


def response_correlation_id(frame: Buffer) -> int:
    """The correlation id of a response. It tells the client the request, and so the API and version to decode
    with."""
    if len(frame) < _CORRELATION_ID.size:
        raise RemoteProtocolError("the header of a response is cut short")
    correlation_id: int = _CORRELATION_ID.unpack_from(frame, 0)[0]
    return correlation_id


def decode_response(api: Api, version: int, frame: Buffer) -> Any:  # noqa: ANN401  (one of the response classes)
    """The message of a response; its header is skipped."""
    pos = _CORRELATION_ID.size
    if api.response_header_version(version):
        try:
            pos = skip_tagged_fields(memoryview(frame), pos)
        except IndexError:
            raise RemoteProtocolError("the header of a response is cut short") from None
    return api.response.decode(frame, version, pos)
