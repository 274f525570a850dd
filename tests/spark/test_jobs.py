"""Replay, audit, profile."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.brokers import BrokerProcess, unique
from tidelog.cli.main import run
from tidelog.client import Client, connect
from tidelog.embedding import EmbeddedBroker
from tidelog.spark.jobs import copying
from tidelog.spark.jobs.ranges import Range
from tidelog.spark.jobs.replay import Replay, plan


class Crash(Exception):
    pass


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def everything(client: Client, topic: str) -> list[tuple[object, ...]]:
    found = client.consume(topic, follow=False)
    return sorted((r.partition, r.offset, r.key, r.value, tuple(r.headers), r.timestamp) for r in found)


def rows_of(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


# --- replay ---------------------------------------------------------------------------------------------------------


def test_a_replay_keeps_keys_values_headers_and_times(
    broker: BrokerProcess, client: Client, make_topic: Callable[..., str]
) -> None:
    source, target = make_topic(3), make_topic(3)
    with client.producer() as producer:
        for number in range(300):
            headers = [("n", b"%d" % number)] if number % 2 else []
            producer.send(
                source, f"v{number}", key=f"k{number}", headers=headers, timestamp=1_700_000_000_000 + number
            )
    assert run(["replay", source, "--to", target, "-b", broker.bootstrap]) == 0
    assert everything(client, target) == everything(client, source)
    assert run(["replay", source, "--to", target, "-b", broker.bootstrap]) == 0, "it is done: nothing is copied again"
    assert len(everything(client, target)) == 300


def test_a_replay_of_a_stretch_of_time_and_of_offsets(
    broker: BrokerProcess, client: Client, make_topic: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    source = make_topic()
    for number in range(10):
        client.produce(source, f"{number}", timestamp=1_700_000_000_000 + number * 60_000)
    here = ["-b", broker.bootstrap, "--json"]
    times = ["--from", "2023-11-14T22:15:00Z", "--until", "2023-11-14T22:18:20Z"]
    assert run(["replay", source, "--to", "nowhere", "--dry-run", *times, *here]) == 0
    (dry,) = rows_of(capsys)
    assert (dry["start"], dry["end"], dry["records"]) == (2, 5, 3)
    target = make_topic()
    assert run(["replay", source, "--to", target, "--from", "4", "--until", "6", *here]) == 0
    assert [record[3] for record in everything(client, target)] == [b"4", b"5"]
    assert run(["replay", source, "--to", source, *here]) == 1
    assert "cannot be replayed to itself" in capsys.readouterr().err


def test_a_replay_into_fewer_partitions_puts_keys_where_they_belong(
    client: Client, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    source, target, reference = make_topic(4), make_topic(2), make_topic(2)
    for number in range(40):
        for topic in (source, reference):
            client.produce(topic, f"v{number}", key=f"k{number}")
    parts = [part for part in plan(client, source, "earliest", "latest") if part.partition >= 2]
    replay = Replay(client, target, parts, tmp_path / "journal.json")
    copied = sum(replay.copier.copy(replay.parts))
    expected = {r[2]: r[0] for r in everything(client, reference)}
    got = everything(client, target)
    assert len(got) == copied > 0
    assert all(expected[r[2]] == r[0] for r in got)


@pytest.mark.parametrize("point", ["meant", "sent", "done"])
@pytest.mark.parametrize("after", [1, 2, 5])
def test_a_replay_that_was_cut_short_goes_on_without_writing_anything_twice(
    broker: BrokerProcess,
    client: Client,
    make_topic: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
    after: int,
) -> None:
    monkeypatch.setattr(copying, "_STEP_RECORDS", 40)
    source, target = make_topic(2), make_topic(2)
    with client.producer() as producer:
        for number in range(400):
            producer.send(source, f"v{number}", partition=number % 2, timestamp=1_700_000_000_000 + number)
    parts = plan(client, source, "earliest", "latest")
    journal, left = tmp_path / "journal.json", [after]

    def at(reached: str) -> None:
        left[0] -= reached == point
        if left[0] == 0:
            raise Crash

    replay = Replay(client, target, parts, journal)
    with pytest.raises(Crash):
        for _ in replay.copier.copy(replay.parts, at):
            pass
    with connect(broker.bootstrap) as other:  # as another process would
        again = Replay(other, target, [Range(source, 0, 0, 1)], journal)
        assert again.is_resumed
        assert list(again.parts) == parts, "the ranges are those that were meant at first"
        for _ in again.copier.copy(again.parts):
            pass
    assert [r[3:] for r in everything(client, target)] == [r[3:] for r in everything(client, source)]


def test_many_large_records_are_copied_in_steps_that_a_broker_can_tell_repeats_of(
    client: Client, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    source, target = make_topic(), make_topic()
    with client.producer() as producer:
        for number in range(40):
            producer.send(source, bytes([number]) * 400_000)
    replay = Replay(client, target, plan(client, source, "earliest", "latest"), tmp_path / "journal.json")
    steps = list(replay.copier.copy(replay.parts))
    assert sum(steps) == 40
    assert len(steps) > 2
    assert [r[3] for r in everything(client, target)] == [r[3] for r in everything(client, source)]


# --- audit ----------------------------------------------------------------------------------------------------------


def test_an_audit_finds_planted_damage_and_says_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    with EmbeddedBroker(str(data)) as broker, connect(broker.bootstrap_servers) as client:
        for topic in ("good", "bad"):
            client.create_topic(topic, partitions=2)
            for number in range(20):
                client.produce(topic, f"value {number}", partition=number % 2)
        assert run(["audit", "-b", broker.bootstrap_servers, "--json"]) == 0
        through_broker = rows_of(capsys)[-1]
        assert (through_broker["partitions"], through_broker["records"]) == (4, 40)
    assert run(["audit", "--data-dir", str(data), "--deep", "--json"]) == 0
    assert rows_of(capsys)[-1]["records"] == 40

    (log,) = (data / "logs").glob("bad~*/1/00000000000000000000.log")
    content = bytearray(log.read_bytes())
    content[content.index(b"value 9")] ^= 0xFF
    log.write_bytes(content)
    assert run(["audit", "--data-dir", str(data), "--json"]) == 1
    rows = rows_of(capsys)
    problems = [row for row in rows if row["type"] == "problem" and row["severity"] == "error"]
    assert problems
    assert {(row["topic"], row["partition"]) for row in problems} == {("bad", 1)}
    assert problems[0]["offset"] == 4
    assert run(["audit", "good", "--data-dir", str(data)]) == 0
    assert "No errors found." in capsys.readouterr().out


# --- profile --------------------------------------------------------------------------------------------------------


def test_a_profile_counts_right(
    broker: BrokerProcess,
    client: Client,
    make_topic: Callable[..., str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic = make_topic(2)
    with client.producer() as producer:
        for number in range(100):
            key = "heavy" if number < 60 else f"light-{number}"
            value = b"x" * (number + 1)
            producer.send(
                topic, value, key=key, partition=0 if number < 75 else 1, timestamp=1_700_000_000_000 + number
            )
        producer.send(topic, None, partition=1, headers=[("h", b"")], timestamp=1_700_000_000_000)
    page = tmp_path / "page.html"
    assert run(["profile", topic, "--html", str(page), "--json", "-b", broker.bootstrap]) == 0
    (row,) = rows_of(capsys)
    assert row["records"] == 101
    assert row["value_bytes"] == 5050
    assert row["key_bytes"] == 60 * 5 + 40 * 8
    assert (row["null_keys"], row["null_values"], row["with_headers"]) == (1, 1, 1)
    assert row["distinct_keys"] == 41
    assert row["top_keys"][0] == ["heavy", 60]  # type: ignore[index]
    assert row["top_key_share"] == pytest.approx(60 / 101)
    assert row["value_size"] == {"p50": 50, "p90": 90, "p99": 99, "max": 100}
    assert row["records_by_partition"] == {"0": 75, "1": 26}
    assert (row["first_ms"], row["last_ms"]) == (1_700_000_000_000, 1_700_000_000_099)
    html = page.read_text()
    assert topic in html
    assert html.count("<svg") == 3
    assert "http" not in html, "it loads nothing"


def test_a_page_shows_names_and_keys_as_text(client: Client) -> None:
    from tidelog.spark.jobs.page import render
    from tidelog.spark.jobs.profile import Facts, TopicProfile

    facts = Facts(records=1, first_us=0, last_us=0)
    facts.keys[b"<script>alert(1)</script>"] = 1
    facts.minutes[0] = 1
    html = render([TopicProfile(unique("t"), facts, {0: 1}, {0: (0, 1)})], "<b>")
    assert "<script>" not in html
    assert "<b>" not in html.split("</style>")[1].split("<h2>")[0]


@pytest.mark.slow
def test_jobs_run_on_spark_too(
    spark: object,
    broker: BrokerProcess,
    client: Client,
    make_topic: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic = make_topic(2)
    for number in range(10):
        client.produce(topic, f"{number}")
    for job in ("audit", "profile"):
        assert run([job, topic, "--master", "local[2]", "--json", "-b", broker.bootstrap]) == 0
        assert rows_of(capsys)[-1]["records"] == 10
