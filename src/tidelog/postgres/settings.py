"""`PostgresSettings`: where the database is, and how long to wait for it. The password is never shown.

    postgresql://user:password@host:port/database?sslmode=verify-full&schema=tidelog

Of several hosts, separated by commas, the first that accepts writes is used. The connection must reach PostgreSQL
itself, or a proxy that gives each client a server connection of its own for as long as the client is connected.
"""

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from tidelog.errors import InvalidSettings

_SCHEMES = ("postgresql", "postgres")
DEFAULT_SCHEMA = "tidelog"
_OPTIONS = frozenset(
    {
        "host",
        "port",
        "sslmode",
        "sslrootcert",
        "sslcert",
        "sslkey",
        "sslcrl",
        "sslnegotiation",
        "target_session_attrs",
    }
)
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_ENCODE = "percent-encode special characters in the user name and the password, such as %40 for @"


@dataclass(frozen=True)
class PostgresSettings:
    """Use `parse`, which validates."""

    url: str  # without the password and without our own options
    password: str | None = field(default=None, repr=False)
    schema: str = DEFAULT_SCHEMA
    deadline_s: float = 10.0
    """How long a unit of work may wait for a connection, and how long it may then run."""
    connect_timeout_s: float = 5.0

    @classmethod
    def parse(
        cls,
        url: str,
        *,
        password: str | None = None,
        schema: str | None = None,
        deadline_s: float = 10.0,
        connect_timeout_s: float = 5.0,
    ) -> "PostgresSettings":
        """`password` and `schema` take precedence over those in the URL. InvalidSettings names all problems, and
        repeats no part of the URL, because a password that is not encoded may be anywhere in it."""
        problems = []
        parts = urlsplit(url)
        if parts.scheme not in _SCHEMES:
            raise InvalidSettings(["the URL of the database must begin with postgresql://"])
        login, _, hosts = parts.netloc.rpartition("@")
        user, _, secret = login.partition(":")
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        in_options = options.pop("password", None)
        if password is None:
            password = in_options if in_options is not None else unquote(secret) if secret else None
        chosen = options.pop("schema", None)
        schema = schema or chosen or DEFAULT_SCHEMA
        if not _SCHEMA.fullmatch(schema):
            problems.append("the name of the schema may only contain a-z, 0-9 and _, and must not begin with a digit")
        if options.keys() - _OPTIONS:
            problems.append(
                f"the URL of the database has unknown options; known are {', '.join(sorted({*_OPTIONS, 'schema'}))}"
            )
        if any(_port_is_wrong(host) for host in hosts.split(",")):
            problems.append(f"a port in the URL of the database is not a number from 1 to 65535; {_ENCODE}")
        if parts.fragment:
            problems.append(f"the URL of the database contains a #; {_ENCODE}")
        if not parts.path.strip("/"):
            problems.append("the URL of the database names no database: postgresql://host/database")
        if "/" in parts.path.strip("/"):
            problems.append(f"the name of the database in the URL contains a /; {_ENCODE}")
        if not user:
            problems.append("the URL of the database names no user: postgresql://user@host/database")
        if deadline_s <= 0 or connect_timeout_s <= 0:
            problems.append("the timeouts of the database must be positive")
        if problems:
            raise InvalidSettings(problems)
        if "," in hosts:
            options.setdefault("target_session_attrs", "read-write")
        plain = urlunsplit(("postgresql", f"{user}@{hosts}", parts.path, urlencode(options), ""))
        return cls(plain, password, schema, deadline_s, connect_timeout_s)

    def __str__(self) -> str:
        """For messages: without the options."""
        parts = urlsplit(self.url)
        return urlunsplit(("postgresql", parts.netloc, parts.path, "", ""))


def _port_is_wrong(host: str) -> bool:
    _, colon, port = host.rpartition(":")
    if not colon or port.endswith("]"):  # no port, or an IPv6 address without one
        return False
    return not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16
