"""The clients of planning on the driver, of tasks and of commits.

A broker that does not answer may be restarting, so none of these clients fails before
`kafka.default.api.timeout.ms` (default 30 seconds) has passed.
"""

import os
import time

from tidelog.client import Client, connect
from tidelog.client.deadline import Backoff
from tidelog.client.errors import ClientError
from tidelog.client.options import ClientOptions

_clients: dict[tuple[int, str, ClientOptions], Client] = {}


def connect_patiently(bootstrap: str, options: ClientOptions | None = None) -> Client:
    """Connect, retrying up to the timeout of the client's operations, which retry by themselves."""
    options = options or ClientOptions()
    deadline = time.monotonic() + options.timeout_ms / 1000
    backoff = Backoff(options.retry_backoff_ms, options.retry_backoff_max_ms)
    while True:
        try:
            return connect(bootstrap, options)
        except ClientError as error:
            pause = backoff.next_s()
            if not error.retriable or time.monotonic() + pause > deadline:
                # In the text, not as a note: Spark shows only the last line of a worker's traceback.
                error.args = (f"{error} (tried for {options.timeout_ms / 1000:g} s: kafka.default.api.timeout.ms)",)
                raise
            time.sleep(pause)


def shared_client(bootstrap: str, options: ClientOptions) -> Client:
    """One client for all tasks of this worker process. A forked worker does not reuse that of its parent."""
    place = (os.getpid(), bootstrap, options)
    client = _clients.get(place)
    if client is None:
        client = _clients[place] = connect_patiently(bootstrap, options)
    return client
