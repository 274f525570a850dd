import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tidelog.promise import Promise, after_all, result_of


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


def test_makes_something_of_an_error_if_asked_to() -> None:
    promise: Promise[int] = Promise()
    said = promise.then(str, lambda error: f"no: {error}")
    promise.fail(ValueError("bad"))
    assert said.result() == "no: bad"


def test_after_all_of_them_what_is_made_is_made_once() -> None:
    promises: list[Promise[int]] = [Promise() for _ in range(3)]
    heard: list[Any] = []
    together = after_all([(each, lambda *told: heard.append(told)) for each in promises], lambda: list(heard))
    promises[2].settle(3)
    promises[0].fail(bad := ValueError("bad"))
    assert not together.is_kept
    promises[1].settle(2)
    assert together.result() == [(3, None), (None, bad), (2, None)]


def test_a_bug_of_one_continuation_fails_what_waits_for_all_after_the_others() -> None:
    promises: list[Promise[int]] = [Promise() for _ in range(2)]
    heard: list[Any] = []

    def bug(*_: object) -> None:
        raise KeyError("bug")

    together = after_all([(promises[0], bug), (promises[1], lambda *told: heard.append(told))], lambda: "made")
    promises[0].settle(1)
    assert not together.is_kept
    promises[1].settle(2)
    assert heard == [(2, None)]
    with pytest.raises(KeyError):
        together.result()


def test_a_result_that_is_there_need_not_be_waited_for() -> None:
    async def run() -> None:
        promise: Promise[int] = Promise()
        promise.settle(2)
        given: list[int | Promise[int]] = [1, promise]
        assert [await result_of(each) for each in given] == [1, 2]

    assert in_loop(run) == []
