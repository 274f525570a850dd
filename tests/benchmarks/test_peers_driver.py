"""The native driver against a real broker: what it sends is there, and what is wrong it says."""

from collections.abc import Iterator

import pytest

from benchmarks.peers import install
from benchmarks.peers.bench import Bench, Failed, Scale, verified
from benchmarks.peers.results import RowResult
from benchmarks.peers.rows import Row, all_rows
from benchmarks.peers.servers import Tidelog, evict
from tests.support.brokers import eventually

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    try:
        return Bench(str(tmp_path_factory.mktemp("bench")), Scale(share=200, recovery_gb=0.2, keeps_rates=False))
    except install.Missing as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def server(bench: Bench) -> Iterator[Tidelog]:
    server = Tidelog(bench.fresh_directory("tidelog"))
    try:
        server.may_stand_still = True
        server.start()
        yield server
    finally:
        server.remove()


ROWS = {row.key: row for row in all_rows(full=False, recovery_gb=0.2)}
QUICK = [
    "copy-1000-16p-acks-all-none",
    "copy-1000-16p-acks-all-zstd",
    "wire-64k-acks-all-fsync",
    "small-producers-200",
    "fan-out-8",
    "catch-up",
    "latency-1000",
    "round-trip",
    "recovery",
]


@pytest.mark.parametrize("key", QUICK)
def test_a_row_runs_is_verified_and_measures_all_its_figures(bench: Bench, server: Tidelog, key: str) -> None:
    row: Row = ROWS[key]
    result = RowResult(row.key, row.section, row.title, row.conditions, row.figures)
    result.add("tidelog", row.measure(bench, server))
    assert all(result.summary("tidelog", figure.name) for figure in row.figures)


def test_a_steady_rate_that_was_not_kept_fails_a_row() -> None:
    Scale().check_rate(950, 1000, 0.95)
    with pytest.raises(Failed, match="sent 949 instead of 1000"):
        Scale().check_rate(949, 1000, 0.95)


def test_a_group_shares_out_its_partitions(bench: Bench, server: Tidelog) -> None:
    with bench.topic(server, 12) as topic:
        run = bench.drive(server, "group", topic=topic, partitions=12, members=5, group=topic)
    assert min(run["join_all_seconds"], run["join_one_seconds"], run["leave_one_seconds"]) > 0


def test_both_drivers_agree_on_what_is_in_a_topic(bench: Bench, server: Tidelog) -> None:
    with bench.topic(server, 3) as topic:
        sent = bench.drive(server, "produce", topic=topic, partitions=3, count=3000, size=100)
        verified(sent, bench.drive(server, "consume", topic=topic, partitions=3, count=3000))
        assert bench.drive(server, "wire", topic=topic, partitions=3, readers=1, count=3000)["read_messages"] == 3000


def test_a_message_too_many_is_noticed(bench: Bench, server: Tidelog) -> None:
    with bench.topic(server, 1) as topic:
        bench.drive(server, "produce", topic=topic, count=1001, size=100)
        with pytest.raises(Failed, match="read 1001 messages instead of 1000"):
            bench.drive(server, "consume", topic=topic, count=1000)


def test_other_messages_than_were_sent_are_noticed(bench: Bench, server: Tidelog) -> None:
    with bench.topic(server, 1) as topic:
        sent = bench.drive(server, "produce", topic=topic, count=1000, size=100)
    with bench.topic(server, 1) as topic:
        bench.drive(server, "produce", topic=topic, count=1000, size=100, first=1)
        with pytest.raises(Failed, match="checksum"):
            verified(sent, bench.drive(server, "consume", topic=topic, count=1000))


def test_a_run_that_does_not_end_fails(bench: Bench, server: Tidelog) -> None:
    with bench.topic(server, 1) as topic, pytest.raises(Failed, match="timed out waiting for"):
        bench.drive(server, "wire", topic=topic, readers=1, count=1, timeout=1)


def test_data_can_be_taken_out_of_the_page_cache_and_is_still_there(bench: Bench, server: Tidelog) -> None:
    with bench.topic(server, 1) as topic:
        sent = bench.drive(server, "wire", topic=topic, producers=1, requests=200, records=10, size=1000)
        evict(server.data)
        read = bench.drive(server, "wire", topic=topic, readers=1, count=2000)
        verified(sent, read, names=("read_messages", "read_checksum"))
    assert server.memory_mb() > 10
    assert server.cpu_seconds() > 0


def test_a_server_that_stands_still_goes_on_afterwards(server: Tidelog) -> None:
    def state() -> str:
        with open(f"/proc/{server.pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0]

    with server.standing_still():
        eventually(state, until="T".__eq__)
    assert server.is_ready()
