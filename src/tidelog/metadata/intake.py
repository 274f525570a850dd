"""`MetadataIntake`: how rows that were written elsewhere get into the metadata of a cluster, beside its brokers.

The controller and the coordinators own these rows and keep them in memory. So the write that adds rows also gives
all leases new epochs: whatever an owner still writes from what it knew before is refused, and when it learns of the
epoch, within a second, it loads everything anew.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from tidelog.metadata.store import Change


class Numbers(NamedTuple):
    """Numbers from `first` up to, not including, `end`."""

    first: int
    end: int


class MetadataIntake(Protocol):
    async def claim(self, name: str, source: str, end: int, *, rehearse: bool = False) -> list[Numbers]:
        """Numbers of the sequence `name` (see `MetadataStore.reserve`) below `end` were given out elsewhere, by
        `source`. Returns those of them that nobody in the cluster was or will be given: they keep their meaning here.
        Said again, the answer has the same numbers, and perhaps more. `rehearse`: only tell what the answer would
        be now."""

    async def take_in(self, changes: Sequence[Change]) -> None:
        """Write these rows, all or none. Conflict: an inserted row exists. OutcomeUnknown: repeat it."""

    async def close(self) -> None: ...
