"""The process from which Spark forks its Python workers, with the modules that they need already loaded.

A worker that reads or writes topics needs pyarrow and the compiled kernels, which take a second or two to load. They
are loaded here, before the first fork, so that all workers have them. Nothing here starts a thread: threads do not
survive a fork.

Spark runs the garbage collector after every task. It would scan everything loaded here each time, which takes about
as long as reading a hundred thousand rows. `gc.freeze` excludes these objects before the first fork; as their pages
are then not written to, workers also share them.

Spark runs this as `python -m tidelog.spark.daemon MODULE`, set by its conf `spark.python.daemon.module`.
"""

import contextlib
import gc
import runpy
import sys


def preload(worker_module: str) -> None:
    """Load what workers of this kind need. If that fails, workers load it themselves."""
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
