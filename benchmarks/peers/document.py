"""The report: JSON, a Markdown page with the tables, and charts. Page and charts are generated from the JSON
alone."""

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.peers import charts
from benchmarks.peers.results import OTHERS, STOLEN, Figure, Results, RowResult, Summary, summarize

PAGE = "benchmarks-peers.md"
FOLDER = "benchmarks"
OURS, THEIRS = "tidelog", "kafka"
_TITLES = {"tidelog": "Tidelog", "kafka": "Kafka", "nats": "NATS JetStream", "redis": "Redis Streams"}
_BUSY = 0.1  # of a core: more than an idle broker uses
LEVEL = 0.05  # figures that differ by less than this are "level"


def write(results: Results, out: str) -> None:
    """Write the JSON, and the page and charts generated from it."""
    os.makedirs(f"{out}/{FOLDER}", exist_ok=True)
    with open(f"{out}/{FOLDER}/peers.json", "w") as file:
        file.write(results.to_json() + "\n")
    render(out)


def read(out: str) -> Results | None:
    """The results of an earlier run; None if there was none."""
    path = f"{out}/{FOLDER}/peers.json"
    if not os.path.exists(path):
        return None
    with open(path) as file:
        return Results.from_json(file.read())


def read_growth(out: str) -> dict[str, Any]:
    """The growth figures of an earlier run; empty if there was none."""
    path = f"{out}/{FOLDER}/growth.json"
    if not os.path.exists(path):
        return {}
    with open(path) as file:
        growth: dict[str, Any] = json.load(file)
    return growth


def write_growth(growth: Mapping[str, Any], out: str) -> None:
    os.makedirs(f"{out}/{FOLDER}", exist_ok=True)
    with open(f"{out}/{FOLDER}/growth.json", "w") as file:
        file.write(json.dumps(growth, indent=1) + "\n")
    render(out)


def render(out: str) -> None:
    """Generate the page and the charts from the existing JSON."""
    parts = ["# Side by side with the peers\n"]
    figures: dict[str, str] = {}
    if results := read(out):
        figures |= draw(results)
        parts.append(markdown(results, list(figures)))
    if growth := read_growth(out):
        drawn = draw_growth(growth)
        figures |= drawn
        parts.append(growth_markdown(growth, list(drawn)))
    for name, text in figures.items():
        with open(f"{out}/{FOLDER}/{name}", "w") as file:
            file.write(text)
    with open(f"{out}/{PAGE}", "w") as file:
        file.write("\n".join(parts))


# ---- numbers


def shown(value: float) -> str:
    """Three significant digits, with thousands separators."""
    if value >= 1000:
        digits = len(f"{value:.0f}") - 3
        return f"{round(value, -digits):,.0f}"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def with_spread(summary: Summary) -> str:
    if summary.count == 1:
        return shown(summary.median)
    return f"{shown(summary.median)} ({shown(summary.least)} to {shown(summary.most)})"


def verdict(figure: Figure, ratio: float) -> str:
    if abs(ratio - 1) <= LEVEL:
        return "level"
    return "ahead" if (ratio > 1) == (figure.better == "higher") else "behind"


# ---- the page


def machine_line(machine: Mapping[str, Any]) -> str:
    return (
        f"{machine['cores']} cores ({machine['cpu']}), {machine['memory_gb']} GB of memory, {machine['filesystem']}, "
        f"Linux {machine['kernel']}, Python {machine['python']}"
    )


def markdown(results: Results, drawn: Sequence[str] = ()) -> str:
    repeats = results.settings["repeats"]
    text = [
        f"`{results.settings['command']}` generated this page. The brokers ran on the same machine, in the same run,",
        "with the same client, in alternating order. All messages were read back and checked by count and checksum.",
        f"Figures are medians of {repeats} repeat{'s' if repeats > 1 else ''}; the range is in parentheses.",
        "",
        f"- Machine: {machine_line(results.machine)}",
        *(f"- {title}" for title in results.peers.values()),
        *(f"- **Missing**: {_TITLES.get(name, name)}: {why}" for name, why in results.missing.items()),
        f"- The run took {results.settings.get('minutes', '?')} minutes."
        + ("" if results.settings["share_of_full_work"] == 1 else " **A quick run: its figures are not reliable.**")
        + _said_of_others(results),
        *_said_of_later_runs(results),
        "",
        "Equal durability: `no fsync` is flush `os` for Tidelog and the default for Kafka; `fsync` is flush `acks`",
        "for Tidelog and `flush.messages=1` for Kafka. Kafka runs with its default heap (1 GB) and settings;",
        "memory is the proportional set size (PSS) of the process and its children.",
        "`°` marks a rate at which a thread of the client ran nearly all the time: the client is the limit there.",
        "",
    ]
    for section in dict.fromkeys(row.section for row in results.rows):
        text += [f"## {section}", "", *_table([row for row in results.rows if row.section == section]), ""]
        charts_here = [name for name in drawn if name.startswith(_slug(section) + "-")]
        text += [f"![{section}]({FOLDER}/{name})" for name in charts_here] + ([""] if charts_here else [])
    return "\n".join(text)


def _said_of_others(results: Results) -> str:
    told, used = "", {}
    for kind, who in ((OTHERS, "Other programs used"), (STOLEN, "The hypervisor withheld")):
        if found := results.cores(kind):
            used[kind], most = found
            told += f" {who} {used[kind]:.2f} cores during the measurements (median; at most {most:.2f})."
    return told + (" **This was not a quiet machine: repeat the run.**" if sum(used.values()) > _BUSY else "")


def _said_of_later_runs(results: Results) -> list[str]:
    titles = [row.title for row in results.rows if row.key in results.settings.get("renewed", [])]
    return [f"- Run again later, by themselves: {'; '.join(titles)}."] if titles else []


def _table(rows: Sequence[RowResult]) -> list[str]:
    seen = {peer for row in rows for peer in [*row.samples, *row.failures, *row.not_offered]}
    peers = [peer for peer in (OURS, THEIRS, "nats", "redis") if peer in seen]
    compares = OURS in peers and THEIRS in peers
    heads = ["what", "figure", *(_TITLES[peer] for peer in peers)] + (["Tidelog / Kafka", ""] if compares else [])
    table = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for row in rows:
        for number, figure in enumerate(row.figures):
            what = f"**{row.title}**<br>{row.conditions}" if number == 0 else ""
            cells = [what, f"{figure.name}, {figure.unit}"]
            cells += [_cell(row, peer, figure, first=number == 0) for peer in peers]
            if compares:
                ratio = row.ratio(figure.name, OURS, THEIRS)
                cells += [f"{shown(ratio)}x", verdict(figure, ratio)] if ratio is not None else ["", ""]
            table.append(f"| {' | '.join(cells)} |")
    return table


def _cell(row: RowResult, peer: str, figure: Figure, *, first: bool) -> str:
    if peer in row.not_offered:
        return f"not offered: {row.not_offered[peer]}" if first else "not offered"
    if peer in row.failures:
        reasons = row.failures[peer]
        return f"FAILED ({len(reasons)}x): {reasons[0].replace('|', '/')}" if first else "FAILED"
    summary = row.summary(peer, figure.name)
    if summary is None:
        return "missing"
    return with_spread(summary) + ("°" if row.is_limited_by_client(peer, figure) else "")


# ---- charts


def _slug(section: str) -> str:
    return "peers-" + "-".join(section.lower().replace(",", "").split()[:3])


def draw(results: Results) -> dict[str, str]:
    """File name to SVG: rates and latencies of the sections that have them, and all ratios on one axis."""
    drawn = {}
    told = machine_line(results.machine)
    for section in dict.fromkeys(row.section for row in results.rows):
        rows = [row for row in results.rows if row.section == section]
        for suffix, title, unit, picks in _pictures(rows):
            peers = [name for name in _TITLES if any(name in row.samples for row, _, _ in picks)]
            groups = [(label, {peer: _bar(row, peer, name) for peer in peers}) for row, name, label in picks]
            if peers and groups:
                names = {peer: results.peers.get(peer, peer) for peer in peers}
                logarithmic = unit in _TIMES
                svg = charts.bars(f"{section}: {title}", told, groups, names, unit=unit, logarithmic=logarithmic)
                drawn[f"{_slug(section)}-{suffix}.svg"] = svg
    return drawn


Pick = tuple[RowResult, str, str]  # a row, a figure or note of it, the label


def _pictures(rows: Sequence[RowResult]) -> list[tuple[str, str, str, list[Pick]]]:
    """The figures to draw: each rate or cost that several rows have, and all times together."""
    found: list[tuple[str, str, str, list[Pick]]] = []
    for figure in dict.fromkeys(figure for row in rows for figure in row.figures):
        having = [row for row in rows if figure in row.figures]
        if len(having) < 2 or figure.unit in _TIMES:
            continue
        name, unit = figure.name, figure.unit
        in_megabytes = f"{name} MB/s"
        if all(in_megabytes in notes for row in having for notes in row.notes.values()) and any(
            row.notes for row in having
        ):
            name, unit = in_megabytes, "MB/s"
        told = "more is better" if figure.better == "higher" else "less is better"
        picks = [(row, name, row.title) for row in having]
        found.append((figure.name.lower().replace(" ", "-"), f"{figure.name}, {told}", unit, picks))
    for unit in _TIMES:
        waits = [
            (row, figure.name, f"{row.title}: {figure.name}")
            for row in rows
            for figure in row.figures
            if figure.unit == unit and figure.name != "max"
        ]
        if len(waits) > 1:
            found.append(("times", "less is better", unit, waits))
    return found


_TIMES = ("ms", "s")


def _bar(row: RowResult, peer: str, name: str) -> charts.Bar | None:
    if peer in row.failures:
        return None
    samples = row.samples.get(peer, {}).get(name) or row.notes.get(peer, {}).get(name)
    if not samples:
        return None
    summary = summarize(samples)
    return charts.Bar(summary.median, summary.least, summary.most)


# ---- growth


def growth_markdown(growth: Mapping[str, Any], drawn: Sequence[str]) -> str:
    """`growth`: machine, peers, missing, and sweeps with key, title, across, conditions, figures and points."""
    text = [
        "## How cost grows",
        "",
        f"`{growth['command']}` generated these figures: medians of {growth['repeats']} repeats; 1 for data on disk.",
        f"Machine: {machine_line(growth['machine'])}.",
        *(f"**Missing**: {_TITLES.get(name, name)}: {why}" for name, why in growth["missing"].items()),
        "",
    ]
    for sweep in growth["sweeps"]:
        text += [f"### {sweep['title']}", "", sweep["conditions"], ""]
        heads = [sweep["across"], "broker", *sweep["figures"]]
        text += [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
        for point in sweep["points"]:
            for peer in growth["peers"]:
                cells = _growth_cells(point["peers"].get(peer, {}), sweep["figures"])
                text.append(f"| {point['at']:,g} | {_TITLES[peer]} | {' | '.join(cells)} |")
        text += ["", *(f"![{sweep['title']}]({FOLDER}/{name})" for name in drawn if f"-{sweep['key']}." in name), ""]
    return "\n".join(text)


def _growth_cells(found: Mapping[str, Any], figures: Sequence[str]) -> list[str]:
    if "failed" in found:
        return [f"FAILED: {found['failed'].replace('|', '/')}", *("FAILED" for _ in figures[1:])]
    return [with_spread(summarize(found[figure])) if figure in found else "missing" for figure in figures]


def draw_growth(growth: Mapping[str, Any]) -> dict[str, str]:
    """One picture per sweep, with a chart for each figure."""
    drawn = {}
    for sweep in growth["sweeps"]:
        pictures = []
        for figure in sweep["figures"]:
            series = {
                peer: [
                    (point["at"], summarize(point["peers"][peer][figure]).median)
                    for point in sweep["points"]
                    if figure in point["peers"].get(peer, {}) and "failed" not in point["peers"][peer]
                ]
                for peer in growth["peers"]
            }
            pictures.append(
                charts.lines(
                    f"{sweep['title']}: {figure}",
                    machine_line(growth["machine"]),
                    {peer: line for peer, line in series.items() if line},
                    growth["peers"],
                    across=sweep["across"],
                )
            )
        drawn[f"growth-{sweep['key']}.svg"] = charts.side_by_side(pictures)
    return drawn
