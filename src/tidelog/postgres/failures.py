"""What a failure of PostgreSQL or of the connection means, as our errors.

PostgreSQL tells an ERROR, which ends a statement, from a FATAL error, which ends the session. After an ERROR nothing
was changed, even if the statement was COMMIT. A FATAL error may come after a commit took effect (the server is shut
down while the commit waits for a standby), so it is no better than a lost connection.
"""

import asyncpg

from tidelog.errors import InvalidInput, StorageFull, StorageUnavailable, TidelogError

_RETRIED = frozenset({"40001", "40P01"})  # serialization failure, deadlock
_STALE = frozenset({"25006", "0A000"})  # this server is read-only now; a cached plan no longer fits its tables
_REFUSALS = {  # what an operator has to correct; by SQLSTATE or its first two characters
    "28": "the login was refused; check user, password and pg_hba.conf",
    "3D": "the database does not exist; create it",
    "42501": "a permission is missing; the user must own the schema, or be allowed to create it",
}


def is_of_database(error: BaseException) -> bool:
    """False for a bug of ours."""
    return isinstance(error, asyncpg.PostgresError | asyncpg.InterfaceError | asyncpg.InternalClientError | OSError)


def is_lost(error: BaseException) -> bool:
    """True if the session on the server has ended or may end: nothing more can be learned over this connection."""
    if isinstance(error, asyncpg.PostgresError):
        severity = getattr(error, "severity_en", None)  # None: the driver itself raised it
        return severity in ("FATAL", "PANIC") or (error.sqlstate or "").startswith("08")
    return isinstance(error, OSError | asyncpg.InternalClientError)  # TimeoutError is an OSError


def is_retried(error: BaseException) -> bool:
    """True if the statement had bad luck with other sessions, and the same work may succeed now."""
    return isinstance(error, asyncpg.PostgresError) and error.sqlstate in _RETRIED


def needs_new_connection(error: BaseException) -> bool:
    return isinstance(error, asyncpg.PostgresError) and error.sqlstate in _STALE


def is_for_operator(error: BaseException) -> bool:
    """True if the attempt to connect was refused for a reason that lasts until someone corrects it."""
    if isinstance(error, asyncpg.PostgresError):
        return _refusal(error.sqlstate or "") is not None
    if isinstance(error, TidelogError):
        return not error.retriable
    return isinstance(error, asyncpg.InterfaceError)  # a setting that the driver refuses


def explained(error: BaseException, action: str, where: str) -> TidelogError:
    """The error for a caller who may rely on it that nothing was changed. `action` is a verb."""
    if isinstance(error, TidelogError):
        return error
    what = _message(error)
    if isinstance(error, asyncpg.PostgresError):
        state = error.sqlstate or ""
        if state == "53100":
            return StorageFull(f"cannot {action} {where}: the disk of PostgreSQL is full ({what})")
        if state.startswith("22") or state == "23502":  # also a null in a NOT NULL column
            # The driver's own message repeats the value; its cause does not.
            return InvalidInput(f"a value cannot be stored: {error.__cause__ or what}")
        advice = _refusal(state)
        if advice is not None:
            return StorageUnavailable(f"cannot {action} {where}: {advice} ({what})")
    return StorageUnavailable(f"cannot {action} {where}: {what}")


def _refusal(state: str) -> str | None:
    return _REFUSALS.get(state) or _REFUSALS.get(state[:2])


def _message(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    text = str(error).strip().split("\n", 1)[0]
    return text or type(error).__name__
