"""One message, at one version, as bytes and back."""

from collections.abc import Callable
from struct import error as StructError  # noqa: N812
from typing import Any, Generic, TypeAlias, TypeVar

from tidelog.wire.primitives import Buffer, Inserts, Records, Struct
from tidelog.wire.protocol_errors import LocalProtocolError, RemoteProtocolError, TooManyEntries, UnsupportedVersion

M = TypeVar("M", bound=Struct)

Reader: TypeAlias = Callable[[Any, int], tuple[M, int]]
Writer: TypeAlias = Callable[[bytearray, M, Inserts], None]


_CUT_SHORT = "cut short"


class MessageCodec(Generic[M]):
    """The readers and writers of one message, one of each per version from the lowest on."""

    __slots__ = ("holds_views", "max_version", "min_version", "name", "readers", "writers")

    def __init__(
        self,
        name: str,
        min_version: int,
        readers: tuple[Reader[M], ...],
        writers: tuple[Writer[M], ...],
        *,
        holds_views: bool,
    ) -> None:
        self.name = name
        self.min_version = min_version
        self.max_version = min_version + len(readers) - 1
        self.readers = readers
        self.writers = writers
        self.holds_views = holds_views  # decoded values are views of the buffer and keep it alive

    def decode(self, buf: Buffer, version: int, pos: int = 0) -> M:
        """The message from `pos` to the end of the buffer, which must hold nothing else."""
        message, end = self._read(buf, version, pos)
        if end != len(buf):
            raise self._refusal(version, f"{len(buf) - end} bytes too many" if end < len(buf) else _CUT_SHORT)
        return message

    def decode_prefix(self, buf: Buffer, version: int, pos: int = 0) -> tuple[M, int]:
        """The message and the position after it; other bytes may follow."""
        message, end = self._read(buf, version, pos)
        if end > len(buf):
            raise self._refusal(version, _CUT_SHORT)
        return message, end

    def _read(self, buf: Buffer, version: int, pos: int) -> tuple[M, int]:
        if not self.min_version <= version <= self.max_version:
            raise UnsupportedVersion(self.name, version, self.min_version, self.max_version)
        if not self.holds_views:
            buf = bytes(buf)
        elif type(buf) is not memoryview:
            buf = memoryview(buf)
        try:
            return self.readers[version - self.min_version](buf, pos)
        except (IndexError, StructError):
            raise self._refusal(version, _CUT_SHORT) from None
        except UnicodeDecodeError as error:
            raise self._refusal(version, f"a string is not UTF-8: {error.reason}") from None
        except TooManyEntries:
            raise
        except RemoteProtocolError as error:
            raise self._refusal(version, str(error)) from None

    def _refusal(self, version: int, fault: str) -> RemoteProtocolError:
        return RemoteProtocolError(f"{self.name} v{version}: {fault}")

    def encode_into(self, out: bytearray, message: M, version: int) -> Inserts:
        """Append the message without its records; these are returned, each with its position in the output."""
        if not self.min_version <= version <= self.max_version:
            raise LocalProtocolError(f"{self.name} v{version} does not exist")
        inserts: Inserts = []
        try:
            self.writers[version - self.min_version](out, message, inserts)
        except (StructError, UnicodeEncodeError, AttributeError, TypeError, LocalProtocolError) as error:
            raise LocalProtocolError(f"{self.name} v{version}: {error}") from error
        return inserts

    def encode(self, message: M, version: int) -> bytes:
        """The message in one piece, with its records. For embedded data and tests; the hot path does not copy."""
        out = bytearray()
        return b"".join(joinable(chunk) for chunk in interleave(out, self.encode_into(out, message, version)))


def interleave(out: bytearray, inserts: Inserts) -> list[Records]:
    """The output cut at the positions of the inserts, with the inserts in between; nothing is copied."""
    if not inserts:
        return [out]
    chunks: list[Records] = []
    view, start = memoryview(out), 0
    for position, records in inserts:
        if position > start:
            chunks.append(view[start:position])
        chunks.append(records)
        start = position
    if start < len(out):
        chunks.append(view[start:])
    return chunks


def joinable(chunk: Records) -> Buffer:
    if isinstance(chunk, bytes | bytearray | memoryview):
        return chunk
    raise LocalProtocolError(f"a {type(chunk).__name__} cannot be copied: it is not in memory")
