"""Finds stalls of brokers' event loops: a loop that computes for long in one iteration blocks all clients.

The limit is on the CPU time of the loop's thread in one iteration, so that neither a busy machine nor another thread
that holds the GIL exceeds it. After half of the limit, a second thread samples the loop's stack, which is in the
report.

- Time counts from the moment a broker listens: before that there are no clients.
- First-use imports count: a client that is the first to need a module must not make others wait for it.
- Garbage collection counts in a broker process, which freezes its initial objects: a full collection with 200,000
  additional objects took 22 ms. It does not count in the process of the tests, where it may run on the broker's
  thread and scans all objects of pytest and of the test modules (165 ms).

    brokers inside the process of the tests     `watch_this_process`; the stalls are in `stalls`
    brokers in a separate process               run as `python -P watchdog.py serve ...` instead of
                                                `python -m tidelog serve ...`; each stall is a line on stderr
"""

import asyncio
import functools
import gc
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

ALLOWED_SECONDS = 0.2
LINE = "watchdog: "  # prefix of the lines of a broker process
_SAMPLE_SECONDS = 0.02
_FRAMES = 12


class Stall(NamedTuple):
    seconds: float  # CPU time of the loop's thread
    collecting: float  # part of it for garbage collection, if that counts
    stack: str  # the sampled stack of the loop, innermost first; "" if there was no sample

    def __str__(self) -> str:
        return (
            f"the event loop was blocked for {self.seconds * 1000:.0f} ms of its CPU time"
            f" (garbage collection: {self.collecting * 1000:.0f} ms) in {self.stack or 'an unknown place'}"
        )


stalls: list[Stall] = []  # of brokers in this process, until they are taken


class _Watch:
    """Watches one loop. The loop's thread measures; the sampler reads that, and stores the stack that it sampled."""

    def __init__(self, tell: Callable[[Stall], object], collection_counts: bool) -> None:
        self._tell = tell
        self._collection_counts = collection_counts
        self.thread = threading.get_ident()
        self._clock = time.pthread_getcpuclockid(self.thread)
        self._began = 0.0
        self.collecting = 0.0
        self._running = False
        self._stack = ""

    def install(self, loop: asyncio.AbstractEventLoop) -> None:
        """Watch from the next iteration of the loop on."""
        run_once: Callable[[], None] = loop._run_once  # type: ignore[attr-defined]

        def watched() -> None:
            self.collecting, self._stack = 0.0, ""
            self._began = began = time.thread_time()
            self._running = True
            try:
                run_once()
            finally:
                self._running = False
                taken = time.thread_time() - began
                if taken > ALLOWED_SECONDS:
                    self._finish(taken)

        loop._run_once = watched  # type: ignore[attr-defined]

    def _finish(self, taken: float) -> None:
        if not self._collection_counts:
            taken -= self.collecting
        if taken > ALLOWED_SECONDS:
            self._tell(Stall(taken, self.collecting, self._stack))

    def sample(self) -> None:
        """Called by the sampler's thread."""
        if not self._running:
            return
        try:
            taken = time.clock_gettime(self._clock) - self._began
        except OSError:  # the thread has ended
            self._running = False
            return
        frame = sys._current_frames().get(self.thread) if taken > ALLOWED_SECONDS / 2 else None
        if frame is not None and self._running and not self._stack:  # only the first sample counts
            summary = traceback.StackSummary.extract(traceback.walk_stack(frame), limit=_FRAMES, lookup_lines=False)
            self._stack = " < ".join(f"{each.name} ({_short(each.filename)}:{each.lineno})" for each in summary)


def _short(filename: str) -> str:
    return "/".join(filename.rsplit("/", 3)[1:])


class _Sampler:
    """One thread for all loops of a process."""

    def __init__(self) -> None:
        self._watches: dict[int, _Watch] = {}  # by thread: the last loop that it ran
        self._began_collecting = 0.0
        gc.callbacks.append(self._collected)
        threading.Thread(target=self._run, name="watchdog", daemon=True).start()

    def add(self, watch: _Watch) -> None:
        self._watches[watch.thread] = watch

    def _run(self) -> None:
        while True:
            time.sleep(_SAMPLE_SECONDS)
            for watch in list(self._watches.values()):
                watch.sample()

    def _collected(self, phase: str, _info: dict[str, int]) -> None:
        """Called before and after a garbage collection, on its thread; never concurrently."""
        watch = self._watches.get(threading.get_ident())
        if watch is None:
            return
        if phase == "start":
            self._began_collecting = time.thread_time()
        else:
            watch.collecting += time.thread_time() - self._began_collecting


_sampler = functools.cache(_Sampler)


def _watch_brokers(tell: Callable[[Stall], object], *, collection_counts: bool) -> None:
    """Watch every loop of this process in which a broker listens from now on."""
    from tidelog.gateways.kafka.server import KafkaServer

    listen = KafkaServer.listen

    @functools.wraps(listen)
    async def listen_and_be_watched(self: KafkaServer, *arguments: Any, **more: Any) -> Any:
        listening = await listen(self, *arguments, **more)
        loop = asyncio.get_running_loop()
        if "_run_once" not in vars(loop):  # a broker that listens at a second address is watched already
            watch = _Watch(tell, collection_counts)
            watch.install(loop)
            _sampler().add(watch)
        return listening

    KafkaServer.listen = listen_and_be_watched  # type: ignore[method-assign]


def watch_this_process() -> None:
    """Called once, at the start of a test run."""
    _watch_brokers(stalls.append, collection_counts=False)


def main() -> None:
    """`tidelog`, watched."""
    from tidelog.cli.main import main as tidelog

    _watch_brokers(lambda stall: os.write(2, f"{LINE}{stall}\n".encode()), collection_counts=True)
    tidelog()


if __name__ == "__main__":
    main()
