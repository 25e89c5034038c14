"""Base file checks by footer: readable, row count, bloom filter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as po

from hudi_format.errors import CorruptFileError, HudiError, MissingFileError, UnsupportedError
from hudi_format.hfile.reader import HFileReader
from hudi_format.model import BaseFile
from hudi_format.parquet.footer import (
    BLOOM_TYPE,
    Footer,
    filter_entry,
    footer_bytes,
    open_with_source,
    read_footer,
    reading,
)
from hudi_format.parquet.row_groups import Raw, RowGroup, row_groups
from hudi_format.schema.meta_fields import COMMIT_TIME, META_COLUMNS, PARTITION_PATH, RECORD_KEY
from hudi_index.bloom.key_observer import footer_filter, footer_range
from hudi_index.bloom.probe import filter_text
from hudi_index.hashing.java import min_max
from hudi_timeline.verify.findings import VerifyReport
from hudi_timeline.verify.table_state import TableFacts


@dataclass(frozen=True)
class CheckedFile:
    """A readable base file; `footer` is None for other formats than Parquet."""

    file: BaseFile
    rows: int
    footer: Footer | None = None


def check_base_files(facts: TableFacts, report: VerifyReport) -> list[CheckedFile]:
    """Run the checks; returns the readable files."""
    rows = {s.path: s.num_writes for commit in facts.commits.values() for s in commit.stats}

    def one(file: BaseFile) -> CheckedFile | None:
        return _check(facts, file, rows.get(file.path), report)

    return [f for f in facts.each(one, facts.base_files) if f is not None]


def _check(
    facts: TableFacts, file: BaseFile, written: int | None, report: VerifyReport
) -> CheckedFile | None:
    try:
        found = _open(facts, file)
    except (MissingFileError, UnsupportedError):
        return None  # cleaned since the listing; or encrypted, say, and not ours to judge
    except CorruptFileError as e:
        lacks = e.details.get("column") in META_COLUMNS
        report.add(
            "base-file-meta-columns" if lacks else "base-file-unreadable", file.path, e.message, file.instant
        )
        return None
    if written is not None and found.rows != written and not facts.is_metadata:
        report.add("base-file-rows", file.path, f"it has {found.rows} rows, its commit says {written}", file.instant,
                   rows=found.rows, committed=written)  # fmt: skip
    if found.footer is None:
        return found
    if facts.config.populate_meta_fields:
        missing = [c for c in META_COLUMNS if c not in found.footer.schema.names]
        if missing:
            report.add(
                "base-file-meta-columns", file.path, f"it has no column {', '.join(missing)}", file.instant
            )
            return None
    try:
        # Its headers and length; all of it is decoded where the data is read too.
        text = filter_entry(found.footer.entries)
        if text:
            filter_text(memoryview(text.encode()), found.footer.entries.get(BLOOM_TYPE))
    except CorruptFileError as e:
        report.add("base-file-bloom", file.path, e.message, file.instant)
    return found


def _open(facts: TableFacts, file: BaseFile) -> CheckedFile:
    storage, path = facts.storage, file.path
    if path.endswith(".hfile"):
        reader = HFileReader.open(storage, path)
        return CheckedFile(file, sum(b.num_rows for b in reader.batches()))
    if path.endswith(".orc"):
        try:
            with storage.open_input(path) as source:
                return CheckedFile(file, int(po.ORCFile(source).nrows))
        except FileNotFoundError:
            raise MissingFileError("the base file is missing", file=path) from None
        except (pa.ArrowException, OSError, ValueError) as e:
            raise CorruptFileError(
                f"the base file cannot be read as ORC: {str(e).splitlines()[0]}", file=path
            ) from None
    footer = read_footer(storage, path)
    return CheckedFile(file, footer.num_rows, footer)


# Deep checks of Parquet base files: what the footer promises of keys and values, against the rows.
#
# Statistics, key range and bloom filter let readers and writers leave a file out; one that is too narrow loses rows.


def check_data(
    facts: TableFacts, files: list[CheckedFile], report: VerifyReport, sound: set[str] | None = None
) -> None:
    """Run the data checks; `sound` as of `verify`."""
    known = set() if sound is None else sound

    def one(checked: CheckedFile) -> None:
        try:
            _check_rows(facts, checked, report)
        except HudiError as e:
            report.add("base-file-data", checked.file.path, e.message, checked.file.instant)

    read = [f for f in files if f.footer is not None and f.file.path not in known]
    facts.each(one, read)
    known |= {f.file.path for f in read}


def _check_rows(facts: TableFacts, checked: CheckedFile, report: VerifyReport) -> None:
    path, instant = checked.file.path, checked.file.instant
    keys: list[pa.Array] = []
    file, source = open_with_source(facts.storage, path)
    with reading(facts.storage, path), file:
        for group, said in enumerate(row_groups(footer_bytes(source))):
            table = file.read_row_group(group, use_threads=False)
            for name, what in _wrong_statistics(said, table):
                report.add("base-file-statistics", path, f"row group {group}, column {name}: {what}", instant,
                           column=name, row_group=group)  # fmt: skip
            if facts.config.populate_meta_fields:
                keys += table.column(RECORD_KEY).cast(pa.string()).chunks
                _check_meta(checked, table, report)
    if keys:
        _check_keys(checked, pa.chunked_array(keys), report)


def _check_meta(checked: CheckedFile, table: pa.Table, report: VerifyReport) -> None:
    file = checked.file
    keys = table.column(RECORD_KEY)
    bad = keys.null_count + (pc.sum(pc.equal(keys, "")).as_py() or 0)
    if bad:
        report.add("row-key", file.path, f"{bad} rows have a null or empty record key", file.instant)
    partitions = [p for p in pc.unique(table.column(PARTITION_PATH)).to_pylist() if p != file.partition]
    if partitions:
        report.add(
            "row-partition",
            file.path,
            f"a row says that it is of the partition {partitions[0]!r}",
            file.instant,
        )
    newest = pc.max(table.column(COMMIT_TIME).cast(pa.string())).as_py() or ""
    if newest > file.instant:
        report.add("row-commit-time", file.path, f"a row says that it is of {newest}, after the file's instant",
                   file.instant)  # fmt: skip


def _check_keys(checked: CheckedFile, keys: pa.ChunkedArray, report: VerifyReport) -> None:
    file, entries = checked.file, checked.footer.entries if checked.footer is not None else {}
    said, found = footer_range(entries), min_max(keys.drop_null())
    if said is not None and found is not None and not _within(found, said, keys):
        report.add("base-file-key-range", file.path,
                   f"its keys go from {found[0]!r} to {found[1]!r}, its footer says {said[0]!r} to {said[1]!r}",
                   file.instant)  # fmt: skip
    try:
        bloom = footer_filter(entries)
    except CorruptFileError as e:
        report.add("base-file-bloom", file.path, e.message, file.instant)
        return
    if bloom is None:
        return
    denied = keys.filter(pc.invert(pc.fill_null(bloom.might_contain(keys), True)))
    if len(denied):
        report.add("base-file-bloom-keys", file.path,
                   f"its bloom filter denies {len(denied)} of its keys, such as {denied[0].as_py()!r}",
                   file.instant)  # fmt: skip


def _within(found: tuple[str, str], said: tuple[str, str], keys: pa.ChunkedArray) -> bool:
    """Whether keys are within the footer's range, in Java's text order or byte order."""
    if _units(said[0]) <= _units(found[0]) and _units(found[1]) <= _units(said[1]):
        return True
    ends = pc.min_max(keys).as_py()
    return bool(said[0].encode() <= ends["min"].encode() and ends["max"].encode() <= said[1].encode())


def _units(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def _wrong_statistics(group: RowGroup, table: pa.Table) -> Iterator[tuple[str, str]]:
    """Columns of a row group with wrong statistics, and the error."""
    if group.num_rows != table.num_rows:
        yield "", f"{table.num_rows} rows where the footer says {group.num_rows}"
    for name, said in group.columns.items():
        if name not in table.schema.names:  # nested: "a.b", "l.list.element"
            continue
        column = table.column(name)
        if said.nulls is not None and said.nulls != column.null_count:
            yield name, f"{column.null_count} nulls where the footer says {said.nulls}"
        ends = _ends(column)
        if ends is None or said.low is None or said.high is None:
            continue
        if not (type(said.low) is type(said.high) and _alike(said.low, ends[0])):
            continue
        if ends[0] < said.low or said.high < ends[1]:
            yield (
                name,
                f"values from {ends[0]!r} to {ends[1]!r} where the footer says {said.low!r} to {said.high!r}",
            )


def _ends(column: pa.ChunkedArray) -> tuple[Any, Any] | None:
    """Smallest and largest value as Parquet stores them; None where incomparable."""
    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif pa.types.is_date32(kind) or pa.types.is_time32(kind):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        column = column.cast(pa.int64())
    elif pa.types.is_floating(kind):
        column = column.filter(pc.invert(pc.is_nan(column)))
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        column = column.cast(pa.large_binary())
    elif not pa.types.is_signed_integer(kind):
        return None
    found = pc.min_max(column).as_py()
    return None if found["min"] is None else (found["min"], found["max"])


def _alike(said: Raw, value: Any) -> bool:
    """Whether a footer bound is comparable with a value of the column."""
    return isinstance(said, bytes) == isinstance(value, bytes) and said == said
