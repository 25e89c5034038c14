"""Snapshot reads: rows, columns, streams, errors."""

import pickle

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from made_tables import MadeTable, at, file_id, ids
from properties_edits import edit_properties

from hudi_format.errors import (
    ConflictingOptionError,
    CorruptFileError,
    InvalidOptionError,
    MissingColumnError,
    MissingFileError,
    NotAHudiTableError,
    PartitionPathError,
    UnknownOptionError,
)
from hudi_format.schema.avro import to_avro
from hudi_format.schema.meta_fields import META_COLUMNS
from hudi_timeline.reading import stability
from hudi_timeline.table import HudiTable

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64()), ("note", pa.string())])
META = list(META_COLUMNS)


def row(id, v=0, p="a", **more):
    return {"id": id, "p": p, "v": v, "note": f"n{v}", **more}


def test_a_snapshot_has_the_newest_rows_of_every_group(made):
    rows = made.open().read(meta_columns=True).to_arrow()
    assert ids(rows) == ["1", "2", "3", "4", "5", "6"]
    assert rows.filter(pc.field("id") == "2").column("v").to_pylist() == [20]


@pytest.mark.req("QR-01")
@pytest.mark.parametrize("filter", [None, "v > 3"])
def test_a_selection_of_no_columns_keeps_the_number_of_rows(made, filter):
    scan = made.open().read(columns=[], filter=filter)
    rows = 6 if filter is None else 4
    assert scan.files.num_rows == 3
    assert scan.to_arrow().shape == (rows, 0)
    assert sum(b.num_rows for b in scan.to_batches(1)) == rows
    changes = made.open().read_changes("000", columns=[])
    assert changes.to_arrow().num_rows == changes.count() == sum(b.num_rows for b in changes.to_batches())
    assert changes.count() >= 6


@pytest.mark.req("QR-01")
@pytest.mark.parametrize("planned", [False, True])
def test_a_scan_pickles_and_stands_for_its_state(made, planned):
    scan = made.open().read(columns=["id", "v"], filter="v > 1")
    if planned:
        assert scan.files.num_rows == 3
    copy = pickle.loads(pickle.dumps(scan))
    made.commit(at(3), {("a", file_id(0)): [row("1", 1), row("2", 200)]})
    assert copy.to_arrow().sort_by("id").column("v").to_pylist() == [20, 3, 4, 5, 6]
    assert copy.count() == 5
    assert copy.as_of in stability.instants(scan.table_uri, made.open().timeline.completed_writes())


@pytest.mark.parametrize("folder", [".hoodie", "a"])
def test_a_folder_of_a_table_names_the_table(made, folder):
    uri = made.open().uri
    with pytest.raises(NotAHudiTableError, match="folder of one") as e:
        HudiTable.open(f"{uri}/{folder}")
    assert e.value.remedy == f"open the table itself, {uri}."


@pytest.mark.parametrize(("pattern", "named"), [("/*/*", True), ("/{a,b}", True), ("*", False)])
def test_a_pattern_instead_of_a_table_names_the_table_above_it(made, pattern, named):
    uri = made.open().uri
    with pytest.raises(NotAHudiTableError, match="patterns are not expanded") as e:
        HudiTable.open(uri + pattern)
    assert e.value.remedy.startswith(f"open the table itself, {uri};" if named else "open the table itself;")


def test_partition_columns_come_last_and_from_the_path(made):
    stats = [made.base_file(at(3), "c", file_id(3), [row("7", p="something else")])]
    made.complete(at(3), stats)
    rows = made.open().read(filter="id = '7'", meta_columns=True).to_arrow()
    assert rows.column_names == [*META, "id", "v", "note", "p"]
    assert rows.column("p").to_pylist() == ["c"]


def test_columns_are_given_as_asked(made):
    table = made.open()
    assert table.read(["v", "p", "_hoodie_record_key"]).to_arrow().column_names == [
        "v",
        "p",
        "_hoodie_record_key",
    ]
    assert table.read(meta_columns=False).to_arrow().column_names == ["id", "p", "v", "note"]
    assert table.read(["p"]).to_arrow().column("p").to_pylist() == ["a"] * 3 + ["b"] * 3
    assert table.read([]).to_arrow().num_columns == 0
    with pytest.raises(MissingColumnError, match="'note'"):
        table.read(["nota"])
    with pytest.raises(ValueError, match="twice"):
        table.read(["v", "v"])
    with pytest.raises(TypeError):
        table.read(b"v")


def test_a_filter_may_name_columns_that_are_not_given(made):
    table = made.open()
    assert table.read(["id"], "v >= 4 and p = 'b'").to_arrow().to_pydict() == {"id": ["4", "5", "6"]}
    assert ids(table.read(["id"], pc.field("note") == "n20").to_arrow()) == ["2"]
    assert ids(table.read(["id"], f"_hoodie_commit_time > '{at(1)}'").to_arrow()) == ["2"]
    assert table.read(["p"], "p = 'a'").to_arrow().num_rows == 3


def test_counting_needs_no_column(made):
    table = made.open()
    assert table.read().count() == 6
    assert table.read(filter="v > 3").count() == 4
    assert table.read(filter="p = 'zzz'").count() == 0


@pytest.mark.req("QR-11")
def test_a_filter_on_a_partition_column_reads_that_partition_only(made):
    scan = made.open().read(filter="p = 'b'", meta_columns=True)
    assert scan.files.column("partition").to_pylist() == ["b"]
    assert made.open().read(filter="p = 'none'").files.num_rows == 0


def test_a_scan_stands_for_the_state_that_it_was_made_in(made):
    scan = made.open().read(meta_columns=True)
    made.commit(at(9), {("a", file_id(0)): [row("1", 100)]})
    assert ids(scan.to_arrow()) == ["1", "2", "3", "4", "5", "6"]
    assert ids(made.open().read(meta_columns=True).to_arrow()) == ["1", "3", "4", "5", "6"]


@pytest.mark.req("QR-19")
def test_nothing_of_an_open_or_failed_write_shows(made):
    made.base_file(at(3), "a", file_id(0), [row("1", 666)])
    made.base_file(at(3), "new", file_id(9), [row("9", 666)])
    assert made.open().read(filter="v = 666").count() == 0
    made.instant_file(f"{at(3)}.commit.requested")
    made.instant_file(f"{at(3)}.inflight")
    assert made.open().read(filter="v = 666").count() == 0


@pytest.mark.req("QR-07")
def test_replaced_groups_are_gone(made):
    made.commit(at(3), {("a", file_id(5)): [row("10")]}, replaced={"a": (file_id(0), file_id(1))})
    assert ids(made.open().read(meta_columns=True).to_arrow()) == ["10", "4", "5", "6"]


def test_a_leftover_of_a_retried_task_is_not_read(made):
    made.base_file(at(2), "a", file_id(0), [row("1", 666)], token="0-0-1")
    made.base_file(at(2), "b", file_id(8), [row("8", 666)])
    assert made.open().read(filter="v = 666").count() == 0


@pytest.mark.req("TL-04")
def test_a_table_without_partitions(tmp_path):
    table = MadeTable(tmp_path / "t", SCHEMA, partition_fields=())
    table.commit(at(1), {("", file_id(0)): [row("1")]})
    rows = table.open().read(meta_columns=True).to_arrow()
    assert rows.column_names == [*META, "id", "p", "v", "note"]
    assert ids(rows) == ["1"]


def test_older_files_are_read_in_the_newest_schema(tmp_path):
    table = MadeTable(tmp_path / "t", pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int32())]))
    table.commit(at(1), {("a", file_id(0)): [{"id": "1", "p": "a", "v": 1}]})
    table.schema = pa.schema(
        [("id", pa.string()), ("p", pa.string()), ("v", pa.float64()), ("w", pa.string())]
    )
    table.commit(at(2), {("a", file_id(1)): [{"id": "2", "p": "a", "v": 2.5, "w": "x"}]})
    read = table.open()
    rows = read.read(["id", "v", "w", "p"]).to_arrow().to_pylist()
    assert rows == [{"id": "1", "v": 1.0, "w": None, "p": "a"}, {"id": "2", "v": 2.5, "w": "x", "p": "a"}]
    assert ids(read.read(filter="w is null", meta_columns=True).to_arrow()) == ["1"]
    assert ids(read.read(filter="v > 0.5 and v < 2", meta_columns=True).to_arrow()) == ["1"]
    assert read.read(["w"]).to_arrow().column("w").to_pylist() == [None, "x"]
    assert [b.num_rows for b in read.read(["w"]).to_batches()] == [1, 1]


def test_a_table_that_was_only_created_has_its_schema_and_no_rows(tmp_path):
    table = MadeTable(
        tmp_path / "t", SCHEMA, properties={"hoodie.table.create.schema": to_avro(SCHEMA, "made")}
    )
    scan = table.open().read(meta_columns=True)
    assert scan.to_arrow().num_rows == 0
    assert scan.to_arrow().column_names == [*META, "id", "v", "note", "p"]
    assert scan.to_batches().read_all().num_rows == 0
    assert scan.count() == 0
    assert table.open().get(["1"], meta_columns=True).num_rows == 0
    assert table.open().inspect.files().num_rows == 0


def test_duckdb_polars_and_pandas_read_a_scan_as_it_is(made):
    duckdb = pytest.importorskip("duckdb")
    polars = pytest.importorskip("polars")
    scan = made.open().read(meta_columns=True)
    assert duckdb.sql("select p, sum(v) from scan group by p order by p").fetchall() == [("a", 24), ("b", 15)]
    assert polars.DataFrame(scan).filter(polars.col("p") == "b").height == 3
    assert scan.to_polars().height == 6
    assert list(scan.to_pandas()["p"]) == ["a"] * 3 + ["b"] * 3
    assert pa.table(scan).num_rows == 6
    assert pa.RecordBatchReader.from_stream(scan).schema.names == scan.schema.names


def test_what_a_scan_shows_of_itself(made):
    table = made.open()
    scan = table.read(["id"])
    assert "not planned yet" in repr(scan)
    scan.to_arrow()
    assert "3 files" in repr(scan)
    assert "'made'" in repr(table)
    assert "copy-on-write, version 6" in repr(table)
    assert (table.name, table.table_type, table.table_version) == ("made", "COPY_ON_WRITE", 6)
    assert table.schema.names == SCHEMA.names
    assert [i.time for i in table.timeline.instants] == [at(1), at(2)]


def test_a_missing_base_file_is_an_error_even_if_an_older_one_is_there(made):
    (newest,) = [f for f in (made.path / "a").glob("*.parquet") if at(2) in f.name]
    newest.unlink()
    with pytest.raises(MissingFileError) as e:
        made.open().read().to_arrow()
    assert e.value.instant == at(2)
    assert newest.name in e.value.file
    assert made.open().read(filter="p = 'b'").count() == 3  # the other partition is whole


def test_a_missing_partition_folder_is_an_error(made):
    for file in (made.path / "b").iterdir():
        file.unlink()
    (made.path / "b").rmdir()
    with pytest.raises(MissingFileError):
        made.open().read().to_arrow()


def test_rows_of_a_partition_that_lost_its_metadata_file_are_still_read(made):
    (made.path / "b" / ".hoodie_partition_metadata").unlink()
    assert made.open().read().count() == 6


def test_a_file_of_the_wrong_size_is_an_error(made):
    (newest,) = [f for f in (made.path / "a").glob("*.parquet") if at(2) in f.name]
    newest.write_bytes(newest.read_bytes() + b"more")
    with pytest.raises(CorruptFileError, match="its commit says"):
        made.open().read().to_arrow()


@pytest.mark.parametrize("way", ["to_arrow", "to_batches"])
def test_damaged_bytes_are_an_error_that_names_the_file(made, way):
    (file,) = (made.path / "b").glob("*.parquet")
    data = bytearray(file.read_bytes())
    data[-30:-8] = b"\xff" * 22
    file.write_bytes(bytes(data))
    scan = made.open().read(meta_columns=True)
    with pytest.raises(CorruptFileError) as e:
        scan.to_arrow() if way == "to_arrow" else scan.to_batches().read_all()
    assert file.name in str(e.value)
    assert e.value.remedy


def test_a_folder_that_is_no_partition_of_the_table_is_named(tmp_path):
    schema = pa.schema([("id", pa.string()), ("n", pa.int32())])
    table = MadeTable(tmp_path / "t", schema, partition_fields=("n",))
    table.commit(at(1), {("seven", file_id(0)): [{"id": "1", "n": 7}]})
    with pytest.raises(PartitionPathError, match="'seven'"):
        table.open().read().to_arrow()


def test_options_say_what_arguments_say(made):
    table = made.open()
    assert ids(table.read(options={"as.of.instant": at(1)}, meta_columns=True).to_arrow()) == [
        "1",
        "2",
        "3",
        "4",
        "5",
        "6",
    ]
    assert table.read(filter="v = 20", options={"as.of.instant": at(1)}).count() == 0
    chosen = {"hudi.read.columns": "id,v", "hudi.read.filter": "v = 20"}
    assert table.read(options=chosen, meta_columns=True).to_arrow().to_pydict() == {"id": ["2"], "v": [20]}
    everywhere = HudiTable.open(str(made.path), options={"as.of.instant": at(1), "_note": "mine"})
    assert everywhere.read(filter="v = 20").count() == 0
    with pytest.raises(ConflictingOptionError):
        everywhere.read_incremental("000")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"hoodie.datasource.qery.type": "snapshot"}, UnknownOptionError),
        ({"hoodie.datasource.query.type": "sometimes"}, InvalidOptionError),
        (
            {
                "hoodie.datasource.query.type": "incremental",
                "hoodie.datasource.read.begin.instanttime": "000",
            },
            ConflictingOptionError,
        ),
        ({"hoodie.schema.on.read.enable": "perhaps"}, InvalidOptionError),
    ],
)
def test_options_that_a_read_cannot_follow_are_refused(made, options, error):
    with pytest.raises(error):
        made.open().read(options=options)


def test_other_queries_are_refused_by_name(made):
    with pytest.raises(InvalidOptionError, match="incremental"):
        made.open().read(query="incremental")
    assert made.open().read(query="read_optimized").count() == 6


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda p: None, "nothing"),
        (lambda p: p.mkdir(), "empty"),
        (lambda p: (p / "_delta_log").mkdir(parents=True), "Delta"),
        (lambda p: ((p / "data").mkdir(parents=True), (p / "metadata").mkdir()), "Iceberg"),
        (lambda p: (p.mkdir(), (p / "x.csv").write_text("1")), "x.csv"),
        (lambda p: p.write_text("1"), "file"),
    ],
)
def test_a_path_without_a_table_says_what_is_there(tmp_path, make, words):
    make(tmp_path / "t")
    with pytest.raises(NotAHudiTableError, match=words):
        HudiTable.open(str(tmp_path / "t"))


def test_a_table_that_becomes_merge_on_read_is_read_as_such_at_the_next_incremental_read(made):
    table = made.open()
    edit_properties(made.path, "COPY_ON_WRITE", "MERGE_ON_READ")
    assert ids(table.read_incremental("000", meta_columns=True).to_arrow()) == ["1", "2", "3", "4", "5", "6"]


def test_a_remote_table_reads_like_a_local_one(made):
    import fsspec

    memory = fsspec.filesystem("memory")
    for file in made.path.rglob("*"):
        if file.is_file():
            memory.pipe_file(f"/remote/{file.relative_to(made.path)}", file.read_bytes())
    try:
        table = HudiTable.open("memory://remote")
        assert ids(table.read(meta_columns=True).to_arrow()) == ["1", "2", "3", "4", "5", "6"]
        assert table.read(filter="p = 'b'").files.num_rows == 1
        assert table.read(meta_columns=True).to_batches().read_all().num_rows == 6
    finally:
        memory.rm("/remote", recursive=True)
