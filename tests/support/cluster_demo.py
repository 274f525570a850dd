"""`make cluster`: three brokers over a real PostgreSQL, with a producer and a consumer that count what arrives.

    python -m tests.support.cluster_demo [--s3] [--seconds N]

Prints the process ids, so that you can `kill -9` a broker and watch. A broker that ended is started again after 30
seconds. Everything ends with Ctrl-C, and leaves nothing behind.
"""

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from tests.support.clusters import ClusterProcesses, cluster_of
from tests.support.object_server import BUCKET, shared_server
from tidelog.client import Client, ClientOptions, connect
from tidelog.errors import TidelogError

BROKERS, PARTITIONS, TOPIC = 3, 6, "demo"
RECORDS_PER_SECOND = 200
RESTART_SECONDS = 30.0
_PATIENCE_MS = 1_500  # for the leaders that are shown
_QUIET = {"log_level": 0}  # the library reports lost connections, at length


class Count:
    """Every number is written once, in order within its partition. It is compared what was acknowledged, and at which
    offset, with what the consumer finds there."""

    def __init__(self) -> None:
        self.sent = self.acknowledged = self.failed = self.received = self.missing = self.duplicates = 0
        self._acknowledged: dict[int, dict[int, int]] = defaultdict(dict)  # by partition, by offset: not received yet
        self._received: dict[int, dict[int, int]] = defaultdict(dict)  # not acknowledged yet
        self._last: dict[int, int] = {}  # number that was received, by partition
        self._next: dict[int, int] = defaultdict(int)  # offset that the consumer expects, by partition
        self._lock = threading.Lock()

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        partition, offset, number = _place(message)
        with self._lock:
            if error is not None:
                self.failed += 1
                return
            self.acknowledged += 1
            if offset >= self._next[partition]:
                self._acknowledged[partition][offset] = number
            elif self._received[partition].pop(offset, None) != number:
                self.missing += 1

    def arrived(self, message: Message) -> None:
        partition, offset, number = _place(message)
        with self._lock:
            self.received += 1
            for earlier in range(self._next[partition], offset):
                self.missing += self._acknowledged[partition].pop(earlier, None) is not None
            self._next[partition] = offset + 1
            self.duplicates += number <= self._last.get(partition, -1)
            self._last[partition] = number
            expected = self._acknowledged[partition].pop(offset, None)
            if expected is None:
                self._received[partition][offset] = number
            elif expected != number:
                self.missing += 1


def _place(message: Message) -> tuple[int, int, int]:
    partition, offset, value = message.partition(), message.offset(), message.value()
    assert partition is not None
    assert value is not None
    return partition, -1 if offset is None else offset, int(value)


def produce(bootstrap: str, count: Count, ending: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5, **_QUIET})
    began = time.monotonic()
    while not ending.wait(0.01):
        while count.sent < (time.monotonic() - began) * RECORDS_PER_SECOND:
            try:
                producer.produce(TOPIC, str(count.sent), partition=count.sent % PARTITIONS, callback=count.delivered)
            except BufferError:  # it holds as much as it may
                break
            count.sent += 1
        producer.poll(0)
    producer.flush(1)


def consume(bootstrap: str, count: Count, ending: threading.Event) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": TOPIC, "enable.auto.commit": False, **_QUIET})
    consumer.assign([TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)])
    while not ending.is_set():
        for message in consumer.consume(500, 0.1):
            if message.error() is None:
                count.arrived(message)
    consumer.close()


def leaders(client: Client) -> str:
    try:
        return " ".join("-" if row.leader < 0 else str(row.leader) for row in client.topic(TOPIC).partitions)
    except TidelogError as error:
        return str(error)


def revive(cluster: ClusterProcesses, ended: dict[int, float]) -> None:
    """Tell which brokers have ended, and start them again after a while."""
    for number, broker in enumerate(cluster.brokers, 1):
        if broker.is_running:
            continue
        if number not in ended:
            ended[number] = time.monotonic()
            print(f"broker {number} (pid {broker.pid}) ended; it is started again in {RESTART_SECONDS:.0f} s")
        elif time.monotonic() - ended[number] > RESTART_SECONDS:
            del ended[number]
            broker.start()
            print(f"broker {number} runs again: pid {broker.pid}")


def run(cluster: ClusterProcesses, seconds: float) -> Count:
    count, ending = Count(), threading.Event()
    with connect(
        cluster.bootstrap, ClientOptions(timeout_ms=_PATIENCE_MS, request_timeout_ms=_PATIENCE_MS)
    ) as client:
        client.create_topic(TOPIC, partitions=PARTITIONS)
        threads = [
            threading.Thread(target=work, args=(cluster.bootstrap, count, ending)) for work in (produce, consume)
        ]
        for thread in threads:
            thread.start()
        began = time.monotonic()
        ended: dict[int, float] = {}
        try:
            while (passed := time.monotonic() - began) < seconds:
                time.sleep(1)
                revive(cluster, ended)
                numbers = (
                    f"{name} {getattr(count, name):,}"
                    for name in ("sent", "acknowledged", "received", "missing", "duplicates", "failed")
                )
                print(f"{passed:5.0f} s  {'  '.join(numbers)}  leaders {leaders(client)}", flush=True)
        finally:
            ending.set()
            for thread in threads:
                thread.join()
    return count


def main() -> int:
    options = argparse.ArgumentParser(description="Run a cluster of three brokers, and count what arrives.")
    options.add_argument("--s3", action="store_true", help="keep objects in an S3 server, not in a directory")
    options.add_argument("--seconds", type=float, default=float("inf"), help="end after this time")
    chosen = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends everything, too
    try:
        with ExitStack() as stack:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tidelog-cluster-")))
            storage = None
            if chosen.s3:
                server = shared_server()
                storage = f"s3://{BUCKET}/{TOPIC}"
                os.environ["AWS_ENDPOINT_URL"] = server.endpoint
                os.environ["AWS_ACCESS_KEY_ID"] = server.access_key_id
                os.environ["AWS_SECRET_ACCESS_KEY"] = server.secret_access_key
            cluster = stack.enter_context(cluster_of(BROKERS, directory, storage=storage))
            print(f"objects in {storage or f'file://{directory}/objects'}, logs in {directory}/broker-*/output.txt")
            for number, broker in enumerate(cluster.brokers, 1):
                print(f"broker {number}: pid {broker.pid}, {broker.bootstrap}")
            print(f"Try: kill -9 {cluster.brokers[0].pid}, or: tidelog cluster brokers -b {cluster.bootstrap}")
            print("Press Ctrl-C to end.", flush=True)
            count = run(cluster, chosen.seconds)
            return 1 if count.missing or count.duplicates or count.failed else 0
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
