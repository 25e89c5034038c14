"""`hoodie.datasource.read.extract.partition.values.from.path`: values of partition columns are those of folders.

They differ from those of the files where a key generator formats times, or where files have none.
"""

import pyarrow as pa
import pytest
from golden_tables import golden

from hudi_timeline import HudiTable

BY_PATH = {"hoodie.datasource.read.extract.partition.values.from.path": "true"}
NOT_BY_PATH = {"hoodie.datasource.read.extract.partition.values.from.path": "false"}


def queries(table, options, **more):
    newest = table.timeline.completed_writes()[-1].time
    return {
        "snapshot": table.read(options=options, **more, meta_columns=True),
        "as of": table.read(as_of=newest, options=options, **more, meta_columns=True),
        "incremental": table.read_incremental("000", options=options, **more, meta_columns=True),
    }


def paths_and_values(table, scan):
    (name,) = table.config.partition_fields
    rows = scan.to_arrow()
    return sorted(
        zip(rows.column("_hoodie_partition_path").to_pylist(), rows.column(name).to_pylist(), strict=True)
    )


@pytest.mark.req("QR-01")
@pytest.mark.parametrize("name", ["mor_timestamp_keygen", "cow_timestamp_keygen"])
def test_formatted_times_are_those_of_the_folders(tmp_path, name):
    (made,) = golden("v6", name)
    table = HudiTable.open(str(made.unpack(tmp_path)))
    (column,) = table.config.partition_fields
    for query, scan in queries(table, BY_PATH).items():
        found = paths_and_values(table, scan)
        assert found, query
        assert [value for _, value in found] == [path for path, _ in found], query
        assert scan.schema.field(column).type == pa.string(), query
        one = found[0][1]
        filtered = queries(table, BY_PATH, filter=f"{column} = '{one}'")[query]
        assert paths_and_values(table, filtered) == [f for f in found if f[1] == one], query
    for query in ("snapshot", "incremental"):
        plain = queries(table, {})[query]
        assert plain.to_arrow().equals(queries(table, NOT_BY_PATH)[query].to_arrow())
        if query == "incremental" or "mor" in name:
            assert plain.schema.field(column).type != pa.string()


@pytest.mark.req("QR-01")
@pytest.mark.parametrize("name", ["mor_drop_partition_columns", "drop_partition_columns"])
def test_columns_that_files_lack_are_those_of_the_folders(tmp_path, name):
    (made,) = golden("v6", name)
    table = HudiTable.open(str(made.unpack(tmp_path)))
    fields = table.config.partition_fields
    wanted = table.read(meta_columns=True).to_arrow().sort_by("_hoodie_record_key").select(fields)
    for query, scan in queries(table, BY_PATH).items():
        assert scan.to_arrow().sort_by("_hoodie_record_key").select(fields).equals(wanted), query
        assert all(wanted.column(f).null_count < wanted.num_rows for f in fields)


@pytest.mark.req("QR-01")
def test_values_that_keys_copy_are_the_same_both_ways(tmp_path):
    rows = pa.table({"id": ["a", "b"], "n": pa.array([1, None], pa.int32()), "p": ["x y", "ü"]})
    table = HudiTable.create(
        str(tmp_path / "t"), rows.schema, name="t", record_keys=["id"], partition_fields=["n", "p"],
        options={"hoodie.datasource.write.hive_style_partitioning": "true",
                 "hoodie.datasource.write.partitionpath.urlencode": "true"},
    )  # fmt: skip
    table.insert(rows)
    for query, scan in queries(table, BY_PATH).items():
        assert (
            sorted(scan.to_arrow().select(["id", "n", "p"]).to_pylist(), key=lambda r: r["id"])
            == rows.to_pylist()
        ), query


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_deleted_partitions_leave_the_columns_that_files_lack_out_of_the_schema(tmp_path, kind):
    schema = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())])
    table = HudiTable.create(
        str(tmp_path), schema, name="t", table_type=kind, record_keys=["id"], partition_fields=["p"],
        options={"hoodie.datasource.write.drop.partition.columns": "true"},
    )  # fmt: skip
    table.upsert(pa.table({"id": ["1", "2"], "p": ["a", "b"], "v": [1, 1]}, schema=schema))
    table.delete_partitions(["a"])
    table.upsert(pa.table({"id": ["3"], "p": ["b"], "v": [1]}, schema=schema))
    assert table.verify() == []
    assert sorted(table.read(["id", "p"]).to_arrow().column("id").to_pylist()) == ["2", "3"]
