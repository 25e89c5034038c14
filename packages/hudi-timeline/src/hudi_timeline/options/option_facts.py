"""Descriptions of options for `hudi config explain`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hudi_format.errors import OptionError
from hudi_timeline.options.registry import (
    canonical,
    declared_options,
    known_options,
    main_name,
    nearest,
    option_of,
    shown,
)

MEANING, TUNING, EFFECT, UNKNOWN = "meaning", "tuning", "effect", "unknown"
GIVEN, DEFAULT = "given", "default"


@dataclass(frozen=True, slots=True)
class OptionFact:
    """Description of one option.

    Attributes:
        key: main name, or the name that was given where none knows it.
        value: what was given, None for nothing; secrets are masked.
        origin: "given", "given as NAME", or "default".
        default: its default text, None for none.
        taken_as: meaning, tuning (accepted without effect), effect (it asks for what is not provided),
            or unknown.
        allowed: what it takes.
        note: what it is for, or what to do instead.
    """

    key: str
    value: str | None
    origin: str
    default: str | None
    taken_as: str
    allowed: str
    note: str


def describe(key: str, value: str | None = None) -> OptionFact:
    """Description of an option with a value or its default."""
    main = main_name(key)
    if main is None:
        near = nearest(key)
        note = f"No release of Apache Hudi knows it{f'; did you mean {near}?' if near else '.'}"
        return OptionFact(key, value, "" if value is None else GIVEN, None, UNKNOWN, "", note)
    option = option_of(main)
    origin = DEFAULT if value is None else GIVEN if key == main else f"given as {key}"
    taken_as, note = _class_of(main, value)
    return OptionFact(
        main,
        None if value is None else shown(main, value),
        origin,
        option.default if option else None,
        taken_as,
        option.type.allowed if option else "text",
        note,
    )


def _class_of(main: str, value: str | None) -> tuple[str, str]:
    option = option_of(main)
    refused = option.unsupported if option is not None else None
    if refused is not None and value is not None:
        try:
            asks = refused.asks(canonical({main: value}).parsed[main])
        except OptionError as e:
            return MEANING, e.message
        if asks:
            return EFFECT, f"Requests {refused.what}, which is not supported: {refused.way_round}."
    if option is not None and option.doc:
        return MEANING, option.doc
    if refused is not None:
        return MEANING, f"Other values request {refused.what}, which is not supported: {refused.way_round}."
    group = option.group if option is not None else "another tool"
    return TUNING, f"Accepted without effect here ({group})."


def explain(options: Mapping[str, str], *, with_defaults: bool = True) -> list[OptionFact]:
    """Descriptions of the given options in order, then of other options with defaults."""
    facts = [describe(key, value) for key, value in options.items()]
    if with_defaults:
        known = {fact.key for fact in facts}
        facts += [
            describe(key) for key, option in declared_options().items() if option.doc and key not in known
        ]
    return facts


def matching(words: Sequence[str]) -> list[OptionFact]:
    """Descriptions of options that have all words in name or note, those with a meaning first."""
    wanted = [word.lower() for word in words]
    facts = [describe(key) for key in known_options()]
    found = [f for f in facts if all(w in f"{f.key} {f.note}".lower() for w in wanted)]
    return sorted(found, key=lambda f: (f.taken_as != MEANING, f.key))
