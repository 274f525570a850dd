"""Whose prefix it is."""

import asyncio

import pytest

from tests.support.faulty_objects import MemoryObjects
from tidelog.storage.shared.claim import KEY, ClaimedByAnother, claim


def test_a_prefix_belongs_to_the_cluster_that_claimed_it_first() -> None:
    async def main() -> None:
        objects = MemoryObjects()
        await asyncio.gather(*(claim(objects, "mine") for _ in range(3)))
        await claim(objects, "mine")
        with pytest.raises(ClaimedByAnother, match="belongs to the cluster 'mine'"):
            await claim(objects, "yours")
        assert await objects.read_up_to(KEY, 0, 100) == b"mine"

    asyncio.run(main())


def test_of_two_clusters_that_claim_it_at_once_one_gets_it() -> None:
    async def main() -> None:
        objects = MemoryObjects()
        answers = await asyncio.gather(*(claim(objects, name) for name in ("mine", "yours")), return_exceptions=True)
        assert sorted(type(each).__name__ for each in answers) == ["ClaimedByAnother", "NoneType"]

    asyncio.run(main())
