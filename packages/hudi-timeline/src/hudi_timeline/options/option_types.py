"""Option types: parsing and allowed values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_WHOLE = re.compile(r"[+-]?\d+\Z", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\Z", re.ASCII)
_WILD = re.compile(r"[*?\[{\\]")
# Java's long: what Apache Hudi keeps sizes and counts in.
_MOST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class OptionType:
    """Type of an option's value.

    Attributes:
        allowed: what may stand there, to follow "it takes".
        parse: the value of a text; ValueError where it is not allowed.
    """

    allowed: str
    parse: Callable[[str], object]


def _boolean(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise ValueError(text)
    return lowered == "true"


def whole(least: int | None = None, most: int = _MOST, unit: str = "") -> OptionType:
    """Whole numbers within inclusive bounds."""

    def parse(text: str) -> int:
        if not _WHOLE.match(text.strip()):
            raise ValueError(text)
        number = int(text)
        if (least is not None and number < least) or number > most:
            raise ValueError(text)
        return number

    of = f" of {unit}" if unit else ""
    bounds = "" if least is None else f" from {least}"
    if most != _MOST:
        bounds += f" to {most}"
    return OptionType(f"a whole number{of}{bounds}", parse)


def number(
    least: float | None = None, below: float | None = None, *, above: float | None = None
) -> OptionType:
    """Numbers within bounds: `least` inclusive, the others exclusive."""

    def parse(text: str) -> float:
        if not _NUMBER.match(text.strip()):
            raise ValueError(text)
        value = float(text)
        if least is not None and value < least:
            raise ValueError(text)
        if (above is not None and value <= above) or (below is not None and value >= below):
            raise ValueError(text)
        return value

    bounds = [f"from {least:g}"] if least is not None else []
    bounds += [f"above {above:g}"] if above is not None else []
    bounds += [f"below {below:g}"] if below is not None else []
    return OptionType(" ".join(["a number", " and ".join(bounds)]).rstrip(), parse)


def choice(*allowed: str, same_as: Mapping[str, str] | None = None) -> OptionType:
    """Enumeration of names in any case; the spelling given here is returned.

    Args:
        same_as: the names that others mean, which are returned instead.
    """
    by_lower = {a.lower(): (same_as or {}).get(a, a) for a in allowed}

    def parse(text: str) -> str:
        found = by_lower.get(text.strip().lower())
        if found is None:
            raise ValueError(text)
        return found

    return OptionType("one of " + ", ".join(a or '""' for a in allowed), parse)


FUNCTION = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*\Z"


def java_class(package: str) -> OptionType:
    """Java classes; the full name is returned, also for a name without package."""

    def parse(text: str) -> str:
        name = text.strip()
        if not re.match(r"[A-Za-z_$][\w$]*(\.[A-Za-z_$][\w$]*)*\Z", name):
            raise ValueError(text)
        if "." not in name:
            return package + name
        # The package of the releases before Apache.
        return (
            "org.apache.hudi" + name.removeprefix("com.uber.hoodie")
            if name.startswith("com.uber.hoodie.")
            else name
        )

    return OptionType(f"the name of a Java class, with or without {package.rstrip('.')}", parse)


def class_or_function(package: str) -> OptionType:
    """Java classes as in `java_class`, or Python functions as `module:function`."""
    of_java = java_class(package)

    def parse(text: str) -> object:
        return text.strip() if re.match(FUNCTION, text.strip()) else of_java.parse(text)

    return OptionType(f"{of_java.allowed}, or a Python function as module:function", parse)


def _fields(text: str) -> tuple[str, ...]:
    return _once(text.split(","), text)


def _named_fields(text: str) -> tuple[str, ...]:
    found = _fields(text)
    if not found:
        raise ValueError(text)
    return found


def _once(found: list[str], text: str) -> tuple[str, ...]:
    parts = tuple(p for p in (p.strip() for p in found) if p)
    if len(set(parts)) != len(parts):
        raise ValueError(text)
    return parts


def has_wildcard(path: str) -> bool:
    """Whether a path contains wildcards."""
    return _WILD.search(path) is not None


def patterns_in(text: str) -> list[str]:
    """Path patterns with commas between them; a comma in braces belongs to its pattern."""
    out, depth = [""], 0
    for c in text:
        depth += (c == "{") - (c == "}" and depth > 0)
        if c == "," and not depth:
            out.append("")
        else:
            out[-1] += c
    return text.split(",") if depth else out


def _name(text: str) -> str:
    if not text.strip():
        raise ValueError(text)
    return text.strip()


TEXT = OptionType("text", lambda text: text)
STRIPPED = OptionType("text", str.strip)
NAME = OptionType("a name, not empty", _name)
BOOLEAN = OptionType("true or false", _boolean)
CONDITION = OptionType("a condition, not empty", _name)
FIELDS = OptionType("names, comma separated, each once", _fields)
NAMED_FIELDS = OptionType("names, comma separated, each once, one at least", _named_fields)
PATH_LIST = OptionType("paths, comma separated, each once", _fields)
PATTERN_LIST = OptionType(PATH_LIST.allowed, lambda text: _once(patterns_in(text), text))

WHOLE, NUMBER = whole(), number()
BYTES = whole(1, unit="bytes")
MILLISECONDS = whole(1, unit="milliseconds")
TASKS = whole(0, 2**31 - 1, unit="tasks (0 leaves it to the engine)")
STORAGE_LEVELS = choice(
    *(
        f"{memory}{form}"
        for memory in ("MEMORY_AND_DISK", "MEMORY_ONLY")
        for form in ("", "_2", "_SER", "_SER_2")
    ),
    *("DISK_ONLY", "DISK_ONLY_2", "DISK_ONLY_3", "OFF_HEAP"),
)


def type_of_default(default: str | None) -> OptionType:
    """Option type inferred from a default: `true` is a boolean, `10` a whole number."""
    if default is None:
        return TEXT
    if default in ("true", "false"):
        return BOOLEAN
    if _WHOLE.match(default):
        return WHOLE
    return NUMBER if _NUMBER.match(default) else TEXT
