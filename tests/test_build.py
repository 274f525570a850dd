"""What `pip install` builds: the walk over records in C where there is a compiler, and none elsewhere."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("hatchling")
ROOT = Path(__file__).parent.parent
MODULE = "tidelog/records/_walk.abi3.so"


def build_wheel(directory: Path, **environment: str) -> tuple[str, Path]:
    """What the build said, and the wheel."""
    tree = directory / "tree"
    ignored = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(ROOT / "src", tree / "src", ignore=ignored)
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)]
    done = subprocess.run(
        command, cwd=tree, env={**os.environ, **environment}, capture_output=True, text=True, check=True, timeout=100
    )
    (wheel,) = directory.glob("*.whl")
    return done.stdout + done.stderr, wheel


def test_without_a_compiler_there_is_a_wheel_for_every_platform(tmp_path: Path) -> None:
    said, wheel = build_wheel(tmp_path, CC="false")
    assert wheel.name.endswith("-py3-none-any.whl")
    assert MODULE not in zipfile.ZipFile(wheel).namelist()
    assert "built without its C module" in said


def test_a_source_that_does_not_compile_is_no_obstacle(tmp_path: Path) -> None:
    _, wheel = build_wheel(tmp_path, CFLAGS="-include /nowhere.h")
    assert wheel.name.endswith("-py3-none-any.whl")


def test_with_a_compiler_the_wheel_has_the_module_and_is_for_this_platform(tmp_path: Path) -> None:
    if not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")) or shutil.which("cc") is None:
        pytest.skip("there is no compiler")
    said, wheel = build_wheel(tmp_path, CC="cc", CFLAGS="-Wall -Wextra -Werror")
    assert "built without" not in said
    assert "-cp311-abi3-" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        archive.extract(MODULE, tmp_path)
    program = "import _walk; assert _walk.walk(b'', 0, 0, 0, False, False, 0, 0, 0)[:2] == (0, 0)"
    subprocess.run([sys.executable, "-c", program], cwd=(tmp_path / MODULE).parent, check=True, timeout=60)
