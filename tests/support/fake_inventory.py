"""`Inventory` over a `FakeDatabase`: what a tool sees of the brokers of a simulation."""

from collections.abc import Iterable

from tests.support.fake_order import FakeDatabase
from tidelog.storage.shared.inventory import Inventory, KnownObject, LogState, Totals, UsedRange
from tidelog.storage.shared.order import LogId


class FakeInventory(Inventory):
    def __init__(self, database: FakeDatabase) -> None:
        self._database = database

    async def totals(self) -> Totals:
        sizes = [one.size for one in self._database._objects.values() if one.dead_since is None]
        return Totals(len(self._database._logs), len(sizes), sum(sizes))

    async def logs(self, after: LogId, limit: int) -> list[LogState]:
        numbers = sorted(number for number in self._database._logs if number > after)[:limit]
        return [self._log(number) for number in numbers]

    async def objects(self, after: str, limit: int) -> list[KnownObject]:
        known = self._database._objects
        keys = sorted(key for key, one in known.items() if key > after and one.removed_since is None)
        return [self._object(key) for key in keys[:limit]]

    async def look(self, keys: Iterable[str]) -> dict[str, KnownObject]:
        return {key: self._object(key) for key in keys if key in self._database._objects}

    async def close(self) -> None:
        pass

    def _log(self, number: LogId) -> LogState:
        log = self._database._logs[number]
        topic, partition, clean = log.partition.topic, log.partition.number, log.cleaned.offset
        extents = [
            UsedRange(topic.name, topic.topic_id, partition, *extent[:5], clean_offset=clean)
            for extent in log.extents
        ]
        return LogState(number, topic.name, partition, log.start_offset, log.high_watermark, clean, extents)

    def _object(self, key: str) -> KnownObject:
        one = self._database._objects[key]
        extents = [extent for number in self._database._logs for extent in self._log(number).extents]
        used = sorted((extent for extent in extents if extent.key == key), key=lambda extent: extent.position)
        return KnownObject(key, one.size, one.dead_since, one.removed_since is not None, used)
