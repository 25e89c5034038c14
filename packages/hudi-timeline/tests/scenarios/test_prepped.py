"""Prepped operations: rows that were read from the table go back to where their meta columns say."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_format.errors import ConcurrentWriterError, ConflictingOptionError, MissingColumnError, OptionError
from hudi_timeline import HudiTable
from hudi_timeline.options import parse_write_options

OPERATION = "hoodie.datasource.write.operation"
PARTITIONER = "hoodie.bulkinsert.user.defined.partitioner.class"
SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())])
SMALL = "hoodie.parquet.small.file.limit"
META = ["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"]


@pytest.fixture
def table(tmp_path):
    made = HudiTable.create(str(tmp_path / "t"), SCHEMA, name="t", record_keys=["id"], partition_fields=["p"])
    made.insert(pa.table({"id": ["a", "b", "c"], "p": ["x", "y", "x"], "v": [1, 2, 3]}, schema=SCHEMA))
    return made


def prepped(table, name, rows, **options):
    return getattr(table, name)(rows, options={OPERATION: f"{name}_prepped", **options})


def plus(rows, n):
    return rows.set_column(rows.schema.get_field_index("v"), "v", pc.add(rows["v"], n))


def values(table):
    got = HudiTable.open(table.uri).read(columns=["id", "v"]).to_arrow()
    return sorted(zip(got["id"].to_pylist(), got["v"].to_pylist(), strict=True))


def timeline(table):
    return sorted(p.name for p in (Path(table.uri) / ".hoodie").iterdir())


def test_rows_go_back_to_their_files_without_a_look_up(table):
    rows = plus(table.read(meta_columns=True).to_arrow(), 10)
    fresh = [{META[0]: "d", META[1]: "x", "id": "d", "p": "x", "v": 9}]
    fresh = pa.Table.from_pylist(fresh, schema=rows.schema)
    result = prepped(table, "upsert", pa.concat_tables([rows, fresh]))
    assert (result.operation, result.updated, result.inserted, result.lookup) == (
        "upsert_prepped",
        3,
        1,
        None,
    )
    assert values(table) == [("a", 11), ("b", 12), ("c", 13), ("d", 9)]
    assert HudiTable.open(table.uri).inspect.commits().to_pylist()[-1]["operation"] == "UPSERT_PREPPED"


@pytest.mark.req("CC-40")
def test_rows_whose_file_was_written_again_are_refused_before_anything_begins(table):
    rows = table.read(meta_columns=True).to_arrow()
    table.upsert(plus(rows.select(["id", "p", "v"]).filter(pc.equal(rows["id"], "a")), 5))
    before = timeline(table)
    for name in ("upsert", "delete"):
        with pytest.raises(ConcurrentWriterError, match=r"2 rows .* was rewritten as") as e:
            prepped(table, name, rows)
        assert "without _prepped" in e.value.remedy
    assert timeline(table) == before
    assert (
        prepped(
            table, "delete", HudiTable.open(table.uri).read(meta_columns=True).to_arrow().slice(0, 2)
        ).deleted
        == 2
    )
    assert len(values(table)) == 1


def test_inserts_take_their_keys_from_the_meta_columns(table):
    one = table.read(filter="id = 'a'", meta_columns=True).to_arrow()
    one = one.set_column(one.schema.get_field_index(META[0]), META[0], pa.array(["z"]))
    prepped(table, "insert", one)
    prepped(table, "bulk_insert", one, **{"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"})
    got = HudiTable.open(table.uri).read(columns=META[:2]).to_arrow()
    assert sorted(got[META[0]].to_pylist()) == ["a", "b", "c", "z", "z"]


def test_rows_that_do_not_say_where_they_are_are_refused(table):
    rows = table.read(meta_columns=True).to_arrow()
    for name, missing in (("upsert", META[2]), ("delete", META[2]), ("insert", META[1])):
        with pytest.raises(MissingColumnError, match=missing):
            prepped(table, name, rows.drop_columns([missing]))
    for given in (
        {"hoodie.combine.before.upsert": "true"},
        {"hoodie.datasource.write.insert.drop.duplicates": "true"},
    ):
        with pytest.raises(ConflictingOptionError, match="prepped"):
            parse_write_options({OPERATION: "upsert_prepped", **given})


# --- the user's own order of a bulk_insert ----------------------------------------------------------------


@pytest.mark.req("WR-19")
def test_a_function_of_the_users_gives_the_order(table):
    rows = pa.table({"id": ["d", "e", "f"], "p": ["n"] * 3, "v": [1, 2, 3]}, schema=SCHEMA)
    given = {PARTITIONER: "row_orders:backwards", "hoodie.bulkinsert.shuffle.parallelism": "3"}
    table.bulk_insert(rows, options=given)
    got = HudiTable.open(table.uri).read(columns=["id"], filter="p = 'n'").to_arrow()
    assert got["id"].to_pylist() == ["f", "e", "d"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("row_orders:fewer", "2 rows"),
        ("row_orders:nothing", "cannot be imported"),
        ("os:sep", "not a function"),
    ],
)
def test_what_is_no_order_of_the_rows_is_refused(table, name, message):
    rows = pa.table({"id": ["d", "e", "f"], "p": ["n"] * 3, "v": [1, 2, 3]}, schema=SCHEMA)
    with pytest.raises(OptionError, match=message):
        table.bulk_insert(rows, options={PARTITIONER: name})
    assert len(values(table)) == 3
