"""Unsupported and ineffective options of a call."""

from __future__ import annotations

import logging

from hudi_format.errors import UnsupportedError
from hudi_format.fork_safe import ProcessLock
from hudi_timeline.options.registry import ParsedOptions, declared_options, option_of, shown

log = logging.getLogger("hudi")

_said: set[str] = set()
_said_lock = ProcessLock()


def refuse_effects(given: ParsedOptions, scope: str) -> None:
    """Refuse unsupported effects in the options of a call.

    Args:
        scope: WRITE or READ.

    Raises:
        UnsupportedError: naming option, value and way round.
    """
    for key, parsed in given.parsed.items():
        option = option_of(key)
        refused = None if option is None else option.unsupported
        if refused is None or scope not in refused.scopes or not refused.asks(parsed):
            continue
        name = given.given_as[key]
        value = shown(name, given.text[key])
        raise UnsupportedError(
            f"{name}={value} requests {refused.what}, which this version does not support",
            remedy=f"{refused.way_round}.",
            option=name,
            value=value,
        )


def is_tuning(key: str) -> bool:
    """Whether an option, by main key, is accepted without effect."""
    return key not in declared_options() and key not in ("path", "paths")


def say_tuning(given: ParsedOptions) -> None:
    """Log each ineffective option once at INFO."""
    with _said_lock.threads:
        fresh = {given.given_as[key] for key in given.text if is_tuning(key)} - _said
        _said.update(fresh)
    if fresh:
        log.info("options accepted without effect here: %s", ", ".join(sorted(fresh)))
