"""Import of a Parquet or CSV data set into a Hudi table, in one streaming pass.

    import_parquet("s3://lake/orders", "s3://lake/hudi/orders", {"hoodie.table.name": "orders", ...})
    import_parquet(source, path, options, where="month >= '2024-01'")            # a part of it
    import_parquet(source, path, options, upsert=True)                           # into a table that is there
    import_parquet("orders/2024-*.csv", path, options)                           # one file, or those of a pattern

The data set is a folder of Parquet files at any depth, as Spark, Hive or Arrow write them; folders `name=value` are
columns of text.  Files named `.csv` are read as CSV with a header; their types are guessed from the first megabyte,
and a later value of another type is an error.

Names that begin with `_` or `.` are passed over, as Spark does.  Files may have columns of their own, which are null
in the others, and narrower types.

Source: HDFSParquetImporter of Apache Hudi 0.15; FAQ, "How do I migrate my data to Hudi?".
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.types as pt

from hudi_format.errors import (
    CorruptFileError,
    HudiError,
    MissingFileError,
    OptionError,
    SchemaError,
    UnsupportedError,
)
from hudi_format.file_names import META_DIR
from hudi_format.keygen.partition_path import HIVE_DEFAULT
from hudi_format.parquet.arrow_file import as_instants, has_int96
from hudi_format.parquet.footer import open_parquet, reading
from hudi_format.parquet.reader import iter_batches
from hudi_format.schema.arrow import normalize_schema
from hudi_format.schema.evolution import conform, reconcile
from hudi_format.storage.open import folder_and_name, open_storage
from hudi_format.storage.protocol import Storage
from hudi_timeline.options.write_options import OPERATION
from hudi_timeline.reading.filters import make_predicate
from hudi_timeline.reading.plan import Predicate
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute
from hudi_timeline.writing.planning.write_plan import APPEND, ERROR
from hudi_timeline.writing.result import CommitResult

# Ends of names that Parquet files do not have.
_OTHER_FORMS = (
    *(".json", ".jsonl", ".ndjson", ".tsv", ".txt", ".arrow", ".feather", ".orc", ".avro", ".xls", ".xlsx"),
    *(".gz", ".zip", ".bz2", ".zst", ".db", ".sqlite"),
)


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """A Parquet file of the data set, and the column values of its folders."""

    path: str
    values: Mapping[str, str | None]


@dataclass(frozen=True)
class ParquetSource:
    """A listed data set: files and common schema.

    Attributes:
        schema: columns of the files, then those of the folders.
    """

    storage: Storage
    files: tuple[ImportedFile, ...]
    schema: pa.Schema
    predicate: Predicate | None = None

    @classmethod
    def of(cls, storage: Storage, where: str | None = None, pattern: str = "") -> ParquetSource:
        """List a data set and read its files' footers.

        Args:
            pattern: name of the one file to take, or a pattern of names with `*`, `?` and `[...]`; "" for the folder.
            where: a filter as of `HudiTable.read`; of files all of whose rows it drops by their folders nothing else
                is read.

        Raises:
            MissingFileError: there is no file.
            OptionError: it is a Hudi table, whose files hold other rows than the table.
            SchemaError: files whose columns do not go together.
            CorruptFileError: a file that is no Parquet.
        """
        if storage.list(META_DIR):
            raise OptionError(
                "the source is a Hudi table, whose files hold older versions of its rows too",
                table=storage.uri,
                remedy="read it with HudiTable.open(source).read(), and write the result.",
            )
        if pattern:
            entries = [e for e in storage.list("") if not e.is_dir and e.name[:1] not in ("_", ".")]
            names = sorted(e.name for e in entries if e.name == pattern or fnmatchcase(e.name, pattern))
            files = tuple(ImportedFile(name, {}) for name in names)
        else:
            files = tuple(_files(storage, "", {}))
        if not files:
            raise MissingFileError(
                f"no file is named {pattern}" if pattern else "the data set has no files",
                table=storage.uri,
                remedy="name a folder of Parquet or CSV files, one file, or a pattern such as 'orders/2024-*.csv'.",
            )
        schema = _schema(storage, files)
        predicate = None if where is None else make_predicate(where, schema)
        if predicate is not None:
            files = tuple(f for f in files if _may_hold(f, predicate, schema))
        return cls(storage, files, schema, predicate)

    def reader(self) -> pa.RecordBatchReader:
        """Rows of the data set, file by file."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for file in self.files:
            for batch in self._read(file):
                columns = list(batch.columns)
                for name, value in file.values.items():
                    column = pa.repeat(pa.scalar(value, pa.string()), batch.num_rows)
                    columns[self.schema.get_field_index(name)] = column
                rows = pa.RecordBatch.from_arrays(columns, schema=self.schema)
                if self.predicate is None:
                    yield rows
                else:
                    yield from pa.Table.from_batches([rows]).filter(self.predicate.expression).to_batches()

    def _read(self, file: ImportedFile) -> Iterator[pa.RecordBatch]:
        if not _is_csv(file.path):
            with _reading_parquet(self.storage, file.path):
                yield from iter_batches(self.storage, file.path, schema=self.schema)
            return
        types = pa.schema([f for f in self.schema if f.name not in file.values])
        with _reading_csv(self.storage, file.path, types) as reader:
            for batch in reader:
                yield conform(batch, self.schema)


def _is_csv(path: str) -> bool:
    return path.lower().endswith(".csv")


@contextmanager
def _reading_csv(
    storage: Storage, path: str, types: pa.Schema | None = None
) -> Iterator[csv.CSVStreamingReader]:
    """Batches of a CSV file.

    Args:
        types: of its columns; guessed if not given.

    Raises:
        SchemaError: it is no CSV, or has a value of another type.
    """
    convert = csv.ConvertOptions(
        column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    try:
        with (
            storage.open_input(path) as source,
            csv.open_csv(source, csv.ReadOptions(block_size=1 << 20), convert_options=convert) as reader,
        ):
            _refuse_other_separators(reader.schema.names, storage, path)
            yield reader
    except UnicodeDecodeError:
        raise _no_utf8(storage, path, "the names of its columns are no text in UTF-8") from None
    except pa.ArrowInvalid as e:
        if "UTF8" in str(e):
            raise _no_utf8(storage, path, str(e).splitlines()[0]) from None
        raise SchemaError(
            f"the file is no CSV of one type for each column: {str(e).splitlines()[0]}",
            table=storage.uri,
            file=path,
            remedy="correct it, or read it with pyarrow.csv and the types that it has, and write the result.",
        ) from None


def _refuse_other_separators(names: Sequence[str], storage: Storage, path: str) -> None:
    """Refuse a CSV file of one column whose name is those of several.

    Raises:
        SchemaError: it is.
    """
    if len(names) == 1 and (separator := re.search(r"[;\t|]", names[0])):
        raise SchemaError(
            f"the only column of the CSV file is {names[0]!r}: its values have {separator[0]!r} between them, not ','",
            table=storage.uri,
            file=path,
            remedy=f"read it with pyarrow.csv and ParseOptions(delimiter={separator[0]!r}), and write the result with "
            "write_hudi().",
        )


def _no_utf8(storage: Storage, path: str, reason: str) -> SchemaError:
    return SchemaError(
        f"a CSV file is read as UTF-8: {reason}",
        table=storage.uri,
        file=path,
        remedy="convert it, e.g. `iconv -f latin1 -t utf-8 FILE > NEW.csv`, and import the result.",
    )


@contextmanager
def _reading_parquet(storage: Storage, path: str) -> Iterator[None]:
    """Reading of a file of the data set, which is of no table that could be verified."""
    try:
        yield
    except CorruptFileError as e:
        if path.lower().endswith(_OTHER_FORMS):
            raise UnsupportedError(
                "the file is no Parquet, and is not named .csv: files of other forms are not imported",
                table=storage.uri,
                file=path,
                remedy="read it with a library that knows its form, e.g. polars.read_ndjson(file), and give the frame "
                "to write_hudi(); or name the files to take by a pattern: 'orders/2024-*.parquet'.",
            ) from None
        e.remedy = "replace the file by a whole one, or name the files to take by a pattern: 'orders/2024-*.parquet'."
        raise


def _source(source: str, storage_options: Mapping[str, Any] | None) -> tuple[Storage, str]:
    """Folder of a data set, and the name or pattern of its files; "" for all."""
    folder, _, name = source.rstrip("/").rpartition("/")
    if name and any(c in name for c in "*?[") and not os.path.exists(source):
        return open_storage(folder or ("/" if source.startswith("/") else "."), storage_options), name
    storage = open_storage(source, storage_options)
    if storage.is_local and os.path.isfile(storage.uri):
        folder, name = folder_and_name(source)
        return open_storage(folder), name
    if not storage.is_local and name.lower().endswith((".parquet", ".csv")):
        beside = open_storage(folder, storage_options)
        found = beside.info(name)
        if found is not None and not found.is_dir:
            return beside, name
    return storage, ""


def import_parquet(
    source: str,
    path: str,
    options: Mapping[str, str],
    *,
    where: str | None = None,
    upsert: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> CommitResult:
    """Import a Parquet data set to a table in one commit.

    Args:
        source: the data set's folder, one of its files, or a pattern of their names.
        path: of the table; nothing may be there, unless `upsert`.
        options: of the write: the table's name, keys and so on.  A bulk_insert, if they name no operation.
        where: rows to take, such as `"month >= '2024-01'"`; all if not given.
        upsert: add to the table that is there, or make it: known keys are updated.
        storage_options: for fsspec, of both.

    Raises:
        TableExistsError: there is a table, and `upsert` was not given.
        OptionError, SchemaError, MissingFileError, CorruptFileError: as `ParquetSource.of` and `execute`.
    """
    storage, pattern = _source(source, storage_options)
    rows = ParquetSource.of(storage, where, pattern)
    given: dict[str, str] = {OPERATION: "bulk_insert", **options}
    if upsert:
        given[OPERATION] = "upsert"
    return execute(
        LocalEngine(),
        open_storage(path, storage_options),
        rows.reader(),
        given,
        mode=APPEND if upsert else ERROR,
    )


def _files(storage: Storage, folder: str, values: Mapping[str, str | None]) -> Iterator[ImportedFile]:
    for entry in sorted(storage.list(folder), key=lambda e: e.name):
        if entry.name.startswith(("_", ".")):
            continue
        path = f"{folder}/{entry.name}" if folder else entry.name
        if not entry.is_dir:
            yield ImportedFile(path, values)
            continue
        name, equals, text = entry.name.partition("=")
        more = {unquote(name): None if text == HIVE_DEFAULT else unquote(text)} if equals else {}
        yield from _files(storage, path, {**values, **more})


def _schema(storage: Storage, files: Sequence[ImportedFile]) -> pa.Schema:
    schema: pa.Schema | None = None
    names = list(dict.fromkeys(n for f in files for n in f.values))
    for file in files:
        if list(file.values) != names:
            raise SchemaError(
                f"the file's folders give {', '.join(file.values) or 'no columns'}, those of others {', '.join(names)}",
                table=storage.uri,
                file=file.path,
                remedy="import the folders that are alike, one by one.",
            )
        own = _own_schema(storage, file.path)
        try:
            normal = normalize_schema(own)
            schema = normal if schema is None else reconcile(normal, schema, set_null_for_missing=True)
        except HudiError as e:
            raise e.at(table=storage.uri, file=file.path) from None
    assert schema is not None
    both = [n for n in names if n in schema.names]
    if both:
        raise SchemaError(
            f"column {', '.join(both)} is in the files and in the names of their folders",
            table=storage.uri,
            remedy="read the data set with the tool that wrote it, and write the result.",
            columns=both,
        )
    return pa.schema([*schema, *(pa.field(n, pa.string()) for n in names)])


def _own_schema(storage: Storage, path: str) -> pa.Schema:
    if _is_csv(path):
        with _reading_csv(storage, path) as reader:
            _ = reader.schema.names  # decoded here, where an error has the file's name
            other = [f.name for f in reader.schema if pt.is_binary(f.type)]  # what Arrow takes for no text
            if other:
                raise _no_utf8(storage, path, f"column {other[0]!r} is no text in UTF-8")
            # Of a column without any value nothing is known but that it can be text.
            return pa.schema([f.with_type(pa.string()) if pt.is_null(f.type) else f for f in reader.schema])
    with _reading_parquet(storage, path):
        file = open_parquet(storage, path, arrow_types=True)
    try:
        with _reading_parquet(storage, path), reading(storage, path):
            schema: pa.Schema = file.schema_arrow
            # Parquet's oldest timestamps always mean an instant, which Arrow does not say.
            return as_instants(schema) if has_int96(file) else schema
    finally:
        file.close(force=True)


def _may_hold(file: ImportedFile, predicate: Predicate, schema: pa.Schema) -> bool:
    """Whether a file may have passing rows, by its folders' column values."""
    if not file.values:
        return True
    row = pa.table({n: pa.array([v], schema.field(n).type) for n, v in file.values.items()})
    try:
        return bool(row.filter(predicate.expression).num_rows)
    except pa.ArrowInvalid:  # it looks at a column of the files too
        return True
