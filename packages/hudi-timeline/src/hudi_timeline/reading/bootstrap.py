"""Bootstrap base files: meta columns of the skeleton, data columns of the source file.

Source: spec "Queries", section 6; HoodieBootstrapRelation of Apache Hudi 0.15.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from hudi_format.errors import CorruptFileError, HudiError, MissingFileError, UnsupportedError
from hudi_format.file_slice.bootstrap import INSTANT, BootstrapSourceFile, read_sources
from hudi_format.keygen.partition_path import check_safe, split_values
from hudi_format.parquet.reader import iter_row_groups
from hudi_format.schema.meta_fields import COMMIT_TIME, META_COLUMNS
from hudi_format.storage.open import open_beside
from hudi_format.storage.protocol import Storage
from hudi_format.storage.schemes import local_path, scheme_of
from hudi_timeline.file_system_view.partition_values import cast_text
from hudi_timeline.reading.plan import ScanPlan
from hudi_timeline.table_config import BOOTSTRAP_BASE_PATH, TableConfig


def with_sources(plan: ScanPlan, storage: Storage, config: TableConfig) -> ScanPlan:
    """The plan with the source files of its skeletons.

    Raises:
        CorruptFileError: the bootstrap's index is gone, damaged or lacks one of them.
    """
    if not config.bootstrap_base_path:
        return plan
    files = plan.files.select(["path", "partition", "file_id", "instant"]).to_pylist()
    skeletons = {(f["partition"], f["file_id"]): f["path"] for f in files if f["instant"] == INSTANT}
    if not skeletons:
        return plan
    found = read_sources(storage, skeletons)
    for source in found.values():
        check_safe(source.path)
    return replace(
        plan,
        sources={skeletons[group]: source for group, source in found.items()},
        source_storage=source_storage(storage, config.bootstrap_base_path),
    )


def source_storage(storage: Storage, base_path: str) -> Storage:
    """Storage of a bootstrap's source files, outside the table and read-only.

    Their folder is what hoodie.properties says, so it has to be of the table's own kind of store: a table on a disk
    does not make its readers ask hosts of a network, nor one of a network open files of their disk.

    Raises:
        UnsupportedError: it is of another kind of store.
    """
    own, other = (
        "" if local_path(uri) is not None else scheme_of(uri).name for uri in (storage.uri, base_path)
    )
    if own != other:
        raise UnsupportedError(
            f"{BOOTSTRAP_BASE_PATH}={base_path} is of another kind of store than the table",
            table=storage.uri,
            remedy="if you know that folder, copy its files to where the table is and name that, or read the table "
            "with Apache Hudi.",
        )
    return open_beside(storage, base_path)


class BootstrapFile:
    """A skeleton file and its source as one base file (`OtherBaseFile`)."""

    def __init__(
        self,
        storage: Storage,
        path: str,
        source_storage: Storage,
        source: BootstrapSourceFile,
        schema: pa.Schema,
    ) -> None:
        if not source.name.endswith(".parquet"):
            raise UnsupportedError(
                f"the bootstrap's source file {source.path} is not Parquet",
                remedy="read it with Apache Hudi.",
            )
        self._storage, self._path = storage, path
        self._source_storage, self._source = source_storage, source
        self._schema = schema

    @property
    def names(self) -> Sequence[str]:
        return list(self._schema.names)

    @property
    def rows(self) -> int:
        return sum(t.num_rows for t in iter_row_groups(self._storage, self._path, columns=[]))

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """All rows, in file order.

        Raises:
            MissingFileError, CorruptFileError: the source is gone, or has another number of rows.
        """
        wanted = pa.schema([self._schema.field(n) for n in columns])
        levels = dict(s.split("=", 1) for s in self._source.partition.split("/") if "=" in s)
        data = pa.schema([f for f in wanted if f.name not in META_COLUMNS and f.name not in levels])
        # One column at least: a table without any forgets its rows.
        names = [n for n in wanted.names if n in META_COLUMNS] or [COMMIT_TIME]
        left = _Rows(iter_row_groups(self._storage, self._path, columns=names))
        right = _Rows(self._from_source(data)) if len(data) else None
        while True:
            ours = left.take(batch_rows)
            theirs = ours if right is None else right.take(batch_rows)
            if ours.num_rows != theirs.num_rows:
                raise CorruptFileError(
                    f"the bootstrap's source file {self._source.path} has not as many rows as its skeleton",
                    remedy="restore the source file: a bootstrap needs it as it was.",
                )
            if not ours.num_rows:
                return
            arrays = []
            for field in wanted:
                if field.name in META_COLUMNS:
                    arrays.append(ours.column(field.name).combine_chunks())
                elif field.name in levels:
                    arrays.append(_constant(levels[field.name], field, ours.num_rows))
                else:
                    arrays.append(theirs.column(field.name).combine_chunks())
            yield pa.RecordBatch.from_arrays(arrays, schema=wanted)

    def _from_source(self, data: pa.Schema) -> Iterator[pa.Table]:
        path = self._source.path
        try:
            yield from iter_row_groups(self._source_storage, path, columns=data.names, schema=data)
        except MissingFileError as e:
            e.remedy = (
                f"put the source files back below {BOOTSTRAP_BASE_PATH}, or set that to where they are."
            )
            raise
        except HudiError as e:
            raise e.at(file=f"{self._source_storage.uri}/{path}") from e.__cause__

    def close(self) -> None:
        pass


def _constant(level: str, field: pa.Field, rows: int) -> pa.Array:
    """A source column's constant value from a folder name."""
    (text,) = split_values(f"{field.name}={level}", [field.name]) or [None]
    value = cast_text(pa.array([text], pa.string()), field.type)[0]
    return pa.repeat(value, rows) if value.is_valid else pa.nulls(rows, field.type)


class _Rows:
    """Stream of tables, read in pieces of any length."""

    def __init__(self, tables: Iterator[pa.Table]) -> None:
        self._tables = tables
        self._held: list[pa.Table] = []

    def take(self, rows: int) -> pa.Table:
        """The next rows, fewer at the end."""
        while sum(t.num_rows for t in self._held) < rows:
            more = next(self._tables, None)
            if more is None:
                break
            self._held.append(more)
        if not self._held:
            return pa.table({})
        whole = self._held[0] if len(self._held) == 1 else pa.concat_tables(self._held)
        self._held = [whole.slice(rows)] if whole.num_rows > rows else [whole.slice(0, 0)]
        return whole.slice(0, rows)
