"""Cuts the bytes of a connection into frames: a length of four bytes, then that many bytes.

Made for `asyncio.BufferedProtocol`: the transport fills our buffer, and frames are returned as views of it. A frame
is moved only if it arrives in parts that do not fit into one buffer. Bytes are not overwritten while a view of them
exists: a buffer is reused only when there are no views of it; otherwise a new one is allocated. So a handler may keep
a frame, or a batch in it, for any time; this keeps the whole buffer alive.

A connection begins with a small buffer and gets larger ones as it fills them: an idle connection takes little memory,
and a busy one receives many frames at a time. Memory grows with the bytes received, not with the length that a frame
claims: at most `GROWTH` times as much, or two buffers.
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

    A `BufferedProtocol` returns `get_buffer()` from its method of that name; its `buffer_updated` calls `received`,
    which returns the frames without their lengths. After `FrameTooLarge` the start of the next frame is unknown:
    close the connection.
    """

    __slots__ = ("_buffer", "_filled", "_frame_end", "_size", "_start", "_view", "max_frame_size")

    def __init__(self, max_frame_size: int = DEFAULT_MAX_FRAME_SIZE) -> None:
        self.max_frame_size = max_frame_size
        self._size = BUFFER_SIZE  # size of the next buffer, unless a frame needs a larger one
        self._buffer = bytearray(BUFFER_SIZE)
        self._view = memoryview(self._buffer)
        self._start = 0  # start of the first incomplete frame, including its length
        self._filled = 0
        self._frame_end = 0  # where that frame will end; 0 while its length is not known

    @property
    def pending(self) -> int:
        """Number of bytes of an incomplete frame. At the end of the stream they are a frame that was cut short."""
        return self._filled - self._start

    def get_buffer(self, _sizehint: int = -1) -> memoryview:
        """Space to receive into; never empty."""
        capacity = len(self._buffer)
        room = capacity - self._filled
        if room == 0 or (room < capacity >> 2 and self._filled - self._start <= capacity >> 2):
            self._move()  # nearly full, and there is little to copy
        elif self._frame_end > capacity and (self._start > 0 or capacity < self._size):
            self._move()  # move a frame that does not fit while little of it has arrived; else fill this buffer first
        return self._view[self._filled :]

    def received(self, nbytes: int) -> list[memoryview]:
        """The frames that are complete after `nbytes` more bytes were received into the buffer."""
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
                    raise FrameTooLarge(f"a frame claims {length} bytes; the limit is {self.max_frame_size}")
                end = start + _LENGTH_SIZE + length
            if end > filled:
                break
            frames.append(view[start + _LENGTH_SIZE : end])
            start, end = end, 0
        self._start, self._frame_end = start, end
        return frames

    def feed(self, data: bytes | bytearray | memoryview) -> list[memoryview]:
        """Like `received`, for bytes that are in memory already; they are copied."""
        frames: list[memoryview] = []
        rest = memoryview(data)
        while rest:
            room = self.get_buffer()
            size = min(len(room), len(rest))
            room[:size] = rest[:size]
            del room  # this view would prevent the reuse of the buffer
            rest = rest[size:]
            frames += self.received(size)
        return frames

    def _move(self) -> None:
        """Move the pending bytes to a new buffer, or to the start of this one if it has no other views."""
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
    """True if there is no view of the buffer: a bytearray cannot be resized while there is one."""
    try:
        buffer.append(0)
    except BufferError:
        return False
    buffer.pop()
    return True
