"""Random histories of several producers, with crashes, writes that fail but may be there, and failing markers,
against a simple model: each transaction ends as its client was told, in all its partitions or none, once."""

import random
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from tests.broker.transactions.world import A0, A1, B0, Client, World
from tidelog.broker.coordination.transactions import messages as m
from tidelog.model import TopicPartition

Partitions: TypeAlias = set[TopicPartition]
IDS = ("one", "two", "three")
RETRIABLE = (15, 51)


class History:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.world = World()
        self.logs = self.world.logs = set()
        self.clients = {id_: Client(self.world, id_, version=self.rng.choice((1, 2))) for id_ in IDS}
        self.open: dict[str, Partitions] = {}  # what the client has in its transaction
        self.offset: dict[str, int] = {}
        self.group_offset = dict.fromkeys(IDS, 0)
        self.ended: list[tuple[int, Partitions, bool]] = []  # producer id, partitions, committed
        self.number = 0

    def step(self) -> None:
        world, rng = self.world, self.rng
        world.writes_fail, world.failures_stick = rng.random() < 0.1, rng.random() < 0.5
        world.markers_fail = rng.random() < 0.1
        id_ = rng.choice(IDS)
        client = self.clients[id_]
        what = rng.choices(("init", "add", "offsets", "end", "crash", "time"), (1, 6, 3, 6, 1, 2))[0]
        if what == "crash":
            world.markers_fail = False
            world.start()
        elif what == "time":
            world.retry_markers()
            world.pass_time(1_000)
        elif what == "init" or client.producer_id < 0:
            self.init(id_, client)
        elif what == "add":
            partitions = rng.sample((A0, A1, B0), rng.randint(1, 3))
            reply = client.add(*partitions)
            assert reply is not None
            assert reply.error_code in (0, *RETRIABLE)
            if reply.error_code:
                self.settle()
                self.retry(lambda: client.add(*partitions))
            self.open.setdefault(id_, set()).update(partitions)
            self.logs.update((partition, client.producer_id) for partition in partitions)  # it writes to them
        elif what == "offsets":
            self.number += 1
            self.settle()
            world.ask(m.AddOffsets(id_, client.producer_id, client.epoch, id_))
            if client.commit_offsets(self.number, group=id_) == 0:
                self.open.setdefault(id_, set())
                self.offset[id_] = self.number
        elif id_ in self.open:
            self.end(id_, client, rng.random() < 0.6)

    def init(self, id_: str, client: Client) -> None:
        self.settle()
        before = client.producer_id
        assert client.init().error_code == 0
        if id_ in self.open:
            self.ended.append((before, self.open.pop(id_), False))
            self.offset.pop(id_, None)

    def end(self, id_: str, client: Client, committed: bool) -> None:
        producer_id = client.producer_id
        reply = client.end(committed)
        if reply is None or reply.error_code:
            assert reply is None or reply.error_code in RETRIABLE, reply
            self.settle()
            self.retry(lambda: client.end(committed))
        self.ended.append((producer_id, self.open.pop(id_), committed))
        offset = self.offset.pop(id_, None)
        if committed and offset is not None:
            self.group_offset[id_] = offset

    def settle(self) -> None:
        """The store and the logs are well again."""
        world = self.world
        world.writes_fail = world.markers_fail = False
        world.pass_time(1_000)
        world.retry_markers()
        world.pass_time(1_000)

    def retry(self, ask: Callable[[], Any]) -> None:
        reply = ask()
        assert reply.error_code == 0, reply

    def check(self) -> None:
        self.settle()
        world = self.world
        marked: dict[tuple[TopicPartition, int], list[bool]] = {}
        for partition, producer_id, _, committed in world.markers:
            marked.setdefault((partition, producer_id), []).append(committed)
        expected: dict[tuple[TopicPartition, int], list[bool]] = {}
        for producer_id, partitions, committed in self.ended:
            for partition in partitions:
                expected.setdefault((partition, producer_id), []).append(committed)
        assert marked == expected
        stored = {group: offset for (group, _, _), offset in world.offsets().items()}
        assert stored == {id_: offset for id_, offset in self.group_offset.items() if offset}
        unstable = {id_ for id_ in IDS if world.coordinator.is_unstable(id_, *A0)}
        assert unstable == set(self.offset)


@pytest.mark.parametrize("seed", range(60))
def test_every_transaction_ends_as_its_client_was_told(seed: int) -> None:
    history = History(seed)
    for _ in range(150):
        history.step()
    history.check()
