"""Bundles: what is written is found again, and damaged or hostile bytes are refused in words."""

import asyncio
import random
from uuid import UUID

import pytest

from tests.support.faulty_objects import MemoryObjects
from tests.support.logs import NOW_MS, batch
from tidelog.errors import CorruptLog, MetadataTooNew
from tidelog.model import LeaderEpoch
from tidelog.records.crc import crc32c
from tidelog.storage.shared.bundle import (
    BundleWriter,
    Region,
    check_region,
    hour_prefix,
    load_regions,
    new_key,
    read_regions,
)
from tidelog.storage.shared.footer import END_SIZE, MOST_BYTES, TAIL_SIZE

KEY = "b/2023111422/00"


def written(logs: int, batches: int = 2) -> tuple[list[Region], bytes]:
    writer = BundleWriter()
    regions = []
    for number in range(logs):
        content = [batch(b"%d %d" % (number, each)) for each in range(batches)]
        regions.append(
            writer.add(bytes([number % 256]) * 16, number, LeaderEpoch(3), 10, 10 + batches - 1, NOW_MS, content)
        )
    parts, size = writer.finish()
    content_bytes = b"".join(parts)
    assert len(content_bytes) == size
    return regions, content_bytes


def test_the_footer_tells_every_region() -> None:
    regions, content = written(3)
    assert read_regions(content, len(content), KEY) == regions
    assert read_regions(content[-400:], len(content), KEY) == regions
    for region in regions:
        check_region(region, content[region.position : region.position + region.size], KEY)
    assert [region.position for region in regions] == [0, regions[0].size, 2 * regions[0].size]


def test_records_are_not_copied() -> None:
    writer = BundleWriter()
    buffers: list[bytes | bytearray | memoryview] = [batch(b"one"), memoryview(batch(b"two")), bytes(batch(b"three"))]
    writer.add(b"\1" * 16, 0, LeaderEpoch(0), 0, 2, NOW_MS, buffers)
    parts, _ = writer.finish()
    assert all(part is buffer for part, buffer in zip(parts, buffers, strict=False))
    assert len(parts) == len(buffers) + 1


def test_an_empty_bundle_has_no_regions() -> None:
    parts, size = BundleWriter().finish()
    assert read_regions(b"".join(parts), size, KEY) == []


@pytest.mark.parametrize(("logs", "requests"), [(3, 1), (TAIL_SIZE // 68 + 1, 2)])
def test_a_footer_is_fetched_with_one_request_and_a_very_large_one_with_two(logs: int, requests: int) -> None:
    async def run() -> None:
        regions, content = written(logs, 1)
        objects = MemoryObjects()
        await objects.put(KEY, [content])
        assert await load_regions(objects, KEY, len(content)) == regions
        assert objects.reads == requests

    asyncio.run(run())


def test_keys_begin_with_the_hour() -> None:
    key = new_key(NOW_MS, UUID(int=255))
    assert key == "b/2023111422/000000000000000000000000000000ff"
    assert key.startswith(hour_prefix(NOW_MS))


def test_every_damaged_byte_of_the_footer_is_noticed() -> None:
    regions, content = written(2)
    start = regions[-1].position + regions[-1].size
    for position in range(start, len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 0x41
        with pytest.raises(CorruptLog, match=f"^{KEY}: "):
            read_regions(damaged, len(content), KEY)


def test_a_damaged_region_is_noticed() -> None:
    regions, content = written(2)
    region = regions[1]
    damaged = bytearray(content[region.position :][: region.size])
    damaged[20] ^= 1
    with pytest.raises(CorruptLog, match="the CRC of a region does not match"):
        check_region(region, damaged, KEY)
    with pytest.raises(CorruptLog, match="the CRC of a region does not match"):
        check_region(region, content[region.position :][: region.size - 1], KEY)


def test_a_truncated_bundle_is_refused() -> None:
    _, content = written(2)
    for size in range(len(content)):
        with pytest.raises(CorruptLog):
            read_regions(content[:size], size, KEY)


def sealed(entries: bytes, data: int = 0, version: int = 1, length: int | None = None) -> bytes:
    end = entries + (len(entries) if length is None else length).to_bytes(4, "big") + version.to_bytes(2, "big")
    end += b"TLbndl"
    return bytes(data) + end + crc32c(end).to_bytes(4, "big")


def test_footers_with_a_right_crc_that_claim_the_impossible_are_refused() -> None:
    _, content = written(2)
    entries = content[-END_SIZE - 2 * 68 : -END_SIZE]
    for wrong, reason in (
        (sealed(entries[:-1], 10_000), "is cut off"),
        (sealed(entries, 10_000), "do not end at the footer"),
        (sealed(entries[68:] + entries[:68], 10_000), "impossible region"),
        (sealed(b"", length=MOST_BYTES + 1), "claims"),
        (sealed(b"", data=5, length=100), "claims"),
        (sealed(entries, version=0), "version 0"),
    ):
        with pytest.raises(CorruptLog, match=reason):
            read_regions(wrong, len(wrong), KEY)


def test_a_huge_footer_is_not_believed_even_if_the_object_is_said_to_be_huge() -> None:
    claimed = sealed(b"", length=MOST_BYTES + 1)
    with pytest.raises(CorruptLog, match="claims"):
        read_regions(claimed, 1 << 40, KEY)


def test_a_newer_version_is_named() -> None:
    newer = sealed(b"", version=2)
    with pytest.raises(MetadataTooNew, match="has version 2 of its format, this Tidelog reads up to 1"):
        read_regions(newer, len(newer), KEY)


def test_random_bytes_never_crash_the_reader() -> None:
    dice = random.Random(2)
    for _ in range(2000):
        content = dice.randbytes(dice.randrange(0, 200))
        for each in (content, sealed(content)):
            try:
                assert read_regions(each, len(each), KEY) == []
            except CorruptLog:
                pass
