"""Records on their way in.

producer, accumulator, partitioner   records, gathered into batches per partition
transactions                         a producer whose records are visible together or not at all
batch_sender                         batches that the caller has encoded, for Spark's tasks
identity                             producer ids, epochs and sequence numbers
produce_requests                     the one place that sends Produce requests
blocking                             the same for programs without an event loop
"""
