"""Parallel storage calls, for stores behind a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from hudi_format.storage.protocol import Storage

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
