"""Stores behind HTTP: what happens when they are slow, refuse, lose replies or go away; and that secrets stay in."""

import asyncio
import http.server
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from tests.support.object_server import BUCKET, ObjectServer, shared_server
from tidelog.errors import InvalidSettings, MissingExtra, StorageUnavailable
from tidelog.storage.shared.object_stores import opening
from tidelog.storage.shared.object_stores.opening import Patience, open_object_store
from tidelog.storage.shared.objects import ObjectMissing, ObjectStore

SHORT = Patience(connect_ms=500, request_ms=500, retries=0, total_ms=1_000)
USUAL = Patience(connect_ms=5_000, request_ms=20_000, retries=2, total_ms=30_000)


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with asyncio.timeout(100):
            await test()

    asyncio.run(whole())


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectServer]:
    """A server that the tests of this file stop and start."""
    with ObjectServer(tmp_path_factory.mktemp("s3")) as server:
        yield server


def test_a_server_that_is_killed_fails_calls_and_is_used_again_when_it_is_back(own_server: ObjectServer) -> None:
    async def test() -> None:
        objects = open_object_store(own_server.new_url(), own_server.options, USUAL)
        await objects.put("b/before", [b"content"])
        own_server.kill()
        with pytest.raises(StorageUnavailable, match="b/during: the object store is not available"):
            await objects.put("b/during", [b"content"])
        with pytest.raises(StorageUnavailable, match="not available"):
            await objects.read("b/before", [(0, 7)])
        with pytest.raises(StorageUnavailable, match="not available"):
            _ = [each async for each in objects.list("b/")]
        with pytest.raises(StorageUnavailable, match="not available"):
            await objects.remove(["b/before"])
        own_server.start()
        assert await objects.read("b/before", [(0, 7)]) == [b"content"]
        await objects.put("b/after", [b"content"])
        assert [each.key async for each in objects.list("b/")] == ["b/after", "b/before"]

    run(test)


def test_a_server_that_hangs_fails_calls_in_time(own_server: ObjectServer) -> None:
    async def test() -> None:
        url = own_server.new_url()
        objects = open_object_store(url, own_server.options, SHORT)
        os.kill(own_server.pid, signal.SIGSTOP)
        try:
            for call in (
                lambda: objects.put("b/1", [b"content"]),
                lambda: objects.read("b/1", [(0, 1)]),
                lambda: objects.read_up_to("b/1", 0, 1),
                lambda: objects.remove(["b/1"]),
            ):
                with pytest.raises(StorageUnavailable, match="no answer in time"):
                    await call()
        finally:
            os.kill(own_server.pid, signal.SIGCONT)
        patient = open_object_store(url, own_server.options, USUAL)
        await patient.put("b/2", [b"content"])
        # What was given up may be there nevertheless.
        assert {"b/2"} <= {each.key async for each in patient.list("b/")} <= {"b/1", "b/2"}

    run(test)


def test_a_server_that_never_answers_is_given_up() -> None:
    async def test() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
            objects = open_object_store("s3://bucket/x", with_keys(endpoint), SHORT)
            with pytest.raises(StorageUnavailable, match=r"s3://bucket/x/b/1: .* no answer in time"):
                await objects.put("b/1", [b"content"])

    run(test)


def test_a_cancelled_upload_does_not_disturb_the_store() -> None:
    async def test() -> None:
        server = shared_server()
        objects = open_object_store(server.new_url(), server.options, USUAL)
        began = asyncio.Event()

        async def parts() -> AsyncIterator[bytes]:
            yield bytes(9 << 20)
            began.set()
            await asyncio.Event().wait()

        uploads = [
            asyncio.create_task(objects.put_stream("s/1", parts())),
            asyncio.create_task(objects.put("b/1", [bytes(4 << 20)])),
        ]
        await began.wait()
        for upload in uploads:
            upload.cancel()
        await asyncio.wait(uploads)
        assert uploads[0].cancelled()
        await objects.put("b/2", [b"content"])
        assert "s/1" not in [each.key async for each in objects.list("")]

    run(test)


def with_keys(endpoint: str) -> dict[str, str]:
    return {
        "endpoint": endpoint,
        "region": "us-east-1",
        "access_key_id": "AKIDEXAMPLE",
        "secret_access_key": "wJalrXUtnFEMI",
    }


class Scripted(http.server.BaseHTTPRequestHandler):
    """Answers each request with the next status of a script."""

    script: list[tuple[int, bytes]]
    requests: list[str]
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.requests.append(self.command)
        status, body = self.script.pop(0)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", '"1"')
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_GET = do_POST = do_DELETE = answer  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def scripted() -> Iterator[tuple[type[Scripted], str]]:
    handler = type("Handler", (Scripted,), {"script": [], "requests": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield handler, f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def error_body(code: str, more: str = "") -> bytes:
    return f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{more}</Message></Error>".encode()


def test_a_busy_store_is_asked_again_a_bounded_number_of_times(scripted: tuple[type[Scripted], str]) -> None:
    handler, endpoint = scripted
    busy = (503, error_body("SlowDown"))
    objects = open_object_store("s3://bucket/x", with_keys(endpoint), USUAL)

    async def test() -> None:
        handler.script[:] = [busy, busy, (200, b"")]
        await objects.put("b/1", [b"content"])
        assert handler.requests == ["PUT"] * 3
        handler.script[:] = [busy] * 10
        with pytest.raises(StorageUnavailable, match=r"b/2: .*503 Service Unavailable, SlowDown"):
            await objects.put("b/2", [b"content"])
        assert handler.requests == ["PUT"] * 6

    run(test)


def test_a_put_that_is_stored_although_the_store_said_otherwise_is_not_taken_for_done(
    scripted: tuple[type[Scripted], str],
) -> None:
    """Its repetition finds the key in use. The caller takes another key, and this object becomes garbage."""
    handler, endpoint = scripted
    objects = open_object_store("s3://bucket/x", with_keys(endpoint), USUAL)

    async def test() -> None:
        handler.script[:] = [(500, error_body("InternalError")), (412, error_body("PreconditionFailed"))]
        with pytest.raises(StorageUnavailable, match="there is an object of this key already"):
            await objects.put("b/1", [b"content"])

    run(test)


def test_endpoint_and_credentials_come_from_the_environment_too(monkeypatch: pytest.MonkeyPatch) -> None:
    server = shared_server()
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", server.access_key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", server.secret_access_key)

    async def test() -> None:
        objects = open_object_store(server.new_url(), patience=USUAL)
        await objects.put("b/1", [b"content"])
        assert await objects.read("b/1", [(0, 7)]) == [b"content"]

    run(test)


def test_a_store_without_conditional_puts_is_used_without_them() -> None:
    async def test() -> None:
        server = shared_server()
        objects = open_object_store(server.new_url(), {**server.options, "conditional_put": "disabled"}, USUAL)
        for key in ("b/1", "b/2"):
            await objects.put(key, [b"content"])
        assert await objects.read("b/1", [(0, 7)]) == [b"content"]

    run(test)


def test_a_missing_bucket_is_not_taken_for_a_missing_object() -> None:
    async def test() -> None:
        server = shared_server()
        objects = open_object_store("s3://no-such-bucket/x", server.options, USUAL)
        with pytest.raises(StorageUnavailable, match="s3://no-such-bucket/x: there is no such bucket"):
            await objects.read("b/1", [(0, 1)])

    run(test)


def test_wrong_credentials_are_told_without_telling_them() -> None:
    async def test() -> None:
        server = shared_server()
        wrong = {**server.options, "secret_access_key": "very-secret"}
        objects = open_object_store(server.new_url(), wrong, USUAL)
        with pytest.raises(StorageUnavailable, match=r"access denied .*403.*: check the credentials") as caught:
            await objects.put("b/1", [b"content"])
        shown = "".join(traceback.format_exception(caught.value))
        assert "very-secret" not in shown
        assert server.access_key_id not in shown

    run(test)


def test_what_a_store_writes_into_its_errors_does_not_get_out(scripted: tuple[type[Scripted], str]) -> None:
    handler, endpoint = scripted
    objects = open_object_store("s3://bucket/x", with_keys(endpoint), SHORT)

    async def test() -> None:
        for status in (400, 403, 500, 301):
            handler.script[:] = [(status, error_body("SignatureDoesNotMatch", "StringToSign AKIDEXAMPLE"))] * 3
            with pytest.raises(StorageUnavailable) as caught:
                await objects.put("b/1", [b"content"])
            shown = "".join(traceback.format_exception(caught.value))
            assert "StringToSign" not in shown
            assert "AKIDEXAMPLE" not in shown
            assert "wJalrXUtnFEMI" not in shown
            assert caught.value.__context__ is None

    run(test)


@pytest.mark.parametrize(
    ("url", "options", "problem"),
    [
        ("ftp://host/x", {}, "unknown kind of object store 'ftp': use s3://, gs://, az:// or file:///"),
        ("/some/directory", {}, "unknown kind of object store ''"),
        ("s3:///prefix", {}, "names no bucket: write s3://bucket/prefix"),
        ("file://host/x", {}, "names no directory: write file:///path/of/directory"),
        ("file:///", {}, "names no directory"),
        ("file:///x", {"region": "secret"}, "an object store in files has no options: region"),
        ("s3://key:secret@bucket/x", {}, "credentials do not belong in the URL"),
        ("az://container/x?sig=secret", {}, "ends with its path"),
        ("s3://bucket", {"colour": "secret"}, "s3://bucket: there is no option of one of these names: colour"),
        ("az://container", {}, "az://container: the options do not fit together or are not complete"),
    ],
)
def test_a_wrong_url_or_option_is_told_clearly(url: str, options: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        open_object_store(url, options)
    assert problem in str(caught.value)
    assert "secret" not in "".join(traceback.format_exception(caught.value)).replace(repr(url), "")


def test_every_kind_of_store_can_be_opened_without_a_connection(tmp_path: Path) -> None:
    def place(url: str, **options: str) -> str:
        store: ObjectStore = open_object_store(url, options)
        return store.place

    assert place(f"s3://{BUCKET}/a/b/", region="us-east-1", endpoint="http://127.0.0.1:1") == f"s3://{BUCKET}/a/b"
    assert place("gs://bucket") == "gs://bucket"
    assert place("az://container/x", account_name="me", account_key="c2VjcmV0") == "az://container/x"
    assert place(f"file://{tmp_path}/a%20b") == f"file://{tmp_path}/a b"


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    monkeypatch.delitem(sys.modules, "tidelog.storage.shared.object_stores.cloud", raising=False)
    with pytest.raises(MissingExtra) as caught:
        open_object_store("s3://bucket")
    assert str(caught.value) == opening.INSTALL
    assert 'pip install "tidelog[cluster]"' in opening.INSTALL


def test_ranges_far_apart_are_fetched_together_and_one_failure_is_one_error() -> None:
    async def test() -> None:
        server = shared_server()
        objects = open_object_store(server.new_url(), server.options, USUAL)
        content = os.urandom(4 << 20)
        await objects.put("b/1", [content])
        ranges = [(at, 1000) for at in range(0, 4 << 20, 512 << 10)]
        assert await objects.read("b/1", ranges) == [content[at : at + size] for at, size in ranges]
        with pytest.raises(ObjectMissing, match="shorter than expected"):
            await objects.read("b/1", [*ranges, (5 << 20, 1), (7 << 20, 1)])

    run(test)
