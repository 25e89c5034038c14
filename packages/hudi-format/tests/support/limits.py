"""A limit on memory, so that an allocation for a number which the input made up fails at once."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")  # reserves terabytes of addresses


@contextmanager
def little_memory(more: int = 400 << 20) -> Iterator[None]:
    """The process may take so many more bytes of address space than it has; MemoryError beyond."""
    statm = Path("/proc/self/statm")
    if SANITIZED or not statm.is_file():
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(statm.read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
