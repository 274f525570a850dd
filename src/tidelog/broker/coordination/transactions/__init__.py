"""Transactions over partitions and committed offsets, as Kafka's transaction coordinator has them.

`TransactionCoordinator` is the way in; `messages` has its requests and replies.
"""

from tidelog.broker.coordination.transactions.config import TransactionConfig
from tidelog.broker.coordination.transactions.coordinator import Outcome, TransactionCoordinator
from tidelog.broker.coordination.transactions.transaction import Ending

__all__ = ["Ending", "Outcome", "TransactionConfig", "TransactionCoordinator"]
