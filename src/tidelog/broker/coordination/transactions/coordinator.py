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

*The decision is durable before the first marker.* PrepareCommit or PrepareAbort is stored in one write with what
becomes of the transaction's offsets. From then on the outcome is decided; whoever starts the broker again finds the
row and writes the markers that are missing.

*Markers are written once.* A log knows whether a transaction of a producer is open in it; one that is not gets no
marker. And no record of the producer's next transaction can be in any log before the row says Ongoing again, which is
not stored before all markers of the last one are durable. So "open in the log" always means the transaction that the
row speaks of.

*Nothing is said that is not durable, and a failed write undoes nothing.* Memory goes ahead of the store; the changes
stay with the transaction until a write of them has returned, and go with every outcome of it until then. Replies to
what could not be stored are COORDINATOR_NOT_AVAILABLE, which clients retry. A decided end stays decided.

*Many transactions can have one end.* `DecideTransactions` prepares all of them, and notes which batch of work that
was, in one write: at no moment are only some of them decided. Who asks again, after whatever crash, is told.

Requests that come while a transaction is being completed wait for that, instead of being told
CONCURRENT_TRANSACTIONS right away; they are if the markers cannot be written now.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tidelog.broker.coordination.groups.errors import InvalidRegularExpression
from tidelog.broker.coordination.groups.subscriptions import matcher
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
from tidelog.broker.coordination.transactions.transaction import (
    COMPLETE,
    HIGHEST_EPOCH,
    LAST_EPOCH,
    NOT_STARTED,
    PREPARED,
    Ending,
    State,
    Transaction,
)
from tidelog.metadata.rows import DecisionRow, OffsetRow, TransactionOffsetRow, TransactionRow
from tidelog.metadata.store import Change, Delete, Put
from tidelog.model import TopicPartition

Token: TypeAlias = Hashable
Stamp: TypeAlias = tuple[Transaction, Hashable, Change]
WRITE_RETRY_MS = 1_000
SETTLE_MS = 1_000  # a completed transaction's row may wait so long for company
LONGEST_PATTERN = 10_000
DECISION_KEPT_MS = 90 * 24 * 3600 * 1000
_DECISION: Hashable = "decision"


@dataclass(slots=True)
class Outcome:
    """What to do: make `changes` durable, then begin `endings`, then send `replies`."""

    replies: list[tuple[Token, Reply]] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    endings: list[Ending] = field(default_factory=list)
    stamps: list[Stamp] = field(default_factory=list)

    @property
    def committed_offsets(self) -> list[Change]:
        """What the group coordinator has to know once the changes are durable."""
        return [change for change in self.changes if isinstance(change, Put) and isinstance(change.row, OffsetRow)]


@dataclass(slots=True)
class Decision:
    """The newest of its scope. `first` is one of the transactions that it ended."""

    number: int
    decided_ms: int
    first: str = ""
    is_durable: bool = True


class _HeldError(Exception):
    """The request waits until the transaction is completed."""

    def __init__(self, transactional_id: str) -> None:
        super().__init__()
        self.transactional_id = transactional_id


class TransactionCoordinator:
    def __init__(self, config: TransactionConfig, new_producer_id: Callable[[], int | None]) -> None:
        """`new_producer_id` gives one that nobody has had, or None if there is none right now."""
        self._config = config
        self._new_producer_id = new_producer_id
        self._transactions: dict[str, Transaction] = {}
        self._decisions: dict[str, Decision] = {}
        self._timers = Timers()
        self._settle_timer = Timer(self._settle)
        self._expiry_timer = Timer(self._expire)
        self._unsettled: dict[str, Transaction] = {}  # with changes that no outcome under way carries
        self._removed: list[Change] = []
        self._replies: list[tuple[Token, Reply]] = []
        self._touched: dict[str, Transaction] = {}  # in this turn
        self._held: dict[str, list[tuple[Request, Token]]] = {}
        self._pending_offsets: dict[tuple[str, str, int], int] = {}  # in how many transactions
        self._handlers: dict[type[Request], tuple[Callable[[Any, int], Reply], Reply]] = {
            InitProducerId: (self._init, InitProducerIdReply()),
            AddPartitions: (self._add_partitions, AddPartitionsReply()),
            AddOffsets: (self._add_offsets, AddOffsetsReply()),
            CommitOffsets: (self._commit_offsets, CommitOffsetsReply()),
            EndTransaction: (self._end, EndTransactionReply()),
            ListTransactions: (self._list, ListTransactionsReply()),
            DecideTransactions: (self._decide_together, DecideTransactionsReply()),
            DescribeDecision: (self._find_decision, DescribeDecisionReply()),
        }

    # Driving it

    def handle(self, request: Request, token: Token, now_ms: int) -> Outcome:
        """Decides on one request. Refusals are replies; an exception is a bug."""
        if isinstance(request, DescribeTransactions):
            described = tuple(self._describe(id_) for id_ in request.transactional_ids)
            return Outcome([(token, DescribeTransactionsReply(described))])
        self._decide(request, token, now_ms)
        return self._outcome()

    def tick(self, now_ms: int) -> Outcome:
        """Does what has become due: transactions that took too long, ids that nobody uses, rows to be stored."""
        self._timers.run(now_ms)
        return self._outcome()

    def store_all(self) -> Outcome:
        """Also the rows that nobody waits for: before a stop."""
        self._touched.update(self._unsettled)
        return self._outcome()

    def next_deadline_ms(self) -> int | None:
        """When to call `tick` next; an earlier or later call does no harm."""
        return self._timers.next_deadline_ms()

    def written(self, outcome: Outcome) -> None:
        """The outcome's changes are durable: its endings may begin and its replies may go out."""
        stamps: dict[Transaction, list[tuple[Hashable, Change]]] = {}
        for transaction, key, change in outcome.stamps:
            stamps.setdefault(transaction, []).append((key, change))
        for transaction, of_it in stamps.items():
            transaction.decided_with = ()
            if transaction.written(of_it) and transaction.state in PREPARED:
                self._release_offsets(transaction)
            for key, change in of_it:
                if key is _DECISION and isinstance(change, Put) and isinstance(change.row, DecisionRow):
                    self._decisions[change.row.scope].is_durable = True

    def failed(self, outcome: Outcome, now_ms: int) -> Outcome:
        """The changes were not stored, as far as anybody knows. Returns what to send instead."""
        instead = Outcome([(token, reply.failed(NOT_AVAILABLE)) for token, reply in outcome.replies])
        for transaction, _, _ in outcome.stamps:
            self._unsettled[transaction.transactional_id] = transaction
            if transaction.ending in outcome.endings:
                transaction.is_ending_asked = False
            instead.replies += self._give_up_held(transaction, CoordinatorNotAvailable.kafka_code)
        self._timers.set(self._settle_timer, now_ms + WRITE_RETRY_MS)
        return instead

    def completed(self, ending: Ending, now_ms: int) -> Outcome:
        """All markers are durable: the id is ready for its next transaction."""
        transaction = self._transactions.get(ending.transactional_id)
        if transaction is None or transaction.ending is not ending:
            return Outcome()
        transaction.complete(now_ms)
        self._store_soon(transaction, now_ms)
        for request, token in self._held.pop(ending.transactional_id, ()):
            self._decide(request, token, now_ms)
        return self._outcome()

    def stuck(self, ending: Ending) -> Outcome:
        """Markers cannot be written at the moment. Who waits for that is told to come again."""
        transaction = self._transactions.get(ending.transactional_id)
        if transaction is None or transaction.ending is not ending:
            return Outcome()
        transaction.is_stuck = True
        return Outcome(self._give_up_held(transaction, ConcurrentTransactions.kafka_code))

    def restore(
        self,
        rows: Iterable[TransactionRow],
        offsets: Iterable[TransactionOffsetRow],
        decisions: Iterable[DecisionRow],
        now_ms: int,
    ) -> Outcome:
        """Continues from what the store holds; first of all with what was decided but not completed."""
        self._decisions = {row.scope: Decision(row.number, row.decided_ms) for row in decisions}
        self._timers.set(self._expiry_timer, now_ms + self._expiry_interval_ms)
        offsets_of: dict[str, list[TransactionOffsetRow]] = {}
        for offset in offsets:
            offsets_of.setdefault(offset.transactional_id, []).append(offset)
        for row in rows:
            transaction = Transaction.restored(row, offsets_of.get(row.transactional_id, ()))
            self._transactions[row.transactional_id] = transaction
            self._count_offsets(transaction.offsets)
            if transaction.state is State.ONGOING:
                self._set_timeout(transaction)
            elif transaction.ending is not None:
                self._touched[row.transactional_id] = transaction
        return self._outcome()

    def topics_deleted(self, names: Iterable[str]) -> Outcome:
        """Offsets of topics that are gone are not committed any more."""
        gone = frozenset(names)
        for transaction in self._transactions.values():
            keys = [key for key in transaction.offsets if key[1] in gone]
            if keys and transaction.state is State.ONGOING:
                transaction.forget_offsets(gone)
                self._uncount_offsets(keys)
                self._touched[transaction.transactional_id] = transaction
        return self._outcome()

    # What others ask without changing anything

    def is_unstable(self, group: str, topic: str, partition: int) -> bool:
        """Whether an offset of the group is in a transaction that has not ended."""
        return (group, topic, partition) in self._pending_offsets

    def is_open_for(self, transactional_id: str, producer_id: int, epoch: int, partition: TopicPartition) -> bool:
        """Whether the producer may write to the partition now: it is, durably, in its open transaction. False: it
        can be added to it. Raises if the transaction is not the producer's, or is being ended."""
        transaction = self._checked(transactional_id, producer_id, epoch)
        if transaction.state in PREPARED:
            raise ConcurrentTransactions(f"the last transaction of {transactional_id!r} is being completed")
        return transaction.state is State.ONGOING and partition in transaction.durable_partitions

    def is_known_open(self, producer_id: int, partition: TopicPartition) -> bool:
        """Whether a transaction of the producer that is open, or being ended, has the partition."""
        return any(
            transaction.producer_id == producer_id and partition in transaction.partitions
            for transaction in self._transactions.values()
        )

    # Requests

    def _decide(self, request: Request, token: Token, now_ms: int) -> None:
        decide, reply = self._handlers[type(request)]
        try:
            self._replies.append((token, decide(request, now_ms)))
        except _HeldError as held:
            self._held.setdefault(held.transactional_id, []).append((request, token))
        except (TransactionError, InvalidRegularExpression) as refusal:
            self._replies.append((token, reply.failed(refusal.kafka_code)))

    def _init(self, request: InitProducerId, now_ms: int) -> InitProducerIdReply:
        id_, config = request.transactional_id, self._config
        if not id_:
            raise InvalidRequest("a transactional id may not be empty")
        if request.enable_two_phase_commit and not config.transaction_two_phase_commit_enable:
            raise NotAuthorized("two-phase commit is not enabled on this broker")
        if request.keep_prepared:
            raise UnsupportedVersion("prepared transactions cannot be kept yet")
        if not 0 < request.timeout_ms <= config.transaction_max_timeout_ms:
            raise InvalidTransactionTimeout(
                f"transaction.timeout.ms must be from 1 to {config.transaction_max_timeout_ms}"
            )
        transaction = self._transactions.get(id_)
        if transaction is None:
            transaction = Transaction(id_, self._producer_id(), timeout_ms=request.timeout_ms)
            self._transactions[id_] = transaction
        self._check_expected(transaction, request)
        if transaction.state in PREPARED:
            raise self._busy(transaction)
        if transaction.state is State.ONGOING:
            self._fence(transaction, now_ms)
            raise _HeldError(id_)
        self._introduce(transaction, request)
        transaction.timeout_ms = request.timeout_ms
        transaction.state = State.EMPTY
        transaction.started_ms = NOT_STARTED
        self._touch(transaction, now_ms)
        return InitProducerIdReply(producer_id=transaction.producer_id, epoch=transaction.epoch)

    def _check_expected(self, transaction: Transaction, request: InitProducerId) -> None:
        """A producer that goes on after an error names what it has; it may have been replaced meanwhile."""
        if request.producer_id == NO_ID or transaction.epoch == NO_EPOCH:
            return
        if request.producer_id != transaction.producer_id and not (
            request.producer_id == transaction.previous_producer_id and request.epoch >= LAST_EPOCH
        ):
            raise ProducerFenced(f"{request.transactional_id!r} belongs to producer {transaction.producer_id}")

    def _introduce(self, transaction: Transaction, request: InitProducerId) -> None:
        """The next epoch, or a new id; the same again for one that did not hear the answer."""
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
        transaction = self._checked(request.transactional_id, request.producer_id, request.epoch)
        if transaction.state in PREPARED:
            raise self._busy(transaction)
        if request.verify_only:
            known = transaction.partitions if transaction.state is State.ONGOING else {}
            return AddPartitionsReply(missing=tuple(each for each in request.partitions if each not in known))
        if transaction.state is not State.ONGOING or not transaction.durable_partitions.issuperset(
            request.partitions
        ):
            self._add(transaction, request.partitions, (), now_ms)
        return AddPartitionsReply()

    def _add_offsets(self, request: AddOffsets, now_ms: int) -> AddOffsetsReply:
        transaction = self._checked(request.transactional_id, request.producer_id, request.epoch)
        if transaction.state in PREPARED:
            raise self._busy(transaction)
        if transaction.state is not State.ONGOING or request.group_id not in transaction.groups:
            self._add(transaction, (), (request.group_id,), now_ms)
        elif transaction.unwritten:
            self._touched[transaction.transactional_id] = transaction
        return AddOffsetsReply()

    def _commit_offsets(self, request: CommitOffsets, now_ms: int) -> CommitOffsetsReply:
        transaction = self._checked(request.transactional_id, request.producer_id, request.epoch)
        if transaction.state in PREPARED:
            raise self._busy(transaction)
        if transaction.state is not State.ONGOING or request.group_id not in transaction.groups:
            if not request.adds_group:
                raise InvalidTransactionState(f"group {request.group_id!r} was not added to the transaction")
            self._add(transaction, (), (request.group_id,), now_ms)
        new = {(row.group, row.topic, row.partition) for row in request.offsets} - transaction.offsets.keys()
        self._count_offsets(new)
        transaction.add_offsets(request.offsets)
        self._touched[transaction.transactional_id] = transaction
        return CommitOffsetsReply()

    def _end(self, request: EndTransaction, now_ms: int) -> EndTransactionReply:
        transaction = self._known(request.transactional_id)
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
            self._prepare(transaction, committed=committed, now_ms=now_ms)
        elif state in PREPARED:
            if committed != (state is State.PREPARE_COMMIT):
                raise InvalidTransactionState(f"the transaction of {request.transactional_id!r} is in {state}")
            raise self._busy(transaction)
        elif state in COMPLETE and (is_retry or not request.bumps_epoch):
            if committed != (state is State.COMPLETE_COMMIT):
                raise InvalidTransactionState(f"the transaction of {request.transactional_id!r} is in {state}")
        elif committed or not request.bumps_epoch:
            raise InvalidTransactionState(f"{request.transactional_id!r} has no transaction: its state is {state}")
        else:  # an abort of nothing still makes sure that nothing sent before it counts
            self._take_next_epoch(transaction)
            transaction.state = State.PREPARE_ABORT
            transaction.complete(now_ms)
            self._touch(transaction, now_ms)
        producer_id, epoch = transaction.told
        return EndTransactionReply(producer_id=producer_id, epoch=epoch)

    def _decide_together(self, request: DecideTransactions, now_ms: int) -> DecideTransactionsReply:
        ids = [each.transactional_id for each in request.transactions]
        if not request.scope or request.number < 0 or not ids or len(set(ids)) != len(ids):
            raise InvalidRequest("a decision needs a scope, a number, and transactions that are each named once")
        if self._find_decision(DescribeDecision(request.scope), now_ms).number >= request.number:
            return DecideTransactionsReply(is_new=False)
        transactions = tuple(self._checked(*each) for each in request.transactions)
        for transaction in transactions:
            if transaction.state in PREPARED:
                raise self._busy(transaction)
            if transaction.state is not State.ONGOING:
                raise InvalidTransactionState(f"{transaction.transactional_id!r} has no open transaction")
        new_ids = {each: self._producer_id() for each in transactions if each.is_exhausted}
        # From here on nothing can be refused: all are decided, or none.
        for transaction in transactions:
            self._take_next_epoch(transaction, new_ids.get(transaction))
            self._prepare(transaction, committed=True, now_ms=now_ms)
            transaction.decided_with = transactions
        transactions[0].unwritten[_DECISION] = Put(DecisionRow(request.scope, request.number, now_ms))
        self._decisions[request.scope] = Decision(request.number, now_ms, ids[0], is_durable=False)
        return DecideTransactionsReply(is_new=True)

    def _find_decision(self, request: DescribeDecision, _now_ms: int) -> DescribeDecisionReply:
        decision = self._decisions.get(request.scope)
        if decision is None:
            return DescribeDecisionReply()
        if not decision.is_durable:  # it may still be lost
            raise _HeldError(decision.first)
        return DescribeDecisionReply(number=decision.number)

    def _is_told_again(self, transaction: Transaction, request: EndTransaction) -> bool:
        """Whether the client has not heard that its transaction ended and so does not know its new epoch."""
        if not request.bumps_epoch or transaction.state not in (*PREPARED, *COMPLETE):
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
            raise InvalidRegularExpression(f"a pattern may have {LONGEST_PATTERN} characters, not {len(pattern)}")
        matches: Callable[[str], object] = matcher(pattern) if pattern else bool
        states = set(request.states)
        unknown = states - set(State)

        def is_wanted(transaction: Transaction) -> bool:
            is_long = request.longer_than_ms < 0 or (
                transaction.started_ms != NOT_STARTED and now_ms - transaction.started_ms > request.longer_than_ms
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

    # Steps of them

    def _known(self, transactional_id: str) -> Transaction:
        if not transactional_id:
            raise InvalidRequest("a transactional id may not be empty")
        transaction = self._transactions.get(transactional_id)
        if transaction is None or transaction.epoch == NO_EPOCH:
            raise InvalidProducerIdMapping(f"nobody has introduced themselves as {transactional_id!r}")
        return transaction

    def _checked(self, transactional_id: str, producer_id: int, epoch: int) -> Transaction:
        transaction = self._known(transactional_id)
        if transaction.producer_id != producer_id:
            raise InvalidProducerIdMapping(
                f"{transactional_id!r} belongs to producer {transaction.producer_id}, not {producer_id}"
            )
        if transaction.epoch != epoch:
            raise ProducerFenced(f"{transactional_id!r} is at epoch {transaction.epoch}, not {epoch}")
        return transaction

    def _busy(self, transaction: Transaction) -> Exception:
        if transaction.is_stuck:
            return ConcurrentTransactions(f"{transaction.transactional_id!r} is being completed")
        return _HeldError(transaction.transactional_id)

    def _producer_id(self) -> int:
        producer_id = self._new_producer_id()
        if producer_id is None:
            raise CoordinatorNotAvailable("no producer id is reserved yet")
        return producer_id

    def _add(
        self, transaction: Transaction, partitions: Iterable[TopicPartition], groups: Iterable[str], now_ms: int
    ) -> None:
        begins = transaction.state is not State.ONGOING
        transaction.add(partitions, groups, now_ms)
        self._touched[transaction.transactional_id] = transaction
        if begins:
            self._set_timeout(transaction)

    def _prepare(self, transaction: Transaction, *, committed: bool, now_ms: int) -> None:
        if transaction.timer is not None:
            self._timers.cancel(transaction.timer)
        transaction.prepare(committed=committed, now_ms=now_ms)
        self._touched[transaction.transactional_id] = transaction

    def _fence(self, transaction: Transaction, now_ms: int) -> None:
        """Abort what is open, with an epoch that its producer does not have."""
        transaction.last_epoch = NO_EPOCH
        transaction.epoch = min(transaction.epoch + 1, HIGHEST_EPOCH)
        self._prepare(transaction, committed=False, now_ms=now_ms)

    def _set_timeout(self, transaction: Transaction) -> None:
        def expire(now_ms: int) -> None:
            if transaction.state is State.ONGOING:
                self._fence(transaction, now_ms)

        if transaction.timer is None:
            transaction.timer = Timer(expire)
        self._timers.set(transaction.timer, transaction.started_ms + transaction.timeout_ms)

    def _count_offsets(self, keys: Iterable[tuple[str, str, int]]) -> None:
        for key in keys:
            self._pending_offsets[key] = self._pending_offsets.get(key, 0) + 1

    def _uncount_offsets(self, keys: Iterable[tuple[str, str, int]]) -> None:
        for key in keys:
            self._pending_offsets[key] -= 1
            if not self._pending_offsets[key]:
                del self._pending_offsets[key]

    def _release_offsets(self, transaction: Transaction) -> None:
        """They are committed or dropped."""
        self._uncount_offsets(transaction.offsets)
        transaction.offsets.clear()

    def _give_up_held(self, transaction: Transaction, code: int) -> list[tuple[Token, Reply]]:
        held = self._held.pop(transaction.transactional_id, ())
        return [(token, self._handlers[type(request)][1].failed(code)) for request, token in held]

    # Rows

    def _touch(self, transaction: Transaction, now_ms: int) -> None:
        transaction.touch(now_ms)
        self._touched[transaction.transactional_id] = transaction

    def _store_soon(self, transaction: Transaction, now_ms: int) -> None:
        """Nobody waits for it: most often the next transaction brings a newer row."""
        self._unsettled[transaction.transactional_id] = transaction
        if self._settle_timer.deadline_ms is None:
            self._timers.set(self._settle_timer, now_ms + SETTLE_MS)

    def _settle(self, _now_ms: int) -> None:
        self._touched.update(self._unsettled)

    @property
    def _expiry_interval_ms(self) -> int:
        return self._config.transaction_remove_expired_transaction_cleanup_interval_ms

    def _expire(self, now_ms: int) -> None:
        """Forget ids that nobody used for long."""
        self._timers.set(self._expiry_timer, now_ms + self._expiry_interval_ms)
        before_ms = now_ms - self._config.transactional_id_expiration_ms
        for id_, transaction in list(self._transactions.items()):
            if transaction.updated_ms <= before_ms and transaction.state in (State.EMPTY, *COMPLETE):
                del self._transactions[id_]
                self._unsettled.pop(id_, None)
                self._touched.pop(id_, None)
                self._removed.append(Delete(TransactionRow, (id_,)))
        for scope, decision in list(self._decisions.items()):
            if decision.is_durable and decision.decided_ms <= now_ms - DECISION_KEPT_MS:
                del self._decisions[scope]
                self._removed.append(Delete(DecisionRow, (scope,)))

    def _outcome(self) -> Outcome:
        """What this turn came to, with all changes of its transactions that are not known to be durable."""
        outcome = Outcome(self._replies, self._removed)
        self._replies, self._removed = [], []
        for transaction in tuple(self._touched.values()):
            self._touched.update({each.transactional_id: each for each in transaction.decided_with})
        for id_, transaction in self._touched.items():
            self._unsettled.pop(id_, None)
            outcome.stamps += [(transaction, key, change) for key, change in transaction.unwritten.items()]
            outcome.changes += transaction.unwritten.values()
            if transaction.ending is not None and not transaction.is_ending_asked:
                transaction.is_ending_asked = True
                outcome.endings.append(transaction.ending)
        self._touched = {}
        return outcome
