"""Connections to PostgreSQL, for the engines of a cluster: settings, a session that reconnects, versions of tables.

The extra `cluster` installs the driver. Importing this package without it raises MissingExtra.
"""

from tidelog.errors import MissingExtra

try:
    import asyncpg  # noqa: F401
except ImportError as error:
    raise MissingExtra('PostgreSQL needs an extra: run pip install "tidelog[cluster]"') from error

from tidelog.postgres.schema import Component, Connection, scripted
from tidelog.postgres.session import Session
from tidelog.postgres.settings import PostgresSettings

__all__ = ["Component", "Connection", "PostgresSettings", "Session", "scripted"]
