"""The proxy that makes databases and object stores fail: `tests.support.faulty_proxy`."""

import http.client
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.support.brokers import eventually
from tests.support.faulty_proxy import Fault, FaultyProxy


class Store(HTTPServer):
    """Remembers the bodies of the requests that it got."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.got: list[bytes] = []

    @property
    def port(self) -> int:
        return int(self.socket.getsockname()[1])


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        assert isinstance(self.server, Store)
        self.server.got.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def store() -> Iterator[Store]:
    with Store() as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def proxy(store: Store) -> Iterator[FaultyProxy]:
    with FaultyProxy(store.port, 1, http=True, delay_s=(0.1, 0.2)) as running:
        yield running


def put(proxy: FaultyProxy, body: bytes) -> int:
    """The status of the reply."""
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=30)
    try:
        connection.request("PUT", "/key", body)
        return connection.getresponse().status
    finally:
        connection.close()


def test_without_trouble_everything_is_forwarded(proxy: FaultyProxy, store: Store) -> None:
    bodies = [b"small", b"x" * 200_000]
    assert [put(proxy, body) for body in bodies] == [200, 200]
    assert store.got == bodies


@pytest.mark.parametrize(("fault", "arrives"), [(Fault.REPLY_LOST, True), (Fault.LOST, False), (Fault.LATE, True)])
def test_the_client_gets_no_reply(proxy: FaultyProxy, store: Store, fault: Fault, arrives: bool) -> None:
    proxy.trouble([fault], 1.0)
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        put(proxy, b"value")
    if arrives:
        assert eventually(lambda: store.got) == [b"value"]
    proxy.calm()
    assert put(proxy, b"next") == 200
    assert store.got == [b"value"] * arrives + [b"next"]
    assert proxy.met == {fault.name: 1}


def test_a_request_may_be_refused_or_slow(proxy: FaultyProxy, store: Store) -> None:
    proxy.trouble([Fault.REFUSED], 1.0)
    assert put(proxy, b"refused") == 503
    proxy.trouble([Fault.SLOW], 1.0)
    assert put(proxy, b"slow") == 200
    assert store.got == [b"slow"]


def test_all_connections_can_be_cut(proxy: FaultyProxy) -> None:
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=30) as client:
        client.sendall(b"PUT /key HTTP/1.1\r\nContent-Length: 1\r\n\r\nx")
        assert client.recv(100).startswith(b"HTTP/1.1 200")
        proxy.cut_all()
        try:
            while client.recv(100):
                pass
        except ConnectionResetError:
            pass
