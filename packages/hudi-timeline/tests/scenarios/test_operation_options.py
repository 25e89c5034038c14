"""Options of the operations without a JVM: duplicates, empty commits, orders of bulk_insert, partitions."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_format.errors import DuplicateKeyError, MissingColumnError, UnknownPartitionError, UnsupportedError
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute
from hudi_timeline.writing.planning.new_table import choose

DROP = {"hoodie.datasource.write.insert.drop.duplicates": True}
FAIL = {"hoodie.datasource.insert.dup.policy": "fail"}
NO_EMPTY = {"hoodie.allow.empty.commit": False}
MODE, COLUMNS = "hoodie.bulkinsert.sort.mode", "hoodie.bulkinsert.user.defined.partitioner.sort.columns"
PARTITIONER = "hoodie.bulkinsert.user.defined.partitioner.class"
OVERWRITE_STATIC = {"hoodie.datasource.overwrite.mode": "STATIC"}


def rows(*values):
    names, types = ["id", "v", "ts", "p"], [pa.string(), pa.int64(), pa.int64(), pa.string()]
    columns = zip(*values, strict=True) if values else ([], [], [], [])
    return pa.table({n: pa.array(c, t) for n, c, t in zip(names, columns, types, strict=True)})


FIRST = rows(("a", 1, 1, "x"), ("b", 1, 1, "x"), ("c", 1, 1, "y"), ("d", 1, 1, "z/1"))


@pytest.fixture
def table(tmp_path):
    made = HudiTable.create(
        str(tmp_path / "t"),
        FIRST.schema,
        name="t",
        record_keys=["id"],
        partition_fields=["p"],
        ordering_fields=["ts"],
    )
    made.insert(FIRST)
    return made


def content(table):
    return sorted(tuple(r.values()) for r in table.read(columns=["id", "v", "p"]).to_arrow().to_pylist())


def files_of(table):
    return {str(f): f.read_bytes() for f in Path(table.uri).rglob("*") if f.is_file()}


# --- duplicates on insert -------------------------------------------------------------------------------


@pytest.mark.req("WR-07", "WR-08")
@pytest.mark.parametrize(
    ("operation", "options"),
    [("insert", DROP), ("upsert", DROP), ("insert", {"hoodie.datasource.insert.dup.policy": "drop"})],
    ids=["insert", "upsert", "policy"],
)
def test_keys_of_the_table_and_of_the_data_are_inserted_once(table, operation, options):
    data = rows(("a", 2, 2, "x"), ("e", 2, 2, "x"), ("e", 3, 3, "x"), ("a", 9, 9, "y"))
    result = getattr(table, operation)(data, options=options)
    assert (result.operation, result.inserted, result.updated) == ("insert", 2, 0)
    # As Apache Hudi: the key counts within its partition.
    assert content(table) == sorted(
        [("a", 1, "x"), ("a", 9, "y"), ("b", 1, "x"), ("c", 1, "y"), ("d", 1, "z/1"), ("e", 3, "x")]
    )


def test_an_insert_of_known_keys_only_is_an_empty_commit(table):
    result = table.insert(rows(("a", 2, 2, "x")), options=DROP)
    assert result.instant
    assert (result.inserted, result.write_stats) == (0, ())
    assert not table.insert(rows(("a", 2, 2, "x")), options={**DROP, **NO_EMPTY}).instant


@pytest.mark.req("WR-07")
def test_an_insert_fails_on_known_keys_before_anything_is_begun(table):
    before = files_of(table)
    with pytest.raises(
        DuplicateKeyError, match="2 rows have a key that is in the table already: 2 in x"
    ) as e:
        table.insert(rows(("a", 2, 2, "x"), ("b", 2, 2, "x"), ("e", 2, 2, "x")), options=FAIL)
    assert e.value.details["rows"] == 2
    assert "upsert" in e.value.remedy
    assert files_of(table) == before
    assert table.insert(rows(("e", 2, 2, "x"), ("a", 2, 2, "new")), options=FAIL).inserted == 2


# --- nothing to write -----------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["upsert", "insert", "delete"])
def test_without_rows_and_empty_commits_nothing_is_begun(table, operation):
    before = files_of(table)
    result = getattr(table, operation)(rows(), options=NO_EMPTY)
    assert (result.instant, result.action, result.write_stats) == ("", "", ())
    assert "nothing written" in repr(result)
    assert files_of(table) == before
    assert getattr(table, operation)(rows()).instant


@pytest.mark.parametrize("operation", ["bulk_insert", "delete"])
def test_what_turns_out_to_be_nothing_is_no_commit_either(table, operation):
    data = rows(("nope", 1, 1, "x")) if operation == "delete" else rows()
    commits = table.inspect.commits().num_rows
    assert getattr(table, operation)(data, options=NO_EMPTY).instant == ""
    assert table.inspect.commits().num_rows == commits
    assert content(table) == [("a", 1, "x"), ("b", 1, "x"), ("c", 1, "y"), ("d", 1, "z/1")]


# --- bulk_insert ----------------------------------------------------------------------------------------

MIXED = rows(*[(f"k{(i * 7) % 40:02d}", 100 - i, 1, f"p{i % 3}") for i in range(40)])


def keys_by_file(table, column="_hoodie_record_key"):
    found = sorted(Path(table.uri).glob("p*/*.parquet"))
    return [pq.read_table(f, columns=[column]).column(0).to_pylist() for f in found]


@pytest.mark.req("WR-03", "WR-19")
@pytest.mark.parametrize(
    ("mode", "sorts"),
    [("NONE", False), ("GLOBAL_SORT", True), ("PARTITION_SORT", True), ("PARTITION_PATH_REPARTITION", False),
     ("PARTITION_PATH_REPARTITION_AND_SORT", False), ("global_sort", True)],
)  # fmt: skip
def test_a_sort_mode_orders_the_keys_of_each_file_or_leaves_them(table, mode, sorts):
    assert table.bulk_insert(MIXED, options={MODE: mode}).inserted == 40
    found = keys_by_file(table)
    assert sorted(map(len, found)) == [13, 13, 14]
    given = {p: [r["id"] for r in MIXED.to_pylist() if r["p"] == p] for p in ("p0", "p1", "p2")}
    assert found == [sorted(k) if sorts else k for k in given.values()]


@pytest.mark.req("WR-19")
def test_sort_columns_order_the_rows_of_each_file(table):
    sorter = {PARTITIONER: "org.apache.hudi.execution.bulkinsert.RowCustomColumnsSortPartitioner"}
    table.bulk_insert(MIXED, options={COLUMNS: "v", **sorter})
    assert all(v == sorted(v) for v in keys_by_file(table, "v"))
    with pytest.raises(MissingColumnError, match="sort column 'w'"):
        table.bulk_insert(MIXED, options={COLUMNS: "w"})
    with pytest.raises(UnsupportedError, match=r"com\.example\.Mine") as e:
        table.bulk_insert(MIXED, options={PARTITIONER: "com.example.Mine", COLUMNS: "v"})
    assert COLUMNS in e.value.remedy


# --- partitions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "of_rows", "found", "unknown"),
    [
        (["x"], [], ["x"], []),
        (["z*", "y"], [], ["y", "z/1"], []),
        (["z%2A"], [], ["z/1"], []),
        (["*"], [], ["x", "y", "z/1"], []),
        (["z/1/"], [], ["z/1"], []),
        (["?"], [], [], ["?"]),
        (["[x]"], [], [], ["[x]"]),
        (["nope", "x", "q*"], [], ["x"], ["nope", "q*"]),
        (["y"], ["x"], ["y"], []),
        ([], ["x", "nope"], ["x"], ["nope"]),
        ([], ["*"], [], ["*"]),
    ],
)
def test_partitions_are_chosen_by_names_patterns_or_rows(names, of_rows, found, unknown):
    chosen = choose(names, of_rows, ["z/1", "x", "y"])
    assert (list(chosen.found), list(chosen.unknown)) == (found, unknown)


def test_an_unknown_partition_is_an_error_that_names_the_nearest(table):
    before = files_of(table)
    with pytest.raises(UnknownPartitionError, match="z1: no such partition") as e:
        table.delete_partitions(["x", "z1"])
    assert "did you mean z/1" in e.value.remedy
    with pytest.raises(UnknownPartitionError):
        table.delete_partitions("q*")
    assert files_of(table) == before
    result = table.delete_partitions(["x", "z1"], missing_ok=True)
    assert result.warnings == ("z1 is no partition of the table: nothing was deleted there",)
    assert result.partitions == ("x",)
    assert [r[0] for r in content(table)] == ["c", "d"]


def test_a_static_overwrite_replaces_the_partitions_that_are_named(table):
    static = {"hoodie.static.overwrite.partition.paths": "y"}
    result = table.insert_overwrite(rows(("n", 2, 2, "x")), options=static)
    assert list(result.replaced) == ["y"]
    assert [r[0] for r in content(table)] == ["a", "b", "d", "n"]
    dynamic = table.insert_overwrite(rows(("m", 2, 2, "x")), options=OVERWRITE_STATIC)
    assert list(dynamic.replaced) == ["x"]
    assert "counts in SQL only" in dynamic.warnings[0]
    assert [r[0] for r in content(table)] == ["d", "m"]


def test_a_table_that_is_made_anew_says_so_where_partitions_were_meant(table):
    given = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    dynamic = given | {"hoodie.datasource.overwrite.mode": "dynamic"}
    for options, count in ((dynamic, 1), (given, 0), (dynamic, 1)):
        done = execute(LocalEngine(1), open_storage(table.uri), FIRST, options, mode="overwrite")
        assert len([w for w in done.warnings if "partitions were asked for" in w]) == count


# --- what the result shows ------------------------------------------------------------------------------


def test_a_result_is_one_line_and_a_table_in_notebooks(table):
    result = table.upsert(rows(("a", 2, 2, "x"), ("n", 1, 1, "<b>")).append_column("new", pa.array([1, 2])))
    assert "\n" not in repr(result)
    assert "1 inserted, 1 updated" in repr(result)
    assert "schema: new added as int64" in repr(result)
    html = result._repr_html_()
    for part in (
        "1 inserted, 1 updated",
        result.instant,
        "new added as int64",
        "write ",
        "&lt;b&gt;",
        table.uri,
    ):
        assert part in html
    assert "<b>" not in html
    assert result.seconds == pytest.approx(sum(result.timings.values()))
    assert (
        "Nothing was written"
        in table.upsert(rows().append_column("new", pa.array([], pa.int64())), options=NO_EMPTY)._repr_html_()
    )


def test_what_was_dropped_is_said_with_its_rows(table):
    result = table.delete_partitions(["x"])
    (ids,) = result.replaced.values()
    assert list(result.replaced) == ["x"]
    assert result.dropped_rows == 2
    for shown in (repr(result), result._repr_html_()):
        assert f"2 rows in {len(ids)} file group" in shown
        assert "of 1 partition dropped" in shown
        assert "no rows changed" not in shown
    assert [r[0] for r in content(table)] == ["c", "d"]


def test_rows_that_only_archived_commits_know_are_not_counted(tmp_path):
    few = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3, "hoodie.cleaner.commits.retained": 1}
    table = HudiTable.create(
        str(tmp_path / "t"), rows().schema, name="t", record_keys=["id"], partition_fields=["p"],
        ordering_fields=["ts"],
    )  # fmt: skip
    table.insert(rows(("a", 1, 1, "x"), ("b", 1, 1, "y")), options=few)
    for n in range(8):
        table.insert(rows((f"n{n}", 1, 1, "y")), options=few)
    result = table.delete_partitions(["x", "y"])
    assert result.dropped_rows is None
    assert "file groups of 2 partitions dropped" in repr(result)


def test_a_table_overwritten_with_nothing_says_what_went(table):
    everything = table.read().to_arrow().num_rows
    result = table.insert_overwrite_table(rows())
    assert result.dropped_rows == everything
    assert f"{everything} rows in" in repr(result)
    again = table.delete_partitions(["x"], missing_ok=True)
    assert "no rows changed" in repr(again)
