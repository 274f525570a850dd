"""Makes `format("tidelog")` known to Spark, which imports packages named `pyspark_*` by itself."""

from tidelog.spark.source import TidelogDataSource as DefaultSource

__all__ = ["DefaultSource"]
