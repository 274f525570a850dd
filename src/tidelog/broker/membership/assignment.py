"""Which broker gets what: the decision of the controller, a pure function of what it knows.

The rules, for shards and for partitions alike:

    must move       what has no owner, or an owner that may own nothing (it is down, or drains), is assigned at once
    wishes          what an operator wants elsewhere goes there, and stays there while the wish lasts
    balance         otherwise nothing moves while each broker has its fair share: the mean, rounded down or up, for
                    partitions with a tolerance of a twentieth of the mean. If a broker has more or less (one has
                    joined, topics were deleted), as few things move as are needed to make that true again
    few at a time   one step moves at most 8 shards, and at most a twentieth of all partitions or 16, for the sake of
                    balance. The next step comes a second later, so a broker that joins n others has its share after
                    about 20 / (n + 1) seconds, and clients never have to look up more than a few leaders at once

New owners are chosen by rendezvous hashing among the brokers that have room: each broker has a pseudo-random weight
for each thing, and the highest weight wins. The things of one kind (the partitions of a topic, the shards of groups)
are spread evenly as far as the totals allow.

The controller's own lease moves only if its owner drains, and last, because its owner makes all other moves.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from tidelog.metadata.registry import CONTROLLER, NOBODY, SHARD_LEASES

Partition: TypeAlias = tuple[bytes, int]
"""Topic id and number."""
Thing: TypeAlias = str | Partition
"""A lease or a partition."""
K = TypeVar("K", str, Partition)

MOST_AT_ONCE = 2_000
"""Partitions that one step assigns at most: their commits wait meanwhile. Without a pause before the next step."""
_SHARDS_BALANCED_AT_ONCE = 8
_FEW = 16
_SHARE_AT_ONCE = 20  # the reciprocal of the share of all partitions that a step moves for the sake of balance
_TOLERANCE = 20  # the reciprocal of the tolerated share of the mean


class Known(NamedTuple):
    """What the controller knows."""

    brokers: Collection[int]
    """Those that may own things."""
    draining: Collection[int]
    """Those that are up and must not."""
    leases: Mapping[str, int]
    leaders: Mapping[Partition, int]
    wishes: Mapping[Thing, int]


class Step(NamedTuple):
    """The next things to assign: (scope, broker) and (topic id, partition, broker)."""

    leases: list[tuple[str, int]]
    leaders: list[tuple[bytes, int, int]]
    is_urgent: bool
    """More has to be assigned at once: take the next step without a pause."""

    @property
    def is_empty(self) -> bool:
        return not self.leases and not self.leaders

    @property
    def owners(self) -> set[int]:
        """Those who get something."""
        return {broker for _, broker in self.leases} | {broker for _, _, broker in self.leaders}


def next_step(known: Known) -> Step:
    """Taken again and again, with the step applied to `known`, it ends with an empty step."""
    brokers = sorted(known.brokers)
    if not brokers:
        return Step([], [], is_urgent=False)
    shards = _Spread(brokers, {scope: known.leases.get(scope, NOBODY) for scope in SHARD_LEASES}, _kind_of_shard)
    shards.fulfil(known.wishes)
    shards.place(len(SHARD_LEASES))
    shards.balance(_share(len(SHARD_LEASES), len(brokers)), _SHARDS_BALANCED_AT_ONCE)
    partitions = _Spread(brokers, known.leaders, _topic_of)
    partitions.fulfil(known.wishes)
    is_urgent = partitions.place(MOST_AT_ONCE)
    if not is_urgent:
        count = len(known.leaders)
        partitions.balance(fair_share(count, len(brokers)), max(_FEW, count // _SHARE_AT_ONCE))
    leases = list(shards.moves.items())
    leaders = [(topic_id, number, broker) for (topic_id, number), broker in partitions.moves.items()]
    controller = _controller(known, brokers)
    if not leases and not leaders:
        return Step(controller, [], is_urgent=False)
    return Step(leases, leaders, is_urgent or bool(controller))


def _controller(known: Known, brokers: Sequence[int]) -> list[tuple[str, int]]:
    owner, wish = known.leases.get(CONTROLLER, NOBODY), known.wishes.get(CONTROLLER)
    if wish in known.brokers and wish is not None:
        return [(CONTROLLER, wish)] if wish != owner else []
    if owner not in known.draining:
        return []
    return [(CONTROLLER, max(brokers, key=lambda broker: _weight(_hash(CONTROLLER), broker)))]


class _Spread(Generic[K]):
    """Things, and how many of them each broker has; the moves that were decided so far."""

    def __init__(self, brokers: Sequence[int], owners: Mapping[K, int], kind_of: Callable[[K], Hashable]) -> None:
        self.moves: dict[K, int] = {}
        self._brokers = brokers
        self._owners: Mapping[K, int] = owners
        self._kind_of: Callable[[K], Hashable] = kind_of
        self._counts = dict.fromkeys(brokers, 0)
        self._stray: set[K] = set()
        self._wished: set[K] = set()
        self._kinds: dict[int, Counter[Hashable]] = {broker: Counter() for broker in brokers}
        for thing, owner in owners.items():
            if owner in self._counts:
                self._counts[owner] += 1
                self._kinds[owner][kind_of(thing)] += 1
            else:
                self._stray.add(thing)

    def fulfil(self, wishes: Mapping[Thing, int]) -> None:
        for thing, broker in wishes.items():
            if thing in self._owners and broker in self._counts:
                self._wished.add(thing)  # type: ignore[arg-type]
                if self._owners[thing] != broker:  # type: ignore[index]
                    self._move(thing, broker)  # type: ignore[arg-type]

    def place(self, most: int) -> bool:
        """Assign what must move. True if there is more of it."""
        low, high = _share(len(self._owners), len(self._brokers))
        of_kind = Counter(map(self._kind_of, self._owners)) if self._stray else Counter()
        for thing in heapq.nsmallest(most, self._stray):
            kind, hashed = self._kind_of(thing), _hash(thing)
            most_of_kind = _share(of_kind[kind], len(self._brokers))[1]
            counts, kinds = self._counts, self._kinds
            candidates = [broker for broker in self._brokers if counts[broker] < low]
            candidates = candidates or [broker for broker in self._brokers if counts[broker] < high]
            candidates = [broker for broker in candidates if kinds[broker][kind] < most_of_kind] or candidates
            self._move(thing, max(candidates, key=lambda broker: _weight(hashed, broker)))
        return bool(self._stray)

    def balance(self, share: tuple[int, int], most: int) -> None:
        exchanges = self._exchanges(*share, most)
        if not exchanges:
            return
        free: dict[int, dict[Hashable, list[K]]] = defaultdict(lambda: defaultdict(list))
        givers = {giver for giver, _ in exchanges}
        for thing, owner in self._owners.items():
            if owner in givers and thing not in self._wished and thing not in self.moves:
                free[owner][self._kind_of(thing)].append(thing)
        for (giver, taker), count in exchanges.items():
            self._exchange(giver, taker, count, free[giver])

    def _exchanges(self, low: int, high: int, most: int) -> Counter[tuple[int, int]]:
        """How many things go from whom to whom: always from the one with most to the one with fewest."""
        counts = self._counts
        needed = max(
            sum(count - high for count in counts.values() if count > high),
            sum(low - count for count in counts.values() if count < low),
        )
        free = dict(counts)  # what each broker can give
        for thing in self._wished | self.moves.keys():
            free[self.moves.get(thing, self._owners[thing])] -= 1
        givers = [(-count, broker) for broker, count in counts.items() if free[broker]]
        takers = [(count, broker) for broker, count in counts.items()]
        heapq.heapify(givers)
        heapq.heapify(takers)
        found: Counter[tuple[int, int]] = Counter()
        while needed and givers and found.total() < most:
            has, giver = heapq.heappop(givers)
            had, taker = heapq.heappop(takers)
            if -has - had < 2:
                break
            needed -= 1
            found[giver, taker] += 1
            free[giver] -= 1
            if free[giver]:
                heapq.heappush(givers, (has + 1, giver))
            heapq.heappush(takers, (had + 1, taker))
        return found

    def _exchange(self, giver: int, taker: int, count: int, free: dict[Hashable, list[K]]) -> None:
        """Move things of those kinds of which the giver has the most more than the taker."""
        gives, takes = self._kinds[giver], self._kinds[taker]
        kinds: list[tuple[int, Any]] = [(takes[kind] - gives[kind], kind) for kind in free]
        heapq.heapify(kinds)
        touched = set()
        for _ in range(count):
            difference, kind = heapq.heappop(kinds)
            if kind not in touched:
                touched.add(kind)
                free[kind].sort(key=lambda thing: (_weight(_hash(thing), taker), thing))
            self._move(free[kind].pop(), taker)
            if free[kind]:
                heapq.heappush(kinds, (difference + 2, kind))
            else:
                del free[kind]

    def _move(self, thing: K, broker: int) -> None:
        kind = self._kind_of(thing)
        owner = self._owners[thing]
        if owner in self._counts:
            self._counts[owner] -= 1
            self._kinds[owner][kind] -= 1
        self._counts[broker] += 1
        self._kinds[broker][kind] += 1
        self._stray.discard(thing)
        self.moves[thing] = broker


def fair_share(partitions: int, brokers: int) -> tuple[int, int]:
    """The least and the most partitions that a broker has without being given more or relieved of some."""
    low, high = _share(partitions, brokers)
    return low - low // _TOLERANCE, high + low // _TOLERANCE


def _share(things: int, brokers: int) -> tuple[int, int]:
    return things // brokers, -(-things // brokers)


def _kind_of_shard(scope: str) -> str:
    return scope.partition("/")[0]


def _topic_of(partition: Partition) -> bytes:
    return partition[0]


_MASK = (1 << 64) - 1


def _hash(thing: Thing) -> int:
    named = thing.encode() if isinstance(thing, str) else thing[0] + thing[1].to_bytes(4, "big")
    return int.from_bytes(blake2b(named, digest_size=8).digest(), "big")


def _weight(hashed: int, broker: int) -> int:
    """Pseudo-random, by the finalizer of splitmix64."""
    mixed = (hashed ^ (broker + 1) * 0x9E3779B97F4A7C15) & _MASK
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
    return mixed ^ mixed >> 31
