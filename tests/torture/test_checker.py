"""The checker finds each forbidden event that is put into a history, and nothing in a correct history."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.torture.checker import check
from tests.torture.history import (
    COPIED,
    NEVER,
    History,
    OffsetCommit,
    OffsetSeen,
    Outcome,
    Read,
    Remade,
    Transaction,
    Trimmed,
    Write,
)

PLAIN, PAID, COPY = ("plain", 0), ("paid", 0), ("copy", 0)
SHRUNK, REMADE = ("shrunk", 0), ("remade", 0)


def sound() -> History:
    """Three plain records; a committed, an aborted and an undecided transaction; a copy; a group; a topic that was
    trimmed and compacted, and one that was deleted and created again."""
    history = History(copies={"plain": "copy"}, shrinking={"shrunk": {SHRUNK: 2}}, remade={"remade": []})
    for number, outcome in enumerate([Outcome.DONE, Outcome.UNKNOWN, Outcome.DONE]):
        offset = number if outcome is Outcome.DONE else None
        history.add(Write("p", number, PLAIN, f"v{number}", None, outcome, offset))
    for number, id_ in enumerate(["done", "aborted", "undecided"]):
        for part in range(2):
            place = 2 * number + part
            history.add(Write("t", place, PAID, f"{id_}{part}", id_, Outcome.DONE, 3 * number + part))
    history.add(Transaction("done", Outcome.DONE, 10.0))
    history.add(Transaction("aborted", Outcome.NOT_DONE, None))
    history.add(Transaction("undecided", Outcome.UNKNOWN, 20.0))
    history.final = {
        PLAIN: [(0, "v0"), (1, "v1"), (2, "v2")],
        PAID: [(0, "done0"), (1, "done1"), (3, "aborted0"), (4, "aborted1"), (6, "undecided0"), (7, "undecided1")],
        COPY: [(0, COPIED + "v0"), (1, COPIED + "v1"), (2, COPIED + "v2")],
    }
    for offset, key in enumerate("ababc"):  # 0 and 1 are trimmed; 2 is replaced by 5, whose outcome is unknown
        write = Write("s", offset, SHRUNK, f"s{offset}", None, Outcome.DONE, offset, key)
        history.add(write)
    history.add(Write("s", 5, SHRUNK, "s5", None, Outcome.UNKNOWN, None, "a"))
    history.final[SHRUNK] = [(3, "s3"), (4, "s4"), (5, "s5")]
    history.add(Trimmed(SHRUNK, 2))
    # The second was acknowledged while the topic was being deleted: it may be missing.
    for number, (began, ended) in enumerate([(1.0, 2.0), (2.0, 5.0), (7.0, 8.0)]):
        value = f"r{number}"
        history.add(Write("r", number, REMADE, value, None, Outcome.DONE, 0, None, began, ended))
    history.add(Remade("remade", 3.0, 6.0))
    history.final[REMADE] = [(0, "r2")]
    history.final_committed = {
        **history.final,
        PAID: [(0, "done0"), (1, "done1"), (6, "undecided0"), (7, "undecided1")],
    }
    for offset, value in history.final_committed[PAID]:
        history.add(Read("reader", PAID, offset, value, True, 11.0 if "done" in value else 21.0))
    history.add(OffsetCommit("g", PLAIN, 1, 1.0, 2.0))
    history.add(OffsetCommit("g", PLAIN, 3, 3.0, 4.0))
    history.add(OffsetSeen("g", PLAIN, 1, 3.5))  # while the second commit is pending: both values are correct
    history.add(OffsetSeen("g", PLAIN, 3, 5.0))
    return history


def test_a_sound_history_has_no_findings() -> None:
    assert check(sound()) == []


def test_a_commit_that_was_not_confirmed_may_take_effect_late_and_the_finding_says_so() -> None:
    history = sound()
    history.add(OffsetCommit("g", PLAIN, 2, 5.0, NEVER))
    assert check(history) == []
    history.add(OffsetSeen("g", PLAIN, 2, 6.0))
    (finding,) = check(history)
    assert finding.kind == "moved back"
    assert "was not confirmed" in finding.text


def drop_from(history: History, partition: tuple[str, int], value: str) -> None:
    for final in (history.final, history.final_committed):
        final[partition] = [record for record in final[partition] if record[1] != value]


def lose_acknowledged(history: History) -> None:
    drop_from(history, PLAIN, "v2")
    drop_from(history, COPY, COPIED + "v2")


def lose_committed(history: History) -> None:
    drop_from(history, PAID, "done0")
    drop_from(history, PAID, "done1")
    history.reads.clear()


def write_twice(history: History) -> None:
    history.final[PLAIN].append((3, "v1"))
    history.final[COPY].append((3, COPIED + "v1"))


def see_aborted(history: History) -> None:
    history.add(Read("late", PAID, 3, "aborted0", True, 30.0))


def end_with_aborted(history: History) -> None:
    history.final_committed[PAID] = history.final[PAID]


def see_too_early(history: History) -> None:
    history.reads[0] = replace(history.reads[0], at=9.0)


def see_what_nobody_committed(history: History) -> None:
    history.transactions["undecided"] = Transaction("undecided", Outcome.UNKNOWN, None)


def swap_in_the_log(history: History) -> None:
    history.final[PLAIN][:] = [(0, "v1"), (1, "v0"), (2, "v2")]
    history.writes[0] = replace(history.writes[0], offset=1)


def read_backwards(history: History) -> None:
    history.add(Read("reader", PAID, 1, "done1", True, 30.0))


def read_again_in_the_same_session(history: History) -> None:
    history.add(replace(history.reads[-1], at=30.0))


def commit_backwards(history: History) -> None:
    history.add(OffsetCommit("g", PLAIN, 2, 5.0, 6.0))


def forget_a_commit(history: History) -> None:
    history.add(OffsetSeen("g", PLAIN, -1, 6.0))


def change_a_value(history: History) -> None:
    history.add(Read("other", PLAIN, 1, "v9", False, 6.0))


def acknowledge_elsewhere(history: History) -> None:
    history.writes[2] = replace(history.writes[2], offset=7)


def tear_a_transaction(history: History) -> None:
    history.final_committed[PAID] = [record for record in history.final_committed[PAID] if record[1] != "undecided1"]
    history.reads = [read for read in history.reads if read.value != "undecided1"]


def copy_twice(history: History) -> None:
    history.final_committed[COPY] = [*history.final_committed[COPY], (3, COPIED + "v1")]


def miss_a_copy(history: History) -> None:
    history.final_committed[COPY] = history.final_committed[COPY][:-1]


def lose_the_last_of_a_key(history: History) -> None:
    drop_from(history, SHRUNK, "s4")


def lose_what_nothing_supersedes(history: History) -> None:
    drop_from(history, SHRUNK, "s5")


def keep_what_was_trimmed(history: History) -> None:
    history.final[SHRUNK].insert(0, (1, "s1"))


def swap_what_is_left_after_compaction(history: History) -> None:
    history.final[SHRUNK][:] = [(3, "s4"), (4, "s3"), (5, "s5")]


def keep_what_was_deleted(history: History) -> None:
    history.final[REMADE].append((1, "r0"))


def lose_of_the_new_topic(history: History) -> None:
    drop_from(history, REMADE, "r2")


@pytest.mark.parametrize(
    ("plant", "kind"),
    [
        (lose_acknowledged, "lost"),
        (lose_committed, "lost"),
        (write_twice, "duplicate"),
        (see_aborted, "aborted read"),
        (end_with_aborted, "aborted read"),
        (see_too_early, "uncommitted read"),
        (see_what_nobody_committed, "uncommitted read"),
        (swap_in_the_log, "out of order"),
        (read_backwards, "out of order"),
        (read_again_in_the_same_session, "out of order"),
        (commit_backwards, "moved back"),
        (forget_a_commit, "moved back"),
        (change_a_value, "inconsistent"),
        (acknowledge_elsewhere, "inconsistent"),
        (tear_a_transaction, "torn"),
        (copy_twice, "duplicate"),
        (miss_a_copy, "lost"),
        (lose_the_last_of_a_key, "lost"),
        (lose_what_nothing_supersedes, "lost"),
        (keep_what_was_trimmed, "came back"),
        (swap_what_is_left_after_compaction, "out of order"),
        (keep_what_was_deleted, "came back"),
        (lose_of_the_new_topic, "lost"),
    ],
)
def test_what_is_planted_is_found(plant: Callable[[History], None], kind: str) -> None:
    history = sound()
    plant(history)
    assert kind in {finding.kind for finding in check(history)}
