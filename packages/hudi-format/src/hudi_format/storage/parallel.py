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
    if storage.is_local or len(items) < 2:
        yield from map(call, items)
        return
    with ThreadPoolExecutor(min(REMOTE_THREADS, len(items)), thread_name_prefix="hudi-list") as pool:
        yield from pool.map(call, items)
