"""Deduplicated tables, read and written on by Apache Hudi; and duplicates that Apache Hudi wrote."""

import pyarrow as pa
import pytest

from hudi_timeline import HudiTable
from interop.rows import assert_same_rows

SCHEMA = pa.schema([("k", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "k",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.metadata.enable": "false",
    "hoodie.compact.inline": "false",
    "hoodie.datasource.write.row.writer.enable": "false",
}
OPERATION = "hoodie.datasource.write.operation"
KINDS = {"COPY_ON_WRITE": "commit", "MERGE_ON_READ": "deltacommit"}


def rows(*made):
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, r, strict=True)) for r in made], schema=SCHEMA)


@pytest.mark.req("NEW-28")
@pytest.mark.parametrize("kind", KINDS)
def test_apache_hudi_goes_on_with_a_table_whose_duplicates_we_resolved(apache, tmp_path, kind):
    path = tmp_path / "t"
    given = {**OPTIONS, "hoodie.datasource.write.table.type": kind}
    first = rows(("a", "x", 5, "a1"), ("a", "x", 3, "a2"), ("b", "x", 1, "b1"), ("c", "x", 1, "c1"))
    apache.write(
        path, first, {**given, OPERATION: "bulk_insert", "hoodie.bulkinsert.shuffle.parallelism": "1"}
    )
    second = rows(("b", "x", 2, "b2"), ("c", "y", 4, "c2"))
    apache.write(path, second, {**given, OPERATION: "bulk_insert"})
    apache.write(path, rows(("a", "x", 6, "a3"), ("d", "y", 1, "d1")), {**given, OPERATION: "upsert"})
    table = HudiTable.open(path)
    found = table.duplicates(across_partitions=True).to_pylist()
    assert {r["key"] for r in found} == {"a", "b", "c"}
    assert {r["operation"] for r in found} == {"BULK_INSERT", "UPSERT"}
    done = table.deduplicate(across_partitions=True)
    want = rows(("a", "x", 6, "a3"), ("b", "x", 2, "b2"), ("c", "y", 4, "c2"), ("d", "y", 1, "d1"))
    assert_same_rows(apache.read(path).select(SCHEMA.names), want, ["k"])
    assert apache.timeline(path)[-1] == (done.instant, KINDS[kind], "COMPLETED")
    apache.write(path, rows(("b", "x", 9, "b9"), ("e", "x", 1, "e1")), {**given, OPERATION: "upsert"})
    want = rows(
        ("a", "x", 6, "a3"),
        ("b", "x", 9, "b9"),
        ("c", "y", 4, "c2"),
        ("d", "y", 1, "d1"),
        ("e", "x", 1, "e1"),
    )
    assert_same_rows(apache.read(path).select(SCHEMA.names), want, ["k"])
    assert_same_rows(table.read(meta_columns=False).to_arrow().select(SCHEMA.names), want, ["k"])
    assert table.verify(deep=True) == []
