"""Tables that merge by a function of the user's: Apache Hudi reads them, and never merges them in its own way."""

import shutil

import pyarrow as pa
import pytest
from golden_tables import golden

from hudi_timeline.table import HudiTable
from interop.rows import assert_same_rows
from interop.spark_process import SparkProcessError

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("n", pa.int64())])
MERGE = {"n": "sum"}


def rows(*given):
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, r, strict=True)) for r in given], SCHEMA)


def make(path):
    table = HudiTable.create(
        str(path), SCHEMA, name="t", record_keys=["id"], partition_fields=["p"], ordering_fields=["ts"],
        options={"hudi.merge": MERGE, "hoodie.metadata.enable": False},
    )  # fmt: skip
    table.upsert(rows(("a", "x", 1, 1), ("b", "x", 1, 5)))
    table.upsert(rows(("a", "x", 2, 10), ("c", "x", 1, 7)))
    return table


@pytest.mark.req("NEW-04", "PM-14")
def test_apache_hudi_reads_a_copy_on_write_table(tmp_path, apache):
    table = make(tmp_path)
    found = apache.read(tmp_path)
    assert_same_rows(found, table.read(meta_columns=True).to_arrow().select(found.column_names), ["id"])
    assert found.sort_by("id").column("n").to_pylist() == [11, 5, 7]


def test_apache_hudi_refuses_to_upsert_in_its_own_way(tmp_path, apache):
    table = make(tmp_path)
    before = table.read(meta_columns=True).to_arrow()
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.metadata.enable": "false",
    }
    with pytest.raises(SparkProcessError, match="MergeFunction"):
        apache.write(tmp_path, rows(("a", "x", 3, 100)), options)
    assert HudiTable.open(str(tmp_path)).read(meta_columns=True).to_arrow().equals(before)


@pytest.mark.req("PM-15")
def test_apache_hudi_fails_on_logs_that_it_cannot_merge_and_this_project_reads_them(tmp_path, apache):
    (golden_table,) = golden("merging", "DefaultHoodieRecordPayload")
    path = golden_table.unpack(tmp_path)
    properties = path / ".hoodie" / "hoodie.properties"
    text = properties.read_text()
    changed = text.replace(
        "org.apache.hudi.common.model.DefaultHoodieRecordPayload", "io.hudi.python.MergeFunction"
    )
    assert changed != text
    properties.write_text(changed + 'hudi.merge={"b"\\:"sum"}\n')
    with pytest.raises(SparkProcessError, match="MergeFunction"):
        apache.read(path)
    found = {
        r["id"]: r["b"] for r in HudiTable.open(str(path)).read(meta_columns=True).to_arrow().to_pylist()
    }
    assert found["three-log-records"] == 5  # 0, null, 2 and 3
    assert found["late-against-the-base-row"] == 1
    shutil.rmtree(path)
