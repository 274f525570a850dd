"""The output of every benchmark: the machine, a table with goals, and one JSON object as the last line."""

import json
import os
import platform
import subprocess
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table


def machine(directory: str) -> dict[str, Any]:
    with open("/proc/cpuinfo") as cpuinfo:
        model = next((line.split(":", 1)[1].strip() for line in cpuinfo if line.startswith("model name")), "?")
    filesystem = subprocess.run(
        ["stat", "-f", "-c", "%T", directory], capture_output=True, text=True, check=True
    ).stdout.strip()
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "filesystem": filesystem,
    }


@dataclass
class Report:
    title: str
    directory: str
    rows: list[tuple[str, str, str, str, str]] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)

    def add(self, what: str, value: str, limit: str = "", goal: str = "", *, met: bool | None = None) -> None:
        verdict = "" if met is None else "yes" if met else "NO"
        self.rows.append((what, value, limit, goal, verdict))

    def print(self) -> None:
        about = machine(self.directory)
        table = Table(title=self.title, caption=", ".join(f"{k} {v}" for k, v in about.items()))
        for column in ("what", "Tidelog", "raw limit, same run", "goal", "met"):
            table.add_column(column)
        for row in self.rows:
            table.add_row(*row)
        Console(width=150).print(table)
        print(json.dumps({"benchmark": self.title, "machine": about, **self.figures}))
