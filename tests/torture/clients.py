"""The clients of a torture run: each is a thread with confluent-kafka that records the results of its calls.

They continue after all errors that a broker's death causes, and never record more than they know: a delivery that
failed, and a commit that was not confirmed, may have happened.
"""

import random
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.torture.history import (
    COPIED,
    NEVER,
    Done,
    History,
    OffsetCommit,
    OffsetSeen,
    Outcome,
    Read,
    Recorder,
    Transaction,
    Write,
    now,
)

SECONDS = 60.0
BATCH_BYTES = 16_384
TRANSACTION_TIMEOUT_MS = 8_000
COMMON = {
    "socket.timeout.ms": 6_000,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 300,
    "log_level": 0,
    # By default, librdkafka 2.16 forgets all brokers when the only one is down, and pending calls (AddOffsetsToTxn)
    # can hang forever.
    "metadata.recovery.strategy": "none",
}


class Client:
    """Runs until `stop`; an unexpected exception is stored in `error`."""

    def __init__(self, name: str, bootstrap: str, history: Recorder, seed: int, life: int = 0) -> None:
        """`life`: how often a client of this name has died."""
        self.name = name
        self.life = life
        self.bootstrap = bootstrap
        self.history = history
        self.random = random.Random(f"{seed} {name} {life}")
        self.stopping = threading.Event()
        self.error: str | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.stopping.set()

    def join(self, seconds: float | None) -> bool:
        self._thread.join(seconds)
        return not self._thread.is_alive()

    @property
    def stack(self) -> str:
        """The current stack, for error messages."""
        frame = sys._current_frames().get(self._thread.ident or 0)
        return "".join(traceback.format_stack(frame)) if frame is not None else "gone"

    def work(self) -> None:
        raise NotImplementedError

    def _run(self) -> None:
        try:
            self.work()
        except BaseException:
            self.error = traceback.format_exc()

    def config(self, **more: Any) -> dict[str, Any]:
        named = {key.replace("_", "."): value for key, value in more.items()}
        return {"bootstrap.servers": self.bootstrap, **COMMON, **named}


class PlainProducer(Client):
    """Produces with acks all at a steady rate; idempotent and with long timeouts, unless its topic may be deleted.
    `partitions` may grow; with `keys`, each record has one of that many keys."""

    def __init__(
        self,
        *args: Any,
        topic: str,
        partitions: Callable[[], int],
        rate: int = 150,
        keys: int = 0,
        topic_may_go: bool = False,
    ) -> None:
        super().__init__(*args)
        self._topic, self._partitions, self._rate, self._keys = topic, partitions, rate, keys
        self._more: dict[str, Any] = {"enable_idempotence": True, "message_timeout_ms": 120_000}
        if topic_may_go:
            self._more = {"enable_idempotence": False, "message_timeout_ms": 10_000}

    def work(self) -> None:
        producer = Producer(
            self.config(linger_ms=2, batch_size=BATCH_BYTES, topic_metadata_refresh_interval_ms=500, **self._more)
        )
        sequences: Counter[int] = Counter()
        number = 0
        while not self.stopping.wait(1 / self._rate):
            partition = self.random.randrange(self._partitions())
            value = f"{self.name}-{number}"
            key = f"key {self.random.randrange(self._keys)}" if self._keys else None
            try:
                self._send(producer, partition, sequences[partition], key, value)
            except KafkaException:
                pass  # not sent: the client does not know the topic or partition yet
            else:
                sequences[partition] += 1
                number += 1
            producer.poll(0)
        assert producer.flush(SECONDS) == 0, "not everything was delivered"

    def _send(self, producer: Producer, partition: int, sequence: int, key: str | None, value: str) -> None:
        place = self._topic, partition
        began = now()

        def delivered(error: KafkaError | None, message: Any) -> None:
            outcome = Outcome.DONE if error is None else Outcome.UNKNOWN
            offset = message.offset() if error is None else None
            self.history.add(Write(self.name, sequence, place, value, None, outcome, offset, key, began, now()))
            self.history.add(Done(self.name if error is None else f"{self.name} {error.name()}"))

        producer.produce(
            self._topic, value.encode(), key and key.encode(), partition=partition, on_delivery=delivered
        )


class Undecided(Exception):
    """The producer of a transaction cannot continue; another instance must take over."""


def decide(producer: Producer, commit: bool) -> bool:
    """End the transaction; returns whether it was committed. Raises Undecided if that is unknown."""
    end = now() + SECONDS
    while True:
        try:
            producer.commit_transaction(10) if commit else producer.abort_transaction(10)
        except KafkaException as exception:
            error = exception.args[0]
            if error.txn_requires_abort():
                commit = False
            elif not error.retriable() or now() > end:
                raise Undecided(str(error)) from exception
        else:
            return commit


class TransactionalProducer(Client):
    """Transactions of a few records in all partitions; some are aborted, some are left open for a successor."""

    def __init__(self, *args: Any, topic: str, partitions: int, **more: Any) -> None:
        super().__init__(*args, **more)
        self._topic, self._partitions = topic, partitions
        self._sequences: Counter[int] = Counter()

    def work(self) -> None:
        producer: Producer | None = None
        instance = number = 0
        while not self.stopping.is_set():
            if producer is None:
                instance += 1
                self._sequences.clear()
                producer = self._instance()
                continue
            number += 1
            try:
                self._transaction(
                    producer, f"{self.name}-{self.life}.{instance}", f"{self.name}-{self.life}-t{number}"
                )
            except (Undecided, KafkaException):
                producer = None

    def _instance(self) -> Producer | None:
        producer = Producer(
            self.config(
                transactional_id=self.name,
                transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
                message_timeout_ms=TRANSACTION_TIMEOUT_MS,
                linger_ms=1,
            )
        )
        try:
            producer.init_transactions(15)
        except KafkaException:
            self.stopping.wait(0.1)
            return None
        return producer

    def _transaction(self, producer: Producer, instance: str, id_: str) -> None:
        """Each action is recorded before it is done: the client may die in the middle."""
        ending = self.random.choices(["commit", "abort", "leave"], [80, 17, 3])[0]
        self.history.add(Transaction(id_, Outcome.UNKNOWN, None))
        producer.begin_transaction()
        for number in range(self.random.randint(1, 12)):
            partition = self.random.randrange(self._partitions)
            value = f"{id_}-{number}"
            place = self._topic, partition
            self.history.add(Write(instance, self._sequences[partition], place, value, id_, Outcome.UNKNOWN))
            self._sequences[partition] += 1
            producer.produce(self._topic, value.encode(), partition=partition)
            producer.poll(0)
        if ending == "leave":
            raise Undecided("left open")
        asked = now() if ending == "commit" else None
        self.history.add(Transaction(id_, Outcome.UNKNOWN, asked))
        committed = decide(producer, ending == "commit")
        self.history.add(Transaction(id_, Outcome.DONE if committed else Outcome.NOT_DONE, asked))
        if committed:
            self.history.add(Done(self.name))


class Copier(Client):
    """Reads a topic in a group and writes a copy, exactly once: offsets and records in one transaction."""

    def __init__(self, *args: Any, source: str, target: str, **more: Any) -> None:
        super().__init__(*args, **more)
        self._source, self._target = source, target

    def work(self) -> None:
        while not self.stopping.is_set():
            consumer = Consumer(
                self.config(
                    group_id=self.name,
                    enable_auto_commit=False,
                    auto_offset_reset="earliest",
                    isolation_level="read_committed",
                    session_timeout_ms=2000,
                )
            )
            producer = Producer(
                self.config(
                    transactional_id=self.name,
                    transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
                    message_timeout_ms=TRANSACTION_TIMEOUT_MS,
                )
            )
            try:
                producer.init_transactions(15)
                consumer.subscribe([self._source])
                while not self.stopping.is_set():
                    self._round(consumer, producer)
            except (KafkaException, Undecided):
                pass  # the next instance aborts the open transaction and reads the records again
            finally:
                consumer.close()

    def _round(self, consumer: Consumer, producer: Producer) -> None:
        messages = consumer.consume(100, 0.2)
        if not messages:
            return
        producer.begin_transaction()
        positions: dict[tuple[str, int], int] = {}
        for message in messages:
            if message.error() is not None:
                raise KafkaException(message.error())
            value, index = (message.value() or b"").decode(), message.partition() or 0
            producer.produce(self._target, (COPIED + value).encode(), partition=index)
            positions[self._source, index] = (message.offset() or 0) + 1
        offsets = [TopicPartition(topic, index, offset) for (topic, index), offset in positions.items()]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 15)
        if not decide(producer, True):
            raise Undecided("aborted: the records must be read again")
        self.history.add(Done(self.name, len(messages)))


class Reader(Client):
    """Reads repeatedly, in sessions of a few seconds: some from the start, some near the end."""

    def __init__(self, *args: Any, topics: list[str], partitions: int, committed: bool) -> None:
        super().__init__(*args)
        self._committed = committed
        places = [(topic, index) for topic in topics for index in range(partitions)]
        self._next = dict.fromkeys(places, 0)  # by partition, the next offset after what was read

    def work(self) -> None:
        number = 0
        while not self.stopping.is_set():
            number += 1
            self._session(f"{self.name}-{number}", now() + self.random.uniform(2, 6))

    def _session(self, session: str, until: float) -> None:
        consumer = Consumer(
            self.config(
                group_id=self.name,
                enable_auto_commit=False,
                isolation_level="read_committed" if self._committed else "read_uncommitted",
                auto_offset_reset="earliest",
                fetch_wait_max_ms=50,
            )
        )
        back = self.random.choice([100, 1000, 10_000, sys.maxsize])
        consumer.assign([TopicPartition(*place, max(0, offset - back)) for place, offset in self._next.items()])
        try:
            while now() < until and not self.stopping.is_set():
                messages = [each for each in consumer.consume(500, 0.1) if each.error() is None]
                at = now()
                for message in messages:
                    place = message.topic() or "", message.partition() or 0
                    offset = message.offset() or 0
                    self._next[place] = max(self._next[place], offset + 1)
                    value = sys.intern((message.value() or b"").decode())  # the same value is read many times
                    self.history.add(Read(session, place, offset, value, self._committed, at))
                self.history.add(Done(self.name, len(messages)))
        finally:
            consumer.close()


class GroupMember(Client):
    """A member of a group that commits what it has read, through rebalances and deaths of the broker."""

    def __init__(
        self, *args: Any, group: str, topic: str, protocol: str = "classic", assignor: str = "range,roundrobin"
    ) -> None:
        super().__init__(*args)
        self._group, self._topic = group, topic
        self._more: dict[str, Any] = {"session_timeout_ms": 2000, "partition_assignment_strategy": assignor}
        if protocol == "consumer":
            self._more = {"group_protocol": "consumer"}

    def work(self) -> None:
        while not self.stopping.is_set():
            consumer = Consumer(
                self.config(
                    group_id=self._group, enable_auto_commit=False, auto_offset_reset="earliest", **self._more
                )
            )
            consumer.subscribe([self._topic], on_assign=self._assigned)
            try:
                until = now() + self.random.uniform(4, 10)
                while now() < until and not self.stopping.is_set():
                    messages = [each for each in consumer.consume(50, 0.1) if each.error() is None]
                    if messages:
                        self._commit(consumer, messages)
            finally:
                consumer.close()

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        began = now()
        try:
            for each in consumer.committed(partitions, timeout=5):
                if each.error is None:
                    place = each.topic, each.partition
                    self.history.add(OffsetSeen(self._group, place, max(each.offset, -1), began))
        except KafkaException:
            pass  # the broker is down; nothing was read

    def _commit(self, consumer: Consumer, messages: list[Any]) -> None:
        positions = {(each.topic(), each.partition()): each.offset() + 1 for each in messages}
        wanted = [TopicPartition(topic, index, offset) for (topic, index), offset in positions.items()]
        began = now()
        try:
            committed = consumer.commit(offsets=wanted, asynchronous=False) or []
        except KafkaException:
            for place, offset in positions.items():
                self.history.add(OffsetCommit(self._group, place, offset, began, NEVER))
            return
        for each in committed:
            if each.error is None:
                place = each.topic, each.partition
                self.history.add(OffsetCommit(self._group, place, each.offset, began, now()))
                self.history.add(Done(self.name))


def read_all(bootstrap: str, topics: Mapping[str, int], *, committed: bool) -> dict[Any, list[Any]]:
    """All records of the topics, which have this number of partitions each, up to their current ends."""
    consumer = _final_consumer(bootstrap, committed)
    bounds = _bounds(consumer, topics)
    consumer.assign([TopicPartition(topic, index, low) for (topic, index), (low, _) in bounds.items()])
    found: dict[Any, list[Any]] = {place: [] for place in bounds}
    deadline = now() + SECONDS

    def behind() -> list[Any]:
        at = consumer.position([TopicPartition(*place) for place in bounds])
        places = ((each, *bounds[each.topic, each.partition]) for each in at)
        return [each for each, low, end in places if max(each.offset, low) < end]

    while left := behind():
        assert now() < deadline, f"cannot read to the end: {left}; an open transaction?"
        for message in consumer.consume(2000, 0.2):
            if message.error() is None:
                place = message.topic(), message.partition()
                found[place].append((message.offset(), (message.value() or b"").decode()))
    consumer.close()
    return found


def starts_of(bootstrap: str, topics: Mapping[str, int]) -> dict[Any, int]:
    """The first offset of each partition."""
    consumer = _final_consumer(bootstrap, committed=False)
    starts = {place: low for place, (low, _) in _bounds(consumer, topics).items()}
    consumer.close()
    return starts


def _final_consumer(bootstrap: str, committed: bool) -> Consumer:
    return Consumer(
        Client("final", bootstrap, History(), 0).config(
            group_id="final",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed" if committed else "read_uncommitted",
        )
    )


def _bounds(consumer: Consumer, topics: Mapping[str, int]) -> dict[Any, tuple[int, int]]:
    places = [TopicPartition(topic, index) for topic, count in topics.items() for index in range(count)]
    return {
        (each.topic, each.partition): consumer.get_watermark_offsets(each, timeout=20, cached=False)
        for each in places
    }
