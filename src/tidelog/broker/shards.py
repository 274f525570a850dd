"""`CoordinatorShards`: what the groups and the transactions of a broker in a cluster have in common.

Ids belong to shards (`metadata.store.shard_of`), and a broker coordinates those of the shards whose leases it has.
Each shard has a coordinator and a fence of its own. Requests go to the shard of their id; one that names many ids is
split, and its answers are put together again. What is limited is limited for the broker as a whole.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from tidelog.broker.coordination.bounds import Bound
from tidelog.broker.topics import Topic
from tidelog.model import shard_of
from tidelog.promise import Promise, after_all


class _Shard(Protocol):
    """`Groups` or `Transactions`."""

    @property
    def bounds(self) -> Iterable[Bound]: ...

    def ask(self, request: Any) -> Any: ...  # noqa: ANN401

    def topic_created(self, topic: Topic, /) -> None: ...

    def topic_changed(self, before: Topic, after: Topic, /) -> None: ...

    def topic_deleted(self, topic: Topic, /) -> None: ...


S = TypeVar("S", bound=_Shard)


class CoordinatorShards(Generic[S]):
    """Listens to topics. Belongs to the running event loop."""

    def __init__(self, bounds: Iterable[Bound]) -> None:
        """`bounds` have the limits of all shards together."""
        self._bounds = list(bounds)
        self._shards: dict[int, S] = {}
        self._loading: set[int] = set()

    # The shards of this broker

    def expect(self, number: int) -> None:
        """The shard belongs to this broker, and is being loaded."""
        self._loading.add(number)

    def add(self, number: int, shard: S) -> None:
        self._loading.discard(number)
        self._shards[number] = shard
        for all_, its in zip(self._bounds, shard.bounds, strict=True):
            all_.share(its)

    def remove(self, number: int) -> S | None:
        """The shard belongs to another broker."""
        self._loading.discard(number)
        shard = self._shards.pop(number, None)
        if shard is not None:
            for all_, its in zip(self._bounds, shard.bounds, strict=True):
                all_.part(its)
        return shard

    def has(self, number: int) -> bool:
        """True if the shard is loaded."""
        return number in self._shards

    def __iter__(self) -> Iterator[S]:
        return iter(list(self._shards.values()))

    @property
    def is_loading(self) -> bool:
        return bool(self._loading)

    @property
    def bounds(self) -> Sequence[Bound]:
        return self._bounds

    def _shard(self, id_: str) -> S | None:
        return self._shards.get(shard_of(id_))

    def _is_loading(self, id_: str) -> bool:
        return shard_of(id_) in self._loading

    # Requests that name many ids

    def _each(
        self,
        ids: Sequence[str],
        ask: Callable[[str, list[int]], Any],
        entries_of: Callable[[Any], Sequence[Any]],
        make: Callable[[tuple[Any, ...]], Any],
    ) -> Any:  # noqa: ANN401  (a reply, or a promise of one)
        """The reply to a request that names these ids. `ask` is called for each shard, with one of its ids and the
        positions of all of them, and gives its answer; `make` makes the reply from the entries of the answers, in the
        order of the ids."""
        positions: dict[int, list[int]] = {}
        for position, id_ in enumerate(ids):
            positions.setdefault(shard_of(id_), []).append(position)
        entries: dict[int, Any] = {}
        waiting: list[tuple[Promise[Any], Any]] = []

        def answered(those: list[int], reply: Any, error: Exception | None) -> None:  # noqa: ANN401
            if error is not None:
                raise error
            entries.update(zip(those, entries_of(reply), strict=True))

        def together() -> Any:  # noqa: ANN401
            return make(tuple(entries[position] for position in range(len(ids))))

        for those in positions.values():
            answer = ask(ids[those[0]], those)
            if isinstance(answer, Promise):
                waiting.append((answer, partial(answered, those)))
            else:
                answered(those, answer, None)
        return after_all(waiting, together) if waiting else together()

    # As a listener to topics

    def topic_created(self, topic: Topic) -> None:
        for shard in self:
            shard.topic_created(topic)

    def topic_changed(self, before: Topic, after: Topic) -> None:
        for shard in self:
            shard.topic_changed(before, after)

    def topic_deleted(self, topic: Topic) -> None:
        for shard in self:
            shard.topic_deleted(topic)
