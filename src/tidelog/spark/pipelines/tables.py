"""Remembers the tables of a project for the next process, without a metastore, which costs seconds and locks.

Spark's in-memory catalog forgets its tables when the process ends, and refuses to create a table where files exist.
So a file of the project (`Memory`) stores where tables will be created, before Spark creates them, and what they are,
before the first row is written and again after the run. The next process declares them again, at the same location,
as managed tables (Spark clears only managed tables when it recomputes them). The beginning of a refresh is stored
until everything is cleared: checkpoints and tables are not cleared in one step, and a run in between would leave out
rows.
"""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

from tidelog.errors import InvalidInput, TidelogError
from tidelog.spark.pipelines.places import Places, place_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL_TABLES = "*"


class Memory:
    """The file. Each change is atomic, and durable when the method returns."""

    def __init__(self, file: Path) -> None:
        self.file = file
        content: Any = json.loads(file.read_text()) if file.exists() else {}
        if isinstance(content, list):  # earlier versions stored nothing but the tables
            content = {"tables": content}
        self.tables: list[dict[str, Any]] = content.get("tables", [])
        self.making: list[str] = content.get("making", [])
        """Locations of tables that a run was about to create; if it was killed, they may not be in `tables`."""
        self.refreshing: list[str] = content.get("refreshing", [])
        """Names of tables that must be recomputed, or ALL_TABLES, and may not be cleared yet."""

    def keep(
        self,
        *,
        tables: list[dict[str, Any]] | None = None,
        making: Iterable[str] | None = None,
        refreshing: Iterable[str] | None = None,
    ) -> None:
        self.tables = self.tables if tables is None else tables
        self.making = self.making if making is None else sorted(making)
        self.refreshing = self.refreshing if refreshing is None else sorted(refreshing)
        draft = self.file.with_suffix(".draft")
        with draft.open("w") as file:
            json.dump({"tables": self.tables, "making": self.making, "refreshing": self.refreshing}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, self.file)
        folder = os.open(self.file.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def facts(spark: Any) -> list[dict[str, Any]]:  # noqa: ANN401  (a classic session)
    """The tables in the catalog, in the form that `recall` needs."""
    catalog = spark._jsparkSession.sharedState().externalCatalog()
    known = []
    for database in _all(catalog.listDatabases()):
        for name in _all(catalog.listTables(database)):
            table = catalog.getTable(database, name)
            if table.tableType().name() == "VIEW":
                continue
            properties = table.properties()
            known.append(
                {
                    "database": database,
                    "table": name,
                    "schema": json.loads(table.schema().json()),
                    "provider": table.provider().get(),
                    "location": place_of(spark._jvm, table.location()),
                    "partitioned_by": _all(table.partitionColumnNames()),
                    "properties": {key: properties.apply(key) for key in _all(properties.keys().toSeq())},
                }
            )
    return known


def recall(spark: "SparkSession", memory: Memory, *, within: str | None = None) -> None:
    """Declare the tables again, except for those whose files no longer exist. `spark` is a session in this process's
    JVM. With `within`, a place that the whole cluster can reach, all tables must be inside it."""
    from pyspark.sql.types import StructType

    places = Places(spark)
    for known in memory.tables:
        database, table, location = known["database"], known["table"], known["location"]
        if not places.exists(location):
            continue
        if within is not None and not is_within(location, within):
            raise InvalidInput(
                f"the table {table} is in {location}, from earlier runs, and not in {within}, which the cluster can "
                f"reach. To recompute everything there, remove {memory.file} and run with --full-refresh"
            )
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {_quoted(database)}")
        if is_known(spark, database, table):
            continue
        columns = StructType.fromJson(known["schema"]).toDDL()
        partitions = ", ".join(_quoted(name) for name in known["partitioned_by"])
        _declare(
            spark, database, table, known["provider"], location, columns, partitions, known.get("properties", {})
        )


def adopt(spark: "SparkSession", database: str, table: str, provider: str, location: str) -> None:
    """Declare an unknown table from its files; Spark infers the columns."""
    try:
        _declare(spark, database, table, provider, location)
    except Exception as error:
        raise TidelogError(
            f"{location} has files of the table {table}, but Spark cannot infer its columns: "
            f"{str(error).splitlines()[0]}"
        ) from error


def is_known(spark: "SparkSession", database: str, table: str) -> bool:
    return spark.catalog.tableExists(f"{_quoted(database)}.{_quoted(table)}")


def is_within(location: str, folder: str) -> bool:
    one, other = urlparse(location), urlparse(folder)
    same = (one.scheme or "file", one.netloc) == (other.scheme or "file", other.netloc)
    return same and PurePosixPath(one.path).is_relative_to(other.path)


def _declare(
    spark: "SparkSession",
    database: str,
    table: str,
    provider: str,
    location: str,
    columns: str | None = None,
    partitions: str = "",
    properties: Mapping[str, str] | None = None,
) -> None:
    name = f"{_quoted(database)}.{_quoted(table)}"
    place = location.replace("\\", "\\\\").replace("'", "\\'")
    spark.sql(
        f"CREATE TABLE {name} "
        + (f"({columns}) " if columns is not None else "")
        + f"USING {provider} "
        + (f"PARTITIONED BY ({partitions}) " if partitions else "")
        + f"LOCATION '{place}'"
    )
    _own(spark, database, table, properties or {})
    if any(column.isPartition for column in spark.catalog.listColumns(name)):
        spark.sql(f"MSCK REPAIR TABLE {name}")  # after `_own`, which drops the table with its partitions


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _own(spark: Any, database: str, table: str, properties: Mapping[str, str]) -> None:  # noqa: ANN401
    """Turn an external table into a managed one at the same location, with its former properties. SQL cannot do
    it."""
    catalog = spark._jsparkSession.sharedState().externalCatalog()
    external = catalog.getTable(database, table)
    kinds = getattr(spark._jvm, "org.apache.spark.sql.catalyst.catalog.CatalogTableType$")
    assert external.tableType().name() == "EXTERNAL", "dropping a managed table would delete its files"
    fields = [external.productElement(index) for index in range(external.productArity())]
    names = [external.productElementName(index) for index in range(external.productArity())]
    fields[names.index("tableType")] = getattr(kinds, "MODULE$").MANAGED()
    kept = external.properties()
    for key, value in properties.items():
        kept = kept.updated(key, value)
    fields[names.index("properties")] = kept
    catalog.dropTable(database, table, True, False)
    catalog.createTable(external.copy(*fields), False)


def _all(sequence: Any) -> list[Any]:  # noqa: ANN401  (of Scala)
    return [sequence.apply(index) for index in range(sequence.length())]
