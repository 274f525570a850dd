"""Transactions of a broker process under load; part of `benchmarks.broker`.

Small transactions with confluent-kafka, as in a user's program; all are read back. Then a partition full of
transactions, of which one in ten was aborted, is read with both isolation levels over a raw socket, which costs
almost nothing.
"""

import os
import statistics
import threading
import time
from typing import Any

from benchmarks.report import Report
from tidelog.records.batch import CRC_START, HEADER, TRANSACTIONAL_BIT, BatchHeader, iterate, read_header
from tidelog.records.crc import crc32c
from tidelog.records.record import BatchBuilder
from tidelog.wire.apis import BY_NAME
from tidelog.wire.generated.end_txn import EndTxnRequest
from tidelog.wire.generated.fetch import FetchPartition, FetchRequest, FetchTopic
from tidelog.wire.generated.init_producer_id import InitProducerIdRequest
from tidelog.wire.generated.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PRODUCERS, MESSAGES, SIZE = 8, 100, 100
BATCHES_PER_TRANSACTION = 10


def measure_transactions(broker: Any, connect: Any, create: Any, report: Report, share: int) -> None:
    small_transactions(broker, create, report, 400 // share, 500)
    _isolation(broker, connect, create, report, 2000 // share)


def small_transactions(broker: Any, create: Any, report: Report, count: int, goal: int) -> None:
    """`count` transactions of each producer; `goal` a second of all together."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    topic = "transactions"
    create(broker.bootstrap, topic, PRODUCERS)
    os.sync()  # so that the timed syncs do not write data of other rows
    value = b"x" * SIZE
    ready = threading.Barrier(PRODUCERS + 1)
    taken: list[float] = []
    failures: list[BaseException] = []

    def produce(number: int) -> None:
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap, "transactional.id": f"bench-{number}", "linger.ms": 5}
        )
        producer.init_transactions(30)
        ready.wait()
        try:
            for _ in range(count):
                began = time.perf_counter()
                producer.begin_transaction()
                for _ in range(MESSAGES):
                    producer.produce(topic, value, partition=number)
                producer.commit_transaction(30)
                taken.append(time.perf_counter() - began)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=produce, args=(number,)) for number in range(PRODUCERS)]
    for thread in threads:
        thread.start()
    ready.wait()
    cpu, began = broker.cpu_seconds(), time.perf_counter()
    for thread in threads:
        thread.join()
    seconds, cpu = time.perf_counter() - began, broker.cpu_seconds() - cpu
    assert not failures, failures[0]
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": topic, "isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PRODUCERS)])
    seen = 0
    while seen < PRODUCERS * count * MESSAGES:
        for message in consumer.consume(10_000, 10):
            assert message.error() is None
            assert message.value() == value
            seen += 1
    assert not consumer.consume(1, 0.5), "more than was sent"
    consumer.close()
    rate = PRODUCERS * count / seconds
    p50, p99 = statistics.median(taken) * 1000, statistics.quantiles(taken, n=100)[98] * 1000
    report.figures |= {
        "transactions_s": round(rate),
        "transaction_p50_ms": round(p50, 2),
        "transaction_p99_ms": round(p99, 2),
        "transaction_cpu_ms": round(cpu / (PRODUCERS * count) * 1000, 3),
    }
    report.add(
        f"transactions of {MESSAGES} messages, {PRODUCERS} producers",
        f"{rate:,.0f} /s, p50 {p50:.1f} ms, p99 {p99:.1f} ms, {cpu / (PRODUCERS * count) * 1e6:,.0f} us CPU each",
        "",
        f"{goal} /s",
        met=rate >= goal,
    )


def _isolation(broker: Any, connect: Any, create: Any, report: Report, transactions: int) -> None:
    topic = "isolation"
    create(broker.bootstrap, topic)
    raw = connect(broker.bootstrap)
    total, committed = _fill(raw, topic, transactions)
    rates: dict[int, list[float]] = {0: [], 1: []}
    for _ in range(3):
        for level in (0, 1):
            began = time.perf_counter()
            seen, size = _read(raw, topic, level)
            rates[level].append(size / (time.perf_counter() - began) / 1e9)
            assert seen == (committed if level else total), (seen, committed, total)
    raw.socket.close()
    uncommitted_rate, committed_rate = max(rates[0]), max(rates[1])
    ratio = committed_rate / uncommitted_rate
    report.figures |= {
        "read_uncommitted_gb_s": round(uncommitted_rate, 3),
        "read_committed_gb_s": round(committed_rate, 3),
        "read_committed_ratio": round(ratio, 3),
    }
    report.add(
        "read_committed against read_uncommitted",
        f"{committed_rate:.2f} GB/s against {uncommitted_rate:.2f} (best of 3), {ratio:.0%}",
        "",
        "95 %",
        met=ratio >= 0.95,
    )


def _fill(raw: Any, topic: str, transactions: int) -> tuple[int, int]:
    """The number of all records, and of the committed ones."""
    builder = BatchBuilder()
    for _ in range(MESSAGES):
        builder.append(b"x" * SIZE, timestamp=time.time_ns() // 1_000_000)
    batch = builder.build()
    header = read_header(batch)
    identity = raw.ask(BY_NAME["InitProducerId"], 4, InitProducerIdRequest("isolation", 60_000))
    assert identity.error_code == 0
    producer_id, epoch = identity.producer_id, identity.producer_epoch
    committed = 0
    for number in range(transactions):
        for part in range(BATCHES_PER_TRANSACTION):
            numbered = _numbered(bytearray(batch), header, producer_id, epoch, part * MESSAGES)
            data = TopicProduceData(topic, partition_data=[PartitionProduceData(0, numbered)])
            reply = raw.ask(BY_NAME["Produce"], 12, ProduceRequest("isolation", 1, 30_000, [data]))
            assert reply.responses[0].partition_responses[0].error_code == 0, reply
        commit = number % 10 != 9
        ended = raw.ask(BY_NAME["EndTxn"], 5, EndTxnRequest("isolation", producer_id, epoch, commit))
        assert ended.error_code == 0
        producer_id, epoch = ended.producer_id, ended.producer_epoch
        committed += commit * BATCHES_PER_TRANSACTION * MESSAGES
    return transactions * BATCHES_PER_TRANSACTION * MESSAGES, committed


def _numbered(batch: bytearray, header: BatchHeader, producer_id: int, epoch: int, sequence: int) -> bytearray:
    fields = header._replace(
        attributes=header.attributes | TRANSACTIONAL_BIT,
        producer_id=producer_id,  # type: ignore[arg-type]
        producer_epoch=epoch,  # type: ignore[arg-type]
        base_sequence=sequence,
    )
    HEADER.pack_into(batch, 0, *fields)
    HEADER.pack_into(batch, 0, *fields._replace(crc=crc32c(memoryview(batch)[CRC_START:])))
    return batch


def _read(raw: Any, topic: str, level: int) -> tuple[int, int]:
    """The number of records that a consumer with this isolation level gets, and of the bytes that it reads."""
    fetch = BY_NAME["Fetch"]
    offset = seen = size = 0
    while True:
        wanted = [FetchPartition(0, fetch_offset=offset, partition_max_bytes=1 << 20)]
        message = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=16 << 20,
            isolation_level=level,
            topics=[FetchTopic(topic, partitions=wanted)],
        )
        data = raw.ask(fetch, 12, message).responses[0].partitions[0]
        assert data.error_code == 0
        if not data.records:
            return seen, size
        size += len(data.records)
        upcoming = sorted(data.aborted_transactions or (), key=lambda each: -each.first_offset)
        aborting = set()
        for view in iterate(data.records, verify=False):
            header = view.header
            offset = header.next_offset
            while upcoming and upcoming[-1].first_offset <= header.base_offset:
                aborting.add(upcoming.pop().producer_id)
            if header.is_control:
                aborting.discard(header.producer_id)
            elif header.producer_id not in aborting:
                seen += header.record_count
