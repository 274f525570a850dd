"""kafka-python."""

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tests.e2e.clients.base import SECONDS, Client, ClientError, Message, Place, Reader, Record

with warnings.catch_warnings():  # importing kafka-python reads its files in a way that Python will give up
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition  # type: ignore[import-untyped]
    from kafka.consumer.subscription_state import ConsumerRebalanceListener  # type: ignore[import-untyped]
    from kafka.coordinator.assignors.range import RangePartitionAssignor  # type: ignore[import-untyped]
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor  # type: ignore[import-untyped]
    from kafka.errors import KafkaConnectionError, KafkaError, NodeNotReadyError  # type: ignore[import-untyped]
    from kafka.structs import OffsetAndMetadata  # type: ignore[import-untyped]

logging.getLogger("kafka").setLevel(logging.CRITICAL)
_MS = int(SECONDS * 1000)
_ASSIGNORS = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}


@contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except KafkaError as error:
        raise ClientError(getattr(error, "errno", -1), str(error)) from error


class KafkaPythonReader(Reader):
    def __init__(self, topic: str, config: dict[str, Any], *, subscribe: bool) -> None:
        super().__init__(topic)
        self.consumer = KafkaConsumer(**config)
        self._subscribed = subscribe
        if subscribe:
            self.consumer.subscribe([topic], listener=_Listener(self))

    def poll(self, seconds: float = 0.1) -> list[Record]:
        """In a group with more patience: when a poll ends while a rebalance is under way, kafka-python 3.0.12 may
        take the assignment for received and never use it."""
        seconds = max(seconds, 1.0) if self._subscribed else seconds
        try:
            with translated():
                polled = self.consumer.poll(timeout_ms=int(seconds * 1000))
        except ClientError as error:
            if isinstance(error.__cause__, KafkaConnectionError | NodeNotReadyError):
                return []  # it tries again with the next poll
            raise
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
        self.consumer.assign([self._at(partition) for partition in offsets])
        for partition, offset in offsets.items():
            self.seek(partition, offset)

    def seek(self, partition: int, offset: int) -> None:
        self.consumer.seek(self._at(partition), offset)

    def assignment(self) -> set[int]:
        return {each.partition for each in self.consumer.assignment()}

    def commit(self, offsets: Mapping[int, int] | None = None) -> None:
        places = (
            None
            if offsets is None
            else {self._at(partition): OffsetAndMetadata(offset, "", -1) for partition, offset in offsets.items()}
        )
        with translated():
            self.consumer.commit(places, timeout_ms=_MS)

    def committed(self, partition: int) -> int | None:
        with translated():
            offset: int | None = self.consumer.committed(self._at(partition), timeout_ms=_MS)
        return offset

    def watermarks(self, partition: int) -> tuple[int, int]:
        at = self._at(partition)
        with translated():
            begin = self.consumer.beginning_offsets([at], timeout_ms=_MS)[at]
            return begin, self.consumer.end_offsets([at], timeout_ms=_MS)[at]

    def offset_for_time(self, partition: int, timestamp_ms: int) -> int | None:
        at = self._at(partition)
        with translated():
            found = self.consumer.offsets_for_times({at: timestamp_ms}, timeout_ms=_MS)[at]
        return None if found is None else int(found.offset)

    def close(self) -> None:
        self.consumer.close(autocommit=False, timeout_ms=_MS)

    def _at(self, partition: int) -> TopicPartition:
        return TopicPartition(self.topic, partition)


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        pass

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self._reader.assignments += 1


class KafkaPython(Client):
    name = "kafka-python"

    def produce(
        self,
        topic: str,
        messages: Sequence[Message],
        *,
        codec: str = "none",
        acks: int = -1,
        idempotent: bool = False,
    ) -> list[Place]:
        with translated():
            producer = KafkaProducer(
                bootstrap_servers=self.bootstrap,
                compression_type=None if codec == "none" else codec,
                acks="all" if acks == -1 else acks,
                enable_idempotence=idempotent,
                max_request_size=50_000_000,
                max_block_ms=_MS,
                request_timeout_ms=10_000,
                delivery_timeout_ms=_MS,
                linger_ms=5,
            )
        try:
            with translated():
                sent = [
                    producer.send(
                        topic,
                        message.value,
                        message.key,
                        list(message.headers),
                        message.partition,
                        message.timestamp_ms,
                    )
                    for message in messages
                ]
                done = [future.get(SECONDS) for future in sent]
        finally:
            producer.close(timeout=SECONDS)
        return [(each.partition, each.offset) for each in done]

    def reader(
        self,
        topic: str,
        *,
        group: str | None = None,
        instance: str | None = None,
        assignor: str = "range",
        session_ms: int = 6000,
    ) -> KafkaPythonReader:
        config: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap,
            "group_id": group,
            "enable_auto_commit": False,
            "auto_offset_reset": "earliest",
            "fetch_max_wait_ms": 100,
            "retry_backoff_ms": 20,
            "reconnect_backoff_ms": 20,
            "reconnect_backoff_max_ms": 200,
            "session_timeout_ms": session_ms,
            "heartbeat_interval_ms": max(50, session_ms // 30),
            "max_poll_interval_ms": max(60_000, session_ms),
            "request_timeout_ms": 70_000,  # above max_poll_interval_ms, which a JoinGroup may take
            "partition_assignment_strategy": [_ASSIGNORS[assignor]],
            "group_instance_id": instance,
        }
        with translated():
            return KafkaPythonReader(topic, config, subscribe=group is not None)
