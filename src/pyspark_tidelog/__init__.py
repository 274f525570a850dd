"""Makes `format("tidelog")` known to Spark, which looks for packages of this kind of name by itself."""

from tidelog.spark.source import TidelogDataSource as DefaultSource

__all__ = ["DefaultSource"]
