"""Simulate clusters, each with a seed that decides everything that happens in it.

python -m tests.simulation.run --seed 17          one, and say what went wrong
python -m tests.simulation.run --seeds 0..10000   many, and say which ones failed
"""

import argparse
import asyncio
import logging
import sys
import time
from typing import TYPE_CHECKING, Any

import structlog

from tests.simulation.clients import PlainProducer, Producer, Reader, TransactionalProducer, check_all
from tests.simulation.cluster import Plan, World
from tests.simulation.history import Violation
from tests.simulation.virtual_loop import run

if TYPE_CHECKING:
    from collections.abc import Coroutine

_LONGEST_S = 600.0  # of simulated time, from the end of the chaos on


def simulate(seed: int, plan: Plan | None = None) -> World:
    """Raises `Violation`, or another AssertionError, if something is not as it must be."""
    return run(_simulate(seed, plan or Plan()))


async def _simulate(seed: int, plan: Plan) -> World:
    world = World(seed, plan)
    chance = world.chance
    writing: list[Coroutine[Any, Any, None]] = []
    for kind, count, batches in (
        (Producer, plan.idempotent, 12),
        (TransactionalProducer, plan.transactional, 8),
        (PlainProducer, plan.plain, 12),
    ):
        for _ in range(count):
            producer_id = len(writing) + 1
            writing.append(kind(world, producer_id, chance.choice(world.partitions)).run(batches))
    following = [
        *(
            Reader(world, partition, committed=committed).run()
            for partition in world.partitions
            for committed in (False, True)
        ),
        world.watch(),
    ]
    tasks = [asyncio.ensure_future(each) for each in (*writing, *following, world.chaos())]
    ends = [*tasks[: len(writing)], tasks[-1]]
    try:
        async with asyncio.timeout(plan.chaos_s + _LONGEST_S):
            await _first_failure(tasks, ends)
    except TimeoutError:
        raise Violation("the faults are over, and some client still waits") from None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    world.check()
    await check_all(world, world.history)
    return world


async def _first_failure(tasks: "list[asyncio.Task[None]]", ends: "list[asyncio.Task[None]]") -> None:
    """Wait for `ends`, but raise as soon as one of the tasks fails."""
    while not all(task.done() for task in ends):
        pending = [task for task in tasks if not task.done()]
        await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done():
                task.result()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Simulate clusters with faults.")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--seed", type=int, help="Run one simulation; errors are shown with their traceback.")
    which.add_argument("--seeds", help="Run all simulations from A up to, not including, B, written A..B.")
    chosen = parser.parse_args(arguments)
    if chosen.seed is None:
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    else:
        world = simulate(chosen.seed)
        print(f"seed {chosen.seed}: good; {sum(map(len, world.history.acknowledged.values()))} records acknowledged")
        return 0
    first, last = map(int, chosen.seeds.split(".."))
    failed, began = 0, time.monotonic()
    for seed in range(first, last):
        try:
            simulate(seed)
        except AssertionError as error:
            failed += 1
            print(f"seed {seed}: {error}", flush=True)
    print(f"{last - first} simulations in {time.monotonic() - began:.0f} s, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
