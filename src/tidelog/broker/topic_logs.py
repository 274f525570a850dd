"""`TopicLogs`: which of the stored logs belong to topics, and the removal of those that do not.

Deleting a topic removes its row and, in the same write, records its id (`DeletedTopicRow`) until its logs are
removed. So every start can tell what to do with a stored log:

    its topic exists                        keep it
    its id is recorded as deleted           remove it: the removal was interrupted or failed
    its id is unknown, it has no records    remove it: a crash interrupted the creation of the topic
    its id is unknown, it has records       leave it and report it: the metadata may have been replaced
    it has the name of a topic, but no id   leave it and report it

Earlier versions stored logs by the names of topics. The first start of this version assigns them to the ids of the
existing topics, and records that it did (`LAYOUT`). From then on logs without an id belong to no topic, even if a
topic of that name is created.
"""

import asyncio
from collections.abc import Iterable

import structlog

from tidelog.broker.topics import Topic
from tidelog.broker.writes import Writes
from tidelog.errors import TidelogError
from tidelog.metadata.rows import ClusterRow, DeletedTopicRow
from tidelog.metadata.store import Delete, MetadataStore, Put
from tidelog.model import TopicIdentity
from tidelog.storage.log import LogStore

LAYOUT = "logs.layout"
BY_ID = "topic-id"

log = structlog.get_logger("tidelog.broker")


class TopicLogs:
    """Create it inside a running event loop; `close` it before the metadata store and the logs."""

    def __init__(self, logs: LogStore, metadata: MetadataStore) -> None:
        self._logs = logs
        self._metadata = metadata
        self._writes = Writes(metadata)
        self._removing: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def adopt(self, topics: Iterable[Topic]) -> None:
        """Take over the logs of an earlier version. Call it before the first log is opened. An error must abort the
        start: otherwise a topic would be opened without its records."""
        facts = {row.name: row.value for row in await self._metadata.load(ClusterRow)}
        if LAYOUT not in facts:
            adopted = await self._logs.adopt([identity(topic) for topic in topics])
            await self._writes.decided([Put(ClusterRow(LAYOUT, BY_ID))])
            if adopted:
                log.info("logs of an earlier version are now stored by topic id", topics=adopted)

    async def clear(self, topics: Iterable[Topic]) -> None:
        """Call it after a start: remove the logs of deleted topics, and report logs that belong to no topic."""
        known = {topic.topic_id for topic in topics}
        known.update(await self.remove_deleted())
        for stray in await self._logs.strays(known):
            if stray.topic is not None and stray.is_unused:
                self.remove(stray.topic)
            else:
                log.warning("a directory belongs to no topic and is left as it is", directory=stray.place)

    async def remove_deleted(self) -> list[bytes]:
        """Remove the logs of topics that are recorded as deleted. Returns their ids."""
        rows = await self._metadata.load(DeletedTopicRow)
        for row in rows:
            self.remove(TopicIdentity(row.name, row.topic_id))
        return [row.topic_id for row in rows]

    def remove(self, topic: TopicIdentity) -> None:
        """Remove the logs of a topic in the background. They must have been released."""
        if self._is_closed:
            return  # the next start removes them
        task = asyncio.create_task(self._remove(topic))
        self._removing.add(task)
        task.add_done_callback(self._removing.discard)

    async def _remove(self, topic: TopicIdentity) -> None:
        try:
            await self._logs.delete(topic)
            await self._writes.decided([Delete(DeletedTopicRow, (topic.topic_id,))])
        except TidelogError as error:
            log.error(
                "the data of a deleted topic could not be removed; the next start tries again",
                topic=topic.name,
                reason=str(error),
            )

    async def close(self) -> None:
        """Stop removing. The next start removes what is left."""
        self._is_closed = True
        tasks = list(self._removing)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def identity(topic: Topic) -> TopicIdentity:
    return TopicIdentity(topic.name, topic.topic_id)
