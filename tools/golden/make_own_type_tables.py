"""Make golden tables of version 9 with columns of Apache Hudi 1.2's own types: vectors and blobs.

    python tools/golden/make_own_type_tables.py 1.2.0 OUT [scenario ...]

Each scenario gives `<scenario>.zip` and `<scenario>.expected/` as tests/golden/README.md describes them.  Runs in an
environment with PySpark 3.5; the bundle comes from the cache of tools/interop.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from golden.make_merge_tables import COMMON, EVENT, Maker, make

COW = {"hoodie.datasource.write.table.type": "COPY_ON_WRITE"}
PARQUET = {"hoodie.logfile.data.block.format": "parquet"}
REFERENCE = "struct<external_path:string,`offset`:bigint,length:bigint,managed:boolean>"


def _begin(t: Maker, columns: str) -> None:
    for key, value in {**COMMON, **t.options}.items():
        t.spark.sql(f"SET {key}={value}")
    kind = "cow" if t.options["hoodie.datasource.write.table.type"] == "COPY_ON_WRITE" else "mor"
    t.spark.sql(f"DROP TABLE IF EXISTS {t.name}")
    t.sql(
        f"CREATE TABLE {t.name} (id string, ts bigint, {columns}, part string) USING hudi PARTITIONED BY (part) "
        f"TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField = 'ts') LOCATION '{t.path}'"
    )


def _insert(t: Maker, *rows: tuple[str, int, str]) -> None:
    """Rows of key, ordering value and the text of the others."""
    given = ", ".join(f"('{key}', {ts}L, {values}, 'p')" for key, ts, values in rows)
    t.sql(f"INSERT INTO {t.name} VALUES {given}")


def _update(t: Maker, key: str, ts: int, assigned: str) -> None:
    t.sql(f"UPDATE {t.name} SET ts = {ts}L, {assigned} WHERE id = '{key}'")


def _vector(n: int) -> str:
    floats = f"array(cast({n}.5 as float), cast(0.1 as float), cast('-Infinity' as float))"
    return f"{floats}, array({n}.25D, 0.1D), array(1Y, -128Y, 127Y, {n}Y, 0Y)"


def _vectors(t: Maker) -> None:
    """Rows with and without vectors, in base files and in logs."""
    _begin(t, "v VECTOR(3), d VECTOR(2, DOUBLE), i VECTOR(5, INT8)")
    _insert(
        t,
        ("k00", 1, _vector(0)),
        ("k01", 1, _vector(1)),
        ("k02", 1, "null, null, null"),
        ("k03", 1, _vector(3)),
    )
    _update(t, "k01", 2, "v = array(cast(7 as float), cast(8 as float), cast(9 as float)), d = null")
    _update(t, "k02", 2, "i = array(9Y, 8Y, 7Y, 6Y, 5Y)")
    _insert(t, ("k04", 1, _vector(4)))


def _blobs(t: Maker) -> None:
    """Blobs that are stored in the table, and outside of it."""
    _begin(t, "b BLOB")
    within = "named_struct('type', 'INLINE', 'data', cast('{}' as binary), 'reference', cast(null as {}))"
    outside = (
        "named_struct('type', 'OUT_OF_LINE', 'data', cast(null as binary), 'reference', named_struct("
        "'external_path', '/files/{}', 'offset', 3L, 'length', 4L, 'managed', false))"
    )
    _insert(
        t, ("k00", 1, within.format("zero", REFERENCE)), ("k01", 1, outside.format("one")), ("k02", 1, "null"),
        ("k03", 1, within.format("", REFERENCE)),
    )  # fmt: skip
    _update(t, "k01", 2, "b = " + within.format("now within", REFERENCE))
    _update(t, "k00", 2, "b = " + outside.format("two"))


SCENARIOS = {
    "vectors_cow": (_vectors, {**EVENT, **COW}, "1.2.0"),
    "vectors_mor": (_vectors, EVENT, "1.2.0"),
    "vectors_parquet_logs": (_vectors, {**EVENT, **PARQUET}, "1.2.0"),
    "blobs_mor": (_blobs, EVENT, "1.2.0"),
}


if __name__ == "__main__":
    make(Maker, SCENARIOS)
