"""Simulated clusters. A seed that fails is repeated with `python -m tests.simulation.run --seed N`."""

import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest
import structlog

from tests.simulation.cluster import Plan
from tests.simulation.planted import (
    AnswersBeforeTheCommit,
    CommitsBeforeThePut,
    KeepsNoSnapshots,
    NobodyChecksTheEpoch,
    RemovesWhatTheDatabaseDoesNotKnow,
    TakesALostReplyForAFailure,
    store_with,
)
from tests.simulation.run import simulate
from tidelog.records.compaction import PlainKeyMap
from tidelog.storage.producers import Producers
from tidelog.storage.shared import compaction as compaction_module
from tidelog.storage.shared import log as log_module
from tidelog.storage.shared.compaction import LogCompaction
from tidelog.storage.shared.log import SharedLog
from tidelog.storage.shared.order import NotTheLeader
from tidelog.storage.shared.writer import Part

_GROUPS, _SEEDS_EACH = 10, 15
_TRIED = 120  # seeds until a planted bug must have been found

PLAN = Plan()
COMPACTED = Plan(compacted=True)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.reset_defaults()


@pytest.mark.parametrize("group", range(_GROUPS))
def test_nothing_is_lost_doubled_or_reordered_whatever_fails(group: int) -> None:
    for seed in range(group * _SEEDS_EACH, (group + 1) * _SEEDS_EACH):
        try:
            simulate(seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


@pytest.fixture
def plain_map(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels take a while to load."""
    monkeypatch.setattr(compaction_module, "open_key_map", lambda memory, *_: PlainKeyMap(memory))


@pytest.mark.parametrize("group", range(_GROUPS // 2))
def test_a_compacted_log_loses_nothing_but_what_has_a_later_value(group: int, plain_map: None) -> None:
    compacted = 0
    for seed in range(group * _SEEDS_EACH, (group + 1) * _SEEDS_EACH):
        try:
            world = simulate(seed, COMPACTED)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        compacted += sum(log.cleaned.offset > 0 for log in world.database._logs.values())
    assert compacted > _SEEDS_EACH / 4


def test_compaction_of_transactions_that_are_not_decided_is_found(
    plain_map: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LogCompaction, "cleanable", lambda compaction, *_: list(compaction._log.extents))
    found(replace(COMPACTED, transactional=4))


def test_the_same_seed_is_the_same_history() -> None:
    first, second = simulate(3), simulate(3)
    assert first.history == second.history
    assert list(first.objects.objects) == list(second.objects.objects)
    assert first.history != simulate(4).history


def found(plan: Plan) -> str:
    """The first violation of a cluster with a planted bug."""
    for seed in range(_TRIED):
        try:
            simulate(seed, plan)
        except Exception as error:  # some bugs also make the log fail in other ways
            return str(error)
    raise AssertionError(f"{_TRIED} simulations found nothing")


def test_a_commit_that_does_not_check_the_epoch_is_found() -> None:
    """Few bugs are this rare: the log's end, which is checked too, keeps most late commits from doing harm. Harm is
    done if the new leader answers from memory, such as that a transaction is not open."""
    found(replace(PLAN, database=NobodyChecksTheEpoch, partitions=1, idempotent=0, transactional=6, plain=0))


def test_a_high_watermark_that_moves_before_the_object_is_there_is_found() -> None:
    assert "not there" in found(replace(PLAN, store=store_with(CommitsBeforeThePut)))


def test_garbage_that_is_not_declared_dead_first_is_found() -> None:
    assert "not there" in found(replace(PLAN, store=store_with(garbage=RemovesWhatTheDatabaseDoesNotKnow)))


def test_a_merge_that_loses_the_producers_is_found() -> None:
    found(replace(PLAN, database=KeepsNoSnapshots))


def test_an_answer_before_the_commit_is_found() -> None:
    found(replace(PLAN, store=store_with(AnswersBeforeTheCommit)))


def test_a_lost_reply_that_is_taken_for_a_failure_is_found() -> None:
    found(replace(PLAN, store=store_with(TakesALostReplyForAFailure)))


def test_a_new_leader_that_does_not_know_the_producers_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "producers_of", lambda _known: Producers())
    found(PLAN)


def test_a_stable_offset_that_does_not_wait_for_transactions_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SharedLog, "last_stable_offset", property(lambda log: log.end_offset))
    found(PLAN)


def test_a_log_that_goes_on_after_a_refused_commit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(log: SharedLog, part: Part, error: Exception) -> None:
        log._in_flight.remove(part)
        part.fail(lambda: NotTheLeader(str(error)))

    monkeypatch.setattr(SharedLog, "refused", refused)
    found(PLAN)
