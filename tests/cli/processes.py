"""`tidelog produce` and `tidelog consume` as processes of their own: bytes in, bytes out.

Most tests of commands need only the fixtures `put` and `shown` of `serving`, which stay in the process.
"""

import subprocess
import sys
from collections.abc import Callable
from typing import TypeAlias

Put: TypeAlias = Callable[..., None]
Shown: TypeAlias = Callable[..., str]

TIDELOG = [sys.executable, "-m", "tidelog"]


def produced(topic: str, content: bytes, *options: str) -> subprocess.CompletedProcess[bytes]:
    """What `tidelog produce` does with this on its stdin, as a process of its own."""
    return subprocess.run([*TIDELOG, "produce", topic, *options], input=content, capture_output=True, check=False)


def consumed(topic: str, *options: str) -> bytes:
    """What `tidelog consume --exit` writes, byte for byte."""
    command = [*TIDELOG, "consume", topic, "--exit", *options]
    done = subprocess.run(command, capture_output=True, check=True)
    assert done.stderr == b""
    return done.stdout
