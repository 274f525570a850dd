"""Transactional producers of the real clients, and readers of what they left, behind one small interface."""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import TracebackType
from typing import Any, ClassVar, Self

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # type: ignore[import-untyped]
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer  # type: ignore[import-untyped]
from kafka import TopicPartition as PythonPartition
from kafka.errors import KafkaTimeoutError  # type: ignore[import-untyped]
from kafka.structs import OffsetAndMetadata  # type: ignore[import-untyped]

from tests.e2e.clients import aio, kafka_python
from tests.e2e.clients.base import SECONDS, ClientError
from tests.e2e.clients.confluent import common

Values = list[bytes]
_PATIENCE_S = 10.0


class Transactional(ABC):
    """One producer with a transactional id. `send` returns when the record is delivered."""

    name: ClassVar[str]

    def __init__(self, bootstrap: str, id_: str, timeout_ms: int = 60_000) -> None:
        self.bootstrap = bootstrap
        self.id = id_
        self.timeout_ms = timeout_ms

    @abstractmethod
    def init(self) -> None: ...
    @abstractmethod
    def begin(self) -> None: ...
    @abstractmethod
    def send(self, topic: str, value: bytes, partition: int = 0) -> None: ...
    @abstractmethod
    def send_offsets(self, topic: str, offsets: Mapping[int, int], group: str) -> None: ...
    @abstractmethod
    def commit(self) -> None: ...
    @abstractmethod
    def abort(self) -> None: ...
    @abstractmethod
    def close(self) -> None: ...
    @abstractmethod
    def read(self, topic: str, partitions: int = 1, *, committed: bool = True) -> Values:
        """Everything from the beginning to the end, as its library's consumer gives it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _type: type[BaseException] | None, _e: BaseException | None, _: TracebackType | None) -> None:
        self.close()


class ConfluentTransactional(Transactional):
    name = "confluent-kafka"

    def __init__(self, bootstrap: str, id_: str, timeout_ms: int = 60_000) -> None:
        super().__init__(bootstrap, id_, timeout_ms)
        self.producer = Producer(
            {
                **common(bootstrap),
                "transactional.id": id_,
                "transaction.timeout.ms": timeout_ms,
                "message.timeout.ms": min(timeout_ms, 20_000),
                "socket.timeout.ms": min(timeout_ms, 10_000),
                "linger.ms": 0,
                # The default starts from the bootstrap address when all brokers were gone, but librdkafka 2.16 then
                # waits for ever for a group's coordinator through a handle that it has given up.
                "metadata.recovery.strategy": "none",
            }
        )

    def _run(self, call: Any, *arguments: Any) -> None:
        try:
            call(*arguments)
        except KafkaException as error:
            raise ClientError(error.args[0].code(), error.args[0].str()) from error

    def init(self) -> None:
        self._run(self.producer.init_transactions, _PATIENCE_S)

    def begin(self) -> None:
        self._run(self.producer.begin_transaction)

    def send(self, topic: str, value: bytes, partition: int = 0) -> None:
        errors: list[KafkaError | None] = []
        try:
            self.producer.produce(
                topic, value, partition=partition, on_delivery=lambda error, _: errors.append(error)
            )
            self.producer.flush(SECONDS)
        except KafkaException as error:
            raise ClientError(error.args[0].code(), error.args[0].str()) from error
        if errors != [None]:
            said = errors[0] if errors else None
            raise ClientError(said.code() if said else -1, said.str() if said else "not delivered")

    def send_offsets(self, topic: str, offsets: Mapping[int, int], group: str) -> None:
        consumer = Consumer({**common(self.bootstrap), "group.id": group})
        places = [TopicPartition(topic, *each) for each in offsets.items()]
        self._run(self.producer.send_offsets_to_transaction, places, consumer.consumer_group_metadata(), _PATIENCE_S)
        consumer.close()

    def commit(self) -> None:
        self._run(self.producer.commit_transaction, _PATIENCE_S)

    def abort(self) -> None:
        self._run(self.producer.abort_transaction, _PATIENCE_S)

    def close(self) -> None:
        try:
            self.producer.purge()
            self.producer.flush(0.1)
        except KafkaException:
            pass  # a fenced producer says so again

    def read(self, topic: str, partitions: int = 1, *, committed: bool = True) -> Values:
        consumer = Consumer(
            {
                **common(self.bootstrap),
                "group.id": "reader",
                "isolation.level": "read_committed" if committed else "read_uncommitted",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
            }
        )
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        values: Values = []
        ends = 0
        deadline = time.monotonic() + SECONDS
        while ends < partitions:
            assert time.monotonic() < deadline, "the end of the partitions was not reached"
            message = consumer.poll(0.5)
            if message is None:
                continue
            error = message.error()
            if error is None:
                values.append(message.value() or b"")
            elif error.code() == KafkaError._PARTITION_EOF:
                ends += 1
        consumer.close()
        return values


class KafkaPythonTransactional(Transactional):
    name = "kafka-python"

    def __init__(self, bootstrap: str, id_: str, timeout_ms: int = 60_000) -> None:
        super().__init__(bootstrap, id_, timeout_ms)
        with kafka_python.translated():
            self.producer = KafkaProducer(
                bootstrap_servers=bootstrap,
                transactional_id=id_,
                transaction_timeout_ms=timeout_ms,
                retry_backoff_ms=20,
                reconnect_backoff_ms=20,
                max_block_ms=int(SECONDS * 1000),
            )

    def init(self) -> None:
        with kafka_python.translated():
            self.producer.init_transactions()

    def begin(self) -> None:
        with kafka_python.translated():
            self.producer.begin_transaction()

    def send(self, topic: str, value: bytes, partition: int = 0) -> None:
        with kafka_python.translated():
            self.producer.send(topic, value, partition=partition).get(SECONDS)

    def send_offsets(self, topic: str, offsets: Mapping[int, int], group: str) -> None:
        places = {PythonPartition(topic, each): OffsetAndMetadata(at, "", -1) for each, at in offsets.items()}
        with kafka_python.translated():
            self.producer.send_offsets_to_transaction(places, group)

    def commit(self) -> None:
        with kafka_python.translated():
            self.producer.commit_transaction()

    def abort(self) -> None:
        with kafka_python.translated():
            self.producer.abort_transaction()

    def close(self) -> None:
        try:
            self.producer.close(timeout=1)
        except KafkaTimeoutError:  # of its flush, and then kafka-python 3.0 has closed nothing
            self.producer.flush = lambda _: None
            self.producer.close(timeout=1)

    def read(self, topic: str, partitions: int = 1, *, committed: bool = True) -> Values:
        consumer = KafkaConsumer(
            bootstrap_servers=self.bootstrap, isolation_level="read_committed" if committed else "read_uncommitted"
        )
        places = [PythonPartition(topic, number) for number in range(partitions)]
        ends = consumer.end_offsets(places)
        consumer.assign(places)
        consumer.seek_to_beginning(*places)
        values: Values = []
        deadline = time.monotonic() + SECONDS
        while any(consumer.position(place) < ends[place] for place in places):
            assert time.monotonic() < deadline, "the end of the partitions was not reached"
            for records in consumer.poll(timeout_ms=200).values():
                values += [record.value for record in records]
        consumer.close()
        return values


class AioTransactional(Transactional):
    name = "aiokafka"

    def __init__(self, bootstrap: str, id_: str, timeout_ms: int = 60_000) -> None:
        super().__init__(bootstrap, id_, timeout_ms)
        self._loop = aio.Loop()
        self._loop.run(self._make())

    async def _make(self) -> None:
        self.producer = AIOKafkaProducer(
            bootstrap_servers=self.bootstrap,
            transactional_id=self.id,
            transaction_timeout_ms=self.timeout_ms,
            retry_backoff_ms=20,
        )

    def init(self) -> None:
        self._loop.run(self.producer.start())

    def begin(self) -> None:
        self._loop.run(self.producer.begin_transaction())

    def send(self, topic: str, value: bytes, partition: int = 0) -> None:
        self._loop.run(self.producer.send_and_wait(topic, value, partition=partition))

    def send_offsets(self, topic: str, offsets: Mapping[int, int], group: str) -> None:
        places = {AioPartition(topic, each): at for each, at in offsets.items()}
        self._loop.run(self.producer.send_offsets_to_transaction(places, group))

    def commit(self) -> None:
        self._loop.run(self.producer.commit_transaction())

    def abort(self) -> None:
        self._loop.run(self.producer.abort_transaction())

    def close(self) -> None:
        try:
            self._loop.run(self.producer.stop())
        except ClientError:
            pass  # a fenced producer says so again
        self._loop.close()

    def read(self, topic: str, partitions: int = 1, *, committed: bool = True) -> Values:
        return self._loop.run(self._read(topic, partitions, committed))

    async def _read(self, topic: str, partitions: int, committed: bool) -> Values:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap, isolation_level="read_committed" if committed else "read_uncommitted"
        )
        await consumer.start()
        places = [AioPartition(topic, number) for number in range(partitions)]
        consumer.assign(places)
        await consumer.seek_to_beginning(*places)
        ends = await consumer.end_offsets(places)
        values: Values = []
        deadline = time.monotonic() + SECONDS
        while any([await consumer.position(place) < ends[place] for place in places]):
            assert time.monotonic() < deadline, "the end of the partitions was not reached"
            for records in (await consumer.getmany(timeout_ms=200)).values():
                values += [record.value for record in records]
        await consumer.stop()
        return values


TRANSACTIONAL: dict[str, type[Transactional]] = {
    each.name: each for each in (ConfluentTransactional, KafkaPythonTransactional, AioTransactional)
}
