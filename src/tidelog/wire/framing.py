"""Cuts the bytes of a connection into frames: a length of four bytes, then as many bytes.

Made for `asyncio.BufferedProtocol`: the transport fills our buffer, and frames come out as views of it. A frame is
moved only if it arrives in parts that do not fit into one buffer. Bytes that were handed out are not written again as
long as a view of them lives: a buffer is used anew only when nobody holds a view of it, else a fresh one takes its
place. So a handler may keep a frame, or a batch in it, for as long as it likes; it keeps the whole buffer alive.

A connection begins with a small buffer and gets larger ones as it fills them, so that an idle one costs little and a
busy one receives many frames at a time. Memory follows what was received, never what a length claims: at most
`GROWTH` times as much, or two buffers.
"""

from struct import Struct

from tidelog.wire.protocol_errors import FrameTooLarge

BUFFER_SIZE = 16 * 1024
LARGEST_BUFFER_SIZE = 512 * 1024
GROWTH = 4
DEFAULT_MAX_FRAME_SIZE = 100 * 1024 * 1024

_LENGTH = Struct(">i")
_LENGTH_SIZE = 4


class FrameReader:
    """The receiving side of one connection.

    `get_buffer` is what a `BufferedProtocol` returns from its method of that name; its `buffer_updated` calls
    `received` and gets the frames, without their lengths. After `FrameTooLarge` the stream has no known position any
    more: close the connection.
    """

    __slots__ = ("_buffer", "_filled", "_frame_end", "_size", "_start", "_view", "max_frame_size")

    def __init__(self, max_frame_size: int = DEFAULT_MAX_FRAME_SIZE) -> None:
        self.max_frame_size = max_frame_size
        self._size = BUFFER_SIZE  # of the next buffer, unless a frame needs a larger one
        self._buffer = bytearray(BUFFER_SIZE)
        self._view = memoryview(self._buffer)
        self._start = 0  # where the first frame starts that is not whole yet, its length included
        self._filled = 0
        self._frame_end = 0  # where that frame will end; 0 as long as its length is not known

    @property
    def pending(self) -> int:
        """Bytes of a frame that is not whole yet; at the end of a stream they are a frame cut short."""
        return self._filled - self._start

    def get_buffer(self, _sizehint: int = -1) -> memoryview:
        """Room to receive into; never empty."""
        capacity = len(self._buffer)
        room = capacity - self._filled
        if room == 0 or (room < capacity >> 2 and self._filled - self._start <= capacity >> 2):
            self._move()  # nearly full, and there is little to take along
        elif self._frame_end > capacity and (self._start > 0 or capacity < self._size):
            self._move()  # a frame that cannot end here moves while little of it is here; else it fills this up first
        return self._view[self._filled :]

    def received(self, nbytes: int) -> list[memoryview]:
        """The frames that became whole by the bytes just put into the room."""
        filled = self._filled = self._filled + nbytes
        if filled == len(self._buffer) and self._size < LARGEST_BUFFER_SIZE:
            self._size *= 2
        start, end, view = self._start, self._frame_end, self._view
        frames: list[memoryview] = []
        while True:
            if end == 0:
                if filled - start < _LENGTH_SIZE:
                    break
                length: int = _LENGTH.unpack_from(view, start)[0]
                if not 0 < length <= self.max_frame_size:
                    raise FrameTooLarge(f"a frame of {length} bytes; the limit is {self.max_frame_size}")
                end = start + _LENGTH_SIZE + length
            if end > filled:
                break
            frames.append(view[start + _LENGTH_SIZE : end])
            start, end = end, 0
        self._start, self._frame_end = start, end
        return frames

    def feed(self, data: bytes | bytearray | memoryview) -> list[memoryview]:
        """As `received`, for bytes that are in memory already: they are copied."""
        frames: list[memoryview] = []
        rest = memoryview(data)
        while rest:
            room = self.get_buffer()
            size = min(len(room), len(rest))
            room[:size] = rest[:size]
            del room  # it would keep the buffer from being used anew
            rest = rest[size:]
            frames += self.received(size)
        return frames

    def _move(self) -> None:
        """Goes on in another buffer, or at the start of this one, with the bytes that are pending."""
        pending = bytes(self._view[self._start : self._filled])
        frame_size = self._frame_end - self._start if self._frame_end else 0
        size = max(self._size, min(frame_size, GROWTH * len(pending)))
        self._view.release()
        if len(self._buffer) != size or not _is_free(self._buffer):
            self._buffer = bytearray(size)
        self._view = memoryview(self._buffer)
        self._view[: len(pending)] = pending
        self._start, self._filled, self._frame_end = 0, len(pending), frame_size


def _is_free(buffer: bytearray) -> bool:
    """Whether no view of the buffer lives: a bytearray refuses to change its size while one does."""
    try:
        buffer.append(0)
    except BufferError:
        return False
    buffer.pop()
    return True
