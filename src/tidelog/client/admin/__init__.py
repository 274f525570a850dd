"""Looking at a cluster from outside, and changing it.

topics          topics, their configs and records, and the cluster itself
groups          consumer groups and their committed offsets
transactions    transactions of other producers: listing, ending, fencing
log_dirs        where brokers keep partitions on disk
"""
