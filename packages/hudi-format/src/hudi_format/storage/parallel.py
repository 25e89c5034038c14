"""Parallel storage calls, for stores behind a network, and walks over folders by them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from hudi_format.model import join_path
from hudi_format.storage.protocol import FileInfo, Storage

# Listing calls of object stores take some 50 ms and no CPU.  On a local disk the calls are the CPU.
REMOTE_THREADS = 32


_T = TypeVar("_T")
_R = TypeVar("_R")


def on_threads(storage: Storage, call: Callable[[_T], _R], items: Sequence[_T]) -> Iterator[_R]:
    """Results of `call` for each item, in order; in parallel on remote storage."""
    if storage.is_local:
        yield from map(call, items)
        return
    yield from side_by_side(call, items, REMOTE_THREADS, "hudi-list")


def side_by_side(
    call: Callable[[_T], _R], items: Sequence[_T], threads: int, name: str = "hudi"
) -> Iterator[_R]:
    """Results of calls on so many threads, in the order of the items; one item needs no thread."""
    if threads < 2 or len(items) < 2:
        yield from map(call, items)
        return
    with ThreadPoolExecutor(min(threads, len(items)), thread_name_prefix=name) as pool:
        yield from pool.map(call, items)


def on_pool(pool: ThreadPoolExecutor, call: Callable[[_T], _R], items: Sequence[_T]) -> Iterator[_R]:
    """Results of calls on a pool's threads, in the order of the items; one item needs no thread."""
    return map(call, items) if len(items) < 2 else pool.map(call, items)


def subfolders(folder: str, entries: Sequence[FileInfo]) -> list[str]:
    """Paths of the folders in a listing."""
    return [join_path(folder, e.name) for e in entries if e.is_dir]


def walk_folders(
    storage: Storage,
    top: str = "",
    into: Callable[[str, Sequence[FileInfo]], Sequence[str]] = subfolders,
) -> Iterator[tuple[str, list[FileInfo]]]:
    """Folders from `top` downward with their entries, level by level, each listed once.

    Args:
        into: the folders to go on with, of one folder's entries.
    """
    level: Sequence[str] = [top]
    while level:
        below: list[str] = []
        for folder, entries in zip(level, on_threads(storage, storage.list, level), strict=True):
            yield folder, entries
            below += into(folder, entries)
        level = below
