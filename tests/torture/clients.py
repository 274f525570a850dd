"""The clients of a torture run: each a thread with confluent-kafka that writes down what it was told.

They go on through anything that a broker's death does to them, and never claim more than they know: a delivery that
failed, and a commit that was not confirmed, may have happened.
"""

import random
import sys
import threading
import traceback
from collections import Counter
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.torture.history import (
    COPIED,
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
TRANSACTION_TIMEOUT_MS = 8_000
COMMON = {
    "socket.timeout.ms": 6_000,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 300,
    "log_level": 0,
    # With its default, librdkafka 2.16 forgets all brokers when the only one is away, and calls that were under way
    # then (AddOffsetsToTxn) can hang for good.
    "metadata.recovery.strategy": "none",
}


class Client:
    """Runs until `stop`; an exception that it does not know how to live with is kept in `error`."""

    def __init__(self, name: str, bootstrap: str, history: Recorder, seed: int, life: int = 0) -> None:
        """`life`: how often one of this name has died."""
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
        """Where it is now."""
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
    """Idempotent, acks all, a steady rate."""

    def __init__(self, *args: Any, topic: str, partitions: int, rate: int = 150) -> None:
        super().__init__(*args)
        self._topic, self._partitions, self._rate = topic, partitions, rate

    def work(self) -> None:
        producer = Producer(self.config(enable_idempotence=True, linger_ms=2, message_timeout_ms=120_000))
        sequences: Counter[int] = Counter()
        number = 0
        while not self.stopping.wait(1 / self._rate):
            partition = self.random.randrange(self._partitions)
            value = f"{self.name}-{number}"
            self._send(producer, partition, sequences[partition], value)
            sequences[partition] += 1
            number += 1
            producer.poll(0)
        assert producer.flush(SECONDS) == 0, "not everything was delivered"

    def _send(self, producer: Producer, partition: int, sequence: int, value: str) -> None:
        place = self._topic, partition

        def delivered(error: KafkaError | None, message: Any) -> None:
            outcome = Outcome.DONE if error is None else Outcome.UNKNOWN
            offset = message.offset() if error is None else None
            self.history.add(Write(self.name, sequence, place, value, None, outcome, offset))
            if error is None:
                self.history.add(Done(self.name))

        producer.produce(self._topic, value.encode(), partition=partition, on_delivery=delivered)


class Undecided(Exception):
    """The producer of a transaction is of no use any more; another instance has to take over."""


def decide(producer: Producer, commit: bool) -> bool:
    """End the transaction; whether it was committed. Undecided: nobody knows."""
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
    """Transactions of a few records over all partitions; some are aborted, some are left to a successor."""

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
        """Everything is written down before it is done: the client may die in the middle."""
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
                pass  # what was in flight is aborted by the next instance, and read again
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
            raise Undecided("aborted: the records have to be read again")
        self.history.add(Done(self.name, len(messages)))


class Reader(Client):
    """Reads again and again, in sessions of a few seconds: some from the start, some near the end."""

    def __init__(self, *args: Any, topics: list[str], partitions: int, committed: bool) -> None:
        super().__init__(*args)
        self._committed = committed
        places = [(topic, index) for topic in topics for index in range(partitions)]
        self._next = dict.fromkeys(places, 0)  # behind what was read of each

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
                    value = sys.intern((message.value() or b"").decode())  # it is read many times
                    self.history.add(Read(session, place, offset, value, self._committed, at))
                self.history.add(Done(self.name, len(messages)))
        finally:
            consumer.close()


class GroupMember(Client):
    """One of a group that commits what it has read, in every way that a rebalance and a dying broker allow."""

    def __init__(self, *args: Any, group: str, topic: str, protocol: str = "classic") -> None:
        super().__init__(*args)
        self._group, self._topic, self._protocol = group, topic, protocol

    def work(self) -> None:
        while not self.stopping.is_set():
            more = {"group_protocol": "consumer"} if self._protocol == "consumer" else {"session_timeout_ms": 2000}
            consumer = Consumer(
                self.config(group_id=self._group, enable_auto_commit=False, auto_offset_reset="earliest", **more)
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
            pass  # the broker is away; nothing was seen

    def _commit(self, consumer: Consumer, messages: list[Any]) -> None:
        positions = {(each.topic(), each.partition()): each.offset() + 1 for each in messages}
        wanted = [TopicPartition(topic, index, offset) for (topic, index), offset in positions.items()]
        began = now()
        try:
            committed = consumer.commit(offsets=wanted, asynchronous=False) or []
        except KafkaException:
            return  # perhaps it was, perhaps not
        for each in committed:
            if each.error is None:
                place = each.topic, each.partition
                self.history.add(OffsetCommit(self._group, place, each.offset, began, now()))
                self.history.add(Done(self.name))


def read_all(bootstrap: str, topics: list[str], partitions: int, *, committed: bool) -> dict[Any, list[Any]]:
    """Everything that the topics hold, up to the end that they have now."""
    client = Client("final", bootstrap, History(), 0)
    consumer = Consumer(
        client.config(
            group_id="final",
            enable_auto_commit=False,
            isolation_level="read_committed" if committed else "read_uncommitted",
        )
    )
    places = [TopicPartition(topic, index, 0) for topic in topics for index in range(partitions)]
    found: dict[Any, list[Any]] = {(each.topic, each.partition): [] for each in places}
    ends = {
        (each.topic, each.partition): consumer.get_watermark_offsets(each, timeout=20, cached=False)[1]
        for each in places
    }
    consumer.assign(places)
    deadline = now() + SECONDS

    def behind() -> list[Any]:
        at = consumer.position([TopicPartition(*place) for place in ends])
        return [each for each in at if max(each.offset, 0) < ends[each.topic, each.partition]]

    while left := behind():
        assert now() < deadline, f"cannot read to the end: {left}; an open transaction?"
        for message in consumer.consume(2000, 0.2):
            if message.error() is None:
                place = message.topic(), message.partition()
                found[place].append((message.offset(), (message.value() or b"").decode()))
    consumer.close()
    return found
