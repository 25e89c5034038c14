"""Locks and owners in a child process that was forked while its parent held them."""

import importlib
import os
import signal
import sys
import threading
import time

import pytest

from hudi_format.fork_safe import Owned, ProcessLock, cached_property

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


class SlowFinder:
    """Takes its time to say that it knows nothing of a module."""

    def __init__(self, name):
        self.name = name
        self.begun = threading.Event()

    def find_spec(self, name, path=None, target=None):
        if name == self.name and not self.begun.is_set():
            self.begun.set()
            time.sleep(1)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_of_a_process_that_looks_for_a_module_in_another_thread_imports_it(tmp_path, monkeypatch):
    (tmp_path / "hudi_slow_to_find.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    finder = SlowFinder("hudi_slow_to_find")
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    thread = threading.Thread(target=importlib.import_module, args=("hudi_slow_to_find",))
    thread.start()
    assert finder.begun.wait(30)

    def ask():
        signal.alarm(30)  # ends a child that waits for ever
        return importlib.import_module("hudi_slow_to_find").VALUE == 1

    try:
        assert in_a_child(ask)
    finally:
        thread.join()
        sys.modules.pop("hudi_slow_to_find", None)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_imports_go_on_after_a_fork(tmp_path, monkeypatch):
    (tmp_path / "hudi_after_a_fork.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert in_a_child(lambda: True)
    found = []
    thread = threading.Thread(
        target=lambda: found.append(importlib.import_module("hudi_after_a_fork").VALUE), daemon=True
    )
    thread.start()
    thread.join(30)
    sys.modules.pop("hudi_after_a_fork", None)
    assert found == [1]


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_module_that_forks_while_it_is_imported_waits_for_nothing(tmp_path, monkeypatch):
    (tmp_path / "hudi_forks_at_import.py").write_text(
        "import os\nchild = os.fork()\nif child == 0:\n    os._exit(0)\nENDED = os.waitpid(child, 0)[1]\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert importlib.import_module("hudi_forks_at_import").ENDED == 0
    sys.modules.pop("hudi_forks_at_import", None)


class Counted:
    """An object whose property counts how often it is computed, and waits where it is asked to."""

    def __init__(self, begun=None, go_on=None):
        self.computed = 0
        self._begun, self._go_on = begun, go_on

    @cached_property
    def value(self):
        """What is computed."""
        self.computed += 1
        if self._begun is not None:
            self._begun.set()
            self._go_on.wait(20)
        return object()


def test_a_property_is_computed_once_for_each_object():
    one, other = Counted(), Counted()
    assert one.value is one.value
    assert one.computed == 1
    assert other.value is not one.value
    assert Counted.value.__doc__ == "What is computed."


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.req("CC-13")
def test_a_property_that_a_thread_computes_keeps_neither_other_threads_nor_a_child_waiting():
    begun, go_on = threading.Event(), threading.Event()
    slow = Counted(begun, go_on)
    thread = threading.Thread(target=lambda: slow.value)
    thread.start()
    try:
        assert begun.wait(20)

        def has_value():
            signal.alarm(10)  # ends the child where it waits
            return Counted().value is not None

        assert in_a_child(has_value)
        done = []
        beside = threading.Thread(target=lambda: done.append(Counted().value))
        beside.start()
        beside.join(10)
        assert done
    finally:
        go_on.set()
        thread.join()
