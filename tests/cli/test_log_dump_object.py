"""`tidelog log dump` of an object of a cluster's store: by its URL, and as a file; also a damaged one."""

import asyncio
import random
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.storage.shared.test_segment_object import built, placed, some_log
from tests.support.logs import NOW_MS, batch
from tests.support.object_server import shared_server
from tidelog.model import LeaderEpoch
from tidelog.storage.shared.bundle import BundleWriter, Region
from tidelog.storage.shared.footer import END_SIZE
from tidelog.storage.shared.object_stores.opening import open_object_store

SEGMENT = some_log(200)


def a_bundle() -> tuple[list[Region], bytes]:
    """Two partitions with two batches of two records each."""
    writer = BundleWriter()
    regions = []
    for number in range(2):
        batches = [placed(batch(b"%d %d" % (number, base), b"x", timestamp=NOW_MS), base) for base in (10, 12)]
        regions.append(writer.add(bytes([number]) * 16, number, LeaderEpoch(4), 10, 13, NOW_MS, batches))
    return regions, b"".join(writer.finish()[0])


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "0123456789abcdef"
    path.write_bytes(a_bundle()[1])
    return path


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    path = tmp_path / "00000000000000000100-0123456789abcdef"
    path.write_bytes(built(SEGMENT))
    return path


def test_a_bundle_is_shown_with_its_partitions_and_batches(tidelog: Command, bundle: Path) -> None:
    shown = tidelog("log", "dump", bundle, "--json")
    assert shown.code == 0
    (found,) = shown.rows_of("object")
    assert (found["kind"], found["partitions"], found["size_bytes"]) == ("bundle", 2, bundle.stat().st_size)
    regions, _ = a_bundle()
    assert found["footer_position"] == regions[1].position + regions[1].size
    assert [
        (row["topic_id"], row["partition"], row["leader_epoch"], row["base_offset"], row["last_offset"], row["crc"])
        for row in shown.rows_of("region")
    ] == [(each.topic_id.hex(), each.partition, 4, 10, 13, each.crc) for each in regions]
    batches = shown.rows_of("batch")
    assert [(row["base_offset"], row["last_offset"]) for row in batches] == [(10, 11), (12, 13)] * 2
    assert batches[2]["position"] == regions[1].position
    table = tidelog("log", "dump", bundle).out
    assert "bundle" in table
    assert f"partition 1 of topic {'01' * 16}:" in table


def test_records_are_shown_and_chosen_by_offset(tidelog: Command, bundle: Path) -> None:
    rows = tidelog("log", "dump", bundle, "--records", "--from", "12", "--json").rows_of("record")
    assert [(row["offset"], row["value"]) for row in rows] == [(12, "0 12"), (13, "x"), (12, "1 12"), (13, "x")]
    limited = tidelog("log", "dump", bundle, "--records", "--limit", "3")
    assert limited.out.count("x") >= 1
    assert "Only the first 3 are shown" in limited.out


def test_a_segment_is_shown_with_its_index(tidelog: Command, segment: Path) -> None:
    shown = tidelog("log", "dump", segment, "--indexes", "--json")
    assert shown.code == 0
    (region,) = shown.rows_of("region")
    assert (region["partition"], region["base_offset"], region["last_offset"]) == (3, 100, 499)
    assert (region["leader_epoch"], region["size_bytes"]) == (None, len(SEGMENT))
    batches = {row["base_offset"]: row["position"] for row in shown.rows_of("batch")}
    assert len(batches) == 200
    entries = shown.rows_of("segment_index_entry")
    assert entries
    assert all(batches[entry["offset"]] == entry["position"] for entry in entries)


@pytest.mark.parametrize("store", ["file", "s3"])
def test_an_object_is_named_by_its_url(
    tidelog: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    if store == "s3":
        server = shared_server()
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", server.access_key_id)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", server.secret_access_key)
        monkeypatch.setenv("AWS_REGION", "us-east-1")
    prefix = shared_server().new_url() if store == "s3" else f"file://{tmp_path}/a%20store"
    content = built(some_log(3, value_size=3 << 20))  # it comes in several pieces

    async def put() -> None:
        objects = open_object_store(prefix)
        await objects.put("s/topic/0/key", [content])
        await objects.close()

    asyncio.run(put())
    url = f"{prefix}/s/topic/0/key"
    shown = tidelog("log", "dump", url, "--json")
    assert shown.code == 0, shown.err
    assert shown.rows_of("object")[0]["size_bytes"] == len(content)
    assert {row["file"] for row in shown.rows} == {url}
    code, _, err = tidelog("log", "dump", f"{prefix}/s/topic/0/other")
    assert code == 1
    assert "other" in err


def test_damage_in_the_data_is_told_at_its_place_and_the_rest_is_shown(tidelog: Command, bundle: Path) -> None:
    regions, content = a_bundle()
    damaged = bytearray(content)
    damaged[regions[0].position + 70] ^= 1
    bundle.write_bytes(damaged)
    shown = tidelog("log", "dump", bundle, "--json")
    assert shown.code == 1
    assert [(row["position"], row["offset"]) for row in shown.rows_of("damage")] == [(0, 10), (0, 10)]
    assert "the CRC in the footer does not match" in shown.rows_of("damage")[0]["what"]
    assert [row["base_offset"] for row in shown.rows_of("batch")] == [12, 10, 12]


@pytest.mark.parametrize("of", ["bundle", "segment"])
def test_a_damaged_footer_is_a_clear_error(tidelog: Command, tmp_path: Path, of: str) -> None:
    content = a_bundle()[1] if of == "bundle" else built(SEGMENT)
    path = tmp_path / "object"
    dice = random.Random(5)
    for position in (len(content) - END_SIZE - 1, len(content) - END_SIZE, len(content) - 1):
        damaged = bytearray(content)
        damaged[position] ^= dice.randrange(1, 256)
        path.write_bytes(damaged)
        code, out, err = tidelog("log", "dump", path, "--json")
        assert (code, out) == (1, "")
        assert err.startswith(f"tidelog: error: {path}: the footer") or "CRC of the footer" in err


@pytest.mark.parametrize("content", [b"", b"x" * 15, b"x" * 5000, a_bundle()[1][:-1]])
def test_what_is_no_object_is_called_so(tidelog: Command, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "object"
    path.write_bytes(content)
    for name in (str(path), f"file://{path}"):
        code, out, err = tidelog("log", "dump", name)
        assert (code, out) == (1, "")
        assert "no footer at its end" in err


def test_other_commands_take_no_urls(tidelog: Command, bundle: Path) -> None:
    assert tidelog("log", "verify", f"file://{bundle}").code == 2
