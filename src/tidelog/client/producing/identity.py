"""Who a producer is to brokers: a producer id and an epoch, under which its batches are numbered.

By the numbers a broker tells a batch that is sent again from a new one. A transactional id keeps its producer id from
one producer to the next, and each takes a higher epoch; that fences the one before.
"""

from typing import NamedTuple

from tidelog.client.cluster import Cluster
from tidelog.client.coordinator import Coordinator
from tidelog.client.errors import check
from tidelog.model import ProducerEpoch, ProducerId
from tidelog.wire.generated.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_TRANSACTION_TIMEOUT_MS = 60_000  # the request must name one, also without a transactional id
_SEQUENCE_MASK = 0x7FFF_FFFF


class Identity(NamedTuple):
    """Under which an idempotent producer numbers its batches."""

    producer_id: ProducerId
    epoch: ProducerEpoch


async def new_identity(cluster: Cluster) -> Identity:
    """An identity that nobody had before; one try."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS)
    response: InitProducerIdResponse = await cluster.request("InitProducerId", request)
    check(response.error_code, "asking for a producer id")
    return _identity(response)


async def take_over(
    cluster: Cluster,
    coordinator: Coordinator,
    transactional_id: str,
    *,
    timeout_ms: int = _TRANSACTION_TIMEOUT_MS,
    current: Identity | None = None,
    tried: str | None = None,
) -> Identity:
    """The identity of a transactional id, with a new epoch: its last producer is fenced, and the transaction that it
    left open is aborted. With `current`, only if that is still the last one. `tried` is for error messages."""
    request = InitProducerIdRequest(transactional_id, timeout_ms)
    if current is not None:
        request.producer_id, request.producer_epoch = current

    async def attempt() -> InitProducerIdResponse:
        response: InitProducerIdResponse = await coordinator.request("InitProducerId", request)
        coordinator.check(response.error_code, tried or f"taking over the transactional id {transactional_id!r}")
        return response

    return _identity(await cluster.retrying(attempt))


def _identity(response: InitProducerIdResponse) -> Identity:
    return Identity(ProducerId(response.producer_id), ProducerEpoch(response.producer_epoch))


def sequence_after(base_sequence: int, records: int) -> int:
    """The base sequence of the batch that follows one of so many records."""
    return (base_sequence + records) & _SEQUENCE_MASK
