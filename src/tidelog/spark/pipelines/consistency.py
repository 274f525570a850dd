"""Checks before a run that each table and the checkpoint of the flow into it belong together.

The checkpoint has the number of the last batch of the flow; a table of files lists its batches in `_spark_metadata`.
Spark never compares them, and if they differ it silently leaves out rows and reports "completed":

    batches in the table    expected: those that the checkpoint has committed, and perhaps the one it has planned
    fewer                   data was deleted; the flow would not read it again
    more                    the checkpoint was deleted or is another flow's; Spark would skip its first batches

Both are errors with advice. A table whose files exist but which Spark's catalog does not know was created by a killed
run, or its entry in tables.json was lost: it is taken over with its checkpoint, or cleared if no batch was ever
committed to it.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, urlparse

from tidelog.errors import InvalidInput
from tidelog.spark.pipelines import tables
from tidelog.spark.pipelines.declared import DeclaredTable
from tidelog.spark.pipelines.places import Places

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NOTHING = -1
_SAFE_IN_JAVA = "/~!$&'()*+,;=:@"  # not escaped in the path of a java.net.URI


@dataclass(frozen=True)
class Batches:
    """Numbers of the last micro-batches; -1: none."""

    planned: int
    committed: int
    written: int
    """To the table."""

    @property
    def agree(self) -> bool:
        return self.committed <= self.written <= self.planned


class Consistency:
    def __init__(self, spark: "SparkSession", storage: str, run_command: str) -> None:
        self._spark = spark
        self._places = Places(spark)
        self._storage = storage
        self._run_command = run_command
        """The command that runs the project, for advice in errors."""

    def check(self, declared: list[DeclaredTable], *, ours: Collection[str], cleared: Collection[str]) -> None:
        """Raises InvalidInput if a table and its checkpoint do not belong together, or if the location of a new table
        has files and is not one of `ours`. Tables that are `cleared` in this run may be in any state."""
        problems = []
        recomputed: list[str] = []
        for table in declared:
            if self._is_lost_sight_of(table) and table.location not in ours:
                problems.append(
                    f"the table {table.name} cannot be created in {table.location}: it has files that this project "
                    "did not make. Move them away, or set another folder for tables with spark.sql.warehouse.dir"
                )
            elif table.is_streaming and table.full_name not in cleared:
                changing = self._changing_source(table, [one for one in declared if one.full_name in cleared])
                problem = self._problem_of(table)
                if problem is not None:
                    problems.append(problem)
                    recomputed.append(table.name)
                elif changing is not None:
                    problems.append(
                        f"the table {table.name} streams from {changing.name} and would get its rows twice if only "
                        f"{changing.name} is recomputed"
                    )
                    recomputed += [changing.name, table.name]
        if recomputed:
            options = " ".join(f"--recompute {name}" for name in dict.fromkeys(recomputed))
            problems.append(f"to recompute from the data that the sources still have: {self._run_command} {options}")
        if problems:
            raise InvalidInput("; ".join(problems))

    def take_over(self, declared: Iterable[DeclaredTable], *, cleared: Collection[str]) -> None:
        """Declare tables whose files exist but which the catalog does not know. If nothing was committed to a table,
        or it will be recomputed, its files are deleted instead: Spark does not create a table over existing files."""
        for table in declared:
            if not self._is_lost_sight_of(table):
                continue
            is_empty = table.is_of_files and self._last_written(table) == _NOTHING
            if is_empty or not table.is_streaming or table.full_name in cleared:
                self._places.delete(table.location)
            else:
                tables.adopt(self._spark, table.database, table.name, table.format, table.location)

    def _is_lost_sight_of(self, table: DeclaredTable) -> bool:
        there = self._places.exists(table.location)
        return there and not tables.is_known(self._spark, table.database, table.name)

    def _problem_of(self, table: DeclaredTable) -> str | None:
        for flow in table.flows:
            batches = self._batches(table, flow)
            if not table.is_of_files:  # its batches cannot be listed
                if batches.committed > _NOTHING and not self._places.exists(table.location):
                    return self._data_is_gone(table, flow)
            elif batches.written < batches.committed:
                return self._data_is_gone(table, flow)
            elif batches.written > batches.planned:
                return self._checkpoint_is_gone(table, flow)
        return None

    def _changing_source(self, table: DeclaredTable, cleared: list[DeclaredTable]) -> DeclaredTable | None:
        """The source table, if one of them is recomputed: the flow knows which files it has read, and would read
        those of the recomputed table again."""
        for flow in table.flows:
            sources = f"{self._newest(table, flow)}/sources"
            for number in self._places.names_in(sources):
                for source in cleared:
                    path = quote(urlparse(source.location).path, safe=_SAFE_IN_JAVA)
                    if self._places.mention(f"{sources}/{number}", f"{path}/"):
                        return source
        return None

    def _newest(self, table: DeclaredTable, flow: str) -> str:
        """The current checkpoint: a flow that was recomputed has several, with numbers."""
        root = table.checkpoint(self._storage, flow)
        versions = [int(name) for name in self._places.names_in(root) if name.isdigit()]
        return f"{root}/{max(versions, default=0)}"

    def _batches(self, table: DeclaredTable, flow: str) -> Batches:
        newest = self._newest(table, flow)
        planned, committed = (self._last_number(f"{newest}/{log}") for log in ("offsets", "commits"))
        return Batches(planned, committed, self._last_written(table))

    def _last_written(self, table: DeclaredTable) -> int:
        return self._last_number(f"{table.location}/_spark_metadata")

    def _last_number(self, folder: str) -> int:
        """The highest number among files named by numbers; `9.compact` contains those up to 9."""
        stems = [name.removesuffix(".compact") for name in self._places.names_in(folder)]
        return max((int(stem) for stem in stems if stem.isdigit()), default=_NOTHING)

    def _data_is_gone(self, table: DeclaredTable, flow: str) -> str:
        return (
            f"data of the table {table.name} is missing in {table.location}, and the flow {flow} would not read it "
            f"again, because its checkpoint in {table.checkpoint(self._storage, flow)} is later; restore the data, "
            "or recompute the table"
        )

    def _checkpoint_is_gone(self, table: DeclaredTable, flow: str) -> str:
        others = [
            other
            for other in self._places.names_in(table.checkpoint(self._storage))
            if other != flow and self._batches(table, other).agree
        ]
        if others:
            return (
                f"the table {table.name} was written by the flow {others[0]}; the flow {flow} would start from the "
                f"beginning and leave out rows; rename it to {others[0]}, or recompute the table"
            )
        return (
            f"the table {table.name} has data in {table.location}, but the checkpoint of its flow {flow} is missing "
            f"in {table.checkpoint(self._storage, flow)}; the flow would start from the beginning and leave out "
            "rows; restore the checkpoint, or recompute the table"
        )
