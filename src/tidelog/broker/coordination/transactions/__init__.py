"""Transactions over partitions and committed offsets, with the semantics of Kafka's transaction coordinator.

`TransactionCoordinator` is the entry point; `messages` has its requests and replies.
"""

from tidelog.broker.coordination.transactions.config import TransactionConfig
from tidelog.broker.coordination.transactions.coordinator import Outcome, TransactionCoordinator
from tidelog.broker.coordination.transactions.transaction import Ending

__all__ = ["Ending", "Outcome", "TransactionConfig", "TransactionCoordinator"]
