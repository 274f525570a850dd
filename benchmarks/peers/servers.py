"""The brokers as processes: starting, observing, stopping and killing them.

`Server` is the interface for workloads. CPU and memory are those of the process and all its children, as counted by
the kernel: memory is the proportional set size (PSS), so that shared pages count once.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.peers import install
from tidelog.wire.apis import BY_NAME
from tidelog.wire.envelope import decode_response, encode_request
from tidelog.wire.generated.metadata import MetadataRequest

_TICKS = os.sysconf("SC_CLK_TCK")
_START_SECONDS = 120.0
_STOP_SECONDS = 60.0
_OVERDUE_SECONDS = 2.0


class NotRunning(Exception):
    """The server did not start, or ended; the message has its last output."""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


class Server:
    """One broker process with its own data directory. Subclasses define how it is started and when it is ready."""

    name = ""
    title = ""
    version = ""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.data = f"{directory}/data"
        self.port = free_port()
        self.may_stand_still = False  # whether it may be stopped by SIGSTOP; set before it is started
        self._process: subprocess.Popen[bytes] | None = None
        os.makedirs(self.data, exist_ok=True)

    # Defined by subclasses.

    def command(self) -> list[str]:
        raise NotImplementedError

    def is_ready(self) -> bool:
        raise NotImplementedError

    def prepare(self) -> None:
        """Called once before the first start; not part of the measured start time."""

    # The same for all.

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> float:
        """Start it; returns the seconds from the start of the process to its first useful answer."""
        if self._process is None:
            self.prepare()
        with open(f"{self.directory}/output.txt", "ab") as output:
            began = time.perf_counter()
            self._process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=self.directory
            )
        while not self.is_ready():
            if self._process.poll() is not None or time.perf_counter() - began > _START_SECONDS:
                self.kill()
                raise NotRunning(f"{self.title} did not start: {self.last_words()}")
            time.sleep(0.002)
        return time.perf_counter() - began

    def stop(self) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise NotRunning(f"{self.title} did not stop within {_STOP_SECONDS:.0f} s") from None

    def kill(self) -> None:
        """SIGKILL, also to its children."""
        if self._process is not None and self._process.poll() is None:
            for pid in _tree(self._process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.wait()

    @contextlib.contextmanager
    def standing_still(self) -> Iterator[None]:
        """Stop the process, so that its timers, compilers and collectors take no CPU. On exit it continues, and has
        done its overdue work."""
        assert self.may_stand_still
        stopped = _tree(self.pid) if self.is_alive else []
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
            deadline = time.monotonic() + _START_SECONDS
            while stopped and not self.is_ready():
                self.check_alive()
                if time.monotonic() > deadline:
                    raise NotRunning(f"{self.title} does not continue: {self.last_words()}")
                time.sleep(0.01)
            time.sleep(_OVERDUE_SECONDS)

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def last_words(self) -> str:
        with open(f"{self.directory}/output.txt", errors="replace") as file:
            return " / ".join(file.read()[-600:].split("\n"))

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def check_alive(self) -> None:
        if not self.is_alive:
            raise NotRunning(f"{self.title} is not running: {self.last_words()}")

    def cpu_seconds(self) -> float:
        """CPU seconds of the process tree, including children that have ended."""
        total = 0.0
        for pid in _tree(self.pid):
            with contextlib.suppress(OSError):
                total += time.clock_gettime(~pid << 3 | 2)  # the kernel's number for the CPU clock of a process
                with open(f"/proc/{pid}/stat") as stat:
                    fields = stat.read().rsplit(")", 1)[1].split()
                total += sum(int(field) for field in fields[13:15]) / _TICKS
        return total

    def memory_mb(self) -> float:
        total = 0
        for pid in _tree(self.pid):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup") as rollup:
                total += next(int(line.split()[1]) for line in rollup if line.startswith("Pss:"))
        return total / 1024

    def data_bytes(self) -> int:
        """Allocated bytes on disk; holes do not count."""
        total = 0
        for path in files_below(self.data):
            with contextlib.suppress(FileNotFoundError):
                total += os.stat(path).st_blocks * 512
        return total


def _tree(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{task}/children") as children:
                    found += [int(child) for child in children.read().split()]
    return found


def files_below(directory: str) -> Iterator[str]:
    for parent, _, names in os.walk(directory):
        yield from (f"{parent}/{name}" for name in names)


def evict(directory: str) -> None:
    """Drop the files from the page cache, as if they had not been used for a day."""
    for path in files_below(directory):
        with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


# ---- brokers that speak the Kafka protocol


class KafkaProtocolServer(Server):
    """A broker that is ready when its answer to a metadata request contains a broker."""

    def is_ready(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as peer:
                api, version = BY_NAME["Metadata"], 9
                frame = encode_request(api, version, 1, "bench", MetadataRequest([]))
                peer.sendall(b"".join(frame))  # type: ignore[arg-type]
                with peer.makefile("rb") as replies:
                    size = int.from_bytes(replies.read(4), "big")
                    reply: Any = decode_response(api, version, replies.read(size))
        except (OSError, ValueError):
            return False
        return bool(reply.brokers)

    def topic_config(self, fsync: bool) -> Mapping[str, str]:
        """The topic configs that make an acknowledgement wait for a sync, or not."""
        raise NotImplementedError


class Tidelog(KafkaProtocolServer):
    name = "tidelog"
    title = "Tidelog"

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        import tidelog

        self.version = tidelog.__version__

    def command(self) -> list[str]:
        command = [sys.executable, "-m", "tidelog", "serve", "--data-dir", self.data, "--listen", self.bootstrap]
        for name, value in COMMON.items():
            command += ["--set", f"kafka.{name}={value}"]
        return command

    def topic_config(self, fsync: bool) -> Mapping[str, str]:
        return {"tidelog.flush": "acks" if fsync else "os"}


# The same for both: groups do not wait for further members, heartbeats of the new protocol are frequent enough to
# measure the broker, and deleted data is removed at once.
COMMON = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "500",
    "log.segment.delete.delay.ms": "500",
}

# As in Kafka's own server.properties and start script, for one node that is broker and controller.
_KAFKA_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
num.partitions=1
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
group.consumer.min.heartbeat.interval.ms=100
"""
# For a Kafka that is stopped at times: its controller must not declare its broker dead. (With these settings, a Kafka
# that is killed could not return before the timeout.)
_PATIENT_CONTROLLER = "broker.session.timeout.ms=3600000\n"
_KAFKA_JVM = [
    "-Xms1G",
    "-Xmx1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
]
_KAFKA_LOGGING = """\
<Configuration status="error"><Appenders><File name="file" fileName="{file}">
<PatternLayout pattern="[%d] %p %m (%c)%n"/></File></Appenders>
<Loggers><Root level="info"><AppenderRef ref="file"/></Root></Loggers></Configuration>
"""


class Kafka(KafkaProtocolServer):
    name = "kafka"
    title = "Apache Kafka"

    def __init__(self, directory: str, version: str | None = None) -> None:
        self._java = install.java()
        self.version, self._jars = install.kafka_jars(version)
        super().__init__(directory)
        self._controller_port = free_port()

    def prepare(self) -> None:
        with open(f"{self.directory}/server.properties", "w") as file:
            file.write(
                _KAFKA_PROPERTIES.format(port=self.port, controller_port=self._controller_port, data=self.data)
            )
            file.writelines(f"{name}={value}\n" for name, value in COMMON.items())
            file.write(_PATIENT_CONTROLLER if self.may_stand_still else "")
        with open(f"{self.directory}/log4j2.xml", "w") as file:
            file.write(_KAFKA_LOGGING.format(file=f"{self.directory}/server.log"))
        made = subprocess.run(
            self._run("kafka.tools.StorageTool", "format", "-t", "dGlkZWxvZy1iZW5jaG1hcg", "-c", "server.properties"),
            cwd=self.directory,
            capture_output=True,
            text=True,
        )
        if made.returncode != 0:
            raise NotRunning(f"Kafka's storage could not be formatted: {(made.stderr + made.stdout)[-600:]}")

    def command(self) -> list[str]:
        return self._run("kafka.Kafka", "server.properties")

    def topic_config(self, fsync: bool) -> Mapping[str, str]:
        return {"flush.messages": "1"} if fsync else {}

    def _run(self, main: str, *arguments: str) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={self.directory}/log4j2.xml"
        heap = _KAFKA_JVM if main == "kafka.Kafka" else ["-Xmx256M"]
        return [self._java, *heap, logging, "-cp", f"{self._jars}/*", main, *arguments]


# ---- alternatives to Kafka


class Nats(Server):
    name = "nats"
    title = "NATS JetStream"

    def __init__(self, directory: str) -> None:
        self._program = install.debian("nats-server", "nats-server")
        said = subprocess.run([self._program, "--version"], capture_output=True, text=True, check=True)
        self.version = said.stdout.strip().rsplit("v", 1)[-1]
        super().__init__(directory)

    def prepare(self) -> None:
        with open(f"{self.directory}/nats.conf", "w") as file:
            file.write(f'host: 127.0.0.1\nport: {self.port}\njetstream {{ store_dir: "{self.data}" }}\n')

    def command(self) -> list[str]:
        return [self._program, "-c", f"{self.directory}/nats.conf"]

    def is_ready(self) -> bool:
        """Ready when it answers a ping and the account has JetStream."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as peer:
                peer.sendall(b'CONNECT {"verbose":false}\r\nSUB r 1\r\nPUB $JS.API.INFO r 0\r\n\r\n')
                seen = b""
                while b'"streams"' not in seen and b"-ERR" not in seen:
                    more = peer.recv(65536)
                    if not more:
                        return False
                    seen += more
        except OSError:
            return False
        return b'"streams"' in seen


class Redis(Server):
    name = "redis"
    title = "Redis Streams"

    def __init__(self, directory: str) -> None:
        self._program = install.debian("redis-server", "redis-server")
        said = subprocess.run([self._program, "--version"], capture_output=True, text=True, check=True)
        self.version = said.stdout.split("v=")[1].split()[0]
        super().__init__(directory)

    def command(self) -> list[str]:
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.data, "--save", "", "--appendonly"]
        return [self._program, *options, "yes", "--appendfsync", "everysec", "--daemonize", "no"]

    def is_ready(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as peer:
                peer.sendall(b"PING\r\n")
                return peer.recv(100).startswith(b"+PONG")
        except OSError:
            return False


KINDS: dict[str, type[Server]] = {kind.name: kind for kind in (Tidelog, Kafka, Nats, Redis)}
