"""Which byte ranges of an object to fetch with one request."""

from collections.abc import Sequence

GAP = 256 << 10
"""Fetching so many bytes that nobody wants is cheaper than another request."""
MOST_BYTES = 8 << 20
"""Of ranges that are joined; a single range may be larger."""


def joined(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int, list[int]]]:
    """The requests for these ranges (position, size): position, size, and the numbers of the ranges in it. Empty
    ranges need no request."""
    runs: list[tuple[int, int, list[int]]] = []
    for number in sorted(range(len(ranges)), key=ranges.__getitem__):
        position, size = ranges[number]
        if not size:
            continue
        if runs:
            start, length, numbers = runs[-1]
            reach = max(length, position + size - start)
            if position - (start + length) <= GAP and reach <= max(length, MOST_BYTES):
                runs[-1] = (start, reach, [*numbers, number])
                continue
        runs.append((position, size, [number]))
    return runs
