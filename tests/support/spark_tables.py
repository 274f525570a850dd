"""Reads tables that Spark has written, without Spark."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse


def rows_in_table(table: Path) -> list[dict[str, Any]]:
    """Of a table that a stream writes: what its log of committed files names, as Spark reads it. Other files of the
    directory may be half-written."""
    import pyarrow.parquet as pq

    log = table / "_spark_metadata"
    if not log.exists():
        found: list[dict[str, Any]] = pq.read_table(table).to_pylist()
        return found
    whole = [int(file.name.split(".")[0]) for file in log.glob("*.compact")]
    rows = []
    for file in log.glob("[0-9]*"):
        if whole and int(file.name.split(".")[0]) < max(whole):
            continue
        for line in file.read_text().splitlines()[1:]:
            rows += pq.read_table(unquote(urlparse(json.loads(line)["path"]).path)).to_pylist()
    return rows
