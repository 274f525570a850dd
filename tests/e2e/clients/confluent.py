"""confluent-kafka."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka import Message as Delivered

from tests.e2e.clients.base import SECONDS, Client, ClientError, Message, Place, Reader, Record


def common(bootstrap: str) -> dict[str, Any]:
    """Quiet, and quick to try again."""
    return {
        "bootstrap.servers": bootstrap,
        "log_level": 0,
        "error_cb": lambda _error: None,
        "socket.timeout.ms": 10_000,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 200,
        "retry.backoff.ms": 20,
        "retry.backoff.max.ms": 200,
        "topic.metadata.refresh.fast.interval.ms": 50,
    }


def refused(error: KafkaError | None) -> ClientError | None:
    return None if error is None else ClientError(error.code(), error.str())


class ConfluentReader(Reader):
    def __init__(self, topic: str, config: dict[str, Any], *, subscribe: bool) -> None:
        super().__init__(topic)
        self.consumer = Consumer(config)
        if subscribe:
            self.consumer.subscribe([topic], on_assign=self._assigned)

    def _assigned(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.assignments += 1

    def poll(self, seconds: float = 0.1) -> list[Record]:
        """One batch; errors that the client recovers from by itself are passed over."""
        records = []
        for message in self.consumer.consume(1000, seconds):
            error = message.error()
            if error is None:
                records.append(_record(message))
            elif not (error.retriable() or error.code() < 0 or error.code() in _PASSING):
                raise ClientError(error.code(), error.str())
        return records

    def assign(self, offsets: Mapping[int, int]) -> None:
        self.consumer.assign([TopicPartition(self.topic, *each) for each in offsets.items()])

    def seek(self, partition: int, offset: int) -> None:
        self.consumer.seek(TopicPartition(self.topic, partition, offset))

    def assignment(self) -> set[int]:
        return {each.partition for each in self.consumer.assignment()}

    def commit(self, offsets: Mapping[int, int] | None = None) -> None:
        try:
            if offsets is None:
                self.consumer.commit(asynchronous=False)
            else:
                places = [TopicPartition(self.topic, *each) for each in offsets.items()]
                for place in self.consumer.commit(offsets=places, asynchronous=False):
                    if place.error is not None:
                        raise ClientError(place.error.code(), place.error.str())
        except KafkaException as error:
            if error.args[0].code() != KafkaError._NO_OFFSET:
                raise ClientError(error.args[0].code(), error.args[0].str()) from error

    def committed(self, partition: int) -> int | None:
        offset = self.consumer.committed([TopicPartition(self.topic, partition)], timeout=SECONDS)[0].offset
        return None if offset < 0 else offset

    def watermarks(self, partition: int) -> tuple[int, int]:
        marks = self.consumer.get_watermark_offsets(TopicPartition(self.topic, partition), timeout=SECONDS)
        assert marks is not None
        return marks

    def offset_for_time(self, partition: int, timestamp_ms: int) -> int | None:
        wanted = TopicPartition(self.topic, partition, timestamp_ms)
        offset = self.consumer.offsets_for_times([wanted], timeout=SECONDS)[0].offset
        return None if offset < 0 else offset

    def close(self) -> None:
        self.consumer.close()


_PASSING = {3, 5, 6, 14, 15, 16, 27}  # a topic, a leader or a coordinator that is not there yet; a rebalance


def _record(message: Delivered) -> Record:
    kind, timestamp = message.timestamp()
    return Record(
        message.partition() or 0,
        message.offset() or 0,
        message.key(),
        message.value(),
        tuple(message.headers() or ()),  # type: ignore[arg-type]
        timestamp,
        kind - 1,
    )


class Confluent(Client):
    name = "confluent"
    assignors = ("range", "roundrobin", "cooperative-sticky")

    def produce(
        self,
        topic: str,
        messages: Sequence[Message],
        *,
        codec: str = "none",
        acks: int = -1,
        idempotent: bool = False,
    ) -> list[Place]:
        places: list[Place | ClientError | None] = [None] * len(messages)
        producer = self.producer(codec=codec, acks=acks, idempotent=idempotent)
        for number, message in enumerate(messages):

            def delivered(error: KafkaError | None, sent: Delivered, number: int = number) -> None:
                places[number] = refused(error) or (sent.partition() or 0, sent.offset() or 0)

            producer.produce(
                topic,
                message.value,
                message.key,
                -1 if message.partition is None else message.partition,
                on_delivery=delivered,
                timestamp=message.timestamp_ms or 0,
                headers=list(message.headers),
            )
        left = producer.flush(SECONDS)
        assert not left, f"{left} messages were not delivered within {SECONDS} s"
        found: list[Place] = []
        for place in places:
            if isinstance(place, ClientError):
                raise place
            assert place is not None
            found.append(place)
        return found

    def producer(
        self,
        *,
        codec: str = "none",
        acks: int = -1,
        idempotent: bool = False,
        config: Mapping[str, Any] | None = None,
    ) -> Producer:
        usual = {
            **common(self.bootstrap),
            "compression.type": codec,
            "acks": acks,
            "enable.idempotence": idempotent,
            "message.max.bytes": 50_000_000,
            "message.timeout.ms": int(SECONDS * 1000),
            "linger.ms": 5,
        }
        return Producer({**usual, **(config or {})})

    def reader(
        self,
        topic: str,
        *,
        group: str | None = None,
        instance: str | None = None,
        assignor: str = "range",
        session_ms: int = 6000,
        config: Mapping[str, Any] | None = None,
    ) -> ConfluentReader:
        config = config or {}
        usual = {
            **common(self.bootstrap),
            "group.id": group or f"none-{time.monotonic_ns()}",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 100,
            "fetch.error.backoff.ms": 20,
        }
        if instance is not None:
            usual["group.instance.id"] = instance
        if config.get("group.protocol") != "consumer":
            usual["partition.assignment.strategy"] = assignor
            usual["session.timeout.ms"] = session_ms
            usual["heartbeat.interval.ms"] = max(50, session_ms // 30)
            usual["max.poll.interval.ms"] = max(60_000, session_ms)
        return ConfluentReader(topic, {**usual, **config}, subscribe=group is not None)
