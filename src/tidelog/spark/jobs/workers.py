"""Runs units of work in processes of this machine, or in Spark's Python workers if a master is given.

A unit and its result are small values that can be pickled; the function is at the top level of a module. Units must
be idempotent: Spark, or a restarted job, may run them twice.
"""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from tidelog.errors import TidelogError

SMALL_RECORDS, SMALL_BYTES = 500_000, 64 << 20

Unit = TypeVar("Unit")
Result = TypeVar("Result")


def run_units(
    work: Callable[[Unit], Result],
    units: Sequence[Unit],
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    processes: int | None = None,
    is_small: bool = False,
) -> Iterator[Result]:
    """The results as they arrive, in any order. The first failure is raised and stops the rest. Work that `is_small`
    runs in this process: it takes less time than starting others. `conf` is for Spark."""
    if not units:
        return
    if master is not None:
        yield from _on_spark(work, units, master, conf)
        return
    count = 1 if is_small else min(processes or len(os.sched_getaffinity(0)), len(units))
    if count == 1:
        yield from map(work, units)
        return
    # Spawned: the threads of a client do not survive a fork.
    with ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            yield from _as_they_come(lambda unit: pool.submit(work, unit), units, 2 * count)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _on_spark(
    work: Callable[[Unit], Result], units: Sequence[Unit], master: str, conf: Mapping[str, str] | None
) -> Iterator[Result]:
    """Run a Spark job for each unit, as many at a time as there are cores, so that results arrive one by one."""
    from tidelog.spark import clusters
    from tidelog.spark.session import spark_session

    context = spark_session("tidelog job", master=master, conf=conf).sparkContext

    def one(unit: Unit) -> Result:
        try:
            found: list[Any] = context.parallelize([unit], 1).map(work).collect()
        except Exception as error:
            raise TidelogError(clusters.in_short(error)) from error
        return found[0]  # type: ignore[no-any-return]

    count = max(1, context.defaultParallelism)
    with ThreadPoolExecutor(count) as pool:
        yield from _as_they_come(lambda unit: pool.submit(one, unit), units, 2 * count)


def _as_they_come(submit: Callable[[Unit], "Future[Result]"], units: Sequence[Unit], ahead: int) -> Iterator[Result]:
    left = iter(units)
    under_way: set[Future[Result]] = set()
    while True:
        for unit in left:
            under_way.add(submit(unit))
            if len(under_way) >= ahead:
                break
        if not under_way:
            return
        done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
        for future in done:
            yield future.result()
