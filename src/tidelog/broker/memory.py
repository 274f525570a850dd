"""The memory budget of a broker: its parts, how much each may use and uses, and returning freed memory to the system.

Everything that grows with what clients send or store has its own bound, and the sum of the bounds must fit into one
budget. The budget does not include the program itself (about 60 MB), nor memory that grows with the number of
partitions (bounded by `tidelog.max.partitions`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tidelog.errors import InvalidSettings

MIB = 1 << 20
GROWN_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """`setting` is the name of the setting or config that bounds the part."""

    name: str
    setting: str
    limit_bytes: int
    used_bytes: int


def check_budget(budget_bytes: int, parts: Sequence[MemoryPart]) -> None:
    """Raises InvalidSettings, with a list of the parts, unless they fit into the budget."""
    total = sum(part.limit_bytes for part in parts)
    if total > budget_bytes:
        listed = ", ".join(f"{part.name} {part.limit_bytes // MIB} MiB ({part.setting})" for part in parts)
        problem = (
            f"memory-budget-bytes is {budget_bytes} ({budget_bytes // MIB} MiB), but its parts may take "
            f"{total // MIB} MiB: {listed}; lower some of them, or raise the budget"
        )
        raise InvalidSettings([problem])


def resident_bytes() -> int:
    """The resident memory of this process; 0 if the system does not report it."""
    try:
        with open("/proc/self/statm") as statm:
            pages = int(statm.read().split()[1])
    except OSError:
        return 0
    import resource

    return pages * resource.getpagesize()


class Returned:
    """Returns freed memory to the system from time to time.

    The C library keeps freed memory for reuse: after a topic of 5,000 partitions, or a burst of large requests, the
    process would stay large although the memory is not in use. Returning it takes some milliseconds, so a thread does
    it, and only if the process has grown by `GROWN_BYTES` since the last time.
    """

    def __init__(self) -> None:
        self._after = resident_bytes()

    @property
    def is_due(self) -> bool:
        return resident_bytes() > self._after + GROWN_BYTES

    def give_back(self) -> None:
        import ctypes

        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only glibc has it
        if trim is not None:
            trim(0)
        self._after = resident_bytes()
