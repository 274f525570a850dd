"""Bugs that others have had, planted into a simulated cluster to prove that the checks find them."""

import asyncio
from collections.abc import Callable, Container
from typing import Any

from tests.support.fake_order import FakeDatabase, FakeOrder
from tidelog.errors import OutcomeUnknown, StorageUnavailable, TidelogError
from tidelog.records.batch import place, read_header
from tidelog.storage.shared.bundle import BundleWriter, new_key
from tidelog.storage.shared.garbage import Garbage
from tidelog.storage.shared.log import SharedLog
from tidelog.storage.shared.order import Leader, LogPart
from tidelog.storage.shared.store import SharedStore
from tidelog.storage.shared.writer import Writer, _add, _alive, _Bundle, _log_part, _tell, _Uploaded


def store_with(writer: type[Writer] = Writer, garbage: type[Garbage] = Garbage) -> Callable[..., SharedStore]:
    """Makes stores with other kinds of parts."""

    def make(*arguments: Any, **settings: Any) -> SharedStore:
        store = SharedStore(*arguments, **settings)
        store._writer.__class__ = writer
        store.garbage.__class__ = garbage
        return store

    return make


class NobodyChecksTheEpoch(FakeDatabase):
    """A leader that was replaced may still commit."""

    def _fits(self, part: LogPart, broker_id: int) -> bool:
        log = self._logs.get(part.log_id)
        return log is not None and log.high_watermark == part.base_offset


class KeepsNoSnapshots(FakeDatabase):
    """When extents are exchanged or removed, what they tell about producers is lost."""

    def replace(self, *arguments: Any) -> bool:
        log_id, leader, key, size, old, new, _snapshot, now_ms = arguments
        return super().replace(log_id, leader, key, size, old, new, None, now_ms)

    def keep_snapshot(self, *arguments: Any) -> None:
        pass


class RemovesWhatTheDatabaseDoesNotKnow(Garbage):
    """Orphans are removed without being declared dead first."""

    async def sweep(self) -> int:
        found = [stored.key async for stored in self._objects.list("b/")]
        unknown = [key for key in found if key not in self._known()]
        await self._objects.remove(unknown)
        return len(unknown)

    def _known(self) -> Container[str]:
        assert isinstance(self._order, FakeOrder)
        return self._order.database._objects


class CommitsBeforeThePut(Writer):
    """The high watermark moves before the object is durable."""

    async def _upload(self, bundle: _Bundle) -> _Uploaded:
        key = new_key(self._clock(), self._unique())
        writer = BundleWriter()
        places = [(part, _add(writer, part)) for part in _alive(bundle)]
        content, size = writer.finish()

        async def put() -> None:
            try:
                await self._objects.put(key, content)
            except TidelogError:
                pass

        self._tasks[asyncio.ensure_future(put())] = None
        return _Uploaded(key, size, places)


class AnswersBeforeTheCommit(Writer):
    """What is in the object store is taken for committed."""

    async def _commit(self, bundle: _Bundle, uploaded: _Uploaded) -> None:
        parts = [_log_part(part, position) for part, position in uploaded.places if not part.is_dropped]
        for part, position in uploaded.places:
            if not part.is_dropped:
                _tell(part, uploaded.key, position, is_committed=True)
        if parts:
            try:
                await self._order.commit(uploaded.key, uploaded.size, self._broker_id, parts, self._clock())
            except TidelogError:
                pass


class TakesALostReplyForAFailure(Writer):
    """What was perhaps committed is committed again, with the offsets that come next."""

    async def _commit(self, bundle: _Bundle, uploaded: _Uploaded) -> None:
        while True:
            parts = [place for place in uploaded.places if not place[0].is_dropped]
            if not parts:
                return
            try:
                counted = await self._order.commit(
                    uploaded.key,
                    uploaded.size,
                    self._broker_id,
                    [_log_part(part, position) for part, position in parts],
                    self._clock(),
                )
            except (OutcomeUnknown, StorageUnavailable):
                again = await self._placed_anew(bundle)
                if again is None:
                    return
                uploaded = again
                continue
            for part, position in parts:
                if not part.is_dropped:
                    _tell(part, uploaded.key, position, is_committed=part.log.log_id in counted)
            return

    async def _placed_anew(self, bundle: _Bundle) -> _Uploaded | None:
        for part in _alive(bundle):
            log = part.log
            assert isinstance(log, SharedLog)
            while True:
                try:
                    known = await self._order.load(log.identity, Leader(self._broker_id, log.leader_epoch))
                    break
                except StorageUnavailable:
                    continue
                except TidelogError as error:
                    log.refused(part, StorageUnavailable(str(error)))
                    return None
            shift = known.high_watermark - part.base_offset
            part.base_offset += shift
            part.end_offset += shift
            log._next = max(log._next, part.end_offset)
            for _, view in part.views:
                header = read_header(view)
                place(view, 0, header, header.base_offset + shift, log.leader_epoch)
            part.views = [(offset + shift, view) for offset, view in part.views]
            part.waiting = [
                (promise, appended._replace(base_offset=appended.base_offset + shift))
                for promise, appended in part.waiting
            ]
        return await self._upload(bundle)
