"""Parse option values: each function names option, value and what is allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hudi_format.errors import InvalidOptionError


def boolean(options: Mapping[str, str], key: str, default: bool) -> bool:
    text = options.get(key)
    if text is None:
        return default
    lowered = text.strip().lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    raise _invalid(key, text, "true or false")


def optional_boolean(options: Mapping[str, str], key: str) -> bool | None:
    return boolean(options, key, False) if key in options else None


def integer(options: Mapping[str, str], key: str, default: int, *, least: int | None = None, unit: str = "") -> int:
    text = options.get(key)
    if text is None or not text.strip():
        return default
    try:
        number = int(text.strip())
    except ValueError:
        raise _invalid(key, text, f"a whole number{f' of {unit}' if unit else ''}") from None
    if least is not None and number < least:
        raise _invalid(key, text, f"a whole number{f' of {unit}' if unit else ''} from {least}")
    return number


def optional_integer(options: Mapping[str, str], key: str, *, least: int | None = None) -> int | None:
    return integer(options, key, 0, least=least) if options.get(key, "").strip() else None


def decimal(options: Mapping[str, str], key: str, default: float, *, above: float, below: float) -> float:
    text = options.get(key)
    if text is None:
        return default
    try:
        number = float(text.strip())
    except ValueError:
        raise _invalid(key, text, "a number") from None
    if not above < number < below:
        raise _invalid(key, text, f"a number between {above} and {below}")
    return number


def choice(options: Mapping[str, str], key: str, default: str, allowed: Sequence[str]) -> str:
    """One of `allowed`, compared without case; the allowed spelling is given back."""
    text = options.get(key)
    if text is None:
        return default
    for one in allowed:
        if text.strip().lower() == one.lower():
            return one
    raise _invalid(key, text, " or ".join(allowed))


def names(options: Mapping[str, str], key: str) -> tuple[str, ...] | None:
    """A comma list, None where it is not given; empty parts are left out."""
    text = options.get(key)
    if text is None:
        return None
    return tuple(part for part in (p.strip() for p in text.split(",")) if part)


def _invalid(key: str, value: str, allowed: str) -> InvalidOptionError:
    return InvalidOptionError(f"{key}={value!r} is not {allowed}", option=key, value=value)
