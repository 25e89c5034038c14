"""Whether the function that holds something still runs, though its objects are kept."""

import contextlib
import threading

import pytest

from hudi_timeline.concurrency.running_call import RunningCall


def test_a_call_is_over_when_it_has_returned():
    def hold():
        call = RunningCall.here()
        assert not call.is_over
        return call

    call = hold()
    assert call.is_over
    assert call.is_over  # asked again


def test_a_call_that_raised_is_over_though_its_traceback_is_kept():
    kept = []

    def hold():
        kept.append(RunningCall.here())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as e:
        hold()
    assert e.value.__traceback__ is not None
    assert kept[0].is_over


def test_of_a_context_manager_the_call_that_entered_it_counts():
    @contextlib.contextmanager
    def held():
        yield RunningCall.here()

    def write():
        with held() as call:
            assert not call.is_over
        assert not call.is_over, "the manager has ended, and the function that used it has not"
        return call

    assert write().is_over


def test_a_call_of_another_thread_is_seen_to_run_and_to_end():
    ready, go, found = threading.Event(), threading.Event(), []

    def hold():
        found.append(RunningCall.here())
        ready.set()
        assert go.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    assert ready.wait(30)
    assert not found[0].is_over
    go.set()
    thread.join(30)
    assert found[0].is_over
