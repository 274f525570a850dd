"""How keys, values and times look."""

import pytest

from tidelog.cli.output import JsonRows, show_bytes, show_time


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (None, "<null>"),
        (b"", ""),
        (b"plain", "plain"),
        ("Käse ✓".encode(), "Käse ✓"),
        (b"two\nlines\x1b[31m", "two\\nlines\\x1b[31m"),
        (b"\xff\x00", "0xff00"),
        (b"x" * 70, "x" * 60 + "… (70 bytes)"),
        (b"\xff" * 70, "0x" + "ff" * 60 + "… (70 bytes)"),
    ],
)
def test_content_is_shown_as_text_if_it_is_text_and_never_acts_on_the_terminal(
    content: bytes | None, shown: str
) -> None:
    assert show_bytes(content, full=False) == shown


def test_full_content_is_not_shortened() -> None:
    assert show_bytes(b"x" * 70, full=True) == "x" * 70


@pytest.mark.parametrize(
    ("timestamp", "shown"),
    [
        (0, "1970-01-01 00:00:00.000"),
        (1_736_150_400_123, "2025-01-06 08:00:00.123"),
        (-1, "-"),
        (1 << 62, str(1 << 62)),
    ],
)
def test_times_are_shown_in_utc_and_impossible_ones_as_numbers(timestamp: int, shown: str) -> None:
    assert show_time(timestamp) == shown


def test_json_tells_text_from_other_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    JsonRows().row("record", {"key": b"k", "value": b"\xff", "headers": [("name", None)]})
    expected = '{"type": "record", "key": "k", "value": {"hex": "ff"}, "headers": [["name", null]]}\n'
    assert capsys.readouterr().out == expected
