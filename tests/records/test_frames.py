"""The frames of compressed data: what is whole passes, what is cut off or of another kind does not."""

import gzip
import random

import lz4.frame  # type: ignore[import-untyped]
import pytest
import snappy  # type: ignore[import-untyped]
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from tidelog.errors import CorruptBatch, InvalidRecord, UnsupportedCompression
from tidelog.records.compression import Codec, Expander, compress, decompress
from tidelog.records.frames import Frame, frame_bound, frame_bound_in_python, read_frame

CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
CHANCE = random.Random(7)
CONTENTS = {
    "little": b"a record",
    "text": b"the same words and the same words again " * 3000,
    "noise": CHANCE.randbytes(300_000),
    "zeros": bytes(3_000_000),
}


def frame(codec: Codec, data: bytes) -> Frame:
    return read_frame(codec, memoryview(data))


def assert_bounds_agree(codec: Codec, data: bytes) -> None:
    """The quick look, in C if it is there, says the same as the thorough one, or leaves it to that."""
    quick, thorough = frame_bound(codec, b"12" + data, 2), frame_bound_in_python(codec, b"12" + data, 2)
    assert quick in (thorough, -1)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS.keys())
def test_our_own_frames_are_whole_and_say_how_much_they_hold(codec: Codec, content: bytes) -> None:
    data = bytes(compress(codec, content))
    said, most = frame(codec, data)
    assert frame_bound(codec, b"batch header" + data, 12) == (most if said is None else said)
    assert said in (None, len(content))
    assert most >= len(content)


def _zstd_stream(content: bytes) -> bytes:
    """Without the size of the content, as producers that compress piece by piece write it."""
    compressor = zstandard.ZstdCompressor(write_checksum=True, write_content_size=False).compressobj()
    return compressor.compress(content) + compressor.flush()


OTHERS = [
    (Codec.GZIP, lambda content: gzip.compress(content) + gzip.compress(b"more")),
    (Codec.SNAPPY, snappy.compress),
    (Codec.LZ4, lambda content: lz4.frame.compress(content, block_linked=False)),
    (
        Codec.LZ4,
        lambda content: lz4.frame.compress(content, block_linked=False, store_size=False, block_checksum=True),
    ),
    (Codec.LZ4, lambda content: lz4.frame.compress(content, block_linked=False, content_checksum=True, block_size=7)),
    (Codec.ZSTD, lambda content: zstandard.compress(content, 19)),
    (Codec.ZSTD, _zstd_stream),
    (Codec.ZSTD, lambda content: zstandard.compress(content) + _zstd_stream(b"more")),
    (Codec.ZSTD, lambda content: b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc" + zstandard.compress(content)),
]


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS.keys())
@pytest.mark.parametrize("number", range(len(OTHERS)))
def test_frames_of_other_libraries_are_whole(number: int, content: bytes) -> None:
    codec, made = OTHERS[number]
    said, most = frame(codec, made(content))
    assert_bounds_agree(codec, made(content))
    assert said is None or said == len(content)
    assert most >= len(content)


@pytest.mark.parametrize(
    "data",
    [
        lz4.frame.compress(b"content" * 30_000, block_linked=True),
        bytes(compress(Codec.LZ4, b"one")) + bytes(compress(Codec.LZ4, b"two")),
    ],
    ids=["linked blocks", "two frames"],
)
def test_lz4_that_kafkas_java_clients_cannot_read_is_refused(data: bytes) -> None:
    assert decompress(Codec.LZ4, data)
    with pytest.raises(InvalidRecord, match="lz4"):
        frame(Codec.LZ4, data)
    assert frame_bound(Codec.LZ4, data, 0) == -1


@pytest.mark.parametrize("codec", [Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_frame_that_is_cut_off_anywhere_or_goes_on_is_refused(codec: Codec) -> None:
    whole = bytes(compress(codec, b"the same words and the same words again " * 20))
    for end in range(len(whole)):
        with pytest.raises(InvalidRecord, match=codec.name.lower()):
            frame(codec, whole[:end])
        assert frame_bound(codec, whole[:end], 0) == -1
    with pytest.raises(InvalidRecord):
        frame(codec, whole + b"\x00")


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
@pytest.mark.parametrize(
    "data", [b"", b"\x00", b"\xff" * 40, b"no frame of any kind, but plain text that goes on a bit"]
)
def test_what_is_no_frame_is_refused(codec: Codec, data: bytes) -> None:
    with pytest.raises(InvalidRecord, match="damaged"):
        frame(codec, data)


@pytest.mark.parametrize("data", [b"", b"\xff" * 40, b"\xff\xff\x03" + b"too few bytes"])
def test_a_raw_snappy_block_has_only_its_size_to_tell(data: bytes) -> None:
    with pytest.raises(InvalidRecord, match="damaged"):
        frame(Codec.SNAPPY, data)


def test_a_dictionary_is_refused_for_no_consumer_has_it() -> None:
    dictionary = zstandard.ZstdCompressionDict(b"the same words and the same words again " * 50)
    made = zstandard.ZstdCompressor(dict_data=dictionary).compress(b"the same words")
    with_id = bytes([*made[:4], made[4] | 1, 7, *made[5:]])
    with pytest.raises(InvalidRecord, match="dictionary"):
        frame(Codec.ZSTD, with_id)


@settings(max_examples=500)
@given(st.sampled_from(CODECS), st.binary(max_size=40), st.integers(0, 30))
def test_garbage_behind_a_good_beginning_is_judged_alike(codec: Codec, garbage: bytes, kept: int) -> None:
    assert_bounds_agree(codec, bytes(compress(codec, b"content"))[:kept] + garbage)


def test_a_codec_that_there_is_not() -> None:
    assert frame_bound(5, b"", 0) == frame_bound_in_python(5, b"", 0) == -1
    with pytest.raises(UnsupportedCompression):
        read_frame(5, memoryview(b""))


@settings(max_examples=600)
@given(
    st.sampled_from(CODECS),
    st.sampled_from(["little", "text"]),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 255)), max_size=3),
    st.integers(0, 4),
)
def test_what_decompresses_is_a_whole_frame_that_tells_the_truth(
    codec: Codec, content: str, changes: list[tuple[int, int]], cut: int
) -> None:
    data = bytearray(compress(codec, CONTENTS[content][:2000]))
    for position, value in changes:
        data[position % len(data)] = value
    data = data[: len(data) - cut]
    assert_bounds_agree(codec, bytes(data))
    try:
        held = decompress(codec, data)
    except CorruptBatch:
        return
    said, most = frame(codec, bytes(data))
    assert said in (None, len(held))
    assert most >= len(held)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS.keys())
def test_an_expander_gives_what_decompression_gives(codec: Codec, content: bytes) -> None:
    expander = Expander()
    data = memoryview(bytes(compress(codec, content)))
    said, most = read_frame(codec, data)
    for _ in range(2):
        held = expander.expand(codec, data, content=said, most=most, limit=1 << 26)
        assert held is not None
        assert bytes(held) == content
    assert expander.expand(codec, data, content=said, most=most, limit=len(content) - 1) is None


@pytest.mark.parametrize("codec", CODECS)
def test_an_expander_refuses_damage(codec: Codec) -> None:
    data = bytearray(compress(codec, CONTENTS["text"]))
    for position in range(40, len(data), 7):
        data[position] ^= 0xA5
    with pytest.raises((CorruptBatch, InvalidRecord)):
        expanded(codec, memoryview(bytes(data)))


def expanded(codec: Codec, data: memoryview) -> object:
    said, most = read_frame(codec, data)
    return Expander().expand(codec, data, content=said, most=most, limit=1 << 26)
