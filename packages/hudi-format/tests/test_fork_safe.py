"""Locks and owners in a child process that was forked while its parent held them."""

import os
import sys

import pytest

from hudi_format.fork_safe import Owned, ProcessLock

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork()")


def in_a_child(ask):
    """What a forked child answers: true or false."""
    child = os.fork()
    if child == 0:
        answer = 2
        try:
            answer = 0 if ask() else 1
        finally:
            os._exit(answer)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, 1)
    return code == 0


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.skipif(sys.platform == "win32", reason="the system has no fork()")
def test_a_lock_that_is_held_is_free_in_the_child_and_stays_held_in_the_parent():
    lock = ProcessLock()
    with lock.threads:
        assert in_a_child(lambda: lock.threads.acquire(blocking=False))
        assert lock.threads.locked()
    assert not lock.threads.locked()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_what_a_process_made_is_not_the_childs():
    owned = Owned()
    assert owned.here
    assert in_a_child(lambda: not owned.here)
