"""The layout of a data directory.

    {data}/lock                                       names the process that uses the directory
    {data}/logs/{topic}~{topic id}/{partition}/       one partition
    {data}/logs/~deleted.{random}/                    a topic that is being removed

Logs belong to a topic id, which is never used again, so a topic cannot see the records of an earlier topic of the
same name. The id is written in hex, so that ids stay distinct on file systems that ignore case. The topic's name in
front of it is for people; it is cut after 222 characters, because a file name may have at most 255. No topic name
contains "~": a directory of an earlier version, named by the topic's name alone, cannot be confused with one of
these.
"""

from tidelog.model import PartitionIdentity, TopicIdentity, is_topic_name

LOGS = "logs"
LOCK = "lock"
DELETED = "~deleted."
_BEFORE_ID = "~"
_ID_DIGITS = 32
_NAME_CHARACTERS = 222
_HEX = frozenset("0123456789abcdef")


def topic_directory(topic: TopicIdentity) -> str:
    """The name of a topic's directory in `logs`."""
    return f"{topic.name[:_NAME_CHARACTERS]}{_BEFORE_ID}{topic.topic_id.hex()}"


def partition_directory(partition: PartitionIdentity) -> str:
    """The path of a partition's directory below `logs`."""
    return f"{topic_directory(partition.topic)}/{partition.number}"


def topic_of(directory: str) -> TopicIdentity | None:
    """The topic that a directory name stands for; None if it is not a topic's. A very long topic name is cut off."""
    name, _, topic_id = directory.rpartition(_BEFORE_ID)
    if len(topic_id) != _ID_DIGITS or not _HEX.issuperset(topic_id) or not is_topic_name(name):
        return None
    return TopicIdentity(name, bytes.fromhex(topic_id))
