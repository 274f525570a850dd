"""The results of the suite: samples of every figure of every row, and their summaries.

A figure of a peer exists only if every repeat of the row ran and was verified. If one failed, there is a reason
instead of a figure.
"""

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

# From this share on, the client's busiest thread limits a figure, not the broker.
CLIENT_IS_THE_LIMIT = 0.85
# Suffixes of the notes on the cores that other programs used, and that the hypervisor withheld; after the phase.
OTHERS, STOLEN = "others cpu", "stolen cpu"


@dataclass(frozen=True)
class Figure:
    """What a row measures: a name within the row, a unit, and whether more or less is better."""

    name: str
    unit: str
    better: Literal["higher", "lower"]


@dataclass(frozen=True)
class Summary:
    median: float
    least: float
    most: float
    count: int

    @property
    def spread(self) -> float:
        """(most - least) / median: 0.2 means that repeats differed by a fifth."""
        return (self.most - self.least) / self.median if self.median else 0.0


def summarize(samples: Sequence[float]) -> Summary:
    return Summary(statistics.median(samples), min(samples), max(samples), len(samples))


@dataclass
class RowResult:
    key: str
    section: str
    title: str
    conditions: str
    figures: list[Figure]
    samples: dict[str, dict[str, list[float]]] = field(default_factory=dict)  # peer -> figure -> one per repeat
    notes: dict[str, dict[str, list[float]]] = field(default_factory=dict)  # the same for notes that explain figures
    failures: dict[str, list[str]] = field(default_factory=dict)  # peer -> reasons
    not_offered: dict[str, str] = field(default_factory=dict)  # peer -> what it does not have
    counted: int | None = None  # of each peer's runs: those in which the hypervisor withheld least; None: all

    def add(self, peer: str, measured: dict[str, float]) -> None:
        """`measured` has every figure of the row; its other entries are notes."""
        names = {figure.name for figure in self.figures}
        if missing := names - measured.keys():
            raise KeyError(f"row {self.key} did not measure {', '.join(sorted(missing))}")
        for name, value in measured.items():
            to = self.samples if name in names else self.notes
            to.setdefault(peer, {}).setdefault(name, []).append(value)

    def fail(self, peer: str, reason: str) -> None:
        self.failures.setdefault(peer, []).append(reason)

    def summary(self, peer: str, figure: str) -> Summary | None:
        samples = self.samples.get(peer, {}).get(figure)
        return summarize(self._that_count(peer, samples)) if samples and peer not in self.failures else None

    def _that_count(self, peer: str, samples: list[float]) -> list[float]:
        if self.counted is None:
            return samples
        (withheld,) = (values for name, values in self.notes[peer].items() if name.endswith(STOLEN))
        quietest = sorted(range(len(samples)), key=withheld.__getitem__)[: self.counted]
        return [samples[run] for run in quietest]

    def ratio(self, figure: str, of: str, to: str) -> float | None:
        """The ratio of the medians."""
        above, below = self.summary(of, figure), self.summary(to, figure)
        return above.median / below.median if above and below and below.median else None

    def is_limited_by_client(self, peer: str, figure: Figure) -> bool:
        """Whether a thread of the client was running nearly all the time while a rate was measured."""
        shares = self.notes.get(peer, {}).get(f"{figure.name.split()[0]} client thread", [0.0])
        return figure.unit.endswith("/s") and statistics.median(shares) >= CLIENT_IS_THE_LIMIT


@dataclass
class Results:
    """One run of the suite."""

    machine: dict[str, Any]
    settings: dict[str, Any]
    peers: dict[str, str] = field(default_factory=dict)  # name -> title and version
    missing: dict[str, str] = field(default_factory=dict)  # name -> why
    rows: list[RowResult] = field(default_factory=list)

    def cores(self, kind: str) -> tuple[float, float] | None:
        """Cores that other programs used, or the hypervisor withheld (OTHERS, STOLEN), during the measurements:
        median and maximum."""
        samples = [
            value
            for row in self.rows
            for notes in row.notes.values()
            for name, values in notes.items()
            if name.endswith(kind)
            for value in values
        ]
        return (statistics.median(samples), max(samples)) if samples else None

    def renewed(self, later: "Results") -> "Results":
        """The results with the repeated rows in place of the earlier ones."""
        again = {row.key: row for row in later.rows}
        kept = [row.key for row in self.rows]
        rows = [again.get(row.key, row) for row in self.rows] + [row for row in later.rows if row.key not in kept]
        renewed = sorted({*self.settings.get("renewed", []), *again})
        return Results(self.machine, {**self.settings, "renewed": renewed}, self.peers, self.missing, rows)

    def to_json(self) -> str:
        rows = []
        for row in self.rows:
            summaries = {
                peer: {
                    figure.name: {
                        "median": summary.median,
                        "min": summary.least,
                        "max": summary.most,
                        "spread": round(summary.spread, 4),
                        "limited_by_client": row.is_limited_by_client(peer, figure),
                    }
                    for figure in row.figures
                    if (summary := row.summary(peer, figure.name))
                }
                for peer in row.samples
            }
            rows.append({**vars(row), "figures": [vars(figure) for figure in row.figures], "summaries": summaries})
        return json.dumps({**vars(self), "rows": rows}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> "Results":
        told = json.loads(text)
        rows = []
        for row in told.pop("rows"):
            row.pop("summaries")
            rows.append(RowResult(**{**row, "figures": [Figure(**figure) for figure in row["figures"]]}))
        return cls(**told, rows=rows)
