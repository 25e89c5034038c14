"""Simulated time and chance: what runs in the same order leaves the same bytes."""

import os
import random
import threading
import time
import uuid

import pytest

from hudi_timeline.testing import MemoryStorage, drawn
from hudi_timeline.testing.simulated_time import BEGIN_S, SimulatedTime, current_time
from hudi_timeline.testing.workload import Case
from hudi_timeline.testing.workload_table import made_table
from hudi_timeline.timeline import instant_generator
from hudi_timeline.transaction import retries


def seen():
    """What a thread is told of time and chance."""
    return time.time(), time.monotonic(), os.urandom(4), uuid.uuid4()


def test_a_thread_has_the_same_time_and_chance_each_time():
    def told(name="one"):
        clock = SimulatedTime()
        with clock.thread(name):
            first = seen()
            time.sleep(30)
            clock.tick(2)
            return first, seen()

    first, later = told()
    assert told() == (first, later)
    assert first[:2] == (BEGIN_S, 0.0)
    # A pause is cut short, and a duration is what one paused, not how long others were at work.
    assert later[0] - first[0] == pytest.approx(2.02)
    assert later[1] == pytest.approx(0.02)
    other, _ = told("two")
    assert all(mine != theirs for mine, theirs in zip(first[2:], other[2:], strict=True))


def test_ids_of_a_later_simulation_of_the_same_table_are_others():
    def ids(begin_s):
        with SimulatedTime(begin_s).thread("one"):
            return uuid.uuid4()

    assert ids(BEGIN_S) == ids(BEGIN_S)
    assert ids(BEGIN_S) != ids(BEGIN_S + 5)


def test_other_threads_and_what_follows_have_the_machines():
    told = []
    before = time.time
    with SimulatedTime().thread("one"):
        other = threading.Thread(target=lambda: told.append((time.time(), os.urandom(8))))
        other.start()
        other.join()
        assert current_time() is not None
        assert time.time() == BEGIN_S
    assert current_time() is None
    assert time.time is before
    ((real, *_),) = told
    assert abs(real - time.time()) < 60


def test_functions_that_have_a_clock_for_a_default_have_the_simulated_one():
    def defaults():
        return instant_generator.new_instant.__defaults__, retries.Tries.__init__.__kwdefaults__

    before = defaults()
    with SimulatedTime().thread("one"):
        (now,), names = defaults()
        assert now() == BEGIN_S
        assert names["draw"]() == random.Random(f"one {BEGIN_S}").random()
    assert defaults() == before


def test_what_is_raised_leaves_no_clock_behind():
    def raises():
        with SimulatedTime().thread("one"), SimulatedTime(5.0).thread("two"):
            assert time.time() == 5.0
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        raises()
    assert current_time() is None
    assert abs(time.time() - BEGIN_S) > 1


@pytest.mark.req("NEW-12")
@pytest.mark.parametrize("seed", range(0, 40, 4))
@pytest.mark.sampled(3)
def test_a_seed_leaves_the_same_bytes_each_time(seed):
    one, two = drawn(seed).run(), drawn(seed).run()
    assert one.storage.digest() == two.storage.digest()
    assert [str(d) for d in one.done] == [str(d) for d in two.done]
    assert one.storage.uri != two.storage.uri


def test_another_order_of_two_writes_leaves_other_bytes():
    case = Case({"one": ["insert"], "two": ["insert"]})
    one, two, again = (
        case.run(switches=[(0, who)], waits=True).storage.digest() for who in ("one", "two", "one")
    )
    assert one != two
    assert again == one


def test_a_table_with_other_content_or_another_name_has_another_digest():
    made = made_table()
    same, other, more = made.copy_of(), made.copy_of(), made.copy_of()
    assert same.digest() == made.digest()
    name = next(path for path in made.state() if path.endswith(".parquet")).partition("/t/")[2]
    other.publish(name, other.read(name)[:-1] + b"?")
    more.publish(f"{name}2", b"")
    assert len({m.digest() for m in (made, other, more)}) == 3
    assert MemoryStorage().digest() == MemoryStorage().digest()
