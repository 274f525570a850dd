"""Producer ids: reserved in blocks before the first of them is used, and never given out twice."""

import asyncio
from itertools import pairwise

import pytest

from tests.support.metadata_store import Database, FakeStore, Fault, unknown
from tidelog.broker.producer_ids import BLOCK, NEXT_PRODUCER_ID, ProducerIds
from tidelog.errors import OutcomeUnknown, StorageFull


def test_brokers_that_share_a_store_never_give_out_the_same_id() -> None:
    async def run() -> None:
        database = Database()
        brokers = [ProducerIds(FakeStore(database)) for _ in range(3)]
        taken = [await broker.next() for _ in range(BLOCK + 10) for broker in brokers]
        assert len(set(taken)) == len(taken)

    asyncio.run(run())


def test_ids_are_reserved_before_they_are_used_up_and_the_rest_of_a_block_is_used_first() -> None:
    async def run() -> None:
        database = Database()
        ids = ProducerIds(FakeStore(database))
        assert ids.are_few
        assert ids.take() is None, "none is reserved yet"
        await asyncio.gather(ids.reserve(), ids.reserve())
        assert database.reserved == {NEXT_PRODUCER_ID: BLOCK}, "those who ask at once share a block"
        taken: list[int | None] = []
        while not ids.are_few:
            taken.append(ids.take())
        await FakeStore(database).reserve(NEXT_PRODUCER_ID, BLOCK)  # by another broker
        await ids.reserve()
        assert not ids.are_few
        while len(taken) < BLOCK + 1:
            taken.append(ids.take())
        assert taken == [*range(BLOCK), 2 * BLOCK]

    asyncio.run(run())


@pytest.mark.parametrize("takes_effect", [True, False])
def test_a_block_whose_reservation_has_an_unknown_outcome_is_left_alone(takes_effect: bool) -> None:
    async def run() -> None:
        store = FakeStore()
        store.faults.append(unknown(takes_effect=takes_effect))
        ids = ProducerIds(store)
        taken = [await ids.next() for _ in range(BLOCK + 1)]
        assert taken[0] == (BLOCK if takes_effect else 0)
        assert all(one < next_ for one, next_ in pairwise(taken))

    asyncio.run(run())


def test_who_needs_an_id_is_told_why_there_is_none() -> None:
    async def run() -> None:
        store = FakeStore()
        ids = ProducerIds(store)
        store.faults.extend([Fault(StorageFull("full")), unknown(takes_effect=False), unknown(takes_effect=False)])
        with pytest.raises(StorageFull):
            await ids.next()
        with pytest.raises(OutcomeUnknown):
            await ids.next()
        assert await ids.next() == 0

    asyncio.run(run())
