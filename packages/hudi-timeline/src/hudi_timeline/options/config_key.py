"""Declaration of an option: type, default, alternatives, effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from functools import cache
from typing import Any

from hudi_timeline.options.option_types import BOOLEAN, TEXT, OptionType

WRITE, READ = "write", "read"
_ONLY_WRITES = frozenset({WRITE})


@dataclass(frozen=True, slots=True)
class Unsupported:
    """Unsupported values of an option, with the remedy.

    Attributes:
        asks: whether a parsed value asks for it.
        what: what it asks for.
        way_round: what to do instead.
        scopes: the calls that are refused; a writer's option does not stop a read.
    """

    asks: Callable[[object], bool]
    what: str
    way_round: str
    scopes: frozenset[str] = _ONLY_WRITES


class ConfigKey(str):
    """Key of an option, with its declaration.

    It is its name, so that it stands in messages, and is looked up in maps of options, as it is.

    Attributes:
        type: the kind of value that it takes.
        default: Apache Hudi's, as text, unless `doc` says otherwise; None for none.
        since: the release that brought it: of Apache Hudi, "" where that tells none; of this project for `hudi.*`.
        doc: its effect here; "" for an option that is taken without effect.
        alternatives: other names of the same option.
        group: the part of Apache Hudi that an option without effect belongs to.
        unsupported: the values that are refused.
    """

    __slots__ = ("alternatives", "default", "doc", "group", "since", "type", "unsupported")

    type: OptionType
    default: str | None
    since: str
    doc: str
    alternatives: tuple[str, ...]
    group: str
    unsupported: Unsupported | None

    def __new__(
        cls,
        key: str,
        type: OptionType,
        default: str | None = None,
        *,
        since: str = "",
        doc: str = "",
        alternatives: tuple[str, ...] = (),
        group: str = "",
        unsupported: Unsupported | None = None,
    ) -> ConfigKey:
        made = super().__new__(cls, key)
        made.type, made.default, made.since, made.doc = type, default, since, doc
        made.alternatives, made.group, made.unsupported = alternatives, group, unsupported
        return made

    def __reduce__(self) -> tuple[object, ...]:
        return str, (str(self),)  # in an error that crosses processes it is its name

    @property
    def value(self) -> Any:
        """Parsed default value."""
        return None if self.default is None else self.type.parse(self.default)


# Fields of configurations, each the parsed value of one option.

_KEY = "key"


def value_of(key: ConfigKey, *, otherwise: Any = None) -> Any:
    """Dataclass field with the option's value or default.

    Args:
        otherwise: what nothing is, of an option without default.
    """
    return field(default=otherwise if key.default is None else key.value, metadata={_KEY: key})


def given_value(key: ConfigKey) -> Any:
    """Dataclass field with the option's value; None where it is not given."""
    return field(default=None, metadata={_KEY: key})


@cache
def keys_of(config: type) -> dict[str, ConfigKey]:
    """Options of the fields bound to one."""

    def bound(f: Field[Any]) -> ConfigKey | None:
        return f.metadata.get(_KEY)

    return {f.name: key for f in fields(config) if (key := bound(f)) is not None}


def given_values(config: type, parsed: Mapping[str, object]) -> dict[str, Any]:
    """Values of the fields bound to options that are given.

    Args:
        parsed: as of `ParsedOptions`.
    """
    return {name: parsed[key] for name, key in keys_of(config).items() if key in parsed}


# What values of options ask for, in `Unsupported.asks`.


def is_true(value: object) -> bool:
    """Whether a switch is on."""
    return value is True


def is_false(value: object) -> bool:
    """Whether a switch is off."""
    return value is False


def is_given(value: object) -> bool:
    """Whether the value is not empty."""
    return bool(value.strip() if isinstance(value, str) else value)


def other_than(*allowed: str) -> Callable[[object], bool]:
    """Whether a value is none of these; nothing given is nothing asked."""
    return lambda value: is_given(value) and value not in allowed


def class_other_than(package: str, *names: str) -> Callable[[object], bool]:
    """Predicate for classes other than these, in Apache Hudi's package."""
    return other_than(*(package + name for name in names))


# Declarations of options that only ask for what is not provided.


def refused_if_true(
    key: str, what: str, way_round: str, *, scopes: frozenset[str] = _ONLY_WRITES, **more: Any
) -> ConfigKey:
    """A switch, off by default, whose value true is unsupported."""
    return ConfigKey(key, BOOLEAN, "false", unsupported=Unsupported(is_true, what, way_round, scopes), **more)


def refused_unless(
    key: str,
    default: str,
    what: str,
    way_round: str,
    *,
    type: OptionType = TEXT,
    scopes: frozenset[str] = _ONLY_WRITES,
    **more: Any,
) -> ConfigKey:
    """An option of which all values but the default are unsupported."""
    return ConfigKey(
        key, type, default, unsupported=Unsupported(other_than(default), what, way_round, scopes), **more
    )


def refused_if_given(key: str, what: str, way_round: str, **more: Any) -> ConfigKey:
    """A writer's text option that is unsupported."""
    return ConfigKey(key, TEXT, unsupported=Unsupported(is_given, what, way_round), **more)
