"""Units of work in processes of this machine, or in Spark's Python workers when there is a master.

A unit and its result are small values that can be pickled; the function is one of a module. What a unit does must be
right however often it is done: Spark, and a job that is started again, may do it twice.
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
    """Results as they come, in any order. The first failure ends it and is raised. What `is_small` is done here: it
    is over before other processes are up. `conf` is for Spark."""
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
    """A Spark job for each unit, as many at a time as there are cores: a result comes when its unit is done."""
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
