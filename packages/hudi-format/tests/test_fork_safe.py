"""Locks and owners in a child process that was forked while its parent held them."""

import importlib
import os
import signal
import sys
import threading

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


SLOW = """
import hudi_import_events as events
events.begun.set()
events.go_on.wait(1)
VALUE = 1
"""
EVENTS = "import threading; begun, go_on = threading.Event(), threading.Event()"


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_of_a_process_that_imports_a_module_in_another_thread_has_it_whole(tmp_path, monkeypatch):
    (tmp_path / "hudi_import_events.py").write_text(EVENTS)
    (tmp_path / "hudi_slow_to_import.py").write_text(SLOW)
    monkeypatch.syspath_prepend(str(tmp_path))
    events = importlib.import_module("hudi_import_events")
    thread = threading.Thread(target=importlib.import_module, args=("hudi_slow_to_import",))
    thread.start()
    assert events.begun.wait(30)

    def ask():
        signal.alarm(30)  # ends a child that waits for ever
        return importlib.import_module("hudi_slow_to_import").VALUE == 1

    try:
        assert in_a_child(ask)
    finally:
        thread.join()
        for name in ("hudi_import_events", "hudi_slow_to_import"):
            sys.modules.pop(name, None)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_module_that_forks_while_it_is_imported_waits_for_nothing(tmp_path, monkeypatch):
    (tmp_path / "hudi_forks_at_import.py").write_text(
        "import os\nchild = os.fork()\nif child == 0:\n    os._exit(0)\nENDED = os.waitpid(child, 0)[1]\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert importlib.import_module("hudi_forks_at_import").ENDED == 0
    sys.modules.pop("hudi_forks_at_import", None)
