"""`SharedDirectLog`: reads a log of a cluster from its objects, in any process that can reach the object store.

The leader of the partition says which pieces of which objects hold a range (`PartitionLog.locate`). These are facts
that never change: an object may be replaced by a merged one, and be removed later, but as long as it is there, it
holds these records. So nothing has to be compared with the broker, and a piece that is gone is asked for again. Small
requests run ahead of the reader, bounded in number and in bytes.

What the leader has in memory is better read from there: it costs the broker little, and needs no requests to the
store. Only `with_tail` is that read from objects, too.

For readers of committed records, batches of aborted transactions are left out here. CRCs are not checked here; the
code that decodes the batches does that.

A store that does not answer, or whose credentials this process does not have, is left alone for a minute: the other
tasks of the process go to the broker at once. The reason is logged once.
"""

import asyncio
import logging
import os
import threading
import time
import weakref
from bisect import bisect_right
from collections import deque
from collections.abc import Coroutine, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tidelog.errors import CorruptLog, InvalidSettings, MissingExtra, StorageError, StorageUnavailable
from tidelog.model import Offset, ProducerId
from tidelog.records.batch import HEADER, HEADER_SIZE, BatchHeader, iterate
from tidelog.storage.direct import DirectLog, LogLeader, Stretch
from tidelog.storage.log import AbortedTransaction, Located, StoredPiece
from tidelog.storage.shared.blocks import BlockCache
from tidelog.storage.shared.object_stores.opening import open_object_store
from tidelog.storage.shared.objects import ObjectMissing, ObjectStore
from tidelog.storage.shared.order import Extent
from tidelog.storage.shared.reading import ColdReader, whole_batches

if TYPE_CHECKING:
    from concurrent.futures import Future

REQUEST_BYTES = 4 << 20
REQUESTS_AT_ONCE = 16
BYTES_AT_ONCE = 16 << 20
_STRETCH_BYTES = 4 << 20
_CACHE_BYTES = 4 << 20  # for finding the first batch
_LEFT_ALONE_S = 60.0

_UNREACHABLE = (StorageUnavailable, MissingExtra, InvalidSettings)

T = TypeVar("T")

logger = logging.getLogger("tidelog.storage")  # in a Spark worker, its messages go to the executor's stderr


@dataclass(frozen=True, slots=True)
class SharedDirectLog(DirectLog):
    place: str
    """The URL of the object store."""
    with_tail: bool = False

    def is_worth_a_try(self, *, leader_is_here: bool) -> bool:  # noqa: ARG002
        """Whoever asks may be on another machine than the readers, with other credentials: they find out."""
        return True

    def read(self, start: Offset, end: Offset, leader: LogLeader, *, committed: bool = False) -> Iterator[Stretch]:
        try:
            reader = _reader_of(self.place)
        except _UNREACHABLE as error:
            _leave_alone(self.place, error)
            return
        position = start
        missing: StoredPiece | None = None
        while reader is not None and position < end:
            found = leader.locate(position, end, committed=committed)
            if found is None:
                return
            limit = min(end, found.end_offset if self.with_tail else min(found.end_offset, found.tail_offset))
            if limit <= position:
                return
            if missing is not None and missing in found.pieces:
                _say(self.place, f"there is no object {missing.key}")
                return
            try:
                for stretch in _PiecesRead(reader, found, position, limit).stretches():
                    position = min(stretch.end, end)
                    yield Stretch(stretch.records, position)
            except _PieceMissing as error:
                missing = error.piece  # it was merged or compacted, and removed, since the leader answered; or lost
            except _UNREACHABLE as error:
                _leave_alone(self.place, error)
                return
            except StorageError as error:
                _say(self.place, str(error))
                return


class _PieceMissing(Exception):
    def __init__(self, piece: StoredPiece) -> None:
        self.piece = piece


class _Request(NamedTuple):
    """A byte range of a piece."""

    piece: StoredPiece
    position: int
    size: int

    @property
    def is_last(self) -> bool:
        return self.position + self.size == self.piece.position + self.piece.size


class _PiecesRead:
    """Reads what the leader has located, from `start` up to `limit`."""

    def __init__(self, reader: "_ObjectReader", found: Located, start: Offset, limit: Offset) -> None:
        self._reader = reader
        self._pieces = [piece for piece in found.pieces if piece.base_offset < limit]
        self._aborted = found.aborted
        self._position = start
        self._limit = limit
        self._gathered: list[memoryview] = []
        self._reached = start

    def stretches(self) -> Iterator[Stretch]:
        rest = b""
        answers = self._answers()
        try:
            for request, content in answers:
                data = memoryview(rest + content if rest else content)
                extent = _extent(request.piece)
                position = request.position - len(rest)
                size, next_offset = whole_batches(data, extent, position, len(data), self._limit, at_least_one=False)
                if size:
                    self._gathered.append(data[:size])
                    self._reached = next_offset
                if sum(map(len, self._gathered)) >= _STRETCH_BYTES:
                    yield self._stretch()
                data = data[size:]
                if len(data) >= HEADER_SIZE and _base_offset(data) >= self._limit:
                    break
                if request.is_last and data:
                    raise CorruptLog(
                        "the last batch is cut off", file=extent.key, position=position, offset=extent.base_offset
                    )
                rest = bytes(data)
        finally:
            answers.close()
        self._reached = max(self._reached, self._limit)  # compaction may have left nothing at the end
        yield self._stretch()

    def _stretch(self) -> Stretch:
        parts, self._gathered = self._gathered, []
        begin, self._position = self._position, self._reached
        relevant = [one for one in self._aborted if one.first_offset < self._reached and one.last_offset >= begin]
        if relevant:
            parts = _committed(parts, relevant)
        return Stretch(parts[0] if len(parts) == 1 else memoryview(b"".join(parts)), self._reached)

    def _answers(self) -> "Generator[tuple[_Request, bytes], None, None]":
        """The bytes of the pieces, in order. While one answer is worked on, others are on their way."""
        under_way: deque[tuple[_Request, Future[list[bytes]]]] = deque()
        upcoming, stop = self._requests(), self._last_position()
        following = next(upcoming, None)
        try:
            while under_way or following is not None:
                while following is not None and (
                    not under_way
                    or (
                        len(under_way) < REQUESTS_AT_ONCE
                        and sum(request.size for request, _ in under_way) + following.size <= BYTES_AT_ONCE
                        and (stop is None or following.piece is not self._pieces[-1] or following.position <= stop)
                    )
                ):
                    under_way.append((following, self._reader.begin_to_read(following)))
                    following = next(upcoming, None)
                request, coming = under_way.popleft()
                yield request, _result(coming, request.piece)[0]
        finally:
            for _, coming in under_way:
                coming.cancel()

    def _requests(self) -> Iterator[_Request]:
        for number, piece in enumerate(self._pieces):
            position, end = piece.position, piece.position + piece.size
            if not number:
                position = self._position_of(piece, self._position)
            while position < end:
                size = min(REQUEST_BYTES, end - position)
                yield _Request(piece, position, size)
                position += size

    def _last_position(self) -> int | None:
        """Where, in the last piece, the batch is that holds the limit: nothing behind that is fetched ahead. None:
        everything up to the end of the piece is wanted, or the piece is small."""
        if not self._pieces or self._pieces[-1].size <= 2 * REQUEST_BYTES:
            return None
        last = self._pieces[-1]
        return self._position_of(last, self._limit) if last.last_offset >= self._limit else None

    def _position_of(self, piece: StoredPiece, offset: Offset) -> int:
        if offset <= piece.base_offset:
            return piece.position
        return _result(self._reader.begin_to_find(piece, offset), piece)


def _result(coming: "Future[T]", piece: StoredPiece) -> T:
    try:
        return coming.result()
    except ObjectMissing:
        raise _PieceMissing(piece) from None


def _base_offset(batch: memoryview) -> Offset:
    """Of a batch that may be cut off after its header."""
    return BatchHeader._make(HEADER.unpack_from(batch)).base_offset


def _extent(piece: StoredPiece) -> Extent:
    return Extent(*piece, max_timestamp=-1)


def _committed(parts: Sequence[memoryview], aborted: Sequence[AbortedTransaction]) -> list[memoryview]:
    """The batches that belong to none of these transactions. It does not depend on markers, which compaction
    removes."""
    ranges: dict[ProducerId, list[tuple[Offset, Offset]]] = {}
    for one in sorted(aborted, key=lambda one: one.first_offset):
        ranges.setdefault(one.producer_id, []).append((one.first_offset, one.last_offset))

    def is_aborted(header: BatchHeader) -> bool:
        own = ranges.get(header.producer_id)
        if own is None or header.is_control or not header.is_transactional:
            return False
        number = bisect_right(own, header.base_offset, key=lambda offsets: offsets[0]) - 1
        return number >= 0 and header.base_offset <= own[number][1]

    return [batch.view for part in parts for batch in iterate(part, verify=False) if not is_aborted(batch.header)]


# The object stores of this process


class _ObjectReader:
    """An object store, and a thread with the event loop that its requests need."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._cold = ColdReader(objects, BlockCache(objects, _CACHE_BYTES))
        self._loop = asyncio.new_event_loop()
        thread = threading.Thread(target=_run, args=(self._loop,), name="tidelog objects", daemon=True)
        thread.start()
        weakref.finalize(self, _stop, self._loop, thread, objects, os.getpid())

    def begin_to_read(self, request: _Request) -> "Future[list[bytes]]":
        return self._begin(self._objects.read(request.piece.key, [(request.position, request.size)]))

    def begin_to_find(self, piece: StoredPiece, offset: Offset) -> "Future[int]":
        """The position of the batch that holds an offset, or of the first one after it."""
        return self._begin(self._cold.position_of(_extent(piece), offset))

    def _begin(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        return asyncio.run_coroutine_threadsafe(work, self._loop)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    loop.close()


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread, objects: ObjectStore, process: int) -> None:
    async def end() -> None:
        await objects.close()
        loop.stop()

    if os.getpid() == process:  # a fork has no such thread
        asyncio.run_coroutine_threadsafe(end(), loop)
        if threading.current_thread() is not thread:
            thread.join()


_readers: dict[tuple[int, str], _ObjectReader] = {}  # by process: one that is forked must open its own
_left_alone: dict[str, float] = {}  # places, and since when


def _reader_of(place: str) -> _ObjectReader | None:
    """Shared by all tasks of this process: it keeps its connections, and credentials that it had to ask for. None: it
    is left alone for a while. Does not connect."""
    since = _left_alone.get(place)
    if since is not None and time.monotonic() - since < _LEFT_ALONE_S:
        return None
    reader = _readers.get((os.getpid(), place))
    if reader is None:
        reader = _readers[os.getpid(), place] = _ObjectReader(open_object_store(place))
    return reader


def _leave_alone(place: str, error: Exception) -> None:
    _left_alone[place] = time.monotonic()
    _say(place, str(error))


def _say(place: str, reason: str) -> None:
    logger.warning("reading through the broker, not from %s: %s", place, reason)
