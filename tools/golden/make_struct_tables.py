"""Make golden tables whose files are older than every column inside of a struct, with Apache Hudi.

    python tools/golden/make_struct_tables.py 0.15.0|1.0.2|1.2.0 OUT [scenario ...]

Each scenario gives `<scenario>.zip` and `<scenario>.expected/` as tests/golden/README.md describes them.  Runs in an
environment with PySpark 3.5; the bundle comes from the cache of tools/interop.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from golden.make_merge_tables import COMMON, SCHEMA_ON_READ, Maker, make

DDL = (
    "id string, ts long, part string, s struct<a: int, b: string>, l array<struct<a: int>>, "
    "t struct<u: struct<a: int>, k: int>"
)


def _replaced(t: Maker) -> None:
    """Every column of a struct goes, and another comes; base files and log blocks are older, newer ones follow."""

    def r(key: str, ts: int, n: int | None) -> tuple[object, ...]:
        if n is None:
            return key, ts, "p", None, None, None
        return key, ts, "p", (n, "b"), [(n,)], ((n,), n)

    t.spark.conf.set("spark.sql.parquet.enableVectorizedReader", "false")  # it reads no nested changes
    t.write(
        DDL, r("k00", 100, 0), r("k01", 100, 1), r("k02", 100, None), r("k03", 100, 3), operation="insert"
    )
    if t.options["hoodie.datasource.write.table.type"] == "MERGE_ON_READ":
        t.write(DDL, r("k00", 200, 10), r("k01", 200, None))
    t.spark.sql(f"DROP TABLE IF EXISTS {t.name}")
    t.spark.sql(f"CREATE TABLE {t.name} USING hudi LOCATION '{t.path}'")
    for key, value in {**COMMON, SCHEMA_ON_READ: "true"}.items():
        if "table.type" not in key:
            t.spark.sql(f"SET {key}={value}")
    t.spark.sql("SET hoodie.datasource.write.schema.allow.auto.evolution.column.drop=true")
    t.read_options = {SCHEMA_ON_READ: "true"}
    for text in (
        "ADD COLUMNS (s.c string)", "DROP COLUMN s.a", "DROP COLUMN s.b",
        "ADD COLUMNS (t.u.c int)", "DROP COLUMN t.u.a",
    ):  # fmt: skip
        t.sql(f"ALTER TABLE {t.name} {text}")
    t.sql(f"UPDATE {t.name} SET s = named_struct('c', 'new'), ts = 300 WHERE id = 'k03'")


SCENARIOS = {
    "struct_replaced_mor": (
        _replaced,
        {"hoodie.datasource.write.precombine.field": "ts"},
        "0.15.0 1.0.2 1.2.0",
    ),
    "struct_replaced_cow": (
        _replaced,
        {
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
        },
        "0.15.0 1.0.2",
    ),
}


if __name__ == "__main__":
    make(Maker, SCENARIOS)
