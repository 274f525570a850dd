"""`Writer`: carries what all logs of a broker append into the object store, and then into the database.

    append ──► Part, in the open bundle ──► put: an object ──► commit, in the order of the bundles ──► told to the log

A bundle is closed when it is full, or when it is due and no other small one is in flight; so the longer uploads take,
the more is gathered for the next one. Small bundles are delivered one after the other: side by side they would hardly
be committed earlier, because commits are made in order, and each costs the store as much as a larger one. A bundle is
in flight until its commit is decided. Uploads may finish in any order. The commits are made one after another in the
order of the bundles, because the database accepts a part only if the log ends where the part begins.

How a bundle can fail:

    the upload failed          try again under a new key: the store may or may not have the first object
    the commit was not made    try again
    its outcome is unknown     make the same commit again until it is decided
    a part was refused         its log fails everything in flight, and loads its state anew

Nothing is ever given up as long as its log is alive. An append whose promise was not kept in time fails as unknown,
and its data stays where it is: it may still be committed.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol
from uuid import UUID

import structlog

from tidelog.errors import InvalidSettings, OutcomeUnknown, StorageError, StorageUnavailable, TidelogError
from tidelog.model import LeaderEpoch, Offset, PartitionIdentity, ProducerId, TimestampMs
from tidelog.storage.log import MemoryUse
from tidelog.storage.shared.bundle import BundleWriter, new_key
from tidelog.storage.shared.objects import ObjectStore
from tidelog.storage.shared.order import Extent, LogId, LogPart, NotTheLeader, Order
from tidelog.storage.shared.producer_facts import Facts
from tidelog.storage.trouble import Trouble

if TYPE_CHECKING:
    from tidelog.promise import Promise
    from tidelog.storage.log import AbortedTransaction, Appended

ENDED: Offset = -1
"""In `Part.transactions`: the transaction ended."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 3.0

logger = structlog.get_logger("tidelog.storage")


class BufferFull(StorageUnavailable):
    """Nothing was appended. Uploads or commits are slower than the producers."""

    kafka_code = 7  # REQUEST_TIMED_OUT: the producer tries again after a pause


class AppendTimedOut(OutcomeUnknown):
    """The append was not committed in time. It may still be."""

    @classmethod
    def new(cls) -> "AppendTimedOut":
        return cls("the object store or the database is slow: the append is not committed yet, and may still be")


@dataclass(frozen=True, slots=True)
class WriterSettings:
    linger_ms: int = 5
    """How long the first append of a bundle waits for others."""
    bundle_bytes: int = 4 << 20
    """A bundle of this size waits for no further appends."""
    uploads: int = 4
    """How many bundles are uploaded or committed at the same time; only one of them may not be full."""
    buffer_bytes: int = 64 << 20
    """Limit for all data that is not committed yet; appends beyond it are refused."""
    append_timeout_ms: int = 30_000
    """After this time an append fails, although it may still be committed."""

    def __post_init__(self) -> None:
        problems = [
            f"{name.replace('_', '.')} must be at least {least}, not {getattr(self, name)}"
            for name, least in (
                ("linger_ms", 0),
                ("bundle_bytes", 1),
                ("uploads", 1),
                ("buffer_bytes", 1),
                ("append_timeout_ms", 1),
            )
            if getattr(self, name) < least
        ]
        if problems:
            raise InvalidSettings(problems)


class WrittenLog(Protocol):
    """A log, as the writer sees it."""

    identity: PartitionIdentity
    log_id: LogId
    leader_epoch: LeaderEpoch

    def seal(self, part: "Part") -> None:
        """Nothing more is added to the part: fill in `stable_offset`."""

    def committed(self, part: "Part", extent: Extent) -> None:
        """The part counts from now on. Called in the order of the log's parts."""

    def refused(self, part: "Part", error: StorageError) -> None:
        """The part will never count, or it is not known whether it does."""


class Part:
    """The batches of one log in one bundle."""

    __slots__ = (
        *("aborted", "base_offset", "end_offset", "facts", "is_dropped", "is_late", "log", "max_timestamp"),
        *("newest_ms", "size", "stable_offset", "transactions", "views", "waiting"),
    )

    def __init__(self, log: WrittenLog, base_offset: Offset) -> None:
        self.log = log
        self.base_offset = base_offset
        self.end_offset = base_offset
        self.stable_offset = base_offset
        self.views: list[tuple[Offset, memoryview]] = []
        """Each batch and its base offset."""
        self.size = 0
        self.max_timestamp: TimestampMs = -1
        self.newest_ms: TimestampMs = 0
        """Time of the last append."""
        self.facts = Facts()
        self.transactions: list[tuple[ProducerId, Offset]] = []
        """The transactions that begin here, with their first offsets, and those that end here, with `ENDED`."""
        self.aborted: list[AbortedTransaction] = []
        self.waiting: list[tuple[Promise[Appended], Appended]] = []
        self.is_late = False
        """Its appends have failed because they took too long."""
        self.is_dropped = False
        """The log has failed or was released: whether the part is committed does not matter to it any more."""

    def settle(self) -> None:
        waiting, self.waiting = self.waiting, []
        for promise, appended in waiting:
            promise.settle(appended)

    def fail(self, make_error: Callable[[], StorageError]) -> None:
        """Each promise gets an error object of its own, because an error that is raised keeps frames alive."""
        waiting, self.waiting = self.waiting, []
        for promise, _ in waiting:
            promise.fail(make_error())


class _Bundle:
    """What is uploaded as one object."""

    __slots__ = ("deadline", "decided", "is_due", "is_sealed", "parts", "said", "size", "timer")

    def __init__(self) -> None:
        self.parts: dict[WrittenLog, Part] = {}
        self.size = 0
        self.is_due = self.is_sealed = False
        self.said: list[tuple[Part, int]] = []
        """The parts that a commit has named, with their positions."""
        self.decided = asyncio.Event()
        self.timer: asyncio.TimerHandle | asyncio.Handle | None = None
        self.deadline: asyncio.TimerHandle | None = None

    def stop_timers(self) -> None:
        for timer in (self.timer, self.deadline):
            if timer is not None:
                timer.cancel()


class _Uploaded(NamedTuple):
    key: str
    size: int
    places: list[tuple[Part, int]]
    """The parts and their positions in the object."""


class Writer:
    """Used in the thread of the event loop, inside a running loop. `clock` is the time of day in milliseconds;
    `unique` gives a different value each time, to all brokers."""

    def __init__(
        self,
        objects: ObjectStore,
        order: Order,
        broker_id: int,
        settings: WriterSettings,
        *,
        clock: Callable[[], TimestampMs],
        unique: Callable[[], UUID],
    ) -> None:
        self._objects = objects
        self._order = order
        self._broker_id = broker_id
        self._settings = settings
        self._clock = clock
        self._unique = unique
        self._gathered: deque[_Bundle] = deque()  # only the last one may be open
        self._shipping: list[_Bundle] = []  # in order; their uploads or commits are under way
        self._tasks: dict[asyncio.Task[None], None] = {}  # in order, so that simulations are repeatable
        self._is_closed = False
        self.buffered_bytes = 0
        """Size of everything that was appended and is not decided yet."""
        self._uploads = Trouble(logger, bad="uploads fail; trying again", good="uploads work again")
        self._commits = Trouble(logger, bad="commits fail; trying again", good="commits work again")

    @property
    def memory(self) -> MemoryUse:
        return MemoryUse(
            "unfinished appends", "cluster.buffer-bytes", self._settings.buffer_bytes, self.buffered_bytes
        )

    @property
    def is_busy(self) -> bool:
        """The producers keep the object store busy: large bundles are being uploaded side by side."""
        return 2 * self.buffered_bytes > self._settings.uploads * self._settings.bundle_bytes

    # Gathering

    def need_room(self, size: int) -> None:
        """Raises `BufferFull` if `size` more bytes are too many."""
        if self.buffered_bytes and self.buffered_bytes + size > self._settings.buffer_bytes:
            raise BufferFull(
                f"{self.buffered_bytes} bytes wait for the object store or the database, at most "
                f"{self._settings.buffer_bytes} may; try again"
            )

    def part_of(self, log: WrittenLog, next_offset: Offset) -> Part:
        """The part of the open bundle to which the log adds its next batches; call `added` when it did."""
        bundle = self._open_bundle()
        part = bundle.parts.get(log)
        if part is None or part.is_dropped:
            part = bundle.parts[log] = Part(log, next_offset)
        return part

    def _open_bundle(self) -> _Bundle:
        if self._gathered and self._gathered[-1].size < self._settings.bundle_bytes:
            return self._gathered[-1]
        if self._gathered:
            _seal(self._gathered[-1])
        bundle = _Bundle()
        self._gathered.append(bundle)
        return bundle

    def added(self, size: int) -> None:
        bundle = self._gathered[-1]
        self.buffered_bytes += size
        bundle.size += size
        if bundle.deadline is None:
            loop = asyncio.get_running_loop()
            bundle.deadline = loop.call_later(self._settings.append_timeout_ms / 1000, self._too_late, bundle)
            if self._settings.linger_ms:
                bundle.timer = loop.call_later(self._settings.linger_ms / 1000, self._due, bundle)
            else:
                bundle.timer = loop.call_soon(self._due, bundle)  # with everything of this iteration of the loop
        if bundle.size >= self._settings.bundle_bytes:
            self._due(bundle)

    def _due(self, bundle: _Bundle) -> None:
        bundle.is_due = True
        self._ship()

    def _too_late(self, bundle: _Bundle) -> None:
        for part in list(bundle.parts.values()):
            part.is_late = True
            part.fail(AppendTimedOut.new)

    def _ship(self) -> None:
        if self._is_closed:
            return
        while self._gathered and self._gathered[0].is_due and self._has_slot(self._gathered[0]):
            bundle = self._gathered.popleft()
            _seal(bundle)
            before = self._shipping[-1].decided if self._shipping else None
            self._shipping.append(bundle)
            task = asyncio.get_running_loop().create_task(self._deliver(bundle, before))
            self._tasks[task] = None
            task.add_done_callback(self._tasks.pop)

    def _has_slot(self, bundle: _Bundle) -> bool:
        if len(self._shipping) >= self._settings.uploads:
            return False
        return self._is_full(bundle) or all(map(self._is_full, self._shipping))

    def _is_full(self, bundle: _Bundle) -> bool:
        return bundle.size >= self._settings.bundle_bytes

    # Delivering

    async def _deliver(self, bundle: _Bundle, before: asyncio.Event | None) -> None:
        try:
            uploaded = await self._upload(bundle)
            if before is not None:
                await before.wait()
            if uploaded is not None:
                await self._commit(bundle, uploaded)
        except Exception as bug:  # its logs find out in the database what was committed
            context = {"message": "the delivery of a bundle failed unexpectedly", "exception": bug}
            asyncio.get_running_loop().call_exception_handler(context)
            for part in _alive(bundle):
                part.log.refused(part, StorageError(f"cannot append to {part.log.identity.name}: {bug!r}"))
        finally:
            self._decided(bundle)

    def _decided(self, bundle: _Bundle) -> None:
        bundle.stop_timers()
        bundle.decided.set()
        self._shipping.remove(bundle)
        self.buffered_bytes -= bundle.size
        self._ship()

    async def _upload(self, bundle: _Bundle) -> _Uploaded | None:
        """None: no log needs the bundle any more."""
        pause_s = _FIRST_PAUSE_S
        while parts := _alive(bundle):
            key = new_key(self._clock(), self._unique())
            bundle_writer = BundleWriter()
            places = [(part, _add(bundle_writer, part)) for part in parts]
            content, size = bundle_writer.finish()
            try:
                await self._objects.put(key, content)
            except TidelogError as error:
                self._uploads.failed(self, error)
            else:
                self._uploads.worked(self)
                return _Uploaded(key, size, places)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        return None

    async def _commit(self, bundle: _Bundle, uploaded: _Uploaded) -> None:
        key, size, places = uploaded
        bundle.said = [place for place in places if not place[0].is_dropped]
        log_parts = [_log_part(part, position) for part, position in bundle.said]
        now_ms, pause_s = self._clock(), _FIRST_PAUSE_S
        while not all(part.is_dropped for part, _ in bundle.said):
            try:
                counted = await self._order.commit(key, size, self._broker_id, log_parts, now_ms)
            except (OutcomeUnknown, StorageUnavailable) as error:
                self._commits.failed(self, error)
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
                continue
            self._commits.worked(self)
            for part, position in bundle.said:
                if not part.is_dropped:
                    _tell(part, key, position, is_committed=part.log.log_id in counted)
            return

    async def undecided_is_over(self, identity: PartitionIdentity) -> None:
        """Wait until no commit of an earlier log of this partition is repeated any more."""
        for bundle in list(self._shipping):
            if any(part.log.identity == identity for part, _ in bundle.said):
                await bundle.decided.wait()

    async def close(self, patience_s: float) -> None:
        """Deliver everything that was appended, but give up after `patience_s`."""
        for bundle in self._gathered:
            bundle.is_due = True
        self._ship()
        loop = asyncio.get_running_loop()
        until = loop.time() + patience_s
        while self._tasks and loop.time() < until:
            await asyncio.wait(self._tasks, timeout=until - loop.time())
        self._is_closed = True
        for bundle in self._gathered:
            bundle.stop_timers()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _seal(bundle: _Bundle) -> None:
    if not bundle.is_sealed:
        bundle.is_sealed = True
        for part in bundle.parts.values():
            part.log.seal(part)


def _alive(bundle: _Bundle) -> list[Part]:
    return [part for part in bundle.parts.values() if not part.is_dropped]


def _add(bundle: BundleWriter, part: Part) -> int:
    """Returns the position in the bundle."""
    identity = part.log.identity
    return bundle.add(
        identity.topic.topic_id,
        identity.number,
        part.log.leader_epoch,
        part.base_offset,
        part.end_offset - 1,
        part.max_timestamp,
        [view for _, view in part.views],
    ).position


def _log_part(part: Part, position: int) -> LogPart:
    return LogPart(
        part.log.log_id,
        part.log.leader_epoch,
        part.base_offset,
        part.end_offset - 1,
        position,
        part.size,
        part.max_timestamp,
        part.stable_offset,
        part.facts.packed(part.newest_ms),
        part.aborted,
    )


def _tell(part: Part, key: str, position: int, *, is_committed: bool) -> None:
    log = part.log
    if is_committed:
        log.committed(
            part, Extent(part.base_offset, part.end_offset - 1, key, position, part.size, part.max_timestamp)
        )
    else:
        log.refused(part, NotTheLeader(f"another broker leads {log.identity.name}, or its end is another"))
