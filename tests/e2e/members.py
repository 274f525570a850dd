"""Members of consumer groups that work by themselves, in a thread or in a process that can be killed."""

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Self

from tests.e2e.clients import CLIENTS, ClientError, Reader
from tests.e2e.clients.base import SECONDS, Place
from tests.support.brokers import eventually


class Worker:
    """Polls, remembers and commits until it is told to leave."""

    def __init__(self, make: Callable[[], Reader]) -> None:
        self.seen: list[Place] = []
        self.uncommitted: set[Place] = set()  # seen, but somebody else may see them again
        self.partitions: set[int] = set()
        self.assignments = 0
        self.error: BaseException | None = None
        self._make = make
        self._leave = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            reader = self._make()
            try:
                while not self._leave.is_set():
                    self._work(reader)
            finally:
                reader.close()
        except BaseException as error:
            self.error = error
        finally:
            self.partitions = set()

    def _work(self, reader: Reader) -> None:
        records = reader.poll(0.05)
        self.partitions = reader.assignment()
        self.assignments = reader.assignments
        if not records:
            return
        places = [record.place for record in records]
        self.seen += places
        self.uncommitted.update(places)
        try:
            reader.commit({partition: offset + 1 for partition, offset in sorted(places)})
        except ClientError:
            return  # a rebalance came in between: whoever has the partition next sees them again
        self.uncommitted.difference_update(places)

    def check(self) -> None:
        if self.error is not None:
            raise self.error

    def leave(self) -> None:
        self._leave.set()
        self._thread.join(SECONDS)
        assert not self._thread.is_alive(), "the member did not end"
        self.check()


class MemberProcess:
    """A worker in a process of its own, for being killed."""

    def __init__(self, client: str, bootstrap: str, topic: str, group: str, session_ms: int, **more: Any) -> None:
        arguments = [client, bootstrap, topic, group, str(session_ms), json.dumps(more)]
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.e2e.members", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.seen: list[Place] = []
        self.uncommitted: set[Place] = set()
        self.partitions: set[int] = set()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.endswith("\n"):
                break  # it was killed while it wrote
            what, content = json.loads(line)
            if what == "assigned":
                self.partitions = set(content)
                continue
            places = [(partition, offset) for partition, offset in content]
            if what == "seen":
                self.seen += places
                self.uncommitted.update(places)
            else:
                self.uncommitted.difference_update(places)

    def check(self) -> None:
        assert self._process.poll() is None, "the member's process is gone"

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._thread.join(SECONDS)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self.partitions = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self.kill()


Member = Worker | MemberProcess


class Group:
    """The members there are and were, and what they saw together."""

    def __init__(self) -> None:
        self.members: list[Member] = []
        self.past: list[Member] = []

    def add(self, member: Member) -> Member:
        self.members.append(member)
        return member

    def remove(self, member: Member) -> None:
        self.members.remove(member)
        self.past.append(member)
        member.leave() if isinstance(member, Worker) else member.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        for member in list(self.members):
            try:
                self.remove(member)
            except BaseException:
                if error is None:
                    raise

    def seen(self) -> Counter[Place]:
        return Counter(place for member in (*self.members, *self.past) for place in member.seen)

    def uncommitted(self) -> set[Place]:
        return set().union(*(member.uncommitted for member in (*self.members, *self.past)))

    def shares(self) -> list[set[int]]:
        return [member.partitions for member in self.members]

    def wait_until_shared(self, partitions: int, within: float = 20.0) -> None:
        """Every partition has exactly one member, and every member has some."""
        everything = list(range(partitions))

        def shared(shares: Sequence[set[int]]) -> bool:
            for member in self.members:
                member.check()
            return sorted(index for share in shares for index in share) == everything and all(shares)

        eventually(self.shares, until=shared, within=within)

    def wait_for(self, places: Iterable[Place], within: float = 20.0) -> None:
        """Each of them was seen; more than once only what could not be committed."""
        wanted = set(places)
        deadline = time.monotonic() + within
        while missing := wanted - self.seen().keys():
            for member in self.members:
                member.check()
            assert time.monotonic() < deadline, f"{len(missing)} of {len(wanted)} never came: {sorted(missing)[:20]}"
            time.sleep(0.02)
        seen, excused = self.seen(), self.uncommitted()
        again = {place: times for place, times in seen.items() if times > 1 and place not in excused}
        assert not again, f"seen again although committed: {dict(sorted(again.items())[:20])}"


def _main(client: str, bootstrap: str, topic: str, group: str, session_ms: str, more: str) -> None:
    def say(what: str, content: object) -> None:
        os.write(1, (json.dumps([what, content]) + "\n").encode())

    reader = CLIENTS[client](bootstrap).reader(topic, group=group, session_ms=int(session_ms), **json.loads(more))
    partitions: set[int] | None = None
    while True:
        records = reader.poll(0.05)
        if reader.assignment() != partitions:
            partitions = reader.assignment()
            say("assigned", sorted(partitions))
        if not records:
            continue
        places = [record.place for record in records]
        say("seen", places)
        try:
            reader.commit({partition: offset + 1 for partition, offset in sorted(places)})
        except ClientError:
            continue
        say("committed", places)


if __name__ == "__main__":
    _main(*sys.argv[1:])
