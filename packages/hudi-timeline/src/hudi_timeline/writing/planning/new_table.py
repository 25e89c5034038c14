"""hoodie.properties of a new table, from the first write's options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TypeVar

from hudi_format.errors import (
    ConcurrentWriterError,
    ConflictingOptionError,
    NotAHudiTableError,
    OptionError,
    UnknownPartitionError,
)
from hudi_format.keygen.key_generator import KeySpec
from hudi_format.keygen.timestamp_based import STORED
from hudi_format.merge.user_merger import MERGE, PAYLOAD
from hudi_format.model import DATA_BEFORE_AFTER
from hudi_format.storage.protocol import Storage
from hudi_index.bucket import BucketIndex
from hudi_index.lookup import GLOBAL_KINDS
from hudi_timeline import table_config
from hudi_timeline.file_system_view import bucket_settings
from hudi_timeline.options import WriteConfig
from hudi_timeline.options.table_options import CDC_ENABLED, CDC_MODE, TABLE_NAME
from hudi_timeline.table_config import TableConfig
from hudi_timeline.table_version import WRITE_VERSION

T = TypeVar("T")
_TRIES = 5


def table_properties(
    config: WriteConfig,
    key_spec: KeySpec,
    ordering_field: str | None,
    storage: Storage,
    index: str | None = None,
    bucket: BucketIndex | None = None,
) -> dict[str, str]:
    """Properties of a new table; defaults not named here are `table_config`'s.

    Args:
        index: that the first write uses; one within partitions need not be remembered.
        bucket: its settings, where it is BUCKET.

    Raises:
        OptionError: no table name.
        NotAHudiTableError: a path among the files of another table's timeline.
        ConflictingOptionError: a logging mode of change data capture, which is not asked for.
    """
    if table_config.META_FOLDER in storage.uri.split("/"):
        raise NotAHudiTableError(
            f"the path is inside of {table_config.META_FOLDER}, where a table keeps its own files",
            table=storage.uri,
            remedy="give a path outside of other tables; nothing was written.",
        )
    if not config.table_name:
        raise OptionError(
            "the table does not exist yet and has no name",
            table=storage.uri,
            remedy=f"set {TABLE_NAME}.",
            option=TABLE_NAME,
        )
    table_type = (config.table_type or "COPY_ON_WRITE").upper()
    out = {
        table_config.NAME: config.table_name,
        table_config.DATABASE: config.database or "",
        table_config.TYPE: table_type,
        table_config.PARTITION_FIELDS: ",".join(key_spec.partition_fields),
        table_config.KEYGEN_CLASS: key_spec.class_name,
        table_config.POPULATE_META_FIELDS: str(config.populate_meta_fields).lower(),
        table_config.DROP_PARTITION_COLUMNS: str(config.drop_partition_columns).lower(),
        table_config.HIVE_STYLE: str(key_spec.hive_style).lower(),
        table_config.URL_ENCODE: str(key_spec.url_encode).lower(),
    }
    if not key_spec.auto:
        out[table_config.RECORD_KEY_FIELDS] = ",".join(key_spec.key_fields)
    if key_spec.kind == "TIMESTAMP":  # not for a custom generator's dates, as Apache Hudi
        out |= {k: v for k, v in config.raw.items() if k in STORED}
    if ordering_field:
        out[WRITE_VERSION.ordering_key] = ordering_field
    if config.merge:
        # As a payload no JVM has: where Apache Hudi would merge, in logs or in a write, it fails by that name.
        out[MERGE], out[table_config.PAYLOAD_CLASS] = config.merge, PAYLOAD
    if config.payload_class:
        out[table_config.PAYLOAD_CLASS] = config.payload_class
    if index in GLOBAL_KINDS:
        out[table_config.INDEX] = index
    if bucket is not None:
        out |= bucket_settings.properties(bucket)
    if config.table_timezone:
        out[table_config.TIMEZONE] = config.table_timezone
    if config.cdc_enabled:
        out[table_config.CDC_ENABLED] = "true"
        out[table_config.CDC_MODE] = config.cdc_mode or DATA_BEFORE_AFTER
    elif config.cdc_mode:
        raise ConflictingOptionError(
            f"{CDC_MODE}={config.cdc_mode} is given for a table that does not log changes",
            table=storage.uri,
            remedy=f"set {CDC_ENABLED}=true, or omit the mode.",
            option=CDC_MODE,
        )
    return out


def begin_on(
    table: TableConfig | None,
    make: Callable[[], tuple[TableConfig, bool]],
    begin: Callable[[TableConfig], T],
    unmake: Callable[[], None],
) -> tuple[T, TableConfig, bool]:
    """A write that is begun on a table, the table, and whether it was made for this write.

    A first write that fails removes the table that it made, under the lock.  Who waited for that lock meanwhile makes
    one of its own.

    Args:
        table: that the write was planned for; None for a new one.
        make: makes the new table, or loads that of another first write; says whether it made it.
        unmake: removes what `make` made, where the write cannot begin.

    Raises:
        ConcurrentWriterError: the table was removed since the write was planned for it.
    """
    for left in reversed(range(_TRIES)):
        found, made = (table, False) if table is not None else make()
        try:
            return begin(found), found, made
        except NotAHudiTableError as e:
            if table is None and left:
                continue
            raise ConcurrentWriterError(
                "the table was removed since this write was planned: by a first write that failed, or by hand",
                table=e.table,
                remedy="run the write again: it makes the table where there is none.",
                running=True,
            ) from e
        except BaseException:
            if made:
                unmake()
            raise
    raise AssertionError("the last try returns or raises")


# Which partitions a write replaces or deletes, by the names, patterns and rows that it was given.
#
# Source: Apache Hudi 0.15.0, tried: only `*` (also written `%2A`) is a wildcard; given names count, and the rows
# only where no names are given; a name that is not there is no error, and stands in the commit with no files.
# Otherwise than there a name that is a partition's is that partition alone: the value `*` has the path `%2A`.


@dataclass(frozen=True, slots=True)
class PartitionsToDelete:
    """Partitions to delete.

    Attributes:
        found: partitions of the table, sorted.
        unknown: names and patterns that no partition of the table answers to, as given.
    """

    found: tuple[str, ...]
    unknown: tuple[str, ...] = ()

    @property
    def listed(self) -> tuple[str, ...]:
        """Partitions that Apache Hudi lists in the commit, unknown plain names included."""
        return tuple(sorted({*self.found, *(n for n in self.unknown if "*" not in n)}))

    def warnings(self) -> tuple[str, ...]:
        if not self.unknown:
            return ()
        names = ", ".join(self.unknown[:5]) + (" ..." if len(self.unknown) > 5 else "")
        verb = "is no partition" if len(self.unknown) == 1 else "are no partitions"
        return (f"{names} {verb} of the table: nothing was deleted there",)


def choose(names: Sequence[str], of_rows: Iterable[str], existing: Iterable[str]) -> PartitionsToDelete:
    """The partitions of names, patterns or rows.

    Args:
        names: names and patterns of the user's.
        of_rows: partitions that the rows fall into; they count where no names are given.
        existing: the table's.
    """
    there = sorted(existing)
    found: set[str] = set()
    unknown: list[str] = []
    for name in names or of_rows:
        pattern = name.replace("%2A", "*").strip("/") if names else name
        if names and (plain := name.strip("/")) in there:
            hits = [plain]
        elif names and "*" in pattern:
            # Only "*" is a wildcard; brackets and question marks stand for themselves.
            literal = pattern.replace("[", "[[]").replace("?", "[?]")
            hits = [p for p in there if fnmatchcase(p, literal)]
        else:
            hits = [p for p in there if p == pattern]
        found.update(hits)
        if not hits:
            unknown.append(pattern)
    return PartitionsToDelete(tuple(sorted(found)), tuple(unknown))


def require_all(chosen: PartitionsToDelete, existing: Iterable[str], *, table: str) -> None:
    """Refuse unknown partition names.

    Raises:
        UnknownPartitionError: the names, and those that were probably meant.
    """
    if not chosen.unknown:
        return
    near = get_close_matches(chosen.unknown[0], sorted(existing), n=3, cutoff=0.5)
    meant = f"did you mean {', '.join(near)}? " if near else ""
    raise UnknownPartitionError(
        f"{', '.join(chosen.unknown[:5])}: no such partition in the table",
        table=table,
        remedy=f"{meant}inspect.partitions() lists them; missing_ok=True ignores unknown names.",
        partitions=list(chosen.unknown),
    )
