"""Calls of a storage side by side: their results in order, on threads only behind a network."""

import threading
from types import SimpleNamespace

import pytest

from hudi_format.storage.parallel import on_threads


@pytest.mark.parametrize("is_local", [True, False])
@pytest.mark.parametrize("count", [0, 1, 50])
def test_results_come_in_the_order_of_the_items(is_local, count):
    assert list(on_threads(SimpleNamespace(is_local=is_local), lambda n: n * n, range(count))) == [
        n * n for n in range(count)
    ]


def test_calls_overlap_behind_a_network_and_not_on_a_local_disk():
    both = threading.Barrier(2, timeout=20)
    list(
        on_threads(SimpleNamespace(is_local=False), lambda _: both.wait(), range(2))
    )  # passes only side by side
    used = set(on_threads(SimpleNamespace(is_local=True), lambda _: threading.get_ident(), range(9)))
    assert used == {threading.get_ident()}


@pytest.mark.parametrize("is_local", [True, False])
def test_the_error_of_a_call_is_the_callers(is_local):
    def call(n):
        if n == 1:
            raise FileNotFoundError(n)
        return n

    with pytest.raises(FileNotFoundError):
        list(on_threads(SimpleNamespace(is_local=is_local), call, range(3)))
