"""`Pulse`: what a member concludes from the times of its beats. No clock, no database.

Whom the database presumes dead is decided by its clock alone, in one statement. But that is only fair if everyone had
the chance to beat. After an outage of the database, or when its clock was set forward, the beats of all brokers are
old; the first controller that is back would bury all others. So a controller buries only after its own beats have
been *steady* for `dead_after`: none was late, and the database's clock went as fast as its own.
"""

from typing import NamedTuple

from tidelog.errors import InvalidSettings
from tidelog.metadata.registry import DEAD_AFTER_S, Beat

_LATE = 3
"""A beat is late if the last one is more than so many intervals ago."""


class Timing(NamedTuple):
    """In seconds. Use `checked`."""

    beat_every: float = 1.0
    fence_after: float = 5.0
    """A broker without a good beat for so long answers nothing: by its own clock."""
    dead_after: float = DEAD_AFTER_S
    """A broker without a beat for so long is presumed dead: by the database's clock."""

    def checked(self) -> "Timing":
        problems = []
        if self.beat_every <= 0:
            problems.append("the interval between beats must be positive")
        if self.fence_after < 2 * self.beat_every:
            problems.append("a broker must be allowed to miss a beat: fence after at least 2 intervals")
        if self.dead_after < 1.25 * self.fence_after:
            problems.append("a broker must stop serving well before it is presumed dead: at most 4/5 of that time")
        if problems:
            raise InvalidSettings(problems)
        return self


class Pulse:
    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._steady_since: float | None = None
        self._sent = self._received = self._database_time = 0.0  # of the last beat

    def register(self) -> None:
        """The broker has registered; beats begin anew."""
        self._steady_since = None

    def beat(self, sent: float, received: float, beat: Beat) -> None:
        if self._steady_since is None or self._is_late(sent) or self._clock_was_set(sent, received, beat):
            self._steady_since = received
        self._sent, self._received, self._database_time = sent, received, beat.database_time_s

    def trusted_until(self, sent: float) -> float:
        """How long a memory may be trusted that is as new as the beat sent at this time."""
        return sent + self._timing.fence_after

    def may_bury(self, now: float) -> bool:
        return (
            self._steady_since is not None
            and now - self._steady_since >= self._timing.dead_after
            and not self._is_late(now)
        )

    def _is_late(self, now: float) -> bool:
        return now - self._sent > _LATE * self._timing.beat_every

    def _clock_was_set(self, sent: float, received: float, beat: Beat) -> bool:
        passed = beat.database_time_s - self._database_time
        tolerance = self._timing.beat_every / 2
        return not sent - self._received - tolerance <= passed <= received - self._sent + tolerance
