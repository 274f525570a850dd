"""The format of dead letters: the record's key, value and headers unchanged, and additional headers.

    tidelog.error        why the record is bad
    tidelog.topic        where the record was read: topic, partition, offset
    tidelog.partition
    tidelog.offset
    tidelog.timestamp    the record's timestamp in milliseconds
    tidelog.retries      how often it was retried before; absent the first time

All are text. `tidelog pipeline retry` removes these headers, except for the last, which it increments.
"""

ERROR = "tidelog.error"
TOPIC = "tidelog.topic"
PARTITION = "tidelog.partition"
OFFSET = "tidelog.offset"
TIMESTAMP = "tidelog.timestamp"
RETRIES = "tidelog.retries"
ABOUT = (ERROR, TOPIC, PARTITION, OFFSET, TIMESTAMP)

DEFAULT_SUFFIX = ".dead-letters"
