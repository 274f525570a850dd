"""The errors of the transaction coordinator, one class per Kafka error code. All are subclasses of
`tidelog.errors.InvalidInput`:

    TransactionError
    ├── CoordinatorLoading           14  retriable: the state of the transaction is being loaded
    ├── CoordinatorNotAvailable      15  retriable: the decision could not be stored
    ├── NotCoordinator               16  retriable: another broker owns the transaction now
    ├── UnsupportedVersion           35
    ├── InvalidRequest               42
    ├── PolicyViolation              44  a limit of the broker is reached
    ├── InvalidProducerEpoch         47  fenced, for clients whose version does not have PRODUCER_FENCED
    ├── InvalidTransactionState      48
    ├── InvalidProducerIdMapping     49
    ├── InvalidTransactionTimeout    50
    ├── ConcurrentTransactions       51  retriable: the transaction is being completed
    ├── NotAuthorized                53  two-phase commit is not enabled
    ├── ProducerFenced               90
    ├── TransactionalIdNotFound     105
    └── TransactionAbortable        120

Inside the package they are raised; replies carry them as `error_code`.
"""

from tidelog.errors import InvalidInput

NO_ERROR = 0


class TransactionError(InvalidInput):
    pass


class CoordinatorLoading(TransactionError):
    kafka_code = 14
    retriable = True


class CoordinatorNotAvailable(TransactionError):
    kafka_code = 15
    retriable = True


class NotCoordinator(TransactionError):
    kafka_code = 16
    retriable = True


class UnsupportedVersion(TransactionError):
    kafka_code = 35


class InvalidRequest(TransactionError):
    kafka_code = 42


class PolicyViolation(TransactionError):
    kafka_code = 44


class InvalidProducerEpoch(TransactionError):
    kafka_code = 47


class InvalidTransactionState(TransactionError):
    kafka_code = 48


class InvalidProducerIdMapping(TransactionError):
    kafka_code = 49


class InvalidTransactionTimeout(TransactionError):
    kafka_code = 50


class ConcurrentTransactions(TransactionError):
    kafka_code = 51
    retriable = True


class NotAuthorized(TransactionError):
    kafka_code = 53


class ProducerFenced(TransactionError):
    kafka_code = 90


class TransactionalIdNotFound(TransactionError):
    kafka_code = 105


class TransactionAbortable(TransactionError):
    kafka_code = 120
