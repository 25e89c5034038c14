"""Columns of a read that names none: those of the table, without the meta columns."""

import inspect

import pyarrow as pa
import pytest

import hudi_timeline
from hudi_format.errors import MissingColumnError
from hudi_format.schema.meta_fields import COMMIT_TIME, META_COLUMNS, RECORD_KEY
from hudi_timeline import HudiTable, read_hudi, write_hudi

OWN = ["id", "v", "p"]
READS = {
    "snapshot": lambda t, **k: t.read(**k),
    "optimized": lambda t, **k: t.read(query="read_optimized", **k),
    "as of": lambda t, **k: t.read(as_of=t.timeline.completed_writes()[-1].time, **k),
    "incremental": lambda t, **k: t.read_incremental("000", **k),
    "one call": lambda t, **k: read_hudi(t.uri, **k),
}


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request, tmp_path):
    rows = [{"id": "a", "v": 1, "p": "x"}, {"id": "b", "v": 2, "p": "y"}]
    made = HudiTable.create(
        str(tmp_path / "t"), rows, table_type=request.param, record_keys="id", partition_fields="p"
    )
    made.insert_overwrite_table(rows)
    return made


@pytest.mark.parametrize("read", READS)
def test_all_columns_are_those_of_the_table_and_others_come_by_name(table, read):
    read = READS[read]
    scan = read(table)
    assert sorted(scan.schema.names) == sorted(OWN)
    assert scan.to_arrow().schema.equals(scan.schema)
    assert scan.to_batches().schema.names == scan.schema.names
    assert all(sorted(row) == sorted(OWN) for row in scan)
    assert scan.head(1).column_names == list(scan.to_pandas().columns) == scan.schema.names
    assert scan.to_polars().columns == scan.to_polars_lazy().collect().columns == scan.schema.names
    assert scan.to_duckdb().columns == scan.schema.names

    named = read(table, columns=[RECORD_KEY, "v"]).to_arrow()
    assert sorted(named.to_pylist(), key=str) == [{RECORD_KEY: "a", "v": 1}, {RECORD_KEY: "b", "v": 2}]
    assert scan.select(COMMIT_TIME).to_arrow().num_rows == 2
    assert read(table, filter=f"{RECORD_KEY} = 'b'").to_arrow().column("v").to_pylist() == [2]
    assert read(table, meta_columns=True).schema.names == [*META_COLUMNS, *scan.schema.names]


def test_rows_of_keys_have_meta_columns_where_they_are_asked_for(table):
    assert sorted(table.get(["a"]).column_names) == sorted(table.get(["nowhere"]).column_names) == sorted(OWN)
    assert table.get(["a"], meta_columns=True).column(RECORD_KEY).to_pylist() == ["a"]


@pytest.mark.parametrize("meta", [False, True])
def test_rows_that_were_read_may_be_written_back(table, meta):
    found = table.read(meta_columns=meta).to_arrow()
    assert table.upsert(found).inserted == 0
    assert table.insert(table.read(meta_columns=meta)).inserted == 2
    after = HudiTable.open(table.uri)
    assert sorted(after.read().schema.names) == sorted(OWN)
    assert sorted(after.read().to_arrow()["id"].to_pylist()) == ["a", "a", "b", "b"]


def test_rows_without_meta_columns_are_no_rows_of_a_prepped_operation(table):
    with pytest.raises(MissingColumnError) as e:
        table.upsert(table.read().to_arrow(), options={"hoodie.datasource.write.operation": "upsert_prepped"})
    assert "meta_columns=True" in e.value.remedy


def test_every_read_that_takes_the_argument_has_one_default():
    doors = [
        HudiTable.read,
        HudiTable.read_incremental,
        HudiTable.get,
        read_hudi,
        hudi_timeline.scan_hudi,
    ]
    assert {inspect.signature(d).parameters["meta_columns"].default for d in doors} == {False}


def test_meta_columns_are_text_that_sorts_groups_and_joins_over_all_files(tmp_path):
    """docs/decisions/0025: dictionaries, of which each file would have its own, do not."""
    for city in ("rome", "oslo"):
        write_hudi(tmp_path / "t", [{"id": city, "city": city}], key="id", partition_by="city")
    scan = read_hudi(tmp_path / "t", meta_columns=True)
    rows = scan.to_arrow()
    assert rows.schema == scan.schema
    meta = rows.select(META_COLUMNS)
    assert set(meta.schema.types) == {pa.string()}
    times = meta.column("_hoodie_commit_time").to_pylist()
    assert meta.sort_by("_hoodie_commit_time").column(0).to_pylist() == sorted(times)
    assert meta.group_by("_hoodie_commit_time").aggregate([]).num_rows == 2
    assert meta.join(pa.table({"_hoodie_commit_time": [max(times)]}), "_hoodie_commit_time").num_rows == 2
    frame = scan.to_pandas()
    assert frame.sort_values("_hoodie_commit_time")["id"].tolist() == ["rome", "oslo"]
    assert frame[frame["_hoodie_commit_time"] > min(times)]["id"].tolist() == ["oslo"]
    again = scan.select(["id", "city", "_hoodie_commit_time"]).to_arrow()
    assert write_hudi(tmp_path / "t", again).updated == 2
    coded = again.set_column(2, "_hoodie_commit_time", again.column(2).dictionary_encode())
    assert write_hudi(tmp_path / "t", coded).updated == 2
