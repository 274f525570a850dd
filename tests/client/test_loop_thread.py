"""Methods that wait for an asynchronous one look as if they had been written by hand."""

import asyncio
import inspect

import pytest

from tidelog.client import Client, ClientClosed
from tidelog.client.admin.topics import Admin
from tidelog.client.loop_thread import Blocking, LoopThread, blocking
from tidelog.client.producing.blocking import BlockingProducer, BlockingTransactionalProducer


class Counter:
    def __init__(self) -> None:
        self.count = 0

    async def add(self, number: int, *, times: int = 1) -> int:
        """Add a number."""
        await asyncio.sleep(0)
        self.count += number * times
        return self.count

    async def fail(self) -> None:
        raise ZeroDivisionError


def counter_of(blocking: "BlockingCounter") -> Counter:
    return blocking.counter


class BlockingCounter(Blocking):
    def __init__(self) -> None:
        self._thread = LoopThread()
        self.counter = Counter()

    plus = blocking(Counter.add, of=counter_of)
    fail = blocking(Counter.fail, of=counter_of)

    def close(self) -> None:
        self._thread.stop(asyncio.sleep(0))


def test_it_waits_for_the_result_or_raises_the_error() -> None:
    counter = BlockingCounter()
    try:
        assert counter.plus(2, times=3) == 6
        with pytest.raises(ZeroDivisionError):
            counter.fail()
    finally:
        counter.close()
    with pytest.raises(ClientClosed):
        counter.plus(1)


def test_it_has_its_own_name_and_the_others_parameters_and_documentation() -> None:
    assert (BlockingCounter.plus.__name__, BlockingCounter.plus.__qualname__) == ("plus", "BlockingCounter.plus")
    assert BlockingCounter.plus.__doc__ == "Add a number."
    assert str(inspect.signature(BlockingCounter.plus)) == "(self, number: int, *, times: int = 1) -> int"
    assert not inspect.iscoroutinefunction(BlockingCounter.plus)
    assert inspect.signature(Client.create_topic) == inspect.signature(Admin.create_topic)


@pytest.mark.parametrize("kind", [Client, BlockingProducer, BlockingTransactionalProducer])
def test_every_method_of_the_blocking_client_is_documented(kind: type) -> None:
    methods = [name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")]
    assert len(methods) >= 3
    assert [name for name in methods if not inspect.getdoc(getattr(kind, name))] == []
