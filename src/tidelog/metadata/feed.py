"""`Feed`: the newest changes of shared tables, for brokers that poll for the changes of other brokers."""

from collections import deque
from collections.abc import Iterable, Sequence

from tidelog.metadata.rows import SHARED
from tidelog.metadata.store import Change, Delete, Insert, News, Put, Update, table_of

MOST_KEPT = 10_000  # changes; a follower that is further behind has to load the tables again


def shared_changes(changes: Iterable[Change]) -> list[Put | Delete]:
    """The changes of shared tables, as the feed reports them: by the row that is stored afterwards."""
    told: list[Put | Delete] = []
    for change in changes:
        if table_of(change) not in SHARED:
            continue
        if isinstance(change, Insert):
            told.append(Put(change.row))
        elif isinstance(change, Update):
            told.append(Put(change.after))
        else:
            told.append(change)
    return told


class Feed:
    """`version` counts the commits that changed shared tables."""

    def __init__(self, version: int) -> None:
        self.version = version
        self._commits: deque[Sequence[Put | Delete]] = deque()  # the last one made `version`
        self._kept = 0

    def add(self, changes: Sequence[Put | Delete]) -> None:
        self.version += 1
        self._commits.append(changes)
        self._kept += len(changes)
        while self._kept > MOST_KEPT:
            self._kept -= len(self._commits.popleft())

    def since(self, version: int) -> News:
        behind = self.version - version
        if not 0 <= behind <= len(self._commits):
            return News(self.version, None)
        commits = list(self._commits)[len(self._commits) - behind :]
        return News(self.version, tuple(change for commit in commits for change in commit))
