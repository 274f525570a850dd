"""Sends Produce requests. Nothing else in the client does.

A request is sent once, to one broker, and every batch in it has an outcome of its own: where it was placed, or the
error of this try. Callers decide what follows from an error, because they know the order of their batches and whether
a batch may be sent again; `may_pass` has the part of that decision that is the same for all.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tidelog.client.cluster import Cluster
from tidelog.client.errors import BrokerError, ConnectionLost, is_unknown_topic
from tidelog.client.options import ProducerOptions
from tidelog.errors import TidelogError, fresh
from tidelog.model import NO_TIMESTAMP, Offset, TimestampMs, TopicPartition
from tidelog.records.batch import ReadBuffer
from tidelog.wire.apis import BY_NAME
from tidelog.wire.error_codes import ErrorCode
from tidelog.wire.generated.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

_PRODUCE = BY_NAME["Produce"]
_UNKNOWN_TOPIC_GRACE_S = 5.0  # brokers say so for a moment when leaders change; later it is true


class EncodedBatch(NamedTuple):
    partition: TopicPartition
    records: int
    data: ReadBuffer


class Placed(NamedTuple):
    """Where a batch was written. The offset is -1 if it is not known: with acks=0, or if an earlier try wrote the
    batch and the broker no longer remembers where. Without an append time, records keep their own timestamps."""

    base_offset: Offset
    append_time: TimestampMs


_SOMEWHERE = Placed(-1, NO_TIMESTAMP)


class ProduceRequests:
    """The requests of one producer. `at_most` is the highest version that they may have."""

    def __init__(self, cluster: Cluster, options: ProducerOptions, transactional_id: str | None = None) -> None:
        self.at_most: int | None = None
        self._cluster = cluster
        self._options = options
        self._transactional_id = transactional_id

    async def send(self, node: int, batches: Sequence[EncodedBatch]) -> list[Placed | TidelogError]:
        """One try, with one batch per partition: the outcome of each batch, in their order."""
        timeout_s = self._cluster.options.request_timeout_ms / 1000
        request = self._request(batches)
        try:
            connection = await self._cluster.connection(node)
            if self._options.acks == 0:
                await connection.send(_PRODUCE, request, timeout_s=timeout_s, at_most=self.at_most)
                return [_SOMEWHERE] * len(batches)
            response: ProduceResponse = await connection.request(
                _PRODUCE, request, timeout_s=timeout_s, at_most=self.at_most
            )
        except TidelogError as error:
            return [error] * len(batches)
        answers = {
            TopicPartition(self._cluster.topic_name(topic.name, topic.topic_id), answer.index): answer
            for topic in response.responses
            for answer in topic.partition_responses
        }
        return [self._outcome(batch, answers.get(batch.partition)) for batch in batches]

    async def send_one(self, batch: EncodedBatch) -> Offset:
        """One try at the partition's leader; raises the error of the batch."""
        leader = await self._cluster.leader(batch.partition)
        (outcome,) = await self.send(leader, [batch])
        if isinstance(outcome, Placed):
            return outcome.base_offset
        raise fresh(outcome)

    def is_overdue(self, age_s: float) -> bool:
        return age_s * 1000 >= self._options.delivery_timeout_ms

    def may_pass(self, error: TidelogError, age_s: float) -> bool:
        """Whether another try may succeed where one has failed, for a batch of this age."""
        if self.is_overdue(age_s):
            return False
        if is_unknown_topic(error) and age_s > _UNKNOWN_TOPIC_GRACE_S:
            return False
        return error.retriable

    def _request(self, batches: Sequence[EncodedBatch]) -> ProduceRequest:
        topics: dict[str, TopicProduceData] = {}
        for (name, index), _, data in batches:
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = TopicProduceData(name=name, topic_id=self._cluster.topic_id(name))
            topic.partition_data.append(PartitionProduceData(index=index, records=data))
        timeout_ms = self._cluster.options.request_timeout_ms
        return ProduceRequest(self._transactional_id, self._options.acks_code, timeout_ms, list(topics.values()))

    def _outcome(self, batch: EncodedBatch, answer: PartitionProduceResponse | None) -> Placed | TidelogError:
        if answer is None:
            return ConnectionLost(f"the broker's reply does not mention {batch.partition}")
        if answer.error_code == 0:
            return Placed(answer.base_offset, answer.log_append_time_ms)
        if answer.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER and self._options.is_idempotent:
            return _SOMEWHERE  # written by an earlier try
        tried = f"producing {batch.records} record{'s' * (batch.records != 1)} to {batch.partition}"
        return BrokerError(answer.error_code, tried, answer.error_message)
