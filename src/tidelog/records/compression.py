"""The five codecs of a record batch. Decompression never produces more than its limit, whatever the bytes claim."""

from collections.abc import Callable
from enum import IntEnum
from struct import Struct

import cramjam

from tidelog.errors import CorruptBatch, UnsupportedCompression
from tidelog.records.batch import ReadBuffer

DEFAULT_LIMIT = 64 << 20

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK = 32 << 10
_INT32 = Struct(">i")
_FIRST_GUESS = 64 << 10
_OVERFLOW = "whole buffer"  # what cramjam says when the output buffer is too small


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
    """`data` as one block that every Kafka client can read; at the codec's own level, or at a usual one."""
    return _COMPRESS[codec](data, level)


def decompress(codec_id: int, data: ReadBuffer, limit: int = DEFAULT_LIMIT) -> ReadBuffer:
    """The block's content; CorruptBatch if the bytes are damaged or hold more than `limit` bytes."""
    expand = _DECOMPRESS.get(codec_id)
    if expand is None:
        raise UnsupportedCompression(f"unknown compression codec {codec_id}")
    try:
        return expand(data, limit)
    except cramjam.DecompressionError as error:
        if _OVERFLOW in str(error):
            raise _bomb(codec_id, limit) from None
        name = Codec(codec_id).name.lower()
        raise CorruptBatch(f"the {name} data of the batch is damaged: {error}") from None


def _bomb(codec_id: int, limit: int) -> CorruptBatch:
    name = Codec(codec_id).name.lower()
    return CorruptBatch(f"the {name} data of the batch expands to more than the limit of {limit} bytes")


def _no_compression(data: ReadBuffer, _level: int | None) -> ReadBuffer:
    return data


def _compress_gzip(data: ReadBuffer, level: int | None) -> bytes:
    # Kafka's -1 leaves it to the library; cramjam says that with None.
    return bytes(cramjam.gzip.compress(data, level=None if level == -1 else level))


def _compress_snappy(data: ReadBuffer, _level: int | None) -> bytes:
    # Xerial framing, which Java's decoder and all others read.
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
    if view[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
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
    decompress_into: Callable[[ReadBuffer, bytearray], int],
) -> Callable[[ReadBuffer, int], ReadBuffer]:
    """These formats need not say how much they hold, so the buffer starts at a likely size and grows to the limit."""

    def expand(data: ReadBuffer, limit: int) -> ReadBuffer:
        size = min(limit, max(_FIRST_GUESS, 8 * len(data)))
        while True:
            output = bytearray(size)
            try:
                written = decompress_into(data, output)
                return bytes(memoryview(output)[:written])  # a copy, so that the guess is not kept
            except cramjam.DecompressionError as error:
                if _OVERFLOW not in str(error) or size == limit:
                    raise
            size = min(limit, 8 * size)

    return expand


_COMPRESS: dict[Codec, Callable[[ReadBuffer, int | None], ReadBuffer]] = {
    Codec.NONE: _no_compression,
    Codec.GZIP: _compress_gzip,
    Codec.SNAPPY: _compress_snappy,
    Codec.LZ4: _compress_lz4,
    Codec.ZSTD: _compress_zstd,
}
_DECOMPRESS: dict[int, Callable[[ReadBuffer, int], ReadBuffer]] = {
    Codec.NONE: _plain,
    Codec.GZIP: _bounded(cramjam.gzip.decompress_into),
    Codec.SNAPPY: _decompress_snappy,
    Codec.LZ4: _bounded(cramjam.lz4.decompress_into),
    Codec.ZSTD: _bounded(cramjam.zstd.decompress_into),
}
