"""Calls of a storage side by side: their results in order, on threads only behind a network."""

import threading
from types import SimpleNamespace

import pytest

from hudi_format.storage.local import LocalStorage
from hudi_format.storage.parallel import on_threads, subfolders, walk_folders


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


def test_a_walk_lists_each_folder_once_and_goes_only_where_it_is_told(tmp_path):
    for path in ("a/b/1", "a/2", "c/3", "skipped/4"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(b"x")

    def into(folder, entries):
        return [f for f in subfolders(folder, entries) if f != "skipped"]

    storage = LocalStorage(str(tmp_path))
    walked = [(f, sorted(e.name for e in found)) for f, found in walk_folders(storage, into=into)]
    assert sorted(walked) == [("", ["a", "c", "skipped"]), ("a", ["2", "b"]), ("a/b", ["1"]), ("c", ["3"])]
    assert sorted(f for f, _ in walk_folders(storage, "a")) == ["a", "a/b"]
    assert [found for _, found in walk_folders(storage, "missing")] == [[]]
