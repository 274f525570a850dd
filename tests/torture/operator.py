"""The operator of the cluster, who works during the run: creates, deletes, extends, trims and configures topics."""

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.torture.clients import BATCH_BYTES, Client
from tests.torture.history import Done, Remade, Trimmed, now

PARTITIONS = 3
MOST_PARTITIONS = 9
REMADE, GROWN, TRIMMED, COMPACTED = "remade", "grown", "trimmed", "compacted"
_SECONDS = 5

# A batch must fit into a segment: a producer whose batch is refused starts again, and may repeat records in flight.
_SEGMENT_BYTES = (str(BATCH_BYTES + 4096), "100000")
_TRIMMING = {
    "cleanup.policy": ("delete", "compact,delete"),
    "retention.ms": ("-1", "1000", "604800000"),
    "retention.bytes": ("-1", "4096", "200000"),
    "segment.bytes": _SEGMENT_BYTES,
    "segment.ms": ("500", "604800000"),
}
_COMPACTING = {
    "min.cleanable.dirty.ratio": ("0", "0.5"),
    "segment.ms": ("300", "2000"),
    "segment.bytes": _SEGMENT_BYTES,
    "delete.retention.ms": ("0", "1000"),
}
# For a broker whose clock is hours behind, the timestamps of clients are in the future.
ANY_TIME = {"message.timestamp.after.max.ms": "9223372036854775807"}
CONFIGS = {
    TRIMMED: {"segment.bytes": _SEGMENT_BYTES[0]},
    COMPACTED: {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0"},
}


class Operator(Client):
    """Connects to the broker directly, not through the proxy, and repeats calls that must be confirmed."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.grown = PARTITIONS  # the confirmed number of partitions, which producers may use
        self._connect()

    def _connect(self) -> None:
        self._admin = AdminClient({"bootstrap.servers": self.bootstrap, "socket.timeout.ms": 6000, "log_level": 0})

    def create_topics(self, *names: str) -> None:
        for name in (*names, REMADE, GROWN, TRIMMED, COMPACTED):
            self._create(name)

    def work(self) -> None:
        work = [self._remake, self._grow, self._trim, self._trim, self._configure_trimmed, self._configure_compacted]
        while not self.stopping.wait(self.random.uniform(0.1, 0.8)):
            with contextlib.suppress(KafkaException, TimeoutError):  # the broker is down
                done = self.random.choice(work)
                done()
                self.history.add(Done(done.__name__.lstrip("_")))

    def _create(self, name: str) -> None:
        new = NewTopic(name, PARTITIONS, 1, config={**ANY_TIME, **CONFIGS.get(name, {})})
        self._until_done(lambda: self._admin.create_topics([new]), KafkaError.TOPIC_ALREADY_EXISTS)

    def _remake(self) -> None:
        asked = now()
        self._until_done(lambda: self._admin.delete_topics([REMADE]), KafkaError.UNKNOWN_TOPIC_OR_PART)
        self._create(REMADE)
        self.history.add(Remade(REMADE, asked, now()))

    def _grow(self) -> None:
        if self.grown < MOST_PARTITIONS:
            wanted = self.grown + 1
            new = NewPartitions(GROWN, wanted)
            self._until_done(lambda: self._admin.create_partitions([new]), KafkaError.INVALID_PARTITIONS)
            self.grown = wanted

    def _trim(self) -> None:
        """Delete up to a random offset below the end; the broker's answer has the new start."""
        place = TopicPartition(TRIMMED, self.random.randrange(PARTITIONS))
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        found = self._admin.list_offsets({place: latest}, request_timeout=_SECONDS)
        end = found[place].result(_SECONDS).offset
        if end < 0:
            return  # librdkafka returns this if the broker did not answer
        offset = self.random.choice([end, max(0, end - self.random.randrange(200)), self.random.randint(0, end)])
        wanted = TopicPartition(TRIMMED, place.partition, offset)
        deleted = self._admin.delete_records([wanted], request_timeout=_SECONDS)
        for future in deleted.values():
            low = future.result(_SECONDS).low_watermark
            self.history.add(Trimmed((TRIMMED, place.partition), max(low, offset)))

    def _configure_trimmed(self) -> None:
        self._configure(TRIMMED, _TRIMMING)

    def _configure_compacted(self) -> None:
        self._configure(COMPACTED, _COMPACTING)

    def _configure(self, topic: str, choices: Mapping[str, tuple[str, ...]]) -> None:
        name = self.random.choice(list(choices))
        value = self.random.choice(choices[name])
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        for future in self._admin.incremental_alter_configs([resource], request_timeout=_SECONDS).values():
            future.result(_SECONDS)

    def _until_done(self, ask: Callable[[], dict[Any, Any]], already: int) -> None:
        """`already`: the error that means that an earlier request succeeded."""
        while True:
            (future,) = ask().values()
            try:
                future.result()  # the client has its own timeout
            except KafkaException as error:
                if error.args[0].code() == already:
                    return
                self._connect()  # an idle client waits for minutes for a controller that is gone for good
            else:
                return
            time.sleep(0.05)
