"""What is tried again, how often, and after which pauses."""

import contextlib
import gc
import weakref
from dataclasses import dataclass

import pytest

from hudi_format.errors import ConcurrentWriterError, InvalidOptionError, MissingFileError, WriteConflictError
from hudi_timeline.options.transaction_config import parse_transaction_options
from hudi_timeline.options.user_options import with_waiting
from hudi_timeline.transaction import retries
from hudi_timeline.transaction.retries import LONGEST_PAUSE_S, Tries, may_retry, retried, waited_for

TWO = {"hoodie.write.num.retries.on.conflict.failures": "2"}
LOST = WriteConflictError("commit 1 changed the same file groups first")
RUNNING = ConcurrentWriterError("another write is running", running=True)


@dataclass(frozen=True)
class Result:
    retries: int = 0
    warnings: tuple[str, ...] = ()


class Attempts:
    """Fails with the given errors, one after the other, and then succeeds."""

    def __init__(self, *errors):
        self.errors = list(errors)
        self.made = self.lost = 0

    def __call__(self, lost=0):
        self.made += 1
        self.lost = lost
        if self.errors:
            raise self.errors.pop(0)
        return Result()


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    made = []
    monkeypatch.setattr(retries.time, "sleep", made.append)
    return made


@pytest.mark.parametrize("error", [LOST, RUNNING])
def test_a_write_that_lost_is_run_again_as_often_as_asked(error):
    attempts = Attempts(error, error)
    result = retried(TWO, attempts)
    assert (attempts.made, result.retries, attempts.lost) == (3, 2, 2)
    assert error.message in result.warnings[0]


def test_after_the_last_try_the_error_says_how_many_there_were():
    attempts = Attempts(*(WriteConflictError("lost") for _ in range(5)))
    with pytest.raises(WriteConflictError) as e:
        retried(TWO, attempts)
    assert attempts.made == 3
    assert e.value.details["retries"] == 2
    assert "3 times" in e.value.__notes__[0]


@pytest.mark.parametrize(
    "error",
    [
        ConcurrentWriterError("the table was restored"),
        WriteConflictError("not mended by a retry", retry_safe=False),
        WriteConflictError("its rows were read before", read_again=True, retry_safe=False),
    ],
)
def test_what_a_retry_does_not_mend_is_raised_at_once(error):
    attempts = Attempts(error)
    with pytest.raises(ConcurrentWriterError):
        retried(TWO, attempts)
    assert attempts.made == 1


def test_without_the_option_and_in_a_dry_run_nothing_is_tried_again():
    for options, once in (({}, False), (TWO, True)):
        attempts = Attempts(LOST)
        with pytest.raises(WriteConflictError):
            retried(options, attempts, once=once)
        assert attempts.made == 1


def test_rows_that_were_read_too_early_are_read_again_at_once_and_then_count_as_tries(pauses):
    stale = [WriteConflictError("stale", read_again=True) for _ in range(4)]
    attempts = Attempts(*stale)
    assert retried(TWO, attempts, readings=2).retries == 2
    assert attempts.made == 5
    assert len(pauses) == 2


def test_what_misses_a_file_is_read_again_unless_it_is_lost_or_the_write_is_completed():
    gone = MissingFileError("a file is gone", file="f")
    attempts = Attempts(gone, gone)
    retried({}, attempts, readings=2)
    assert attempts.made == 3
    for known in ("completed", "lost"):
        attempts = Attempts(MissingFileError("a file is gone", file="f", **{known: True}))
        with pytest.raises(MissingFileError):
            retried({}, attempts, readings=2)
        assert attempts.made == 1


def test_pauses_grow_up_to_a_limit_and_differ_between_writers(pauses):
    for part in (0.0, 1.0):
        tries = Tries(12, draw=lambda part=part: part)
        for _ in range(12):
            tries.again(LOST)
    short, long = pauses[:12], pauses[12:]
    assert short == sorted(short)
    assert all(a < b for a, b in zip(short, long, strict=True))
    assert long[-1] == LONGEST_PAUSE_S


def test_a_write_waits_for_one_that_runs_and_no_longer_than_asked(pauses):
    now = [0.0]

    def pause(seconds):
        now[0] += seconds

    attempts = Attempts(*[RUNNING] * 6)
    assert waited_for(attempts, 60_000, clock=lambda: now[0], pause=pause) == Result()
    attempts, now[0] = Attempts(*[RUNNING] * 1000), 0.0
    with pytest.raises(ConcurrentWriterError):
        waited_for(attempts, 5_000, clock=lambda: now[0], pause=pause)
    assert now[0] == 5.0
    attempts = Attempts(ConcurrentWriterError("restored"))
    with pytest.raises(ConcurrentWriterError, match="restored"):
        waited_for(attempts, 60_000, clock=lambda: now[0], pause=pause)


def test_arguments_are_options_and_a_number_that_is_none_is_named():
    given = with_waiting({}, 3, 1.5)
    assert parse_transaction_options(given).conflict_retries == 3
    assert may_retry(given)
    assert not may_retry({})
    assert given["hoodie.write.lock.wait_time_ms"] == given["hudi.write.wait_ms"] == "1500"
    with pytest.raises(InvalidOptionError):
        with_waiting({}, -1, None)
    with pytest.raises(InvalidOptionError):
        with_waiting({}, None, -1.0)
    with pytest.raises(InvalidOptionError):
        may_retry({"hoodie.write.num.retries.on.conflict.failures": "often"})


class Held:
    """What a try has in hand, such as the scan that its rows come from."""


@pytest.mark.parametrize("error", [WriteConflictError, MissingFileError])
def test_a_write_that_ends_with_an_error_lets_go_of_all_it_had_without_the_garbage_collector(error):
    def lost():
        held = Held()

        def write(_):
            raise error(f"lost {type(held)}")

        with contextlib.suppress(error):
            retried(TWO, write)
        return weakref.ref(held)

    gc.disable()
    try:
        assert lost()() is None
    finally:
        gc.enable()
