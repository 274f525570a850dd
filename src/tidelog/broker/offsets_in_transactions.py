"""Offsets that transactions commit, if the group and the transaction have different coordinators.

    G   the coordinator of the group: the client sends it TxnOffsetCommit, and it answers OffsetFetch
    T   the coordinator of the transaction: it stores the offsets with the transaction, and commits them in the write
        that decides its end

    client ── TxnOffsetCommit ──► G: checks the member and marks the offsets as unstable
                                  G ── StoreTransactionOffsets ──► T: stores them
                                  G: looks into the store, and confirms that it is still the coordinator
    client ── EndTxn ──► T: decides, in one write with the offsets
                         T ── TransactionEnded ──► G: looks into the store, and confirms that it is still the
                                                   coordinator. T repeats this until it is answered

What makes this safe:

*The store decides, not the messages.* "Look" means: read which offsets of the group the transaction still has. If
some are gone, the transaction has ended; so read the group's committed offsets after that. Only then are they no
longer unstable. A message that comes late, twice, or from a coordinator that was replaced makes G look once more,
which changes nothing. G reads and writes over one connection, in order; so a look neither misses nor repeats one of
its own commits.

*Nobody is told that an offset is stable while it is in a transaction.* G marks it in the same step in which it checks
the member. So a member that is assigned the partition after that check, and asks for the offset, waits for the end.

*Another G knows as much.* A broker that becomes the coordinator reads the offsets in transactions first, and the
committed ones after that. What it read too early cannot be lost: the former G confirms, after T has stored the
offsets or decided, that no other broker has taken over; if one has, the client, or T, asks that one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Any, TypeAlias

import structlog

from tidelog.broker.coordination.groups import GroupCoordinator
from tidelog.broker.coordination.groups.pending import PendingOffsets, Place
from tidelog.broker.coordination.transactions.errors import CoordinatorNotAvailable, NotCoordinator
from tidelog.broker.coordination.transactions.messages import CommitOffsets, CommitOffsetsReply
from tidelog.errors import TidelogError
from tidelog.metadata.rows import OffsetRow, TransactionOffsetRow
from tidelog.metadata.store import Key, MetadataStore
from tidelog.promise import Promise, after_all

LOOK_AGAIN_S = 1.0
MOST_TOPICS = 100  # that are read one by one; for more, all offsets of the group are read at once

log = structlog.get_logger("tidelog.groups")

AskTransaction: TypeAlias = Callable[[CommitOffsets], Awaitable[CommitOffsetsReply]]
"""Raises a TidelogError if there was no answer."""
Confirm: TypeAlias = Callable[[Callable[[int], None]], None]
"""Calls back with 0 if this broker is still the coordinator, or with an error code."""


class OffsetsInTransactions:
    """The part of G. Belongs to the running event loop."""

    def __init__(
        self,
        coordinator: GroupCoordinator,
        pending: PendingOffsets,
        store: MetadataStore,
        confirm: Confirm,
        reloaded: Callable[[Collection[str]], None],
    ) -> None:
        """`reloaded` is called with the topics whose offsets were read again."""
        self._coordinator = coordinator
        self._pending = pending
        self._store = store
        self._confirm = confirm
        self._reloaded = reloaded
        self._is_closed = False
        self._asking: set[asyncio.Task[None]] = set()

    def close(self) -> None:
        """Another broker is the coordinator of the groups, or this one stops."""
        self._is_closed = True

    # TxnOffsetCommit

    def commit(self, question: CommitOffsets, ask: AskTransaction) -> Promise[CommitOffsetsReply]:
        """The member was checked in this iteration of the event loop. The reply says whether the offsets are in the
        transaction; the error codes 14 to 16 leave that open."""
        reply: Promise[CommitOffsetsReply] = Promise()
        places = frozenset((row.topic, row.partition) for row in question.offsets)
        self._pending.asked(question.group_id, places)
        task = asyncio.get_running_loop().create_task(self._commit(question, places, ask, reply))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)
        return reply

    async def _commit(
        self,
        question: CommitOffsets,
        places: frozenset[Place],
        ask: AskTransaction,
        reply: Promise[CommitOffsetsReply],
    ) -> None:
        answer = CommitOffsetsReply(CoordinatorNotAvailable.kafka_code)
        try:
            answer = await ask(question)
        except TidelogError as error:
            log.info(
                "the coordinator of a transaction did not take offsets; the client has to retry", reason=str(error)
            )
        finally:  # also after a bug: else the offsets would be unstable for ever
            self._look_for(question, places, partial(self._looked, reply, answer))

    def _looked(
        self, reply: Promise[CommitOffsetsReply], answer: CommitOffsetsReply, error: Exception | None
    ) -> None:
        if error is not None:
            reply.settle(CommitOffsetsReply(CoordinatorNotAvailable.kafka_code))
        elif answer.error_code:
            reply.settle(answer)
        else:
            self._confirm(lambda code: reply.settle(CommitOffsetsReply(code)))

    def _look_for(
        self, question: CommitOffsets, places: frozenset[Place], told: Callable[[Exception | None], None]
    ) -> None:
        """Look, and remove the marks of these places when that has succeeded. `told` is called after the first
        attempt."""

        def looked(error: Exception | None) -> None:
            if error is None:
                self._pending.answered(question.group_id, places)
            elif not self._is_closed:
                again = partial(self._look_for, question, places, _nobody)
                asyncio.get_running_loop().call_later(LOOK_AGAIN_S, again)
            told(error)

        self._look(question.transactional_id, question.group_id, (), places, looked)

    # The end of a transaction

    def ended(self, transactional_id: str, group: str, topics: Collection[str] | None) -> Promise[int]:
        """A transaction that had offsets of these topics, or of any, has ended. An error code: tell it again."""
        code: Promise[int] = Promise()

        def looked(error: Exception | None) -> None:
            if error is not None:
                code.settle(CoordinatorNotAvailable.kafka_code)
            else:
                self._confirm(code.settle)

        self._look(transactional_id, group, topics, frozenset(), looked)
        return code

    # Looking

    def _look(
        self,
        transactional_id: str,
        group: str,
        topics: Collection[str] | None,
        asked: frozenset[Place],
        looked: Callable[[Exception | None], None],
    ) -> None:
        """Read what the transaction has of the group, and what is committed of these topics (None: of all) and of
        those of which the transaction had something before, or was `asked` to take it."""

        def reread(rows: list[TransactionOffsetRow] | None, error: Exception | None) -> None:
            if rows is None or self._is_closed:
                looked(error or NotCoordinator("another broker is the coordinator"))
                return
            left = frozenset((row.topic, row.partition) for row in rows)
            gone = (self._pending.of(transactional_id, group) | asked) - left
            scopes: list[Key] = [(group,)]
            if topics is not None:
                named = {*topics, *(topic for topic, _ in gone)}
                if len(named) <= MOST_TOPICS:
                    scopes = [(group, topic) for topic in sorted(named)]

            def finish(_: object, error: Exception | None) -> None:
                if error is None and not self._is_closed:
                    self._pending.found(transactional_id, group, left)
                looked(error)

            if scopes:
                self._reload(scopes).when_done(finish)
            else:
                finish(None, None)

        self._store.load(TransactionOffsetRow, (transactional_id, group)).when_done(reread)

    def _reload(self, scopes: list[Key]) -> Promise[None]:
        """Each answer is applied when it comes, because those to later writes come after it."""

        def apply(scope: Key, rows: list[OffsetRow] | None, error: Exception | None) -> None:
            if rows is None or self._is_closed:
                raise error or NotCoordinator("another broker is the coordinator")
            group, *topic = map(str, scope)
            self._coordinator.offsets_found(group, topic[0] if topic else None, rows)
            self._reloaded({row.topic for row in rows})

        waiting: list[tuple[Promise[list[OffsetRow]], Any]] = [
            (self._store.load(OffsetRow, scope), partial(apply, scope)) for scope in scopes
        ]
        return after_all(waiting, lambda: None)


def _nobody(_: Exception | None) -> None:
    """Nobody waits for the outcome."""
