"""Filters on columns of each type: Apache Hudi leaves no file out that has a row of the answer, by our statistics."""

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_format.parquet.row_groups import ColumnChunk
from hudi_timeline import HudiTable
from interop import ours

WRITE = "hoodie.datasource.write."
OPTIONS = {
    "hoodie.table.name": "t",
    WRITE + "recordkey.field": "id",
    WRITE + "precombine.field": "ts",
    WRITE + "keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
}
SKIPPING = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
WITHOUT = dict.fromkeys(SKIPPING, "false")
MOMENT, DAY = dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.date(2020, 1, 1)
# Types, and the value that stands for n.
TYPES = {
    "many": (pa.decimal128(38, 10), lambda n: Decimal(n).scaleb(17) + Decimal("0.0000000001")),
    "fine": (pa.decimal128(38, 20), lambda n: Decimal(n) + Decimal("1E-20")),
    "small": (pa.decimal128(9, 2), lambda n: Decimal(n) / 4),
    "us": (pa.timestamp("us", "UTC"), lambda n: MOMENT + dt.timedelta(microseconds=n)),
    "ms": (pa.timestamp("ms", "UTC"), lambda n: MOMENT + dt.timedelta(milliseconds=n)),
    "day": (pa.date32(), lambda n: DAY + dt.timedelta(days=n)),
    "raw": (pa.binary(), lambda n: bytes([n + 100])),
    "fixed": (pa.binary(3), lambda n: bytes([n + 100]) * 3),
    "n": (pa.int32(), lambda n: n),
}
FILES = ("abc", "de", "fgh")
FLOATS = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("x", pa.float64()), ("y", pa.float32())])
FLOAT_FILES = (
    {"a": 1.5, "b": 2.5},
    {"c": 1.5, "d": 2.5, "e": 3.5},
    {"f": math.nan, "g": -4.0},
    {"h": None, "i": math.inf},
)
OF_FLOATS = {
    "x = 2.5": "bd",
    "x = 2.5 AND ts = 1": "bd",
    "x > 3.0D": "ei",  # without NaN, whose row group Spark's own filter of Parquet leaves out
    "y >= 3.5": "ei",
    "x < 0": "g",
    "x <= 1.5 OR y = 3.5": "aceg",
    "NOT (y = 1.5) AND x < 3": "bdg",
    "x IS NULL": "h",
}


def view_with_skipping(apache, name, path):
    given = ", ".join(f"'{name}' '{value}'" for name, value in {"path": str(path), **SKIPPING}.items())
    apache.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} USING hudi OPTIONS ({given})")


def literal(name, n):
    value = TYPES[name][1](n)
    if name in ("us", "ms"):
        return f"TIMESTAMP '{value:%Y-%m-%dT%H:%M:%S.%fZ}'"
    if name == "day":
        return f"DATE '{value}'"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    return f"{value:f}" + ("BD" if isinstance(value, Decimal) else "")


def asked(names):
    """Filters, and the ids of the rows that pass."""
    for name in names:
        yield f"{name} < {literal(name, -2)}", "ab"
        yield f"{name} >= {literal(name, 1)} AND ts = 1", "fgh"
        yield f"{name} IN ({literal(name, -4)}, {literal(name, 2)})", "ag"
        yield f"{name} = {literal(name, 0)}", "e"


@pytest.mark.parametrize(
    ("told", "one_of"),
    [
        pytest.param(True, 3, id="by statistics, a third"),
        pytest.param(True, 1, id="by statistics", marks=pytest.mark.slow),
        pytest.param(False, 1, id="without statistics", marks=pytest.mark.slow),
    ],
)
def test_no_file_with_a_row_of_the_answer_is_left_out(tmp_path, apache, monkeypatch, told, one_of):
    """Filters of each kind and on each type; all of them, or one of so many."""
    path = tmp_path / "t"
    names = list(TYPES)
    if not told:
        monkeypatch.setattr(ColumnChunk, "bounds", lambda self, kind: None)
        names.remove("fine")  # of which a table without statistics has no index, with a warning
    schema = pa.schema([("id", pa.string()), ("ts", pa.int64()), *((n, TYPES[n][0]) for n in names)])
    HudiTable.create(str(path), schema, name="t", record_keys="id", ordering_fields="ts")
    number = 0
    for letters in FILES:
        rows = []
        for letter in letters:
            values = {n: TYPES[n][1](number - 4) for n in names}
            rows.append({"id": letter, "ts": 1, **values})
            number += 1
        ours.write(path, "insert", pa.Table.from_pylist(rows, schema), options=OPTIONS)
    assert "column_stats" in HudiTable.open(str(path)).config.metadata_partitions
    view_with_skipping(apache, "of_types", path)
    filters = list(asked(names))[::one_of]
    # One statement: each part of it is a scan that leaves files out by its own filter.
    each = (f"SELECT {n} AS number, id FROM of_types WHERE {where}" for n, (where, _) in enumerate(filters))
    rows = apache.sql(" UNION ALL ".join(each)).to_pylist()
    found = ["".join(sorted(r["id"] for r in rows if r["number"] == n)) for n in range(len(filters))]
    assert dict(zip((where for where, _ in filters), found, strict=True)) == dict(filters)


@pytest.mark.req("MT-04")
def test_neither_is_one_for_filters_on_floats(tmp_path, apache):
    path = tmp_path / "t"
    HudiTable.create(str(path), FLOATS, name="t", record_keys="id", ordering_fields="ts")
    for values in FLOAT_FILES:
        rows = [{"id": k, "ts": 1, "x": v, "y": v} for k, v in values.items()]
        ours.write(path, "insert", pa.Table.from_pylist(rows, FLOATS), options=OPTIONS)
    view_with_skipping(apache, "with_floats", path)
    found = {
        where: "".join(
            sorted(apache.sql(f"SELECT id FROM with_floats WHERE {where}").column("id").to_pylist())
        )
        for where in OF_FLOATS
    }
    assert found == OF_FLOATS


@pytest.mark.parametrize(
    "version", ["0.15.0", *(pytest.param(v, marks=pytest.mark.slow) for v in ("1.0.2", "1.2.0"))]
)
@pytest.mark.slow
def test_texts_too_long_for_bounds_are_lost_by_apache_hudi_only(tmp_path, pool, version):
    """Its statistics have the bounds of the other row groups of the file, and of the other files of the partition."""
    apache, path, long = pool.get(version), tmp_path / "t", "x" * 5000
    options = OPTIONS | {"hoodie.parquet.block.size": "1024", WRITE + "operation": "insert"}
    for first in (0, 1000):
        texts = ["m"] * 250 + ["n", long, None] * bool(first)
        ids = [f"{first + n:05}" for n in range(len(texts))]
        apache.write(
            path, pa.table({"id": ids, "ts": pa.array([1] * len(ids), pa.int64()), "v": texts}), options
        )
    view_with_skipping(apache, "lengthy", path)
    for value in ("n", long):
        assert apache.read(path, where=f"v = '{value}'", **WITHOUT).num_rows == 1
        assert apache.sql(f"SELECT id FROM lengthy WHERE v = '{value}'").num_rows == 0
        table = HudiTable.open(str(path))
        assert table.read(filter=pc.field("v") == value, options=SKIPPING).to_arrow().num_rows == 1
    found = table.read(filter=pc.field("v") == "y", options=SKIPPING).to_arrow()
    assert found.num_rows == 0


@pytest.mark.parametrize(
    "version", ["0.15.0", *(pytest.param(v, marks=pytest.mark.slow) for v in ("1.0.2", "1.2.0"))]
)
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_numbers_beside_nan_are_lost_by_apache_hudi_only(tmp_path, pool, version, kind):
    """Its statistics of a row group with NaN have zero for both bounds."""
    apache, path = pool.get(version), tmp_path / "t"
    for operation, values in (("insert", [math.nan, 1.5, -2.5]), ("insert", [0.5, 0.25])):
        rows = {
            "id": [str(v) for v in values],
            "ts": pa.array([1] * len(values), pa.int64()),
            "x": pa.array(values, kind),
        }
        apache.write(path, pa.table(rows), OPTIONS | {WRITE + "operation": operation})
    view_with_skipping(apache, "beside", path)
    for value in (1.5, -2.5):
        assert apache.read(path, where=f"x = {value}D", **WITHOUT).num_rows == 1
        assert apache.sql(f"SELECT id FROM beside WHERE x = {value}D").num_rows == 0
        found = HudiTable.open(str(path)).read(
            filter=pc.field("x") == pa.scalar(value, kind), options=SKIPPING
        )
        assert found.to_arrow()["id"].to_pylist() == [str(value)]
