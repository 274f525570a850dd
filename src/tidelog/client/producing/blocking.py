"""Producers for programs without an event loop. Any thread may use them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Self

from tidelog.client.cluster import Cluster
from tidelog.client.content import AnyHeaders, Content, Moment
from tidelog.client.errors import ClientClosed
from tidelog.client.loop_thread import Blocking, LoopThread, blocking
from tidelog.client.producing.accumulator import Receipt, memory_of
from tidelog.client.producing.batch_sender import BatchSender, WrittenRecords
from tidelog.client.producing.identity import Identity
from tidelog.client.producing.producer import Producer, prepare
from tidelog.client.producing.transactions import OpenTransaction, TransactionalProducer
from tidelog.model import TopicPartition
from tidelog.records.batch import ReadBuffer

_ROOM_CHECK_S = 1.0  # how often a thread that waits for room looks for Ctrl-C and for a closed producer


def _producer(blocking: "BlockingProducer") -> Producer:
    return blocking._producer


def _transactional(blocking: "BlockingTransactionalProducer") -> TransactionalProducer:
    return blocking._producer


class BlockingProducer(Blocking):
    """`with client.producer() as producer: producer.send("orders", b"...")`

    The end of the block waits until everything is delivered. Made by `Client.producer`.
    """

    def __init__(self, client: object, thread: LoopThread, producer: Producer, cluster: Cluster) -> None:
        self._client = client  # a client without references is closed
        self._thread = thread
        self._producer = producer
        self._cluster = cluster

    def send(
        self,
        topic: str,
        value: Content,
        *,
        key: Content = None,
        headers: AnyHeaders = (),
        partition: int | None = None,
        timestamp: Moment | None = None,
    ) -> Receipt:
        """Add a record to the next batch; waits only if the buffer is full. `receipt.result()` waits until the
        record is written."""
        record = prepare(topic, value, key=key, headers=headers, partition=partition, timestamp=timestamp)
        while True:
            taken = self._producer.try_send(record)
            if taken is not None:
                return taken[0]
            if self._cluster.cached_topic(topic) is None:
                self._thread.run(self._producer.learn(topic))
            else:
                _, _, encoded_value, encoded_key, _, encoded_headers = record
                size = memory_of(encoded_value, encoded_key, encoded_headers)
                self._producer.accumulator.wait_for_room(size, _ROOM_CHECK_S)

    @property
    def has_failures(self) -> bool:
        """True if records were not delivered and nobody asked for their receipts; `flush` raises their error."""
        return self._producer.has_failures

    flush = blocking(Producer.flush, of=_producer)

    def close(self, *, flush: bool = True) -> None:
        """`flush=False` drops records that are not on their way yet."""
        with suppress(ClientClosed):  # then the client has closed it
            self._thread.run(self._producer.close(flush=flush))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        self.close(flush=error_type is None)


class BlockingTransactionalProducer(BlockingProducer):
    """`tidelog.client.producing.transactions` for threads: `init`, then `with producer.transaction(): ...`.

    Made by `Client.transactional_producer`.
    """

    _producer: TransactionalProducer

    init = blocking(TransactionalProducer.init, of=_transactional)
    commit = blocking(TransactionalProducer.commit, of=_transactional)
    abort = blocking(TransactionalProducer.abort, of=_transactional)
    send_offsets = blocking(TransactionalProducer.send_offsets, of=_transactional)
    hand_over = blocking(TransactionalProducer.hand_over, of=_transactional)

    def begin(self) -> None:
        """Begin a transaction. No request is sent before the first record."""
        self._producer.begin()

    @contextmanager
    def transaction(self) -> Iterator["BlockingTransactionalProducer"]:
        """`begin` and `commit` around a block; an exception in it, or a failed delivery, aborts."""
        self.begin()
        try:
            yield self
            self.commit()
        except BaseException:
            if self._producer.is_open:
                self.abort()
            raise

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        self._thread.run(self._producer.__aexit__(error_type))


class BlockingBatchSender(Blocking):
    """`with client.batch_sender() as sender: sender.send(...); sender.flush()`; see `producing.batch_sender`."""

    def __init__(self, client: object, thread: LoopThread, sender: BatchSender) -> None:
        self._client = client  # a client without references is closed
        self._thread = thread
        self._sender = sender

    @property
    def identity(self) -> Identity | None:
        """What batches must be numbered under; None without idempotence."""
        return self._sender.identity

    @property
    def transaction(self) -> OpenTransaction | None:
        """What ends the transaction, from anywhere; None if none was begun."""
        return self._sender.transaction

    def next_sequence(self, partition: TopicPartition) -> int:
        """The base sequence that the next batch of the partition must have."""
        return self._sender.next_sequence(partition)

    def send(self, partition: TopicPartition, batches: Sequence[ReadBuffer]) -> None:
        """Send encoded batches; waits if too much is in flight. Raises the error of an earlier batch."""
        self._thread.run(self._sender.send(partition, list(batches)))

    def flush(self) -> dict[TopicPartition, WrittenRecords]:
        """Wait until everything is written; raises the first error."""
        return self._thread.run(self._sender.flush())

    def close(self) -> None:
        """A transaction is left open, for others to end, or until its timeout."""
        with suppress(ClientClosed):
            self._thread.run(self._sender.close())

    def __enter__(self) -> "BlockingBatchSender":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
