import pytest

from tidelog.broker.membership.pulse import Pulse, Timing
from tidelog.errors import InvalidSettings
from tidelog.metadata.registry import Beat

TIMING = Timing()


def beaten(pulse: Pulse, times: list[float], ahead_s: float = 1e6) -> None:
    for sent in times:
        pulse.beat(sent, sent + 0.1, Beat(1, sent + 0.05 + ahead_s, True))


def seconds(first: int, last: int) -> list[float]:
    return [float(second) for second in range(first, last + 1)]


def test_a_controller_buries_only_after_steady_beats() -> None:
    pulse = Pulse(TIMING)
    assert not pulse.may_bury(100)
    beaten(pulse, seconds(0, 7))
    assert not pulse.may_bury(7.5)
    beaten(pulse, [8.0])
    assert not pulse.may_bury(8.0)
    assert pulse.may_bury(8.2)


def test_a_missed_beat_does_no_harm_but_an_outage_does() -> None:
    pulse = Pulse(TIMING)
    beaten(pulse, [*seconds(0, 5), *seconds(8, 10)])
    assert pulse.may_bury(10.2)
    assert not pulse.may_bury(13.5)  # it has not beaten itself
    beaten(pulse, [14.0])
    assert not pulse.may_bury(14.2)
    beaten(pulse, seconds(15, 22))
    assert pulse.may_bury(22.2)


@pytest.mark.parametrize("jump_s", [-3600, -2, 2, 3600])
def test_a_clock_that_was_set_is_noticed(jump_s: float) -> None:
    pulse = Pulse(TIMING)
    beaten(pulse, seconds(0, 10))
    assert pulse.may_bury(10.2)
    beaten(pulse, [11.0], ahead_s=1e6 + jump_s)
    assert not pulse.may_bury(11.2)
    beaten(pulse, seconds(12, 20), ahead_s=1e6 + jump_s)
    assert pulse.may_bury(20.2)


def test_a_slow_answer_is_no_jump_of_the_clock() -> None:
    pulse = Pulse(TIMING)
    beaten(pulse, seconds(0, 9))
    pulse.beat(10.0, 12.5, Beat(1, 1e6 + 12.4, True))
    assert pulse.may_bury(12.5)


def test_a_new_registration_begins_anew() -> None:
    pulse = Pulse(TIMING)
    beaten(pulse, seconds(0, 10))
    pulse.register()
    beaten(pulse, [11.0])
    assert not pulse.may_bury(11.2)


def test_all_problems_of_the_timing_are_named() -> None:
    assert TIMING.checked() == TIMING
    with pytest.raises(InvalidSettings) as raised:
        Timing(beat_every=0, fence_after=-1, dead_after=-2).checked()
    assert str(raised.value).count("must") == 3
