"""Ctrl-C while the main thread waits for Spark."""

import signal
import threading

import pytest

from tidelog.spark.pipelines.shield import Shield

SECONDS = 30.0


def test_ctrl_c_ends_the_wait_and_not_the_call() -> None:
    shield, go_on, done = Shield(), threading.Event(), threading.Event()

    def work() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        assert go_on.wait(SECONDS)
        done.set()

    with pytest.raises(KeyboardInterrupt):
        shield.call(work)
    assert not done.is_set()
    go_on.set()
    shield.join(SECONDS)
    assert done.is_set()


def test_results_and_errors_are_those_of_the_call() -> None:
    shield = Shield()
    assert shield.call(lambda: 7) == 7
    with pytest.raises(IndexError):
        shield.call(lambda: [][1])


def test_a_call_that_does_not_end_is_not_waited_for() -> None:
    shield, go_on = Shield(), threading.Event()
    assert not shield.has_ended(lambda: go_on.wait(SECONDS), 0.01)
    go_on.set()
    shield.join(SECONDS)
    assert shield.has_ended(lambda: [][1], SECONDS)
