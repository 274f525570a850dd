"""Deadlines: set, moved, cancelled."""

from functools import partial
from typing import TypeVar

import hypothesis.strategies as st
from hypothesis import given

from tidelog.broker.coordination.timers import Timer, Timers

T = TypeVar("T")


def note(fired: list[T], which: T, _now_ms: int) -> None:
    fired.append(which)


def test_timers_fire_in_the_order_of_their_deadlines_and_once() -> None:
    timers = Timers()
    fired: list[str] = []
    for name, deadline_ms in (("b", 20), ("a", 10), ("c", 30)):
        timers.set(Timer(partial(note, fired, name)), deadline_ms)
    timers.run(25)
    timers.run(25)
    assert fired == ["a", "b"]
    assert timers.next_deadline_ms() == 30


def test_a_timer_may_set_itself_again() -> None:
    timers = Timers()
    fired: list[int] = []

    def again(now_ms: int) -> None:
        fired.append(now_ms)
        timers.set(timer, now_ms + 10)

    timer = Timer(again)
    timers.set(timer, 10)
    for now_ms in range(0, 35, 5):
        timers.run(now_ms)
    assert fired == [10, 20, 30]


@given(
    st.lists(st.tuples(st.sampled_from(["set", "cancel", "run"]), st.integers(0, 3), st.integers(1, 50)), max_size=60)
)
def test_timers_do_what_a_list_of_deadlines_does(steps: list[tuple[str, int, int]]) -> None:
    timers, now_ms = Timers(), 0
    fired: list[int] = []
    each = [Timer(partial(note, fired, number)) for number in range(4)]
    deadlines: dict[int, int] = {}
    for step, number, ms in steps:
        if step == "set":
            timers.set(each[number], now_ms + ms)
            deadlines[number] = now_ms + ms
        elif step == "cancel":
            timers.cancel(each[number])
            deadlines.pop(number, None)
        else:
            now_ms += ms
            fired.clear()
            timers.run(now_ms)
            due = {number for number, deadline_ms in deadlines.items() if deadline_ms <= now_ms}
            assert set(fired) == due
            assert len(fired) == len(due)
            for number in due:
                del deadlines[number]
        next_ms = timers.next_deadline_ms()
        if deadlines:
            assert next_ms is not None
            assert next_ms <= min(deadlines.values())
        else:
            assert next_ms is None
