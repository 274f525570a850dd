"""Delivery exactly once: tasks write in transactions, and one decision commits all of a batch, once.

    task    1. take over the transactional id `{scope}-{partition}`: an attempt before this one is fenced, what it
               left open is aborted, what is being committed is waited for
            2. ask which number of the scope was decided last; if that is this batch or a later one, write nothing
            3. write all rows in the transaction, and report it, open, to the driver
    driver  4. have all transactions that were reported committed and the number kept, in one write of the broker
               (DecideTransactions); if the number was decided before, abort them
            5. abort what else is open under the scope: what attempts left behind that nobody did again

A batch is known by a scope and a number. A query's scope is its id, which its checkpoint keeps, and the number is the
micro-batch's, so that whoever does a batch again, after whatever crash, finds what was decided about it. Until step 4
nothing of a batch is visible to readers of committed records, after it all of it is, and there is nothing in between.
What was not decided is written again, by tasks that fence those before them.

A transaction is aborted by those who know its producer's epoch, which can only hit that one. Only step 5 goes by the
name: by then all of the batch is decided, and what is open belongs to nobody.
"""

import contextlib
import re
import uuid
from typing import TYPE_CHECKING, NamedTuple

from tidelog.client.errors import BrokerError
from tidelog.errors import TidelogError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tidelog.client import Client
    from tidelog.client.transactions import OpenTransaction

QUERY_ID, BATCH_ID = "sql.streaming.queryId", "streaming.sql.batchId"  # Spark's names, of a task's properties
_PREFIX = "tidelog-spark"


def reached(step: str) -> None:
    """A place where a crash must not matter. Tests put something here that ends the process."""


class NumberedBatch(NamedTuple):
    """What is decided about at once."""

    scope: str
    number: int

    def transactional_id(self, partition: int) -> str:
        return f"{self.scope}-{partition}"

    @property
    def pattern(self) -> str:
        """Of all transactional ids of the scope."""
        return rf"{re.escape(self.scope)}-\d+"


def of_job(job: tuple[str, int] | None) -> NumberedBatch:
    """A batch write; without a name of its own it is like no other."""
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
        raise TidelogError("delivery=exactly-once: Spark does not say which query and batch the task belongs to")
    return NumberedBatch(f"{_PREFIX}-{query}", int(number))


def partition_of_this_task() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None, "only in a task"
    return context.partitionId()


def is_decided(client: "Client", batch: NumberedBatch) -> bool:
    return client.decision(batch.scope) >= batch.number


def decide(client: "Client", batch: NumberedBatch, transactions: "Sequence[OpenTransaction]") -> None:
    """Commit the batch, unless that was done before. Raises if one of the transactions is not open any more: it took
    longer than its timeout, or another run of the same query has fenced it. Then nothing is committed."""
    reached("deciding")
    try:
        is_new = client.decide_transactions(batch.scope, batch.number, transactions)
    except BrokerError as error:
        error.add_note(
            f"Batch {batch.number} was not committed: a transaction of it took longer than its timeout (option "
            "kafka.transaction.timeout.ms), or another run of the query has taken over. Started again from its "
            "checkpoint, the query writes the batch anew"
        )
        raise
    reached("decided")
    if not is_new:
        abort(client, transactions)


def abort(client: "Client", transactions: "Iterable[OpenTransaction]") -> None:
    """Those that are still open and have not been taken over."""
    for transaction in transactions:
        with contextlib.suppress(TidelogError):  # it has ended, or will after its timeout
            client.end_transaction(transaction, commit=False)


def fence(client: "Client", batch: NumberedBatch, partitions: "Iterable[int]") -> None:
    """Stop tasks of a batch that has failed: Spark has killed them, but they may not have noticed yet."""
    for partition in partitions:
        client.fence_producer(batch.transactional_id(partition))


def abort_leftovers(client: "Client", batch: NumberedBatch) -> None:
    """What is open under the scope. Without this, it would hold readers back until its timeout."""
    for listed in client.transactions(states=["Ongoing"], pattern=batch.pattern):
        client.fence_producer(listed.transactional_id)
