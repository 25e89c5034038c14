"""Scans handed to other engines, which then ask for the columns and rows that they need.

Polars, DuckDB and pyarrow push the columns and conditions of their queries down: into a narrower scan, which leaves
out files and row groups as a read with these arguments does, or into their own reading of the base files.
"""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from hudi_format.arrow.arrays import contains
from hudi_format.arrow.filter_conditions import paired
from hudi_format.errors import CorruptFileError, UnsupportedError
from hudi_format.keygen.key_generator import is_provided, kind_of
from hudi_format.keygen.partition_path import lacks_column
from hudi_format.parquet.arrow_file import has_arrow_schema
from hudi_format.parquet.float_bounds import without_float_bounds
from hudi_format.parquet.footer import footer_bytes, open_parquet, reading, schema_part
from hudi_format.parquet.row_groups import row_groups
from hudi_format.storage.local import LocalStorage
from hudi_format.storage.parallel import side_by_side
from hudi_timeline.reading.plan import BATCH_ROWS
from hudi_timeline.reading.table_dataset import FilesOfTable, ScanFiles
from hudi_timeline.reading.task import ReadTask

if TYPE_CHECKING:
    import duckdb
    import polars

    from hudi_timeline.reading.scan import Scan

# Bytes of files that Polars reads together: what it makes of them is in memory at once.
_BYTES_AT_ONCE = 256 << 20
# Types of columns in Polars, by schema.
_TYPES: dict[pa.Schema, polars.Schema] = {}
# The same in DuckDB, as text.
_TYPES_IN_DUCKDB: dict[pa.Schema, list[str]] = {}
# Forms of files by what is asked of them and the part of their footers that has the schema.
_FORMS: dict[tuple[object, ...], dict[bytes, str | None]] = {}
# Files, which never change, that Polars does not read: they have a column in another type than their scan.
_REFUSED: set[tuple[str, tuple[str, ...], pa.Schema]] = set()
_SCHEMAS = 256
# Footers to look at together.
_FOOTERS = 8
# Name under which a dataset's factory asks for a footer.
_FOOTER = "_metadata"
# Characters that DuckDB takes for a pattern of names.
_PATTERN = "*?[{"

# Conditions, as pyarrow writes them, that Polars understands otherwise: all numbers are less than NaN there, and sets
# hold 0.0 and -0.0 as one.
_OTHERWISE = re.compile(r"(?<![\w\"])nan(?![\w\"])|value_set=(?:double|float|halffloat):")

_REMEDY = "use to_arrow(), to_batches() or to_polars_lazy() of the scan; compact() leaves no log files."


class _Asked:
    """The part of pyarrow's dataset interface that Polars calls, to get a condition of its as one of pyarrow's."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.filter: pc.Expression | None = None

    def to_table(self, filter: pc.Expression | None = None, **_: object) -> pa.Table:
        self.filter = filter
        return self.schema.empty_table()

    def to_batches(self, filter: pc.Expression | None = None, **_: object) -> Iterator[pa.RecordBatch]:
        self.filter = filter
        return iter(self.schema.empty_table().to_batches())


class PolarsSource:
    """A source of Polars over a scan, read by Polars itself where files have what the scan has."""

    def __init__(self, scan: Scan) -> None:
        import polars

        self._scan = scan
        self._frame = polars.DataFrame
        self._lazy = polars.scan_pyarrow_dataset
        self._read = polars.scan_parquet
        self._leniency = _leniency(polars.scan_parquet)
        self._error = polars.exceptions.PolarsError
        self._other_types = polars.exceptions.SchemaError
        self.schema = _types_in_polars(scan.schema)

    def __call__(
        self, columns: list[str] | None, condition: polars.Expr | None, rows: int | None, batch: int | None
    ) -> Iterator[polars.DataFrame]:
        """Frames of these columns of the first `rows` rows, of those of them that meet the condition."""
        names = self._scan.schema.names if columns is None else columns
        asked = () if condition is None else condition.meta.root_names()
        needed = list(dict.fromkeys((*names, *asked)))

        def answer(lazy: polars.LazyFrame) -> polars.DataFrame:
            return (lazy if condition is None else lazy.filter(condition)).select(names).collect()

        if rows is not None:
            yield answer(self._frame(self._scan.narrowed(needed, None).head(rows)).lazy())
            return
        # Where no file is left out by it, the condition is for Polars alone.
        filter, filtered = None, condition is None
        if condition is not None and self._scan.prunes_by(asked):
            filter, filtered = self._of_arrow(condition), True
        else:
            _ = self._scan.plan  # made for all queries of the frame
        scan = self._scan.narrowed(needed, filter)
        given: set[str] = set()
        with scan.snapshot.of_its_state():
            own = self._own_files(scan)
        for paths in own:
            try:
                frame = answer(self._own_read(scan, paths))
            except (OSError, self._error) as e:
                if isinstance(e, self._other_types):
                    _note_refused(scan, paths)
                break
            given.update(paths)
            yield frame
        if own and len(given) == sum(map(len, own)):
            return
        # What Polars could not read for columns of other types, or nobody can: that ends in an error that names it.
        if condition is not None and not filtered:
            scan = self._scan.narrowed(needed, self._of_arrow(condition))
        none = not given
        for rows_read in self._reads(scan, given, batch or BATCH_ROWS):
            yield answer(rows_read)
            none = False
        if none:  # of which old releases of Polars make no frame
            yield answer(self._frame(scan.schema.empty_table()).lazy())

    def _of_arrow(self, condition: polars.Expr) -> pc.Expression | None:
        """What pyarrow has an expression for of a condition; no row that meets the condition fails it."""
        parts = []
        for part in _conjuncts(condition):
            asked = _Asked(self._scan.schema)
            try:
                self._lazy(asked).filter(part).collect()
            # One that it cannot say (of NaN, in Polars before 2), or that is wrong: then it is below too.
            except (self._error, NameError):
                continue
            found = asked.filter
            if found is not None and _OTHERWISE.search(str(found)):
                continue
            for name in part.meta.root_names():
                kind = self._scan.schema.field(name).type
                if pa.types.is_nested(kind) or pa.types.is_float16(kind):
                    found = None
                elif found is not None and pa.types.is_floating(kind):
                    found = found | pc.is_nan(
                        pc.field(name)
                    )  # greater than all numbers in Polars, and equal to itself
            if found is not None:
                parts.append(found)
        return paired(operator.and_, parts) if parts else None

    def _reads(self, scan: Scan, given: Collection[str], batch: int) -> Iterator[polars.LazyFrame]:
        """The rows of all files but those that were given, read by the scan."""
        tasks = [t for t in scan.plan_files() if t.path not in given] if given else scan.plan_files()
        with pa.RecordBatchReader.from_batches(scan.schema, scan.stream(tasks, batch)) as reader:
            for found in reader:
                yield self._frame(found).lazy()

    def _own_files(self, scan: Scan) -> list[list[str]]:
        """Paths of the files that Polars may read itself, some at once; none where its rows could be others."""
        kinds = scan.schema.types
        whole = scan.plan.has_whole_files and not self._scan.is_filtered
        if not whole or not kinds or not isinstance(scan.storage, LocalStorage):
            return []
        if any(map(pa.types.is_nested, kinds)):
            return []
        try:
            tasks = _plain_tasks(scan)
            if any(t.constants is not None or t.held for t in tasks):
                _files_of(scan)  # the files have to say the values that their paths say
        except UnsupportedError:
            return []
        groups: list[list[str]] = []
        size = _BYTES_AT_ONCE
        for task in tasks:
            if size >= _BYTES_AT_ONCE:
                groups.append([])
                size = 0
            groups[-1].append(task.path)
            size += task.size
        return [] if any(_refused_key(scan, g) in _REFUSED for g in groups) else groups

    def _own_read(self, scan: Scan, paths: Sequence[str]) -> polars.LazyFrame:
        """A scan of Polars' own, which refuses a file with one of these columns in another type."""
        root = Path(scan.storage.uri).absolute()
        return self._read(
            [root / path for path in paths],
            glob=False,
            hive_partitioning=False,
            schema=_types_in_polars(scan.schema),
            **self._leniency,
        )


def _refused_key(scan: Scan, paths: Sequence[str]) -> tuple[str, tuple[str, ...], pa.Schema]:
    return scan.table_uri, tuple(paths), scan.schema


def _note_refused(scan: Scan, paths: Sequence[str]) -> None:
    _make_room(_REFUSED)
    _REFUSED.add(_refused_key(scan, paths))


def _make_room(remembered: set[Any] | dict[Any, Any]) -> None:
    if len(remembered) >= _SCHEMAS:
        remembered.clear()


def _types_in_polars(schema: pa.Schema) -> polars.Schema:
    """The types that columns have in Polars by way of Arrow."""
    found = _TYPES.get(schema)
    if found is None:
        import polars

        _make_room(_TYPES)
        found = _TYPES[schema] = polars.DataFrame(schema.empty_table()).schema
    return found


def _leniency(read: Callable[..., object]) -> dict[str, Any]:
    """Arguments by which Polars fills columns that a file lacks with nulls, and passes over those that it has besides.

    Releases before 1.28 always do the latter.
    """
    known = inspect.signature(read).parameters
    if "missing_columns" not in known:
        return {"allow_missing_columns": True}
    return {"missing_columns": "insert", "extra_columns": "ignore"}


def _conjuncts(condition: polars.Expr) -> list[polars.Expr]:
    """The parts of a condition that are joined by AND."""
    out, left = [], [condition]
    while left:
        one = left.pop()
        inputs = one.meta.pop()
        both = len(inputs) == 2
        if both and any((a & b).meta.eq(one) for a, b in (inputs, inputs[::-1])):
            left += inputs
        else:
            out.append(one)
    return out


def dataset_of(scan: Scan) -> ds.Dataset:
    """The scan as a pyarrow dataset of its base files.

    Raises:
        UnsupportedError: rows that are not in the files as they are: merged, renamed or taken from paths.
    """
    files = _files_of(scan, footers=True)
    tasks, format, handler = files.tasks, ds.ParquetFileFormat(), ScanFiles(scan)
    system = handler.file_system
    fragments = []
    for task, footer in zip(tasks, files.footers, strict=True):
        if footer is None:
            size = max(task.size, 0) or None
            fragments.append(format.make_fragment(task.path, filesystem=system, file_size=size))
        else:
            handler.footers[_FOOTER] = footer
            fragments += ds.ParquetDatasetFactory(_FOOTER, system, format).finish().get_fragments()
    schema = scan.schema
    if tasks:
        schema = pa.schema([*schema, *(f for f in tasks[0].needed if f.name not in schema.names)])
    made = FilesOfTable(fragments, schema, format, filesystem=system)
    made.scan = scan
    return made.of_scan(files.filter)


@dataclass(frozen=True, slots=True)
class _ScannedFiles:
    """A scan's base files, which hold its rows as they are.

    Attributes:
        filter: of their rows; None for all.
        form: of Parquet in which each has all columns of the scan; None where there is no such one.
        footers: of each as a `_metadata` file without bounds of floating-point columns; None where its own will do.
    """

    tasks: Sequence[ReadTask]
    filter: pc.Expression | None
    form: str | None
    footers: Sequence[bytes | None]


def _plain_tasks(scan: Scan) -> list[ReadTask]:
    """The tasks of a scan whose rows are in base files as they are.

    Raises:
        UnsupportedError: rows are merged, renamed or taken from paths.
    """
    plain = []
    for task in scan.plan_files():
        if not isinstance(task, ReadTask) or task.logs is not None or not task.path.endswith(".parquet"):
            raise _refused(scan, "changes and rows of log files are merged while they are read")
        if task.reading is not None or task.source is not None:
            raise _refused(scan, "columns are read by their ids, or from the files of a bootstrap")
        if task.constants is not None and not paths_are_values(scan):
            raise _refused(scan, "values come from partition paths, which have them in another form")
        plain.append(task)
    return plain


def _files_of(scan: Scan, *, footers: bool = False) -> _ScannedFiles:
    """The base files of a scan, checked against it.

    Args:
        footers: whether they are wanted too.

    Raises:
        UnsupportedError: as of `dataset_of`.
    """
    tasks = _plain_tasks(scan)
    # One after the other what the disk gives at once, and what takes Python's lock: a remote store is waited for.
    at_once = 1 if scan.storage.is_local else _FOOTERS
    checked = list(side_by_side(_Forms(scan, footers=footers).checked, tasks, at_once, "hudi-footers"))
    forms = {form for form, _ in checked}
    asked = {str(t.filter): t.filter for t in tasks}
    if len(asked) > 1:
        raise _refused(scan, "each file has other rows of the range")
    (filter,) = asked.values() or (None,)
    return _ScannedFiles(tasks, filter, forms.pop() if len(forms) == 1 else None, [f for _, f in checked])


def relation_of(scan: Scan, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
    """The scan as a relation of DuckDB, over its files, a dataset of them, or its rows.

    Raises:
        UnsupportedError: a scan without columns.
    """
    if not scan.schema.names:
        raise UnsupportedError(
            "a DuckDB relation needs at least one column, and the scan has none",
            table=scan.table_uri,
            remedy="name a column; count() of the scan gives the number of its rows.",
        )
    try:
        local = isinstance(scan.storage, LocalStorage)
        relation = _own_scan(scan, _files_of(scan), connection) if local else None
        if relation is not None:
            return relation
        relation = connection.from_arrow(dataset_of(scan))
    except UnsupportedError:
        relation = connection.from_arrow(scan.to_arrow())
    # A dataset has the columns of the filter too, after those of the scan.
    names = relation.columns[: len(scan.schema)]
    needed = names != relation.columns or any(map(_may_be_nan, scan.schema.types))
    return relation.project(_with_nan(scan.schema, names)) if needed else relation


def _may_be_nan(type: pa.DataType) -> bool:
    return bool(pa.types.is_float32(type) or pa.types.is_float64(type))


def _with_nan(schema: pa.Schema, names: Sequence[str]) -> str:
    """Columns in SQL, in the scan's order, those of floating-point numbers as ones that may hold NaN.

    Statistics of Parquet pass over NaN, which is greater than all numbers in DuckDB: by them it takes `x < 3` for true
    in all rows, and `x > 3` for false.  What pyarrow filters by them, or for DuckDB 1.4, lacks NaN too.
    """
    shown = []
    for type, name in zip(schema.types, names, strict=True):
        column = '"' + name.replace('"', '""') + '"'
        if _may_be_nan(type):
            kind = "FLOAT" if pa.types.is_float32(type) else "DOUBLE"
            column = f"CASE WHEN isnan({column}) THEN 'nan'::{kind} ELSE {column} END AS {column}"
        shown.append(column)
    return ", ".join(shown)


def _own_scan(
    scan: Scan, files: _ScannedFiles, connection: duckdb.DuckDBPyConnection
) -> duckdb.DuckDBPyRelation | None:
    """A scan of DuckDB's own over the files; None where its rows could be others.

    Measured (2,000,000 rows in 8 files, an average over a twentieth of them): 0.05 s of processor time; pyarrow's
    reading of the same files takes twice as long, with our file system or its own.
    """
    names = scan.schema.names
    if files.filter is not None or files.form is None or not names:
        return None
    paths = [str(Path(scan.storage.uri).absolute() / task.path) for task in files.tasks]
    if any(c in path for path in paths for c in _PATTERN):
        return None
    if len({n.lower() for n in names}) < len(names):
        return None
    import duckdb

    # DuckDB finds it by the name of the variable.
    hudi_scan_of_these_files = _NoRows.of(scan)
    listed = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
    none = ", ".join(["none"] * len(names))
    try:
        # One statement: for each relation on top of another DuckDB opens a file anew.
        rows = connection.sql(
            f"SELECT {_with_nan(scan.schema, names)} FROM read_parquet([{listed}], hive_partitioning = false) "
            f"UNION ALL SELECT {none} FROM hudi_scan_of_these_files"
        )
    except duckdb.Error:  # such as that of a connection that may not open files, or look at variables
        return None
    del hudi_scan_of_these_files
    same = list(map(str, rows.types)) == _types_in_duckdb(scan.schema, connection)
    return rows if same and rows.columns == names else None


class _NoRows(ds.InMemoryDataset):  # type: ignore[misc]
    """An empty dataset that has a scan, for which cleanings spare the files.

    DuckDB keeps it with every relation and result that is made of it.  Its column has no type, and so changes no types
    of a union; literal nulls would be left out of a plan with all that keeps the scan of a stream of results.
    """

    scan: Scan

    @classmethod
    def of(cls, scan: Scan) -> _NoRows:
        made = cls(pa.table({"none": pa.nulls(0)}))
        made.scan = scan
        return made


def _types_in_duckdb(schema: pa.Schema, connection: duckdb.DuckDBPyConnection) -> list[str]:
    """The types that columns have in DuckDB by way of Arrow."""
    found = _TYPES_IN_DUCKDB.get(schema)
    if found is None:
        _make_room(_TYPES_IN_DUCKDB)
        types = connection.from_arrow(schema.empty_table()).types
        found = _TYPES_IN_DUCKDB[schema] = list(map(str, types))
    return found


def _refused(scan: Scan, why: str) -> UnsupportedError:
    return UnsupportedError(f"this scan is no dataset of files: {why}", table=scan.table_uri, remedy=_REMEDY)


def paths_are_values(scan: Scan) -> bool:
    """Whether partition paths have the values of the partition columns as they are."""
    # Other key generators write dates in patterns.
    name = scan.snapshot.config.keygen_class
    return name is None or (is_provided(name) and kind_of(name) in ("SIMPLE", "COMPLEX", "NON_PARTITION"))


class _Forms:
    """Forms of the columns of a scan's files, checked against the scan.

    Footers with the same schema have the same form, and most files of a table have the same schema: Arrow is asked for
    the first of them only, of all scans that ask for the same columns.
    """

    def __init__(self, scan: Scan, *, footers: bool) -> None:
        self._scan = scan
        self._footers = footers
        self._asked: dict[tuple[object, ...], dict[bytes, str | None]] = {}

    def checked(self, task: ReadTask) -> tuple[str | None, bytes | None]:
        """The form in which a file has the columns that are asked for, and its footer as `_ScannedFiles` has it.

        There is no form where it lacks one, or has a nested one.

        Raises:
            UnsupportedError: it has another type for a column than the table has now, or other values than its path.
            MissingFileError, CorruptFileError: naming the file.
        """
        storage = self._scan.storage
        try:
            with reading(storage, task.path), storage.open_input(task.path) as source:
                footer = footer_bytes(source)
                other = _unlike_path(footer, task.constants)
                known = self._known(task)
                form = next((f for s, f in list(known.items()) if footer[: len(s)] == s), ...)
                if has_arrow_schema(footer):
                    form = self._form(task)
                elif form is ...:
                    _make_room(known)
                    form = known[schema_part(footer)] = self._form(task)
                odd = self._footers and any(contains(k, pa.types.is_floating) for k in task.needed.types)
                unbound = without_float_bounds(footer, task.path) if odd else None
        except (CorruptFileError, UnsupportedError) as e:
            raise e.at(table=storage.uri, file=e.file or task.path) from e.__cause__
        if other:
            raise _refused(self._scan, f"{task.path} has another value of {other} than its partition path")
        return form, unbound

    def _known(self, task: ReadTask) -> dict[bytes, str | None]:
        told = () if task.constants is None else tuple(task.constants.schema.names)
        if (task.held, told) not in self._asked:
            _make_room(_FORMS)
            asked = (tuple(self._scan.schema.names), task.needed, task.held, told)
            self._asked[task.held, told] = _FORMS.setdefault(asked, {})
        return self._asked[task.held, told]

    def _form(self, task: ReadTask) -> str | None:
        names = self._scan.schema.names
        file = open_parquet(self._scan.storage, task.path, arrow_types=True)  # as datasets have them
        try:
            own: pa.Schema = file.schema_arrow
            columns = map(file.schema.column, range(len(file.schema)))
            # Text, as columns of a closed file may not be looked at.
            stored = {c.path: (c.physical_type, str(c.logical_type)) for c in columns if c.path in names}
        finally:
            file.close(force=True)
        for field in task.needed:
            index = own.get_field_index(field.name)
            if index < 0 and field.name in task.held:
                raise lacks_column(field.name).at(table=self._scan.table_uri, file=task.path)
            if index < 0 and task.constants is not None and field.name in task.constants.schema.names:
                raise _refused(self._scan, f"column {field.name} is in the partition paths alone")
            if index >= 0 and own.field(index).type != field.type:
                raise _refused(self._scan, f"{task.path} has column {field.name} as {own.field(index).type}")
        return str([stored[n] for n in names]) if len(stored) == len(names) else None


def _unlike_path(footer: memoryview, constants: pa.RecordBatch | None) -> str:
    """A column in which a file has, by its statistics, another value than its partition path; "" for none.

    A global index may have left rows in their partition as the column changed.  Besides, null has the path of other
    values too, and text may look encoded, or like a level in Hive style, and is neither.
    """
    told: dict[str, pa.Scalar] = (
        {} if constants is None else {n: constants.column(n)[0] for n in constants.schema.names}
    )
    for group in row_groups(footer, told) if told else ():
        for name, value in told.items():
            found = group.columns.get(name)
            if found is not None and not found.holds_only(value, group.num_rows):
                return name
    return ""
