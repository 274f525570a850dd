"""The codecs: round trips, what other writers and readers of them do, and bytes that mean harm."""

import gzip
import struct

import cramjam
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidelog.errors import CorruptBatch, UnsupportedCompression
from tidelog.records.batch import ReadBuffer
from tidelog.records.compression import _DECOMPRESS, Codec, _bounded, compress, decompress

COMPRESSING = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
PYARROW_NAMES = {Codec.GZIP: "gzip", Codec.LZ4: "lz4", Codec.ZSTD: "zstd"}
XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
CONTENTS = {
    "nothing": b"",
    "one byte": b"x",
    "short": b"hello, hello, hello",
    "zeros": bytes(100_000),
    "over one xerial block": bytes(range(256)) * 300,
    "all values": bytes(range(256)),
}


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS.keys())
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_what_is_compressed_comes_back(codec: Codec, content: bytes, kind: type[bytes]) -> None:
    assert decompress(codec, kind(compress(codec, kind(content)))) == content


@settings(max_examples=60)
@given(st.sampled_from(list(Codec)), st.binary(max_size=3000), st.integers(1, 50))
def test_any_content_comes_back(codec: Codec, content: bytes, times: int) -> None:
    assert decompress(codec, compress(codec, content * times)) == content * times


@pytest.mark.parametrize(("name", "codec"), [("none", 0), ("gzip", 1), ("snappy", 2), ("lz4", 3), ("ZSTD", 4)])
def test_codecs_have_names_and_the_ids_of_the_format(name: str, codec: int) -> None:
    assert Codec.named(name) == codec


def test_an_unknown_codec_is_refused_by_name_and_by_id() -> None:
    with pytest.raises(UnsupportedCompression, match="known are none, gzip, snappy, lz4, zstd"):
        Codec.named("brotli")
    for codec_id in (-1, 5, 6, 7):
        with pytest.raises(UnsupportedCompression):
            decompress(codec_id, b"")


@pytest.mark.parametrize("codec", PYARROW_NAMES)
def test_an_independent_library_reads_what_we_write_and_writes_what_we_read(codec: Codec) -> None:
    content = bytes(range(256)) * 1000
    other = pa.Codec(PYARROW_NAMES[codec])
    assert other.decompress(bytes(compress(codec, content)), len(content)).to_pybytes() == content
    assert decompress(codec, other.compress(content).to_pybytes()) == content


def test_snappy_is_written_with_xerial_framing_in_blocks_of_32_kib() -> None:
    content = bytes(range(256)) * 300
    data = bytes(compress(Codec.SNAPPY, content))
    assert data.startswith(XERIAL_HEADER)
    blocks, position = [], len(XERIAL_HEADER)
    while position < len(data):
        (size,) = struct.unpack_from(">i", data, position)
        blocks.append(data[position + 4 : position + 4 + size])
        position += 4 + size
    sizes = [32 << 10, 32 << 10, len(content) - (64 << 10)]
    snappy = pa.Codec("snappy")
    parts = [snappy.decompress(block, size).to_pybytes() for block, size in zip(blocks, sizes, strict=True)]
    assert b"".join(parts) == content


def test_snappy_is_read_raw_and_in_xerial_blocks_of_any_size() -> None:
    snappy = pa.Codec("snappy")
    first, second = (snappy.compress(part).to_pybytes() for part in (b"a" * 100_000, b"b" * 3))
    assert decompress(Codec.SNAPPY, first) == b"a" * 100_000
    framed = XERIAL_HEADER + b"".join(struct.pack(">i", len(block)) + block for block in (first, second))
    assert decompress(Codec.SNAPPY, framed) == b"a" * 100_000 + b"bbb"
    assert decompress(Codec.SNAPPY, XERIAL_HEADER) == b""


@pytest.mark.parametrize(
    "tail",
    [b"\x00", b"\x00\x00\x00", struct.pack(">i", 0), struct.pack(">i", -1), struct.pack(">i", 5) + b"abcd"],
    ids=["one byte", "three bytes", "empty block", "negative block", "block cut off"],
)
def test_damaged_xerial_framing_is_refused(tail: bytes) -> None:
    with pytest.raises(CorruptBatch, match="snappy data of the batch is damaged"):
        decompress(Codec.SNAPPY, XERIAL_HEADER + tail)


def test_gzip_of_several_members_is_read_as_one() -> None:
    assert decompress(Codec.GZIP, gzip.compress(b"abc") + gzip.compress(b"") + gzip.compress(b"def")) == b"abcdef"


def test_many_small_gzip_members_take_time_in_proportion() -> None:
    assert decompress(Codec.GZIP, gzip.compress(b"x") * 50_000) == b"x" * 50_000


def test_lz4_frames_have_independent_blocks_and_no_content_checksum() -> None:
    """Kafka's Java reader refuses linked blocks."""
    for size in (0, 10, 1_000_000):
        data = bytes(compress(Codec.LZ4, bytes(size)))
        assert data[:4] == bytes.fromhex("04224d18")
        flags = data[4]
        assert flags >> 6 == 1, "the version of the frame format"
        assert flags >> 5 & 1 == 1, "independent blocks"
        assert flags >> 2 & 1 == 0, "no content checksum"
        assert flags & 1 == 0, "no dictionary"


@pytest.mark.parametrize("codec", COMPRESSING)
def test_a_bomb_is_refused_at_the_limit(codec: Codec) -> None:
    bomb = compress(codec, bytes(3_000_000))
    assert len(bomb) < 200_000
    for limit in (0, 1, 1000, 2_999_999):
        with pytest.raises(CorruptBatch, match=f"more than the limit of {limit} bytes"):
            decompress(codec, bomb, limit)
    assert len(decompress(codec, bomb, 3_000_000)) == 3_000_000


@pytest.mark.parametrize("codec", COMPRESSING)
def test_content_that_grows_far_over_the_first_guess_is_read(codec: Codec) -> None:
    """The guess is eight times the compressed size: zeros take several rounds."""
    assert decompress(codec, compress(codec, bytes(5_000_000))) == bytes(5_000_000)


def test_uncompressed_data_obeys_the_limit_too() -> None:
    assert decompress(Codec.NONE, b"1234", 4) == b"1234"
    with pytest.raises(CorruptBatch, match="limit of 3 bytes"):
        decompress(Codec.NONE, b"1234", 3)


def test_a_raw_snappy_block_that_claims_gigabytes_is_refused_before_they_are_allocated() -> None:
    with pytest.raises(CorruptBatch, match="limit"):
        decompress(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f" + b"\x00a")


def test_a_zstd_frame_that_claims_exabytes_is_refused() -> None:
    frame = bytes.fromhex("28b52ffd") + b"\xe0" + struct.pack("<Q", 2**60) + b"\x01\x00\x00"
    with pytest.raises(CorruptBatch):
        decompress(Codec.ZSTD, frame)


@pytest.mark.parametrize("codec", COMPRESSING)
def test_empty_data_is_refused(codec: Codec) -> None:
    with pytest.raises(CorruptBatch):
        decompress(codec, b"")


@pytest.mark.parametrize("codec", COMPRESSING)
def test_data_truncated_at_any_length_is_refused_or_shorter(codec: Codec) -> None:
    content = bytes(range(200))
    data = compress(codec, content)
    for size in range(len(data)):
        try:
            assert decompress(codec, data[:size]) != content
        except CorruptBatch:
            pass


@settings(max_examples=400)
@given(
    st.sampled_from(COMPRESSING),
    st.binary(max_size=300),
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_damaged_data_gives_content_or_corrupt_batch_and_never_anything_else(
    codec: Codec, content: bytes, damage: list[tuple[int, int]]
) -> None:
    data = bytearray(compress(codec, content))
    for position, byte in damage:
        data[position % len(data)] = byte
    for damaged in (bytes(data), bytes(data[: damage[0][0] % len(data)])):
        try:
            assert len(decompress(codec, damaged, 1 << 20)) <= 1 << 20
        except CorruptBatch:
            pass


@settings(max_examples=400)
@given(
    st.sampled_from(COMPRESSING),
    st.sampled_from([b"", XERIAL_HEADER, bytes.fromhex("04224d18"), bytes.fromhex("28b52ffd"), b"\x1f\x8b\x08\x00"]),
    st.binary(max_size=200),
)
def test_garbage_gives_content_or_corrupt_batch_and_never_anything_else(
    codec: Codec, start: bytes, garbage: bytes
) -> None:
    try:
        assert len(decompress(codec, start + garbage, 1 << 20)) <= 1 << 20
    except CorruptBatch:
        pass


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_a_large_block_is_read_whatever_the_library_says_of_a_small_buffer(
    codec: Codec, monkeypatch: pytest.MonkeyPatch
) -> None:
    into = getattr(cramjam, codec.name.lower()).decompress_into

    def in_other_words(data: ReadBuffer, output: ReadBuffer) -> int:
        try:
            return int(into(data, output))
        except cramjam.DecompressionError:
            raise cramjam.DecompressionError("out of room") from None

    monkeypatch.setitem(_DECOMPRESS, codec, _bounded(in_other_words))
    large = compress(codec, bytes(5_000_000))
    assert decompress(codec, large) == bytes(5_000_000)
    with pytest.raises(CorruptBatch, match="more than the limit of 4999999 bytes: out of room"):
        decompress(codec, large, 4_999_999)
