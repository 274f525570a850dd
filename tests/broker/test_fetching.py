"""Fetching, whatever the engine: what is there, what comes later, and who waits for it."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.broker.brokers import NOW_MS, make_topic, run
from tests.support.logs import batch
from tests.support.slow_engine import Pace, SlowLog
from tidelog.broker.broker import Broker
from tidelog.broker.fetching import Fetched, FetchLimits, LongPoll, ReadFrom, fetch
from tidelog.broker.partition import Partition
from tidelog.errors import OffsetOutOfRange, StorageError
from tidelog.promise import Promise, result_of
from tidelog.records.batch import iterate
from tidelog.records.record import decode
from tidelog.storage.local.log import LocalLog

MANY = 2500
NOW, LONG, FOREVER = 0, 60_000, None
Found = list[Fetched[ReadFrom]]


@pytest.fixture(params=["local", "slow"])
def engine(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def use(engine: str, partition: Partition) -> Partition:
    if engine == "slow":
        assert isinstance(partition.log, LocalLog)
        partition.log = SlowLog(partition.log, Pace())
    return partition


async def write(partition: Partition, *values: bytes) -> None:
    for value in values:
        await result_of(partition.append(batch(value), durable=False, now_ms=NOW_MS))


def values_in(fetched: Fetched[ReadFrom]) -> list[bytes | None]:
    return [record.value for view in iterate(fetched.result.read()) for record in decode(view)]


def limits(
    max_wait_ms: int | None, min_bytes: int = 1, max_bytes: int = 1 << 20, *, committed: bool = False
) -> FetchLimits:
    return FetchLimits(min_bytes, max_bytes, max_wait_ms, committed)


def ask(broker: Broker, of: FetchLimits, *targets: ReadFrom) -> "Found | LongPoll[ReadFrom]":
    return fetch(broker, None, lambda: targets, of)


async def found(asked: "Found | LongPoll[ReadFrom]") -> Found:
    return await asyncio.wait_for(result_of(asked.answer), 20) if isinstance(asked, LongPoll) else asked


def at(offset: int, index: int = 0, max_bytes: int = 1 << 20) -> ReadFrom:
    return ReadFrom("topic", index, offset, max_bytes)


def play(tmp_path: Path, story: Callable[[Broker], Awaitable[None]]) -> None:
    run(tmp_path, story)


def test_what_is_there_is_found(tmp_path: Path, engine: str) -> None:
    async def story(broker: Broker) -> None:
        partition = use(engine, await make_topic(broker))
        await write(partition, b"a", b"b", b"c")
        asked = ask(broker, limits(NOW), at(1))
        assert isinstance(asked, LongPoll) == (engine == "slow")
        (fetched,) = await found(asked)
        assert values_in(fetched) == [b"b", b"c"]
        assert (fetched.error, fetched.high_watermark, fetched.last_stable_offset) == (None, 3, 3)
        assert broker.waits == set()

    play(tmp_path, story)


def test_who_wants_more_than_there_is_waits_for_it(tmp_path: Path, engine: str) -> None:
    async def story(broker: Broker) -> None:
        partition = use(engine, await make_topic(broker))
        await write(partition, b"a")
        size = len(batch(b"a"))
        asked = ask(broker, limits(LONG, 3 * size), at(0))
        assert isinstance(asked, LongPoll)
        for value in (b"b", b"c"):
            assert not asked.answer.is_kept
            await write(partition, value)
        (fetched,) = await found(asked)
        assert values_in(fetched) == [b"a", b"b", b"c"]
        assert fetched.high_watermark == 3
        assert broker.waits == set()

    play(tmp_path, story)


def test_when_the_time_is_over_there_is_what_there_is(tmp_path: Path, engine: str) -> None:
    async def story(broker: Broker) -> None:
        partition = use(engine, await make_topic(broker))
        await write(partition, b"a")
        (fetched,) = await found(ask(broker, limits(20, 1 << 20), at(0)))
        assert values_in(fetched) == [b"a"]
        (fetched,) = await found(ask(broker, limits(20), at(1)))
        assert (fetched.result.size, fetched.error) == (0, None)

    play(tmp_path, story)


def test_hurrying_answers_and_abandoning_does_not(tmp_path: Path, engine: str) -> None:
    async def story(broker: Broker) -> None:
        use(engine, await make_topic(broker))
        asked, left = ask(broker, limits(LONG), at(0)), ask(broker, limits(LONG), at(0))
        assert isinstance(asked, LongPoll)
        assert isinstance(left, LongPoll)
        left.abandon()
        asked.hurry()
        assert [each.result.size for each in await found(asked)] == [0]
        assert not left.answer.is_kept
        assert broker.waits == set()

    play(tmp_path, story)


def test_an_error_of_one_partition_is_its_own_and_ends_the_wait(tmp_path: Path, engine: str) -> None:
    async def story(broker: Broker) -> None:
        partition = use(engine, await make_topic(broker, partitions=2))
        await write(partition, b"a")
        missing = ReadFrom("nobody", 0, 0, 100)
        good, beyond, unknown = await found(ask(broker, limits(LONG, 1 << 20), at(0, 0, 1000), at(7, 1), missing))
        assert values_in(good) == [b"a"]
        assert isinstance(beyond.error, OffsetOutOfRange)
        assert (beyond.high_watermark, beyond.start_offset) == (-1, 0)
        assert unknown.error is not None
        assert unknown.error.kafka_code == 3

    play(tmp_path, story)


def test_a_read_that_fails_later_is_an_error_of_one_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(broker: Broker) -> None:
        partition = use("slow", await make_topic(broker, partitions=2))
        await write(partition, b"a")

        def fails(*_: object, **__: object) -> None:
            raise StorageError("the object is gone")

        assert isinstance(partition.log, SlowLog)
        monkeypatch.setattr(partition.log._inner, "read_now", fails)
        bad, other = await found(ask(broker, limits(LONG, 1 << 20), at(0, 0, 1000), at(0, 1)))
        assert str(bad.error) == "the object is gone"
        assert other.error is None

    play(tmp_path, story)


def test_all_partitions_share_the_room_and_the_first_batch_comes_whole(tmp_path: Path, engine: str) -> None:
    async def story(broker: Broker) -> None:
        await make_topic(broker, partitions=3)
        for index in range(3):
            await write(use(engine, broker.partition("topic", index)), b"a" * 1000, b"b" * 1000)
        size = len(batch(b"a" * 1000))
        targets = [at(0, index) for index in range(3)]
        small = await found(ask(broker, limits(NOW, max_bytes=10), *targets))
        assert [each.result.size for each in small] == [size, 0, 0]
        large = await found(ask(broker, limits(NOW, max_bytes=3 * size), *targets))
        assert sum(each.result.size for each in large) <= 3 * size
        assert large[0].result.size == 2 * size

    play(tmp_path, story)


def test_very_many_partitions_are_waited_for_together(tmp_path: Path, engine: str) -> None:
    async def story(broker: Broker) -> None:
        await make_topic(broker, partitions=MANY)
        last = use(engine, broker.partition("topic", MANY - 1))
        asked = ask(broker, limits(LONG), *(at(0, index) for index in range(MANY)))
        assert isinstance(asked, LongPoll)
        await write(last, b"value")
        assert [each.target.index for each in await found(asked) if each.result.size] == [MANY - 1]

    play(tmp_path, story)


def test_a_broker_that_stops_answers_but_for_those_who_wait_for_ever(tmp_path: Path, engine: str) -> None:
    async def story(broker: Broker) -> None:
        partition = use(engine, await make_topic(broker))
        asked, patient = ask(broker, limits(LONG), at(0)), ask(broker, limits(FOREVER), at(0))
        assert isinstance(patient, LongPoll)
        broker.stop_waiting()
        assert [each.result.size for each in await found(asked)] == [0]
        assert not patient.answer.is_kept
        await write(partition, b"a")
        assert [values_in(each) for each in await found(patient)] == [[b"a"]]

    play(tmp_path, story)


def test_what_is_not_kept_yet_is_seen_by_nobody(tmp_path: Path) -> None:
    async def story(broker: Broker) -> None:
        partition = await make_topic(broker)
        assert isinstance(partition.log, LocalLog)
        partition.log = SlowLog(partition.log, Pace(longest_s=0.05))
        waiting = ask(broker, limits(LONG), at(0))
        appended = partition.append(batch(b"a"), durable=False, now_ms=NOW_MS)
        assert isinstance(appended, Promise)
        assert partition.high_watermark == 0
        (early,) = await found(ask(broker, limits(NOW), at(0)))
        if not appended.is_kept:
            assert early.high_watermark == early.result.size == 0
        assert (await appended).base_offset == 0
        (fetched,) = await found(waiting)
        assert (values_in(fetched), fetched.high_watermark) == ([b"a"], 1)

    play(tmp_path, story)


def test_a_start_that_moves_wakes_those_whose_offset_is_gone(tmp_path: Path, engine: str) -> None:
    async def story(broker: Broker) -> None:
        partition = use(engine, await make_topic(broker))
        in_transaction = batch(b"a", producer_id=7, producer_epoch=0, sequence=0, transactional=True)
        await result_of(partition.append(in_transaction, durable=False, now_ms=NOW_MS, transactional=True))
        await write(partition, b"b")
        asked = ask(broker, limits(LONG, committed=True), at(0))
        assert isinstance(asked, LongPoll)
        await partition.log.delete_before(2)
        (fetched,) = await found(asked)
        assert isinstance(fetched.error, OffsetOutOfRange)

    play(tmp_path, story)
