"""Shares of a merge's memory limit."""

import pytest

from hudi_format.merge.memory_limit import DEFAULT_BYTES, STREAM_BYTES, MemoryLimit


def test_what_is_held_stays_below_the_limit_however_small_it_is():
    for size in (1, 2, 1000, DEFAULT_BYTES):
        limit = MemoryLimit(size)
        assert 1 <= limit.held <= size
        # Records are held twice and laid out once more.
        assert size < 10 or 3 * limit.held <= size


def test_steps_grow_with_the_limit_between_bounds():
    steps = [MemoryLimit(size).step for size in (1, 1 << 20, 1 << 24, 1 << 28, 1 << 40)]
    assert steps == sorted(steps)
    assert (steps[0], steps[-1]) == (1 << 16, 32 << 20)


def test_merges_side_by_side_share_the_limit():
    limit = MemoryLimit(100, folder="f", compress=False, given=True)
    assert limit.shared(3) == MemoryLimit(33, folder="f", compress=False, given=True)
    assert limit.shared(1000).bytes == 1


def test_a_stream_takes_little_unless_the_user_chose_the_limit():
    assert MemoryLimit().for_stream().bytes == STREAM_BYTES
    assert MemoryLimit(5).for_stream().bytes == 5
    assert MemoryLimit(DEFAULT_BYTES, given=True).for_stream().bytes == DEFAULT_BYTES


@pytest.mark.parametrize("size", [0, -1])
def test_a_limit_of_nothing_is_refused(size):
    with pytest.raises(ValueError, match="memory limit"):
        MemoryLimit(size)
