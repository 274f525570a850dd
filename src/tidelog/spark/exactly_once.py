"""Delivery exactly once: tasks write in transactions, and one decision commits all of a batch, once.

    task    1. take over the transactional id of its partition: this fences an earlier attempt, aborts the transaction
               that it left open, and waits for one that is being committed
            2. get the last number of the scope that was decided; if it is this batch or a later one, write nothing
            3. write all rows in the transaction, leave it open, and report it to the driver
    driver  4. commit all reported transactions and store the number, in one write of the broker
               (DecideTransactions); if the number was decided before, abort them
            5. abort all other open transactions of the scope: those of attempts that were not repeated

A batch is identified by a scope and a number. A query's scope is its id, which its checkpoint stores, and the number
is that of the micro-batch, so that a retry after any crash finds out whether the batch was decided. Before step 4
nothing of a batch is visible to readers of committed records; after it, all of it is visible. A batch that was not
decided is written again, by tasks that fence the earlier ones.

Transactions are aborted with their producer's epoch, which can only affect that one. Only step 5 goes by the
transactional id: by then the whole batch is decided, and no task needs what is still open.
"""

import contextlib
import re
import uuid
from typing import TYPE_CHECKING, NamedTuple

from tidelog.client.errors import BrokerError
from tidelog.client.producing.transactions import id_of_task
from tidelog.errors import TidelogError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidelog.client import Client
    from tidelog.client.producing.transactions import OpenTransaction

QUERY_ID, BATCH_ID = "sql.streaming.queryId", "streaming.sql.batchId"  # Spark's names of a task's properties
_PREFIX = "tidelog-spark"


def reached(step: str) -> None:
    """A point at which a crash must do no harm. Tests replace this function to kill the process here."""


class NumberedBatch(NamedTuple):
    """A batch that is committed with one decision."""

    scope: str
    number: int

    def transactional_id(self, partition: int) -> str:
        return id_of_task(self.scope, partition)

    @property
    def pattern(self) -> str:
        """A pattern that matches all transactional ids of the scope, also those of earlier versions, which had no
        dot."""
        return rf"{re.escape(self.scope)}-\d+(\.\d+)?"


def of_job(job: tuple[str, int] | None) -> NumberedBatch:
    """The batch of a batch write; without a name (txnAppId) it gets a unique one."""
    if job is None:
        return NumberedBatch(f"{_PREFIX}-job-{uuid.uuid4()}", 0)
    name, number = job
    return NumberedBatch(f"{_PREFIX}-app-{name}", number)


def of_this_task() -> NumberedBatch:
    """The micro-batch that the running task belongs to."""
    from pyspark import TaskContext

    context = TaskContext.get()
    query, number = (context and context.getLocalProperty(name) for name in (QUERY_ID, BATCH_ID))
    if not query or not number:
        raise TidelogError("delivery=exactly-once: Spark did not pass the query id and batch id to the task")
    return NumberedBatch(f"{_PREFIX}-{query}", int(number))


def partition_of_this_task() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None, "only in a task"
    return context.partitionId()


def is_decided(client: "Client", batch: NumberedBatch) -> bool:
    return client.decision(batch.scope) >= batch.number


def decide(client: "Client", batch: NumberedBatch, transactions: "Sequence[OpenTransaction]") -> None:
    """Commit the batch, unless it was committed before. Raises, and commits nothing, if one of the transactions is no
    longer open: it exceeded its timeout, or another run of the same query has fenced it."""
    reached("deciding")
    try:
        is_new = client.decide_transactions(batch.scope, batch.number, transactions)
    except BrokerError as error:
        error.add_note(
            f"Batch {batch.number} was not committed: one of its transactions exceeded its timeout (option "
            "kafka.transaction.timeout.ms), or another run of the query has taken over. Restart the query from its "
            "checkpoint: it writes the batch again"
        )
        raise
    reached("decided")
    if not is_new:
        abort(client, transactions)


def abort(client: "Client", transactions: "Iterable[OpenTransaction]") -> None:
    """Abort those of the transactions that are still open and have not been taken over."""
    for transaction in transactions:
        with contextlib.suppress(TidelogError):  # it has ended, or will end after its timeout
            client.end_transaction(transaction, commit=False)


def fence(client: "Client", batch: NumberedBatch, partitions: "Iterable[int]") -> None:
    """Stop the tasks of a failed batch: Spark has killed them, but they may still be running."""
    for partition in partitions:
        client.fence_producer(batch.transactional_id(partition))


def abort_leftovers(client: "Client", batch: NumberedBatch) -> None:
    """Abort all open transactions of the scope. Otherwise they would hold back readers until they time out."""
    for listed in client.transactions(states=["Ongoing"], pattern=batch.pattern):
        client.fence_producer(listed.transactional_id)
