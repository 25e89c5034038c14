"""CDC tasks: changes of one commit in one file group, and their decoding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_format.arrow.arrays import no_columns, one_array, put_together
from hudi_format.errors import CorruptFileError, HudiError, LibraryError, MissingFileError
from hudi_format.file_slice.base_rows import filtered
from hudi_format.file_slice.cdc_images import image_texts, logged_keys
from hudi_format.file_slice.reader import SliceMerge
from hudi_format.log.block import BlockType
from hudi_format.log.corruption import CommittedRange, check_file
from hudi_format.log.data_block import BlockDecoder
from hudi_format.log.reader import LogFileReader
from hudi_format.merge.key_index import KeyIndex
from hudi_format.model import BaseFile
from hudi_format.schema.evolution import conform
from hudi_format.schema.internal_schema import ReadEvolution
from hudi_format.schema.meta_fields import COMMIT_TIME, META_COLUMNS, RECORD_KEY
from hudi_format.storage.protocol import Storage
from hudi_timeline.reading.plan import (
    BATCH_ROWS,
    COMPARED,
    DELETED,
    INSERTED,
    LOGGED,
    RECORDS,
    ChangeUnit,
    Predicate,
    ScanPlan,
    SliceLogs,
)
from hudi_timeline.reading.task import ReadTask

INSERT, UPDATE, DELETE = "i", "u", "d"


@dataclass(frozen=True, slots=True)
class _Image:
    """Images before or after changes, and their text form.

    Attributes:
        rows: a row per change; what it holds where there is none does not matter.
        there: per change, whether there is such a row; None where all are.
        nulls: whether null columns are in the text.
        absent: the text where there is no row.
    """

    rows: pa.Table
    there: np.ndarray | None = None
    nulls: bool = False
    absent: str | None = None

    def only(self, mask: np.ndarray) -> _Image:
        there = None if self.there is None else self.there[mask]
        return replace(self, rows=self.rows.filter(pa.array(mask)), there=there)


@dataclass(frozen=True, slots=True)
class _ChangePart:
    ops: pa.Array
    before: _Image | None
    after: _Image | None

    def only(self, *, deletes: bool) -> _ChangePart:
        """Its deletes, or all but these."""
        mask = np.asarray(pc.equal(self.ops, DELETE)) == deletes
        before = None if self.before is None else self.before.only(mask)
        after = None if self.after is None else self.after.only(mask)
        return _ChangePart(self.ops.filter(pa.array(mask)), before, after)


@dataclass(frozen=True, slots=True, eq=False)
class ChangeTask:
    """A task that reads one `ChangeUnit`.

    Attributes:
        storage: the table's.
        merge: how its slices are merged.
        table_schema: all columns of the table, with meta columns where it fills them.
        schema: the columns to give, in order; of `needed`.
        needed: those and the columns of the filter.
        filter: rows to keep; None for all.
        nulls_kept: whether images of rows that met log records keep null columns, as releases before 1.1 do.
        evolution: how older files are read by column id, where the table has a schema history; else None.
    """

    storage: Storage
    unit: ChangeUnit
    merge: SliceMerge
    table_schema: pa.Schema
    schema: pa.Schema
    needed: pa.Schema
    filter: pc.Expression | None = None
    nulls_kept: bool = True
    evolution: ReadEvolution | None = None

    # What a scan's other tasks have.
    logs = None

    @property
    def path(self) -> str:
        return next((f.path for f, _ in self.unit.told_by()), "")

    @property
    def size(self) -> int:
        return self.unit.size

    def to_batches(self, batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The changes in file order.

        Raises:
            MissingFileError, CorruptFileError, SchemaError: naming table, instant and file.
        """
        for part in self._tables():
            yield from part.to_batches(max_chunksize=batch_rows)

    def to_table(self) -> pa.Table:
        """All changes at once."""
        return put_together(list(self._tables()), self.schema)

    def _tables(self) -> Iterator[pa.Table]:
        kinds: dict[str, Callable[[], Iterator[_ChangePart]]] = {
            LOGGED: self._logged,
            INSERTED: self._inserted,
            DELETED: self._deleted,
            RECORDS: self._records,
            COMPARED: self._compared,
        }
        try:
            for part in kinds[self.unit.kind]():
                if self.unit.deletes is not None:
                    part = part.only(deletes=self.unit.deletes)
                if len(part.ops):
                    yield self._given(part)
        except HudiError as e:
            raise e.at(table=self.storage.uri, instant=self.unit.instant) from e.__cause__

    def _given(self, part: _ChangePart) -> pa.Table:
        n = len(part.ops)
        columns = []
        for field in self.needed:
            if field.name == "op":
                columns.append(part.ops)
            elif field.name == "ts_ms":
                columns.append(pa.repeat(self.unit.instant, n))
            else:
                columns.append(_image(part.before if field.name == "before" else part.after, field.type, n))
        table = pa.table(columns, schema=self.needed) if columns else no_columns(n)
        if self.filter is not None:
            try:
                table = filtered(table, self.filter)
            except LibraryError as e:
                raise e.at(table=self.storage.uri, instant=self.unit.instant) from e.__cause__
        return table.select(self.schema.names)

    # --- the five ways --------------------------------------------------------------------------------------

    def _inserted(self) -> Iterator[_ChangePart]:
        for rows in self._after_rows():
            yield _ChangePart(pa.repeat(INSERT, rows.num_rows), None, _Image(rows))

    def _deleted(self) -> Iterator[_ChangePart]:
        for rows in self._before_rows():
            yield _ChangePart(pa.repeat(DELETE, rows.num_rows), _Image(rows), None)

    def _logged(self) -> Iterator[_ChangePart]:
        for batch in self._blocks():
            names = batch.schema.names
            ops = batch.column("op").cast(pa.string())
            # The mode that logs both images logs no keys.
            keys = batch.column("record_key").cast(pa.string()) if "record_key" in names else pa.nulls(0)
            is_insert, is_delete = (np.asarray(pc.equal(ops, o)) for o in (INSERT, DELETE))
            if "before" in names:
                before = self._image_of_block(batch, "before")
            else:
                rows, there = self._of_keys(self._before_rows, keys, ~is_insert, "before")
                before = _Image(rows, there, nulls=self.nulls_kept)
            if "after" in names:
                after = self._image_of_block(batch, "after")
            else:
                rows, there = self._of_keys(self._after_rows, keys, ~is_delete, "after")
                after = _Image(rows, there)
            yield _ChangePart(ops, before, after)

    def _records(self) -> Iterator[_ChangePart]:
        """Images of the rows in log records; unchanged rows are left out."""
        told = self.unit.records
        if told is None:
            raise ValueError("the unit has no records")
        mine = replace(
            self.merge, scope=replace(self.merge.scope, instants=frozenset({self.unit.instant}), latest="")
        )
        keys = logged_keys(
            self.storage, told.slice.log_files, mine, self.table_schema, committed=told.committed
        )
        before = pa.concat_tables([self.table_schema.empty_table(), *self._before_rows(keys)])
        before = self._with_keys(before, keys)
        yield from self._differences(
            before, self._with_records(told, keys), nulls=self.nulls_kept, merged=True
        )

    def _with_records(self, told: SliceLogs, keys: pa.Array) -> Iterator[pa.Table]:
        before = self.unit.before
        base = None if before is None else before.slice.base_file
        logs = {} if before is None else {f.path: f for f in before.slice.log_files}
        logs |= {f.path: f for f in told.slice.log_files}
        committed = {**({} if before is None else before.committed), **told.committed}
        whole = replace(told.slice, base_file=base, log_files=tuple(logs.values()))
        latest = self.unit.instant if self.unit.before_latest else ""
        for rows in self._read(base, SliceLogs(whole, committed), keys, latest):
            yield self._with_keys(rows, keys)

    def _with_keys(self, rows: pa.Table, keys: pa.Array) -> pa.Table:
        """The rows with these keys, for virtual keys that the read could not select."""
        return rows if RECORD_KEY in rows.column_names else rows.filter(pc.is_in(self._keys(rows), keys))

    def _keys(self, rows: pa.Table) -> pa.Array:
        return one_array(self.merge.keys(rows)).cast(pa.string())

    def _compared(self) -> Iterator[_ChangePart]:
        """Comparison of the files before and after."""
        before = pa.concat_tables([self.table_schema.empty_table(), *self._before_rows()])
        yield from self._differences(before, self._after_rows(), nulls=self.nulls_kept, after_nulls=False)

    def _differences(
        self, before: pa.Table, after: Iterator[pa.Table], *, nulls: bool, after_nulls: bool | None = None,
        merged: bool = False,
    ) -> Iterator[_ChangePart]:  # fmt: skip
        """Differences between rows before and after: inserted, updated, then deleted ones; see `_changed`."""
        index = KeyIndex(self._keys(before))
        seen = np.zeros(before.num_rows, dtype=bool)
        for rows in after:
            found = index.find(self._keys(rows))
            seen[found[found >= 0]] = True
            changed = self._changed(before, rows, found, merged)
            found, rows = found[changed], rows.filter(pa.array(changed))
            known = found >= 0
            yield _ChangePart(
                pc.if_else(pa.array(known), UPDATE, INSERT).cast(pa.string()),
                _Image(before.take(pa.array(found, mask=~known)), known, nulls=nulls),
                _Image(rows, nulls=nulls if after_nulls is None else after_nulls),
            )
        gone = before.filter(pa.array(~seen))
        yield _ChangePart(pa.repeat(DELETE, gone.num_rows), _Image(gone, nulls=nulls), None)

    def _changed(
        self, before: pa.Table, rows: pa.Table, found: np.ndarray, merged: bool = False
    ) -> np.ndarray:
        """Mask of new or changed rows, by commit time, else by value.

        Args:
            merged: rows may have values of the commit under the time of an older one, as a merge of parts of records,
                or one that takes the greater ordering value, gives them.
        """
        new: np.ndarray = found < 0
        if COMMIT_TIME not in rows.column_names:
            new |= self._differ(before, rows, found)
            return new
        changed: np.ndarray = new | np.asarray(pc.equal(rows.column(COMMIT_TIME), self.unit.instant))
        if merged and not changed.all():
            rest = np.flatnonzero(~changed)
            changed[rest] = self._differ(before, rows.take(pa.array(rest)), found[rest])
        return changed

    def _differ(self, before: pa.Table, rows: pa.Table, found: np.ndarray) -> np.ndarray:
        """Mask of rows with other values than those before."""
        names = [n for n in rows.column_names if n not in META_COLUMNS]
        was = before.select(names).take(pa.array(found, mask=found < 0))
        texts = (image_texts(part, nulls=True) for part in (rows.select(names), was))
        differ: np.ndarray = np.asarray(pc.not_equal(*texts))
        return differ

    # --- rows -----------------------------------------------------------------------------------------------

    def _blocks(self) -> Iterator[pa.RecordBatch]:
        decoder = BlockDecoder()
        for file in self.unit.cdc:
            with LogFileReader.open(self.storage, file.path) as reader:
                # The commit made the file, and says its size: all of it is blocks of this instant.
                end = file.size if file.size > 0 else reader.size
                said = CommittedRange(self.unit.instant, 0, end)
                check_file(reader.blocks, file=file.path, size=reader.size, committed=(said,))
                for block in reader.blocks:
                    if block.offset >= end:
                        break  # written after the size was asked for: of no commit
                    if block.type is not BlockType.CDC_DATA:
                        raise block.broken(f"a {block.type.name} block in a file of changes")
                    yield from decoder.batches(block, reader.content(block))

    def _image_of_block(self, batch: pa.RecordBatch, name: str) -> _Image:
        column = batch.column(name)
        there = np.asarray(column.is_valid())
        rows = pa.table(
            [pc.struct_field(column, f.name) for f in column.type], names=[f.name for f in column.type]
        )
        if self.evolution is None:
            # Apache Hudi reads images in the table's newest schema, of which older ones lack columns.
            logged = set(rows.column_names)
            newest = [
                f.with_nullable(True)
                for f in self.table_schema
                if f.name in logged or f.name not in META_COLUMNS
            ]
            rows = conform(rows, pa.schema(newest))
        return _Image(rows, None if there.all() else there, nulls=True, absent="null")

    def _of_keys(
        self, rows_of: Callable[[pa.Array], Iterator[pa.Table]], keys: pa.Array, wanted: np.ndarray, what: str
    ) -> tuple[pa.Table, np.ndarray]:
        """The row of each wanted key, and a mask of the keys found."""
        asked = keys.filter(pa.array(wanted))
        if what == "before" and self.unit.before is None and len(asked):
            raise MissingFileError(
                "the logged changes name keys only, and the file slice before them is not there any more",
                file=self.unit.cdc[0].path,
                remedy="if the cleaner removed it, begin at a later instant; else restore the files of this file group "
                "from a backup.",
            )
        parts = list(rows_of(asked)) if len(asked) else []
        rows = pa.concat_tables([self.table_schema.empty_table(), *parts])
        found = KeyIndex(self._keys(rows)).find(keys)
        lost = wanted & (found < 0)
        if lost.any():
            key = keys[int(np.flatnonzero(lost)[0])].as_py()
            raise CorruptFileError(
                f"the logged changes name the key {key!r}, which has no row {what} them",
                file=self.unit.cdc[0].path,
                remedy="restore the files of this file group from a backup.",
            )
        return rows.take(pa.array(found, mask=~wanted)), wanted

    def _after_rows(self, keys: pa.Array | None = None) -> Iterator[pa.Table]:
        if self.unit.after is not None:
            yield from self._read(self.unit.after, None, keys, "")

    def _before_rows(self, keys: pa.Array | None = None) -> Iterator[pa.Table]:
        before = self.unit.before
        if before is not None:
            yield from self._read(before.slice.base_file, before, keys, self.unit.before_latest)

    def _read(
        self, base: BaseFile | None, logs: SliceLogs | None, keys: pa.Array | None, latest: str
    ) -> Iterator[pa.Table]:
        """Rows of a base file or slice; with `keys`, at least those.

        Args:
            latest: blocks of later instants do not count; "" for no bound.
        """
        schema, merge = self.table_schema, self.merge
        task = ReadTask(
            self.storage,
            "" if base is None else base.path,
            self.unit.partition,
            0 if base is None else base.size,
            self.unit.instant if base is None else base.instant,
            self.unit.file_id,
            schema,
            schema,
        )
        if base is not None and self.evolution is not None:
            task = replace(task, reading=self.evolution.reading(base.instant))
        if keys is not None and RECORD_KEY in schema.names:
            task = replace(
                task, filter=pc.field(RECORD_KEY).isin(pc.unique(keys)), filter_columns=(RECORD_KEY,)
            )
        if logs is not None and logs.slice.log_files:
            bounded = replace(merge, scope=replace(merge.scope, latest=latest))
            task = replace(task, logs=logs, merge=bounded, merge_schema=merge.merge_schema(schema, schema))
        for batch in task.to_batches():
            yield pa.Table.from_batches([batch])


def change_tasks(
    storage: Storage, plan: ScanPlan, schema: pa.Schema, predicate: Predicate | None
) -> list[ChangeTask]:
    """A task for each unit of a CDC plan.

    Args:
        schema: the columns that are wanted, in order.
    """
    if plan.merge is None or plan.table_schema is None:
        raise ValueError("a plan of changes says how rows are merged")
    extra = (
        []
        if predicate is None
        else [plan.schema.field(n) for n in predicate.columns if n not in schema.names]
    )
    needed = pa.schema([*schema, *extra])
    filter = None if predicate is None else predicate.expression
    return [
        ChangeTask(
            storage, u, plan.merge, plan.table_schema, schema, needed, filter, plan.nulls_kept, plan.evolution
        )
        for u in plan.changes
    ]


def _image(image: _Image | None, kind: pa.DataType, n: int) -> pa.Array:
    if image is None:
        return pa.nulls(n, kind)
    there = None if image.there is None or image.there.all() else image.there
    if pa.types.is_string(kind):
        text = image_texts(image.rows, nulls=image.nulls)
        return (
            text if there is None else pc.if_else(pa.array(there), text, pa.scalar(image.absent, pa.string()))
        )
    names = [n for n in image.rows.column_names if n not in META_COLUMNS]
    rows = conform(image.rows.select(names), pa.schema(list(kind)))
    mask = None if there is None else pa.array(~there)
    return pa.StructArray.from_arrays([one_array(c) for c in rows.columns], fields=list(kind), mask=mask)
