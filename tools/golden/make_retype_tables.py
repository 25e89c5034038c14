"""Make golden tables whose base file and log are older than changes of their columns' types, with Apache Hudi.

    python tools/golden/make_retype_tables.py 0.15.0|1.0.2|1.2.0 OUT [scenario ...]

All changes that schema on read permits, one column each, and some of them inside of structs, lists and maps.  Each
scenario gives `<scenario>.zip` and `<scenario>.expected/` as tests/golden/README.md describes them.  Runs in an
environment with PySpark 3.5; the bundle comes from the cache of tools/interop.
"""

from __future__ import annotations

import sys
from datetime import date
from decimal import Decimal
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from golden.make_merge_tables import COMMON, SCHEMA_ON_READ, Maker, make

_WIDE = "decimal(30,5)"
_INTS = [7, -(1 << 31), (1 << 31) - 1, None]
_LONGS = [(1 << 24) + 1, -(1 << 53) - 1, (1 << 53) + 1, None]
_FLOATS = [0.1, 1e10, -3.4028235e38, None]
_DOUBLES = [0.1, 1e23, 12345.678, None]
_DECIMALS = [Decimal("12345678.90"), Decimal("-0.05"), Decimal("0.00"), None]
_FRACTIONS = [0.1, 12.5, -3.25, None]
# Type before, type afterwards, values.
RETYPES: tuple[tuple[str, str, list[object]], ...] = (
    *(("int", to, _INTS) for to in ("bigint", "float", "double", "string", _WIDE)),
    *(("bigint", to, _LONGS) for to in ("float", "double", "string", _WIDE)),
    *(("float", to, _FLOATS) for to in ("double", "string")),
    ("float", _WIDE, _FRACTIONS),
    ("double", "string", _DOUBLES),
    ("double", _WIDE, _FRACTIONS),
    *(("decimal(10,2)", to, _DECIMALS) for to in ("decimal(14,3)", "string")),
    ("date", "string", [date(2024, 2, 29), date(1931, 1, 1), date(1969, 12, 31), None]),
    ("string", "date", ["2024-02-29", "1969-12-31", "2024-2-9", None]),
    ("string", _WIDE, ["12.5", "-0.00001", "1e3", None]),
    ("string", "binary", ["abc", "", "\u00e4", None]),
    ("binary", "string", [b"abc", b"", "\u00e4".encode(), None]),
)
# One of each way that a value goes: the history of the schema grows with the square of the changes.
NESTED = tuple(
    r for r in RETYPES
    if (r[0], r[1]) in {
        ("int", "string"), ("bigint", _WIDE), ("float", "double"), ("float", "string"), ("double", _WIDE),
        ("decimal(10,2)", "decimal(14,3)"), ("date", "string"), ("string", "date"), ("string", "binary"),
    }
)  # fmt: skip

# Of values with more digits than the decimal has.
ROUNDED: tuple[tuple[str, str, list[object]], ...] = (
    ("double", _WIDE, [0.000015, -1e-9, 12345.678905, None]),
    ("float", _WIDE, [0.125, -0.0000051, 1e-30, None]),
    ("string", _WIDE, ["-0.000005", "1.23456499", "1E-7", None]),
)


def _retypes(t: Maker) -> tuple[tuple[str, str, list[object]], ...]:
    # Of bytes in a log 0.15.0 makes the text of a Java object.
    return RETYPES[:-1] if t.hudi == "0.15.0" else RETYPES


def _begin(t: Maker, ddl: str, values: list[list[tuple[object, ...]]]) -> None:
    """Eight rows, of which the log replaces four; each value is in both."""
    ddl = f"id string, ts long, part string, {ddl}"
    t.write(ddl, *((f"k{n}", 100, "p", *values[n % 4]) for n in range(8)), operation="insert")
    t.write(ddl, *((f"k{n}", 200, "p", *values[(n + 1) % 4]) for n in range(4)))
    t.spark.sql(f"DROP TABLE IF EXISTS {t.name}")
    t.spark.sql(f"CREATE TABLE {t.name} USING hudi LOCATION '{t.path}'")
    for key, value in {**COMMON, SCHEMA_ON_READ: "true"}.items():
        if "table.type" not in key:
            t.spark.sql(f"SET {key}={value}")
    t.read_options = {SCHEMA_ON_READ: "true"}


def _flat(t: Maker) -> None:
    t.spark.conf.set("spark.sql.parquet.enableVectorizedReader", "true")
    retypes = _retypes(t)
    ddl = ", ".join(f"c{n:02d} {old}" for n, (old, _, _) in enumerate(retypes))
    _begin(t, ddl, [tuple(v[n] for _, _, v in retypes) for n in range(4)])
    for n, (_, new, _) in enumerate(retypes):
        t.sql(f"ALTER TABLE {t.name} ALTER COLUMN c{n:02d} TYPE {new}")


def _nested(t: Maker) -> None:
    t.spark.conf.set("spark.sql.parquet.enableVectorizedReader", "false")  # it reads no nested changes
    ddl = ", ".join(
        f"s{n:02d} struct<q: {old}, k: int>, l{n:02d} array<{old}>, m{n:02d} map<string, {old}>"
        for n, (old, _, _) in enumerate(NESTED)
    )

    def row(at: int) -> tuple[object, ...]:
        out: list[object] = []
        for _, _, v in NESTED:
            out += [(v[at], at), [x for x in (v[at], v[at - 1]) if x is not None], {"a": v[at]}]
        return tuple(out)

    _begin(t, ddl, [row(n) for n in range(4)])
    for n, (_, new, _) in enumerate(NESTED):
        for inside in (f"s{n:02d}.q", f"l{n:02d}.element", f"m{n:02d}.value"):
            t.sql(f"ALTER TABLE {t.name} ALTER COLUMN {inside} TYPE {new}")


def _rounded(t: Maker) -> None:
    t.spark.conf.set("spark.sql.parquet.enableVectorizedReader", "true")
    _begin(
        t,
        ", ".join(f"c{n} {old}" for n, (old, _, _) in enumerate(ROUNDED)),
        [tuple(v[n] for _, _, v in ROUNDED) for n in range(4)],
    )
    for n, (_, new, _) in enumerate(ROUNDED):
        t.sql(f"ALTER TABLE {t.name} ALTER COLUMN c{n} TYPE {new}")


def _rounded_nested(t: Maker) -> None:
    t.spark.conf.set("spark.sql.parquet.enableVectorizedReader", "false")
    _begin(
        t,
        ", ".join(f"s{n} struct<q: {old}, k: int>" for n, (old, _, _) in enumerate(ROUNDED)),
        [tuple((v[n], n) for _, _, v in ROUNDED) for n in range(4)],
    )
    for n, (_, new, _) in enumerate(ROUNDED):
        t.sql(f"ALTER TABLE {t.name} ALTER COLUMN s{n}.q TYPE {new}")


_ORDER = {"hoodie.datasource.write.precombine.field": "ts"}
SCENARIOS = {
    "retyped": (_flat, _ORDER, "0.15.0 1.0.2 1.2.0"),
    "retyped_rounded": (_rounded, _ORDER, "0.15.0 1.0.2 1.2.0"),
    "retyped_rounded_nested": (_rounded_nested, _ORDER, "0.15.0 1.0.2 1.2.0"),
    "retyped_nested": (_nested, _ORDER, "0.15.0 1.0.2 1.2.0"),
}


if __name__ == "__main__":
    make(Maker, SCENARIOS)
