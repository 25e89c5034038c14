"""Which states of which tables reads of this process stand for, so that the cleaner leaves their files alone.

A read counts from when it is made until the object is dropped.
"""

from __future__ import annotations

import weakref
from typing import Protocol

from hudi_format.fork_safe import ProcessLock


class Read(Protocol):
    """A read that knows its table's address and the instant whose state it gives ("" before the first)."""

    @property
    def table_uri(self) -> str: ...

    @property
    def as_of(self) -> str: ...


_open: weakref.WeakSet[Read] = weakref.WeakSet()
_lock = ProcessLock()


def register(read: Read) -> None:
    """Count a read, for as long as the object lives."""
    with _lock:
        _open.add(read)


def instants(table_uri: str) -> list[str]:
    """The instants that reads of a table stand for."""
    with _lock:
        return [r.as_of for r in _open if r.table_uri == table_uri and r.as_of]
