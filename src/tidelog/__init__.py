"""Tidelog: a log-based message broker in Python that speaks the Kafka protocol.

tidelog.embedded()    a running broker in this process
tidelog.connect()     a small client
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from tidelog.client import connect as connect
    from tidelog.embedding import embedded as embedded

_LAZY = {"connect": "tidelog.client", "embedded": "tidelog.embedding"}


def __getattr__(name: str) -> Any:  # noqa: ANN401  (imported when it is asked for, so that `import tidelog` is instant)
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'tidelog' has no attribute {name!r}")
