"""The process that Spark forks its Python workers from, with what they need loaded already.

A worker that reads or writes topics needs pyarrow and the compiled kernels, which take a second or two to load.
Loaded here, before the first fork, all workers have them. Nothing here starts a thread: threads do not survive a
fork.

Spark collects garbage after every task. All that was loaded here would be looked through each time, which takes about
as long as reading a hundred thousand rows. So it is set aside for good before the first fork; and then, its pages not
being written to, workers also share them.

Spark runs it as `python -m tidelog.spark.daemon MODULE`, by its conf `spark.python.daemon.module`.
"""

import contextlib
import gc
import runpy
import sys


def preload(worker_module: str) -> None:
    """What workers of this kind are going to need. Workers load for themselves whatever fails here."""
    with contextlib.suppress(Exception):
        import tidelog.spark.source

        if worker_module == "pyspark.worker":
            import pyarrow as pa

            import tidelog.spark.reading
            import tidelog.spark.sink  # noqa: F401
            from tidelog.records.columnar import ColumnEncoder, decode_columns, murmur2_partitions

            one = pa.record_batch({"key": [b"k"], "value": [b"v"]})
            for batch in ColumnEncoder(one, now_ms=0).batches():
                list(decode_columns(batch))
            murmur2_partitions(one.column("key"), 2)


if __name__ == "__main__":
    preload(sys.argv[1] if len(sys.argv) > 1 else "pyspark.worker")
    gc.collect()
    gc.freeze()
    runpy.run_module("pyspark.daemon", run_name="__main__")
