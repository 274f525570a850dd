"""Declared pipelines on Tidelog's topics: words for definitions files, and what `tidelog pipeline` does.

    definitions     `topic` and `to_topic`, for the definitions files of a project
    letters         what a dead letter is: the record as it was, and headers about what is wrong with it
    project         the folder: its spec, what is kept about its runs
    engine          a Spark that pipelines run on, and one run of them
    tables          the tables of a project known again in the next process, without a metastore
    progress        rows and lag while it runs, from what Spark reports
    retrying        dead letters played back

docs/pipelines.md shows how it is used.
"""

from tidelog.spark.pipelines.definitions import decode_json, to_topic, topic

__all__ = ["decode_json", "to_topic", "topic"]
