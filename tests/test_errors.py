"""Errors that are kept and raised later."""

import traceback

import pytest

from tidelog.errors import CorruptLog, InvalidSettings, StorageFull, fresh


def depth(error: BaseException) -> int:
    return len(traceback.extract_tb(error.__traceback__))


def raised(error: BaseException) -> BaseException:
    with pytest.raises(type(error)) as caught:
        raise error
    return caught.value


@pytest.mark.parametrize(
    "error",
    [
        StorageFull("the disk is full"),
        CorruptLog("damaged", file="f", position=1, offset=2),
        InvalidSettings(["one", "two"]),
        OSError(5, "Input/output error"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_fresh_error_is_the_same_error_without_what_the_other_went_through(error: Exception) -> None:
    kept = raised(error)
    assert depth(kept) == 1
    for _ in range(3):
        again = fresh(kept)
        assert again is not kept
        assert type(again) is type(kept)
        assert (str(again), again.args, vars(again)) == (str(kept), kept.args, vars(kept))
        assert (again.__traceback__, again.__cause__, again.__context__) == (None, None, None)
        assert depth(raised(again)) == 1
    assert depth(kept) == 1
