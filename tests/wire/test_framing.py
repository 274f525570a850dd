"""Frames out of a stream, however it is cut."""

import random
import tracemalloc

import pytest

from tidelog.wire.framing import BUFFER_SIZE, FrameReader
from tidelog.wire.protocol_errors import FrameTooLarge


def framed(*payloads: bytes) -> bytes:
    return b"".join(len(payload).to_bytes(4, "big") + payload for payload in payloads)


def test_frames_come_out_whole_however_the_stream_is_cut() -> None:
    payloads = [b"a", b"bb" * 100, b"c" * 70_000, b"d"]
    stream = framed(*payloads)
    for step in (1, 3, 1000, BUFFER_SIZE, len(stream)):
        if step == 1:
            stream, payloads = framed(*payloads[:2]), payloads[:2]
        reader = FrameReader()
        frames = [bytes(frame) for at in range(0, len(stream), step) for frame in reader.feed(stream[at : at + step])]
        assert frames == payloads
        assert reader.pending == 0
        payloads = [b"a", b"bb" * 100, b"c" * 70_000, b"d"]
        stream = framed(*payloads)


def test_sizes_around_the_buffers_edges() -> None:
    sizes = [BUFFER_SIZE + delta for delta in range(-8, 9)] + [2 * BUFFER_SIZE + delta for delta in range(-5, 6)]
    payloads = [bytes([number]) * size for number, size in enumerate(sizes)]
    reader = FrameReader()
    assert [bytes(frame) for frame in reader.feed(framed(*payloads))] == payloads


def test_random_streams_with_frames_that_are_kept() -> None:
    """Kept frames keep their bytes: a buffer is not written again while a view of it lives."""
    rng = random.Random(1)
    for _ in range(10):
        sizes = [rng.choice((1, 10, 1000, 60_000, 65_532, 65_533, 300_000)) for _ in range(60)]
        payloads = [bytes([number]) * size for number, size in enumerate(sizes)]
        stream, at, seen = framed(*payloads), 0, 0
        reader = FrameReader()
        kept: list[tuple[bytes, memoryview]] = []
        while at < len(stream):
            step = rng.randint(1, 50_000)
            for frame in reader.feed(stream[at : at + step]):
                assert frame == payloads[seen]
                if rng.random() < 0.3:
                    kept.append((payloads[seen], frame))
                seen += 1
            at += step
        assert seen == len(payloads)
        assert all(frame == payload for payload, frame in kept)


def test_a_whole_frame_is_a_view_of_the_buffer_that_was_filled() -> None:
    reader = FrameReader()
    room = reader.get_buffer()
    room[:9] = framed(b"hello")
    (frame,) = reader.received(9)
    assert frame.obj is room.obj
    assert bytes(frame) == b"hello"


def test_a_buffer_that_nobody_holds_is_used_again() -> None:
    reader = FrameReader()
    first = reader.get_buffer().obj
    for _ in range(200):
        for frame in reader.feed(framed(b"x" * 1000)):
            del frame
    assert reader.get_buffer().obj is first


def test_the_room_is_never_empty() -> None:
    reader = FrameReader()
    reader.feed(framed(b"x" * (BUFFER_SIZE - 4)))
    assert len(reader.get_buffer()) > 0
    reader.feed(b"\x00\x00")
    assert reader.pending == 2


@pytest.mark.parametrize(
    "length", [b"\x00\x00\x00\x00", b"\xff\xff\xff\xff", b"\x80\x00\x00\x00", b"\x00\x00\x03\xe9"]
)
def test_frames_of_no_negative_or_too_great_length_are_refused(length: bytes) -> None:
    reader = FrameReader(max_frame_size=1000)
    with pytest.raises(FrameTooLarge):
        reader.feed(length)


def test_the_greatest_allowed_frame_is_accepted() -> None:
    reader = FrameReader(max_frame_size=1000)
    assert [len(frame) for frame in reader.feed(framed(b"x" * 1000))] == [1000]


def test_a_claimed_length_allocates_nothing_by_itself() -> None:
    tracemalloc.start()
    readers = [FrameReader() for _ in range(10)]
    for reader in readers:
        reader.feed((100 * 1024 * 1024).to_bytes(4, "big") + b"x" * 100)
        reader.get_buffer()
    assert tracemalloc.get_traced_memory()[1] < len(readers) * 5 * BUFFER_SIZE
    tracemalloc.stop()


def test_memory_follows_what_was_received() -> None:
    tracemalloc.start()
    reader = FrameReader()
    reader.feed((50_000_000).to_bytes(4, "big"))
    piece = b"x" * 50_000
    for received in range(1, 60):
        reader.feed(piece)
        assert tracemalloc.get_traced_memory()[0] < 5 * (received * len(piece) + BUFFER_SIZE)
    tracemalloc.stop()
