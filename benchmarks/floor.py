"""The cost of the machine itself, as a lower limit for a broker's figures.

`touch_memory`: on a virtual machine the first use of a page costs much more than later ones (15 us against 0.3), and
the program that gets the page first pays for it, also for its page cache. Touching as much memory as a benchmark will
write, and releasing it, keeps that cost out of the measurement.

`receive_and_write`: the least that a broker does with a batch: receive it and write it; if the batch must be durable,
also sync it, many batches together.
`send_file`: the least that a broker does for a reader that requests a megabyte at a time.
"""

import mmap
import os
import resource
import socket
import subprocess
import sys
import tempfile

_PAGE = 4096
_SENDER = """
import socket, sys
peer = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
data = bytes(int(sys.argv[2]))
for _ in range(int(sys.argv[3])):
    peer.sendall(data)
"""

_READER = """
import socket, sys
peer = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
size, room = int(sys.argv[2]), bytearray(1 << 20)
for _ in range(int(sys.argv[3])):
    peer.sendall(b"more")
    left = size
    while left:
        left -= peer.recv_into(room, min(left, len(room)))
"""


def touch_memory(size: int) -> None:
    with mmap.mmap(-1, size) as memory:
        for position in range(0, size, _PAGE):
            memory[position] = 1


def receive_and_write(directory: str, size: int, count: int, *, sync_every: int = 0) -> float:
    """CPU seconds per GB of a loop that only receives and writes, in this process; it syncs after `sync_every`
    batches."""
    with socket.create_server(("127.0.0.1", 0)) as server, tempfile.TemporaryFile(dir=directory) as file:
        port = server.getsockname()[1]
        sender = subprocess.Popen([sys.executable, "-c", _SENDER, str(port), str(size), str(count)])
        peer, _ = server.accept()
        room = memoryview(bytearray(size))
        before = resource.getrusage(resource.RUSAGE_SELF)
        for number in range(count):
            filled = 0
            while filled < size:
                received = peer.recv_into(room[filled:])
                assert received
                filled += received
            os.pwrite(file.fileno(), room, number * size)
            if sync_every and number % sync_every == sync_every - 1:
                os.fdatasync(file.fileno())
        after = resource.getrusage(resource.RUSAGE_SELF)
        peer.close()
        assert sender.wait(10) == 0
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds / (size * count) * 1e9


def send_file(directory: str, size: int, count: int) -> float:
    """CPU seconds per GB of a loop that only answers with `sendfile`, in this process."""
    with socket.create_server(("127.0.0.1", 0)) as server, tempfile.TemporaryFile(dir=directory) as file:
        block = os.urandom(size)
        for number in range(count):
            os.pwrite(file.fileno(), block, number * size)
        reader = subprocess.Popen(
            [sys.executable, "-c", _READER, str(server.getsockname()[1]), str(size), str(count)]
        )
        peer, _ = server.accept()
        before = resource.getrusage(resource.RUSAGE_SELF)
        for number in range(count):
            assert peer.recv(4) == b"more"
            sent = 0
            while sent < size:
                sent += os.sendfile(peer.fileno(), file.fileno(), number * size + sent, size - sent)
        after = resource.getrusage(resource.RUSAGE_SELF)
        peer.close()
        assert reader.wait(10) == 0
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds / (size * count) * 1e9
