"""A client in a separate process, which may die at any time, as applications do. The events that it recorded until
then are in the history, and it is restarted. librdkafka itself ends some processes: an assertion in its transactions
fails now and then when connections are cut. Leaks of libraries stay in these processes.

python -m tests.torture.apart ARGUMENTS (of the client, in JSON); it stops at the end of its input
"""

import faulthandler
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from importlib import import_module
from typing import IO, Any, BinaryIO, cast

from tests.torture.clients import Client
from tests.torture.history import Event, History

_ASSERTION = re.compile(r"rdkafka_\w+\.c:\d+: \w+: Assertion")


class Apart:
    """A `Client` that can be killed."""

    def __init__(
        self, kind: type[Client], name: str, bootstrap: str, history: History, seed: int, **more: object
    ) -> None:
        self.name = name
        self.error: str | None = None
        self.deaths = 0  # not caused by the test
        self._history = history
        self._arguments = {
            "kind": [kind.__module__, kind.__name__],
            "name": name,
            "bootstrap": bootstrap,
            "seed": seed,
            **more,
        }
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None
        self._stopping = False
        self._killed = False

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        with self._lock:
            self._stopping = True
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.close()

    def join(self, seconds: float) -> bool:
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def kill(self) -> None:
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                self._killed = True
                self._process.kill()

    @property
    def stack(self) -> str:
        """The current stack of the client, for error messages."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                return "gone"
            self._process.send_signal(signal.SIGUSR1)
            time.sleep(1)
            return self._last_words()

    def _run(self) -> None:
        life = 0
        while self.error is None:
            with tempfile.TemporaryFile() as self._said:
                process = self._begin(life)
                if process is None:
                    return
                with process:
                    self._write_down(cast("BinaryIO", process.stdout))
                said = self._last_words()
            if process.returncode < 0 and _ASSERTION.search(said):
                self.deaths += 1
            elif process.returncode and not self._killed:
                self.error = f"ended with {process.returncode}: {said}"
            life += 1

    def _begin(self, life: int) -> "subprocess.Popen[bytes] | None":
        with self._lock:
            if self._stopping:
                return None
            self._killed = False
            command = [sys.executable, "-m", "tests.torture.apart", json.dumps({**self._arguments, "life": life})]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._said)
            return self._process

    def _write_down(self, events: BinaryIO) -> None:
        while True:
            try:
                event = pickle.load(events)
            except (EOFError, pickle.UnpicklingError):  # also in the middle of an event
                return
            self._history.add(event)

    def _last_words(self) -> str:
        assert self._said is not None
        self._said.seek(max(0, self._said.seek(0, os.SEEK_END) - 5000))
        return self._said.read().decode(errors="replace")


class _Sent:
    """Sends events to the history through a pipe: an event that was added is in the history, even if the client
    dies."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def add(self, event: Event) -> None:
        with self._lock:
            pickle.dump(event, self._stream)
            self._stream.flush()


def main() -> None:
    faulthandler.register(signal.SIGUSR1)
    arguments: dict[str, Any] = json.loads(sys.argv[1])
    module, name = arguments.pop("kind")
    kind = getattr(import_module(module), name)
    client = kind(history=_Sent(sys.stdout.buffer), **arguments)

    def wait_for_the_end() -> None:
        os.read(0, 1)
        client.stop()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    client.start()
    client.join(None)
    if client.error is not None:
        sys.exit(client.error)


if __name__ == "__main__":
    main()
