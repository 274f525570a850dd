"""The settings of transactions, with the names and defaults of Kafka's broker configs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransactionConfig:
    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 7 * 86_400_000
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000
    transaction_two_phase_commit_enable: bool = False
    tidelog_max_transactional_ids: int = 100_000
    tidelog_max_transaction_entries: int = 400_000
