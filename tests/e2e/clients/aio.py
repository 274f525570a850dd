"""aiokafka, called from a thread that has no event loop."""

import asyncio
import logging
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from aiokafka import (  # type: ignore[import-untyped]
    AIOKafkaConsumer,
    AIOKafkaProducer,
    ConsumerRebalanceListener,
    TopicPartition,
)
from aiokafka.coordinator.assignors.range import RangePartitionAssignor  # type: ignore[import-untyped]
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor  # type: ignore[import-untyped]
from aiokafka.errors import KafkaError  # type: ignore[import-untyped]

from tests.e2e.clients.base import SECONDS, Client, ClientError, Message, Place, Reader, Record

logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
T = TypeVar("T")
_ASSIGNORS = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        with translated():
            return asyncio.run_coroutine_threadsafe(work, self._loop).result(SECONDS + 5)

    def close(self) -> None:
        """With the tasks and connections that aiokafka left: it leaves some when its broker goes away."""
        asyncio.run_coroutine_threadsafe(self._end_what_is_left(), self._loop).result(SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SECONDS)
        self._loop.close()

    async def _end_what_is_left(self) -> None:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        for transport in list(self._loop._transports.values()):  # type: ignore[attr-defined]
            transport.abort()
        await asyncio.sleep(0)  # in which they are closed


@contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except KafkaError as error:
        raise ClientError(getattr(error, "errno", -1), str(error)) from error


class AioKafkaReader(Reader):
    def __init__(self, topic: str, config: dict[str, Any], *, subscribe: bool) -> None:
        super().__init__(topic)
        self._loop = Loop()
        self._loop.run(self._start(config, subscribe))

    async def _start(self, config: dict[str, Any], subscribe: bool) -> None:
        self.consumer = AIOKafkaConsumer(**config)
        if subscribe:
            self.consumer.subscribe([self.topic], listener=_Listener(self))
        await self.consumer.start()

    def poll(self, seconds: float = 0.1) -> list[Record]:
        polled = self._loop.run(self.consumer.getmany(timeout_ms=int(seconds * 1000)))
        return [
            Record(
                each.partition,
                each.offset,
                each.key,
                each.value,
                tuple(each.headers),
                each.timestamp,
                each.timestamp_type,
            )
            for records in polled.values()
            for each in records
        ]

    def assign(self, offsets: Mapping[int, int]) -> None:
        async def assign() -> None:
            self.consumer.assign([self._at(partition) for partition in offsets])
            for partition, offset in offsets.items():
                self.consumer.seek(self._at(partition), offset)

        self._loop.run(assign())

    def seek(self, partition: int, offset: int) -> None:
        async def seek() -> None:
            self.consumer.seek(self._at(partition), offset)

        self._loop.run(seek())

    def assignment(self) -> set[int]:
        return {each.partition for each in self.consumer.assignment()}

    def commit(self, offsets: Mapping[int, int] | None = None) -> None:
        places = None if offsets is None else {self._at(partition): offset for partition, offset in offsets.items()}
        self._loop.run(self.consumer.commit(places))

    def committed(self, partition: int) -> int | None:
        offset: int | None = self._loop.run(self.consumer.committed(self._at(partition)))
        return offset

    def watermarks(self, partition: int) -> tuple[int, int]:
        at = self._at(partition)
        begin: int = self._loop.run(self.consumer.beginning_offsets([at]))[at]
        end: int = self._loop.run(self.consumer.end_offsets([at]))[at]
        return begin, end

    def offset_for_time(self, partition: int, timestamp_ms: int) -> int | None:
        at = self._at(partition)
        found = self._loop.run(self.consumer.offsets_for_times({at: timestamp_ms}))[at]
        return None if found is None else int(found.offset)

    def close(self) -> None:
        try:
            self._loop.run(self.consumer.stop())
        finally:
            self._loop.close()

    def _at(self, partition: int) -> TopicPartition:
        return TopicPartition(self.topic, partition)


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        pass

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self._reader.assignments += 1


class AioKafka(Client):
    name = "aiokafka"

    def produce(
        self,
        topic: str,
        messages: Sequence[Message],
        *,
        codec: str = "none",
        acks: int = -1,
        idempotent: bool = False,
    ) -> list[Place]:
        loop = Loop()
        try:
            return loop.run(self._produce(topic, messages, codec, acks, idempotent))
        finally:
            loop.close()

    async def _produce(
        self, topic: str, messages: Sequence[Message], codec: str, acks: int, idempotent: bool
    ) -> list[Place]:
        producer = AIOKafkaProducer(
            bootstrap_servers=self.bootstrap,
            compression_type=None if codec == "none" else codec,
            acks="all" if acks == -1 else acks,
            enable_idempotence=idempotent,
            max_request_size=50_000_000,
            request_timeout_ms=10_000,
            linger_ms=5,
        )
        await producer.start()
        try:
            sent = [
                await producer.send(
                    topic,
                    message.value,
                    message.key,
                    message.partition,
                    message.timestamp_ms,
                    list(message.headers),
                )
                for message in messages
            ]
            done = await asyncio.wait_for(asyncio.gather(*sent), SECONDS)
        finally:
            await producer.stop()
        return [(each.partition, each.offset) for each in done if each is not None]  # acks=0: nobody knows

    def reader(
        self,
        topic: str,
        *,
        group: str | None = None,
        instance: str | None = None,
        assignor: str = "range",
        session_ms: int = 6000,
    ) -> AioKafkaReader:
        config: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap,
            "group_id": group,
            "enable_auto_commit": False,
            "auto_offset_reset": "earliest",
            "fetch_max_wait_ms": 100,
            "retry_backoff_ms": 20,
            "session_timeout_ms": session_ms,
            "heartbeat_interval_ms": max(50, session_ms // 30),
            "max_poll_interval_ms": max(60_000, session_ms),
            "rebalance_timeout_ms": 10_000,
            "request_timeout_ms": 20_000,
            "partition_assignment_strategy": (_ASSIGNORS[assignor],),
            "group_instance_id": instance,
        }
        return AioKafkaReader(topic, config, subscribe=group is not None)
