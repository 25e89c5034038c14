"""Every option that a release of Apache Hudi knows, and how a name that none knows is answered."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from hudi_format.config import known_newer, known_outside, known_services, known_write
from hudi_format.errors import ConflictingOptionError, UnknownOptionError

# Keys of tools, engines and stores that travel in the same map; any name below them is taken.
OPEN_PREFIXES = (
    "hoodie.streamer.",
    "hoodie.deltastreamer.",
    "hoodie.multitable.",
    "hoodie.meta.sync.",
    "hoodie.datasource.hive_sync.",
    "hoodie.gcp.",
    "hoodie.aws.",
    "hoodie.snapshot.",
    "hoodie.index.hbase.",
    "hoodie.hbase.",
    "hoodie.metastore.",
    "hoodie.record.merge.property.",
    "hoodie.payload.",
    "hoodie.kafka.",
    "fs.",
    "spark.",
    "parquet.",
    "hadoop.",
)
# Options of Spark's readers and writers that scripts set and that mean nothing to a Hudi table, and our own.
OTHER_KEYS = (
    "path",
    "paths",
    "mergeSchema",
    "compression",
    "inferSchema",
    "header",
    "maxRecordsPerFile",
    "overwriteSchema",
    "parquet.compression.codec.zstd.level",
    "hudi.read.columns",
    "hudi.read.filter",
    "hudi.write.staging.limit.bytes",
)
OLD_NAMES = {
    "hoodie.datasource.view.type": "hoodie.datasource.query.type",
    "hoodie.datasource.write.storage.type": "hoodie.datasource.write.table.type",
    "hoodie.hash.index.bucket.num": "hoodie.bucket.index.num.buckets",
    "hoodie.datasource.write.indexkey.field": "hoodie.bucket.index.hash.field",
    "hoodie.table.ordering.fields": "hoodie.datasource.write.precombine.field",
    "hoodie.payload.ordering.field": "hoodie.payload.ordering.field",
    "hoodie.clean.failed.writes.policy": "hoodie.cleaner.policy.failed.writes",
    "hoodie.datasource.write.table.name": "hoodie.table.name",
}
FURTHER_KEYS = (
    "hoodie.static.overwrite.partition.paths",
    "hoodie.bulkinsert.overwrite.operation.type",
    "hoodie.datasource.write.partitions.to.delete",
    "hoodie.datasource.read.incr.skip_compact",
    "hoodie.datasource.read.incr.skip_cluster",
    "hoodie.fileIndex.dataSkippingFailureMode",
    "hoodie.payload.delete.field",
    "hoodie.payload.delete.marker",
    "hoodie.payload.event.time.field",
    "hoodie.payload.ordering.field",
    "hoodie.write.lock.filesystem.expire",
    "hoodie.write.lock.filesystem.path",
    "hoodie.file.group.reader.enabled",
    "hoodie.datasource.read.incr.table.version",
)


@dataclass(frozen=True, slots=True)
class KnownOption:
    """An option of Apache Hudi: its main name, default text (None for none) and other names."""

    key: str
    default: str | None
    alternatives: tuple[str, ...] = ()


@cache
def known_options() -> Mapping[str, KnownOption]:
    """All options by main name."""
    out: dict[str, KnownOption] = {}
    for module in (known_write, known_services, known_outside, known_newer):
        for line in module.TEXT.splitlines():
            if line.startswith("#"):
                continue
            key, default, *others = line.split(" ")
            names = tuple(others[0].split(",")) if others else ()
            out[key] = KnownOption(key, None if default == "-" else default, names)
    for key in FURTHER_KEYS:
        out.setdefault(key, KnownOption(key, None))
    return out


@cache
def _main_names() -> Mapping[str, str]:
    """Main names by every accepted name."""
    names: dict[str, str] = {}
    for option in known_options().values():
        for other in option.alternatives:
            names.setdefault(other, option.key)
    names.update({option: option for option in known_options()})
    names.update(OLD_NAMES)
    return names


def main_name(key: str) -> str | None:
    """The main name of an option, itself for an open prefix or a foreign key, None where none knows it."""
    found = _main_names().get(key)
    if found is not None:
        return found
    if key in OTHER_KEYS or key == "as.of.instant" or key.startswith(OPEN_PREFIXES):
        return key
    lowered = key.lower()
    # Spark hands on options in lower case.
    return _lower_names().get(lowered)


@cache
def _lower_names() -> Mapping[str, str]:
    return {**{k.lower(): v for k, v in _main_names().items()}, **{k.lower(): k for k in OTHER_KEYS}}


def nearest(key: str) -> str | None:
    """The known name that `key` was probably meant to be, or None."""
    names = [*_main_names(), *OTHER_KEYS, "as.of.instant"]
    found = difflib.get_close_matches(key.lower(), [n.lower() for n in names], n=1, cutoff=0.6)
    if found:
        return next(n for n in names if n.lower() == found[0])
    tail = key.lower().removeprefix("hoodie.").removeprefix("datasource.").removeprefix("write.")
    ends = [n for n in names if n.lower().endswith("." + tail)]
    return min(ends, key=len) if ends else None


def canonical(options: Mapping[str, str], metadata_prefix: str = "_") -> tuple[dict[str, str], dict[str, str]]:
    """The options under their main names, and those that only go into the commit's metadata.

    Raises:
        UnknownOptionError: a name that no release knows, with the nearest one.
        ConflictingOptionError: two names of one option with different values.
    """
    out: dict[str, str] = {}
    given_as: dict[str, str] = {}
    extra: dict[str, str] = {}
    for key, value in options.items():
        main = main_name(key)
        if main is None:
            if metadata_prefix and key.startswith(metadata_prefix):
                extra[key] = value
                continue
            near = nearest(key)
            raise UnknownOptionError(
                f"no release of Apache Hudi knows the option {key!r}",
                remedy=f"did you mean {near!r}?" if near else "remove it.",
                option=key,
                nearest=near or "",
            )
        if main in out and out[main] != value:
            raise ConflictingOptionError(
                f"{given_as[main]}={out[main]} and {key}={value} are two names of one option",
                remedy="give it once.",
                option=main,
            )
        out[main] = value
        given_as[main] = key
    return out, extra


def names_of(keys: Iterable[str]) -> str:
    return ", ".join(sorted(keys))
