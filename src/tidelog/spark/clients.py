"""Clients of tasks, and of the driver's last steps. A query's brokers were there when it was planned: if they are not
now, that may pass, as a restart does."""

import os
import time

from tidelog.client import Client, connect
from tidelog.client.deadline import Backoff
from tidelog.client.errors import Unreachable
from tidelog.client.options import ClientOptions

_clients: dict[tuple[int, str, ClientOptions], Client] = {}


def connect_patiently(bootstrap: str, options: ClientOptions) -> Client:
    """Tries for as long as an operation of the client may take."""
    deadline = time.monotonic() + options.timeout_ms / 1000
    backoff = Backoff(options.retry_backoff_ms, options.retry_backoff_max_ms)
    while True:
        try:
            return connect(bootstrap, options)
        except Unreachable:
            pause = backoff.next_s()
            if time.monotonic() + pause > deadline:
                raise
            time.sleep(pause)


def shared_client(bootstrap: str, options: ClientOptions) -> Client:
    """One for all tasks that this worker process runs; a worker that was forked from it takes its own."""
    place = (os.getpid(), bootstrap, options)
    client = _clients.get(place)
    if client is None:
        client = _clients[place] = connect_patiently(bootstrap, options)
    return client
