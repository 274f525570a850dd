"""Which pieces of objects hold a range of a log: for programs that read these themselves (`direct.py`).

An answer is bounded in pieces and in aborted transactions, and so is the work for it: a range may have millions of
both. Where an answer ends early, it ends at the end of a batch.
"""

from bisect import bisect_left
from collections.abc import Sequence

from tidelog.model import Offset
from tidelog.storage.log import AbortedTransaction, Located, StoredPiece
from tidelog.storage.shared.extents import Extents

MOST_PIECES = 500
MOST_ABORTED = 5000


def located(
    extents: Extents,
    aborted: Sequence[AbortedTransaction],
    start: Offset,
    end: Offset,
    tail: Offset,
    *,
    most_pieces: int = MOST_PIECES,
    most_aborted: int = MOST_ABORTED,
) -> Located:
    """`aborted` are those of the log, in the order of their markers."""
    pieces: list[StoredPiece] = []
    number = extents.at_or_after(start)
    while number < len(extents) and (extent := extents[number]).base_offset < end:
        if len(pieces) == most_pieces:
            end = pieces[-1].last_offset + 1
            break
        pieces.append(StoredPiece(*extent[:5]))
        number += 1
    end, relevant = _relevant(aborted, start, max(start, end), most_aborted)
    wanted = [piece for piece in pieces if start < end and piece.base_offset < end]
    return Located(wanted, end, tail, relevant)


def _relevant(
    aborted: Sequence[AbortedTransaction], start: Offset, end: Offset, most: int
) -> tuple[Offset, list[AbortedTransaction]]:
    """The aborted transactions with records from `start` on, and the offset up to which these are all: `end`, if they
    are not too many. Transactions that ended after an aborted one began at its last stable offset or later."""
    first = bisect_left(aborted, start, key=lambda entry: entry.last_offset)
    found: list[AbortedTransaction] = []
    for number in range(first, len(aborted)):
        entry = aborted[number]
        if entry.first_offset < end:
            found.append(entry)
        if entry.last_stable_offset >= end:
            break
        if number - first >= most:
            end = max(start, entry.last_stable_offset)
            break
    return end, [entry for entry in found if entry.first_offset < end]
