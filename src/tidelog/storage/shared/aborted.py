"""Aborted transactions in the memory of a log's leader: lists in the order of the markers, and what readers get of
them."""

from bisect import bisect_left

from tidelog.model import Offset
from tidelog.records.batch import ReadBuffer, iterate
from tidelog.storage.log import AbortedTransaction, ReadResult


def between(aborted: list[AbortedTransaction], start: Offset, end: Offset) -> list[AbortedTransaction]:
    """Those that have, or had, records from `start` up to, not including, `end`."""
    found = []
    for number in range(bisect_left(aborted, start, key=_marker_offset), len(aborted)):
        entry = aborted[number]
        if entry.first_offset < end:
            found.append(entry)
        if entry.last_stable_offset >= end:
            break
    return found


def ending_after(aborted: list[AbortedTransaction], start: Offset) -> list[AbortedTransaction]:
    """Those whose markers are at `start` or later. A new list: reads under way hold the one before."""
    return aborted[bisect_left(aborted, start, key=_marker_offset) :]


def with_aborted(offset: Offset, parts: list[ReadBuffer], aborted: list[AbortedTransaction]) -> ReadResult:
    """The result of a read from `offset` on, with the transactions that concern it."""
    result = ReadResult(parts, sum(map(len, parts)))
    if not aborted or not parts:
        return result
    end = offset
    for batch in iterate(parts[-1], verify=False):
        end = batch.header.next_offset
    return result._replace(aborted=between(aborted, offset, end))


def _marker_offset(entry: AbortedTransaction) -> Offset:
    return entry.last_offset
