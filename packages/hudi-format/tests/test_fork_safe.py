"""Locks and owners in a child process that was forked while its parent held them."""

import gc
import importlib
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from contextlib import suppress

import pytest

from hudi_format import fork_safe
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


def test_a_lock_goes_with_its_object():
    held = [ProcessLock() for _ in range(10)]
    assert all(lock in fork_safe._locks for lock in held)
    kept = [weakref.ref(lock) for lock in held]
    held.clear()
    gc.collect()
    assert [ref() for ref in kept] == [None] * 10


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


def ended(script, tmp_path):
    """Exit code of a script in a process of its own, and what it says."""
    (tmp_path / "script.py").write_text(script)
    there = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(tmp_path / "script.py")],
        env={**os.environ, "PYTHONPATH": there}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    return done.returncode, done.stderr


# Handlers of those that were imported before run after ours.
BEGUN_SINCE = """
import importlib, os, signal, threading
import hudi_import_events as events

def begin():
    threading.Thread(target=importlib.import_module, args=("hudi_slow_to_import",), daemon=True).start()
    assert events.begun.wait(30)

os.register_at_fork(before=begin)
import hudi_format.fork_safe

child = os.fork()
if child == 0:
    signal.alarm(30)  # ends a child that waits for ever
    os._exit(0 if importlib.import_module("hudi_slow_to_import").VALUE == 1 else 3)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_child_imports_anew_what_a_thread_began_to_import_after_the_fork_had_looked(tmp_path):
    (tmp_path / "hudi_import_events.py").write_text(EVENTS)
    (tmp_path / "hudi_slow_to_import.py").write_text(SLOW)
    assert ended(BEGUN_SINCE, tmp_path) == (0, "")


# As `logging.config.dictConfig` does, which imports the classes of handlers under the lock of all loggers.
IMPORT_UNDER_A_LOCK = """
import faulthandler, importlib, logging, os, threading, time
import hudi_format.fork_safe

faulthandler.dump_traceback_later(30, exit=True)
held = threading.Event()

def configure():
    with logging._lock:
        held.set()
        time.sleep(0.3)
        importlib.import_module("imported_under_a_lock")

thread = threading.Thread(target=configure, daemon=True)
thread.start()
held.wait()
child = os.fork()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
thread.join()
"""


def test_a_fork_goes_on_beside_a_thread_that_imports_under_a_lock_that_another_handler_takes(tmp_path):
    (tmp_path / "imported_under_a_lock.py").write_text("VALUE = 1\n")
    assert ended(IMPORT_UNDER_A_LOCK, tmp_path) == (0, "")


BROKEN = """
import hudi_import_events as events
events.begun.set()
events.go_on.wait(0.3)
raise AttributeError("it is not of this version")
"""


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_locks_are_free_in_a_child_also_where_what_a_thread_imports_is_broken(tmp_path, monkeypatch):
    (tmp_path / "hudi_import_events.py").write_text(EVENTS)
    (tmp_path / "hudi_broken_to_import.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(str(tmp_path))
    events = importlib.import_module("hudi_import_events")

    def importing():
        with suppress(AttributeError):
            importlib.import_module("hudi_broken_to_import")

    lock, thread = ProcessLock(), threading.Thread(target=importing)
    thread.start()
    assert events.begun.wait(30)
    try:
        with lock.threads:
            assert in_a_child(lambda: lock.threads.acquire(blocking=False))
    finally:
        thread.join()
        sys.modules.pop("hudi_import_events", None)


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
