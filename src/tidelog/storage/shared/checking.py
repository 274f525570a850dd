"""Checks that the database and the object store of a cluster agree, while brokers go on writing. Only reads.

    extents     of a log are in order and without gaps, from its start to its high watermark
    objects     that extents lie in exist, and have their size
    contents    (a deep check) CRCs, batch headers and offsets are right
    garbage     objects that nothing refers to: not wrong, but told, with their bytes

What seems wrong is looked at again, first in the store and then in the database: an object that is missing may have
been merged and removed since the database was read, and one that nobody knows may be about to be committed.
"""

import asyncio
from collections.abc import Callable, Container, Iterable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from tidelog.model import Offset, TimestampMs
from tidelog.storage.shared import segment_object
from tidelog.storage.shared.garbage import GarbageSettings
from tidelog.storage.shared.inventory import (
    Compared,
    Inventory,
    KnownObject,
    LogState,
    UsedRange,
    compared,
    stored_now,
)
from tidelog.storage.shared.objects import ObjectMissing, ObjectStore, StoredObject
from tidelog.storage.shared.order import LogId
from tidelog.storage.shared.verifying import Damage, damages

_LOGS_AT_ONCE = 50
_READ_AT_ONCE = 4  # objects

_RESTORE = (
    "bring the object back under the same key, from the bucket's earlier versions or from a copy, and check again; "
    "brokers read it as soon as it is there"
)
_IN_DATABASE = (
    "the database contradicts itself: keep its backups, do not change rows by hand, and report it with this line; "
    "records outside this range are served"
)
_WAS_COMPACTED = "nothing to do if the topic was compacted earlier; otherwise report it with this line"


@dataclass(frozen=True, slots=True)
class Finding:
    kind: str
    """missing, short, damaged, gap, overlap, unknown-object, dead-object."""
    is_error: bool
    topic: str | None
    partition: int | None
    base_offset: Offset | None
    last_offset: Offset | None
    key: str | None
    position: int | None
    what: str
    advice: str

    def fields(self) -> dict[str, Any]:
        fields = asdict(self)
        return {"severity": "error" if fields.pop("is_error") else "note", **fields}


class Count(NamedTuple):
    objects: int = 0
    size_bytes: int = 0

    def plus(self, size_bytes: int) -> "Count":
        return Count(self.objects + 1, self.size_bytes + size_bytes)


NONE = Count()


@dataclass(slots=True)
class Tally:
    """What was seen. The objects of a store are in exactly one of the last four."""

    logs: int = 0
    extents: int = 0
    errors: int = 0
    notes: int = 0
    used: Count = NONE
    removable: Count = NONE
    """Dead for longer than the grace: the next collection of garbage removes them."""
    orphans: Count = NONE
    """Old, and the database does not know them: the next search declares them dead."""
    recent: Count = NONE
    """Dead for a short time, or uploaded and not committed yet."""


def classify(each: Compared, tally: Tally, settings: GarbageSettings, now_ms: TimestampMs) -> None:
    """Count an object of the store. For one that the database does not know, look again first."""
    stored, known = each
    if stored is None:
        return
    if known is None or known.is_removed:
        is_old = known is None and stored.modified_ms < now_ms - settings.orphan_ms
        name = "orphans" if is_old else "recent"
    elif known.dead_since is not None and not known.used:
        name = "removable" if known.dead_since < now_ms - settings.grace_ms else "recent"
    else:
        name = "used"
    setattr(tally, name, getattr(tally, name).plus(stored.size))


class Checker:
    def __init__(
        self,
        inventory: Inventory,
        objects: ObjectStore,
        settings: GarbageSettings,
        *,
        compacted: Container[str],
        clock: Callable[[], TimestampMs],
        found: Callable[[Finding], None],
        progress: Callable[[int], None] = lambda _: None,
    ) -> None:
        """`compacted`: the topics in which compaction may leave gaps. `progress` is told the bytes of objects that
        are done."""
        self._inventory = inventory
        self._objects = objects
        self._settings = settings
        self._compacted = compacted
        self._clock = clock
        self._tell = found
        self._progress = progress
        self.tally = Tally()

    async def check(self, *, deep: bool) -> Tally:
        await self._check_logs()
        waiting: set[asyncio.Task[None]] = set()
        try:
            async for each in compared(self._inventory, self._objects):
                if len(waiting) >= (_READ_AT_ONCE if deep else 1):
                    done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        task.result()
                waiting.add(asyncio.create_task(self._check_object(each, deep)))
            await asyncio.gather(*waiting)
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        return self.tally

    def _found(self, finding: Finding) -> None:
        if finding.is_error:
            self.tally.errors += 1
        else:
            self.tally.notes += 1
        self._tell(finding)

    # Logs

    async def _check_logs(self) -> None:
        after = LogId(-1)
        while logs := await self._inventory.logs(after, _LOGS_AT_ONCE):
            for log in logs:
                self.tally.logs += 1
                self.tally.extents += len(log.extents)
                for finding in findings_in(log, may_have_gaps=log.topic in self._compacted):
                    self._found(finding)
            after = logs[-1].log_id

    # Objects

    async def _check_object(self, each: Compared, deep: bool) -> None:
        if each.known is None or each.stored is None or each.stored.size < each.known.size:
            each = await self._look_again(each)
        classify(each, self.tally, self._settings, self._clock())
        stored, known = each
        if known is None or not known.used:
            return
        if known.dead_since is not None:
            self._report(
                known.used, "dead-object", "the object is declared dead, but an extent lies in it", _IN_DATABASE
            )
        if stored is None:
            self._report(known.used, "missing", "the object does not exist", _RESTORE)
        elif stored.size < known.size:
            self._short(known, stored)
        elif deep:
            await self._check_content(known)
            return
        self._progress(known.size)

    async def _look_again(self, each: Compared) -> Compared:
        """The store first: what the database needs after that was there before."""
        is_whole = each.known is None
        stored = each.stored if is_whole else await stored_now(self._objects, each.key)
        return Compared(stored, (await self._inventory.look([each.key])).get(each.key))

    def _short(self, known: KnownObject, stored: StoredObject) -> None:
        cut = [used for used in known.used if used.position + used.size > stored.size]
        size = f"the object has {stored.size:,} of {known.size:,} bytes"
        if cut:
            self._report(cut, "short", size, _RESTORE)
        else:
            self._report(known.used, "short", f"{size}: its footer is cut off", _RESTORE)

    async def _check_content(self, known: KnownObject) -> None:
        wrong = await self._damages(known, self._progress)
        if not wrong:
            return
        again = (await self._inventory.look([known.key])).get(known.key)
        if again is None or not again.used:
            return  # it was merged or deleted meanwhile
        for damage in await self._damages(again, lambda _: None):
            self._report_damage(again, damage)

    async def _damages(self, known: KnownObject, progress: Callable[[int], None]) -> list[Damage]:
        try:
            return await damages(self._objects, known, progress)
        except ObjectMissing as error:
            return [Damage(used, used.position, used.base_offset, str(error)) for used in known.used]

    def _report_damage(self, known: KnownObject, damage: Damage) -> None:
        if damage.used is None:
            self._report(known.used, "damaged", f"{damage.reason} (its footer)", _RESTORE, damage.position)
        elif damage.is_gap:
            if damage.used.topic not in self._compacted and damage.offset >= damage.used.clean_offset:
                self._report([damage.used], "gap", damage.reason, _WAS_COMPACTED, damage.position, is_error=False)
        else:
            used = damage.used._replace(base_offset=max(damage.offset, damage.used.base_offset))
            self._report([used], "damaged", damage.reason, _RESTORE, damage.position)

    def _report(
        self,
        extents: Iterable[UsedRange],
        kind: str,
        what: str,
        advice: str,
        position: int | None = None,
        *,
        is_error: bool = True,
    ) -> None:
        for used in extents:
            at = used.position if position is None else position
            self._found(_finding(used, kind, what, advice, at, is_error=is_error))


def findings_in(log: LogState, *, may_have_gaps: bool) -> list[Finding]:
    """Whether the extents of a log are contiguous. `may_have_gaps`: the log is compacted now. A gap beside a segment,
    which a compaction may have written that was not finished, is no error."""
    found = []
    expected, before = log.start_offset, ""

    def gap(last: Offset, after: str) -> None:
        is_beside_segment = any(key.startswith(segment_object.PREFIX) for key in (before, after))
        if not may_have_gaps and last >= log.clean_offset:
            found.append(
                Finding(
                    "gap",
                    not is_beside_segment,
                    *(log.topic, log.partition, expected, last, None, None),
                    f"no extent has the offsets {expected} to {last}",
                    _WAS_COMPACTED if is_beside_segment else _IN_DATABASE,
                )
            )

    for extent in log.extents:
        if not extent.key:
            found.append(_finding(extent, "unknown-object", "its object is not in the database", _IN_DATABASE, None))
        if extent.base_offset < expected and before:
            found.append(_finding(extent, "overlap", f"it begins before offset {expected}", _IN_DATABASE, None))
        elif extent.base_offset > expected:
            gap(extent.base_offset - 1, extent.key)
        expected, before = extent.last_offset + 1, extent.key
    if expected > log.high_watermark:
        what = f"it ends after the high watermark, {log.high_watermark}"
        found.append(_finding(log.extents[-1], "overlap", what, _IN_DATABASE, None))
    elif expected < log.high_watermark:
        gap(log.high_watermark - 1, "")
    return found


def _finding(
    used: UsedRange, kind: str, what: str, advice: str, position: int | None, *, is_error: bool = True
) -> Finding:
    return Finding(
        *(kind, is_error, used.topic, used.partition, used.base_offset, used.last_offset, used.key, position),
        what,
        advice,
    )
