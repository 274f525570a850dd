"""The names of directories in a data directory, and whose they are."""

import pytest

from tidelog.model import TopicIdentity
from tidelog.storage.local.layout import topic_directory, topic_of


@pytest.mark.parametrize("name", ["a", "A.b_c-d", "x" * 222, "0123456789abcdef" * 2])
def test_the_name_of_a_directory_tells_the_topic_and_its_id(name: str) -> None:
    known = TopicIdentity(name, bytes(range(16)))
    assert len(topic_directory(known)) <= 255
    assert topic_of(topic_directory(known)) == known


def test_of_a_very_long_name_the_directory_has_the_beginning() -> None:
    known = TopicIdentity("x" * 249, bytes(range(16)))
    assert len(topic_directory(known)) == 255
    assert topic_of(topic_directory(known)) == TopicIdentity("x" * 222, bytes(range(16)))


@pytest.mark.parametrize(
    "name",
    ["a", "~deleted.0123456789abcdef", "a~", f"~{'0' * 32}", f"a~{'0' * 31}", f"a~{'A' * 32}", f"a b~{'0' * 32}"],
)
def test_other_directories_are_no_topics(name: str) -> None:
    assert topic_of(name) is None
