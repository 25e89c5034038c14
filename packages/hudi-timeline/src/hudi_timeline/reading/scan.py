"""Scan: the result of a read, planned at first use.

It stands for one state of the table: what is committed after it was made is not in it.
"""

from __future__ import annotations

import operator
import warnings as python_warnings
from collections import deque
from collections.abc import Collection, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudi_format._checks import text_list
from hudi_format.arrow.arrays import put_together
from hudi_format.errors import InvalidOptionError, UnsupportedError
from hudi_format.fork_safe import Owned, ProcessLock
from hudi_format.storage.parallel import side_by_side
from hudi_format.storage.protocol import Storage
from hudi_timeline.display.html_view import facts_view, schema_rows, titled
from hudi_timeline.reading.filters import Condition, all_of, make_predicate, missing_column
from hudi_timeline.reading.plan import BATCH_ROWS, CHANGES, ScanPlan, ScanSource
from hudi_timeline.reading.stability import register_read

if TYPE_CHECKING:  # planning needs none of these at run time
    import duckdb
    import pandas
    import polars
    import pyarrow.dataset

    from hudi_timeline.file_system_view.snapshot import TableSnapshot
    from hudi_timeline.reading.explain import Explanation
    from hudi_timeline.reading.incremental.cdc_task import ChangeTask
    from hudi_timeline.reading.stability import Stability
    from hudi_timeline.reading.task import ReadTask

# Measured (2 cores, 8 files, 2,000,000 rows of 17 columns): two files at a time, each decoded by Arrow's own
# threads, takes 0.28 s; one at a time 0.34 s, four 0.43 s, two without Arrow's threads 0.30 s.
MOST_LOCAL_FILES = 8
REMOTE_FILES = 16
# Releases of Polars before it pass over conditions that they cannot give to a source.
_POLARS = (1, 24)
# Batches that are read ahead of the consumer.
AHEAD = 2


class Scan:
    """Rows of a table, read on demand.

    While it lives, cleanings of this process spare the files that it reads.

    It pickles, planned or not, and stands for the same state of the table in the other process.

    `to_arrow`, `to_batches`, `to_pandas` and `to_polars` read them; DuckDB, Polars and others take the scan
    itself, by the Arrow stream protocol.  `to_polars_lazy`, `to_duckdb` and `to_pyarrow_dataset` let other engines ask
    for the columns and rows that their queries need; `head`, `select` and `count` are for a look, and a scan is an
    iteration over rows as dicts.
    """

    def __init__(self, storage: Storage, source: ScanSource, columns: Sequence[str] | None = None) -> None:
        """Scan of a source.

        Args:
            columns: names of the columns to give, in that order; None for all.

        Raises:
            MissingColumnError: a column that there is not, with the nearest name.
            ValueError: a column that is named twice.
        """
        self._storage = storage
        self._source = source
        self._lock = ProcessLock()
        self._plan: ScanPlan | None = None
        self.schema: pa.Schema = source.schema if columns is None else _selected(source.schema, columns)
        self.table_uri = storage.uri
        self.as_of = source.snapshot.instant
        register_read(self)

    @property
    def storage(self) -> Storage:
        """Storage of the table."""
        return self._storage

    @property
    def snapshot(self) -> TableSnapshot:
        """The snapshot being read."""
        return self._source.snapshot

    @property
    def plan(self) -> ScanPlan:
        """The plan, made at the first call by listing storage.

        Raises:
            StaleSnapshotError: files were cleaned, or commits undone, since the snapshot was opened.
            MissingFileError, CorruptFileError: a committed file is not there, or not as it was written.
        """
        with self._lock.threads:
            if self._plan is None:
                with self.snapshot.of_its_state():
                    self._plan = self._source.plan()
                for text in self._plan.warnings:
                    python_warnings.warn(text, stacklevel=3)
            return self._plan

    @property
    def files(self) -> pa.Table:
        """Files to read, with the columns of `scan.plan.FILES_SCHEMA`."""
        return self.plan.files

    @property
    def filter_text(self) -> str | None:
        """Text of the filter, if any, for other engines; `reading.filters.conditions` reads it."""
        return None if self._source.predicate is None else self._source.predicate.text

    @property
    def is_filtered(self) -> bool:
        """Whether the scan was made with a filter."""
        return self._source.predicate is not None

    @property
    def complete(self) -> bool:
        """False where rows of the query are no longer available."""
        return self.plan.complete

    @property
    def checkpoint(self) -> str:
        """Checkpoint: `begin` of the next incremental read, without missing a commit.

        Of an incremental read with USE_TRANSITION_TIME it is a completion time, else an instant time.  It lies
        before a commit that is still open, so the next read may give some rows again, and never too few.
        """
        return self._source.checkpoint

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.plan.warnings

    def plan_files(self) -> list[ReadTask] | list[ChangeTask]:
        """One picklable task per file, or per commit and file group.

        `task.to_batches()` reads it, here or in another process; `task.size` is about its bytes.
        """
        return self._tasks(self.schema)

    def _tasks(self, schema: pa.Schema) -> list[ReadTask] | list[ChangeTask]:
        if self.plan.kind == CHANGES:
            from hudi_timeline.reading.incremental.cdc_task import change_tasks

            return change_tasks(self._storage, self.plan, schema, self._source.predicate)
        from hudi_timeline.reading.task import make_tasks

        return make_tasks(self._storage, self.plan, schema, self._source.predicate)

    def to_arrow(self) -> pa.Table:
        """All rows, in memory.

        Raises:
            StaleSnapshotError: a file was cleaned, or its commit undone, since the scan was made.
            MissingFileError, CorruptFileError, SchemaError: naming the file; nothing is left out.
        """
        tasks = self.plan_files()
        if not tasks:
            return self.schema.empty_table()
        if len(tasks) == 1:
            with self.snapshot.of_its_state():
                return tasks[0].to_table()
        from hudi_timeline.display.progress import counted

        tables = []
        with self.snapshot.of_its_state(), counted("read", len(tasks)) as shown:
            for table in self._tables(tasks):
                tables.append(table)
                shown.advance(len(tables), len(tasks))
        return put_together(tables, self.schema)

    def _tables(self, tasks: Sequence[ReadTask | ChangeTask]) -> Iterator[pa.Table]:
        """Rows of tasks, of some at once."""
        most = min(pa.cpu_count(), MOST_LOCAL_FILES) if self._storage.is_local else REMOTE_FILES
        return side_by_side(lambda t: t.to_table(), tasks, most, "hudi-read")

    def to_batches(self, batch_rows: int = BATCH_ROWS) -> pa.RecordBatchReader:
        """Stream of the rows, file by file, with bounded memory.

        Closing it, or dropping it, ends the reading.
        """
        _whole_number(batch_rows, "batch_rows", least=1)
        tasks = self.plan_files()
        return pa.RecordBatchReader.from_batches(self.schema, self.stream(tasks, batch_rows))

    def stream(self, tasks: Sequence[ReadTask | ChangeTask], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of some of the scan's tasks, with one batch or two read ahead."""
        batches = self._batches(tasks, batch_rows)
        # One thread reads ahead; Arrow's threads decode the columns of each batch.
        pool = ThreadPoolExecutor(1, thread_name_prefix="hudi-read")
        ahead: deque[Future[pa.RecordBatch | None]] = deque()
        begun = Owned()
        try:
            while True:
                if not begun.here:  # whose thread there is none to wait for
                    raise UnsupportedError(
                        "this stream of rows was begun in the process that this one is a fork of",
                        table=self.table_uri,
                        remedy="read the scan in this process, e.g. by to_batches(): it begins anew.",
                    )
                while len(ahead) < AHEAD:
                    ahead.append(pool.submit(next, batches, None))
                batch = ahead.popleft().result()
                if batch is None:
                    return
                if batch.num_rows:
                    yield batch
        finally:
            if begun.here:
                pool.shutdown(wait=True, cancel_futures=True)
                batches.close()

    def _batches(
        self, tasks: Sequence[ReadTask | ChangeTask], batch_rows: int
    ) -> Generator[pa.RecordBatch, None, None]:
        with self.snapshot.of_its_state():
            for task in tasks:
                yield from task.to_batches(batch_rows)

    def count(self) -> int:
        """Number of rows; without a filter, from the file footers."""
        if self.plan.kind == CHANGES:
            tasks = self._tasks(pa.schema([self._source.schema.field("op")]))
        else:
            tasks = self._tasks(pa.schema([]))
        with self.snapshot.of_its_state():
            return sum(table.num_rows for table in self._tables(tasks))

    def __len__(self) -> int:
        """Number of rows, as `count`."""
        return self.count()

    def __bool__(self) -> bool:
        return True  # a scan is no list: whether it has rows is a read

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Rows as dicts, one after the other."""
        with self.to_batches() as reader:
            for batch in reader:
                yield from batch.to_pylist()

    def head(self, n: int = 5) -> pa.Table:
        """The first rows, of no more files than it takes."""
        n = _whole_number(n, "the number of rows")
        batches, left = [], n
        with self.to_batches(max(1, min(n, BATCH_ROWS))) as reader:
            for batch in reader:
                if left <= 0:
                    break
                batches.append(batch.slice(0, min(left, batch.num_rows)))
                left -= batch.num_rows
        return pa.Table.from_batches(batches, self.schema)

    def limit(self, n: int) -> pa.Table:
        """Alias of `head`."""
        return self.head(n)

    def select(self, columns: str | Sequence[str]) -> Scan:
        """The same rows with these columns alone.

        Raises:
            MissingColumnError: a column that there is not, with the nearest name.
        """
        return self.narrowed([columns] if isinstance(columns, str) else columns, None)

    def narrowed(self, columns: Sequence[str] | None, filter: Condition | None) -> Scan:
        """The scan with fewer columns, and with those of its rows that pass a further filter.

        Raises:
            MissingColumnError, InvalidOptionError, SchemaError: as of `HudiTable.read`.
        """
        source, plan = self._source, self._plan
        if filter is not None:
            further = make_predicate(filter, source.schema)
            predicates = [p for p in (source.predicate, further) if p is not None]
            plan = None if source.prunes_by(further.columns) else plan
            source = replace(source, predicate=all_of(predicates, source.schema))  # type: ignore[type-var]
        narrowed = Scan(self._storage, source, self.schema.names if columns is None else columns)
        narrowed._plan = plan
        return narrowed

    def prunes_by(self, columns: Collection[str]) -> bool:
        """Whether a further filter on these columns may leave out files, not rows of them alone."""
        return self._source.prunes_by(columns)

    def of_file_groups(self, groups: Collection[tuple[str, str]]) -> Scan:
        """The rows of some file groups, of a snapshot query.

        Args:
            groups: partition path and file id of each; no other partition is listed.
        """
        source: Any = self._source
        return Scan(self._storage, replace(source, groups=frozenset(groups)), self.schema.names)

    def to_pandas(self, **how: Any) -> pandas.DataFrame:
        """All rows as a pandas frame; pandas must be installed.

        Args:
            how: of `pyarrow.Table.to_pandas`, such as `types_mapper`.
        """
        try:
            return self.to_arrow().to_pandas(**how)
        except ModuleNotFoundError as e:
            raise ImportError("to_pandas() needs pandas: pip install pandas") from e

    def to_polars(self) -> polars.DataFrame:
        """All rows as a Polars frame; Polars must be installed."""
        try:
            import polars
        except ImportError as e:
            raise ImportError("to_polars() needs Polars: pip install polars") from e
        frame = polars.from_arrow(self.to_arrow())
        if not isinstance(frame, polars.DataFrame):
            raise TypeError(f"Polars gave a {type(frame).__name__}")
        return frame

    def to_polars_lazy(self) -> polars.LazyFrame:
        """The rows as a Polars LazyFrame, which reads only what its query needs."""
        try:
            import polars
        except ImportError as e:
            raise ImportError("to_polars_lazy() needs Polars: pip install polars") from e
        if tuple(map(int, polars.__version__.split(".")[:2])) < _POLARS:
            needed = ".".join(map(str, _POLARS))
            raise ImportError(
                f"to_polars_lazy() needs Polars {needed} or newer, and {polars.__version__} is installed: "
                "pip install -U polars"
            )
        from polars.io.plugins import register_io_source

        from hudi_timeline.reading.other_engines import PolarsSource

        source = PolarsSource(self)
        return register_io_source(source, schema=source.schema)

    def to_pyarrow_dataset(self) -> pyarrow.dataset.Dataset:
        """The base files of the scan as a pyarrow dataset, which reads only what is asked of it.

        Its columns are those of the scan, and those of the scan's filter, which it applies.  A filter given to the
        dataset leaves row groups out by the statistics of all columns but those of floating-point numbers, which pass
        over NaN.  `read(filter=...)` leaves them out by these too.

        To read it as a stream use `to_batches`: `scanner(...).to_reader()` keeps Python's lock while it begins, and may
        wait for ever for a thread of Arrow's that needs it to open a file.

        Raises:
            UnsupportedError: rows that are not in the files as they are, such as those of log files.
        """
        from hudi_timeline.reading.other_engines import dataset_of

        return dataset_of(self)

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """The rows as a DuckDB relation, which reads only the columns and rows that its query needs.

        Without a filter of the scan DuckDB reads local base files itself, where it finds in them what the scan does.
        Where the scan is no dataset of files (log files) all of its rows are read into memory first.

        Args:
            connection: to make it in; DuckDB's default one if not given.
        """
        try:
            import duckdb
        except ImportError as e:
            raise ImportError("to_duckdb() needs DuckDB: pip install duckdb") from e
        from hudi_timeline.reading.other_engines import relation_of

        if connection is not None and not isinstance(connection, duckdb.DuckDBPyConnection):
            raise TypeError(f"connection must be one of duckdb.connect(), not {type(connection).__name__}")
        return relation_of(self, duckdb.default_connection() if connection is None else connection)

    @property
    def stability(self) -> Stability:
        """Stability of the result, with the pending commits that could change it."""
        from hudi_timeline.reading.stability import stability_of

        return stability_of(self._source)

    def explain(self, *, prove: bool = False, verbose: bool = False) -> Explanation:
        """Files read or skipped, with reasons; with a filter, also row groups.

        Args:
            prove: also read all that the filter let be left out, and count rows in it that pass the filter: the
                column `missed`, which is 0 where data skipping is right.
            verbose: name each older version of a file in text and HTML, too, and not only how many there are; the
                column `older` of `.files` always tells them.
        """
        from hudi_timeline.reading.explain import explain, missed_rows

        tasks = self.plan_files()
        if not prove or self._source.predicate is None:
            return explain(self._source, tasks, verbose=verbose)
        needed = pa.schema([self._source.schema.field(n) for n in self._source.predicate.columns])
        every = Scan(self._storage, replace(self._source, predicate=None), needed.names)  # type: ignore[type-var]
        missed = missed_rows(self._source, tasks, every.plan_files())
        return explain(self._source, tasks, missed, verbose=verbose)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_batches().__arrow_c_stream__(requested_schema)

    def __getstate__(self) -> dict[str, object]:
        return {k: v for k, v in vars(self).items() if k != "_lock"}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state, _lock=ProcessLock())
        register_read(self)

    def __repr__(self) -> str:
        if self._plan is None:
            return f"Scan({self._source.title}; not planned yet; columns: {', '.join(self.schema.names)})"
        return f"Scan({self._source.title}; {self._plan.files.num_rows} files)"

    def _repr_html_(self) -> str:
        # Nothing is read for it: a look at a variable must not take what a query takes.
        facts: list[tuple[str, object]] = [("table", self.table_uri), ("as of", self.as_of)]
        if self._plan is not None:
            files = self._plan.files
            facts += [("files", files.num_rows), ("warnings", self._plan.warnings)]
        facts.append(("columns", schema_rows(self.schema)))
        return titled(f"Scan: {self._source.title}", facts_view(facts))


def _selected(schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    fields = []
    wanted = [columns] if isinstance(columns, str) else columns
    names = text_list("columns", wanted)
    if len(names) < len(wanted):
        raise TypeError(f"columns must be names of columns, and one is None: {list(columns)}")
    for name in names:
        index = schema.get_field_index(name)
        if index < 0:
            raise missing_column(name, schema)
        fields.append(schema.field(index))
    if len({f.name for f in fields}) < len(fields):
        raise InvalidOptionError(
            f"a column is named twice in {list(columns)}", remedy="name each column once.", option="columns"
        )
    return pa.schema(fields)


def _whole_number(value: object, what: str, *, least: int = 0) -> int:
    """An argument that must be a whole number.

    Raises:
        TypeError, ValueError: it is none, or below the least.
    """
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{what} must be a whole number, not {type(value).__name__}: {value!r:.80}") from None
    if number < least:
        raise ValueError(f"{what} must not be below {least}, and is {number}")
    return number
