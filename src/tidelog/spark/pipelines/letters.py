"""What a dead letter is: key, value and headers of the record as they were, and headers that say what is wrong.

    tidelog.error        why it is here
    tidelog.topic        where it was read
    tidelog.partition
    tidelog.offset
    tidelog.timestamp    its own, in milliseconds
    tidelog.retries      how often it was played back before; absent the first time

All are text. `tidelog pipeline retry` takes them off again, but for the last, which it counts up.
"""

ERROR = "tidelog.error"
TOPIC = "tidelog.topic"
PARTITION = "tidelog.partition"
OFFSET = "tidelog.offset"
TIMESTAMP = "tidelog.timestamp"
RETRIES = "tidelog.retries"
ABOUT = (ERROR, TOPIC, PARTITION, OFFSET, TIMESTAMP)

DEFAULT_SUFFIX = ".dead-letters"
