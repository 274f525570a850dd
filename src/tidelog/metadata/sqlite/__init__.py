"""The engine of a single node: one SQLite file in the data directory, described in docs/formats/metadata.md."""

from tidelog.metadata.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
