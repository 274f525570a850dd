"""One run of a project at a time.

Two concurrent runs would overwrite each other's checkpoints. The file is locked by the process that runs the project
and by its JVM. When the process is killed, its JVM still runs and writes for a short time; the next run waits for it.
"""

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tidelog.errors import InvalidInput

_PROCESS, _JVM = 0, 1  # the byte of the file that each of them locks
_PATIENCE_S = 60.0


class RunLock:
    """Held until `close`. Raises InvalidInput if another process holds the lock."""

    def __init__(self, file: Path, jvm: Any = None) -> None:  # noqa: ANN401  (of py4j)
        self._of_jvm: Any = None
        self._file = file.open("a+")
        try:
            self._take(_PROCESS, patience_s=0)
            self._take(_JVM, patience_s=_PATIENCE_S)
            self._file.truncate(0)
            self._file.write(f"{os.getpid()}\n")
            self._file.flush()
            if jvm is not None:
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _JVM)
                self._of_jvm = jvm.java.io.RandomAccessFile(str(file), "rw")
                self._of_jvm.getChannel().lock(_JVM, 1, False)
        except BaseException:
            self.close()
            raise

    def _take(self, byte: int, *, patience_s: float) -> None:
        deadline = time.monotonic() + patience_s
        while True:
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
                return
            except OSError:
                if time.monotonic() >= deadline:
                    self._file.seek(0)
                    holder = self._file.read().strip()
                    raise InvalidInput(
                        f"another run of this project is active (process {holder}); wait for it, or stop it"
                    ) from None
            time.sleep(0.1)

    def close(self) -> None:
        if self._of_jvm is not None:
            self._of_jvm.close()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
