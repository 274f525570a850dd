"""Opens a connection to PostgreSQL, with everything that a session of ours needs to be safe."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import asyncpg

from tidelog.errors import StorageUnavailable
from tidelog.postgres.schema import Connection
from tidelog.postgres.settings import PostgresSettings

if TYPE_CHECKING:
    from datetime import datetime

_CACHED_STATEMENTS = 256
_GONE_WITHIN_MS = 2_000


class Backend(NamedTuple):
    """The process of the server that serves a connection. Process ids are reused, so the start belongs to it."""

    pid: int
    started: "datetime"


async def connect(settings: PostgresSettings, name: str) -> tuple[Connection, Backend]:
    patience_ms = round(settings.deadline_s * 1000)
    connection: Connection = await asyncpg.connect(
        settings.url,
        password=settings.password,
        timeout=settings.connect_timeout_s,
        statement_cache_size=_CACHED_STATEMENTS,
        server_settings={
            "application_name": name,
            "search_path": f'"{settings.schema}"',
            "default_transaction_isolation": "read committed",
            # The server gives up first: then it is certain that nothing was changed.
            "statement_timeout": str(max(1, patience_ms * 9 // 10)),
            "idle_in_transaction_session_timeout": str(patience_ms),
            # The server notices that this machine is gone, and releases its locks.
            "tcp_keepalives_idle": "10",
            "tcp_keepalives_interval": "5",
            "tcp_keepalives_count": "3",
        },
    )
    with closed_after_failure(connection):
        row = await connection.fetchrow(
            "SELECT backend_start, pg_is_in_recovery() AS is_standby,"
            " current_setting('synchronous_commit') AS durable"
            " FROM pg_stat_activity WHERE pid = pg_backend_pid()",
            timeout=settings.connect_timeout_s,
        )
        assert row is not None
        if row["is_standby"]:
            raise StorageUnavailable(f"{settings} is a standby, which accepts no writes")
        if row["durable"] == "off":  # a commit that was acknowledged could be lost
            await connection.execute("SET synchronous_commit = on", timeout=settings.connect_timeout_s)
        return connection, Backend(connection.get_server_pid(), row["backend_start"])


@contextmanager
def closed_after_failure(connection: Connection) -> Iterator[None]:
    """For the first steps over a new connection. The driver has one error for a connection that is already lost and
    for settings that it refuses; here it can only be the former, which passes: ConnectionError."""
    try:
        yield
    except asyncpg.InterfaceError as error:
        connection.terminate()
        raise ConnectionError(str(error)) from error
    except BaseException:
        connection.terminate()
        raise


async def end(backend: Backend, connection: Connection, timeout_s: float) -> None:
    """Returns when that process of the server is gone: whatever it was doing is done by then, or never will be.
    StorageUnavailable if it does not end."""
    is_gone = await connection.fetchval(
        "SELECT pg_terminate_backend(pid, $3) FROM pg_stat_activity WHERE pid = $1 AND backend_start = $2",
        backend.pid,
        backend.started,
        _GONE_WITHIN_MS,
        timeout=timeout_s,
    )
    if is_gone is False:  # None: there is no such process
        raise StorageUnavailable(f"the process {backend.pid} of PostgreSQL, whose connection was lost, does not end")
