"""Clusters that Spark runs on: whether they answer, whether they have free executors, and advice when they fail.

Spark waits for minutes, without a message, for a cluster that does not exist or has no free executors; and its errors
about machines that lack something are hard to understand. So a session checks the cluster first, and errors of Spark
are replaced by advice where it is known.
"""

import contextlib
import re
import socket
import sys
import threading
import time
from typing import Any

from tidelog.errors import TidelogError
from tidelog.settings import is_loopback

_ANSWER_SECONDS = 5.0
_ROOM_SECONDS = 15
_CONNECT_PORT = 15002  # Spark Connect's default
_MASTER_PORT = 7077

_INSTALL = 'run pip install "tidelog[spark]" in the Python of every machine of the cluster (and of a Connect server)'
# Patterns of Spark's errors, each with advice that quotes the first group. The first match counts.
_ADVICE = (
    (
        r"No module named '?(tidelog|pyspark_tidelog|numba|pyarrow|fastcrc|cramjam)",
        f"the cluster's Python has no module {{}}; {_INSTALL}",
    ),
    (
        r"DATA_SOURCE_NOT_FOUND\] Failed to find the data source: (tidelog)",
        f"that Spark does not know the format {{}}; {_INSTALL}, and start the server with PYSPARK_PYTHON set to it",
    ),
    (
        r'Cannot run program "([^"]*python[^"]*)"',
        "the cluster's machines have no {}; name the Python that has Tidelog there: --conf spark.pyspark.python=PATH",
    ),
    (
        r"PYTHON_VERSION_MISMATCH\] (Python in worker has different version[^.]*\.\d+ than that in driver: [\d.]+\d)",
        "{}; use the same version on both, and name the workers' Python with --conf spark.pyspark.python=PATH",
    ),
    (
        r"client\.errors\.Unreachable: ([^\n]+)",
        "{} (the cluster's machines must reach what the broker advertises: serve --listen LISTEN=ADVERTISED)",
    ),
)


class ClusterUnreachable(TidelogError):
    """The cluster does not answer at its address."""


def is_local(master: str) -> bool:
    """True if Spark runs in this process's own JVM."""
    return master.startswith("local")


def is_on_this_machine(master: str) -> bool:
    """True if the whole cluster is on this machine: it is local, or its masters have loopback addresses."""
    return is_local(master) or (
        master.startswith("spark://") and all(is_loopback(host) for host, _ in _masters(master))
    )


def _masters(master: str) -> list[tuple[str, int]]:
    """The hosts and ports of `spark://a:7077,b:7077`."""
    places = []
    for place in master.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":") if re.search(r":\d+$", place) else (place, "", "")
        places.append((host.strip("[]"), int(port or _MASTER_PORT)))
    return places


def reach_master(master: str) -> None:
    """Raises ClusterUnreachable if no master of a standalone cluster answers. Other kinds of clusters are not
    checked."""
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
        f"no Spark master answers at {master} ({'; '.join(problems)}); is it running, and is this the address on "
        "its web page?"
    )


def reach_connect_server(url: str) -> None:
    """Raises ClusterUnreachable if the server does not answer. Connects as a session does, with token and TLS; Spark
    itself would retry for minutes."""
    import grpc  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client.core import DefaultChannelBuilder

    try:
        channel = DefaultChannelBuilder(url).toChannel()
    except PySparkException as error:
        raise TidelogError(
            f"{url} is not an address of a Spark Connect server, such as sc://host:15002: {error}"
        ) from None
    try:
        grpc.channel_ready_future(channel).result(_ANSWER_SECONDS)
    except grpc.FutureTimeoutError:
        raise ClusterUnreachable(
            f"no Spark Connect server answers at {url}; is it running (sbin/start-connect-server.sh), and on this "
            f"port (default: {_CONNECT_PORT})?"
        ) from None
    finally:
        channel.close()


def watch_for_room(context: Any) -> None:  # noqa: ANN401  (a SparkContext)
    """Print a message if jobs wait because the cluster has given no executor. The jobs go on waiting."""
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
            f"tidelog: waiting: {context.master} has given no executor in {_ROOM_SECONDS} s. If this continues, no "
            "worker has the requested cores and memory (ask for less: --conf spark.executor.memory=1g), or other "
            "applications use them: one without spark.cores.max takes all\n"
        )
        sys.stderr.flush()


def advice(said: str) -> str | None:
    """What to do about an error of Spark that is caused by the setup of the cluster's machines; None if unknown."""
    for pattern, words in _ADVICE:
        found = re.search(pattern, said)
        if found is not None:
            return words.format(found[1])
    return None


def in_short(error: BaseException) -> str:
    """An error of a Spark job in one line: advice, or the error of our code in a worker, or Spark's first line."""
    said = str(error)
    ours = re.findall(r"^\S*tidelog\.\S+: (.+)$", said, re.MULTILINE)
    known = advice(said)
    if known or ours:
        return known or str(ours[-1])
    raised = re.findall(r"^(?:\w+\.)*(\w+(?:Error|Exception): .+)$", said, re.MULTILINE)
    return str(raised[-1]) if raised else said.strip().splitlines()[0]
