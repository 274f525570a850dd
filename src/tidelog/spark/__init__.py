"""Topics are tables: Spark reads and writes them (`format("tidelog")`), SQL asks them, pipelines run on them.

    source, columns, options        what Spark asks for, on the driver
    offsets, filters                which records a query reads, and which task reads which
    reading, segments, values       what a task does to read: batches to Arrow, from the broker or from files
    sink                            what a task does to write
    views                           topics as views, for SQL
    session, java                   a Spark session with everything it needs
    pipelines                       declared pipelines

pyspark is imported by these modules and not by this one. docs/spark.md shows how it is used.
"""
