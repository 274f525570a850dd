"""Looking at a data directory from outside."""

import sys
from pathlib import Path

import pytest

from tidelog.storage.local import inspect
from tidelog.storage.local.layout import LOCK
from tidelog.storage.local.store import LocalStore


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc/locks")
def test_a_lock_on_another_device_with_the_same_inode_number_is_not_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, locks = tmp_path / "data", tmp_path / "locks"
    store = LocalStore(str(data), inline=True)
    inode = (data / LOCK).stat().st_ino
    (own,) = (line for line in Path("/proc/locks").read_text().splitlines() if f":{inode} " in line)
    monkeypatch.setattr(inspect, "_PROC_LOCKS", str(locks))
    device = own.split()[5].rpartition(":")[0]

    locks.write_text(own + "\n")
    assert inspect.holder_of(str(data)) is not None
    locks.write_text(own.replace(f"{device}:{inode}", f"7f:7f:{inode}") + "\n")
    assert inspect.holder_of(str(data)) is None
    locks.write_text(own.replace(f":{inode} ", f":1{inode} ") + "\n")
    assert inspect.holder_of(str(data)) is None
    assert store.close_now() == {}
