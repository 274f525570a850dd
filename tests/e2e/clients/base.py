"""What the tests ask of a client."""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import ClassVar, NamedTuple, Self

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SECONDS = 20.0  # the longest that anything may take

Headers = tuple[tuple[str, bytes | None], ...]
Place = tuple[int, int]  # partition, offset


class Message(NamedTuple):
    """What to send; without a partition and a key it goes anywhere."""

    value: bytes | None
    key: bytes | None = None
    partition: int | None = None
    headers: Headers = ()
    timestamp_ms: int | None = None


class Record(NamedTuple):
    """What came back."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int
    timestamp_type: int  # 0: the producer's clock, 1: the broker's

    @property
    def place(self) -> Place:
        return self.partition, self.offset


class ClientError(Exception):
    """What a client said, with Kafka's error code."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{text} ({code})")
        self.code = code


class Reader(ABC):
    """A consumer of one topic: a member of a group, or with partitions of its own choice."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.assignments = 0  # how often a rebalance gave it partitions

    @abstractmethod
    def poll(self, seconds: float = 0.1) -> list[Record]: ...
    @abstractmethod
    def assign(self, offsets: Mapping[int, int]) -> None: ...
    @abstractmethod
    def seek(self, partition: int, offset: int) -> None: ...
    @abstractmethod
    def assignment(self) -> set[int]: ...
    @abstractmethod
    def commit(self, offsets: Mapping[int, int] | None = None) -> None:
        """These offsets, or what was polled so far; durable when it returns."""

    @abstractmethod
    def committed(self, partition: int) -> int | None: ...
    @abstractmethod
    def watermarks(self, partition: int) -> tuple[int, int]: ...
    @abstractmethod
    def offset_for_time(self, partition: int, timestamp_ms: int) -> int | None:
        """None: there is no such record."""

    @abstractmethod
    def close(self) -> None:
        """As a program should: a member leaves its group."""

    def read(self, count: int, seconds: float = SECONDS) -> list[Record]:
        """Poll until there are so many records."""
        records: list[Record] = []
        deadline = time.monotonic() + seconds
        while len(records) < count:
            assert time.monotonic() < deadline, f"{len(records)} of {count} records within {seconds} s"
            records += self.poll(0.2)
        return records

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.close()


class Client(ABC):
    name: ClassVar[str]
    assignors: ClassVar[tuple[str, ...]] = ("range", "roundrobin")

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    @abstractmethod
    def produce(
        self,
        topic: str,
        messages: Sequence[Message],
        *,
        codec: str = "none",
        acks: int = -1,
        idempotent: bool = False,
    ) -> list[Place]:
        """Send them all, wait, and say where each one is. ClientError for the first that was refused."""

    @abstractmethod
    def reader(
        self,
        topic: str,
        *,
        group: str | None = None,
        instance: str | None = None,
        assignor: str = "range",
        session_ms: int = 6000,
    ) -> Reader:
        """In a group it subscribes to the topic and reads from the beginning where nothing is committed."""

    def read(self, topic: str, count: int, partitions: int = 1) -> list[Record]:
        """So many records from the beginning."""
        with self.reader(topic) as reader:
            reader.assign(dict.fromkeys(range(partitions), 0))
            return reader.read(count)
