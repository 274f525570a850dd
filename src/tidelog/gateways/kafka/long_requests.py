"""Requests with long lists, handled in steps that let other requests run.

A request may name every partition of a broker, and a reply may list every group. Handled in one go, such a request
would block the event loop, and with it all clients. So a request with many entries is cut into pieces, each a request
of the same API with a part of the lists. The API's handler answers each piece as it answers any request, and the
replies are joined. After `SLICE_SECONDS` a long request yields to others; all long requests of a broker share one
slice in an iteration of the event loop.

`PLANS` has for each API the paths of its lists in the request and in the reply. APIs that are not in it have lists
whose entries depend on each other, or handlers that take steps of their own (`in_batches`, `in_slices`). APIs whose
reply is long though the request is short give their reply in parts: `Parts`.

The pieces keep the order of the request, and the connection handles no other request meanwhile: a producer's batches
are appended in the order in which they were sent. Replies are encoded piece by piece, so that only the bytes of a
large reply are in memory, and no more than the limit. A repeated entry whose answer can only be the same, such as a
group to describe, is answered once.
"""

import asyncio
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Hashable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from inspect import iscoroutine
from itertools import chain
from typing import Any, TypeAlias, TypeVar

from tidelog.errors import TidelogError
from tidelog.wire.apis import Api
from tidelog.wire.primitives import Struct
from tidelog.wire.writing import InPieces

SLICE_SECONDS = 0.01
FEW = 8  # entries: a request with no more than this is never long
_MANY = 500
_PIECE = 100
_MOST_WAITING = 20  # pieces that wait together, for instance for the same sync
_AT_ONCE = 100
_LARGE_BYTES = 4 << 20  # of a request: its records must be validated and written
_PIECE_BYTES = 1 << 20

T = TypeVar("T")
U = TypeVar("U")
Reply: TypeAlias = Struct | None
Answer: TypeAlias = Callable[[Struct], Any]  # the handler, for one piece
Fail: TypeAlias = Callable[[Struct, Exception], Struct]  # returns the reply to a piece that failed, or raises


class ReplyTooLarge(TidelogError):
    """The reply would be larger than clients accept."""

    kafka_code = 42


@dataclass(frozen=True, slots=True)
class Plan:
    """The paths of a request's lists and of the reply's lists that answer them, outermost first."""

    asked: tuple[str, ...]
    answered: tuple[str, ...]
    key: Callable[[Any], Hashable] | None = None
    """Entries of the outermost list with equal keys are answered once; None: every entry is answered."""
    expands: bool = False
    """The answer to one entry may itself be a long list."""
    is_hot: bool = False
    """The generated writer of the reply writes a list as a whole; the reply is not encoded piece by piece."""

    @property
    def least(self) -> int:
        return FEW if self.expands else _MANY

    def piece(self, entries: int, size_bytes: int) -> int:
        """Number of innermost entries of a piece, for a request with this number of entries and this size."""
        return 1 if self.expands else max(1, min(_PIECE, entries * _PIECE_BYTES // max(size_bytes, 1)))


def _plan(asked: str, answered: str, key: Callable[[Any], Hashable] | None = None, *, expands: bool = False) -> Plan:
    return Plan(tuple(asked.split(".")), tuple(answered.split(".")), key, expands)


def _itself(entry: Hashable) -> Hashable:
    return entry


def _topic(entry: Any) -> Hashable:  # noqa: ANN401  (of a Metadata request)
    return entry.name, entry.topic_id


def _resource(entry: Any) -> Hashable:  # noqa: ANN401  (of a DescribeConfigs request)
    keys = entry.configuration_keys
    return entry.resource_type, entry.resource_name, None if keys is None else tuple(keys)


def _group(entry: Any) -> Hashable:  # noqa: ANN401  (of an OffsetFetch request)
    return (entry.group_id, entry.member_id, entry.member_epoch) if entry.topics is None else id(entry)


# API key -> (first version, plan), ...
PLANS: dict[int, tuple[tuple[int, Plan], ...]] = {
    0: ((0, Plan(("topic_data", "partition_data"), ("responses", "partition_responses"), is_hot=True)),),
    2: ((0, _plan("topics.partitions", "topics.partitions")),),
    3: ((0, _plan("topics", "topics", _topic, expands=True)),),
    8: ((0, _plan("topics.partitions", "topics.partitions")),),
    9: (
        (0, _plan("topics.partition_indexes", "topics.partitions")),
        (8, _plan("groups.topics.partition_indexes", "groups.topics.partitions", _group, expands=True)),
    ),
    10: ((4, _plan("coordinator_keys", "coordinators")),),
    13: ((3, _plan("members", "members")),),
    15: ((0, _plan("groups", "groups", _itself, expands=True)),),
    21: ((0, _plan("topics.partitions", "topics.partitions")),),
    23: ((0, _plan("topics.partitions", "topics.partitions")),),
    24: ((4, _plan("transactions", "results_by_transaction", expands=True)),),
    27: ((0, _plan("markers.topics.partition_indexes", "markers.topics.partitions")),),
    28: ((0, _plan("topics.partitions", "topics.partitions")),),
    32: ((0, _plan("resources", "results", _resource, expands=True)),),
    33: ((0, _plan("resources", "responses", expands=True)),),
    42: ((0, _plan("groups_names", "results")),),
    43: ((0, _plan("topic_partitions.partitions", "replica_election_results.partition_result")),),
    44: ((0, _plan("resources", "responses", expands=True)),),
    45: ((0, _plan("topics.partitions", "responses.partitions")),),
    47: ((0, _plan("topics.partitions", "topics.partitions")),),
    55: ((0, _plan("topics.partitions", "topics.partitions")),),
    61: ((0, _plan("topics.partition_indexes", "topics.partitions", expands=True)),),
    65: ((0, _plan("transactional_ids", "transaction_states", _itself, expands=True)),),
    69: ((0, _plan("group_ids", "groups", _itself, expands=True)),),
    77: ((0, _plan("group_ids", "groups", _itself)),),
    89: ((0, _plan("group_ids", "groups", _itself)),),
    90: ((0, _plan("groups", "groups")),),
    10001: ((0, _plan("topics", "topics", _itself, expands=True)),),
}


def plan_of(api: Api, version: int) -> Plan | None:
    found = None
    for since, plan in PLANS.get(api.key, ()):
        if version >= since:
            found = plan
    return found


def is_long(api: Api, version: int, entries: int, size_bytes: int) -> bool:
    """Whether to handle a request with more than `FEW` entries in steps."""
    plan = plan_of(api, version)
    if plan is None:
        return entries > _MANY
    return entries > plan.least or size_bytes > _LARGE_BYTES


class Parts:
    """A long reply in parts, each of them a reply with a part of the list. `field` is the path of that list."""

    __slots__ = ("field", "replies")

    def __init__(self, field: str, replies: Iterable[Struct] | AsyncIterable[Struct]) -> None:
        self.field = tuple(field.split("."))
        self.replies = replies

    def followed_by(self, last: Reply) -> "Parts":
        """The same parts and one more."""
        replies = self.replies

        async def all_later(before: AsyncIterable[Struct]) -> AsyncIterator[Struct]:
            async for reply in before:
                yield reply
            if last is not None:
                yield last

        more = [] if last is None else [last]
        together = all_later(replies) if isinstance(replies, AsyncIterable) else chain(replies, more)
        return Parts(".".join(self.field), together)


async def in_batches(items: Sequence[T], work: Callable[[T], Awaitable[U]]) -> AsyncIterator[list[U]]:
    """The results of `work` for each item. Up to `_AT_ONCE` items run concurrently, so that they share commits and
    syncs."""
    for first in range(0, max(1, len(items)), _AT_ONCE):
        if first:
            await asyncio.sleep(0)
        yield await asyncio.gather(*map(work, items[first : first + _AT_ONCE]))


async def in_slices(entries: Iterable[T]) -> AsyncIterator[T]:
    """The entries one by one; yields to the event loop whenever a time slice is over."""
    began = time.perf_counter()
    for entry in entries:
        yield entry
        if time.perf_counter() - began > SLICE_SECONDS:
            await asyncio.sleep(0)
            began = time.perf_counter()


class LongRequest:
    """A request that is handled in steps. All connections of a broker share the lock `turns`."""

    def __init__(self, api: Api, version: int, turns: asyncio.Lock, max_reply_bytes: int) -> None:
        self._api = api
        self._version = version
        self._turns = turns
        self._max_reply_bytes = max_reply_bytes
        self._slice_began = 0.0
        self._has_turn = False

    async def answered(self, message: Struct, entries: int, size_bytes: int, answer: Answer, fail: Fail) -> Reply:
        """The whole reply, joined from the replies of `answer` to the pieces of the message, which has this number of
        entries and bytes."""
        plan = plan_of(self._api, self._version)
        try:
            await self._turn()
            if plan is None or getattr(message, plan.asked[0]) is None:
                given = answer(message)
                if isinstance(given, Parts):
                    return await self._joined_parts(given)
                if isinstance(given, Awaitable):
                    self._leave()
                    given = await given
                await self._turn()
                whole: Reply = given
                return whole
            piece = plan.piece(entries, size_bytes)
            return await self._joined_pieces(plan, piece, message, answer, fail)
        finally:
            self._leave()

    async def joined(self, parts: Parts) -> Reply:
        try:
            await self._turn()
            return await self._joined_parts(parts)
        finally:
            self._leave()

    async def _joined_parts(self, parts: Parts) -> Reply:
        joined = _Joined(self._api, self._version, parts.field, self._max_reply_bytes, is_hot=False)
        if isinstance(parts.replies, AsyncIterable):
            self._leave()
            async for part in parts.replies:
                await self._turn()
                joined.add(part, depth=len(parts.field) - 1)
                self._leave()
        else:
            for part in parts.replies:
                joined.add(part, depth=len(parts.field) - 1)
                await self._rest()
        return joined.whole()

    async def _joined_pieces(self, plan: Plan, size: int, message: Struct, answer: Answer, fail: Fail) -> Reply:
        joined = _Joined(self._api, self._version, plan.answered, self._max_reply_bytes, is_hot=plan.is_hot)
        waiting: list[tuple[Struct, Any, int]] = []  # in the order of the pieces
        entries = getattr(message, plan.asked[0])
        if plan.key is not None:
            different: dict[Hashable, Any] = {}
            for entry in entries:
                different.setdefault(plan.key(entry), entry)
            entries = list(different.values())
        for part, depth in _cut(entries, plan.asked[1:], size):
            piece = copy(message)
            setattr(piece, plan.asked[0], part)
            try:
                reply = answer(piece)
                if iscoroutine(reply):
                    self._leave()
                    reply = await reply
            except Exception as error:
                reply = fail(piece, error)
            if waiting or isinstance(reply, Awaitable):  # its work has begun already: pieces wait together
                waiting.append((piece, reply, depth))
            else:
                joined.add(reply, depth)
            if len(waiting) >= _MOST_WAITING:
                await self._collect(waiting, joined, fail)
            await self._rest()
        await self._collect(waiting, joined, fail)
        return joined.whole()

    async def _collect(self, waiting: list[tuple[Struct, Any, int]], joined: "_Joined", fail: Fail) -> None:
        for piece, reply, depth in waiting:
            if isinstance(reply, Awaitable):
                self._leave()
                try:
                    reply = await reply
                except Exception as error:
                    reply = fail(piece, error)
            joined.add(reply, depth)
            await self._rest()
        waiting.clear()

    async def _turn(self) -> None:
        if not self._has_turn:
            await asyncio.sleep(0)
            await self._turns.acquire()
            self._has_turn = True
            self._slice_began = time.perf_counter()

    def _leave(self) -> None:
        if self._has_turn:
            self._has_turn = False
            self._turns.release()

    async def _rest(self) -> None:
        """Between two steps: yield to other requests if the time slice is over."""
        if not self._has_turn or time.perf_counter() - self._slice_began > SLICE_SECONDS:
            self._leave()
            await self._turn()


def _cut(entries: Sequence[Any], inner: tuple[str, ...], size: int) -> Iterator[tuple[list[Any], int]]:
    """The entries in pieces of about `size` innermost entries, each with the depth of the lists at which it continues
    the entry of the piece before; 0: it begins with an entry of the outermost list."""
    piece: list[Any] = []
    room = size
    for entry in entries:
        weight = _weight(entry, inner)
        if weight > room and piece:
            yield piece, 0
            piece, room = [], size
        if weight > size and inner:
            for number, (part, depth) in enumerate(_cut(getattr(entry, inner[0]), inner[1:], size)):
                some = copy(entry)
                setattr(some, inner[0], part)
                yield [some], depth + 1 if number else 0
        else:
            piece.append(entry)
            room -= weight
    if piece or not entries:
        yield piece, 0


def _weight(entry: Any, inner: tuple[str, ...]) -> int:  # noqa: ANN401
    if not inner:
        return 1
    within = getattr(entry, inner[0]) or ()
    return max(1, len(within) if len(inner) == 1 else sum(_weight(each, inner[1:]) for each in within))


class _Joined:
    """Joins replies into one. The outermost list is encoded as it grows, where the codec supports that."""

    def __init__(self, api: Api, version: int, path: tuple[str, ...], max_bytes: int, *, is_hot: bool) -> None:
        self._codec = api.response
        self._version = version
        self._path = path
        self._max_bytes = max_bytes
        self._reply: Reply = None
        self._items: list[Any] = []
        self._encoded: InPieces[Any] | None = None if is_hot else InPieces()
        self._last: list[Any] = []  # the last entry, which the next piece may continue

    def add(self, reply: Reply, depth: int) -> None:
        """Append a reply; `depth`: at which depth of the lists it continues the last entry, see `_cut`."""
        if reply is None:
            return  # the client expects none
        items: list[Any] = getattr(reply, self._path[0]) or []
        if self._reply is None:
            self._reply = reply
            setattr(reply, self._path[0], self._items if self._encoded is None else self._encoded)
        elif getattr(reply, "error_code", 0) and not getattr(self._reply, "error_code", 0):
            self._reply.error_code = reply.error_code  # type: ignore[attr-defined]
        if depth and self._last and items:
            _extend(self._last[0], items[0], self._path[1:], depth)
            items = items[1:]
        if items:
            self._take(self._last + items[:-1])
            self._last = items[-1:]

    def _take(self, items: list[Any]) -> None:
        if self._encoded is None:
            self._items += items
            return
        self._encoded.add(items)
        self._codec.encode_into(bytearray(), self._reply, self._version)
        if self._encoded.size_bytes > self._max_bytes:
            raise ReplyTooLarge(
                f"the reply would have more than {self._max_bytes} bytes; split the request into smaller ones"
            )

    def whole(self) -> Reply:
        if self._reply is not None:
            self._take(self._last)
            if self._encoded is not None:
                self._encoded.is_whole = True
        return self._reply


def _extend(last: Any, more: Any, path: tuple[str, ...], depth: int) -> None:  # noqa: ANN401
    """Append the lists of `more` to those of `last`; `more` was cut from `last` at this depth."""
    known, added = getattr(last, path[0]), getattr(more, path[0])
    if depth > 1 and known and added:
        _extend(known[-1], added[0], path[1:], depth - 1)
        added = added[1:]
    known += added
