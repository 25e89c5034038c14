"""Consistency guard: waits until a commit's files are visible.

Source: FailSafeConsistencyGuard of Apache Hudi 0.15.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hudi_format.errors import MissingFileError
from hudi_format.model import WriteStat
from hudi_format.storage.parallel import on_threads
from hudi_format.storage.protocol import Storage

PREFIX = "hoodie.consistency.check."


@dataclass(frozen=True, slots=True)
class VisibilityPolling:
    """Number of checks, first pause and longest pause; pauses double."""

    checks: int = 7
    first_ms: int = 2000
    most_ms: int = 300_000


def wait_for_files(
    storage: Storage,
    stats: Sequence[WriteStat],
    looks: VisibilityPolling,
    *,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until every file of a write is visible in its size.

    Args:
        pause: waits some seconds.

    Raises:
        MissingFileError: files that did not show up.
    """
    left, wait_ms = list(stats), looks.first_ms
    for check in range(max(1, looks.checks)):
        if check:
            pause(wait_ms / 1000)
            wait_ms = min(2 * wait_ms, looks.most_ms)
        infos = on_threads(storage, lambda s: storage.info(s.path), left)
        left = [
            stat
            for stat, info in zip(left, infos, strict=True)
            if info is None or info.size != stat.file_size_in_bytes
        ]
        if not left:
            return
    raise MissingFileError(
        f"{len(left)} of the {len(stats)} files of the write are not there, or not whole, after {looks.checks} looks",
        table=storage.uri,
        file=left[0].path,
        remedy=f"see whether something deletes files there; on a slow store raise {PREFIX}max_checks.",
    )


def looks_of(options: Mapping[str, str]) -> VisibilityPolling | None:
    """Polling of the checked options; None where the check is off."""
    if options.get(PREFIX + "enabled", "false").strip().lower() != "true":
        return None
    names = {"checks": "max_checks", "first_ms": "initial_interval_ms", "most_ms": "max_interval_ms"}
    return VisibilityPolling(
        **{name: int(options[PREFIX + key]) for name, key in names.items() if PREFIX + key in options}
    )
