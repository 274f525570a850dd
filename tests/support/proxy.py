"""A TCP proxy that cuts connections: within requests, within replies, or before anything was forwarded."""

import random
import socket
import threading
from types import TracebackType
from typing import Self


class CuttingProxy:
    """Forwards to the port `target`, when that is set. While `cutting` is set, each connection ends after a random
    number of bytes: the last data may be forwarded in part, so that the broker gets half a request or the client half
    a reply."""

    def __init__(self, seed: int, *, bytes_from: int = 2_000, bytes_to: int = 40_000) -> None:
        self.target = 0
        self._random = random.Random(seed)
        self._range = (bytes_from, bytes_to)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.cutting = threading.Event()
        self.port: int = self._listener.getsockname()[1]
        self.cuts = 0
        self._closed = False
        self._threads: list[threading.Thread] = []
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._closed = True
        _shut(self._listener)
        self._acceptor.join(10)
        self._listener.close()
        self.cut_all()
        for thread in self._threads:
            thread.join(10)

    def cut_all(self) -> None:
        with self._lock:
            for each in self._open:
                _shut(each)

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                broker = socket.create_connection(("127.0.0.1", self.target), timeout=10)
            except OSError:
                client.close()
                continue
            broker.settimeout(None)
            budget = [self._random.randint(*self._range)]
            with self._lock:
                self._open |= {client, broker}
            for source, target in ((client, broker), (broker, client)):
                thread = threading.Thread(target=self._forward, args=(source, target, budget), daemon=True)
                self._threads.append(thread)
                thread.start()

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
