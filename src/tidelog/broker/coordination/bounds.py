"""Bounds of the memory that coordinators use for clients.

A bound has the name of its broker config. A request that would exceed it is refused, with the error that fits the
request. What was stored under an earlier, higher bound is kept.
"""

from dataclasses import dataclass, field

from tidelog.errors import InvalidInput


@dataclass(slots=True, eq=False)
class Bound:
    """The most `things` that may be kept. The code that keeps them adds them to `used`, and subtracts them again."""

    config: str
    things: str
    limit: int
    bytes_each: int  # about what one takes in memory
    news: list[str]
    """Messages for the operator, one each time the bound is reached. The next one is due only after a tenth was
    free."""
    used: int = 0
    together: "list[Bound] | None" = field(default=None, repr=False)
    """Bounds of the same things, including this one, that have one limit: those of the shards of a broker."""
    _is_told: bool = field(default=False, repr=False)

    def share(self, other: "Bound") -> None:
        """From now on the other bound has one limit with this one."""
        if self.together is None:
            self.together = [self]
        self.together.append(other)
        other.together = self.together

    def part(self, other: "Bound") -> None:
        """What the other bound counts is gone."""
        assert self.together is not None
        self.together.remove(other)
        other.together = None

    @property
    def used_bytes(self) -> int:
        return self.used_together * self.bytes_each

    @property
    def limit_bytes(self) -> int:
        return self.limit * self.bytes_each

    @property
    def used_together(self) -> int:
        return self.used if self.together is None else sum(each.used for each in self.together)

    def has_room(self, more: int = 1) -> bool:
        used = self.used_together
        if used + more <= self.limit:
            self._is_told = self._is_told and used > self.limit * 9 // 10
            return True
        if not self._is_told:
            self._is_told = True
            self.news.append(f"{self.in_words()}; more are refused")
        return False

    def check(self, refusal: type[InvalidInput], more: int = 1) -> None:
        """Raises the refusal unless there is room for this many more."""
        if not self.has_room(more):
            raise refusal(self.in_words())

    def in_words(self) -> str:
        return f"the broker has {self.used_together} of at most {self.limit} {self.things} ({self.config})"
