"""Streams of records for programs without an event loop. One thread at a time may read a stream."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from tidelog.client.consuming.committed import Member
from tidelog.client.consuming.consumer import ConsumedRecord, StreamSource, records_of
from tidelog.client.consuming.fetcher import Fetched
from tidelog.client.errors import ClientClosed
from tidelog.client.loop_thread import Blocking, LoopThread


class BlockingStream(Blocking, Iterator[ConsumedRecord]):
    """An iterator of records. Close it, or use it in a `with` statement; a member of a group then commits and leaves.

    Made by `Client.consume`.
    """

    def __init__(self, client: object, thread: LoopThread, source: StreamSource, limit: int | None) -> None:
        self._client = client  # a client without references is closed
        self._thread = thread
        self._source = source
        self._left = limit
        self._records = self._take()

    def __iter__(self) -> "BlockingStream":
        return self

    def __next__(self) -> ConsumedRecord:
        return next(self._records)

    def _take(self) -> Iterator[ConsumedRecord]:
        source = self._source
        while not source.is_done and self._left != 0:
            for fetched in self._thread.run(source.poll()):
                for record in records_of(fetched, source):
                    yield record
                    if self._left is not None:
                        self._left -= 1
                        if self._left == 0:
                            source.consumed(fetched.partition, record.offset + 1)
                            return

    def chunks(self) -> Iterator[list[ConsumedRecord]]:
        """Instead of iterating over records: lists of records that arrived together, for work that is cheaper in
        bulk.

        A list has records of one partition, and counts as consumed when the next one is asked for.
        """
        source = self._source
        while not source.is_done and self._left != 0:
            for fetched in self._thread.run(source.poll()):
                partition = fetched.partition
                chunk = [
                    ConsumedRecord(*partition, offset, timestamp, key, value, headers)
                    for offset, timestamp, key, value, headers in islice(fetched.records(), self._left)
                ]
                yield chunk
                if self._left is not None:
                    self._left -= len(chunk)
                    if self._left == 0:
                        source.consumed(partition, chunk[-1].offset + 1)
                        return
                source.consumed(partition, fetched.next_offset)

    def poll(self, timeout_s: float = 0.5) -> list[Fetched]:
        """Instead of iterating: batches as they are stored. An empty list after the timeout, or at the end."""
        return self._thread.run(self._source.poll(timeout_s))

    @property
    def is_done(self) -> bool:
        """True at the end of the stream; never if it follows the topic."""
        return self._source.is_done

    @property
    def member(self) -> Member | None:
        """For `BlockingTransactionalProducer.send_offsets`; None without a group."""
        return self._source.member

    def commit(self) -> None:
        """Commit the group's offsets of everything consumed. A record counts as consumed when the next one is asked
        for, so the last one returned is not included."""
        self._thread.run(self._source.commit())

    def close(self) -> None:
        """In a group: commit (unless `auto_commit_ms` is 0) and leave the group."""
        with suppress(ClientClosed):  # then the client has closed it
            self._thread.run(self._source.close())

    def __enter__(self) -> "BlockingStream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
