"""All option keys of Apache Hudi; suggestions for unknown ones."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from pathlib import Path

from hudi_format.errors import ConflictingOptionError, InvalidOptionError, UnknownOptionError
from hudi_timeline.options import (
    file_options,
    read_options,
    service_options,
    table_options,
    transaction_options,
    unsupported_options,
    write_options,
)
from hudi_timeline.options.config_key import ConfigKey
from hudi_timeline.options.option_types import BOOLEAN, TEXT, OptionType, choice, type_of_default, whole
from hudi_timeline.options.write_options import METADATA_PREFIX

# Names that others make up or read, and why, `*` for what they choose. Any such name is taken, unless it is nearly one
# that is known. The first that fits counts.
OPEN_NAMES = {
    "fs.*": "settings of Hadoop's file systems",
    "hadoop.*": "settings of Hadoop",
    "spark.*": "settings of Spark",
    "parquet.*": "settings of Parquet's own writer",
    f"{file_options.INDEX_ARGUMENTS}*": "arguments of an index of one's own, whose names each class makes up",
    "hoodie.record.merge.property.*": "arguments of payloads and mergers, whose names each class makes up",
    **{
        f"hoodie.{streamer}.{name}": reason
        for streamer in ("streamer", "deltastreamer")
        for name, reason in {
            "ingestion.*.*.configFile": "the file of one table's options, below its database and name",
            "jdbc.extra.options.*": "options of Spark's JDBC reader, or of the driver",
            "transformer.sql.file.*": "the script of one of several transformers, below the id that the user gives it",
            "transformer.sql.*": "the query of one of several transformers, below the id that the user gives it",
        }.items()
    },
}
# Options of Spark's own readers and writers that scripts set, and that change nothing in a Hudi table.
SPARK_OPTIONS = frozenset(
    {
        "path",
        "paths",
        "mergeSchema",
        "compression",
        "inferSchema",
        "header",
        "maxRecordsPerFile",
        "overwriteSchema",
    }
)
# Names from elsewhere that people try, and what they want here.
FOREIGN = {
    "primarykey": table_options.RECORD_KEY,
    "precombinefield": table_options.PRECOMBINE,
    "payloadclass": table_options.PAYLOAD,
    "type": table_options.TABLE_TYPE,
    "timestampasof": read_options.AS_OF,
    "versionasof": read_options.AS_OF,
    "startingversion": read_options.BEGIN,
    "startingtimestamp": read_options.BEGIN,
    "endingversion": read_options.END,
    "endingtimestamp": read_options.END,
    "partitionoverwritemode": f"{write_options.OPERATION}=insert_overwrite",
    "replacewhere": f"{write_options.OPERATION}=insert_overwrite",
    "codec": file_options.CODEC,
}
DECLARED = (
    table_options,
    write_options,
    file_options,
    transaction_options,
    service_options,
    read_options,
)
DATA_FILE = Path(__file__).with_name("known_options.tsv")
_SECRET = ("password", "secret", "api.key", "access.key", "token", "credential")
# How near a name that others make up may come to a known one before it counts as a slip of the pen.
_SLIP = 0.92
_COMMON = "hoodie."


@dataclass(frozen=True, slots=True)
class ParsedOptions:
    """Options of a call, parsed.

    Attributes:
        text: by main name; class names with their package.
        parsed: by main name; names that others make up are not in it.
        given_as: the name that was given, by main name.
        extra: what goes into the commit's metadata, as it was given.
    """

    text: dict[str, str]
    parsed: dict[str, object]
    given_as: dict[str, str]
    extra: dict[str, str]


@cache
def declared_options() -> Mapping[str, ConfigKey]:
    """Options implemented or refused by this version, by main key."""
    keys = [key for module in DECLARED for key in vars(module).values() if isinstance(key, ConfigKey)]
    return {str(key): key for key in (*keys, *unsupported_options.UNSUPPORTED)}


@cache
def _lines() -> Mapping[str, tuple[str, list[str]]]:
    """Options that are only known: group and further columns by main key."""
    found: dict[str, tuple[str, list[str]]] = {}
    group = ""
    for line in DATA_FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            group = line[2:]
        elif not line.startswith("##") and line:
            key, *columns = line.split("\t")
            found[key] = group, columns
    return found


@cache
def option_of(main: str) -> ConfigKey | None:
    """Option by its main key."""
    declared = declared_options().get(main)
    if declared is not None or main not in _lines():
        return declared
    group, columns = _lines()[main]
    default, since, names, allowed = (*columns, "", "", "")[:4]
    default_text = None if default == "-" else default
    return ConfigKey(
        main,
        _type_of(allowed) if allowed else type_of_default(default_text),
        default_text,
        since=since,
        alternatives=tuple(names.split(",")) if names else (),
        group=group,
    )


def _type_of(allowed: str) -> OptionType:
    """Option type named in the last column of the file."""
    known = {"bool": BOOLEAN, "text": TEXT, ">=0": whole(0)}
    return known.get(allowed) or choice(*allowed.split("|"))


@cache
def known_options() -> Mapping[str, ConfigKey]:
    """All options by main name."""
    found = {main: option_of(main) for main in (*declared_options(), *_lines())}
    return {main: option for main, option in found.items() if option is not None}


@cache
def _main_names() -> Mapping[str, str]:
    """Main key of every accepted key."""
    names = {other: main for main, key in declared_options().items() for other in key.alternatives}
    for main, (_, columns) in _lines().items():
        if len(columns) > 2 and columns[2]:
            names.update(dict.fromkeys(columns[2].split(","), main))
    mains = (*declared_options(), *_lines(), *SPARK_OPTIONS)
    return {**names, **{main: main for main in mains}}


@lru_cache(maxsize=1024)
def main_name(key: str) -> str | None:
    """Main key of an option, itself if others make up its name, None if unknown.

    Upper and lower case are the same, as in Spark's own option maps.
    """
    mains = _main_names()
    name = key if key in mains else _lower_to_known().get(key.lower())
    if name is not None:
        return mains[name]
    pattern = next((p for p in OPEN_NAMES if fnmatchcase(key, p)), None)
    if pattern is None:
        return None
    prefix = pattern.partition("*")[0].lower()
    below = [name for name in _lower_to_known() if name.startswith(prefix)]
    return None if difflib.get_close_matches(key.lower(), below, n=1, cutoff=_SLIP) else key


def text_of(options: Mapping[str, str], option: str) -> str | None:
    """Text of an option under any of its names, None if not given."""
    return next((text for key, text in options.items() if main_name(key) == option), None)


@lru_cache(maxsize=1024)
def nearest(key: str) -> str | None:
    """The most similar known key, or None."""
    lowered = key.strip().lower()
    names = _lower_to_known()
    if lowered in FOREIGN:
        return FOREIGN[lowered]
    if lowered in names:
        return names[lowered]
    close = difflib.get_close_matches(lowered, list(names), n=1, cutoff=0.9)
    if close:
        return names[close[0]]
    # A wrong or missing beginning: the longest end that is also the end of a known name.
    parts = lowered.split(".")
    for start in range(len(parts)):
        tail = "." + ".".join(parts[start:])
        ends = [n for low, n in names.items() if low.endswith(tail)]
        if ends and (len(parts) - start > 1 or len(parts) == 1):
            return min(ends, key=len)
    # The word that nearly all of them begin with makes none of them like another.
    of = {low.removeprefix(_COMMON): n for low, n in names.items()}
    close = difflib.get_close_matches(lowered.removeprefix(_COMMON), list(of), n=1, cutoff=0.6)
    return of[close[0]] if close else None


@cache
def _lower_to_known() -> Mapping[str, str]:
    return {name.lower(): name for name in _main_names()}


def canonical(options: Mapping[str, str]) -> ParsedOptions:
    """Parsed options under their main keys.

    Raises:
        UnknownOptionError: a name that no release knows, with the nearest one.
        InvalidOptionError: a value that its option does not take.
        ConflictingOptionError: two names of one option with different values.
    """
    given = tuple(options.items())
    if any(not isinstance(text, str) or _is_secret(key) for key, text in given):
        return _canonical(options)
    known = _known(given)
    return ParsedOptions(dict(known.text), dict(known.parsed), dict(known.given_as), dict(known.extra))


# Each step of a write asks for some of the same options anew.
@lru_cache(maxsize=64)
def _known(options: tuple[tuple[str, str], ...]) -> ParsedOptions:
    return _canonical(dict(options))


def _canonical(options: Mapping[str, str]) -> ParsedOptions:
    prefix = _metadata_prefix(options)
    given = ParsedOptions({}, {}, {}, {})
    for key, text in options.items():
        if not isinstance(text, str):
            raise InvalidOptionError(
                f"{key} is a {type(text).__name__}, not text",
                remedy="give option values as text.",
                option=key,
            )
        main = main_name(key)
        if main is None:
            if key.startswith(prefix) and not key.lower().startswith(("_hoodie", "hoodie")):
                given.extra[key] = text
                continue
            near = nearest(key)
            raise UnknownOptionError(
                f"no release of Apache Hudi knows the option {key!r}",
                remedy=f"did you mean {near}?" if near else "remove it.",
                option=key,
                nearest=near or "",
            )
        _add(given, main, key, text)
    return given


def _metadata_prefix(options: Mapping[str, str]) -> str:
    given = (text for key, text in options.items() if key.lower() == METADATA_PREFIX)
    return str(next(given, METADATA_PREFIX.default))


def _add(given: ParsedOptions, main: str, key: str, text: str) -> None:
    option = option_of(main)
    value: object = text
    if option is not None:
        value = parse(option, text, key)
        given.parsed.setdefault(main, value)
    if main not in given.text:
        is_class = option is not None and option.type.allowed.startswith("the name of a Java class")
        given.text[main] = str(value) if is_class else text
        given.given_as[main] = key
    elif (given.parsed[main] if option is not None else given.text[main]) != value:
        other, first = given.given_as[main], given.text[main]
        raise ConflictingOptionError(
            f"{other}={shown(other, first)} and {key}={shown(key, text)} are two names of one option",
            remedy="give it once.",
            option=main,
        )


def parse(option: ConfigKey, text: str, key: str = "") -> object:
    """Value of an option's text.

    Raises:
        InvalidOptionError: naming option, value, and what the option takes.
    """
    try:
        return option.type.parse(text)
    except ValueError:
        name = key or str(option)
        raise InvalidOptionError(
            f"{name}={shown(name, text)!r} is not allowed; it takes {option.type.allowed}",
            remedy="leave it out" + (f" for the default, {option.default}." if option.default else "."),
            option=name,
            value=shown(name, text),
        ) from None


def shown(key: str, value: str) -> str:
    """A value in a form safe for messages."""
    return "***" if _is_secret(key) else value


@lru_cache(maxsize=1024)
def _is_secret(key: str) -> bool:
    """Whether an option's value is shown to nobody, and kept nowhere."""
    return any(word in key.lower() for word in _SECRET)
