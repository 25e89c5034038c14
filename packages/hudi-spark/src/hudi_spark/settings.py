"""A session's setting changed for the time of a call, also where several threads do so at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession


@dataclass
class _Held:
    before: str | None
    users: int = 0


_lock = threading.Lock()
_held: dict[tuple[int, str], _Held] = {}


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """Within: the setting has this value.  The last one out restores what the first one found."""
    place = (id(spark), name)
    with _lock:
        held = _held.get(place)
        if held is None:
            held = _held[place] = _Held(spark.conf.get(name, None))
            spark.conf.set(name, value)
        held.users += 1
    try:
        yield
    finally:
        with _lock:
            held.users -= 1
            if not held.users:
                del _held[place]
                # What the user has set meanwhile stays.
                if spark.conf.get(name, None) == value:
                    if held.before is None:
                        spark.conf.unset(name)
                    else:
                        spark.conf.set(name, held.before)
