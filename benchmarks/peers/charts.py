"""Small SVG charts without a library: bars with whiskers, and lines over a logarithmic axis."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

COLOURS = {"tidelog": "#0b7285", "kafka": "#868e96", "nats": "#e8890c", "redis": "#c92a2a"}
_SPARE = ("#5f3dc4", "#2b8a3e", "#a61e4d", "#1864ab")
_INK, _FAINT = "#212529", "#dee2e6"
_CHARACTER = 6.4  # the width of one at 11 pixels, about


def colour(name: str, number: int = 0) -> str:
    return COLOURS.get(name, _SPARE[number % len(_SPARE)])


def short(value: float) -> str:
    """Three digits: 1.23, 45.6, 789, 12.3k, 4.5M."""
    for limit, unit, by in ((1e9, "G", 1e9), (1e6, "M", 1e6), (1e4, "k", 1e3)):
        if abs(value) >= limit:
            return f"{value / by:.3g}{unit}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


@dataclass(frozen=True)
class Bar:
    value: float
    least: float
    most: float


def bars(
    title: str,
    subtitle: str,
    groups: Sequence[tuple[str, Mapping[str, Bar | None]]],
    names: Mapping[str, str],
    *,
    unit: str,
    logarithmic: bool = False,
) -> str:
    """Horizontal bars: a group for each label, in it a bar for each of `names` (key to title)."""
    label_width = 16 + _CHARACTER * max(len(label) for label, _ in groups)
    width, bar, gap, top = label_width + 560, 14, 12, 76
    plot = width - label_width - 90
    known = [one for _, group in groups for one in group.values() if one is not None]
    most = max((one.most for one in known), default=1.0) or 1.0
    least = min((one.least for one in known if one.least > 0), default=1.0)
    low = 10 ** math.floor(math.log10(least)) if logarithmic else 0.0
    if logarithmic and most <= low:
        most = low * 10

    def x(value: float) -> float:
        if logarithmic:
            return label_width + plot * math.log10(max(value, low) / low) / math.log10(most / low)
        return label_width + plot * value / most

    body, y = [], float(top)
    for label, group in groups:
        height = bar * len(names)
        body.append(_text(label_width - 8, y + height / 2 + 4, label, anchor="end"))
        for number, name in enumerate(names):
            one = group.get(name)
            middle = y + bar / 2
            if one is None:
                body.append(_text(label_width + 4, middle + 4, f"{names[name]}: no figure", size=10, fill="#868e96"))
            else:
                end = x(one.value)
                body.append(
                    f'<rect x="{label_width:.1f}" y="{y + 1:.1f}" width="{max(end - label_width, 1):.1f}" '
                    f'height="{bar - 2}" fill="{colour(name, number)}"/>'
                )
                body.append(_line(x(one.least), middle, x(one.most), middle, _INK))
                body.append(_text(max(end, x(one.most)) + 6, middle + 4, short(one.value), size=10))
            y += bar
        y += gap
    grid = []
    for tick in _decades(low, most) if logarithmic else _steps(most):
        grid.append(_line(x(tick), top - 6, x(tick), y - gap + 4, _FAINT))
        grid.append(_text(x(tick), y + 6, short(tick), anchor="middle", size=10))
    axis = unit + (", logarithmic" if logarithmic else "")
    grid.append(_text(label_width + plot / 2, y + 24, axis, anchor="middle", size=10))
    return _svg(width, y + 36, title, subtitle, [*grid, *body], _legend(names))


def lines(
    title: str,
    subtitle: str,
    series: Mapping[str, Sequence[tuple[float, float]]],
    names: Mapping[str, str],
    *,
    across: str,
) -> str:
    """Values over a logarithmic axis; the vertical axis begins at 0, so that small changes look small."""
    width, height, left, top = 620, 340, 70, 76
    plot_width, plot_height = width - left - 40, height - top - 60
    points = [point for line in series.values() for point in line]
    first, last = min((p[0] for p in points), default=1.0), max((p[0] for p in points), default=10.0)
    if last <= first:
        last = first * 10
    most = max((p[1] for p in points), default=1.0) * 1.08 or 1.0

    def at(point: tuple[float, float]) -> tuple[float, float]:
        share = math.log10(point[0] / first) / math.log10(last / first)
        return left + plot_width * share, top + plot_height * (1 - point[1] / most)

    body = []
    for tick in _steps(most):
        _, y = at((first, tick))
        body.append(_line(left, y, left + plot_width, y, _FAINT))
        body.append(_text(left - 6, y + 4, short(tick), anchor="end", size=10))
    for tick in sorted({point[0] for point in points}):
        x, _ = at((tick, 0))
        body.append(_line(x, top + plot_height, x, top + plot_height + 4, _INK))
        body.append(_text(x, top + plot_height + 18, short(tick), anchor="middle", size=10))
    for number, (name, line) in enumerate(series.items()):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(at, line))
        fill = colour(name, number)
        body.append(f'<polyline points="{path}" fill="none" stroke="{fill}" stroke-width="2"/>')
        body += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{fill}"/>' for x, y in map(at, line)]
    body.append(_text(left + plot_width / 2, height - 16, f"{across} (logarithmic)", anchor="middle", size=10))
    return _svg(width, height, title, subtitle, body, _legend(names))


def side_by_side(pictures: Sequence[str], columns: int = 2) -> str:
    """Combines several charts of this module into one."""
    sizes = [_size_of(picture) for picture in pictures]
    wide, high = max(width for width, _ in sizes), max(height for _, height in sizes)
    rows = -(-len(pictures) // columns)
    width, height = wide * min(columns, len(pictures)), high * rows
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    ]
    for number, picture in enumerate(pictures):
        x, y = number % columns * wide, number // columns * high
        parts.append(picture.replace("<svg ", f'<svg x="{x}" y="{y}" ', 1))
    return "\n".join([*parts, "</svg>\n"])


def _size_of(picture: str) -> tuple[int, int]:
    found = re.search(r'width="(\d+)" height="(\d+)"', picture)
    assert found is not None
    return int(found[1]), int(found[2])


def _steps(most: float) -> list[float]:
    """Round numbers from 0, about five of them."""
    rough = most / 5
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    return [step * number for number in range(int(most / step) + 1)]


def _decades(low: float, most: float) -> list[float]:
    first, count = round(math.log10(low)), math.floor(math.log10(most) + 1e-9)
    return [10.0**power for power in range(first, count + 1)]


def _legend(names: Mapping[str, str]) -> list[str]:
    parts, x = [], 12.0
    for number, (name, title) in enumerate(names.items()):
        parts.append(f'<rect x="{x:.1f}" y="48" width="10" height="10" fill="{colour(name, number)}"/>')
        parts.append(_text(x + 15, 57, title))
        x += 40 + _CHARACTER * len(title)
    return parts


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 11, fill: str = _INK) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{fill}">{escape(text)}</text>'
    )


def _line(x1: float, y1: float, x2: float, y2: float, stroke: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{stroke}"/>'


def _svg(width: float, height: float, title: str, subtitle: str, body: Sequence[str], legend: Sequence[str]) -> str:
    wide = max(width, 24 + 6.0 * len(subtitle))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {height:.0f}" width="{wide:.0f}" '
        f'height="{height:.0f}" font-family="DejaVu Sans, Helvetica, Arial, sans-serif">'
        f'<rect width="100%" height="100%" fill="white"/>'
        f'<text x="12" y="22" font-size="15" font-weight="bold" fill="{_INK}">{escape(title)}</text>'
    )
    return "\n".join([head, _text(12, 38, subtitle, size=10, fill="#495057"), *legend, *body, "</svg>\n"])
