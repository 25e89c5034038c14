"""Schema evolution on write: what the result reports, old files under the new schema, keys.

By Apache Hudi's rules, where types are to change; that they do not by themselves: test_table_types.
"""

import datetime

import pyarrow as pa
import pytest

from hudi_format.errors import MissingColumnError, SchemaError
from hudi_timeline import HudiTable

NULLS = {"hoodie.write.set.null.for.missing.columns": True}
RECONCILE = {"hoodie.datasource.write.reconcile.schema": True}
GROW = {"hudi.write.types": "data"}  # Apache Hudi's rules, as on Spark
DROP = {"hoodie.datasource.write.schema.allow.auto.evolution.column.drop": True}


def create(path, schema, **kwargs):
    given = {
        "name": "t",
        "record_keys": ["id"],
        "partition_fields": ["p"],
        "ordering_fields": ["ts"],
        **kwargs,
    }
    return HudiTable.create(str(path), pa.schema(schema), **given)


def row(id, p="x", ts=1, **more):
    return pa.table({"id": [id], "ts": pa.array([ts], pa.int64()), "p": [p], **more})


def files_of(path):
    return {str(f): (f.stat().st_mtime_ns, f.read_bytes()) for f in path.rglob("*") if f.is_file()}


@pytest.fixture
def grown(tmp_path):
    """A table whose column `v` went from int to text, a file of each type."""
    types = [pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string()]
    table = create(
        tmp_path / "t", [("id", pa.string()), ("ts", pa.int64()), ("p", pa.string()), ("v", pa.int32())]
    )
    for n, kind in enumerate(types):
        table.upsert(row(f"k{n}", f"p{n}", v=pa.array([f"{n}"]).cast(kind)), options=GROW)
    return table


@pytest.mark.req("SE-02")
def test_each_file_reads_back_in_the_tables_type_whatever_it_was_written_in(grown):
    got = dict(zip(*grown.read(columns=["id", "v"]).to_arrow().to_pydict().values(), strict=True))
    assert got == {"k0": "0", "k1": "1", "k2": "2.0", "k3": "3.0", "k4": "4"}
    assert grown.read(filter="v = '1'").to_arrow()["id"].to_pylist() == ["k1"]
    assert grown.read(filter="v > '3'").to_arrow()["id"].to_pylist() == ["k3", "k4"]
    assert grown.read(filter="v = '2.0' and p = 'p2'").to_arrow()["id"].to_pylist() == ["k2"]
    assert grown.read(filter="v = '2'").to_arrow().num_rows == 0


def test_an_earlier_state_reads_back_in_its_own_type(grown):
    instants = grown.inspect.commits()["instant"].to_pylist()
    kinds = [grown.read(as_of=i).to_arrow().schema.field("v").type for i in sorted(instants)]
    assert kinds == [pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string()]


@pytest.mark.req("SE-02")
def test_the_result_reports_what_changed_and_the_same_report_is_there_before(tmp_path):
    table = create(
        tmp_path / "t", [("id", pa.string()), ("ts", pa.int64()), ("p", pa.string()), ("v", pa.int32())]
    )
    table.insert(row("a", v=pa.array([1], pa.int32())))
    data = row("b", n=["new"], v=pa.array([2.5]))
    before = files_of(tmp_path / "t")
    promised = table.schema_changes(data, options=GROW)
    assert files_of(tmp_path / "t") == before
    result = table.upsert(data, options=GROW)
    assert result.schema_changes == promised
    assert [str(c) for c in promised] == ["n added as string", "v from int32 to double"]
    assert table.upsert(data).schema_changes == ()


def test_text_and_dropped_columns_are_warned_of(tmp_path):
    table = create(
        tmp_path / "t", [("id", pa.string()), ("ts", pa.int64()), ("p", pa.string()), ("v", pa.int32())]
    )
    table.insert(row("a", v=pa.array([1], pa.int32())))
    (warning,) = table.upsert(row("a", v=["x"]), options=GROW).warnings
    assert warning == "column v is text from now on, it was int32; hudi.write.types=table refuses that"
    dropped = table.upsert(row("b"), options=DROP)
    assert dropped.warnings == ("column v (string) leaves the table's schema, as the data lacks it",)
    assert "v" not in table.schema.names
    assert table.read().to_arrow().num_rows == 2


def test_timestamps_without_a_zone_are_taken_for_utc(tmp_path, caplog):
    """With others Apache Hudi 0.15.0 fails to read the table on Spark, 1.0.2 gives numbers or fails; 1.2.0 reads it."""
    naive = pa.array([0], pa.timestamp("us"))
    table = create(tmp_path / "t", row("a").schema)
    lists = pa.array([[{"k": 0}]], pa.list_(pa.struct([("k", pa.timestamp("ns"))])))
    for _ in range(2):  # and again into the columns that are there by then
        (warning,) = table.insert(row("b", n=naive, l=lists)).warnings
        assert "taken for UTC" in warning
        assert {"n", "l"} == set(warning.partition(":")[0].split(", "))
    assert table.schema.field("n").type == pa.timestamp("us", "UTC")
    assert table.schema.field("l").type.value_type.field("k").type == pa.timestamp("us", "UTC")
    zoned = row("c", n=naive.cast(pa.timestamp("us", "UTC")), l=pa.nulls(1, lists.type))
    assert all("taken for UTC" not in w or w.startswith("l:") for w in table.insert(zoned).warnings)
    made = create(tmp_path / "u", row("a", n=naive).schema)
    assert "n: times without a zone are taken for UTC" in caplog.text
    assert made.schema.field("n").type == pa.timestamp("us", "UTC")


def test_timestamps_without_a_zone_that_are_to_stay_so_are_warned_of(tmp_path, caplog):
    options = {"hudi.write.types": "data"}
    naive = pa.array([0], pa.timestamp("us"))
    table = create(tmp_path / "t", row("a").schema)
    assert table.insert(row("a", z=naive.cast(pa.timestamp("us", "UTC")))).warnings == ()
    lists = pa.array([[{"k": 0}]], pa.list_(pa.struct([("k", pa.timestamp("ns"))])))
    more = row("b", z=pa.nulls(1, pa.timestamp("us", "UTC")), n=naive, l=lists)
    (warning,) = table.insert(more, options=options).warnings
    assert "0.15" in warning
    assert {"n", "l"} == set(warning.partition(":")[0].split(", "))
    again = row("c", z=pa.nulls(1, pa.timestamp("us", "UTC")), n=naive, l=lists)
    assert table.insert(again).warnings == ()
    caplog.clear()
    create(tmp_path / "u", row("a", n=naive).schema, options=options)
    assert "n: timestamps without a zone" in caplog.text


@pytest.mark.req("TL-27")
def test_what_is_nested_grows_and_old_files_follow(tmp_path):
    first = {
        "s": pa.array([{"x": 1, "y": "q"}], pa.struct([("x", pa.int32()), ("y", pa.string())])),
        "l": pa.array([[{"q": 1}]], pa.list_(pa.field("element", pa.struct([("q", pa.int32())])))),
        "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())),
    }
    then = {
        "s": pa.array([{"n": 2.5, "x": 2**40}], pa.struct([("n", pa.float64()), ("x", pa.int64())])),
        "l": pa.array([[{"q": 0.5}]], pa.list_(pa.field("element", pa.struct([("q", pa.float64())])))),
        "m": pa.array([[("k", 2**40)]], pa.map_(pa.string(), pa.int64())),
    }
    schema = row("a", **first).schema
    table = create(tmp_path / "t", schema)
    table.insert(row("a", "p0", **first))
    with pytest.raises(MissingColumnError, match=r"s\.y"):
        table.insert(row("b", "p1", **then))
    result = table.insert(row("b", "p1", **then), options=NULLS | GROW)
    assert {str(c) for c in result.schema_changes} == {
        "s.n added as double", "s.x from int32 to int64", "s.y filled with null", "l.element.q from int32 to double",
        "m.value from int32 to int64",
    }  # fmt: skip
    assert sum("Apache Hudi 0.15 cannot read" in w for w in result.warnings) == 3
    assert {r["id"]: (r["s"], r["l"], r["m"]) for r in table.read().to_arrow().to_pylist()} == {
        "a": ({"n": None, "x": 1, "y": "q"}, [{"q": 1.0}], [("k", 1)]),
        "b": ({"n": 2.5, "x": 2**40, "y": None}, [{"q": 0.5}], [("k", 2**40)]),
    }


KEYS = [
    ("id", pa.array([1], pa.int32()), pa.array([1.0])),
    ("id", pa.array([1.5], pa.float32()), pa.array([1.5])),
    ("p", pa.array([1], pa.int64()), pa.array([1.0])),
]


@pytest.mark.req("TL-20")
@pytest.mark.parametrize(("column", "old", "new"), KEYS, ids=str)
@pytest.mark.parametrize("operation", ["upsert", "bulk_insert", "delete"])
def test_keys_do_not_change_their_text_by_another_type(tmp_path, column, old, new, operation):
    first = row("a").set_column(row("a").schema.get_field_index(column), column, old)
    table = create(tmp_path / "t", first.schema)
    table.insert(first)
    before = files_of(tmp_path / "t")
    other = first.set_column(first.schema.get_field_index(column), column, new)
    with pytest.raises(SchemaError, match="keys of equal values would differ") as e:
        getattr(table, operation)(other, options=GROW)
    assert e.value.details["column"] == column
    assert str(old.type) in e.value.remedy
    assert files_of(tmp_path / "t") == before


def test_keys_may_grow_where_their_text_stays(tmp_path):
    first = row("a").set_column(0, "id", pa.array([7], pa.int32()))
    table = create(tmp_path / "t", first.schema)
    table.insert(first)
    table.upsert(first.set_column(0, "id", pa.array([7], pa.int64())), options=GROW)
    result = table.upsert(row("7", ts=2), options=GROW)
    assert (result.inserted, result.updated) == (0, 1)
    assert table.delete(row("7").select(["id", "p"])).deleted == 1


def test_values_that_do_not_fit_are_refused_and_nothing_of_the_write_stays(tmp_path):
    money = pa.decimal128(5, 2)
    schema = row("a", v=pa.array([None], money)).schema
    table = create(tmp_path / "t", schema)
    table.insert(row("a", v=pa.array(["1.25"]).cast(money)))
    for values in (pa.array([12345]), pa.array([0.005]), pa.array(["much"])):
        with pytest.raises(SchemaError) as e:
            table.upsert(row("b", v=values))
        assert e.value.details["column"] == "v"
    assert table.read().to_arrow()["id"].to_pylist() == ["a"]
    table.upsert(row("b", v=pa.array([2.5])))
    assert sorted(str(v) for v in table.read().to_arrow()["v"].to_pylist()) == ["1.25", "2.50"]


def test_dates_are_taken_of_iso_texts_and_never_of_numbers_or_other_text(tmp_path):
    day = pa.array([datetime.date(2024, 2, 29)])
    table = create(tmp_path / "t", row("a", v=day).schema)
    table.insert(row("a", v=day))
    for values in (
        pa.array([1], pa.int32()),
        pa.array(["29.2.2024"]),
        pa.array(["20240229"]),
        pa.array([0], pa.timestamp("us", "UTC")),
    ):
        with pytest.raises(SchemaError, match="column v has type"):
            table.upsert(row("b", v=values))
    table.upsert(row("b", v=pa.array(["2024-03-01"])))  # ISO text is a date, and can be nothing else
    stored = table.read(columns=["v"]).to_arrow().column("v")
    assert stored.type == pa.date32()
    assert sorted(stored.to_pylist()) == [datetime.date(2024, 2, 29), datetime.date(2024, 3, 1)]


def test_dropped_and_added_again_columns_hold_null_in_between(tmp_path):
    table = create(tmp_path / "t", row("a", v=["1"]).schema)
    table.insert(row("a", "p0", v=["1"]))
    table.insert(row("b", "p1"), options=DROP)
    table.insert(row("c", "p2", v=["3"]))
    got = {r["id"]: r["v"] for r in table.read().to_arrow().to_pylist()}
    assert got == {"a": "1", "b": None, "c": "3"}


@pytest.mark.parametrize("kind", [pa.date32(), pa.bool_(), pa.int32()], ids=str)
def test_a_dropped_column_is_not_added_again_in_a_type_that_old_files_do_not_fit(tmp_path, kind):
    table = create(tmp_path / "t", row("a", v=[1]).schema)
    table.insert(row("a", "p0", v=[1]))
    table.insert(row("b", "p1"), options=DROP)
    before = files_of(tmp_path / "t")
    with pytest.raises(SchemaError, match="was in the table before, as int64"):
        table.insert(row("c", "p2", v=pa.array([None], kind)))
    assert files_of(tmp_path / "t") == before
    table.insert(row("c", "p2", v=[2.5]))
    assert {r["id"]: r["v"] for r in table.read().to_arrow().to_pylist()} == {"a": 1.0, "b": None, "c": 2.5}


@pytest.mark.req("SE-02")
def test_floats_that_became_doubles_keep_their_digits_in_files_filters_and_writes(tmp_path):
    """Apache Hudi 0.15.0, 1.0.2 and 1.2.0 read 0.1 of an older file, where the nearest double is 0.10000000149."""
    schema = pa.schema([("id", pa.string()), ("part", pa.string()), ("f", pa.float32())])
    table = HudiTable.create(
        str(tmp_path / "t"), schema, name="t", record_keys=["id"], partition_fields=["part"]
    )
    table.upsert(pa.table([["a", "b"], ["p", "q"], [0.1, 2.1]], schema=schema))
    wide = schema.set(2, pa.field("f", pa.float64()))
    table.upsert(pa.table([["c"], ["r"], [0.4]], schema=wide), options=GROW)
    table.upsert(pa.table([["d"], ["q"], [2.2]], schema=schema))  # q's file is written again
    table = HudiTable.open(table.uri)
    found = table.read().to_arrow()
    assert found.schema.field("f").type == pa.float64()
    values = dict(zip(found["id"].to_pylist(), found["f"].to_pylist(), strict=True))
    assert values == {"a": 0.1, "b": 2.1, "c": 0.4, "d": 2.2}
    for where, keys in (
        ("f = 0.1", ["a"]),
        ("f <= 0.1", ["a"]),
        ("f >= 2.2", ["d"]),
        ("f > 0.1", ["b", "c", "d"]),
    ):
        assert sorted(table.read(["id"], filter=where).to_arrow()["id"].to_pylist()) == keys, where
