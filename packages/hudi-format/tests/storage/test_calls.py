"""Calls of Arrow's that the end of the interpreter waits for."""

import os
import threading

from hudi_format.storage.calls import CallsOfArrow


class Caller:
    pass


def test_the_wait_ends_after_the_calls_that_are_on_their_way():
    calls, caller, begun, may_end = CallsOfArrow(), Caller(), threading.Event(), threading.Event()
    calls.callers.add(caller)
    seen = []

    def call():
        with calls, calls:
            begun.set()
            assert may_end.wait(60)
            seen.append("call")

    def wait():
        calls.wait()
        seen.append("wait")

    threads = [threading.Thread(target=call), threading.Thread(target=wait)]
    threads[0].start()
    assert begun.wait(60)
    threads[1].start()
    threads[1].join(0.3)
    assert seen == []
    may_end.set()
    for thread in threads:
        thread.join(60)
    assert seen == ["call", "wait"]


def test_without_a_caller_there_is_nothing_to_wait_for():
    calls, caller = CallsOfArrow(), Caller()
    calls.callers.add(caller)
    del caller
    with calls:  # waiting for it here would not end
        calls.wait()


def test_a_forked_child_does_not_wait_for_calls_of_its_parent():
    calls, caller = CallsOfArrow(), Caller()
    calls.callers.add(caller)
    with calls:
        child = os.fork()
        if not child:
            calls.wait()
            with calls:
                pass
            calls.wait()
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
