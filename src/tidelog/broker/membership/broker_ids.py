"""Ids for brokers that were given none (`node-id = auto`)."""

from tidelog.errors import OutcomeUnknown
from tidelog.metadata.registry import Registry
from tidelog.metadata.store import MetadataStore

NEXT_BROKER_ID = "next.broker.id"
FIRST_AUTOMATIC_ID = 1001
"""As in Kafka: smaller ids are for brokers whose id is configured."""


async def automatic_broker_id(metadata: MetadataStore, registry: Registry) -> int:
    """A new id at each call, so nothing has to be remembered: a broker keeps no state of its own. An id that was
    configured for a broker that is up is left out."""
    taken = {member.broker_id for member in (await registry.changes_since(-1)).brokers}
    while True:
        try:
            chosen = FIRST_AUTOMATIC_ID + await metadata.reserve(NEXT_BROKER_ID, 1)
        except OutcomeUnknown:  # a number may be lost, which does no harm
            continue
        if chosen not in taken:
            return chosen
