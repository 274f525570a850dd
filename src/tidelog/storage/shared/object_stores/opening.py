"""Opens the object store that a URL names.

    s3://bucket/prefix       Amazon S3, and what speaks its protocol (option `endpoint`)
    gs://bucket/prefix       Google Cloud Storage
    az://container/prefix    Azure Blob Storage
    file:///directory        a directory that all brokers share

Options and credentials come from the settings or, where these have none, from the environment variables of the
provider (AWS_ACCESS_KEY_ID and so on). They never come from the URL, because the URL is shown in logs and errors.
"""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from tidelog.errors import InvalidSettings, MissingExtra
from tidelog.storage.shared.objects import ObjectStore

INSTALL = 'object stores need an extra: run pip install "tidelog[cluster]"'
CLOUDS = ("s3", "gs", "az")


class Patience(NamedTuple):
    """How long to wait for a store before a call fails with StorageUnavailable."""

    connect_ms: int = 3_000
    request_ms: int = 10_000
    """For one request, which transfers at most 16 MiB."""
    retries: int = 2
    """How often a request is repeated that was answered with an error of the server, or not at all."""
    total_ms: int = 15_000
    """For a call with all its repetitions. Uploads of more than 16 MiB may take as long as they make progress."""


def open_object_store(
    url: str, options: Mapping[str, str] | None = None, patience: Patience | None = None
) -> ObjectStore:
    """`options` are those of obstore for the provider, such as `endpoint`, `region` and `access_key_id`. Raises
    InvalidSettings, which names no values of options, and MissingExtra. Does not connect."""
    patience = patience or Patience()
    parts = _checked(url)
    if parts.scheme == "file":
        from tidelog.storage.shared.object_stores.files import FileObjects

        if options:
            raise InvalidSettings([f"an object store in files has no options: {', '.join(sorted(options))}"])
        return FileObjects(unquote(parts.path), total_ms=patience.total_ms)
    try:
        from tidelog.storage.shared.object_stores.cloud import open_cloud
    except ModuleNotFoundError as error:
        if error.name != "obstore":
            raise
        raise MissingExtra(INSTALL) from error
    return open_cloud(parts.scheme, parts.netloc, parts.path.strip("/"), dict(options or {}), patience)


def _checked(url: str) -> SplitResult:
    parts = urlsplit(url)
    # The URL is not repeated in these errors: it may hold a password.
    if parts.username is not None or parts.password is not None or "@" in parts.netloc:
        raise InvalidSettings(["credentials do not belong in the URL of an object store: use options or environment"])
    if parts.query or parts.fragment:
        raise InvalidSettings(["the URL of an object store ends with its path: use options for everything else"])
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost") or len(parts.path) < 2:
            raise InvalidSettings([f"{url!r} names no directory: write file:///path/of/directory"])
    elif parts.scheme in CLOUDS:
        if not parts.netloc:
            raise InvalidSettings([f"{url!r} names no bucket: write {parts.scheme}://bucket/prefix"])
    else:
        raise InvalidSettings([f"unknown kind of object store {parts.scheme!r}: use s3://, gs://, az:// or file:///"])
    return parts
