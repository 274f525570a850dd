"""Does one piece of work with one Python client, in a separate process; prints a line of JSON.

`python -m benchmarks.peers.python_client PEER WORK HOST:PORT '{"stream": ..., ...}'`. Each client is used in the
fastest way that its documentation shows: confluent-kafka with its own batching, nats-py with asynchronous publishes,
redis-py with pipelines.
"""

import asyncio
import json
import sys
import threading
import time
import zlib
from typing import Any, Protocol

_MASK = (1 << 64) - 1


def value_of(number: int, size: int) -> bytes:
    text = (
        f'{{"number":{number},"user":"u{number * 7919 % 50000:06}","event":"view","page":"/product/{number % 97}"}}'
    )
    return (text.encode() * (size // len(text) + 1))[:size]


class Sums:
    """Count and checksum, independent of the order."""

    def __init__(self) -> None:
        self.messages = 0
        self.checksum = 0

    def add(self, value: bytes) -> None:
        self.messages += 1
        self.checksum = (self.checksum + zlib.crc32(value) * 0x9E3779B97F4A7C15) & _MASK


def percentiles(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {
        name: ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1e3
        for name, share in (("p50_ms", 0.5), ("p99_ms", 0.99))
    }


class Client(Protocol):
    def publish(self, count: int, size: int) -> dict[str, Any]: ...
    def consume(self, count: int) -> dict[str, Any]: ...
    def round_trips(self, count: int, size: int) -> dict[str, Any]: ...
    def latency(self, rate: int, seconds: float, size: int) -> dict[str, Any]: ...
    def drop(self) -> dict[str, Any]: ...


def told(sums: Sums, seconds: float) -> dict[str, Any]:
    return {"seconds": seconds, "messages": sums.messages, "checksum": sums.checksum}


def stamped(size: int) -> bytes:
    return f"{time.perf_counter():.7f} ".encode().ljust(size, b".")


def age_of(value: bytes) -> float:
    return time.perf_counter() - float(value.split(b" ", 1)[0])


# ---- Tidelog and Kafka


class KafkaClient:
    def __init__(self, peer: str, address: str, stream: str, fsync: bool) -> None:
        from confluent_kafka.admin import AdminClient

        self._peer, self._address, self._stream, self._fsync = peer, address, stream, fsync
        self._admin = AdminClient({"bootstrap.servers": address})

    def _create(self) -> None:
        from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

        lazy, durable = {"kafka": ({}, {"flush.messages": "1"})}.get(
            self._peer, ({"tidelog.flush": "os"}, {"tidelog.flush": "acks"})
        )
        new = NewTopic(self._stream, 1, 1, config=durable if self._fsync else lazy)
        self._admin.create_topics([new])[self._stream].result()

    def _producer(self, linger_ms: int) -> Any:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self._address, "acks": "all", "linger.ms": linger_ms})
        producer.list_topics(self._stream, timeout=30)
        return producer

    def _consumer(self) -> Any:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer(
            {
                "bootstrap.servers": self._address,
                "group.id": "bench",
                "enable.auto.commit": False,
                "fetch.queue.backoff.ms": 5,
                "auto.offset.reset": "earliest",
            }
        )
        consumer.assign([TopicPartition(self._stream, 0, 0)])
        return consumer

    def publish(self, count: int, size: int) -> dict[str, Any]:
        self._create()
        producer, sums, failed = self._producer(5), Sums(), []

        def delivered(error: Any, _: Any) -> None:
            if error is not None:
                failed.append(error)

        values = [value_of(number, size) for number in range(count)]
        began = time.perf_counter()
        for number, value in enumerate(values):
            while True:
                try:
                    producer.produce(self._stream, value, partition=0, on_delivery=delivered)
                    break
                except BufferError:
                    producer.poll(0.01)
            if number % 1000 == 0:
                producer.poll(0)
        left = producer.flush(120)
        seconds = time.perf_counter() - began
        assert not left, f"{left} messages were not delivered"
        assert not failed, failed[0]
        for value in values:
            sums.add(value)
        return told(sums, seconds)

    def consume(self, count: int) -> dict[str, Any]:
        consumer = self._consumer()
        values: list[Any] = []
        began = time.perf_counter()
        while len(values) < count and time.perf_counter() - began < 120:
            for message in consumer.consume(min(1000, count - len(values)), 1):
                assert message.error() is None, message.error()
                values.append(message.value())
        return _read(values, time.perf_counter() - began)

    def round_trips(self, count: int, size: int) -> dict[str, Any]:
        self._create()
        producer, times = self._producer(0), []
        for number in range(count):
            value = value_of(number, size)
            done: list[Any] = []
            began = time.perf_counter()
            producer.produce(
                self._stream, value, partition=0, on_delivery=lambda error, _, done=done: done.append(error)
            )
            while not done:
                producer.poll(10)
            times.append(time.perf_counter() - began)
            assert done == [None], done
        return percentiles(times)

    def latency(self, rate: int, seconds: float, size: int) -> dict[str, Any]:
        self._create()
        consumer, producer, total = self._consumer(), self._producer(0), int(rate * seconds)
        times: list[float] = []

        def consume() -> None:
            while len(times) < total:
                message = consumer.poll(1)
                if message is not None and message.error() is None:
                    times.append(age_of(message.value()))

        reader = threading.Thread(target=consume, daemon=True)
        reader.start()
        began = time.perf_counter()
        for number in range(total):
            while (wait := began + number / rate - time.perf_counter()) > 0:
                time.sleep(wait)
            producer.produce(self._stream, stamped(size), partition=0)
            producer.poll(0)
        producer.flush(30)
        reader.join(30)
        assert len(times) == total, f"{len(times)} of {total} messages came"
        return percentiles(times[rate // 2 :])

    def drop(self) -> dict[str, Any]:
        from confluent_kafka import KafkaException

        try:
            self._admin.delete_topics([self._stream])[self._stream].result()
        except KafkaException as error:
            if "UNKNOWN_TOPIC" not in str(error):
                raise
        return {}


def _read(values: list[bytes], seconds: float) -> dict[str, Any]:
    sums = Sums()
    for value in values:
        sums.add(value)
    return told(sums, seconds)


# ---- NATS JetStream


class NatsClient:
    def __init__(self, _: str, address: str, stream: str, fsync: bool) -> None:
        assert not fsync
        self._address, self._stream = address, stream

    async def _connect(self, create: bool) -> tuple[Any, Any]:
        import nats  # type: ignore[import-not-found]

        connection = await nats.connect(f"nats://{self._address}")
        stream = connection.jetstream(publish_async_max_pending=4000)
        if create:
            await stream.add_stream(name=self._stream, subjects=[self._stream], storage="file")
        return connection, stream

    def publish(self, count: int, size: int) -> dict[str, Any]:
        async def run() -> dict[str, Any]:
            connection, stream = await self._connect(True)
            values, sums = [value_of(number, size) for number in range(count)], Sums()
            began = time.perf_counter()
            answers = [await stream.publish_async(self._stream, value, wait_stall=60) for value in values]
            numbers = {answer.seq for answer in await asyncio.gather(*answers)}
            seconds = time.perf_counter() - began
            assert len(numbers) == count, f"{len(numbers)} of {count} messages were stored"
            for value in values:
                sums.add(value)
            await connection.close()
            return told(sums, seconds)

        return asyncio.run(run())

    def consume(self, count: int) -> dict[str, Any]:
        async def run() -> dict[str, Any]:
            connection, stream = await self._connect(False)
            values: list[bytes] = []
            began = time.perf_counter()
            subscription = await stream.subscribe(self._stream, ordered_consumer=True)
            while len(values) < count:
                values.append((await subscription.next_msg(timeout=30)).data)
            result = _read(values, time.perf_counter() - began)
            await connection.close()
            return result

        return asyncio.run(run())

    def round_trips(self, count: int, size: int) -> dict[str, Any]:
        async def run() -> dict[str, Any]:
            connection, stream = await self._connect(True)
            times = []
            for number in range(count):
                value = value_of(number, size)
                began = time.perf_counter()
                await stream.publish(self._stream, value)
                times.append(time.perf_counter() - began)
            await connection.close()
            return percentiles(times)

        return asyncio.run(run())

    def latency(self, rate: int, seconds: float, size: int) -> dict[str, Any]:
        async def run() -> dict[str, Any]:
            connection, stream = await self._connect(True)
            subscription = await stream.subscribe(self._stream, ordered_consumer=True)
            total = int(rate * seconds)
            times: list[float] = []

            async def consume() -> None:
                while len(times) < total:
                    times.append(age_of((await subscription.next_msg(timeout=30)).data))

            reader, answers = asyncio.create_task(consume()), []
            began = time.perf_counter()
            for number in range(total):
                while (wait := began + number / rate - time.perf_counter()) > 0:
                    await asyncio.sleep(wait)
                answers.append(await stream.publish_async(self._stream, stamped(size), wait_stall=60))
            await asyncio.gather(reader, *answers)
            await connection.close()
            return percentiles(times[rate // 2 :])

        return asyncio.run(run())

    def drop(self) -> dict[str, Any]:
        async def run() -> dict[str, Any]:
            from nats.js.errors import NotFoundError  # type: ignore[import-not-found]

            connection, stream = await self._connect(False)
            try:
                await stream.delete_stream(self._stream)
            except NotFoundError:
                pass
            await connection.close()
            return {}

        return asyncio.run(run())


# ---- Redis Streams


class RedisClient:
    def __init__(self, _: str, address: str, stream: str, fsync: bool) -> None:
        import redis  # type: ignore[import-not-found]

        host, port = address.split(":")
        self._redis = redis.Redis(host, int(port))
        self._stream = stream
        self._redis.config_set("appendfsync", "always" if fsync else "everysec")

    def publish(self, count: int, size: int) -> dict[str, Any]:
        values, sums, ids = [value_of(number, size) for number in range(count)], Sums(), set()
        began = time.perf_counter()
        for start in range(0, count, 500):
            pipeline = self._redis.pipeline(transaction=False)
            for value in values[start : start + 500]:
                pipeline.xadd(self._stream, {"v": value})
            ids.update(pipeline.execute())
        seconds = time.perf_counter() - began
        assert len(ids) == count, f"{len(ids)} of {count} messages were stored"
        for value in values:
            sums.add(value)
        return told(sums, seconds)

    def consume(self, count: int) -> dict[str, Any]:
        values: list[bytes] = []
        last: Any = "0"
        began = time.perf_counter()
        while len(values) < count:
            entries = self._entries(last, 500)
            assert entries, f"{len(values)} of {count} messages came"
            last = entries[-1][0]
            values += [fields[b"v"] for _, fields in entries]
        return _read(values, time.perf_counter() - began)

    def _entries(self, after: Any, count: int) -> list[Any]:
        reply = self._redis.xread({self._stream: after}, count=count, block=5000)
        if not reply:
            return []
        found = reply[0][1] if isinstance(reply, list) else next(iter(reply.values()))
        while found and isinstance(found[0], list):  # newer protocols return a list of lists
            found = found[0]
        return list(found)

    def round_trips(self, count: int, size: int) -> dict[str, Any]:
        times = []
        for number in range(count):
            value = value_of(number, size)
            began = time.perf_counter()
            self._redis.xadd(self._stream, {"v": value})
            times.append(time.perf_counter() - began)
        return percentiles(times)

    def latency(self, rate: int, seconds: float, size: int) -> dict[str, Any]:
        total = int(rate * seconds)
        times: list[float] = []

        def consume() -> None:
            last: Any = "0"
            while len(times) < total:
                for identity, fields in self._entries(last, 100):
                    last = identity
                    times.append(age_of(fields[b"v"]))

        reader = threading.Thread(target=consume, daemon=True)
        reader.start()
        began = time.perf_counter()
        for number in range(total):
            while (wait := began + number / rate - time.perf_counter()) > 0:
                time.sleep(wait)
            self._redis.xadd(self._stream, {"v": stamped(size)})
        reader.join(30)
        assert len(times) == total, f"{len(times)} of {total} messages came"
        return percentiles(times[rate // 2 :])

    def drop(self) -> dict[str, Any]:
        self._redis.delete(self._stream)
        return {}


CLIENTS: dict[str, type[Client]] = {
    "tidelog": KafkaClient,
    "kafka": KafkaClient,
    "nats": NatsClient,
    "redis": RedisClient,
}


def main() -> None:
    peer, work, address, options = sys.argv[1:]
    told_options = json.loads(options)
    client: Any = CLIENTS[peer]
    made = client(peer, address, told_options.pop("stream"), told_options.pop("fsync", False))
    if work == "consume":
        told_options.pop("size")
    print(json.dumps(getattr(made, work)(**told_options)))


if __name__ == "__main__":
    main()
