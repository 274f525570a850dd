"""The real Kafka clients for Python behind one small interface, so that a test reads the same for each of them.

    Client                   what a program would import
    ├── Confluent            confluent-kafka, on the C library librdkafka
    ├── KafkaPython          kafka-python
    └── AioKafka             aiokafka, with an event loop in a thread of its own

They are made with short timeouts and back-offs: a failing test fails soon.
"""

from tests.e2e.clients.aio import AioKafka
from tests.e2e.clients.base import CODECS, Client, ClientError, Message, Reader, Record
from tests.e2e.clients.confluent import Confluent
from tests.e2e.clients.kafka_python import KafkaPython

CLIENTS: dict[str, type[Client]] = {each.name: each for each in (Confluent, KafkaPython, AioKafka)}

__all__ = [
    "CLIENTS",
    "CODECS",
    "AioKafka",
    "Client",
    "ClientError",
    "Confluent",
    "KafkaPython",
    "Message",
    "Reader",
    "Record",
]
