"""The features of KIP-584 and their levels: those of a Kafka 4.2 with the abilities of Tidelog."""

from typing import NamedTuple


class Feature(NamedTuple):
    """The range of supported levels, and the level in force; 0: off."""

    lowest: int
    highest: int
    level: int


FEATURES = {
    "eligible.leader.replicas.version": Feature(0, 0, 0),
    "group.version": Feature(0, 1, 1),  # the consumer protocol, KIP-848
    "kraft.version": Feature(0, 0, 0),
    "metadata.version": Feature(7, 29, 29),  # 3.3-IV3 to 4.2-IV1
    "share.version": Feature(0, 0, 0),
    "streams.version": Feature(0, 0, 0),
    "transaction.version": Feature(0, 2, 2),  # transactions of version 2, KIP-890
}
