"""Renders a profile as one HTML file, with charts in SVG and no external resources."""

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape

from tidelog.spark.jobs.profile import TopicProfile

_STYLE = """
:root { color-scheme: light dark; --ink: #1b2733; --faint: #6b7a89; --line: #dde4ea; --bar: #2a78d6; --page: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --faint: #93a1b0; --line: #2d3742; --bar: #5b9be6; --page: #11161c; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); margin: 2rem auto;
       max-width: 60rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 3rem; border-bottom: 1px solid var(--line); }
h3 { font-size: .95rem; color: var(--faint); font-weight: 600; margin: 1.5rem 0 .3rem; }
.facts { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; }
.facts div b { display: block; font-size: 1.3rem; font-variant-numeric: tabular-nums; }
.facts div, footer { color: var(--faint); } .facts div b { color: var(--ink); }
svg { width: 100%; height: auto; display: block; } svg text { font-size: 11px; fill: var(--faint); }
svg rect { fill: var(--bar); } svg rect:hover { opacity: .75; }
table { border-collapse: collapse; } td { padding: .1rem 1.5rem .1rem 0; font-variant-numeric: tabular-nums; }
code { word-break: break-all; }
"""


def render(profiles: Sequence[TopicProfile], source: str) -> str:
    moment = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    parts = [_topic(profile) for profile in profiles] or ["<p>There are no topics.</p>"]
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Tidelog profile</title>"
        '<meta name=viewport content="width=device-width">'
        f"<style>{_STYLE}</style><h1>Topics of {escape(source)}</h1>"
        + "".join(parts)
        + f"<footer><p>Made by tidelog profile, {moment}.</p></footer></html>\n"
    )


def _topic(profile: TopicProfile) -> str:
    row = profile.as_row()
    facts = {
        "records": f"{row['records']:,}",
        "bytes of values": _bytes(row["value_bytes"]),
        "partitions": f"{row['partitions']:,}",
        "distinct keys": f"{row['distinct_keys']:,}",
        "share of the most frequent key": f"{row['top_key_share']:.1%}",
        "largest to mean partition": f"{row['partition_skew']:.2f}",
        "first record": _time(row["first_ms"]),
        "last record": _time(row["last_ms"]),
    }
    shown = "".join(f"<div><b>{escape(value)}</b>{escape(name)}</div>" for name, value in facts.items())
    html = f"<h2>{escape(profile.topic)}</h2><div class=facts>{shown}</div>"
    if not row["records"]:
        return html
    html += "<h3>Records over time</h3>" + _bars(_over_time(profile))
    html += "<h3>Records in each partition</h3>" + _bars(
        [(str(number), count) for number, count in sorted(profile.partitions.items())]
    )
    html += "<h3>Sizes of values, in bytes</h3>" + _bars(_sizes(profile))
    html += "<p>" + ", ".join(f"{escape(name)} {size:,}" for name, size in row["value_size"].items()) + "</p>"
    if profile.top_keys():
        keys = "".join(
            f"<tr><td><code>{escape(key[:80].decode(errors='backslashreplace'))}</code><td>{count:,}"
            f"<td>{count / row['records']:.2%}"
            for key, count in profile.top_keys()
        )
        html += f"<h3>Most frequent keys</h3><table>{keys}</table>"
    return html


def _over_time(profile: TopicProfile, buckets: int = 60) -> list[tuple[str, int]]:
    minutes = profile.facts.minutes
    first, last = min(minutes), max(minutes)
    width = max(1, -(-(last - first + 1) // buckets))
    counts = [0] * ((last - first) // width + 1)
    for minute, count in minutes.items():
        counts[(minute - first) // width] += count
    return [(_time((first + index * width) * 60_000), count) for index, count in enumerate(counts)]


def _sizes(profile: TopicProfile) -> list[tuple[str, int]]:
    """Number of values by size, in powers of two."""
    by_power: dict[int, int] = {}
    for size, count in profile.facts.value_sizes.items():
        by_power[size.bit_length()] = by_power.get(size.bit_length(), 0) + count
    if not by_power:
        return []
    return [
        (f"{0 if power == 0 else 1 << (power - 1):,}", by_power.get(power, 0))
        for power in range(min(by_power), max(by_power) + 1)
    ]


def _bars(bars: Sequence[tuple[str, int]], width: int = 900, height: int = 140) -> str:
    if not bars:
        return ""
    top, step = max(count for _, count in bars) or 1, width / len(bars)
    wide = max(1.0, min(step - 2, 60))
    drawn = []
    for index, (label, count) in enumerate(bars):
        tall = count / top * (height - 34)
        drawn.append(
            f'<rect x="{index * step + 1:.1f}" y="{height - 18 - tall:.1f}" width="{wide:.1f}" '
            f'height="{tall:.1f}" rx="2"><title>{escape(label)}: {count:,}</title></rect>'
        )
    every = max(1, -(-len(bars) // 8))
    labels = [
        f'<text x="{index * step + 1:.1f}" y="{height - 4}">{escape(label)}</text>'
        for index, (label, _) in enumerate(bars)
        if index % every == 0
    ]
    scale = f'<text x="0" y="11">{top:,}</text>'
    return f'<svg viewBox="0 0 {width} {height}" role=img>{scale}{"".join(drawn)}{"".join(labels)}</svg>'


def _time(moment_ms: int) -> str:
    if moment_ms < 0:
        return "none"
    return datetime.fromtimestamp(moment_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")


def _bytes(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} TiB"
