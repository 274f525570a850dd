"""Records in a reply: whatever they are made of, and however fast the client reads, all of them arrive in order."""

import os
import random
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, cast

import pytest

from tidelog.gateways.kafka.api.fetch import StoredRecords
from tidelog.records.batch import ReadBuffer
from tidelog.storage.log import ReadResult


class Range:
    """A byte range of a file."""

    def __init__(self, file: IO[bytes], position: int, size: int) -> None:
        self._file = file
        self.position = position
        self.size = size

    def read(self, position: int | None = None, most: int | None = None) -> bytes:
        at = self.position if position is None else position
        left = self.position + self.size - at
        return os.pread(self._file.fileno(), left if most is None else min(left, most), at)

    def fileno(self) -> int:
        return self._file.fileno()


class Transport:
    """Keeps what the socket does not take, as that of asyncio does."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self.buffer = b""
        self.most = 0

    def get_write_buffer_size(self) -> int:
        return len(self.buffer)

    def write(self, data: ReadBuffer) -> None:
        self.buffer += data
        self.drain()
        self.most = max(self.most, len(self.buffer))

    def writelines(self, every: Iterable[ReadBuffer]) -> None:
        self.write(b"".join(every))

    def drain(self) -> None:
        while self.buffer:
            try:
                self.buffer = self.buffer[self._socket.send(self.buffer) :]
            except BlockingIOError:
                return


@pytest.fixture
def file(tmp_path: Path) -> Iterator[IO[bytes]]:
    path = tmp_path / "log"
    path.write_bytes(random.Random(1).randbytes(600_000))
    with path.open("rb") as opened:
        yield opened


@pytest.mark.parametrize("is_direct", [True, False])
@pytest.mark.parametrize("read_at_once", [1_000, 1 << 20])
@pytest.mark.parametrize("seed", range(8))
def test_all_of_it_arrives_in_order(seed: int, read_at_once: int, is_direct: bool, file: IO[bytes]) -> None:
    chance = random.Random(seed)
    made: list[Any] = []
    for _ in range(chance.randint(1, 12)):
        size = chance.choice([0, 1, 70, 20_000, 100_000, 300_000])
        content = chance.randbytes(size)
        kinds: list[Any] = [content, bytearray(content), memoryview(b"x" + content + b"y")[1:-1]]
        if size:
            kinds += [Range(file, chance.randint(0, 300_000), size)] * 2
        made.append(chance.choice(kinds))
    whole = b"header" + b"".join(part.read() if isinstance(part, Range) else bytes(part) for part in made)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 20_000)
        ours.setblocking(False)
        theirs.setblocking(False)
        transport = Transport(ours)
        records = StoredRecords(ReadResult(made, len(whole) - 6))
        out: list[Any] = [b"header"]
        got = b""
        is_written = False
        while len(got) < len(whole):
            if not is_written:
                is_written = records.write(cast("Any", transport), ours.fileno() if is_direct else None, out)
                if is_written:
                    transport.writelines(out)
                else:
                    assert not out
            while True:
                try:
                    got += theirs.recv(read_at_once)
                except BlockingIOError:
                    break
                if read_at_once < 10_000:
                    break
            transport.drain()
        assert is_written
        assert got == whole


def test_large_batches_in_memory_are_not_copied_into_the_transport() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 20_000)
        ours.setblocking(False)
        transport = Transport(ours)
        records = StoredRecords(ReadResult([bytes(1 << 20)] * 8, 8 << 20))
        sent = 0
        while not records.write(cast("Any", transport), ours.fileno(), []):
            while transport.buffer:
                sent += len(theirs.recv(1 << 16))
                transport.drain()
        assert sent > 7 << 20
        assert transport.most <= 256 << 10
