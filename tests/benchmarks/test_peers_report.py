"""What may be said of samples, and the page, the JSON and the charts that say it."""

import json
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree

import pytest

from benchmarks.peers import charts, document
from benchmarks.peers.bench import Failed, Run, verified
from benchmarks.peers.results import Figure, Results, RowResult, Summary, summarize

MACHINE = {"cpu": "Z80", "cores": 1, "kernel": "1", "python": "3", "filesystem": "fat", "memory_gb": 1}
SETTINGS = {"repeats": 3, "share_of_full_work": 1, "command": "make bench-peers", "minutes": 1}


def row(**more: Any) -> RowResult:
    figures = [Figure("produce", "msg/s", "higher"), Figure("produce CPU", "s/GB", "lower")]
    return RowResult("copy", "Throughput", "1 KB, acks all, fsync", "values of 1 KB", figures, **more)


def filled() -> RowResult:
    found = row()
    for rate in (90.0, 100.0, 120.0):
        found.add("tidelog", {"produce": rate, "produce CPU": 0.5, "produce client thread": 0.99})
        found.add("kafka", {"produce": rate / 2, "produce CPU": 1.0, "produce client thread": 0.1})
    return found


def page(found: RowResult) -> str:
    return document.markdown(Results(MACHINE, SETTINGS, {"tidelog": "Tidelog 1", "kafka": "Kafka 4"}, {}, [found]))


def test_medians_and_spread() -> None:
    summary = summarize([120.0, 90.0, 100.0])
    assert (summary.median, summary.least, summary.most, summary.count) == (100, 90, 120, 3)
    assert summary.spread == pytest.approx(0.3)


def test_a_row_gives_medians_the_ratio_and_whose_side_it_is_on() -> None:
    text = page(filled())
    assert (
        "| **1 KB, acks all, fsync**<br>values of 1 KB | produce, msg/s | 100 (90.0 to 120)° | 50.0 (45.0 to 60.0)"
        in text
    )
    assert "| 2.00x | ahead |" in text
    assert "| 0.50x | ahead |" in text
    assert "Z80" in text


def test_one_failed_repeat_takes_the_figures_away_and_says_why() -> None:
    found = filled()
    found.fail("kafka", "read 1 messages instead of 2")
    text = page(found)
    assert "FAILED (1x): read 1 messages instead of 2" in text
    assert "50.0" not in text
    assert "ahead" not in text
    assert found.ratio("produce", "tidelog", "kafka") is None
    assert "kafka" not in {p for p, figures in json.loads(_json(found))["rows"][0]["summaries"].items() if figures}


def test_what_is_missing_or_not_offered_is_said() -> None:
    found = filled()
    found.not_offered["nats"] = "it cannot sync"
    results = Results(MACHINE, SETTINGS, {"tidelog": "Tidelog 1"}, {"redis": "as root: apt-get install"}, [found])
    text = document.markdown(results)
    assert "**Missing**: Redis Streams: as root: apt-get install" in text
    assert "not offered: it cannot sync" in text


@pytest.mark.parametrize(("cores", "is_quiet"), [(0.02, True), (0.8, False)])
@pytest.mark.parametrize(
    ("note", "told"), [("others cpu", "Other programs used"), ("stolen cpu", "The hypervisor withheld")]
)
def test_a_machine_that_others_used_is_not_passed_over(note: str, told: str, cores: float, is_quiet: bool) -> None:
    found = row()
    found.add("tidelog", {"produce": 1.0, "produce CPU": 1.0, f"produce {note}": cores})
    assert f"{told} {cores:.2f} cores" in page(found)
    assert ("not a quiet machine" in page(found)) != is_quiet


def test_a_row_that_forgets_a_figure_is_a_mistake() -> None:
    with pytest.raises(KeyError, match="produce CPU"):
        row().add("tidelog", {"produce": 1.0})


@pytest.mark.parametrize(
    ("better", "ratio", "said"),
    [("higher", 1.2, "ahead"), ("higher", 0.8, "behind"), ("lower", 0.8, "ahead"), ("lower", 1.04, "level")],
)
def test_verdicts(better: Literal["higher", "lower"], ratio: float, said: str) -> None:
    assert document.verdict(Figure("x", "ms", better), ratio) == said


def test_only_rates_are_limited_by_the_client() -> None:
    found = filled()
    assert found.is_limited_by_client("tidelog", found.figures[0])
    assert not found.is_limited_by_client("tidelog", found.figures[1])
    assert not found.is_limited_by_client("kafka", found.figures[0])


def _json(found: RowResult) -> str:
    return Results(MACHINE, SETTINGS, {"tidelog": "Tidelog 1"}, {}, [found]).to_json()


def test_json_holds_everything_that_the_page_is_made_of() -> None:
    found = filled()
    found.fail("kafka", "gone")
    assert Results.from_json(_json(found)).rows == [found]


def test_the_report_is_written_and_can_be_made_again_from_its_json(tmp_path: Path) -> None:
    more = filled()
    more.key = "other"
    results = Results(MACHINE, SETTINGS, {"tidelog": "Tidelog 1", "kafka": "Kafka 4"}, {}, [filled(), more])
    document.write(results, str(tmp_path))
    written = {path.name: path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert {"benchmarks-peers.md", "peers.json", "peers-throughput-produce.svg"} <= written.keys()
    for name, text in written.items():
        if name.endswith(".svg"):
            ElementTree.fromstring(text)
            assert f"(benchmarks/{name})" in written["benchmarks-peers.md"]
    (tmp_path / document.PAGE).unlink()
    document.render(str(tmp_path))
    assert (tmp_path / document.PAGE).read_text() == written["benchmarks-peers.md"]


def test_runs_in_which_the_hypervisor_withheld_much_can_be_left_out() -> None:
    found = row()
    for value, withheld in ((1.0, 0.5), (2.0, 0.0), (3.0, 0.1), (4.0, 0.9)):
        found.add("tidelog", {"produce": value, "produce CPU": value, "produce stolen cpu": withheld})
    found.counted = 2
    assert found.summary("tidelog", "produce") == Summary(2.5, 2.0, 3.0, 2)
    assert Results.from_json(_json(found)).rows == [found]


def test_rows_that_are_run_again_take_the_place_of_those_of_before(tmp_path: Path) -> None:
    other, again = filled(), filled()
    other.key, other.title, again.title = "other", "the other", "once more"
    document.write(Results(MACHINE, SETTINGS, {"tidelog": "Tidelog 1"}, {}, [filled(), other]), str(tmp_path))
    before = document.read(str(tmp_path))
    assert before is not None
    both = before.renewed(Results(MACHINE, SETTINGS, {"tidelog": "Tidelog 2"}, {}, [again]))
    assert both.rows == [again, other]
    assert "Run again later, by themselves: once more." in document.markdown(both)


def test_growth_is_shown_beside_it(tmp_path: Path) -> None:
    point = {"tidelog": {"MB/s": [1.0, 3.0, 2.0]}, "kafka": {"failed": "no leaders"}}
    sweep = {
        "key": "partitions",
        "title": "Partitions",
        "across": "partitions",
        "conditions": "1 KB",
        "figures": ["MB/s"],
        "points": [{"at": 1000, "peers": point}],
    }
    peers = {"tidelog": "Tidelog 1", "kafka": "Kafka 4"}
    told = {"command": "make bench-growth", "machine": MACHINE, "repeats": 3, "peers": peers, "missing": {}}
    document.write_growth({**told, "sweeps": [sweep]}, str(tmp_path))
    text = (tmp_path / document.PAGE).read_text()
    assert "| 1,000 | Tidelog | 2.00 (1.00 to 3.00) |\n| 1,000 | Kafka | FAILED: no leaders |" in text
    assert "(benchmarks/growth-partitions.svg)" in text
    ElementTree.parse(tmp_path / "benchmarks" / "growth-partitions.svg")


def test_bars_are_as_long_as_their_values() -> None:
    bar = charts.Bar
    svg = charts.bars(
        "t", "s", [("a", {"x": bar(100, 90, 110), "y": bar(50, 50, 50)})], {"x": "X", "y": "Y"}, unit="u"
    )
    rects = [
        r for r in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}rect") if r.get("height") == "12"
    ]
    widths = [float(rect.get("width") or 0) for rect in rects]
    assert widths[0] == pytest.approx(2 * widths[1], rel=0.01)


def test_a_missing_bar_is_named_and_text_is_escaped() -> None:
    svg = charts.bars("a < b", "s", [("a & b", {"x": None})], {"x": "X"}, unit="u", logarithmic=True)
    assert "X: no figure" in svg
    ElementTree.fromstring(svg)


def test_what_others_used_is_what_neither_broker_nor_client_did() -> None:
    said = {"seconds": 2.0, "client_cpu_seconds": 1.0, "client_busiest_thread": 0.5}
    assert Run(said, 0.5, 2.5, 2.0).notes("produce")["produce others cpu"] == pytest.approx(0.5)
    assert Run(said, 0.5, 2.5, 2.0, 0.3).notes("produce")["produce stolen cpu"] == pytest.approx(0.15)
    assert Run(said, 0.5, 1.4, 2.0).notes("produce")["produce others cpu"] == 0  # ticks of the clock are coarse


@pytest.mark.parametrize("difference", [{"messages": 9}, {"checksum": "b"}])
def test_a_run_is_verified_by_count_and_checksum(difference: dict[str, Any]) -> None:
    sent = Run({"messages": 10, "checksum": "a"}, 0)
    verified(sent, Run({"messages": 10, "checksum": "a"}, 0))
    with pytest.raises(Failed, match="sent 10 messages"):
        verified(sent, Run({"messages": 10, "checksum": "a"} | difference, 0))


@pytest.mark.parametrize(
    ("value", "said"), [(0.123, "0.12"), (12.34, "12.3"), (123.4, "123"), (1234.0, "1,230"), (1234567.0, "1,230,000")]
)
def test_figures_have_three_digits(value: float, said: str) -> None:
    assert document.shown(value) == said
