"""Checks a compressed block without decompressing it: whether its frame is whole, and how much it holds.

A broker that cannot afford to decompress every batch can afford this: it reads a few header fields for each 64 KiB or
so. It detects data that is cut off, of another codec, or not compressed at all, but not damage inside a block. A raw
Snappy block has no frame, only the size of its content.

Data that both Kafka's own readers and `compression.decompress` can read is never refused. Data that only the latter
can read (several LZ4 frames in a row, linked LZ4 blocks) is refused, because Kafka's Java clients fail on it.
"""

from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from typing import NamedTuple

from tidelog.errors import InvalidRecord, UnsupportedCompression
from tidelog.records.batch import ReadBuffer
from tidelog.records.compression import XERIAL_HEADER_SIZE, XERIAL_MAGIC, Codec


class Frame(NamedTuple):
    content: int | None
    """The size of the content, if the frame states it."""
    most: int
    """An upper bound of the size of the content."""


def read_frame(codec_id: int, data: memoryview) -> Frame:
    """InvalidRecord if `data` is not one whole compressed block of this codec."""
    read = _READERS.get(codec_id)
    if read is None:
        raise UnsupportedCompression(f"unknown compression codec {codec_id}")
    try:
        return read(data)
    except (_NotWholeError, IndexError) as error:
        reason = str(error) if isinstance(error, _NotWholeError) else "it is cut off"
        raise InvalidRecord(f"the {Codec(codec_id).name.lower()} data of the batch is damaged: {reason}") from None


def frame_bound_in_python(codec_id: int, data: ReadBuffer, start: int, /) -> int:
    """An upper bound of the content of the block that begins at `start`, or its exact size if the frame states it; -1
    if `read_frame` refuses the block. The C version (`_walk.c`) returns -1 for frames of a rare form, too."""
    try:
        content, most = read_frame(codec_id, memoryview(data)[start:])
    except (InvalidRecord, UnsupportedCompression):
        return -1
    return most if content is None else content


frame_bound: Callable[[int, ReadBuffer, int], int]
try:
    from tidelog.records import _walk

    frame_bound = _walk.frame_bound
except ImportError:
    frame_bound = frame_bound_in_python


class _NotWholeError(Exception):
    pass


# gzip: a header, deflated data, and a trailer whose beginning can be found only by decompressing.

_GZIP_MAGIC = b"\x1f\x8b\x08"
_GZIP_RESERVED_FLAGS = 0xE0
_GZIP_SMALLEST = 10 + 2 + 8  # header, an empty block, trailer
_DEFLATE_RATIO = 1032


def _gzip(data: memoryview) -> Frame:
    if data[:3] != _GZIP_MAGIC or data[3] & _GZIP_RESERVED_FLAGS:
        raise _NotWholeError("it does not begin with a gzip header")
    if len(data) < _GZIP_SMALLEST:
        raise _NotWholeError("it is cut off")
    return Frame(None, len(data) * _DEFLATE_RATIO)


# Snappy: raw blocks that begin with the size of their content; one, or several in xerial framing.

_INT32 = Struct(">i")
_SNAPPY_RATIO = 64  # a copy of 64 bytes takes at least two


def _snappy(data: memoryview) -> Frame:
    if data[: len(XERIAL_MAGIC)] != XERIAL_MAGIC:
        content = _snappy_block(data)
        return Frame(content, content)
    position, total, size = XERIAL_HEADER_SIZE, 0, len(data)
    if position >= size:
        raise _NotWholeError("it holds nothing")
    while position < size:
        if position + 4 > size:
            raise _NotWholeError("a block length is cut off")
        (length,) = _INT32.unpack_from(data, position)
        position += 4
        if not 0 < length <= size - position:
            raise _NotWholeError(f"block length {length} with {size - position} bytes left")
        total += _snappy_block(data[position : position + length])
        position += length
    return Frame(total, total)


def _snappy_block(block: memoryview) -> int:
    content = 0
    for number in range(5):
        byte = block[number]
        content |= (byte & 0x7F) << 7 * number
        if byte < 0x80:
            break
    else:
        raise _NotWholeError("the size of its content is not a varint")
    if content > _SNAPPY_RATIO * len(block):
        raise _NotWholeError(f"{len(block)} bytes cannot hold {content}")
    return content


# LZ4: a frame of blocks with lengths, and an end mark.

_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_BLOCK_SIZES = {4: 64 << 10, 5: 256 << 10, 6: 1 << 20, 7: 4 << 20}
_LZ4_RATIO = 255
_UINT32_LE = Struct("<I")


class _Lz4Descriptor(NamedTuple):
    size: int  # of the descriptor
    block_checksums: bool
    end_size: int  # of the bytes after the end mark
    largest_block: int
    content: int | None


def _lz4(data: memoryview) -> Frame:
    if data[:4] != _LZ4_MAGIC:
        raise _NotWholeError("it does not begin with an LZ4 frame")
    flags = data[4]
    descriptor = _lz4_descriptor(data[4 : 7 + (flags & 0x08)].tobytes())
    position, size, most = 4 + descriptor.size, len(data), 0
    while True:
        if position + 4 > size:
            raise _NotWholeError("it ends without an end mark")
        (length,) = _UINT32_LE.unpack_from(data, position)
        position += 4
        if length == 0:
            break
        is_stored = length >> 31
        length &= 0x7FFF_FFFF
        if length > descriptor.largest_block:
            raise _NotWholeError(f"a block has {length} bytes; at most {descriptor.largest_block} are allowed")
        most += length if is_stored else min(descriptor.largest_block, length * _LZ4_RATIO)
        position += length + 4 * descriptor.block_checksums
    if position + descriptor.end_size != size:
        raise _NotWholeError("it does not end where the batch does")
    if descriptor.content is not None and descriptor.content > most:
        raise _NotWholeError(f"its blocks cannot hold {descriptor.content} bytes")
    return Frame(descriptor.content, most)


@lru_cache(512)
def _lz4_descriptor(descriptor: bytes) -> _Lz4Descriptor:
    """Flags, block size, content size if there is one, and their checksum. Most clients always send the same
    bytes."""
    flags, block = descriptor[0], descriptor[1]
    if flags >> 6 != 1 or flags & 0x03 or block & 0x8F:
        raise _NotWholeError("unknown flags in the header of its frame")
    if not flags & 0x20:
        raise _NotWholeError("its blocks are linked, which Kafka's clients cannot read")
    largest = _LZ4_BLOCK_SIZES.get(block >> 4)
    if largest is None:
        raise _NotWholeError("unknown block size in the header of its frame")
    size = 11 if flags & 0x08 else 3
    if len(descriptor) < size or descriptor[size - 1] != _xxh32_of_few(descriptor[: size - 1]) >> 8 & 0xFF:
        raise _NotWholeError("the checksum of its frame's header is wrong")
    content = int.from_bytes(descriptor[2:10], "little") if flags & 0x08 else None
    return _Lz4Descriptor(size, bool(flags & 0x10), 4 if flags & 0x04 else 0, largest, content)


_PRIME_1, _PRIME_2, _PRIME_3, _PRIME_4, _PRIME_5 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1
_MASK = 0xFFFF_FFFF


def _xxh32_of_few(data: bytes) -> int:
    """The xxHash of less than 16 bytes, with seed 0."""
    value = (_PRIME_5 + len(data)) & _MASK
    whole = len(data) & ~3
    for start in range(0, whole, 4):
        value = (value + int.from_bytes(data[start : start + 4], "little") * _PRIME_3) & _MASK
        value = (value << 17 | value >> 15) & _MASK
        value = value * _PRIME_4 & _MASK
    for byte in data[whole:]:
        value = (value + byte * _PRIME_5) & _MASK
        value = (value << 11 | value >> 21) & _MASK
        value = value * _PRIME_1 & _MASK
    value = (value ^ value >> 15) * _PRIME_2 & _MASK
    value = (value ^ value >> 13) * _PRIME_3 & _MASK
    return value ^ value >> 16


# zstd: one frame or several, each a header and blocks with lengths, the last one marked.

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPED = b"\x2a\x4d\x18"  # after a byte from 0x50 to 0x5f: a skippable frame, not data
_ZSTD_LARGEST_BLOCK = 128 << 10
_ZSTD_DICTIONARY_SIZES = (0, 1, 2, 4)
_RAW, _RUN, _RESERVED = 0, 1, 3


def _zstd(data: memoryview) -> Frame:
    position, size = 0, len(data)
    content: int | None = 0
    most = 0
    if not size:
        raise _NotWholeError("it holds nothing")
    while position < size:
        if data[position : position + 4] == _ZSTD_MAGIC:
            position, held, at_most = _zstd_frame(data, position + 4)
            content = None if content is None or held is None else content + held
            most += at_most
        elif data[position] >> 4 == 5 and data[position + 1 : position + 4] == _ZSTD_SKIPPED:
            position += 8 + int.from_bytes(data[position + 4 : position + 8], "little")
        else:
            raise _NotWholeError("it does not begin with a zstd frame")
    if position != size:
        raise _NotWholeError("it is cut off")
    return Frame(content, most)


def _zstd_frame(data: memoryview, position: int) -> tuple[int, int | None, int]:
    """For the frame after the magic at `position`: its end, the content size that it states, and an upper bound."""
    flags = data[position]
    if flags & 0x08:
        raise _NotWholeError("unknown flags in the header of its frame")
    is_single = flags >> 5 & 1
    position += 2 - is_single  # a window descriptor follows, unless the frame is a single segment
    dictionary = _ZSTD_DICTIONARY_SIZES[flags & 3]
    if any(data[position : position + dictionary]):
        raise _NotWholeError("it needs a dictionary")
    position += dictionary
    content: int | None = None
    width = (is_single, 2, 4, 8)[flags >> 6]
    if width:
        content = int.from_bytes(data[position : position + width], "little") + (256 if width == 2 else 0)
        position += width
    most = 0
    while True:
        header = data[position] | data[position + 1] << 8 | data[position + 2] << 16
        position += 3
        kind, length = header >> 1 & 3, header >> 3
        if kind == _RESERVED or length > _ZSTD_LARGEST_BLOCK:
            raise _NotWholeError(f"a block of type {kind} and {length} bytes is not allowed")
        most += length if kind in (_RAW, _RUN) else _ZSTD_LARGEST_BLOCK
        position += 1 if kind == _RUN else length
        if header & 1:
            break
    if content is not None and content > most:
        raise _NotWholeError(f"its blocks cannot hold {content} bytes")
    return position + (4 if flags & 0x04 else 0), content, most


_READERS: dict[int, Callable[[memoryview], Frame]] = {
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: _lz4,
    Codec.ZSTD: _zstd,
}
