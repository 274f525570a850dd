"""The progress of a project's flows, from their checkpoints: Spark writes a file for each micro-batch."""

import json
from pathlib import Path

from tidelog.spark.pipelines.progress import Offsets, offsets_of


def reached(storage: Path) -> dict[str, Offsets]:
    """By flow, the next offsets to read after its last committed batch."""
    found: dict[str, Offsets] = {}
    for commits in (storage / "_checkpoints").glob("**/commits"):
        run = commits.parent
        if not run.name.isdigit():
            continue
        done = [int(file.name) for file in commits.iterdir() if file.name.isdigit()]
        if not done:
            continue
        offsets: Offsets = {}
        for line in (run / "offsets" / str(max(done))).read_text().splitlines()[2:]:
            offsets |= _of_line(line)
        if offsets:
            found[run.parent.name] = offsets
    return found


def _of_line(line: str) -> Offsets:
    try:
        return offsets_of(json.loads(line))
    except ValueError:
        return {}
