"""Work over whole topics, each a command: archive, replay, audit, profile.

    workers     units of work in processes of this machine, or in Spark's Python workers
    archive     topics to Parquet or Delta, each record once
    copying     records to topics, each once, even across crashes: for replay and dead letters
    audit       checks every CRC and finds every gap
    profile     statistics of a topic; page renders them as HTML

The data stays in Python workers, in Arrow columns. A single machine needs no JVM for that, so a job runs in processes
unless it is given a Spark master. docs/jobs.md is the manual.
"""
