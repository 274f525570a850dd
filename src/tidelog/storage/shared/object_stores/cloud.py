"""Objects in S3, Google Cloud Storage or Azure, through `obstore`.

The library's errors hold the whole request and answer, which may contain keys and signatures. They do not leave this
module: ours say the status, the store's code for the error, and what to do. obstore must not be used in a process
that was forked after its first use.

Listings are in the order of the provider. All three list by key, except S3 Express One Zone.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, TypeVar

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
)
from obstore.store import AzureStore, GCSStore, S3Store

from tidelog.errors import InvalidSettings, StorageUnavailable
from tidelog.records.batch import ReadBuffer
from tidelog.storage.shared.object_stores.opening import Patience
from tidelog.storage.shared.object_stores.ranges import joined
from tidelog.storage.shared.objects import ObjectMissing, StoredObject

MOST_IN_ONE_REQUEST = 16 << 20
_PIECE = 8 << 20  # of an upload in pieces: 10,000 are allowed
_PIECES_AT_ONCE = 3
_RANGES_AT_ONCE = 4
_REMOVED_AT_ONCE = 1000
_LISTED_AT_ONCE = 1000

_FAILURES = (BaseError, OSError, ValueError)  # what obstore raises
_STATUS = re.compile(r"status code: (\d{3}(?: [A-Z][A-Za-z-]*)*)")
_CODE = re.compile(r"<Code>([A-Za-z]{1,60})</Code>")
_HTTP = re.compile(r"HttpError \{\s*kind: (\w+)")
_LOST = {"Timeout": "no answer in time", "Connect": "no connection", "Interrupted": "the connection was lost"}
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound", "specified bucket does not exist")

T = TypeVar("T")


def open_cloud(scheme: str, bucket: str, prefix: str, options: dict[str, str], patience: Patience) -> "CloudObjects":
    kinds: Mapping[str, Any] = {"s3": S3Store, "gs": GCSStore, "az": AzureStore}
    client: dict[str, Any] = {
        "connect_timeout": timedelta(milliseconds=patience.connect_ms),
        "timeout": timedelta(milliseconds=patience.request_ms),
        "allow_http": True,  # used only if the endpoint, from the options or the environment, is an http:// URL
    }
    # Without this obstore repeats a request for three minutes.
    retry = {
        "max_retries": patience.retries,
        "retry_timeout": timedelta(milliseconds=patience.total_ms),
        "backoff": {"init_backoff": timedelta(milliseconds=50), "max_backoff": timedelta(seconds=1), "base": 2},
    }
    place = f"{scheme}://{bucket}/{prefix}".rstrip("/")
    problem = ""
    try:
        store = kinds[scheme](
            bucket, prefix=prefix or None, config=options or None, client_options=client, retry_config=retry
        )
    except UnknownConfigurationKeyError:
        problem = f"{place}: there is no option of one of these names: {', '.join(sorted(options))}"
    except _FAILURES as error:
        problem = f"{place}: the options do not fit together or are not complete ({type(error).__name__})"
    if problem:
        raise InvalidSettings([problem])
    return CloudObjects(store, place, patience)


class CloudObjects:
    """`ObjectStore` in a bucket."""

    def __init__(self, store: S3Store | GCSStore | AzureStore, place: str, patience: Patience) -> None:
        self.place = place
        self._store = store
        self._total_seconds = patience.total_ms / 1000
        self._mode: Literal["create", "overwrite"] = "create"  # an existing object is not replaced

    async def put(self, key: str, parts: Sequence[ReadBuffer]) -> None:
        if sum(map(len, parts)) > MOST_IN_ONE_REQUEST:
            await self.put_stream(key, _each(parts))
            return
        try:
            # The parts are sent from where they are.
            upload = obstore.put_async(self._store, key, list(parts), mode=self._mode, use_multipart=False)
            await self._call(key, upload, self._total_seconds)
        except NotImplementedError:  # the option `conditional_put` is "disabled", for a store that does not know it
            self._mode = "overwrite"
            await self.put(key, parts)

    async def put_stream(self, key: str, parts: AsyncIterable[ReadBuffer]) -> int:
        source = _Source(parts)
        if (whole := await source.whole()) is not None:
            await self.put(key, whole)
            return source.size
        pieces = source.pieces()
        try:
            upload = obstore.put_async(
                self._store, key, pieces, use_multipart=True, chunk_size=_PIECE, max_concurrency=_PIECES_AT_ONCE
            )
            await self._call(key, upload, None)
        except StorageUnavailable:
            if source.error is not None:
                raise source.error from None
            raise
        finally:
            try:
                await pieces.aclose()
            except RuntimeError:  # cancelled while it waits for its source, which ends it
                pass
        return source.size

    async def read(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        found = [b""] * len(ranges)
        slots = asyncio.Semaphore(_RANGES_AT_ONCE)

        async def fetch(position: int, size: int, wanted: list[int]) -> None:
            async with slots:
                content = memoryview(await self._get(key, position, size))
            if len(content) < size:
                raise self._shorter(key)
            for number in wanted:
                start = ranges[number][0] - position
                found[number] = bytes(content[start : start + ranges[number][1]])

        runs = joined(ranges)
        if len(runs) == 1:
            await fetch(*runs[0])
        else:
            await _all([fetch(*run) for run in runs])
        return found

    async def read_up_to(self, key: str, position: int, size: int) -> ReadBuffer:
        content = memoryview(await self._get(key, position, size))
        if not content:
            raise self._shorter(key)
        return content

    async def remove(self, keys: Iterable[str]) -> None:
        every = list(keys)
        for first in range(0, len(every), _REMOVED_AT_ONCE):
            some = every[first : first + _REMOVED_AT_ONCE]
            try:
                await self._call(some[0], obstore.delete_async(self._store, some), None)
            except ObjectMissing:  # not S3: the others may still be there
                for key in some:
                    try:
                        await self._call(key, obstore.delete_async(self._store, key), self._total_seconds)
                    except ObjectMissing:
                        pass

    async def list(self, prefix: str) -> AsyncIterator[StoredObject]:
        # The library takes whole segments of keys only.
        directory = prefix.rpartition("/")[0]
        pages = obstore.list(self._store, directory or None, chunk_size=_LISTED_AT_ONCE)
        while True:
            try:
                page = await self._call(prefix, pages.__anext__(), self._total_seconds)
            except StopAsyncIteration:
                return
            for each in page:
                if each["path"].startswith(prefix):
                    yield StoredObject(each["path"], each["size"], int(each["last_modified"].timestamp() * 1000))

    async def close(self) -> None:
        pass

    async def _get(self, key: str, position: int, size: int) -> "obstore.Bytes":
        got = obstore.get_range_async(self._store, key, start=position, length=size)
        return await self._call(key, got, self._total_seconds)

    async def _call(self, key: str, call: Awaitable[T], seconds: float | None) -> T:
        """The result of the library's call, or one of our errors. A call that takes too long is given up."""
        try:
            async with asyncio.timeout(seconds):
                return await call
        except TimeoutError as error:
            problem: Exception = error
        except _FAILURES as error:
            problem = error
        raise self._explained(key, problem)

    def _explained(self, key: str, error: Exception) -> ObjectMissing | StorageUnavailable:
        """Without anything of the library's message but the status and the store's code."""
        message = str(error)
        where = f"{self.place}/{key}"
        if any(sign in message for sign in _NO_BUCKET):
            return StorageUnavailable(f"{self.place}: there is no such bucket")
        if isinstance(error, FileNotFoundError):
            return ObjectMissing(f"{where}: there is no such object")
        if "status code: 416" in message:
            return self._shorter(key)
        if isinstance(error, AlreadyExistsError):
            return StorageUnavailable(f"{where}: there is an object of this key already")
        found = [each.group(1) for each in (_STATUS.search(message), _CODE.search(message)) if each is not None]
        reason = ", ".join(found)
        if isinstance(error, PermissionDeniedError | UnauthenticatedError):
            return StorageUnavailable(f"{where}: access denied ({reason}): check the credentials and their rights")
        if isinstance(error, TimeoutError):
            reason = _LOST["Timeout"]
        elif not reason:
            http = _HTTP.search(message)
            reason = _LOST.get(http.group(1), "the connection failed") if http is not None else type(error).__name__
        return StorageUnavailable(f"{where}: the object store is not available: {reason}")

    def _shorter(self, key: str) -> ObjectMissing:
        return ObjectMissing(f"{self.place}/{key}: the object is shorter than expected")


class _Source:
    """Passes on the parts of an upload, and remembers their error, which would otherwise be hidden in the
    library's."""

    def __init__(self, parts: AsyncIterable[ReadBuffer]) -> None:
        self._parts = aiter(parts)
        self._beginning: list[ReadBuffer] = []
        self.size = 0
        self.error: Exception | None = None

    async def whole(self) -> list[ReadBuffer] | None:
        """All parts, if together they are no larger than a piece: an upload in pieces takes three requests at least.
        Otherwise None: upload `pieces`."""
        while self.size <= _PIECE:
            try:
                part = await anext(self._parts)
            except StopAsyncIteration:
                return self._beginning
            self._beginning.append(part)
            self.size += len(part)
        return None

    async def pieces(self) -> AsyncGenerator[ReadBuffer, None]:
        try:
            while self._beginning:
                yield self._beginning.pop(0)
            async for part in self._parts:
                self.size += len(part)
                yield part
        except Exception as error:
            self.error = error
            raise StorageUnavailable("the source failed") from None


async def _each(parts: Sequence[ReadBuffer]) -> AsyncIterator[ReadBuffer]:
    for part in parts:
        yield part


async def _all(calls: Sequence[Any]) -> None:
    """Run them together. If one fails, the others are cancelled and the error is raised, not a group of errors."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
