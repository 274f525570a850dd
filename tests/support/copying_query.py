"""A streaming query with its driver in a separate process: copies all records of the topic `in` to `out`, exactly
once. `python -m tests.support.copying_query BOOTSTRAP CHECKPOINT LOG MAX_OFFSETS`."""

import sys
from pathlib import Path

from tidelog.spark.session import spark_session


def main(bootstrap: str, checkpoint: str, log: str, most: str) -> None:
    spark = spark_session("copy", master="local[2,4]", log_file=Path(log))
    servers = {"kafka.bootstrap.servers": bootstrap}
    rows = (
        spark.readStream.format("tidelog")
        .options(**servers, subscribe="in", startingOffsets="earliest", maxOffsetsPerTrigger=most)
        .load()
    )
    query = (
        rows.selectExpr("key", "value")
        .writeStream.format("tidelog")
        .options(**servers, topic="out", delivery="exactly-once", checkpointLocation=checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
