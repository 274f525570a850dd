"""Clusters that Spark runs on: whether they answer, whether they have room, and what to do when they fail.

Spark waits long, and in silence, for a cluster that is not there or has no room; and what it says when machines of a
cluster lack something helps few. Who starts a session asks here first, and who shows an error asks here for words.
"""

import contextlib
import ipaddress
import re
import socket
import sys
import threading
import time
from typing import Any

from tidelog.errors import TidelogError

_ANSWER_SECONDS = 5.0
_ROOM_SECONDS = 15
_CONNECT_PORT = 15002  # of Spark Connect, where an address names none
_MASTER_PORT = 7077

_INSTALL = 'run pip install "tidelog[spark]" in the Python of every machine of the cluster (and of a Connect server)'
# What Spark's words mean, and what to do. The first that is found counts; a group is quoted.
_ADVICE = (
    (
        r"No module named '?(tidelog|pyspark_tidelog|numba|pyarrow|fastcrc|cramjam)",
        f"the cluster's Python has no module {{}}; {_INSTALL}",
    ),
    (
        r"DATA_SOURCE_NOT_FOUND\] Failed to find the data source: (tidelog)",
        f"Spark there does not know the format {{}}; {_INSTALL}, and start the server with PYSPARK_PYTHON set to it",
    ),
    (
        r'Cannot run program "([^"]*python[^"]*)"',
        "the cluster's machines have no {}; name the Python there that has Tidelog: --conf spark.pyspark.python=PATH",
    ),
    (
        r"PYTHON_VERSION_MISMATCH\] (Python in worker has different version[^.]*\.\d+ than that in driver: [\d.]+\d)",
        "{}; use the same version on both, and name the workers' with --conf spark.pyspark.python=PATH",
    ),
    (
        r"client\.errors\.Unreachable: ([^\n]+)",
        "{} (machines of a cluster must reach what the broker advertises: serve --listen LISTEN=ADVERTISED)",
    ),
)


class ClusterUnreachable(TidelogError):
    """Nobody answers where the cluster should be."""


def is_local(master: str) -> bool:
    """Spark in this process's own JVM."""
    return master.startswith("local")


def is_on_this_machine(master: str) -> bool:
    """All of it, by its address: nobody else reaches the loopback."""
    return is_local(master) or (
        master.startswith("spark://") and all(_is_loopback(host) for host, _ in _masters(master))
    )


def _masters(master: str) -> list[tuple[str, int]]:
    """Of `spark://a:7077,b:7077`."""
    places = []
    for place in master.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":") if re.search(r":\d+$", place) else (place, "", "")
        places.append((host.strip("[]"), int(port or _MASTER_PORT)))
    return places


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def reach_master(master: str) -> None:
    """One of a standalone cluster's masters answers, else ClusterUnreachable. Others are Spark's to find."""
    if not master.startswith("spark://"):
        return
    problems = []
    for place in _masters(master):
        try:
            with socket.create_connection(place, _ANSWER_SECONDS):
                return
        except OSError as error:
            problems.append(f"{place[0]}:{place[1]}: {error.strerror or error}")
    raise ClusterUnreachable(
        f"no Spark master answers at {master} ({'; '.join(problems)}); is it running, and is this the address that "
        "its page shows?"
    )


def reach_connect_server(url: str) -> None:
    """The way a session goes, with its token and TLS. Spark would try for minutes."""
    import grpc  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client.core import DefaultChannelBuilder

    try:
        channel = DefaultChannelBuilder(url).toChannel()
    except PySparkException as error:
        raise TidelogError(
            f"{url} is no address of a Spark Connect server, such as sc://host:15002: {error}"
        ) from None
    try:
        grpc.channel_ready_future(channel).result(_ANSWER_SECONDS)
    except grpc.FutureTimeoutError:
        raise ClusterUnreachable(
            f"no Spark Connect server answers at {url}; is it running (sbin/start-connect-server.sh), and on this "
            f"port ({_CONNECT_PORT} unless it was told another)?"
        ) from None
    finally:
        channel.close()


def watch_for_room(context: Any) -> None:  # noqa: ANN401  (a SparkContext)
    """Say so if work waits and the cluster gives no executor for it. Waiting may be right, but not in silence."""
    threading.Thread(
        target=_say_if_there_is_no_room, args=(context,), daemon=True, name="room on the cluster"
    ).start()


def _say_if_there_is_no_room(context: Any) -> None:  # noqa: ANN401
    waited = 0
    with contextlib.suppress(Exception):  # the context has ended
        while waited < _ROOM_SECONDS:
            time.sleep(1)
            if context._jsc is None or context._jsc.sc().getExecutorMemoryStatus().size() > 1:  # the driver is one
                return
            waited += 1 if context.statusTracker().getActiveJobsIds() else 0
        sys.stderr.write(
            f"tidelog: waiting: {context.master} has given no executor in {_ROOM_SECONDS} s. If that goes on, no "
            "worker has the cores and memory that are asked for (--conf spark.executor.memory=1g), or other "
            "applications hold them: one without spark.cores.max takes all\n"
        )
        sys.stderr.flush()


def advice(said: str) -> str | None:
    """What to do about an error of Spark's that comes from what the cluster's machines have; None: nothing known."""
    for pattern, words in _ADVICE:
        found = re.search(pattern, said)
        if found is not None:
            return words.format(found[1])
    return None


def in_short(error: BaseException) -> str:
    """An error of a Spark job in a line: advice, or what our code in a worker said, or Spark's own first words."""
    said = str(error)
    ours = re.findall(r"^\S*tidelog\.\S+: (.+)$", said, re.MULTILINE)
    known = advice(said)
    if known or ours:
        return known or str(ours[-1])
    raised = re.findall(r"^(?:\w+\.)*(\w+(?:Error|Exception): .+)$", said, re.MULTILINE)
    return str(raised[-1]) if raised else said.strip().splitlines()[0]
