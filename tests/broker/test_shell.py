"""What the shells of coordinators share: deadlines that ring, replies that are sent once."""

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
import structlog

from tidelog.broker import shell
from tidelog.broker.shell import Alarm, monotonic_ms, send, tell, to_the_end
from tidelog.errors import StorageUnavailable
from tidelog.promise import Promise


def in_loop(run: Callable[[], Awaitable[None]]) -> list[str]:
    """What was reported to the loop."""
    reported: list[str] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["message"]))
        await run()

    asyncio.run(asyncio.wait_for(main(), 30))
    return reported


@pytest.mark.parametrize("step_ns", [-3 * 3600 * 10**9, 5 * 3600 * 10**9])
def test_an_alarm_rings_at_its_time_whatever_the_wall_clock_says(
    monkeypatch: pytest.MonkeyPatch, step_ns: int
) -> None:
    async def run() -> None:
        rung = asyncio.Event()
        deadline_ms = monotonic_ms() + 30
        alarm = Alarm(lambda: None if rung.is_set() else deadline_ms, rung.set)
        alarm.set()
        # That of this module alone: brokers of other tests may run in this process.
        clock = SimpleNamespace(monotonic_ns=time.monotonic_ns, time_ns=lambda: time.time_ns() + step_ns)
        monkeypatch.setattr(shell, "time", clock)
        await rung.wait()
        assert monotonic_ms() >= deadline_ms
        alarm.close()

    assert in_loop(run) == []


def test_an_alarm_is_moved_to_an_earlier_deadline_and_not_rung_after_its_end() -> None:
    async def run() -> None:
        deadlines_ms = [monotonic_ms() + 3_600_000]
        rung: list[int] = []
        done = asyncio.Event()

        def ring() -> None:
            rung.append(deadlines_ms.pop())
            done.set()

        alarm = Alarm(lambda: deadlines_ms[-1] if deadlines_ms else None, ring)
        alarm.set()
        deadlines_ms.append(monotonic_ms() + 1)
        alarm.set()
        await done.wait()
        assert len(rung) == 1
        alarm.close()
        deadlines_ms.append(0)
        alarm.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(rung) == 1

    assert in_loop(run) == []


def test_an_alarm_whose_coordinator_fails_rings_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "_RETRY_S", 0.001)

    async def run() -> None:
        rung, done = 0, asyncio.Event()

        def ring() -> None:
            nonlocal rung
            rung += 1
            if rung < 4:
                raise ValueError("not foreseen")
            done.set()

        alarm = Alarm(monotonic_ms, ring)
        alarm.set()
        await done.wait()
        alarm.close()

    with structlog.testing.capture_logs() as lines:
        assert in_loop(run) == []
    assert [entry["event"] for entry in lines] == [
        "deadlines of a coordinator could not be handled",
        "deadlines are handled again",
    ]


def test_replies_are_sent_once() -> None:
    told: Promise[Any] = Promise()
    waits: Promise[Any] = Promise()
    told.settle("the broker stops")
    send([(told, "too late"), (waits, "reply")])

    async def run() -> None:
        assert (await told, await waits) == ("the broker stops", "reply")

    assert in_loop(run) == []


def test_news_of_bounds_are_told_once() -> None:
    said: list[str] = []
    news = ["one", "two"]
    tell(news, lambda _event, what: said.append(what))
    tell(news, lambda _event, what: said.append(what))
    assert said == ["one", "two"]


def test_the_wall_clock_is_for_stamps_and_the_other_never_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    before_ms = shell.monotonic_ms()
    clock = SimpleNamespace(monotonic_ns=time.monotonic_ns, time_ns=lambda: 42 * 10**6)
    monkeypatch.setattr(shell, "time", clock)
    assert shell.now_ms() == 42
    assert before_ms <= shell.monotonic_ms() < before_ms + 60_000


@pytest.mark.parametrize("error", [StorageUnavailable("the database is away"), ZeroDivisionError("a bug"), None])
def test_work_whose_client_is_gone_is_finished_and_its_failure_is_logged(error: Exception | None) -> None:
    async def run() -> None:
        may_end, ended = asyncio.Event(), []

        async def work() -> str:
            await may_end.wait()
            ended.append("ended")
            if error is not None:
                raise error
            return "result"

        client = asyncio.ensure_future(to_the_end(work()))
        await asyncio.sleep(0)
        client.cancel()
        with structlog.testing.capture_logs() as logged:
            with pytest.raises(asyncio.CancelledError):
                await client
            may_end.set()
            while not ended:
                await asyncio.sleep(0)
            await asyncio.sleep(0)
            gc.collect()
        assert [each["reason"] for each in logged] == ([] if error is None else [str(error)])
        with structlog.testing.capture_logs() as logged:
            if error is None:
                assert await to_the_end(work()) == "result"
            else:
                with pytest.raises(type(error)):
                    await to_the_end(work())
        assert logged == [], "who waits is told"

    assert in_loop(run) == []
