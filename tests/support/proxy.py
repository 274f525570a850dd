"""A TCP proxy that cuts connections: in the middle of requests, in the middle of replies, or with nothing sent on."""

import random
import socket
import threading
import time
from types import TracebackType
from typing import Self


class CuttingProxy:
    """Forwards to `port`. As long as `cutting` is set, each connection ends after a random number of bytes: what has
    been read may be forwarded in part, so that the broker gets half a request or the client half a reply."""

    def __init__(self, port: int, seed: int, *, bytes_from: int = 2_000, bytes_to: int = 60_000) -> None:
        self._target = port
        self._random = random.Random(seed)
        self._range = (bytes_from, bytes_to)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.cutting = threading.Event()
        self.port: int = self._listener.getsockname()[1]
        self.cuts = 0
        self._closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._closed = True
        self._listener.close()
        self.cut_all()

    def cut_all(self) -> None:
        with self._lock:
            for each in self._open:
                _shut(each)

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
                broker = socket.create_connection(("127.0.0.1", self._target), timeout=10)
            except OSError:
                time.sleep(0.01)
                continue
            broker.settimeout(None)
            budget = [self._random.randint(*self._range)]
            with self._lock:
                self._open |= {client, broker}
            for source, target in ((client, broker), (broker, client)):
                threading.Thread(target=self._forward, args=(source, target, budget), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket, budget: list[int]) -> None:
        try:
            while data := source.recv(16_384):
                if self.cutting.is_set():
                    budget[0] -= len(data)
                    if budget[0] < 0:
                        self.cuts += 1
                        target.sendall(data[: budget[0]] if -budget[0] < len(data) else b"")
                        break
                target.sendall(data)
        except OSError:
            pass
        finally:
            for each in (source, target):
                _shut(each)
            with self._lock:
                self._open -= {source, target}
            source.close()


def _shut(each: socket.socket) -> None:
    try:
        each.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
