"""Shared by all workloads: the driver, topics, and bringing the machine into the same state before each run."""

import contextlib
import itertools
import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec  # type: ignore[attr-defined]

from benchmarks.floor import touch_memory
from benchmarks.peers import install
from benchmarks.peers.results import OTHERS, STOLEN
from benchmarks.peers.servers import KafkaProtocolServer, Server


class Failed(Exception):
    """A run that failed or could not be verified: it has no figures."""


class NotOffered(Exception):
    """The peer does not have the feature that the row needs; the message says which."""


@dataclass(frozen=True)
class Scale:
    """The amount of work; `share` divides that of default runs."""

    share: int = 1
    recovery_gb: float = 10.0
    keeps_rates: bool = True  # a steady rate that is not reached fails the row; false if figures do not matter

    def count(self, full: int, least: int = 1) -> int:
        return max(least, full // self.share)

    def seconds(self, full: float) -> float:
        return max(1.0, full / min(self.share, 4))

    def check_rate(self, sent_per_s: float, wanted: int, least: float) -> None:
        if self.keeps_rates and sent_per_s < wanted * least:
            raise Failed(f"the producer sent {sent_per_s:.0f} instead of {wanted} msg/s")


@dataclass
class Run:
    """The driver's result, and the CPU time of the broker and of the whole machine during its measurement."""

    said: dict[str, Any]
    broker_cpu_seconds: float
    machine_cpu_seconds: float = 0.0
    window_seconds: float = 1.0  # between the two readings; the driver's measurement is inside this time
    stolen_cpu_seconds: float = 0.0  # that the hypervisor withheld from the machine

    def __getitem__(self, name: str) -> Any:
        return self.said[name]

    @property
    def cpu_per_gb(self) -> float:
        size = self.said.get("bytes") or self.said["read_bytes"]
        return float(self.broker_cpu_seconds / size * 1e9)

    def notes(self, phase: str) -> dict[str, float]:
        """Notes that explain the figures of this phase."""
        return {
            f"{phase} client thread": self.said["client_busiest_thread"],
            f"{phase} client cpu": self.said["client_cpu_seconds"] / self.said["seconds"],
            f"{phase} broker cpu": self.broker_cpu_seconds / self.said["seconds"],
            f"{phase} {OTHERS}": self._others / self.window_seconds,
            f"{phase} {STOLEN}": self.stolen_cpu_seconds / self.window_seconds,
        }

    @property
    def _others(self) -> float:
        """CPU seconds of programs that do not belong to the benchmark, and which therefore reduce the figures."""
        return max(0.0, self.machine_cpu_seconds - self.broker_cpu_seconds - float(self.said["client_cpu_seconds"]))


class Bench:
    def __init__(self, directory: str, scale: Scale) -> None:
        self.directory = directory
        self.scale = scale
        self._driver = install.driver()
        self._names = itertools.count()

    def fresh_name(self) -> int:
        return next(self._names)

    def fresh_directory(self, name: str) -> str:
        directory = f"{self.directory}/{name}-{self.fresh_name()}"
        os.makedirs(directory)
        return directory

    @contextlib.contextmanager
    def topic(self, server: KafkaProtocolServer, partitions: int, *, fsync: bool = False) -> Iterator[str]:
        """A new topic; it is deleted at the end, including its data on disk."""
        name = f"bench-{self.fresh_name()}"
        admin = AdminClient({"bootstrap.servers": server.bootstrap, "log_level": 0, "socket.timeout.ms": 300_000})
        before = server.data_bytes()
        new = NewTopic(name, partitions, 1, config=dict(server.topic_config(fsync)))
        try:
            admin.create_topics([new], operation_timeout=300, request_timeout=300)[name].result()
            self._await_leaders(admin, name, partitions)
        except KafkaException as error:
            raise Failed(f"{server.title} did not create a topic of {partitions} partitions: {error}") from error
        try:
            yield name
        finally:
            if server.is_alive:
                with contextlib.suppress(KafkaException):
                    admin.delete_topics([name], operation_timeout=300, request_timeout=300)[name].result()
                deadline = time.monotonic() + 20
                while server.data_bytes() > before + (1 << 20) and time.monotonic() < deadline:
                    time.sleep(0.1)

    @staticmethod
    def _await_leaders(admin: AdminClient, name: str, partitions: int) -> None:
        """Wait until every partition answers: metadata may name a leader that does not know the partition yet."""
        deadline = time.monotonic() + 90
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        wanted = {TopicPartition(name, number): latest for number in range(partitions)}
        while True:
            try:
                for answer in admin.list_offsets(wanted, request_timeout=30).values():
                    answer.result()
                return
            except KafkaException as error:
                if time.monotonic() > deadline:
                    raise Failed(
                        f"{partitions} partitions of a new topic were not ready after 90 s: {error}"
                    ) from error
                time.sleep(0.05)

    def settle(self, size: int) -> None:
        """Syncs the data of earlier runs, and touches `size` bytes of memory (see `benchmarks.floor`)."""
        os.sync()
        touch_memory(max(size, 64 << 20))

    def drive(self, server: Server, mode: str, *, timeout: int = 180, **options: Any) -> Run:
        """One run of the driver against the server. Raises `Failed` if the driver reports a failure."""
        server.check_alive()
        command = [self._driver, mode, "--bootstrap", server.bootstrap, "--timeout", str(timeout), "--phases", "1"]
        for name, value in options.items():
            command += [f"--{name.replace('_', '-')}", str(value)]
        used = {"begin": (0.0, 0.0, 0.0, 0.0), "end": (0.0, 0.0, 0.0, 0.0)}
        said: dict[str, Any] = {"ok": False, "error": "the driver printed nothing"}
        with _process(command, timeout + 30) as process:
            assert process.stdout is not None
            assert process.stdin is not None
            for line in process.stdout:
                if (phase := line.strip()) in used:
                    machine, stolen = machine_cpu_seconds()
                    used[phase] = server.cpu_seconds(), machine, time.monotonic(), stolen
                    process.stdin.write("\n")
                    process.stdin.flush()
                elif line.startswith("{"):
                    said = json.loads(line)
        if not said.pop("ok"):
            raise Failed(f"{mode}: {said['error']}")
        server.check_alive()
        return Run(said, *(end - begin for begin, end in zip(used["begin"], used["end"], strict=True)))

    @contextlib.contextmanager
    def connections(self, server: Server, count: int) -> Iterator[None]:
        """Open this number of further connections; the broker has answered each, and they are idle."""
        command = [self._driver, "hold", "--bootstrap", server.bootstrap, "--connections", str(count)]
        with _process(command, 300) as process:
            assert process.stdout is not None
            assert process.stdin is not None
            line = process.stdout.readline()
            if line.strip() != "ready":
                raise Failed(f"{count} connections: {line}")
            yield
            process.stdin.close()
            process.stdout.read()


@contextlib.contextmanager
def _process(command: list[str], timeout: float) -> Iterator[subprocess.Popen[str]]:
    """A process that is ended on exit, and killed if that takes too long."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    watchdog = threading.Timer(timeout, process.kill)
    watchdog.start()
    try:
        yield process
        process.wait()
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def machine_cpu_seconds() -> tuple[float, float]:
    """CPU seconds of all programs and the kernel on all cores, and those that the hypervisor withheld."""
    with open("/proc/stat") as stat:
        user, nice, system, _idle, _waiting, hard, soft, stolen = map(int, stat.readline().split()[1:9])
    ticks = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + hard + soft) / ticks, stolen / ticks


def verified(sent: Run, read: Run, *, names: tuple[str, str] = ("messages", "checksum")) -> None:
    """Raises unless the messages read are those sent: the same number, and the same sum of checksums."""
    messages, checksum = names
    if sent["messages"] != read[messages] or sent["checksum"] != read[checksum]:
        raise Failed(
            f"sent {sent['messages']:.0f} messages with checksum {sent['checksum']}, "
            f"read {read[messages]:.0f} with {read[checksum]}"
        )


class PeakMemory:
    """The peak memory of a server while this context is open."""

    def __init__(self, server: Server) -> None:
        self.peak_mb = 0.0
        self._server = server
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def _watch(self) -> None:
        while True:
            with contextlib.suppress(OSError):
                self.peak_mb = max(self.peak_mb, self._server.memory_mb())
            if self._done.wait(0.2):
                return

    def __enter__(self) -> "PeakMemory":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
