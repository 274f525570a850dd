"""The system's page cache, as tests need it: empty."""

import os
from pathlib import Path

from tidelog.storage.local.files import NotCached, OsFiles


def evict(directory: Path) -> None:
    """Let the files in here leave memory, as far as the file system does that on request."""
    for path in directory.rglob("*"):
        if path.is_file():
            fd = os.open(path, os.O_RDONLY)
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def tells_what_is_cached(directory: Path) -> bool:
    """True if files in here leave memory when they are asked to, and the system says so."""
    path = directory / "probe"
    path.write_bytes(b"x" * 8192)
    evict(directory)
    files = OsFiles()
    probe = files.open(str(path), writable=False)
    try:
        files.without_waiting(lambda: probe.pread(1, 4096))
    except NotCached as missing:
        missing.read_it(1)
        return files.without_waiting(lambda: probe.pread(1, 4096)) == b"x"
    finally:
        path.unlink()
    return False
