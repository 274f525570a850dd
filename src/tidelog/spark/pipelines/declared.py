"""The tables that a pipeline declares and the flows into them, from Spark's graph of the definitions.

Spark Connect has no API for this, so the graph is read in the JVM of this process. With a remote server that is not
possible.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from tidelog.errors import InvalidInput
from tidelog.spark.pipelines.places import place_of

FILE_FORMATS = frozenset({"parquet", "orc", "json", "csv", "text", "avro", "xml"})
"""Written by Spark's file sink, which records the numbers of committed batches in the table's `_spark_metadata`."""
_SESSION_CATALOG = "spark_catalog"
_RESET = "pipelines.reset.allowed"


@dataclass(frozen=True)
class DeclaredTable:
    catalog: str
    database: str
    name: str
    is_streaming: bool
    """Each run appends new rows, according to the checkpoints of its flows; other tables are recomputed in each
    run."""
    is_resettable: bool
    """May be recomputed: `pipelines.reset.allowed` is not false."""
    format: str
    flows: tuple[str, ...]
    location: str

    @property
    def is_of_files(self) -> bool:
        return self.is_in_session_catalog and self.format in FILE_FORMATS

    @property
    def is_in_session_catalog(self) -> bool:
        """If false, another catalog decides where it is and how it is written, and `location` is empty."""
        return self.catalog == _SESSION_CATALOG

    @property
    def full_name(self) -> str:
        return f"{self.catalog}.{self.database}.{self.name}"

    def is_called(self, name: str) -> bool:
        return name in (self.name, f"{self.database}.{self.name}", self.full_name)

    def checkpoint(self, storage: str, flow: str | None = None) -> str:
        root = f"{storage.rstrip('/')}/_checkpoints/{self.catalog}/{self.database}/{self.name}"
        return root if flow is None else f"{root}/{flow}"


def declared_tables(classic: Any, session: Any, graph_id: str) -> list[DeclaredTable]:  # noqa: ANN401
    """The tables of a graph that was defined through `session`, a Spark Connect session in the JVM of `classic`."""
    jvm = classic._jvm
    service = getattr(getattr(jvm.org.apache.spark.sql.connect.service, "SparkConnectService$"), "MODULE$")
    key = jvm.org.apache.spark.sql.connect.service.SessionKey(session.client._user_id or "", session.session_id)
    nothing = getattr(getattr(jvm.scala, "None$"), "MODULE$")
    holder = service.sessionManager().getIsolatedSession(key, nothing)
    graph = holder.dataflowGraphRegistry().getDataflowGraphOrThrow(graph_id).toDataflowGraph()
    flows: dict[str, list[str]] = {}
    for flow in _all(graph.flows()):
        flows.setdefault(flow.destinationIdentifier().unquotedString(), []).append(flow.identifier().table())
    catalog = classic._jsparkSession.sessionState().catalog()
    default_format = classic.conf.get("spark.sql.sources.default")
    found = []
    for table in _all(graph.tables()):
        identifier, properties = table.identifier(), table.properties()
        declared = DeclaredTable(
            identifier.catalog().get(),
            identifier.database().get(),
            identifier.table(),
            table.isStreamingTable(),
            not (properties.contains(_RESET) and properties.apply(_RESET).lower() == "false"),
            (table.format().get() if table.format().isDefined() else default_format).lower(),
            tuple(sorted(flows.get(identifier.unquotedString(), ()))),
            "",
        )
        if declared.is_in_session_catalog:
            known = catalog.tableExists(identifier)
            place = catalog.getTableMetadata(identifier).location() if known else catalog.defaultTablePath(identifier)
            declared = replace(declared, location=place_of(jvm, place))
        found.append(declared)
    return sorted(found, key=lambda table: (table.database, table.name))


def check_flows(tables: list[DeclaredTable]) -> None:
    """Raises if several flows write to one table of files. Spark's file sink numbers the batches of a table, not of
    its flows: it takes a batch of the second flow for one that it has written already, and silently leaves out its
    rows."""
    for table in tables:
        if table.is_streaming and table.is_of_files and len(table.flows) > 1:
            raise InvalidInput(
                f"{len(table.flows)} flows write to the table {table.name} ({', '.join(table.flows)}), and Spark "
                f"would lose rows of all but one: a table of {table.format} files can have only one flow. Declare a "
                "table for each flow and a view of all of them (SELECT ... UNION ALL SELECT ...), or combine the "
                "streams in one flow with DataFrame.union"
            )


def full_names(tables: list[DeclaredTable], names: Iterable[str], *, unfinished: Collection[str]) -> list[str]:
    """The full names of the tables that the user named, or that a killed run left `unfinished` and are still
    declared."""
    found = {name: [table.full_name for table in tables if table.is_called(name)] for name in names}
    unknown = [name for name, called_so in found.items() if not called_so and name not in unfinished]
    if unknown:
        there = ", ".join(table.name for table in tables) or "none"
        raise InvalidInput(f"the pipeline has no table {', '.join(unknown)}; there are {there}")
    return sorted({full for called_so in found.values() for full in called_so})


def _all(sequence: Any) -> Iterator[Any]:  # noqa: ANN401  (of Scala)
    iterator = sequence.iterator()
    while iterator.hasNext():
        yield iterator.next()
