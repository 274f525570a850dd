"""Builds `tidelog.records._walk`, the walk over records in C, wherever there is a compiler and Python's headers.

Without them the package is installed all the same, and `tidelog.records.walk` does the work in Python: the build says
so, and so does the broker when it starts. `CC=false` asks for that. A wheel with the module is for this platform and
every Python from 3.11 on (limited API); one without it is for all. An editable install has it beside its source.
"""

import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = "src/tidelog/records/_walk.c"
MODULE = "_walk.abi3.so"
PACKAGE = "tidelog/records"
TAG = "cp311-abi3"


class WalkBuildHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """`version` is "editable" or "standard"."""
        is_editable = version == "editable"
        directory = os.path.join(self.root, "src", PACKAGE) if is_editable else tempfile.mkdtemp()
        target = os.path.join(directory, MODULE)
        problem = compile_module(os.path.join(self.root, SOURCE), target)
        if problem is not None:
            self.app.display_warning(
                f"Tidelog is built without its C module, records are checked in Python: {problem}"
            )
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"{TAG}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
        if not is_editable:
            build_data["force_include"][target] = f"{PACKAGE}/{MODULE}"


def compile_module(source: str, target: str) -> str | None:
    """Why there is no `target` now; None if there is one, and it can be loaded."""
    if os.path.exists(target):
        os.remove(target)
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    linking = ["-bundle", "-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-shared"]
    include = sysconfig.get_paths()["include"]
    options = ["-O3", "-fPIC", *linking, f"-I{include}", *shlex.split(os.environ.get("CFLAGS", ""))]
    problem = _run([*compiler, *options, source, "-o", target])
    if problem is None:
        problem = _run([sys.executable, "-c", _LOAD, target])
    if problem is not None and os.path.exists(target):
        os.remove(target)
    return problem


_LOAD = """
import importlib.machinery, importlib.util, sys
loader = importlib.machinery.ExtensionFileLoader("_walk", sys.argv[1])
module = importlib.util.module_from_spec(importlib.util.spec_from_loader("_walk", loader))
loader.exec_module(module)
module.walk(b"", 0, 0, 0, False, False, 0, 0, 0)
"""


def _run(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)  # noqa: S603, our own compiler
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{command[0]}: {error}"
    if done.returncode == 0:
        return None
    said = (done.stderr or done.stdout).strip().splitlines()
    return f"{command[0]} failed" + (f": {said[0]}" if said else "")
