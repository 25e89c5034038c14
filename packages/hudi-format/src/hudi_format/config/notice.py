"""What is said of options that are accepted without effect: once per process and option."""

from __future__ import annotations

import logging

from hudi_format.config.effects import effects_by_key
from hudi_format.config.heeded import HEEDED, METADATA_ENABLE
from hudi_format.config.registry import Given, names_of
from hudi_format.fork_safe import ProcessLock

log = logging.getLogger("hudi")

_said: set[str] = set()
_said_lock = ProcessLock()


def is_tuning(key: str) -> bool:
    """Whether an option, by its main name, is accepted without effect here."""
    return key not in HEEDED and key not in effects_by_key() and key not in ("path", "paths")


def say_tuning(given: Given) -> None:
    """List the options without effect at INFO, and warn of a metadata table that is not maintained."""
    asked = given.parsed.get(METADATA_ENABLE) is True
    with _said_lock:
        fresh = {given.given_as[key] for key in given.text if is_tuning(key)} - _said
        _said.update(fresh)
        asked = asked and METADATA_ENABLE not in _said
        if asked:
            _said.add(METADATA_ENABLE)
    if fresh:
        log.info("options accepted without effect here: %s", names_of(fresh))
    if asked:
        log.warning(
            "%s=true: snapshots read the table's metadata table, and writes do not keep it up to date yet",
            METADATA_ENABLE,
        )
