"""Topics are tables: Spark reads and writes them (`format("tidelog")`), SQL queries them, pipelines run on them.

    source, columns, options        the data source and its options, on the driver
    offsets, filters                which records a query reads, and which task reads which
    reading, values                 reading in a task: batches to Arrow, from the broker or from files
    sink                            writing, in tasks and on the driver
    views                           topics as views, for SQL
    session, java                   a Spark session with everything it needs
    pipelines                       declared pipelines

These modules import pyspark; this one does not. docs/spark.md is the manual.
"""
