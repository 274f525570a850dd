"""Members of a group with other client libraries, each in a separate process (`apart`).

They share one group with members of librdkafka, with the protocol that all of them support: classic, `range`.
"""

import concurrent.futures
from typing import Any

from tests.e2e.clients import CLIENTS, ClientError, Reader
from tests.torture.clients import Client
from tests.torture.history import Done, OffsetCommit, OffsetSeen, now
from tidelog.client import Client as TidelogClient
from tidelog.client import ClientOptions, GroupOptions, connect
from tidelog.errors import TidelogError

# Errors that a dying broker causes in calls of kafka-python and aiokafka; the member starts another session then.
_TROUBLE = (ClientError, concurrent.futures.CancelledError, TimeoutError, OSError)


class OtherMember(Client):
    """A member with kafka-python or aiokafka, in sessions of a few seconds."""

    def __init__(self, *args: Any, library: str, group: str, topic: str, **more: Any) -> None:
        super().__init__(*args, **more)
        self._library = CLIENTS[library](self.bootstrap)
        self._group, self._topic = group, topic

    def work(self) -> None:
        while not self.stopping.is_set():
            try:
                reader = self._library.reader(self._topic, group=self._group, session_ms=2000)
            except _TROUBLE:
                self.stopping.wait(0.1)
                continue
            try:
                self._session(reader, now() + self.random.uniform(4, 10))
            except _TROUBLE:
                pass
            finally:
                self._close(reader)

    def _session(self, reader: Reader, until: float) -> None:
        known = 0
        while now() < until and not self.stopping.is_set():
            records = reader.poll(0.1)
            if reader.assignments != known:
                known = reader.assignments
                self._look(reader)
            positions = {record.partition: record.offset + 1 for record in records}
            if positions:
                began = now()
                reader.commit(positions)
                for partition, offset in positions.items():
                    place = self._topic, partition
                    self.history.add(OffsetCommit(self._group, place, offset, began, now()))
                self.history.add(Done(self.name))

    def _look(self, reader: Reader) -> None:
        for partition in reader.assignment():
            began = now()
            offset = reader.committed(partition)
            self.history.add(
                OffsetSeen(self._group, (self._topic, partition), -1 if offset is None else offset, began)
            )

    def _close(self, reader: Reader) -> None:
        try:
            reader.close()
        except _TROUBLE:
            pass


class TidelogMember(Client):
    """A member with Tidelog's own client."""

    def __init__(self, *args: Any, group: str, topic: str, **more: Any) -> None:
        super().__init__(*args, **more)
        self._group, self._topic = group, topic
        self._options = GroupOptions(session_timeout_ms=2000, heartbeat_ms=200, auto_commit_ms=0)
        self._connected: TidelogClient | None = None

    def work(self) -> None:
        while not self.stopping.is_set():
            try:
                with connect(self.bootstrap, ClientOptions(timeout_ms=20_000)) as self._connected:
                    self._session(self._connected, now() + self.random.uniform(4, 10))
            except TidelogError:  # also if `stop` has closed the client
                self.stopping.wait(0.1)

    def stop(self) -> None:
        super().stop()
        if self._connected is not None:
            self._connected.close()

    def _session(self, client: TidelogClient, until: float) -> None:
        with client.consume(self._topic, group=self._group, start="earliest", group_options=self._options) as stream:
            last, member = None, stream.member
            for chunk in stream.chunks():  # a chunk counts as consumed when the next one is requested
                if last is not None and stream.member == member:  # else there was a rebalance in between
                    began = now()
                    stream.commit()
                    place = self._topic, last.partition
                    self.history.add(OffsetCommit(self._group, place, last.offset + 1, began, now()))
                    self.history.add(Done(self.name))
                last, member = chunk[-1] if chunk else None, stream.member
                if now() > until:
                    return
