"""Searches a history for what must never happen. Each finding has a kind:

lost               acknowledged or committed, but not in the log
duplicate          one value at two offsets
aborted read       a reader of committed data saw an aborted record
uncommitted read   a reader of committed data saw a record before its commit was requested
out of order       a producer's records, or a session's offsets, are in another order than they were made
moved back         a committed offset is lower than one that was committed before
inconsistent       one offset with two values, at two times or for two clients
torn               only a part of a transaction is visible
came back          a record of a deleted topic, or below an offset that DeleteRecords confirmed, is visible

A record may be removed with its topic, by retention, by DeleteRecords and by compaction: see `History.remade` and
`History.shrinking`. Producers of topics that are remade are not idempotent: they may repeat and reorder records.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import accumulate, chain, pairwise
from typing import NamedTuple

from tests.torture.history import COPIED, NEVER, History, Outcome, Partition, Transaction, Write


class Finding(NamedTuple):
    kind: str
    text: str


def check(history: History) -> list[Finding]:
    checks = (lost, duplicates, isolation, order, offsets, consistency, torn, copies, came_back)
    return [finding for one in checks for finding in one(history)]


def _places(final: dict[Partition, list[tuple[int, str]]]) -> dict[str, list[tuple[Partition, int]]]:
    places: dict[str, list[tuple[Partition, int]]] = defaultdict(list)
    for partition, records in final.items():
        for offset, value in records:
            places[value].append((partition, offset))
    return places


def _is_promised(write: Write, transactions: dict[str, Transaction]) -> bool:
    if write.transaction is None:
        return write.outcome is Outcome.DONE
    known = transactions.get(write.transaction)
    return known is not None and known.outcome is Outcome.DONE


def lost(history: History) -> Iterator[Finding]:
    transactions = history.transactions
    places = _places(history.final_committed)
    newest = _newest_of_keys(history, places)
    remade_at = {topic: events[-1].created for topic, events in history.remade.items() if events}
    for write in history.writes:
        if _is_promised(write, transactions) and write.began >= remade_at.get(write.partition[0], 0.0):
            found = places.get(write.value)
            if not found and not _may_be_gone(write, history, newest):
                yield Finding("lost", f"{write.value!r} of {write.producer}, acknowledged at {write.offset}")
            elif found and write.offset is not None and (write.partition, write.offset) not in found:
                yield Finding("inconsistent", f"{write.value!r} was acknowledged at {write.offset} and is at {found}")


def _newest_of_keys(
    history: History, places: dict[str, list[tuple[Partition, int]]]
) -> dict[tuple[Partition, str | None], int]:
    """By key, the offset of its last remaining record."""
    newest: dict[tuple[Partition, str | None], int] = defaultdict(lambda: -1)
    for write in history.writes:
        for partition, offset in places.get(write.value, ()):
            newest[partition, write.key] = max(newest[partition, write.key], offset)
    return newest


def _may_be_gone(write: Write, history: History, newest: dict[tuple[Partition, str | None], int]) -> bool:
    starts = history.shrinking.get(write.partition[0])
    if starts is None or write.offset is None:
        return False
    if write.offset < starts[write.partition]:
        return True
    return write.key is not None and newest[write.partition, write.key] > write.offset


def duplicates(history: History) -> Iterator[Finding]:
    for value, found in _places(history.final_committed).items():
        if len(found) > 1 and found[0][0][0] not in history.remade:
            yield Finding("duplicate", f"{value!r} is at {found}")


def isolation(history: History) -> Iterator[Finding]:
    """Checks the readers of committed data, and the final read of it."""
    transactions = history.transactions
    of_value = {write.value: transactions.get(write.transaction) for write in history.writes if write.transaction}
    for read in history.reads:
        known = of_value.get(read.value)
        if read.committed and known is not None:
            if known.outcome is Outcome.NOT_DONE:
                yield Finding("aborted read", f"{read.session} read {read.value!r} of {known.id}")
            elif known.commit_asked_at is None or read.at < known.commit_asked_at:
                yield Finding("uncommitted read", f"{read.session} read {read.value!r} of {known.id}")
    for value in _places(history.final_committed):
        known = of_value.get(value)
        if known is not None and known.outcome is Outcome.NOT_DONE:
            yield Finding("aborted read", f"{value!r} of {known.id} is visible in the end")
        elif known is not None and known.commit_asked_at is None:
            yield Finding("uncommitted read", f"{value!r} of {known.id} is visible in the end")


def order(history: History) -> Iterator[Finding]:
    at = {value: (partition, offset) for partition, records in history.final.items() for offset, value in records}
    streams: dict[tuple[str, Partition], list[Write]] = defaultdict(list)
    for write in history.writes:
        if write.value in at and write.partition[0] not in history.remade:
            streams[write.producer, write.partition].append(write)
    for (producer, partition), writes in streams.items():
        writes.sort(key=lambda write: write.sequence)
        for before, after in pairwise(writes):
            if at[before.value][1] > at[after.value][1]:
                yield Finding("out of order", f"{producer} in {partition}: {before.value!r} after {after.value!r}")
    last: dict[tuple[str, Partition], int] = {}
    for read in history.reads:
        key = read.session, read.partition
        if read.offset <= last.get(key, -1):
            yield Finding("out of order", f"{read.session} read {read.offset} of {read.partition} after {last[key]}")
        last[key] = read.offset


def offsets(history: History) -> Iterator[Finding]:
    commits: dict[tuple[str, Partition], list[tuple[float, int]]] = defaultdict(list)
    for commit in history.commits:
        commits[commit.group, commit.partition].append((commit.ended, commit.offset))
    ended_at: dict[tuple[str, Partition], list[float]] = {}
    highest: dict[tuple[str, Partition], list[int]] = {}
    for key, done in commits.items():
        done.sort()
        ended_at[key] = [ended for ended, _ in done]
        highest[key] = [-1, *accumulate((offset for _, offset in done), max)]
    looks = [(seen.group, seen.partition, seen.began, seen.offset, "seen") for seen in history.offsets_seen]
    known = [each for each in history.commits if each.ended != NEVER]
    late = {(each.group, each.partition, each.offset) for each in history.commits if each.ended == NEVER}
    looks += [(each.group, each.partition, each.began, each.offset, "committed") for each in known]
    for group, partition, began, offset, how in looks:
        key = group, partition
        before = highest[key][bisect_right(ended_at[key], began)] if key in highest else -1
        if offset < before:
            why = "; a commit of it was not confirmed, and may have come late" if (*key, offset) in late else ""
            yield Finding("moved back", f"{group} in {partition}: {offset} {how} after {before} was committed{why}")


def consistency(history: History) -> Iterator[Finding]:
    truth: dict[tuple[Partition, int], str] = {}
    ends = (
        (partition, offset, value, "the end")
        for final in (history.final, history.final_committed)
        for partition, records in final.items()
        for offset, value in records
    )
    reads = ((read.partition, read.offset, read.value, read.session) for read in history.reads)
    writes = (
        (write.partition, write.offset, write.value, write.producer)
        for write in history.writes
        if write.offset is not None and write.outcome is Outcome.DONE
    )
    for partition, offset, value, who in chain(ends, reads, writes):
        if partition[0] in history.remade:
            continue
        known = truth.setdefault((partition, offset), value)
        if known != value:
            yield Finding("inconsistent", f"{partition} {offset}: {known!r}, but {value!r} to {who}")


def torn(history: History) -> Iterator[Finding]:
    places = _places(history.final_committed)
    transactions = history.transactions
    of_transaction: dict[str, list[bool]] = defaultdict(list)
    for write in history.writes:
        if write.transaction is not None:
            of_transaction[write.transaction].append(write.value in places)
    for id_, visible in of_transaction.items():
        if any(visible) and not all(visible):
            outcome = transactions[id_].outcome.value if id_ in transactions else "?"
            yield Finding("torn", f"{id_} ({outcome}): {sum(visible)} of {len(visible)} records are visible")


def came_back(history: History) -> Iterator[Finding]:
    ended = {write.value: write.ended for write in history.writes if write.outcome is Outcome.DONE}
    for (topic, _), records in history.final.items():
        deleted_at = max((event.delete_asked for event in history.remade.get(topic, ())), default=0.0)
        for offset, value in records:
            if ended.get(value, deleted_at) < deleted_at:
                yield Finding("came back", f"{value!r} is at {offset} of {topic}, which was deleted after the write")
    for event in history.trimmed:
        for offset, value in history.final.get(event.partition, ()):
            if offset < event.start:
                yield Finding("came back", f"{value!r} at {offset} of {event.partition}, deleted below {event.start}")


def copies(history: History) -> Iterator[Finding]:
    for topic, copy in history.copies.items():
        wanted = Counter(COPIED + value for value in _values(history, topic))
        made = Counter(_values(history, copy))
        for value, count in (wanted - made).items():
            yield Finding("lost", f"{count} times {value!r} is missing in {copy}")
        for value, count in (made - wanted).items():
            yield Finding("duplicate", f"{value!r} is {count} times too often in {copy}")


def _values(history: History, topic: str) -> list[str]:
    return [value for (name, _), records in history.final_committed.items() if name == topic for _, value in records]
