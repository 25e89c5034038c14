"""What a reader's options mean for a scan, parsed once.

Source: spec of Apache Hudi 0.15's DataSourceReadOptions and HoodieCommonConfig.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hudi_format.errors import InvalidOptionError, UnsupportedError

HOLLOW_POLICY = "hoodie.read.timeline.holes.resolution.policy"
FULL_SCAN_FALLBACK = "hoodie.datasource.read.incr.fallback.fulltablescan.enable"
USE_END_SCHEMA = "hoodie.datasource.read.schema.use.end.instanttime"

FAIL = "FAIL"
BLOCK = "BLOCK"
TRANSITION_TIME = "USE_TRANSITION_TIME"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """
    Attributes:
        hollow_policy: what an incremental query does where a commit is open before completed ones: FAIL
            raises, BLOCK reads only what is before it.
        full_scan_fallback: an incremental query whose instants or files are gone reads the whole table and
            keeps the rows of the range.
        use_end_schema: incremental results have the schema of their last instant, not the newest.
    """

    hollow_policy: str = FAIL
    full_scan_fallback: bool = False
    use_end_schema: bool = False


def parse_read_options(options: Mapping[str, str]) -> ReadOptions:
    """The options that mean something here; others are left to whoever knows them.

    Raises:
        InvalidOptionError: a value that is none of the option's.
        UnsupportedError: the policy USE_TRANSITION_TIME.
    """
    policy = options.get(HOLLOW_POLICY, FAIL).strip().upper()
    if policy == TRANSITION_TIME:
        raise UnsupportedError(
            f"{HOLLOW_POLICY}={TRANSITION_TIME} is not supported",
            remedy=f"use {FAIL} or {BLOCK}.",
            option=HOLLOW_POLICY,
        )
    if policy not in (FAIL, BLOCK):
        raise InvalidOptionError(
            f"{HOLLOW_POLICY}={policy!r} is no policy", remedy=f"use {FAIL} or {BLOCK}.", option=HOLLOW_POLICY
        )
    return ReadOptions(policy, _flag(options, FULL_SCAN_FALLBACK), _flag(options, USE_END_SCHEMA))


def _flag(options: Mapping[str, str], key: str) -> bool:
    text = options.get(key, "false").strip().lower()
    if text not in ("true", "false"):
        raise InvalidOptionError(
            f"{key}={options[key]!r} is neither true nor false", remedy="use true or false.", option=key
        )
    return text == "true"
