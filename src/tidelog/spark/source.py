"""`format("tidelog")`: reads and writes topics as tables, with Spark's Python Data Source API.

The driver plans; the tasks read and write. This module must be cheap to import: Spark starts a new process for each
step of planning. A stream keeps its process, and with it the reader; what the reader remembers is only a cache, since
Spark passes all offsets in and out.
"""

import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    Filter,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from tidelog.client import Client
from tidelog.errors import InvalidInput
from tidelog.spark import offsets
from tidelog.spark.clients import connect_patiently
from tidelog.spark.columns import check_schema, default_schema
from tidelog.spark.filters import Bounds, narrowed
from tidelog.spark.offsets import KnownTopics, OffsetRange, Offsets
from tidelog.spark.options import ReadSettings, read_settings, write_settings

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter

_PUSHDOWN_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"


class TidelogDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "tidelog"

    def schema(self) -> str:
        """Options that only batch queries may set are checked when the query is planned."""
        return default_schema(read_settings(_without_end(self.options), streaming=True))

    def reader(self, schema: StructType) -> DataSourceReader:
        settings = read_settings(self.options, streaming=False)
        check_schema(schema, settings)
        # Spark refuses a reader with `pushFilters` while its conf for it is off; only the calling process tells
        # which.
        main = getattr(sys.modules.get("__main__"), "__spec__", None)
        pushes = _PUSHDOWN_WORKER in sys.modules or getattr(main, "name", None) == _PUSHDOWN_WORKER
        return (TidelogFilteringReader if pushes else TidelogReader)(settings, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  (Spark's name)
        settings = read_settings(self.options, streaming=True)
        check_schema(schema, settings)
        return TidelogStreamReader(settings, schema)

    def writer(self, schema: StructType, overwrite: bool) -> "DataSourceWriter":
        from tidelog.spark.sink import TidelogWriter, check_columns

        settings = write_settings(self.options, streaming=False)
        if overwrite:
            raise InvalidInput('a topic cannot be overwritten, only appended to: write with .mode("append")')
        return TidelogWriter(settings, check_columns(schema, settings))

    def streamWriter(self, schema: StructType, overwrite: bool) -> "DataSourceStreamWriter":  # noqa: N802, ARG002
        from tidelog.spark.sink import TidelogStreamWriter, check_columns

        settings = write_settings(self.options, streaming=True)
        return TidelogStreamWriter(settings, check_columns(schema, settings))


def _without_end(options: Any) -> dict[str, str]:  # noqa: ANN401  (Spark's mapping)
    return {name: value for name, value in options.items() if not name.lower().startswith("ending")}


@dataclass
class TaskRange(InputPartition):
    range: OffsetRange


class _Reading:
    """The part of both readers that runs in tasks. Created on the driver and pickled to the workers."""

    def __init__(self, settings: ReadSettings, schema: StructType) -> None:
        self._settings = settings
        self._schema = schema

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        if not isinstance(partition, TaskRange):
            return iter(())  # Spark's placeholder if there are no partitions
        from tidelog.spark.reading import read_range

        return read_range(self._settings, self._schema, partition.range)


class TidelogReader(_Reading, DataSourceReader):
    def partitions(self) -> list[InputPartition]:
        return self._plan(Bounds())

    def _plan(self, bounds: Bounds) -> list[InputPartition]:
        settings = self._settings
        with connect_patiently(settings.bootstrap, settings.client) as client:
            known = offsets.subscribed(client, settings.subscription)
            offsets.expect_all(settings.subscription, known)
            # Look up the end last: while the topic grows, an earlier lookup could give an end before the start.
            start = offsets.starting(client, settings, known.partitions)
            end = offsets.ending(client, settings, known.partitions)
            start, end = self._within_log(client, start, end)
            start, end = narrowed(client, bounds, start, end)
            return _tasks(client, settings, known, start, end)

    def _within_log(self, client: Client, start: Offsets, end: Offsets) -> tuple[Offsets, Offsets]:
        """Cut to what the log has: offsets given by the user may be outside of it."""
        settings = self._settings
        first = offsets.earliest(client, start)
        last = offsets.latest(client, start, read_committed=settings.fetch.read_committed)
        start, end, missing = offsets.within_log(settings, start, end, first, last)
        if missing:
            _lost(settings, "; ".join(missing))
        return start, end


class TidelogFilteringReader(TidelogReader):
    """Reads fewer records if filters allow. Spark still applies all filters, so they need not be exact here."""

    def __init__(self, settings: ReadSettings, schema: StructType) -> None:
        super().__init__(settings, schema)
        self._bounds = Bounds()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  (Spark's name)
        for one in filters:
            self._bounds.add(one)
        return filters

    def partitions(self) -> list[InputPartition]:
        return self._plan(self._bounds)


class TidelogStreamReader(_Reading, DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, settings: ReadSettings, schema: StructType) -> None:
        super().__init__(settings, schema)
        self._client: Client | None = None
        self._target: Offsets | None = None
        self._known: KnownTopics | None = None
        self._latest: Offsets | None = None
        self._triggered_at = time.monotonic()

    def __getstate__(self) -> dict[str, Any]:
        return {"_settings": self._settings, "_schema": self._schema}

    # --- offsets ---------------------------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        known = self._look()
        offsets.expect_all(self._settings.subscription, known)
        return offsets.to_json(offsets.starting(self._connected(), self._settings, known.partitions))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        settings = self._settings
        if settings.max_per_trigger is not None:
            return ReadMaxRows(settings.max_per_trigger)
        if settings.min_per_trigger is not None:
            return ReadMinRows(settings.min_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._ask_latest()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        before = offsets.from_json(start)
        end = dict(self._target) if self._target is not None else self._ask_latest()
        gone = [str(partition) for partition in before if partition not in end]
        if gone:
            _lost(self._settings, f"{', '.join(gone)} was deleted while the query reads it")
        begin = self._with_new(before, end)
        end = {partition: offset for partition, offset in end.items() if partition in begin}
        if isinstance(limit, ReadAllAvailable):
            return offsets.to_json(end)
        if self._is_too_little(begin, end, limit):
            return start
        if isinstance(limit, ReadMaxRows):
            end = offsets.limited(begin, end, limit.max_rows)
        self._triggered_at = time.monotonic()
        return offsets.to_json(end)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return None if self._latest is None else offsets.to_json(self._latest)

    def _is_too_little(self, begin: Offsets, end: Offsets, limit: ReadLimit) -> bool:
        least = limit.min_rows if isinstance(limit, ReadMinRows) else self._settings.min_per_trigger
        if least is None or self._target is not None:
            return False
        waited_ms = (time.monotonic() - self._triggered_at) * 1000
        return offsets.available(begin, end) < least and waited_ms < self._settings.max_trigger_delay_ms

    def _with_new(self, before: Offsets, end: Offsets) -> Offsets:
        """Partitions that were added later are read from their beginning."""
        new = [partition for partition in end if partition not in before]
        first = offsets.earliest(self._connected(), new) if new else {}
        for partition, offset in first.items():
            if offset > 0:
                _lost(self._settings, f"{partition} is new and begins at offset {offset}, not 0")
        return before | first

    # --- a micro-batch ---------------------------------------------------------------------------------------------

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The batch may be one of an earlier run: topics may have changed since its offsets were stored."""
        last = offsets.from_json(end)
        if not last or start == end:
            return []
        client = self._connected()
        known = self._known or self._look()
        if not set(last) <= set(known.partitions):
            known = self._look()
            gone = [str(partition) for partition in last if partition not in known.partitions]
            if gone:
                _lost(self._settings, f"{', '.join(gone)} was deleted")
            last = {partition: offset for partition, offset in last.items() if partition in known.partitions}
        begin = self._with_new(offsets.from_json(start), last)
        for partition, offset in last.items():
            if offset < begin[partition]:
                _lost(self._settings, f"{partition} went back from offset {begin[partition]} to {offset}")
        return _tasks(client, self._settings, known, begin, last)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing to do: Spark stores the offsets in its checkpoint."""

    def stop(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    # --- the broker ------------------------------------------------------------------------------------------------

    def _connected(self) -> Client:
        if self._client is None:
            self._client = connect_patiently(self._settings.bootstrap, self._settings.client)
        return self._client

    def _look(self) -> KnownTopics:
        before, self._known = self._known, offsets.subscribed(self._connected(), self._settings.subscription)
        for topic, topic_id in self._known.ids.items():
            if before is not None and before.ids.get(topic, topic_id) != topic_id:
                _lost(self._settings, f"the topic {topic} was deleted and created again")
        return self._known

    def _ask_latest(self) -> Offsets:
        known = self._look()
        committed = self._settings.fetch.read_committed
        self._latest = offsets.latest(self._connected(), known.partitions, read_committed=committed)
        return self._latest


def _tasks(
    client: Client, settings: ReadSettings, known: KnownTopics, start: Offsets, end: Offsets
) -> list[InputPartition]:
    wanted = [partition for partition in end if start[partition] < end[partition]]
    direct = offsets.direct_logs(client, settings, known, wanted)
    if settings.read == "files" and (missing := [p for p in wanted if p not in direct]):
        raise InvalidInput(
            f"read=files: the location of the files of {', '.join(map(str, missing))} is unknown; use read=broker"
        )
    ranges = [
        OffsetRange(*partition, start[partition], end[partition], known.ids[partition.topic], direct.get(partition))
        for partition in wanted
    ]
    return [TaskRange(part) for part in offsets.share_out(ranges, settings)]


def _lost(settings: ReadSettings, what: str) -> None:
    if settings.fail_on_data_loss:
        raise offsets.data_loss(what)
    warnings.warn(f"{what}; continuing, because failOnDataLoss is false", stacklevel=2)
