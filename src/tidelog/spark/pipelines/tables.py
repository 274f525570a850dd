"""The tables of a project, known again in the next process: without a metastore, which costs seconds and locks.

Spark's catalog in memory forgets its tables when the process ends, and then refuses to create one where files are
already. So after a run the statements that make the tables are kept in a file of the project, and before a run of the
next process they are declared again, at their place, as tables that are Spark's own (it empties only those when it
computes a materialized view anew).
"""

import json
import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

from tidelog.errors import InvalidInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def remember(spark: "SparkSession", file: Path) -> None:
    """Write down what there is. Whole or not at all."""
    known = []
    for database in spark.catalog.listDatabases():
        for table in spark.catalog.listTables(database.name):
            if table.isTemporary or table.tableType == "VIEW":
                continue
            name = f"`{database.name}`.`{table.name}`"
            facts = {row[0]: row[1] for row in spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()}
            columns = spark.table(name).schema.json()
            known.append(
                {
                    "database": database.name,
                    "table": table.name,
                    "schema": json.loads(columns),
                    "provider": facts.get("Provider", "parquet"),
                    "location": facts["Location"],
                    "partitioned_by": [c.name for c in spark.catalog.listColumns(name) if c.isPartition],
                }
            )
    draft = file.with_suffix(".draft")
    draft.write_text(json.dumps(known, indent=1))
    os.replace(draft, file)


def recall(spark: "SparkSession", file: Path, *, within: str | None = None) -> None:
    """Declare them again, but for those whose files are gone. `spark` is a session of this process's JVM. With
    `within`, a place that a whole cluster reaches, all must be there."""
    if not file.exists():
        return
    from pyspark.sql.types import StructType

    for known in json.loads(file.read_text()):
        database, table = known["database"], known["table"]
        if not _exists(spark, known["location"]):
            continue
        if within is not None and not _is_within(known["location"], within):
            raise InvalidInput(
                f"the table {table} is in {known['location']}, from runs elsewhere, and not in {within}, which the "
                f"cluster reaches. To compute everything anew there, remove {file} and run with --full-refresh"
            )
        spark.sql(f"CREATE DATABASE IF NOT EXISTS `{database}`")
        if spark.catalog.tableExists(f"`{database}`.`{table}`"):
            continue
        columns = StructType.fromJson(known["schema"]).toDDL()
        partitions = ", ".join(f"`{name}`" for name in known["partitioned_by"])
        spark.sql(
            f"CREATE TABLE `{database}`.`{table}` ({columns}) USING {known['provider']} "
            + (f"PARTITIONED BY ({partitions}) " if partitions else "")
            + f"LOCATION '{known['location']}'"
        )
        if partitions:
            spark.sql(f"MSCK REPAIR TABLE `{database}`.`{table}`")
        _own(spark, database, table)


def _exists(spark: Any, location: str) -> bool:  # noqa: ANN401
    """In whatever file system it is."""
    place = spark._jvm.org.apache.hadoop.fs.Path(location)
    return bool(place.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()).exists(place))


def _is_within(location: str, folder: str) -> bool:
    one, other = urlparse(location), urlparse(folder)
    same = (one.scheme or "file", one.netloc) == (other.scheme or "file", other.netloc)
    return same and PurePosixPath(one.path).is_relative_to(other.path)


def _own(spark: Any, database: str, table: str) -> None:  # noqa: ANN401  (what lies behind the session)
    """An external table becomes a managed one where it is. SQL has no word for that."""
    catalog = spark._jsparkSession.sharedState().externalCatalog()
    external = catalog.getTable(database, table)
    kinds = getattr(spark._jvm, "org.apache.spark.sql.catalyst.catalog.CatalogTableType$")
    fields = [external.productElement(index) for index in range(external.productArity())]
    names = [external.productElementName(index) for index in range(external.productArity())]
    fields[names.index("tableType")] = getattr(kinds, "MODULE$").MANAGED()
    catalog.dropTable(database, table, True, False)
    catalog.createTable(external.copy(*fields), False)
