import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tidelog.promise import Promise


def in_loop(run: Callable[[], Awaitable[Any]]) -> list[dict[str, Any]]:
    """What was reported to the loop."""
    reported: list[dict[str, Any]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        await run()

    asyncio.run(main())
    return reported


def test_tells_in_the_turn_in_which_it_is_kept() -> None:
    heard: list[Any] = []

    async def run() -> None:
        promise: Promise[int] = Promise()
        promise.then(lambda number: number + 1).then(str).when_done(lambda *told: heard.append(told))
        assert not promise.is_kept
        promise.settle(1)
        assert heard == [("2", None)]

    assert in_loop(run) == []


def test_tells_later_what_was_there_before_somebody_asked() -> None:
    heard: list[Any] = []

    async def run() -> None:
        promise: Promise[int] = Promise()
        promise.settle(1)
        promise.when_done(lambda *told: heard.append(told))
        assert heard == []
        await asyncio.sleep(0)
        assert heard == [(1, None)]

    assert in_loop(run) == []


@pytest.mark.parametrize("early", [False, True])
def test_is_awaited(early: bool) -> None:
    async def run() -> None:
        kept: Promise[str] = Promise()
        broken: Promise[str] = Promise()

        def keep() -> None:
            kept.settle("yes")
            broken.fail(ValueError("no"))

        if early:
            keep()
        else:
            asyncio.get_running_loop().call_soon(keep)
        assert await kept == "yes"
        with pytest.raises(ValueError, match="no"):
            await broken

    assert in_loop(run) == []


def test_survives_who_waits_for_it() -> None:
    async def run() -> None:
        promise: Promise[int] = Promise()
        given_up = asyncio.ensure_future(promise)
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.sleep(0)
        promise.settle(1)
        assert given_up.cancelled()

    assert in_loop(run) == []


def test_passes_failures_on() -> None:
    heard: list[Any] = []

    async def run() -> None:
        failed: Promise[int] = Promise()
        failed.then(str).when_done(lambda *told: heard.append(told))
        failed.fail(error := ValueError("no"))
        made_wrong: Promise[str] = Promise()
        made_wrong.then(int).when_done(lambda _, bug: heard.append(type(bug)))
        made_wrong.settle("x")
        assert heard == [(None, error), ValueError]

    assert in_loop(run) == []


def test_a_bug_of_who_waits_does_not_reach_who_keeps_it() -> None:
    def fail(*_told: object) -> None:
        raise KeyError("bug")

    async def run() -> None:
        promise: Promise[int] = Promise()
        promise.when_done(fail)
        promise.settle(1)

    (reported,) = in_loop(run)
    assert isinstance(reported["exception"], KeyError)


def test_is_kept_once_for_one() -> None:
    async def run() -> None:
        promise: Promise[int] = Promise()
        promise.when_done(lambda *_: None)
        with pytest.raises(AssertionError):
            promise.when_done(lambda *_: None)
        promise.settle(1)
        with pytest.raises(AssertionError):
            promise.settle(2)

    assert in_loop(run) == []
