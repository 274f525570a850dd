"""What a pass of compaction may use. What it does to logs: test_compaction.py."""

import threading
import time

from tidelog.storage.compaction import Throttle


def test_a_throttle_keeps_to_its_rate_and_lets_go_when_told() -> None:
    throttle, stop = Throttle(1_000_000), threading.Event()
    began = time.monotonic()
    for _ in range(10):
        throttle.spend(20_000, stop)
    assert time.monotonic() - began >= 0.19
    stop.set()
    throttle.spend(1_000_000_000_000, stop)  # eleven days
