"""`Trouble`: logs the failures of background work, one line when an item begins to fail and one when it works again.

A loop that fails every few seconds would otherwise fill the operator's log and hide the moment when it recovers.
"""

from collections.abc import Container, Hashable
from typing import TYPE_CHECKING, Any

from tidelog.errors import TidelogError

if TYPE_CHECKING:
    import structlog


class Trouble:
    """`bad` is the message for an item that begins to fail, `good` for one that works again."""

    def __init__(self, logger: "structlog.stdlib.BoundLogger", *, bad: str, good: str) -> None:
        self._logger = logger
        self._bad = bad
        self._good = good
        self._failing: dict[Hashable, type[Exception]] = {}

    def __contains__(self, item: Hashable) -> bool:
        return item in self._failing

    def failed(self, item: Hashable, error: Exception, **details: Any) -> None:  # noqa: ANN401
        """Log the failure, unless the item already fails with this type of error. A bug of ours is logged with its
        traceback."""
        if self._failing.get(item) is not type(error):
            self._failing[item] = type(error)
            is_bug = not isinstance(error, TidelogError | OSError)
            self._logger.error(self._bad, reason=str(error), exc_info=error if is_bug else None, **details)

    def worked(self, item: Hashable, **details: Any) -> None:  # noqa: ANN401
        if self._failing.pop(item, None) is not None:
            self._logger.info(self._good, **details)

    def forget(self, item: Hashable) -> None:
        self._failing.pop(item, None)

    def forget_others(self, items: Container[Hashable]) -> None:
        """Forget all items but these: an item that no longer exists cannot work again."""
        for item in [item for item in self._failing if item not in items]:
            del self._failing[item]
