"""Declared pipelines on Tidelog's topics: functions for definitions files, and the work of `tidelog pipeline`.

    definitions     `topic` and `to_topic`, for the definitions files of a project
    letters         the format of dead letters: the unchanged record, and headers with the error
    project         the folder of a project: its spec, and the list of its runs
    engine          starts Spark for pipelines, and runs a project
    declared        the tables that the definitions declare, and the flows into them
    tables          remembers the tables of a project for the next process, without a metastore
    consistency     checks that tables and checkpoints belong together
    places          folders in any file system that Hadoop supports
    lock            one run of a project at a time
    progress        rows and lag during a run, from Spark's reports
    retrying        writes dead letters back to their topics

docs/pipelines.md is the manual.
"""

from tidelog.spark.pipelines.definitions import decode_json, to_topic, topic

__all__ = ["decode_json", "to_topic", "topic"]
