"""`tidelog log sample`."""

import filecmp
from pathlib import Path

from tests.cli.conftest import Command


def test_the_sample_is_the_same_each_time(tidelog: Command, data: Path, tmp_path: Path) -> None:
    assert tidelog("log", "sample", tmp_path / "again").code == 0
    for first in sorted((data / "logs").rglob("*")):
        if first.is_file():
            assert filecmp.cmp(first, tmp_path / "again" / first.relative_to(data), shallow=False), first


def test_the_sample_has_what_there_is_to_see(tidelog: Command, data: Path) -> None:
    batches = tidelog("log", "dump", data, "--batches", "--json").rows_of("batch")
    assert {row["codec"] for row in batches} == {"none", "gzip", "snappy", "lz4", "zstd"}
    assert {row["producer_id"] for row in batches} == {-1, 4711}
    records = tidelog("log", "dump", data, "--records", "--json").rows_of("record")
    assert len(records) > 300
    assert any(row["value"] is None for row in records)
    assert all(row["key"] and row["headers"] for row in records)
    partitions = tidelog("log", "dump", data, "--json").rows_of("partition")
    assert all(row["segments"] > 1 for row in partitions)


def test_an_existing_directory_is_not_touched(tidelog: Command, data: Path) -> None:
    code, _, err = tidelog("log", "sample", data)
    assert code == 1
    assert "is not empty" in err
    assert tidelog("log", "sample", "--if-missing", data) == (0, "", "")
    assert tidelog("log", "verify", data).code == 0
