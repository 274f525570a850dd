"""Kernels that are compiled ahead, by another process."""

import subprocess
import sys
import threading

import pytest

from tidelog.records import columnar, compaction_columnar
from tidelog.records.loading import compile_ahead


def test_what_is_compiled_already_needs_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    columnar.warm_up()
    compaction_columnar.warm_up()
    monkeypatch.setattr(subprocess, "Popen", None)
    assert compile_ahead(threading.Event())


def test_a_process_that_cannot_be_started_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are compiled when they are first used, then."""
    monkeypatch.setattr(columnar, "is_compiled", lambda: False)
    monkeypatch.setattr(sys, "executable", "/there/is/no/such/program")
    assert compile_ahead(threading.Event())


def test_who_gives_up_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columnar, "is_compiled", lambda: False)
    given_up = threading.Event()
    given_up.set()
    assert not compile_ahead(given_up)
