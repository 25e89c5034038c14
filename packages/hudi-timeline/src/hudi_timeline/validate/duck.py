"""SQL without a JVM: DuckDB, an optional package.

The two states are streamed into tables of DuckDB's own, which moves what does not fit in memory to disk.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from hudi_format.errors import UnsupportedError
from hudi_format.value_text import to_text
from hudi_timeline.scan.result import Scan

BEFORE, AFTER = "hudi_before", "hudi_after"
_PLAIN = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer, pa.types.is_boolean, pa.types.is_floating,
          pa.types.is_date, pa.types.is_decimal)  # fmt: skip


def connect(what: str) -> Any:
    """A private database in memory.

    Args:
        what: needs it.

    Raises:
        UnsupportedError: DuckDB is not installed.
    """
    try:
        import duckdb
    except ImportError:
        raise UnsupportedError(
            f"{what} needs DuckDB where there is no Spark, and it is not installed",
            remedy='pip install "hudi-timeline[sql]".',
        ) from None
    # Nothing of this machine but what is given to it; and no progress bar of its own.
    return duckdb.connect(":memory:", config={"autoinstall_known_extensions": "false"})


class DuckQueries:
    """SQL over the states before and after a write; see `validate.sql.Queries`."""

    before, after = BEFORE, AFTER

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def check(self, sql: str) -> None:
        self._run(f"SELECT * FROM ({sql}\n) LIMIT 0")

    def compare(self, first: str, second: str) -> tuple[int, int, int]:
        def rows(sql: str) -> int:
            return int(self._run(f"SELECT count(*) FROM ({sql}\n)").column(0)[0].as_py())

        return rows(first), rows(second), rows(f"({first}\n) INTERSECT ({second}\n)")

    def values(self, sql: str) -> list[tuple[str | None, ...]]:
        columns = [_texts(c.combine_chunks()) for c in self._run(f"SELECT * FROM ({sql}\n) LIMIT 2").columns]
        return list(zip(*columns, strict=True)) if columns else []

    def _run(self, sql: str) -> pa.Table:
        return fetched(self._connection, sql)


def fetched(connection: Any, sql: str) -> pa.Table:
    """The rows of a query.

    Raises:
        ValueError: DuckDB's refusal, in one line.
    """
    import duckdb

    try:
        return pa.RecordBatchReader.from_stream(connection.sql(sql)).read_all()
    except duckdb.Error as e:
        raise ValueError(str(e).strip().splitlines()[0]) from e


def _texts(column: pa.Array) -> list[str | None]:
    """Values as Java's toString has them, which expected values are compared with."""
    if pa.types.is_decimal(column.type) and column.type.scale == 0:
        # Sums of whole numbers; Spark has them as long.
        return [None if v is None else str(int(v)) for v in column.to_pylist()]
    if any(known(column.type) for known in _PLAIN):
        return to_text(column).to_pylist()  # type: ignore[no-any-return]
    return [None if v is None else str(v) for v in column.to_pylist()]


@contextmanager
def duck_queries(before: Scan | pa.Table, after: Scan | pa.Table) -> Iterator[DuckQueries]:
    """SQL over two states, given away again at the end.

    Raises:
        UnsupportedError: DuckDB is not installed.
    """
    connection = connect("a SQL validator")
    try:
        with tempfile.TemporaryDirectory(prefix="hudi-sql-") as folder:
            connection.execute("SET temp_directory = ?", [folder])
            for name, rows in ((BEFORE, before), (AFTER, after)):
                source = rows if isinstance(rows, pa.Table) else rows.to_batches()
                connection.register("incoming", source)
                connection.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM incoming")
                connection.unregister("incoming")
            # From here on SQL of the user's runs: it sees these tables, and no file of this machine.
            connection.execute("SET enable_external_access = false")
            yield DuckQueries(connection)
    finally:
        connection.close()


__all__ = ["AFTER", "BEFORE", "DuckQueries", "connect", "duck_queries"]
