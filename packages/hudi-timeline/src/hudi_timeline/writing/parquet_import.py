"""Import of a Parquet data set into a Hudi table, in one streaming pass.

    import_parquet("s3://lake/orders", "s3://lake/hudi/orders", {"hoodie.table.name": "orders", ...})
    import_parquet(source, path, options, where="month >= '2024-01'")            # a part of it
    import_parquet(source, path, options, upsert=True)                           # into a table that is there

The data set is a folder of Parquet files at any depth, as Spark, Hive or Arrow write them; folders `name=value` are
columns of text.  Names that begin with `_` or `.` are passed over, as Spark does.  Files may have columns of their own,
which are null in the others, and narrower types.

Source: HDFSParquetImporter of Apache Hudi 0.15; FAQ, "How do I migrate my data to Hudi?".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.types as pt

from hudi_format.errors import HudiError, MissingFileError, OptionError, SchemaError
from hudi_format.file_names import META_DIR
from hudi_format.keygen.partition_path import HIVE_DEFAULT
from hudi_format.parquet.footer import open_parquet, reading
from hudi_format.parquet.reader import has_int96, iter_batches
from hudi_format.schema.arrow import normalize_schema
from hudi_format.schema.evolution import reconcile
from hudi_format.storage.open import open_storage
from hudi_format.storage.protocol import Storage
from hudi_timeline.options.write_options import OPERATION
from hudi_timeline.reading.filters import make_predicate
from hudi_timeline.reading.plan import Predicate
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute
from hudi_timeline.writing.result import CommitResult
from hudi_timeline.writing.write_plan import APPEND, ERROR


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
    def of(cls, storage: Storage, where: str | None = None) -> ParquetSource:
        """List a data set and read its files' footers.

        Args:
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
                remedy="read it with HudiTable.open(source).read(), and write what that gives.",
            )
        files = tuple(_files(storage, "", {}))
        if not files:
            raise MissingFileError(
                "the data set has no files", table=storage.uri, remedy="name the data set's folder."
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
            for batch in iter_batches(self.storage, file.path, schema=self.schema):
                columns = list(batch.columns)
                for name, value in file.values.items():
                    column = pa.repeat(pa.scalar(value, pa.string()), batch.num_rows)
                    columns[self.schema.get_field_index(name)] = column
                rows = pa.RecordBatch.from_arrays(columns, schema=self.schema)
                if self.predicate is None:
                    yield rows
                else:
                    yield from pa.Table.from_batches([rows]).filter(self.predicate.expression).to_batches()


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
        source: the data set's folder.
        path: of the table; nothing may be there, unless `upsert`.
        options: of the write: the table's name, keys and so on.  A bulk_insert, if they name no operation.
        where: rows to take, such as `"month >= '2024-01'"`; all if not given.
        upsert: add to the table that is there, or make it: known keys are updated.
        storage_options: for fsspec, of both.

    Raises:
        TableExistsError: there is a table, and `upsert` was not given.
        OptionError, SchemaError, MissingFileError, CorruptFileError: as `ParquetSource.of` and `execute`.
    """
    rows = ParquetSource.of(open_storage(source, storage_options), where)
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
            remedy="read the data set with the tool that wrote it, and write what that gives.",
            columns=both,
        )
    return pa.schema([*schema, *(pa.field(n, pa.string()) for n in names)])


def _own_schema(storage: Storage, path: str) -> pa.Schema:
    file = open_parquet(storage, path)
    try:
        with reading(storage, path):
            schema: pa.Schema = file.schema_arrow
            # Parquet's oldest timestamps always mean an instant, which Arrow does not say.
            if has_int96(file):
                schema = pa.schema([f.with_type(_as_instants(f.type)) for f in schema])
            return schema
    finally:
        file.close(force=True)


def _as_instants(kind: pa.DataType) -> pa.DataType:
    if pt.is_timestamp(kind) and kind.tz is None:
        return pa.timestamp(kind.unit, "UTC")
    if pt.is_struct(kind):
        return pa.struct([f.with_type(_as_instants(f.type)) for f in kind])
    if pt.is_list(kind):
        return pa.list_(kind.value_field.with_type(_as_instants(kind.value_type)))
    if pt.is_map(kind):
        return pa.map_(kind.key_type, kind.item_field.with_type(_as_instants(kind.item_type)))
    return kind


def _may_hold(file: ImportedFile, predicate: Predicate, schema: pa.Schema) -> bool:
    """Whether a file may have passing rows, by its folders' column values."""
    if not file.values:
        return True
    row = pa.table({n: pa.array([v], schema.field(n).type) for n, v in file.values.items()})
    try:
        return bool(row.filter(predicate.expression).num_rows)
    except pa.ArrowInvalid:  # it looks at a column of the files too
        return True


__all__ = ["ImportedFile", "ParquetSource", "import_parquet"]
