"""Record keys of a write, and their compatibility with the table's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.types as pt

from hudi_format.arrow.arrays import is_text
from hudi_format.errors import ConflictingOptionError, MissingColumnError, MissingFileError, SchemaError
from hudi_format.keygen.key_generator import KEY_OPTION, SIMPLE, KeySpec
from hudi_format.keygen.partition_path import read_otherwise, split_values
from hudi_format.keygen.timestamp_based import CONSISTENT
from hudi_format.merge import payloads
from hudi_format.merge.ordering import check_comparable
from hudi_format.merge.payloads import MergeRule
from hudi_format.model import BaseFile, WriteStat
from hudi_format.parquet.footer import MAX_KEY, MIN_KEY, read_footer
from hudi_format.schema.meta_fields import COMMIT_SEQNO, FILE_NAME, PARTITION_PATH, RECORD_KEY
from hudi_format.storage.protocol import Storage
from hudi_index.lookup import BLOOM, GLOBAL_BLOOM, LookupCount
from hudi_timeline.file_system_view.snapshot import TableSnapshot
from hudi_timeline.options import WriteConfig
from hudi_timeline.options.table_options import POPULATE_META_FIELDS as POPULATE_META
from hudi_timeline.options.table_options import URL_ENCODE
from hudi_timeline.options.write_options import (
    COMBINE_BEFORE_INSERT,
    DROP_DUPLICATES,
    LOOKS_UP,
    WRITES_NO_ROWS,
)
from hudi_timeline.table_config import DROP_PARTITION_COLUMNS, POPULATE_META_FIELDS, TableConfig

# Files whose keys are looked at for the form of timestamps.
_SAMPLE = 16
_TEXT = re.compile(r"[0-9]{4,}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]+")
_NUMBER = re.compile(r"-?[0-9]+")
_NUMBERS = (pt.is_integer, pt.is_floating, pt.is_decimal)
_TEXTS = (pt.is_string, pt.is_large_string, pt.is_string_view, pt.is_dictionary, pt.is_null)


def key_spec_of(config: WriteConfig, table: TableConfig | None, *, no_rows: bool = False) -> KeySpec:
    """Key generator of a write: the table's, or a new table's options.

    Args:
        no_rows: nothing is to be keyed; what only partition paths need may be missing.

    Raises:
        UnsupportedError, OptionError: as `KeySpec.from_class`.
    """
    if table is not None:
        return table.record_key_spec() if no_rows else table.key_spec(config.raw)
    return KeySpec.from_class(
        config.keygen_class,
        key_fields=config.record_key_fields or (),
        partition_fields=config.partition_fields or (),
        type_name=config.keygen_type,
        hive_style=bool(config.hive_style),
        url_encode=bool(config.url_encode),
        options=config.raw,
    )


def with_made_up_keys(
    config: WriteConfig, spec: KeySpec, names: Sequence[str], storage: Storage
) -> tuple[WriteConfig, bool]:
    """Options with generated keys, and whether rows come with stored keys.

    As in Apache Hudi 0.15: without an operation rows are added by bulk_insert; upsert and delete work on rows that
    were read from the table with their meta columns, and an upsert of others adds them.

    Args:
        names: columns of the data; none where there is no data.

    Raises:
        ConflictingOptionError: an option that looks for equal keys.
        MissingColumnError: rows to delete that do not say their key.
    """
    if not spec.auto:
        return config, False
    for option, asked, wrong in (
        (COMBINE_BEFORE_INSERT, config.combine_before_insert, "true"),
        (DROP_DUPLICATES, config.drop_duplicates, "true"),
        (POPULATE_META, not config.populate_meta_fields, "false"),
    ):
        if asked:
            raise ConflictingOptionError(
                f"{option}={wrong} does not go with generated record keys, which are all different",
                table=storage.uri,
                remedy=f"omit it, or set {KEY_OPTION} to the columns that identify a record.",
                option=option,
            )
    stored = RECORD_KEY in names and PARTITION_PATH in names
    operation = config.operation
    if not config.operation_given:
        operation = "insert" if RECORD_KEY in names else "bulk_insert"
    if operation == "delete" and not stored:
        raise MissingColumnError(
            f"the table's record keys are generated, so rows to delete need {RECORD_KEY} and "
            f"{PARTITION_PATH}",
            table=storage.uri,
            remedy="read the rows from the table with their meta columns, or delete by a filter.",
            column=RECORD_KEY,
        )
    return replace(config, operation=operation, combine_before_upsert=False), stored and operation in LOOKS_UP


def for_operation(spec: KeySpec, config: WriteConfig) -> KeySpec:
    """Key generator for the rows of an operation.

    Rows whose partition value would be read back as null are refused where they are to be stored; those to delete may
    be there already.
    """
    stores = config.operation not in WRITES_NO_ROWS
    return replace(spec, refuses_null_texts=stores and config.null_texts == "refuse")


def stated_columns(config: WriteConfig, *, logs: bool) -> tuple[str, ...]:
    """Meta columns that say which records the rows of a prepped operation were read as.

    Args:
        logs: whether records may stand in log files, where the version tells a record from an older one.

    Returns:
        Their names; none for other operations.
    """
    if not config.prepped or config.operation not in LOOKS_UP:
        return ()
    return (FILE_NAME, COMMIT_SEQNO) if logs else (FILE_NAME,)


def require_stored(names: Sequence[str], operation: str, storage: Storage) -> None:
    """Refuse rows of a prepped operation without location columns.

    Raises:
        MissingColumnError: a meta column that the operation goes by.
    """
    wanted = (RECORD_KEY, PARTITION_PATH, *((FILE_NAME,) if operation in LOOKS_UP else ()))
    for name in wanted:
        if name not in names:
            raise MissingColumnError(
                f"the operation {operation}_prepped needs {', '.join(wanted)}, but the rows have no {name}",
                table=storage.uri,
                remedy="read the rows from the table with `meta_columns=True` (in new ones the file name is null), "
                f"or use the operation {operation}.",
                column=name,
            )


def check_partition_columns(spec: KeySpec, schema: pa.Schema, storage: Storage) -> None:
    """Refuse partition columns whose values cannot be read back from a path.

    Raises:
        SchemaError: a binary column, or one of lists, maps or structs.
    """
    for name in spec.partition_fields:
        kind = type_of(schema, name)
        if kind is not None and pt.is_nested(kind):
            raise SchemaError(
                f"partition column {name!r} has type {kind}, of which no partition path can be made",
                table=storage.uri,
                remedy="partition by a column of text, numbers, dates or timestamps"
                + (
                    f", such as {name}.{kind.field(0).name}."
                    if pt.is_struct(kind) and kind.num_fields
                    else "."
                ),
                column=name,
            )
        if kind is not None and (
            pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_fixed_size_binary(kind)
        ):
            raise SchemaError(
                f"partition column {name!r} is binary: its bytes cannot be read back from a partition path",
                table=storage.uri,
                remedy="partition by another column, or by the bytes as text.",
                column=name,
            )


_SHOWN = 3


def about_path_values(spec: KeySpec, table: TableConfig, paths: Iterable[str]) -> Iterator[str]:
    """Warning of a write to these partitions, where snapshots read other values of them.

    Snapshots of copy-on-write tables take the values of partition columns from the path, in Apache Hudi and here; the
    files have the values themselves.  To refuse them would stop scripts that write such values with Apache Hudi.

    Source: Apache Hudi 0.15 by experiment (tests/interop/test_path_values.py).
    """
    by_path = table.table_type == "COPY_ON_WRITE" or table.drop_partition_columns
    if not by_path or spec.url_encode or any(kind != SIMPLE for kind in spec.field_kinds):
        return
    others = (
        read_otherwise(p, spec.partition_fields, hive_style=spec.hive_style) for p in sorted(set(paths))
    )
    found = list(dict.fromkeys(pair for pairs in others for pair in pairs))
    if not found:
        return
    shown = ", ".join(f"{value!r} as {read!r}" for value, read in found[:_SHOWN])
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    yield (
        f"values of {', '.join(spec.partition_fields)} are taken from the partition path by snapshots, as by those of "
        f"Apache Hudi, and read back in another form: {shown}{more}; tables made with {URL_ENCODE}=true have no such "
        "values"
    )


def about_unfound(
    spec: KeySpec, table: TableConfig, operation: str, stats: Iterable[WriteStat], given: Mapping[str, int]
) -> Iterator[str]:
    """Warning of a delete of rows that are not there, where reads give other values than files.

    Args:
        stats: of the files that it wrote.
        given: numbers of rows to delete, by the partition that was made for them.
    """
    dated = [f for f, kind in zip(spec.partition_fields, spec.field_kinds, strict=True) if kind != SIMPLE]
    if operation != "delete" or table.table_type != "COPY_ON_WRITE" or not dated:
        return
    rows, found = sum(given.values()), sum(s.num_deletes for s in stats)
    if found < rows:
        yield (
            f"{rows - found:,} of {rows:,} rows to delete were not found.  Of {', '.join(dated)} read() gives what the "
            "folders say, from which another partition is made; delete by a filter, or the rows of "
            'read_incremental("000", on_missing="full_scan"), which have the values of the files'
        )


def dropped_columns(config: WriteConfig, table: TableConfig | None, spec: KeySpec) -> frozenset[str]:
    """Partition columns kept only in the partition path."""
    if table is not None:  # whose partition fields a write without rows does not know
        return frozenset(table.partition_fields) if table.drop_partition_columns else frozenset()
    return frozenset(spec.partition_fields) if config.drop_partition_columns else frozenset()


def has_virtual_keys(
    config: WriteConfig, table: TableConfig | None, spec: KeySpec, index: str, storage: Storage
) -> bool:
    """Whether the table has virtual keys, computed from columns.

    Raises:
        ConflictingOptionError: a key generator that Apache Hudi refuses for it; an index that lives in the footers.
    """
    virtual = not (config.populate_meta_fields if table is None else table.populate_meta_fields)
    if not virtual:
        return False
    why = ""
    if spec.kind not in ("SIMPLE", "COMPLEX", "NON_PARTITION") or spec.auto:
        why = f"{spec.class_name.rpartition('.')[2]} does not go with it"
    elif index not in ("SIMPLE", "BUCKET"):
        why = f"the index {index} looks for keys in the files, which hold none then"
    if why:
        raise ConflictingOptionError(
            f"{POPULATE_META_FIELDS}=false: {why}", table=storage.uri,
            remedy="use SimpleKeyGenerator, ComplexKeyGenerator or NonpartitionedKeyGenerator, and the index SIMPLE or "
            "BUCKET.",
            option=POPULATE_META_FIELDS,
        )  # fmt: skip
    return True


def without(schema: pa.Schema, columns: frozenset[str]) -> pa.Schema:
    return pa.schema([f for f in schema if f.name not in columns]) if columns else schema


def check_dropped_columns(
    spec: KeySpec, ordering: str | None, schema: pa.Schema, dropped: frozenset[str], storage: Storage
) -> None:
    """Refuse to drop columns that are needed later.

    Args:
        schema: of the files, without the columns.

    Raises:
        ConflictingOptionError: a record key or ordering field among them, dates in a pattern, or no other column.
    """
    if not dropped:
        return
    needed = [n for n in (*spec.key_fields, ordering) if n in dropped]
    dates = [n for n, kind in zip(spec.partition_fields, spec.field_kinds, strict=True) if kind != SIMPLE]
    if needed:
        why = f"column {needed[0]!r} is needed in the files too"
    elif dates:
        why = f"the path does not give back the values of column {dates[0]!r}, which it holds as dates in a pattern"
    elif not len(schema):
        why = "the files would have no column"
    else:
        return
    raise ConflictingOptionError(
        f"{DROP_PARTITION_COLUMNS}: {why}", table=storage.uri,
        remedy="set it to false, or partition by another column.", option=DROP_PARTITION_COLUMNS,
    )  # fmt: skip


def type_of(schema: pa.Schema, path: str) -> pa.DataType | None:
    """Type of a column by name or dot path; None where it is missing."""
    if path in schema.names:
        return schema.field(path).type
    name, *rest = path.split(".")
    if name not in schema.names:
        return None
    kind = schema.field(name).type
    for step in rest:
        index = kind.get_field_index(step) if pt.is_struct(kind) else -1
        if index < 0:
            return None
        kind = kind.field(index).type
    return kind


def check_ordering(schema: pa.Schema, fields: Sequence[str], storage: Storage) -> None:
    """Refuse ordering fields whose values have no order: no write would go through.

    Raises:
        SchemaError: which field, and its type.
    """
    for name in fields:
        kind = type_of(schema, name)
        try:
            if kind is not None:
                check_comparable(kind)
        except SchemaError as e:
            e.message = f"ordering field {name!r}: {e.message}"
            raise e.at(table=storage.uri) from None


def check_compared(rule: MergeRule, ordering: str | None, schema: pa.Schema) -> None:
    """Refuse a payload that compares another column than the ordering field, or of another type.

    Raises:
        UnsupportedError: another column.
        SchemaError: another type: text has not the order of the numbers that Apache Hudi expects.
    """
    payloads.check_compared(rule, (ordering,) if ordering else ())
    kind = type_of(schema, rule.compared) if rule.compared else None
    allowed = (is_text,) if rule.sequence else _NUMBERS
    if kind is None or pt.is_null(kind) or any(check(kind) for check in allowed):
        return
    wanted = "text such as 10.254 (file and position)" if rule.sequence else "a number"
    raise SchemaError(
        f"{rule.name} takes {wanted} in column {rule.compared}, which has type {kind}",
        remedy="cast the column, or merge by DefaultHoodieRecordPayload, which takes any type.",
        column=rule.compared,
        type=str(kind),
    )


def about_marks(rule: MergeRule, rows: pa.Schema) -> tuple[str, ...]:
    """Warnings of a column that looks like the payload's mark of a delete, and marks none.

    Full loads have no such column, which is no cause for one.
    """
    name = rule.delete_field
    if not name:
        return ()
    marks = f"{name}={rule.delete_marker!r}"
    if name in rows.names:
        kind = rows.field(name).type
        if any(check(kind) for check in _TEXTS):
            return ()
        return (
            f"{rule.name} deletes rows with {marks}, and column {name} has type {kind}: no row is taken for a delete; "
            "give it as text",
        )
    near = [n for n in rows.names if n.lower() == name.lower()]
    if not near:
        return ()
    return (
        f"{rule.name} deletes rows with {marks}, in exactly these letters, and the rows have {near[0]}: none of them "
        f"is taken for a delete, as in Apache Hudi; rename the column to {name}",
    )


def has_order(schema: pa.Schema, name: str) -> bool:
    """Whether there is such a column, whose values have an order."""
    try:
        check_comparable(schema.field(name).type)
    except (KeyError, SchemaError):
        return False
    return True


# --- timestamps in keys ----------------------------------------------------------------------------------


def check_timestamps(snapshot: TableSnapshot, spec: KeySpec, schema: pa.Schema) -> None:
    """Refuse timestamps in another text form than in the table's keys.

    Apache Hudi 0.15 writes microseconds by upsert, insert and delete, and text by its bulk_insert, or text by all
    where `CONSISTENT` is set, which hoodie.properties does not keep.

    Raises:
        ConflictingOptionError: naming the option, and what to set it to.
    """
    keys = [n for n in spec.key_fields if _is_timestamp(schema, n)]
    paths = [
        n
        for n, kind in zip(spec.partition_fields, spec.field_kinds, strict=True)
        if kind == SIMPLE and _is_timestamp(schema, n)
    ]
    if not keys and not paths:
        return
    storage = snapshot.storage
    files = [s.base_file for s in snapshot.slices() if s.base_file is not None]
    forms: dict[str, str] = {}
    for text, place in _stored_texts(storage, spec, keys, paths, files):
        form = "text" if _TEXT.fullmatch(text) else "microseconds" if _NUMBER.fullmatch(text) else ""
        if form:
            forms.setdefault(form, place)
    wanted = "microseconds" if spec.timestamp_zone is None else "text"
    other = "text" if wanted == "microseconds" else "microseconds"
    if other not in forms:
        return
    both = "; other records hold the wanted form" if wanted in forms else ""
    raise ConflictingOptionError(
        f"the table's keys hold timestamps as {other} ({forms[other]}){both}, this write would make them as {wanted}: "
        "its records would not be found again",
        table=storage.uri,
        remedy=f"set {CONSISTENT}={str(other == 'text').lower()} with every write"
        + (", after the table was written anew in one form." if both else "."),
        option=CONSISTENT,
    )


def _is_timestamp(schema: pa.Schema, name: str) -> bool:
    kind = type_of(schema, name)
    return kind is not None and bool(pt.is_timestamp(kind))


def _stored_texts(
    storage: Storage, spec: KeySpec, keys: Sequence[str], paths: Sequence[str], files: Sequence[BaseFile]
) -> Iterator[tuple[str, str]]:
    """Timestamp texts in stored keys and paths, each with its location."""
    if paths:
        for partition in sorted({f.partition for f in files}):
            values = split_values(partition, spec.partition_fields) or []
            for name, value in zip(spec.partition_fields, values, strict=False):
                if name in paths and value:
                    yield value, f"partition {partition!r}"
    if not keys:
        return
    for file in files[:: max(1, len(files) // _SAMPLE)]:
        entries = read_footer(storage, file.path).entries
        for key in (entries.get(MIN_KEY), entries.get(MAX_KEY)):
            for name in keys if key else ():
                yield _part(key or "", name, spec), f"record key {key!r} in {file.path}"


def _part(key: str, name: str, spec: KeySpec) -> str:
    """Value of one field in a record key."""
    if len(spec.key_fields) == 1 and spec.kind != "GLOBAL_DELETE":
        return key
    found = re.search(rf"(?:^|,){re.escape(name)}:([0-9:. -]+)(?:,|$)", key)
    return found[1] if found else ""


# Advice where keys make an index slow: BLOOM with random keys opens every file.
#
# Told by the key ranges in the footers: where those of most files overlap, none is ruled out by range.

# Fewer files are opened quickly whatever their ranges are.
FEW_FILES = 8
_ADVICE_SAMPLE = 16
_OVERLAP = 0.5
_UUID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-([1-8])[0-9a-fA-F]{3}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\Z")
_said: set[str] = set()


def advice(
    storage: Storage, files: Mapping[str, Sequence[BaseFile]], lookup: LookupCount | None
) -> tuple[str, ...]:
    """Advice on the keys, once per table and process.

    Args:
        files: latest base files by partition, as the look-up saw them.
    """
    if lookup is None or lookup.index not in (BLOOM, GLOBAL_BLOOM) or storage.uri in _said:
        return ()
    # A range that rules most files out is worth its while.
    if lookup.files < FEW_FILES or 2 * lookup.by_range > lookup.files:
        return ()
    candidates = [f for of in files.values() for f in of] if lookup.index == GLOBAL_BLOOM else _largest(files)
    sample = _sampled(candidates)
    ranges = [r for r in (_range(storage, f) for f in sample) if r is not None]
    share = overlapping(ranges)
    if len(ranges) < 2 or share < _OVERLAP:
        return ()
    _said.add(storage.uri)
    return (
        f"index {lookup.index}: the key ranges of {share:.0%} of the pairs of files overlap, so ranges rule out few "
        f"files: {_kind([low for low, _ in ranges])}; hudi_format.keygen.ordered_keys makes keys that grow with "
        "time, or use the index SIMPLE",
    )


def _largest(files: Mapping[str, Sequence[BaseFile]]) -> list[BaseFile]:
    """Files of the largest partition, as ranges matter within one."""
    most: Sequence[BaseFile] = ()
    for found in files.values():
        most = found if len(found) > len(most) else most
    return list(most)


def _sampled(files: Sequence[BaseFile]) -> list[BaseFile]:
    step = max(1, len(files) // _ADVICE_SAMPLE)
    return list(files[::step][:_ADVICE_SAMPLE])


def _range(storage: Storage, file: BaseFile) -> tuple[str, str] | None:
    try:
        entries = read_footer(storage, file.path).entries
    except MissingFileError:  # cleaned by another writer meanwhile
        return None
    low, high = entries.get(MIN_KEY), entries.get(MAX_KEY)
    return (low, high) if low is not None and high is not None else None


def overlapping(ranges: Sequence[tuple[str, str]]) -> float:
    """Share of overlapping pairs of key ranges (inclusive bounds)."""
    pairs = len(ranges) * (len(ranges) - 1) // 2
    met = sum(a[0] <= b[1] and b[0] <= a[1] for i, a in enumerate(ranges) for b in ranges[i + 1 :])
    return met / pairs if pairs else 0.0


def _kind(keys: Sequence[str]) -> str:
    versions = {m[1] for m in (_UUID.search(k) for k in keys) if m}
    if versions == {"4"}:
        return "the keys are random (UUIDs of version 4)"
    if versions == {"1"}:
        return "the keys are UUIDs of version 1, which do not sort by time"
    return "the keys do not grow with time"
