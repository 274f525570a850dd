"""Tables that a catalog in memory is told of again: they are what they were, wherever they are."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.brokers import unique
from tidelog.errors import InvalidInput, TidelogError
from tidelog.spark.pipelines.places import Places
from tidelog.spark.pipelines.tables import Memory, adopt, facts, is_known, recall

pytestmark = pytest.mark.slow


def known_of(spark: SparkSession, name: str) -> dict[str, object]:
    (known,) = [known for known in facts(spark) if known["table"] == name]
    return known


def test_a_table_is_recalled_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    database, name = unique("shop").replace("-", "_"), unique("table").replace("-", "_")
    folder = tmp_path / "it's a `place`"
    rows = spark.sql("SELECT id, id % 2 AS half FROM range(10)")
    rows.write.partitionBy("half").parquet(str(folder))
    known = {
        "database": database,
        "table": name,
        "schema": {
            "type": "struct",
            "fields": [
                {"name": "id", "type": "long", "nullable": True, "metadata": {}},
                {"name": "half", "type": "long", "nullable": True, "metadata": {}},
            ],
        },
        "provider": "parquet",
        "location": f"file:{folder}",
        "partitioned_by": ["half"],
        "properties": {"owner's": "note"},
    }
    memory = Memory(tmp_path / "tables.json")
    memory.keep(tables=[known, {**known, "table": "gone", "location": f"{known['location']}-gone"}])
    try:
        for _ in range(2):  # what is known is left alone
            recall(spark, memory)
        assert spark.table(f"{database}.{name}").where("half = 1").count() == 5
        assert not is_known(spark, database, "gone")
        found = known_of(spark, name)
        assert {**found, "properties": None} == {**known, "properties": None}
        assert found["properties"]["owner's"] == "note"  # type: ignore[index]
        spark.sql(f"TRUNCATE TABLE {database}.{name}")  # which Spark does only with a table of its own
        assert spark.table(f"{database}.{name}").count() == 0
        with pytest.raises(InvalidInput, match=r"not in file:/elsewhere, .* remove .*tables.json and run with"):
            recall(spark, memory, within="file:/elsewhere")
    finally:
        spark.sql(f"DROP DATABASE IF EXISTS {database} CASCADE")


def test_a_table_is_adopted_by_its_files(spark: SparkSession, tmp_path: Path) -> None:
    name, folder = unique("table").replace("-", "_"), tmp_path / "some files"
    spark.sql("SELECT id, CAST(id AS string) AS text, id % 2 AS half FROM range(10)").write.partitionBy(
        "half"
    ).parquet(str(folder))
    adopt(spark, "default", name, "parquet", f"file:{folder}")
    try:
        assert spark.table(name).where("half = 0").count() == 5
        assert known_of(spark, name)["partitioned_by"] == ["half"]
        assert Places(spark).exists(f"file:{folder}")
    finally:
        spark.sql(f"DROP TABLE {name}")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(TidelogError, match="Spark cannot infer its columns"):
        adopt(spark, "default", name, "parquet", f"file:{empty}")


def test_places_are_looked_at_and_cleared(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    (folder / "0").mkdir(parents=True)
    (folder / "0" / "log").write_text("v1\nname of a file\n")
    places = Places(spark)
    assert places.names_in(f"file:{folder}") == ["0"]
    assert places.names_in(f"file:{tmp_path}/nowhere") == []
    assert places.mention(f"file:{folder}/0", "name of")
    assert not places.mention(f"file:{folder}/0", "another name")
    places.delete(f"file:{folder}")
    assert not folder.exists()
    assert not places.exists(f"file:{folder}")
