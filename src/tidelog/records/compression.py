"""The five codecs of a record batch. Decompression never produces more bytes than its limit, whatever the data
claims."""

import mmap
from collections.abc import Callable
from enum import IntEnum
from struct import Struct

import cramjam

from tidelog.errors import CorruptBatch, UnsupportedCompression
from tidelog.records.batch import ReadBuffer, WriteBuffer

DEFAULT_LIMIT = 64 << 20

XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
XERIAL_HEADER_SIZE = len(_XERIAL_HEADER)
_XERIAL_BLOCK = 32 << 10
_INT32 = Struct(">i")
_FIRST_GUESS = 64 << 10


class Codec(IntEnum):
    """The value is the codec's id in a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def named(cls, name: str) -> "Codec":
        try:
            return cls[name.upper()]
        except KeyError:
            known = ", ".join(codec.name.lower() for codec in cls)
            raise UnsupportedCompression(f"unknown compression codec {name!r}; known are {known}") from None


def compress(codec: Codec, data: ReadBuffer, level: int | None = None) -> ReadBuffer:
    """`data` as one block that every Kafka client can read; at the given level of the codec, or at a default."""
    return _COMPRESS[codec](data, level)


def decompress(codec_id: int, data: ReadBuffer, limit: int = DEFAULT_LIMIT) -> ReadBuffer:
    """The block's content; CorruptBatch if the bytes are damaged or hold more than `limit` bytes."""
    expand = _DECOMPRESS.get(codec_id)
    if expand is None:
        raise UnsupportedCompression(f"unknown compression codec {codec_id}")
    try:
        return expand(data, limit)
    except cramjam.DecompressionError as error:
        name = Codec(codec_id).name.lower()
        raise CorruptBatch(
            f"the {name} data of the batch is damaged, or expands to more than the limit of {limit} bytes: {error}"
        ) from None


class Expander:
    """Decompresses one block after another into the same memory: allocating new memory would cost more than the use
    that is made of it."""

    _KEPT_BYTES = 1 << 20

    def __init__(self) -> None:
        self._room = memoryview(bytearray(0))

    def expand(
        self, codec_id: int, data: memoryview, *, content: int | None, most: int, limit: int
    ) -> ReadBuffer | None:
        """The content of a block, valid until the next call; None if it has, or may have, more than `limit` bytes.
        The block claims to hold `content` bytes, and cannot hold more than `most`. CorruptBatch if it is damaged."""
        if content is not None and content > limit:
            return None
        if codec_id == Codec.SNAPPY:
            return decompress(codec_id, data, limit)
        if content is not None:
            sizes = [content]
        else:
            guess = min(most, limit, max(_FIRST_GUESS, 8 * len(data)))
            sizes = [guess] if guess >= min(most, limit) else [guess, min(most, limit)]
        into = _INTO[codec_id]
        for size in sizes:
            room = self._of_size(size)
            try:
                return room[: into(data, room)]
            except cramjam.DecompressionError as error:
                reason = str(error)
        if content is None and limit < most:
            return None
        raise CorruptBatch(f"the {Codec(codec_id).name.lower()} data of the batch is damaged: {reason}")

    def _of_size(self, size: int) -> memoryview:
        if size > self._KEPT_BYTES:
            return memoryview(mmap.mmap(-1, size))  # the kernel allocates pages only when they are written to
        if size > len(self._room):
            self._room = memoryview(bytearray(min(self._KEPT_BYTES, 2 * size)))
        return self._room[:size]


def _bomb(codec_id: int, limit: int) -> CorruptBatch:
    name = Codec(codec_id).name.lower()
    return CorruptBatch(f"the {name} data of the batch expands to more than the limit of {limit} bytes")


def _no_compression(data: ReadBuffer, _level: int | None) -> ReadBuffer:
    return data


def _compress_gzip(data: ReadBuffer, level: int | None) -> bytes:
    # Kafka's -1 means the library's default, which is None for cramjam.
    return bytes(cramjam.gzip.compress(data, level=None if level == -1 else level))


def _compress_snappy(data: ReadBuffer, _level: int | None) -> bytes:
    # Xerial framing, which all decoders read, Java's included.
    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK]))
        parts += (_INT32.pack(len(block)), block)
    return b"".join(parts)


def _compress_lz4(data: ReadBuffer, level: int | None) -> bytes:
    # Java's decoder rejects linked blocks. Level 1 is LZ4's fast mode, six times as fast as cramjam's default.
    compressor = cramjam.lz4.Compressor(
        level=1 if level is None else level, content_checksum=False, block_linked=False
    )
    compressor.compress(bytes(data))  # the one call of cramjam that takes no other buffer
    return bytes(compressor.finish())


def _compress_zstd(data: ReadBuffer, level: int | None) -> bytes:
    return bytes(cramjam.zstd.compress(data, level=level))


def _plain(data: ReadBuffer, limit: int) -> ReadBuffer:
    if len(data) > limit:
        raise _bomb(Codec.NONE, limit)
    return data


def _decompress_snappy(data: ReadBuffer, limit: int) -> ReadBuffer:
    view = memoryview(data)
    if view[: len(XERIAL_MAGIC)] != XERIAL_MAGIC:
        return _snappy_block(view, 0, limit)
    parts: list[ReadBuffer] = []
    total, position = 0, len(_XERIAL_HEADER)
    while position < len(view):
        if position + 4 > len(view):
            raise CorruptBatch("the snappy data of the batch is damaged: a block length is cut off")
        (size,) = _INT32.unpack_from(view, position)
        position += 4
        if not 0 < size <= len(view) - position:
            raise CorruptBatch(f"the snappy data of the batch is damaged: block length {size}")
        part = _snappy_block(view[position : position + size], total, limit)
        total += len(part)
        parts.append(part)
        position += size
    return b"".join(parts)


def _snappy_block(block: memoryview, before: int, limit: int) -> ReadBuffer:
    size = cramjam.snappy.decompress_raw_len(block)
    if before + size > limit:
        raise _bomb(Codec.SNAPPY, limit)
    output = bytearray(size)
    written = cramjam.snappy.decompress_raw_into(block, output)
    if written != size:
        raise CorruptBatch(f"the snappy data of the batch is damaged: {written} of {size} bytes")
    return output


def _bounded(
    decompress_into: Callable[[ReadBuffer, WriteBuffer], int],
) -> Callable[[ReadBuffer, int], ReadBuffer]:
    """Data in these formats need not state its decompressed size: a buffer of a likely size is tried first, then one
    of the size of the limit. The library distinguishes a buffer that is too small from damaged data only by the text
    of its message, which may change, so in both cases the second buffer is tried. It is an anonymous mapping: the
    kernel allocates its pages only when they are written to."""

    def expand(data: ReadBuffer, limit: int) -> ReadBuffer:
        size = max(_FIRST_GUESS, 8 * len(data))
        if size < limit:
            output = bytearray(size)
            try:
                written = decompress_into(data, output)
                return bytes(memoryview(output)[:written])  # a copy, so that the larger buffer is freed
            except cramjam.DecompressionError:
                pass
        with mmap.mmap(-1, max(1, limit)) as room, memoryview(room)[:limit] as view:
            return bytes(view[: decompress_into(data, view)])

    return expand


_COMPRESS: dict[Codec, Callable[[ReadBuffer, int | None], ReadBuffer]] = {
    Codec.NONE: _no_compression,
    Codec.GZIP: _compress_gzip,
    Codec.SNAPPY: _compress_snappy,
    Codec.LZ4: _compress_lz4,
    Codec.ZSTD: _compress_zstd,
}
_INTO: dict[int, Callable[[ReadBuffer, WriteBuffer], int]] = {
    Codec.GZIP: cramjam.gzip.decompress_into,
    Codec.LZ4: cramjam.lz4.decompress_into,
    Codec.ZSTD: cramjam.zstd.decompress_into,
}
_DECOMPRESS: dict[int, Callable[[ReadBuffer, int], ReadBuffer]] = {
    Codec.NONE: _plain,
    Codec.SNAPPY: _decompress_snappy,
    **{codec_id: _bounded(into) for codec_id, into in _INTO.items()},
}
