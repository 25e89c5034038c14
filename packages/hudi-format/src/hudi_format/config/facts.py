"""What each option of a map means here: for `hudi config explain` and for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hudi_format.config.effects import EFFECTS
from hudi_format.config.registry import known_options, main_name, nearest
from hudi_format.config.write import HONOURED

MEANING, TUNING, EFFECT, UNKNOWN = "meaning", "tuning", "effect", "unknown"


@dataclass(frozen=True, slots=True)
class OptionFact:
    """One option: its main name, the value given (None for none), its default, and how it is taken here."""

    key: str
    value: str | None
    default: str | None
    taken_as: str
    note: str = ""


def describe(key: str, value: str | None = None) -> OptionFact:
    """What an option means here."""
    main = main_name(key)
    if main is None:
        near = nearest(key)
        return OptionFact(key, value, None, UNKNOWN, f"did you mean {near}?" if near else "")
    known = known_options().get(main)
    default = known.default if known else None
    for effect in EFFECTS:
        if effect.key == main and value is not None and effect.asks(value):
            return OptionFact(main, value, default, EFFECT, f"{effect.what}: not provided; {effect.way_round}.")
    note = f"main name of {key}" if main != key else ""
    return OptionFact(main, value, default, MEANING if main in HONOURED else TUNING, note)


def explain(options: Mapping[str, str]) -> list[OptionFact]:
    """What each of the options means here, in their order."""
    return [describe(key, value) for key, value in options.items()]
