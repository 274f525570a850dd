"""Resolves the subscriptions of members to existing topics.

A pattern is a regular expression from a client, and runs in the event loop. So it is matched with RE2, which takes
time linear in its input for any pattern. A pattern must match the whole name.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from tidelog.broker.coordination.groups.environment import Topic, TopicCatalog
from tidelog.broker.coordination.groups.errors import InvalidRegularExpression


class Interest(NamedTuple):
    """What one member subscribes to: topics by name, and those that match a pattern."""

    names: frozenset[str]
    pattern: str | None = None


class Resolved(NamedTuple):
    topics: dict[bytes, Topic]  # every topic that a member is interested in
    topic_ids: dict[Interest, frozenset[bytes]]
    fingerprint: str  # changes exactly when one of these topics is created, deleted, recreated, or gets partitions


def check_pattern(pattern: str, max_length: int) -> None:
    if len(pattern) > max_length:
        raise InvalidRegularExpression(f"a pattern may have at most {max_length} characters, not {len(pattern)}")
    matcher(pattern)


def resolve(interests: Iterable[Interest], catalog: TopicCatalog) -> Resolved:
    topic_ids: dict[Interest, frozenset[bytes]] = {}
    topics: dict[bytes, Topic] = {}
    for interest in set(interests):
        names = interest.names
        if interest.pattern:
            names = names.union(filter(matcher(interest.pattern), catalog.names()))
        found = [topic for topic in map(catalog.by_name, names) if topic is not None]
        topics.update((topic.topic_id, topic) for topic in found)
        topic_ids[interest] = frozenset(topic.topic_id for topic in found)
    digest = blake2b(digest_size=8)
    for topic in sorted(topics.values()):
        digest.update(b"%d %b %d " % (len(topic.name), topic.name.encode() + topic.topic_id, topic.partitions))
    return Resolved(topics, topic_ids, digest.hexdigest())


@lru_cache(maxsize=256)
def matcher(pattern: str) -> Callable[[str], object]:
    import re2  # imported here, because most brokers never use a pattern

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options).fullmatch  # type: ignore[no-any-return]
    except re2.error as error:
        reason = error.args[0]
        raise InvalidRegularExpression(reason.decode() if isinstance(reason, bytes) else str(reason)) from None
