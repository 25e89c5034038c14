"""Columns changed here and there: Apache Hudi 0.15 and we read and write on what the other alters.

It is a judge with `hoodie.schema.on.read.enable=true`, which its readers and writers of such tables need.
"""

import pyarrow as pa
import pytest

from hudi_timeline import HudiTable
from interop.rows import assert_same_rows

WRITE = "hoodie.datasource.write."
BY_ID = {"hoodie.schema.on.read.enable": "true"}
OPTIONS = {
    "hoodie.table.name": "t",
    WRITE + "recordkey.field": "id",
    WRITE + "partitionpath.field": "p",
    WRITE + "precombine.field": "ts",
    WRITE + "operation": "upsert",
    "hoodie.compact.inline": "false",
    **BY_ID,
}
INNER = pa.struct([("u", pa.int32()), ("v", pa.string())])
FIRST = pa.schema(
    [("id", pa.string()), ("n", pa.int32()), ("fare", pa.float64()), ("city", pa.string()), ("r", INNER),
     ("ts", pa.int64()), ("p", pa.string())]
)  # fmt: skip
LATER = pa.schema(
    [("id", pa.string()), ("note", pa.string()), ("n", pa.int64()), ("price", pa.float64()),
     ("r", pa.struct([("w", pa.int32()), ("v", pa.string())])), ("ts", pa.int64()), ("p", pa.string())]
)  # fmt: skip


def first(ids, ts=1):
    return pa.Table.from_pylist(
        [{"id": i, "n": k, "fare": k + 0.5, "city": f"c{k}", "r": {"u": k, "v": f"v{k}"}, "ts": ts, "p": "x"}
         for k, i in enumerate(ids)],
        FIRST,
    )  # fmt: skip


def later(ids, ts=2):
    return pa.Table.from_pylist(
        [{"id": i, "note": f"n{k}", "n": 5_000_000_000 + k, "price": -k - 0.5, "r": {"w": -k, "v": "w"}, "ts": ts,
          "p": "x"} for k, i in enumerate(ids)],
        LATER,
    )  # fmt: skip


@pytest.fixture
def apache(apache):
    """Apache Hudi 0.15, whose vectorised reader refuses nested columns that were changed."""
    apache.sql("SET spark.sql.parquet.enableVectorizedReader=false")
    yield apache
    apache.sql("SET spark.sql.parquet.enableVectorizedReader=true")
    apache.sql("SET hoodie.schema.on.read.enable=false")


@pytest.mark.parametrize("table_type", ["MERGE_ON_READ", "COPY_ON_WRITE"])
def test_apache_hudi_reads_and_writes_on_after_an_alter(apache, tmp_path, table_type):
    path = tmp_path / "t"
    table = HudiTable.create(
        str(path), FIRST, name="t", record_keys="id", partition_fields="p", ordering_fields="ts",
        table_type=table_type,
    )  # fmt: skip
    table.insert(first("abcd"))
    changed = (
        table.alter()
        .add("note", "string", after="id")
        .widen("n", pa.int64())
        .rename("fare", "price")
        .rename("r.u", "w")
        .drop("city")
        .execute()
    )
    assert changed.schema.equals(LATER)
    assert_same_rows(apache.read(path, **BY_ID), table.read(meta_columns=True).to_arrow(), ["id"])
    table.upsert(later("be"))
    assert_same_rows(apache.read(path, **BY_ID), table.read(meta_columns=True).to_arrow(), ["id"])

    apache.write(path, later("cf", ts=3), OPTIONS)
    here = table.read(meta_columns=True).to_arrow()
    assert_same_rows(apache.read(path, **BY_ID), here, ["id"])
    assert sorted(here["id"].to_pylist()) == list("abcdef")
    assert dict(zip(here["id"].to_pylist(), here["price"].to_pylist(), strict=True))["d"] == 3.5

    # A name that was free is another column, whoever writes it.
    table.alter().add("city", "int").rename("note", "remark").execute()
    table.upsert(
        [
            {
                "id": "a",
                "remark": "r",
                "n": 1,
                "price": 1.0,
                "r": {"w": 1, "v": "v"},
                "ts": 4,
                "p": "x",
                "city": 7,
            }
        ]
    )
    if table_type == "MERGE_ON_READ":
        table.compact()
        assert "commit" in table.inspect.timeline()["action"].to_pylist(), "compacted"
    here = table.read(meta_columns=True).to_arrow()
    assert_same_rows(apache.read(path, **BY_ID), here, ["id"])
    city = dict(zip(here["id"].to_pylist(), here["city"].to_pylist(), strict=True))
    assert city == {**dict.fromkeys("bcdef"), "a": 7}
    assert table.verify(deep=True) == []


@pytest.mark.parametrize("table_type", ["MERGE_ON_READ", "COPY_ON_WRITE"])
def test_we_write_on_after_apache_hudis_alter(apache, tmp_path, table_type):
    path = tmp_path / "t"
    apache.write(path, first("abcd"), {**OPTIONS, WRITE + "table.type": table_type})
    apache.sql("SET hoodie.schema.on.read.enable=true")
    apache.sql(f"CREATE TABLE altered_{table_type} USING hudi LOCATION '{path}'")
    for change in ("ADD COLUMNS (note string AFTER id)", "ALTER COLUMN n TYPE bigint", "RENAME COLUMN fare TO price",
                   "RENAME COLUMN r.u TO w", "DROP COLUMN city"):  # fmt: skip
        apache.sql(f"ALTER TABLE altered_{table_type} {change}")
    table = HudiTable.open(str(path))
    table.upsert(later("be"))
    table.upsert(later("c", ts=3))  # no new key: a log file
    if table_type == "MERGE_ON_READ":
        table.compact()
        assert "commit" in table.inspect.timeline()["action"].to_pylist(), "compacted"
    here = table.read(meta_columns=True).to_arrow()
    assert_same_rows(apache.read(path, **BY_ID), here, ["id"])
    assert sorted(here["id"].to_pylist()) == list("abcde")
    assert table.verify(deep=True) == []
    table.alter().rename("note", "remark").move("price", first=True).execute()
    assert_same_rows(apache.read(path, **BY_ID), table.read(meta_columns=True).to_arrow(), ["id"])
