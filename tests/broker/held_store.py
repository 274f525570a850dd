"""A metadata store whose writes stay open until the test says what becomes of them."""

from collections.abc import Sequence

from tidelog.metadata.store import Change, Fence
from tidelog.promise import Promise


class HeldStore:
    def __init__(self) -> None:
        self.asked: list[tuple[Sequence[Change], Promise[None]]] = []

    def write(self, changes: Sequence[Change], _fence: Fence | None = None) -> Promise[None]:
        promise: Promise[None] = Promise()
        self.asked.append((changes, promise))
        return promise
