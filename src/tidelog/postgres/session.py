"""`Session`: one connection to PostgreSQL that is opened again whenever it is lost, and units of work done over it.

A unit of work is a function that gets the connection and awaits statements. Units run one at a time, in the order of
the calls. There are three kinds, which differ in what a lost connection means:

    read          changes nothing: it is done again
    statement     one statement, which commits by itself: OutcomeUnknown
    transaction   between BEGIN and COMMIT: it is done again, unless COMMIT was sent; then OutcomeUnknown

How a unit can fail, and what its caller knows then:

    StorageUnavailable   nothing was changed (no connection, or PostgreSQL refused a statement)
    OutcomeUnknown       it took effect as a whole or not at all
    StoreClosed          nothing was changed: the session is closed
    InvalidInput         nothing was changed: a value does not fit its column
    its own errors       whatever a unit raises; its transaction is rolled back, so nothing was changed

Work whose outcome is unknown must not take effect after later work of this session: a server that was paused reads
the COMMIT in its socket when it continues. So after a connection was lost, the next one first ends the old one's
process on the server, and waits until it is gone (`connecting.end`); until then no unit runs. The error itself is
reported at the deadline, because nothing can be learned from a server that does not answer.
Why not a token that each transaction checks: that is a further row lock in every transaction, and does not help with
a transaction that has passed the check and is about to commit.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import structlog

from tidelog.errors import OutcomeUnknown, StorageUnavailable, StoreClosed, TidelogError, fresh
from tidelog.postgres.connecting import Backend, closed_after_failure, connect, end
from tidelog.postgres.failures import (
    explained,
    is_for_operator,
    is_lost,
    is_of_database,
    is_retried,
    needs_new_connection,
)
from tidelog.postgres.schema import Component, Connection, bring_up_to_date
from tidelog.postgres.settings import PostgresSettings

T = TypeVar("T")
Work: TypeAlias = Callable[[Connection], Awaitable[T]]

_BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0
_MOST_ATTEMPTS = 10  # of a unit that had bad luck with other sessions
_MIGRATION_S = 120.0

log = structlog.get_logger("tidelog.postgres")


class _Unit:
    __slots__ = ("answer", "attempts", "begin", "expiry", "is_change", "may_be_done", "work")

    def __init__(self, work: Work[Any], begin: str, is_change: bool) -> None:
        self.work = work
        self.begin = begin  # what opens its transaction; empty if each statement is one
        self.is_change = is_change
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.attempts = 0
        self.may_be_done = False  # something was sent that may have committed
        self.expiry: asyncio.TimerHandle

    def fail(self, error: BaseException) -> None:
        self.expiry.cancel()
        if not self.answer.done():
            self.answer.set_exception(error)
            self.answer.exception()  # marks it as retrieved: its caller may have been cancelled


class Session:
    """Belongs to the running event loop. `name` is shown in pg_stat_activity. The schema's name is the search path;
    the tables of the components are there before the first unit runs."""

    def __init__(
        self, settings: PostgresSettings, components: Sequence[Component] = (), *, name: str = "tidelog"
    ) -> None:
        self.settings = settings
        self._components = components
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._connection: Connection | None = None
        self._backend: Backend | None = None  # of the connection
        self._lost: Backend | None = None  # of the last connection; it must end before anything else happens
        self._is_current = False  # the tables are up to date
        self._failure: TidelogError | None = None  # of the last attempt to connect
        self._failure_lasts = False  # until an operator corrects something
        self._units: deque[_Unit] = deque()
        self._wake = asyncio.Event()
        self._tried = asyncio.Event()  # the first attempt to connect has ended
        self._is_closing = False
        self._last_call = asyncio.Event()  # no further attempts to connect
        self._connecting: asyncio.Task[None] | None = None
        self._task = self._loop.create_task(self._run(), name="postgres session")

    @classmethod
    async def open(
        cls, settings: PostgresSettings, components: Sequence[Component] = (), *, name: str = "tidelog"
    ) -> "Session":
        """Returns after the first attempt to connect, even if it failed because PostgreSQL is down or unreachable:
        the session goes on trying. Raises if an operator has to correct something: the login is refused, the database
        is missing, or its tables are those of a newer Tidelog."""
        session = cls(settings, components, name=name)
        try:
            await session._tried.wait()
            if session._failure is not None and session._failure_lasts:
                raise fresh(session._failure)
        except BaseException:
            await session.close()
            raise
        return session

    @property
    def is_connected(self) -> bool:
        return self._connection is not None and not self._connection.is_closed()

    async def read(self, work: Work[T], *, as_of_one_moment: bool = False) -> T:
        """`as_of_one_moment`: all statements of the unit see the same state of the database."""
        return await self._ask(work, _BEGIN_READ if as_of_one_moment else "", is_change=False)

    async def statement(self, work: Work[T]) -> T:
        """The unit sends one statement that changes something, as its last one."""
        return await self._ask(work, "", is_change=True)

    async def transaction(self, work: Work[T]) -> T:
        """The unit may run several times. It must not begin or end transactions; savepoints are allowed."""
        return await self._ask(work, "BEGIN", is_change=True)

    def stop_connecting(self) -> None:
        """From now on units fail at once if there is no connection. For a process that is about to end."""
        self._last_call.set()
        self._wake.set()
        if self._connecting is not None:
            self._connecting.cancel()

    async def close(self) -> None:
        """Finish the units that wait, but do not connect for them, and close the connection."""
        self._is_closing = True
        self.stop_connecting()
        await asyncio.shield(self._task)

    async def _ask(self, work: Work[T], begin: str, *, is_change: bool) -> T:
        if self._is_closing:
            raise StoreClosed(f"the session with {self.settings} is closed")
        unit = _Unit(work, begin, is_change)
        unit.expiry = self._loop.call_later(self.settings.deadline_s, self._expire, unit)
        self._units.append(unit)
        self._wake.set()
        result: T = await asyncio.shield(unit.answer)  # a caller that gives up does not stop the work
        return result

    def _expire(self, unit: _Unit) -> None:
        unit.fail(self._unavailable())

    def _unavailable(self) -> TidelogError:
        if self._failure is not None:
            return fresh(self._failure)
        return StorageUnavailable(f"{self.settings} did not answer within {self.settings.deadline_s:g} s")

    # The task

    async def _run(self) -> None:
        pause_s = _FIRST_PAUSE_S
        try:
            while self._units or not self._is_closing:
                if self._units and self.is_connected:
                    await self._do(self._units.popleft(), self._connection)  # type: ignore[arg-type]
                elif self.is_connected or (self._last_call.is_set() and not self._units):
                    self._wake.clear()
                    await self._wake.wait()
                elif self._last_call.is_set():
                    self._fail_all(self._failure or StorageUnavailable(f"there is no connection to {self.settings}"))
                elif await self._connect():
                    pause_s = _FIRST_PAUSE_S
                else:
                    await self._sleep(pause_s)
                    pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        finally:
            self._fail_all(StoreClosed(f"the session with {self.settings} is closed"))
            await self._hang_up()

    async def _sleep(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._last_call.wait()
        except TimeoutError:
            pass

    async def _connect(self) -> bool:
        self._drop("the server closed it")
        self._connecting = self._loop.create_task(self._open_connection())
        try:
            await self._connecting
        except asyncio.CancelledError:
            if not self._last_call.is_set():
                raise
            return False
        except Exception as error:
            self._could_not_connect(error)
            return False
        finally:
            self._connecting = None
            self._tried.set()
        if self._failure is not None:
            log.info("connected to PostgreSQL again", database=str(self.settings))
            self._failure = None
        return True

    async def _open_connection(self) -> None:
        connection, backend = await connect(self.settings, self._name)
        with closed_after_failure(connection):
            if self._lost is not None:
                await end(self._lost, connection, self.settings.connect_timeout_s)
                self._lost = None
            if not self._is_current:
                async with asyncio.timeout(_MIGRATION_S):
                    where = f"the schema {self.settings.schema} of {self.settings}"
                    await bring_up_to_date(connection, self.settings.schema, self._components, where)
                self._is_current = True
        self._connection, self._backend = connection, backend
        connection.add_termination_listener(lambda _: self._wake.set())

    def _could_not_connect(self, error: Exception) -> None:
        if not is_of_database(error) and not isinstance(error, TidelogError):
            log.error("a bug prevents a connection to PostgreSQL", exc_info=error)
        self._failure_lasts = is_for_operator(error)
        failure = explained(error, "connect to", str(self.settings))
        if self._failure is None or type(self._failure) is not type(failure):
            log.error("there is no connection to PostgreSQL; trying again", reason=str(failure))
        self._failure = fresh(failure)
        if self._failure_lasts:
            self._fail_all(failure)

    async def _do(self, unit: _Unit, connection: Connection) -> None:
        if unit.answer.done():  # expired
            return
        unit.attempts += 1
        unit.expiry.cancel()  # from here on the deadline of the work itself counts
        try:
            async with asyncio.timeout(self.settings.deadline_s):
                result = await _perform(unit, connection)
        except Exception as error:
            self._failed(unit, connection, error)
        except BaseException:
            unit.fail(_unknown("the event loop was stopped") if unit.may_be_done else self._unavailable())
            raise
        else:
            unit.answer.set_result(result)

    def _failed(self, unit: _Unit, connection: Connection, error: Exception) -> None:
        reason = explained(error, "use", str(self.settings))
        is_gone = connection.is_closed() or is_lost(error)
        if is_gone or needs_new_connection(error):
            self._drop(str(reason))
        if isinstance(error, TidelogError) or not is_of_database(error):
            unit.fail(error)
        elif is_gone and unit.may_be_done:
            unit.fail(_unknown(str(reason)))
        elif is_gone or (is_retried(error) and unit.attempts < _MOST_ATTEMPTS):
            self._again(unit)  # nothing was changed
        else:
            unit.fail(reason)

    def _again(self, unit: _Unit) -> None:
        expires = unit.expiry.when()
        if expires <= self._loop.time():
            unit.fail(self._unavailable())
        else:
            unit.expiry = self._loop.call_at(expires, self._expire, unit)
            self._units.appendleft(unit)

    def _drop(self, reason: str) -> None:
        """The connection is of no use any more."""
        if self._connection is None:
            return
        log.warning("the connection to PostgreSQL is lost", database=str(self.settings), reason=reason)
        self._connection.terminate()
        self._connection, self._lost, self._backend = None, self._backend, None

    def _fail_all(self, error: TidelogError) -> None:
        while self._units:
            self._units.popleft().fail(fresh(error))

    async def _hang_up(self) -> None:
        if self._connection is not None:
            try:
                await self._connection.close(timeout=self.settings.connect_timeout_s)
            except Exception:
                self._connection.terminate()


async def _perform(unit: _Unit, connection: Connection) -> object:
    unit.may_be_done = False
    if not unit.begin:
        unit.may_be_done = unit.is_change
        return await unit.work(connection)
    await connection.execute(unit.begin)
    try:
        result = await unit.work(connection)
    except Exception:
        if not connection.is_closed():
            await connection.execute("ROLLBACK")
        raise
    unit.may_be_done = unit.is_change
    if await connection.execute("COMMIT") != "COMMIT":
        raise StorageUnavailable("the transaction was rolled back, because one of its statements had failed")
    return result


def _unknown(reason: str) -> OutcomeUnknown:
    return OutcomeUnknown(f"it is not known whether the database made a change: {reason}")
