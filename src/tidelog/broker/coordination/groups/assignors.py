"""Server-side assignors of the consumer protocol: they compute which member should own which partition.

    uniform   the same number of partitions for every member, plus or minus one, with the fewest moves (default)
    range     each topic in contiguous ranges over its subscribers, in the order of their ids, so that topics with the
              same number of partitions and subscribers are co-partitioned; a member that joins or leaves causes many
              moves

Both assign every partition of a subscribed topic to exactly one of its subscribers, and are deterministic: the same
group gets the same assignment. Racks are ignored.
"""

from collections.abc import Callable, Mapping, Set
from heapq import heapify, heapreplace
from typing import NamedTuple, TypeAlias

Partition: TypeAlias = tuple[bytes, int]  # topic id, partition
Target: TypeAlias = dict[str, frozenset[Partition]]  # member id -> what it should own


class Subscriber(NamedTuple):
    instance_id: str | None
    topic_ids: frozenset[bytes]


Assignor: TypeAlias = Callable[
    [Mapping[str, Subscriber], Mapping[bytes, int], Mapping[str, Set[Partition]]],
    Target,
]


def assign_by_range(
    subscribers: Mapping[str, Subscriber],
    partition_counts: Mapping[bytes, int],
    _current: Mapping[str, Set[Partition]],
) -> Target:
    shares: dict[str, set[Partition]] = {member_id: set() for member_id in subscribers}
    for topic_id, members in _by_topic(subscribers, partition_counts).items():
        members.sort(key=lambda member_id: (subscribers[member_id].instance_id or member_id, member_id))
        each, extra = divmod(partition_counts[topic_id], len(members))
        first = 0
        for index, member_id in enumerate(members):
            end = first + each + (index < extra)
            shares[member_id].update((topic_id, partition) for partition in range(first, end))
            first = end
    return {member_id: frozenset(share) for member_id, share in shares.items()}


def assign_uniformly(
    subscribers: Mapping[str, Subscriber],
    partition_counts: Mapping[bytes, int],
    current: Mapping[str, Set[Partition]],
) -> Target:
    # Whole-set operations wherever possible: a group of a thousand members is reassigned each time one joins.
    within = {
        topic_ids: frozenset(
            (topic_id, partition) for topic_id in topic_ids for partition in range(partition_counts.get(topic_id, 0))
        )
        for topic_ids in {subscriber.topic_ids for subscriber in subscribers.values()}
    }
    target: Target = {
        member_id: within[subscriber.topic_ids].intersection(current.get(member_id, ()))
        for member_id, subscriber in subscribers.items()
    }
    free = frozenset().union(*within.values()).difference(*target.values())
    if len(within) <= 1:
        _level_alike(target, sorted(free))
        return target
    shares = {member_id: set(share) for member_id, share in target.items()}
    by_topic = _by_topic(subscribers, partition_counts)
    _hand_out(shares, by_topic, free)
    _level(shares, by_topic, current)
    return {member_id: frozenset(share) for member_id, share in shares.items()}


ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniformly, "range": assign_by_range}


def _by_topic(subscribers: Mapping[str, Subscriber], partition_counts: Mapping[bytes, int]) -> dict[bytes, list[str]]:
    """The subscribers of each topic that exists."""
    by_topic: dict[bytes, list[str]] = {}
    for member_id in sorted(subscribers):
        for topic_id in subscribers[member_id].topic_ids:
            if topic_id in partition_counts:
                by_topic.setdefault(topic_id, []).append(member_id)
    return by_topic


def _level_alike(target: Target, free: list[Partition]) -> None:
    """For members with the same subscription: take partitions from members that have too many, and give them to
    members that have too few. The remainder stays with the members that have most, to avoid needless moves."""
    if not target:
        return
    least, extra = divmod(len(free) + sum(map(len, target.values())), len(target))
    by_size = sorted(target, key=lambda member_id: (-len(target[member_id]), member_id))
    for rank, member_id in enumerate(by_size):
        share, limit = target[member_id], least + (rank < extra)
        if len(share) > limit:
            kept = sorted(share)
            target[member_id] = frozenset(kept[:limit])
            free += kept[limit:]
    at = 0
    for rank, member_id in enumerate(by_size):
        share, limit = target[member_id], least + (rank < extra)
        if len(share) < limit:
            end = at + limit - len(share)
            target[member_id] = share.union(free[at:end])
            at = end


def _hand_out(shares: dict[str, set[Partition]], by_topic: dict[bytes, list[str]], free: Set[Partition]) -> None:
    """Assigns every free partition to its least loaded subscriber; topics with the fewest subscribers come first."""
    free_of: dict[bytes, list[Partition]] = {}
    for partition in sorted(free):
        free_of.setdefault(partition[0], []).append(partition)
    for topic_id in sorted(free_of, key=lambda topic_id: (len(by_topic[topic_id]), topic_id)):
        loads = [(len(shares[member_id]), member_id) for member_id in by_topic[topic_id]]
        heapify(loads)
        for partition in free_of[topic_id]:
            load, member_id = loads[0]
            shares[member_id].add(partition)
            heapreplace(loads, (load + 1, member_id))


def _level(
    shares: dict[str, set[Partition]], by_topic: dict[bytes, list[str]], current: Mapping[str, Set[Partition]]
) -> None:
    """Moves partitions from a subscriber to one with at least two fewer, until there is no such pair. It terminates,
    because each move reduces the sum of the squares of the loads."""
    moved = True
    while moved:
        moved = False
        for topic_id, members in sorted(by_topic.items()):
            held = {
                member_id: [partition for partition in shares[member_id] if partition[0] == topic_id]
                for member_id in members
            }
            while True:
                giver = max((m for m in members if held[m]), key=lambda m: (len(shares[m]), m), default=None)
                taker = min(members, key=lambda m: (len(shares[m]), m))
                if giver is None or len(shares[giver]) - len(shares[taker]) < 2:
                    break
                settled = current.get(giver, frozenset())
                partition = min(held[giver], key=lambda partition: (partition in settled, partition))
                held[giver].remove(partition)
                held[taker].append(partition)
                shares[giver].remove(partition)
                shares[taker].add(partition)
                moved = True
