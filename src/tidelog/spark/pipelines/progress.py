"""Rows and lag of flows during a run, from Spark's reports about its streaming queries."""

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Offsets = dict[str, dict[str, int]]


@dataclass
class FlowProgress:
    name: str
    state: str = "queued"
    rows: int = 0
    began: float | None = None
    ended: float | None = None
    error: str | None = None
    reached: Offsets = field(default_factory=dict)
    """By topic and partition, the next offset to read."""
    latest: Offsets = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return 0.0 if self.began is None else (self.ended or time.monotonic()) - self.began

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.seconds if self.seconds > 0 else 0.0

    @property
    def lag(self) -> dict[str, int]:
        """Number of records by topic that existed and are not read yet."""
        return {
            topic: sum(max(0, end - self.reached.get(topic, {}).get(number, 0)) for number, end in partitions.items())
            for topic, partitions in self.latest.items()
        }

    def as_row(self) -> dict[str, Any]:
        return {
            "flow": self.name,
            "state": self.state,
            "rows": self.rows,
            "seconds": round(self.seconds, 3),
            "rows_per_second": round(self.rows_per_second),
            "lag": self.lag,
            "reached": self.reached,
            "error": self.error,
        }


class RunProgress:
    """Written by the threads that receive Spark's events, read by the thread that displays them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flows: dict[str, FlowProgress] = {}
        self._queries = 0

    def flows(self) -> list[FlowProgress]:
        with self._lock:
            return sorted(self._flows.values(), key=lambda flow: flow.name)

    @property
    def is_settled(self) -> bool:
        """True if every started query has reported its end, which comes after its last rows."""
        return self._queries <= 0

    def heard_query(self, *, began: bool) -> None:
        with self._lock:
            self._queries += 1 if began else -1

    def heard_state(self, flow: str, state: str, error: str | None = None) -> None:
        with self._lock:
            row = self._flow(flow)
            if row.state == "failed" and state == "completed":
                return  # Spark reports "completed" for every flow that has ended
            row.state = state
            row.error = error or (row.error if state == "failed" else None)
            if state == "running" and row.began is None:
                row.began = time.monotonic()
            if state in ("completed", "failed", "excluded", "stopped", "skipped"):
                row.ended = time.monotonic()

    def heard_rows(self, progress: Mapping[str, Any]) -> None:
        """Add Spark's progress report of one micro-batch."""
        name = progress.get("name")
        if not name:
            return
        with self._lock:
            row = self._flow(str(name))
            row.rows += int(progress.get("numInputRows") or 0)
            for source in progress.get("sources") or ():
                row.reached |= offsets_of(source.get("endOffset"))
                row.latest |= offsets_of(source.get("latestOffset"))

    def _flow(self, name: str) -> FlowProgress:
        short = name.removeprefix("spark_catalog.").removeprefix("default.")
        return self._flows.setdefault(short, FlowProgress(short))


def offsets_of(said: Any) -> Offsets:  # noqa: ANN401  (JSON)
    """Offsets of `format("tidelog")`; those of other sources are ignored."""
    if isinstance(said, str):
        try:
            said = json.loads(said)
        except ValueError:
            return {}
    if not isinstance(said, dict):
        return {}
    return {
        topic: {str(number): offset for number, offset in partitions.items()}
        for topic, partitions in said.items()
        if isinstance(partitions, dict) and all(isinstance(offset, int) for offset in partitions.values())
    }
