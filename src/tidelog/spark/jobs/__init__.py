"""Work over whole topics, each a command: archive, replay, audit, profile.

    workers     units of work in processes of this machine, or in Spark's Python workers
    archive     topics to Parquet or Delta, each record once
    copying     records to topics, each once, also over crashes: for replay and for dead letters
    audit       every CRC, every gap
    profile     what is in a topic; page draws it

The bytes stay in Python workers, in Arrow columns, whoever starts them. One machine needs no JVM for that, so a job
takes processes unless it is given a Spark master. docs/jobs.md shows how they are used.
"""
