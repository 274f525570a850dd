"""The engine of a cluster: the metadata in a PostgreSQL database, described in docs/formats/postgres.md."""

from tidelog.metadata.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
