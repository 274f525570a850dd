"""`TransactionCoordinator`: requests and the time go in, replies, rows to store and markers to write come out.

How the shell drives it, on one thread:

    outcome = coordinator.handle(request, token, now_ms)     # or .tick(now_ms), .topics_deleted(names), .restore(...)
    if outcome.changes:
        try:
            await store.write(outcome.changes)
        except TidelogError:
            outcome = coordinator.failed(outcome, now_ms)
        else:
            coordinator.written(outcome)
    for ending in outcome.endings:
        append its markers; when they are durable: outcome = coordinator.completed(ending, now_ms), as above
        if that fails: outcome = coordinator.stuck(ending), and try again
    for token, reply in outcome.replies: send

What makes this exact:

*The decision is durable before the first marker.* PrepareCommit or PrepareAbort is stored in one write with the
commit or removal of the transaction's offsets. From then on the end is decided: a restarted broker finds the row and
writes the missing markers.

*Markers are written once.* A log knows whether a producer has an open transaction in it; if not, it gets no marker.
And no record of the producer's next transaction can be in any log before the row is Ongoing again, which is not
stored before all markers of the last transaction are durable. So a transaction that is open in the log is always the
one that the row describes.

*Replies contain only what is durable, and a failed write undoes nothing.* Memory is ahead of the store; changes are
in every outcome of their transaction until a write of them has returned (`coordination/ledger.py`). Requests whose
changes could not be stored are answered with COORDINATOR_NOT_AVAILABLE, which clients retry. A decided end stays
decided.

*Many transactions can be ended by one decision.* `DecideTransactions` prepares all of them, and records the number of
the batch of work, in one write: at no time are only some of them decided. A client that repeats the request, after
any crash, learns that the number is decided.

Requests that arrive while a transaction is being completed wait for that, instead of getting CONCURRENT_TRANSACTIONS
at once; they get it if the markers cannot be written now.

*Deadlines do not depend on the time of day.* `now_ms` is a clock that never jumps and starts anywhere. Deadlines use
it, and start again when the coordinator is restored. Timestamps that are stored or shown use the wall clock.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tidelog.broker.coordination.bounds import Bound
from tidelog.broker.coordination.groups.errors import InvalidRegularExpression
from tidelog.broker.coordination.groups.subscriptions import matcher
from tidelog.broker.coordination.ledger import Ledger, Stamp
from tidelog.broker.coordination.timers import Timer, Timers
from tidelog.broker.coordination.transactions.config import TransactionConfig
from tidelog.broker.coordination.transactions.errors import (
    ConcurrentTransactions,
    CoordinatorNotAvailable,
    InvalidProducerIdMapping,
    InvalidRequest,
    InvalidTransactionState,
    InvalidTransactionTimeout,
    NotAuthorized,
    NotCoordinator,
    PolicyViolation,
    ProducerFenced,
    TransactionalIdNotFound,
    TransactionError,
    UnsupportedVersion,
)
from tidelog.broker.coordination.transactions.messages import (
    NO_EPOCH,
    NO_ID,
    NOT_AVAILABLE,
    AddOffsets,
    AddOffsetsReply,
    AddPartitions,
    AddPartitionsReply,
    CommitOffsets,
    CommitOffsetsReply,
    DecideTransactions,
    DecideTransactionsReply,
    DescribeDecision,
    DescribeDecisionReply,
    DescribedTransaction,
    DescribeTransactions,
    DescribeTransactionsReply,
    EndTransaction,
    EndTransactionReply,
    InitProducerId,
    InitProducerIdReply,
    ListedTransaction,
    ListTransactions,
    ListTransactionsReply,
    Reply,
    Request,
)
from tidelog.broker.coordination.transactions.messages import refusal as refused
from tidelog.broker.coordination.transactions.transaction import (
    COMPLETE,
    ENTRY_BYTES,
    HIGHEST_EPOCH,
    LAST_EPOCH,
    NOT_STARTED,
    PREPARED,
    ROW,
    Ending,
    State,
    Transaction,
)
from tidelog.metadata.rows import DecisionRow, OffsetRow, TransactionOffsetRow, TransactionRow
from tidelog.metadata.store import Change, Delete, Put
from tidelog.model import TopicPartition

Token: TypeAlias = Hashable
WRITE_RETRY_MS = 1_000
SETTLE_MS = 1_000  # how long the row of a completed transaction may wait to be batched with others
LONGEST_PATTERN = 10_000
LONGEST_SCOPE = 4_096
DECISION_KEPT_MS = 90 * 24 * 3600 * 1000
_DECISION: Hashable = "decision"
_ID_BYTES = 1_500  # about what a transactional id takes in memory


@dataclass(slots=True)
class Outcome:
    """What to do: make `changes` durable, then begin `endings`, then send `replies`."""

    replies: list[tuple[Token, Reply]] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    endings: list[Ending] = field(default_factory=list)
    stamps: list[Stamp] = field(default_factory=list)

    @property
    def committed_offsets(self) -> list[Change]:
        """The changes that the group coordinator has to apply once they are durable."""
        return [change for change in self.changes if isinstance(change, Put) and isinstance(change.row, OffsetRow)]


@dataclass(slots=True)
class Decision:
    """The newest decision of a scope. `first` is one of the transactions that it ended."""

    number: int
    decided_ms: int
    first: str = ""
    is_durable: bool = True


class TransactionBounds:
    """The bounds of all transactions together. `news` has messages for the operator; the shell logs and removes
    them."""

    __slots__ = ("entries", "ids", "news")

    def __init__(self, config: TransactionConfig) -> None:
        self.news: list[str] = []
        self.ids = Bound(
            "tidelog.max.transactional.ids",
            "transactional ids",
            config.tidelog_max_transactional_ids,
            _ID_BYTES,
            self.news,
        )
        self.entries = Bound(
            "tidelog.max.transaction.entries",
            "partitions, groups and offsets in open transactions",
            config.tidelog_max_transaction_entries,
            ENTRY_BYTES,
            self.news,
        )

    def __iter__(self) -> Iterator[Bound]:
        return iter((self.ids, self.entries))


class _HeldError(Exception):
    """The request waits until the transaction is completed."""

    def __init__(self, transactional_id: str) -> None:
        super().__init__()
        self.transactional_id = transactional_id


class TransactionCoordinator:
    def __init__(
        self, config: TransactionConfig, new_producer_id: Callable[[], int | None], wall_ms: Callable[[], int]
    ) -> None:
        """`new_producer_id` returns an unused id, or None if none is reserved right now; `wall_ms` returns the time
        of day, for timestamps."""
        self._config = config
        self._new_producer_id = new_producer_id
        self._wall_ms = wall_ms
        self.bounds = TransactionBounds(config)
        self._transactions: dict[str, Transaction] = {}
        self._decisions: dict[str, Decision] = {}
        self._timers = Timers()
        self._settle_timer = Timer(self._settle)
        self._expiry_timer = Timer(self._expire)
        self._ledger = Ledger()
        self._removed: list[Change] = []
        self._replies: list[tuple[Token, Reply]] = []
        self._touched: dict[str, None] = {}  # ids whose changes are part of the outcome of this call
        self._held: dict[str, list[tuple[Request, Token]]] = {}
        self._pending_offsets: dict[tuple[str, str, int], int] = {}  # -> number of transactions that have it
        self._is_resigned = False
        self._handlers: dict[type[Request], Callable[[Any, int], Reply]] = {
            InitProducerId: self._init,
            AddPartitions: self._add_partitions,
            AddOffsets: self._add_offsets,
            CommitOffsets: self._commit_offsets,
            EndTransaction: self._end,
            ListTransactions: self._list,
            DecideTransactions: self._decide_together,
            DescribeDecision: self._find_decision,
        }

    # Called by the shell

    def handle(self, request: Request, token: Token, now_ms: int) -> Outcome:
        """Decides on one request. Refusals are replies; an exception is a bug."""
        if isinstance(request, DescribeTransactions):
            described = tuple(self._describe(id_) for id_ in request.transactional_ids)
            return Outcome([(token, DescribeTransactionsReply(described))])
        self._decide(request, token, now_ms)
        return self._outcome()

    def tick(self, now_ms: int) -> Outcome:
        """Does what is due: aborts transactions that exceed their timeout, removes expired ids, stores rows."""
        self._timers.run(now_ms)
        return self._outcome()

    def store_all(self) -> Outcome:
        """Stores all rows, including those that no request waits for. For stopping."""
        self._touched.update(dict.fromkeys(self._ledger.waiting()))
        return self._outcome()

    def next_deadline_ms(self) -> int | None:
        """When to call `tick` next; an earlier or later call does no harm."""
        return self._timers.next_deadline_ms()

    def written(self, outcome: Outcome) -> None:
        """The outcome's changes are durable: its markers may be written and its replies sent."""
        self._ledger.settle(outcome.stamps)
        for id_, row, _, change in outcome.stamps:
            transaction = self._transactions.get(id_)
            if row is _DECISION and isinstance(change, Put) and isinstance(change.row, DecisionRow):
                self._decisions[change.row.scope].is_durable = True
            elif row is ROW and transaction is not None:
                transaction.row_written(change)
            if transaction is not None:
                transaction.decided_with = ()
                if transaction.state in PREPARED and transaction.offsets and not self._ledger.is_marked(id_, ROW):
                    self._release_offsets(transaction)

    def failed(self, outcome: Outcome, now_ms: int) -> Outcome:
        """The changes were not stored. Returns the replies to send instead."""
        instead = Outcome([(token, reply.failed(NOT_AVAILABLE)) for token, reply in outcome.replies])
        self._ledger.failed(outcome.stamps)
        for id_ in dict.fromkeys(stamp.owner for stamp in outcome.stamps):
            transaction = self._transactions.get(id_)
            if transaction is not None and transaction.ending in outcome.endings:
                transaction.is_ending_asked = False
            instead.replies += self._give_up_held(id_, CoordinatorNotAvailable.kafka_code)
        self._timers.set(self._settle_timer, now_ms + WRITE_RETRY_MS)
        return instead

    def completed(self, ending: Ending, now_ms: int) -> Outcome:
        """All markers are durable: the id is ready for its next transaction."""
        transaction = self._transactions.get(ending.transactional_id)
        if transaction is None or transaction.ending is not ending:
            return Outcome()
        transaction.complete(self._wall_ms())
        self._count(transaction)
        self._store_soon(now_ms)
        for request, token in self._held.pop(ending.transactional_id, ()):
            self._decide(request, token, now_ms)
        return self._outcome()

    def stuck(self, ending: Ending) -> Outcome:
        """Markers cannot be written at the moment. Requests that wait for them are told to retry."""
        transaction = self._transactions.get(ending.transactional_id)
        if transaction is None or transaction.ending is not ending:
            return Outcome()
        transaction.is_stuck = True
        return Outcome(self._give_up_held(ending.transactional_id, ConcurrentTransactions.kafka_code))

    def resign(self) -> list[tuple[Token, Reply]]:
        """Another broker owns the transactions: the shell sends no more requests. Returns the replies to waiting
        requests."""
        self._is_resigned = True
        return [reply for id_ in list(self._held) for reply in self._give_up_held(id_, NotCoordinator.kafka_code)]

    def restore(
        self,
        rows: Iterable[TransactionRow],
        offsets: Iterable[TransactionOffsetRow],
        decisions: Iterable[DecisionRow],
        now_ms: int,
    ) -> Outcome:
        """Continues from the rows of the store. The outcome has the transactions that are decided but not completed.
        An open transaction has its whole timeout from now on: how long it was open cannot be known from the wall
        clock alone."""
        self._decisions = {row.scope: Decision(row.number, row.decided_ms) for row in decisions}
        self._timers.set(self._expiry_timer, now_ms + self._expiry_interval_ms)
        offsets_of: dict[str, list[TransactionOffsetRow]] = {}
        for offset in offsets:
            offsets_of.setdefault(offset.transactional_id, []).append(offset)
        for row in rows:
            transaction = Transaction.restored(row, offsets_of.get(row.transactional_id, ()), self._ledger)
            self._transactions[row.transactional_id] = transaction
            self.bounds.ids.used += _cost_of(row.transactional_id)
            self._count_offsets(transaction.offsets)
            self._count(transaction)
            if transaction.state is State.ONGOING:
                transaction.began_ms = now_ms - max(0, self._wall_ms() - transaction.started_ms)
                self._set_timeout(transaction, now_ms)
            elif transaction.ending is not None:
                self._touched[row.transactional_id] = None
        return self._outcome()

    def topics_deleted(self, names: Iterable[str]) -> Outcome:
        """These topics were deleted: drop their offsets from open transactions."""
        gone = frozenset(names)
        for transaction in self._transactions.values():
            keys = [key for key in transaction.offsets if key[1] in gone]
            if keys and transaction.state is State.ONGOING:
                transaction.forget_offsets(gone)
                self._uncount_offsets(keys)
                self._count(transaction)
                self._touched[transaction.transactional_id] = None
        return self._outcome()

    # Queries

    def is_unstable(self, group: str, topic: str, partition: int) -> bool:
        """True if an offset of the group is in a transaction that has not ended."""
        return (group, topic, partition) in self._pending_offsets

    def is_open_for(self, transactional_id: str, producer_id: int, epoch: int, partition: TopicPartition) -> bool:
        """True if the producer may write to the partition now: the partition is durably in its open transaction.
        False: it can be added. Raises if the transaction is not the producer's, or is being ended."""
        if self._is_resigned:
            raise NotCoordinator("another broker owns the transactions now")
        transaction = self._known(transactional_id)
        if transaction.state in PREPARED and transaction.told == (producer_id, epoch):
            raise ConcurrentTransactions(f"the last transaction of {transactional_id!r} is being completed")
        _check_producer(transaction, producer_id, epoch)
        return transaction.state is State.ONGOING and partition in transaction.durable_partitions

    def is_known_open(self, producer_id: int, partition: TopicPartition) -> bool:
        """True if the partition is in a transaction of the producer that is open or being ended."""
        return any(
            transaction.producer_id == producer_id and partition in transaction.partitions
            for transaction in self._transactions.values()
        )

    # Requests

    def _decide(self, request: Request, token: Token, now_ms: int) -> None:
        try:
            self._replies.append((token, self._handlers[type(request)](request, now_ms)))
        except _HeldError as held:
            self._held.setdefault(held.transactional_id, []).append((request, token))
        except (TransactionError, InvalidRegularExpression) as refusal:
            self._replies.append((token, refused(request, refusal.kafka_code)))

    def _init(self, request: InitProducerId, _now_ms: int) -> InitProducerIdReply:
        id_, config = request.transactional_id, self._config
        if not id_:
            raise InvalidRequest("a transactional id may not be empty")
        if request.enable_two_phase_commit and not config.transaction_two_phase_commit_enable:
            raise NotAuthorized("two-phase commit is not enabled on this broker")
        if request.keep_prepared:
            raise UnsupportedVersion("keeping prepared transactions is not supported")
        if not 0 < request.timeout_ms <= config.transaction_max_timeout_ms:
            raise InvalidTransactionTimeout(
                f"transaction.timeout.ms must be from 1 to {config.transaction_max_timeout_ms}"
            )
        transaction = self._transactions.get(id_)
        if transaction is None:
            self.bounds.ids.check(PolicyViolation, _cost_of(id_))
            transaction = Transaction(id_, self._producer_id(), self._ledger, timeout_ms=request.timeout_ms)
            self._transactions[id_] = transaction
            self.bounds.ids.used += _cost_of(id_)
        self._check_completed(transaction)
        self._check_expected(transaction, request)
        if transaction.state is State.ONGOING:
            self._fence(transaction)
            raise _HeldError(id_)
        self._introduce(transaction, request)
        transaction.timeout_ms = request.timeout_ms
        transaction.state = State.EMPTY
        self._touch(transaction)
        return InitProducerIdReply(producer_id=transaction.producer_id, epoch=transaction.epoch)

    def _check_expected(self, transaction: Transaction, request: InitProducerId) -> None:
        """A producer that continues after an error sends its id and epoch. Raises if it has been replaced since."""
        if request.producer_id == NO_ID or transaction.epoch == NO_EPOCH:
            return
        if request.producer_id != transaction.producer_id and not (
            request.producer_id == transaction.previous_producer_id and request.epoch >= LAST_EPOCH
        ):
            raise ProducerFenced(f"{request.transactional_id!r} belongs to producer {transaction.producer_id}")

    def _introduce(self, transaction: Transaction, request: InitProducerId) -> None:
        """Gives the producer the next epoch, or a new id. A producer that did not get the last reply gets the same
        again."""
        expected = NO_EPOCH if request.producer_id == NO_ID else request.epoch
        if transaction.epoch == NO_EPOCH:
            transaction.epoch = 0
        elif expected in (NO_EPOCH, transaction.epoch) and request.producer_id in (NO_ID, transaction.producer_id):
            if transaction.is_exhausted:
                transaction.rotate(self._producer_id())
                if expected == NO_EPOCH:
                    transaction.last_epoch = NO_EPOCH
            else:
                transaction.last_epoch = expected
                transaction.epoch += 1
        elif expected != transaction.last_epoch:
            raise ProducerFenced(
                f"{request.transactional_id!r} is at epoch {transaction.epoch} of producer {transaction.producer_id}"
            )

    def _add_partitions(self, request: AddPartitions, now_ms: int) -> AddPartitionsReply:
        if request.verify_only:
            transaction = self._known(request.transactional_id)
            _check_producer(transaction, request.producer_id, request.epoch)
            self._check_completed(transaction)
            known = transaction.partitions if transaction.state is State.ONGOING else {}
            return AddPartitionsReply(missing=tuple(each for each in request.partitions if each not in known))
        transaction = self._ready(request.transactional_id, request.producer_id, request.epoch)
        if transaction.state is not State.ONGOING or not transaction.durable_partitions.issuperset(
            request.partitions
        ):
            self._add(transaction, request.partitions, (), now_ms)
        return AddPartitionsReply()

    def _add_offsets(self, request: AddOffsets, now_ms: int) -> AddOffsetsReply:
        transaction = self._ready(request.transactional_id, request.producer_id, request.epoch)
        if transaction.state is not State.ONGOING or request.group_id not in transaction.groups:
            self._add(transaction, (), (request.group_id,), now_ms)
        elif transaction.transactional_id in self._ledger:
            self._touched[transaction.transactional_id] = None
        return AddOffsetsReply()

    def _commit_offsets(self, request: CommitOffsets, now_ms: int) -> CommitOffsetsReply:
        transaction = self._ready(request.transactional_id, request.producer_id, request.epoch)
        new = {(row.group, row.topic, row.partition) for row in request.offsets} - transaction.offsets.keys()
        self.bounds.entries.check(PolicyViolation, len(new) + (request.group_id not in transaction.groups))
        if transaction.state is not State.ONGOING or request.group_id not in transaction.groups:
            if not request.adds_group:
                raise InvalidTransactionState(f"group {request.group_id!r} was not added to the transaction")
            self._add(transaction, (), (request.group_id,), now_ms)
        self._count_offsets(new)
        transaction.add_offsets(request.offsets)
        self._count(transaction)
        self._touched[transaction.transactional_id] = None
        return CommitOffsetsReply()

    def _end(self, request: EndTransaction, _now_ms: int) -> EndTransactionReply:
        transaction = self._known(request.transactional_id)
        self._check_completed(
            transaction
        )  # first: a producer continues while its last transaction is being completed
        is_retry = self._is_told_again(transaction, request)
        if request.producer_id != transaction.producer_id and not is_retry:
            raise InvalidProducerIdMapping(
                f"{request.transactional_id!r} belongs to producer {transaction.producer_id}"
            )
        if request.epoch != transaction.epoch and not is_retry:
            raise ProducerFenced(f"{request.transactional_id!r} is at epoch {transaction.epoch}")
        state, committed = transaction.state, request.committed
        if state is State.ONGOING:
            if request.bumps_epoch:
                self._take_next_epoch(transaction)
            self._prepare(transaction, committed=committed)
        elif state in COMPLETE and (is_retry or not request.bumps_epoch):
            if committed != (state is State.COMPLETE_COMMIT):
                raise InvalidTransactionState(f"the transaction of {request.transactional_id!r} is in {state}")
        elif committed or not request.bumps_epoch:
            raise InvalidTransactionState(f"{request.transactional_id!r} has no transaction: its state is {state}")
        else:  # an abort without a transaction still fences everything that was sent before it
            self._take_next_epoch(transaction)
            transaction.state = State.PREPARE_ABORT
            transaction.complete(self._wall_ms())
            self._touch(transaction)
        producer_id, epoch = transaction.told
        return EndTransactionReply(producer_id=producer_id, epoch=epoch)

    def _decide_together(self, request: DecideTransactions, now_ms: int) -> DecideTransactionsReply:
        ids = [each.transactional_id for each in request.transactions]
        if not 0 < len(request.scope) <= LONGEST_SCOPE or request.number < 0 or not ids or len(set(ids)) != len(ids):
            raise InvalidRequest("a decision needs a scope, a number, and transactions that are each named once")
        if self._find_decision(DescribeDecision(request.scope), now_ms).number >= request.number:
            return DecideTransactionsReply(is_new=False)
        transactions = tuple(self._ready(*each) for each in request.transactions)
        for transaction in transactions:
            if transaction.state is not State.ONGOING:
                raise InvalidTransactionState(f"{transaction.transactional_id!r} has no open transaction")
        if request.scope not in self._decisions and len(self._decisions) >= self.bounds.ids.limit:
            raise PolicyViolation(
                f"there are decisions of {len(self._decisions)} scopes, which is the most"
                " (tidelog.max.transactional.ids)"
            )
        new_ids = {each: self._producer_id() for each in transactions if each.is_exhausted}
        # From here on nothing may fail: all are decided, or none.
        for transaction in transactions:
            self._take_next_epoch(transaction, new_ids.get(transaction))
            self._prepare(transaction, committed=True)
            transaction.decided_with = transactions
        decided_ms = self._wall_ms()
        self._ledger.put(ids[0], _DECISION, Put(DecisionRow(request.scope, request.number, decided_ms)))
        self._decisions[request.scope] = Decision(request.number, decided_ms, ids[0], is_durable=False)
        return DecideTransactionsReply(is_new=True)

    def _find_decision(self, request: DescribeDecision, _now_ms: int) -> DescribeDecisionReply:
        decision = self._decisions.get(request.scope)
        if decision is None:
            return DescribeDecisionReply()
        if not decision.is_durable:  # it may still be lost
            raise _HeldError(decision.first)
        return DescribeDecisionReply(number=decision.number)

    def _is_told_again(self, transaction: Transaction, request: EndTransaction) -> bool:
        """True if the client did not get the reply that its transaction ended, and so does not know its new epoch."""
        if not request.bumps_epoch or transaction.state not in COMPLETE:
            return False
        if request.producer_id == transaction.producer_id:
            return request.epoch == transaction.last_epoch == transaction.epoch - 1
        return (
            request.producer_id == transaction.previous_producer_id
            and transaction.epoch == 0
            and request.epoch == LAST_EPOCH
        )

    def _take_next_epoch(self, transaction: Transaction, new_id: int | None = None) -> None:
        if transaction.is_exhausted:
            transaction.next_producer_id = self._producer_id() if new_id is None else new_id
        transaction.last_epoch = transaction.epoch
        transaction.epoch = min(transaction.epoch + 1, HIGHEST_EPOCH)

    def _describe(self, transactional_id: str) -> DescribedTransaction:
        transaction = self._transactions.get(transactional_id)
        if transaction is None:
            code = (TransactionalIdNotFound if transactional_id else InvalidRequest).kafka_code
            return DescribedTransaction(transactional_id, code)
        return DescribedTransaction(
            transactional_id,
            state=transaction.state,
            timeout_ms=transaction.timeout_ms,
            started_ms=transaction.started_ms,
            producer_id=transaction.producer_id,
            epoch=transaction.epoch,
            partitions=tuple(transaction.partitions),
        )

    def _list(self, request: ListTransactions, now_ms: int) -> ListTransactionsReply:
        pattern = request.pattern or ""
        if len(pattern) > LONGEST_PATTERN:
            raise InvalidRegularExpression(
                f"a pattern may have at most {LONGEST_PATTERN} characters, not {len(pattern)}"
            )
        matches: Callable[[str], object] = matcher(pattern) if pattern else bool
        states = set(request.states)
        unknown = states - set(State)

        def is_wanted(transaction: Transaction) -> bool:
            is_long = request.longer_than_ms < 0 or (
                transaction.started_ms != NOT_STARTED and now_ms - transaction.began_ms > request.longer_than_ms
            )
            return (
                is_long
                and (not states or transaction.state in states)
                and (not request.producer_ids or transaction.producer_id in request.producer_ids)
                and bool(matches(transaction.transactional_id))
            )

        return ListTransactionsReply(
            unknown_states=tuple(sorted(unknown)),
            transactions=tuple(
                ListedTransaction(id_, transaction.producer_id, transaction.state)
                for id_, transaction in self._transactions.items()
                if is_wanted(transaction)
            ),
        )

    # Parts of requests

    def _known(self, transactional_id: str) -> Transaction:
        if not transactional_id:
            raise InvalidRequest("a transactional id may not be empty")
        transaction = self._transactions.get(transactional_id)
        if transaction is None or transaction.epoch == NO_EPOCH:
            raise InvalidProducerIdMapping(
                f"the transactional id {transactional_id!r} is unknown; call InitProducerId"
            )
        return transaction

    def _ready(self, transactional_id: str, producer_id: int, epoch: int) -> Transaction:
        """The producer's transaction, which is not being ended. That is checked before id and epoch: when the end is
        decided, the producer already gets the id and epoch of its next transaction, and a new producer id is stored
        in the transaction only when the end is completed."""
        transaction = self._known(transactional_id)
        self._check_completed(transaction)
        _check_producer(transaction, producer_id, epoch)
        return transaction

    def _check_completed(self, transaction: Transaction) -> None:
        """Raises while the last transaction is being completed, for any request."""
        if transaction.state not in PREPARED:
            return
        if transaction.is_stuck:
            raise ConcurrentTransactions(f"{transaction.transactional_id!r} is being completed")
        raise _HeldError(transaction.transactional_id)

    def _producer_id(self) -> int:
        producer_id = self._new_producer_id()
        if producer_id is None:
            raise CoordinatorNotAvailable("no producer id is reserved at the moment")
        return producer_id

    def _add(
        self, transaction: Transaction, partitions: Iterable[TopicPartition], groups: Iterable[str], now_ms: int
    ) -> None:
        partitions = tuple(partitions)
        self.bounds.entries.check(PolicyViolation, len(set(partitions) - transaction.partitions.keys()) + 1)
        begins = transaction.state is not State.ONGOING
        transaction.add(partitions, groups, now_ms=now_ms, wall_ms=self._wall_ms())
        self._touched[transaction.transactional_id] = None
        self._count(transaction)
        if begins:
            self._set_timeout(transaction, now_ms)

    def _count(self, transaction: Transaction) -> None:
        entries = transaction.entries
        self.bounds.entries.used += entries - transaction.counted
        transaction.counted = entries

    def _prepare(self, transaction: Transaction, *, committed: bool) -> None:
        if transaction.timer is not None:
            self._timers.cancel(transaction.timer)
        transaction.prepare(committed=committed, wall_ms=self._wall_ms())
        self._touched[transaction.transactional_id] = None

    def _fence(self, transaction: Transaction) -> None:
        """Abort the open transaction with a new epoch, which fences its producer."""
        transaction.last_epoch = NO_EPOCH
        transaction.epoch = min(transaction.epoch + 1, HIGHEST_EPOCH)
        self._prepare(transaction, committed=False)

    def _set_timeout(self, transaction: Transaction, now_ms: int) -> None:
        def expire(_now_ms: int) -> None:
            if transaction.state is State.ONGOING:
                self._fence(transaction)

        if transaction.timer is None:
            transaction.timer = Timer(expire)
        self._timers.set(transaction.timer, now_ms + transaction.timeout_ms)

    def _count_offsets(self, keys: Iterable[tuple[str, str, int]]) -> None:
        for key in keys:
            self._pending_offsets[key] = self._pending_offsets.get(key, 0) + 1

    def _uncount_offsets(self, keys: Iterable[tuple[str, str, int]]) -> None:
        for key in keys:
            self._pending_offsets[key] -= 1
            if not self._pending_offsets[key]:
                del self._pending_offsets[key]

    def _release_offsets(self, transaction: Transaction) -> None:
        """The offsets of the transaction are committed or dropped."""
        self._uncount_offsets(transaction.offsets)
        transaction.offsets.clear()
        self._count(transaction)

    def _give_up_held(self, transactional_id: str, code: int) -> list[tuple[Token, Reply]]:
        held = self._held.pop(transactional_id, ())
        return [(token, refused(request, code)) for request, token in held]

    # Rows

    def _touch(self, transaction: Transaction) -> None:
        transaction.touch(self._wall_ms())
        self._touched[transaction.transactional_id] = None

    def _store_soon(self, now_ms: int) -> None:
        """Store the rows in the ledger after `SETTLE_MS`. No request waits for them, and most often the next
        transaction replaces them earlier."""
        if self._settle_timer.deadline_ms is None:
            self._timers.set(self._settle_timer, now_ms + SETTLE_MS)

    def _settle(self, _now_ms: int) -> None:
        self._touched.update(dict.fromkeys(self._ledger.waiting()))

    @property
    def _expiry_interval_ms(self) -> int:
        return self._config.transaction_remove_expired_transaction_cleanup_interval_ms

    def _expire(self, now_ms: int) -> None:
        """Forget transactional ids and decisions that have expired."""
        self._timers.set(self._expiry_timer, now_ms + self._expiry_interval_ms)
        wall_ms = self._wall_ms()
        before_ms = wall_ms - self._config.transactional_id_expiration_ms
        for id_, transaction in list(self._transactions.items()):
            if transaction.updated_ms <= before_ms and transaction.state in (State.EMPTY, *COMPLETE):
                del self._transactions[id_]
                self.bounds.ids.used -= _cost_of(id_)
                self._ledger.forget(id_)
                self._touched.pop(id_, None)
                self._removed.append(Delete(TransactionRow, (id_,)))
        for scope, decision in list(self._decisions.items()):
            if decision.is_durable and decision.decided_ms <= wall_ms - DECISION_KEPT_MS:
                del self._decisions[scope]
                self._removed.append(Delete(DecisionRow, (scope,)))

    def _outcome(self) -> Outcome:
        """The outcome of this call, with all changes of its transactions that are not known to be durable."""
        outcome = Outcome(self._replies, self._removed)
        self._replies, self._removed = [], []
        touched, self._touched = self._touched, {}
        for id_ in tuple(touched):
            for each in self._transactions[id_].decided_with:
                touched[each.transactional_id] = None
        outcome.stamps = self._ledger.collect(touched)
        outcome.changes += [stamp.change for stamp in outcome.stamps]
        for id_ in touched:
            transaction = self._transactions[id_]
            if transaction.ending is not None and not transaction.is_ending_asked:
                transaction.is_ending_asked = True
                outcome.endings.append(transaction.ending)
        return outcome


def _check_producer(transaction: Transaction, producer_id: int, epoch: int) -> None:
    """Raises unless the transaction is this producer's, in this epoch."""
    id_ = transaction.transactional_id
    if transaction.producer_id != producer_id:
        raise InvalidProducerIdMapping(f"{id_!r} belongs to producer {transaction.producer_id}, not {producer_id}")
    if transaction.epoch != epoch:
        raise ProducerFenced(f"{id_!r} is at epoch {transaction.epoch}, not {epoch}")


def _cost_of(transactional_id: str) -> int:
    """How many ids it counts as: a long one counts as several."""
    return 1 + len(transactional_id) // _ID_BYTES
