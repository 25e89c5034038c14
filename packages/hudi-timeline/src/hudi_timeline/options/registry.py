"""Every option that a release of Apache Hudi knows, and how a name that none knows is answered."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from hudi_format.errors import ConflictingOptionError, InvalidOptionError, UnknownOptionError
from hudi_timeline.options import known_further, known_newer, known_outside, known_services, known_write
from hudi_timeline.options.option import OptionType, kind_of

# Keys of tools, engines and stores that travel in the same map.  Their names are not all known here, so any
# name below them is taken, unless it is nearly the name of a switch or a field: that is a slip.
OPEN_PREFIXES = (
    "hoodie.streamer.",
    "hoodie.deltastreamer.",
    "hoodie.multitable.",
    "hoodie.meta.sync.",
    "hoodie.datasource.hive_sync.",
    "hoodie.datasource.meta.sync.",
    "hoodie.gcp.",
    "hoodie.aws.",
    "hoodie.datahub.",
    "hoodie.snapshot.",
    "hoodie.metastore.",
    "hoodie.record.merge.property.",
    "hoodie.write.commit.callback.kafka.",
    "hoodie.write.commit.callback.pulsar.",
    "fs.",
    "spark.",
    "parquet.",
    "hadoop.",
)
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
    "primarykey": "hoodie.datasource.write.recordkey.field",
    "precombinefield": "hoodie.datasource.write.precombine.field",
    "payloadclass": "hoodie.datasource.write.payload.class",
    "type": "hoodie.datasource.write.table.type",
    "timestampasof": "as.of.instant",
    "versionasof": "as.of.instant",
    "startingversion": "hoodie.datasource.read.begin.instanttime",
    "startingtimestamp": "hoodie.datasource.read.begin.instanttime",
    "endingversion": "hoodie.datasource.read.end.instanttime",
    "endingtimestamp": "hoodie.datasource.read.end.instanttime",
    "partitionoverwritemode": "hoodie.datasource.write.operation=insert_overwrite",
    "replacewhere": "hoodie.datasource.write.operation=insert_overwrite",
    "codec": "hoodie.parquet.compression.codec",
}
# Other name -> main name, beside the alternatives that stand in the tables.  A property that the table's own
# file keeps is, as an option, another name of the option that it is made from.
OTHER_NAMES = {
    "hoodie.hash.index.bucket.num": "hoodie.bucket.index.num.buckets",
    "hoodie.datasource.write.indexkey.field": "hoodie.bucket.index.hash.field",
    "hoodie.datasource.write.table.name": "hoodie.table.name",
    "hoodie.table.type": "hoodie.datasource.write.table.type",
    "hoodie.table.recordkey.fields": "hoodie.datasource.write.recordkey.field",
    "hoodie.table.partition.fields": "hoodie.datasource.write.partitionpath.field",
    "hoodie.table.precombine.field": "hoodie.datasource.write.precombine.field",
    "hoodie.table.ordering.fields": "hoodie.datasource.write.precombine.field",
    "hoodie.table.keygenerator.class": "hoodie.datasource.write.keygenerator.class",
    "hoodie.table.keygenerator.type": "hoodie.datasource.write.keygenerator.type",
    "hoodie.compaction.payload.class": "hoodie.datasource.write.payload.class",
    "hoodie.base.file.format": "hoodie.table.base.file.format",
}
_SECRET = ("password", "secret", "api.key", "access.key", "token", "credential")
# How near a name below an open prefix may come to a heeded option before it counts as a slip of the pen.
_SLIP = 0.92


@dataclass(frozen=True, slots=True)
class KnownOption:
    """An option of Apache Hudi: main name, default text (None for none), other names, group, and kind."""

    key: str
    default: str | None
    alternatives: tuple[str, ...]
    group: str
    kind: OptionType


@dataclass(frozen=True, slots=True)
class ParsedOptions:
    """Options that were given.

    Attributes:
        text: by main name; class names with their package.
        parsed: by main name; names below an open prefix are not in it.
        given_as: the name that was given, by main name.
        extra: what goes into the commit's metadata, as it was given.
    """

    text: dict[str, str]
    parsed: dict[str, object]
    given_as: dict[str, str]
    extra: dict[str, str]


@cache
def known_options() -> Mapping[str, KnownOption]:
    """All options by main name."""
    found: dict[str, tuple[str | None, list[str], str]] = {}
    group = ""
    for module in (known_write, known_services, known_outside, known_newer, known_further):
        for line in module.TEXT.splitlines():
            if line.startswith("#"):
                group = line.removeprefix("# ")
                continue
            key, default, *others = line.split(" ")
            names = others[0].split(",") if others else []
            found.setdefault(key, (None if default == "-" else default, names, group))
    found["as.of.instant"] = (None, [], "Spark datasource read")
    for other, main in OTHER_NAMES.items():
        found[main][1].append(other)
    second = {name for _, names, _ in found.values() for name in names}
    return {
        key: KnownOption(key, default, tuple(dict.fromkeys(names)), group, kind_of(key, default))
        for key, (default, names, group) in found.items()
        if key not in second
    }


@cache
def _main_names() -> Mapping[str, str]:
    """Main names by every accepted name."""
    names = {other: option.key for option in known_options().values() for other in option.alternatives}
    return {**names, **{key: key for key in known_options()}, **{key: key for key in SPARK_OPTIONS}}


@cache
def _lower_names() -> Mapping[str, str]:
    return {name.lower(): main for name, main in _main_names().items()}


def main_name(key: str) -> str | None:
    """The main name of an option, itself for a name below an open prefix, None where none knows it.

    Upper and lower case are the same, as in Spark's own option maps.
    """
    found = _main_names().get(key) or _lower_names().get(key.lower())
    if found is not None:
        return found
    if not key.startswith(OPEN_PREFIXES):
        return None
    near = nearest(key, cutoff=_SLIP)
    return None if near is not None and _heeded(near) else key


def _heeded(key: str) -> bool:
    """Whether a slip in its name would lose an effect: the switches, and what is named in `kinds`."""
    option = known_options().get(_main_names()[key])
    return option is not None and key.rpartition(".")[2] in (
        "enable",
        "enabled",
        "field",
        "fields",
        "class",
        "level",
    )


@lru_cache(maxsize=1024)
def nearest(key: str, *, cutoff: float = 0.6) -> str | None:
    """The known name that `key` was probably meant to be, or None."""
    lowered = key.strip().lower()
    names = _lower_to_known()
    if lowered in FOREIGN:
        return FOREIGN[lowered]
    if lowered in names:
        return names[lowered]
    close = difflib.get_close_matches(lowered, list(names), n=1, cutoff=max(cutoff, 0.9))
    if close:
        return names[close[0]]
    if cutoff > 0.6:
        return None
    # A wrong or missing beginning: the longest end that is also the end of a known name.
    parts = lowered.split(".")
    for start in range(len(parts)):
        tail = "." + ".".join(parts[start:])
        ends = [n for low, n in names.items() if low.endswith(tail)]
        if ends and (len(parts) - start > 1 or len(parts) == 1):
            return min(ends, key=len)
    close = difflib.get_close_matches(lowered, list(names), n=1, cutoff=cutoff)
    return names[close[0]] if close else None


@cache
def _lower_to_known() -> Mapping[str, str]:
    return {name.lower(): name for name in _main_names()}


def canonical(options: Mapping[str, str]) -> ParsedOptions:
    """The options under their main names, parsed.

    Raises:
        UnknownOptionError: a name that no release knows, with the nearest one.
        InvalidOptionError: a value that its option does not take.
        ConflictingOptionError: two names of one option with different values.
    """
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
    key = "hoodie.datasource.write.commitmeta.key.prefix"
    return next((str(v) for k, v in options.items() if k.lower() == key), "_")


def _add(given: ParsedOptions, main: str, key: str, text: str) -> None:
    option = known_options().get(main)
    value: object = text
    if option is not None:
        value = parse(option, text, key)
        given.parsed.setdefault(main, value)
    if main not in given.text:
        is_class = option is not None and option.kind.allowed.startswith("the name of a Java class")
        given.text[main] = str(value) if is_class else text
        given.given_as[main] = key
    elif (given.parsed[main] if option is not None else given.text[main]) != value:
        other, first = given.given_as[main], given.text[main]
        raise ConflictingOptionError(
            f"{other}={shown(other, first)} and {key}={shown(key, text)} are two names of one option",
            remedy="give it once.",
            option=main,
        )


def parse(option: KnownOption, text: str, key: str = "") -> object:
    """The value of an option's text.

    Raises:
        InvalidOptionError: naming option, value, and what the option takes.
    """
    try:
        return option.kind.parse(text)
    except ValueError:
        name = key or option.key
        raise InvalidOptionError(
            f"{name}={shown(name, text)!r} is not allowed; it takes {option.kind.allowed}",
            remedy="leave it out" + (f" for the default, {option.default}." if option.default else "."),
            option=name,
            value=shown(name, text),
        ) from None


def shown(key: str, value: str) -> str:
    """A value as it may stand in a message."""
    return "***" if any(word in key.lower() for word in _SECRET) else value


def names_of(keys: Iterable[str]) -> str:
    return ", ".join(sorted(keys))
