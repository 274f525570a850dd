"""Records on their way out.

consumer, fetcher, offsets           chosen partitions, from chosen offsets on
group, membership, assignor          a share of a group's partitions, by the classic protocol
committed                            the offsets that groups have committed
ranges                               raw batches of one range of a partition, for Spark's tasks
blocking                             streams for programs without an event loop
"""
