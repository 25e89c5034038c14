"""Values of partition columns whose key generator formats them: every read gives those of the files.

Paths of `CustomKeyGenerator` are in a pattern, of which the table does not say anything.
"""

import itertools
from datetime import UTC, datetime
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from properties_edits import edit_properties

from hudi_format.errors import PartitionPathError, SchemaError, UnsupportedError
from hudi_format.storage.open import open_storage
from hudi_timeline import HudiTable
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.writes import execute

WRITE, TIME = "hoodie.datasource.write.", "hoodie.keygen.timebased."
DAY = 86_400_000
MOMENTS = [datetime(2024, 2, 29, 1, 2, 3, tzinfo=UTC), datetime(2023, 12, 31, 23, 59, tzinfo=UTC)]
MILLIS = [int(m.timestamp() * 1000) for m in MOMENTS]
# Type of the source, kind of times, and the values.
SOURCES = {
    "int64 milliseconds": (pa.int64(), "EPOCHMILLISECONDS", MILLIS),
    "int32 seconds": (pa.int32(), "UNIX_TIMESTAMP", [m // 1000 for m in MILLIS]),
    "int64 days": (pa.int64(), "SCALAR", [m // DAY for m in MILLIS]),
    "double seconds": (pa.float64(), "UNIX_TIMESTAMP", [m / 1000 for m in MILLIS]),
    "decimal seconds": (pa.decimal128(12, 1), "UNIX_TIMESTAMP", [Decimal(m // 1000) for m in MILLIS]),
    "timestamps": (pa.timestamp("us", "UTC"), "SCALAR", MOMENTS),
    "dates": (pa.date32(), "SCALAR", [m.date() for m in MOMENTS]),
}


def made(path, source="int64 milliseconds", pattern="yyyy-MM-dd", kind="cow", fields="d:TIMESTAMP", **more):
    type, times, values = SOURCES[source]
    columns = {"id": ["a", "b"], "c": ["x", "y"], "d": pa.array(values, type), "v": [1, 2]}
    options = {
        "hoodie.table.name": "t", WRITE + "recordkey.field": "id", WRITE + "precombine.field": "v",
        WRITE + "keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
        WRITE + "partitionpath.field": fields, TIME + "timestamp.type": times, TIME + "timezone": "UTC",
        TIME + "timestamp.scalar.time.unit": "MICROSECONDS" if source == "timestamps" else "DAYS",
        TIME + "output.dateformat": pattern,
        WRITE + "table.type": {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}[kind],
        WRITE + "operation": "upsert", "hudi.partition.null.texts": "write", **more,
    }  # fmt: skip
    for v in (1, 2):  # the second one is an update: log files of merge on read
        rows = pa.table(columns | {"v": [v, v + 1]})
        execute(LocalEngine(), open_storage(str(path)), rows, options)
    return HudiTable.open(str(path)), pa.table(columns)


def values_of(rows):
    return sorted(zip(rows["id"].to_pylist(), rows["d"].to_pylist(), strict=True))


def reads(table, **more):
    newest = table.timeline.completed_writes()[-1].time
    yield "snapshot", table.read(**more)
    yield "optimized", table.read(query="read_optimized", **more)
    yield "as of", table.read(as_of=newest, **more)
    yield "incremental", table.read_incremental("000", **more)
    yield (
        "by path",
        table.read(options={"hoodie.datasource.read.extract.partition.values.from.path": "true"}, **more),
    )


@pytest.mark.sampled(12)
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("source", SOURCES)
def test_every_read_gives_the_values_of_the_files(tmp_path, source, kind):
    table, rows = made(tmp_path, source, kind=kind)
    want = values_of(rows)
    one = want[0][1]
    for query, scan in reads(table):
        assert scan.schema.field("d").type == rows.schema.field("d").type, query
        assert values_of(scan.to_arrow()) == want, query
        assert values_of(pa.Table.from_batches(scan.to_batches(), scan.schema)) == want, query
    for query, scan in reads(table, filter=pc.field("d") == pa.scalar(one, rows.schema.field("d").type)):
        assert values_of(scan.to_arrow()) == want[:1], query
    for query, scan in reads(table, columns=["id", "d"], filter=pc.field("d").is_null()):
        assert scan.to_arrow().num_rows == 0, query


@pytest.mark.parametrize("source", ["int64 milliseconds", "timestamps"])
def test_other_engines_get_the_values_of_the_files(tmp_path, source):
    table, rows = made(tmp_path, source)
    scan = table.read()
    want = values_of(rows)
    assert values_of(scan.to_pyarrow_dataset().to_table()) == want
    assert values_of(scan.to_polars_lazy().collect().to_arrow()) == want
    assert values_of(scan.to_duckdb(duckdb.connect()).project("id, d").to_arrow_table()) == want


@pytest.mark.sampled(3)
@pytest.mark.parametrize("hive", ["true", "false"])
@pytest.mark.parametrize(
    ("fields", "pattern"),
    list(itertools.product(["c:SIMPLE,d:TIMESTAMP", "d:TIMESTAMP,c:SIMPLE"], ["yyyy-MM-dd", "yyyy/MM/dd"])),
)
def test_paths_of_several_columns_are_not_believed_for_what_they_do_not_say(tmp_path, fields, pattern, hive):
    table, rows = made(tmp_path, fields=fields, pattern=pattern, **{WRITE + "hive_style_partitioning": hive})
    one = MILLIS[0]
    assert values_of(table.read().to_arrow()) == values_of(rows)
    for filter, ids in {
        f"d = {one}": ["a"], "d = 2024": [], f"d > {one - 1} and c = 'x'": ["a"], "c = 'y'": ["b"],
        f"c = 'x' or d <> {one}": ["a", "b"], "d is null": [], "d = 2023 or c = 'x'": ["a"],
    }.items():  # fmt: skip
        assert sorted(table.read(filter=filter).to_arrow()["id"].to_pylist()) == ids, filter
    # What a path says still rules files out.
    read = {t.partition for t in table.read(filter="c = 'y'").plan_files()}
    assert len(read) == (2 if hive == "false" and "/" in pattern else 1)


def test_a_number_that_the_path_says_stays_the_one_of_the_path(tmp_path):
    """As in Apache Hudi 0.15, which a golden table shows."""
    table, _ = made(tmp_path, pattern="yyyyMMdd")
    assert sorted(table.read().to_arrow()["d"].to_pylist()) == [20231231, 20240229]
    assert table.read(filter="d = 20240229").to_arrow()["id"].to_pylist() == ["a"]
    # With a new pattern each row has what is said of it.
    rows = pa.table({"id": ["n"], "c": ["x"], "d": [MILLIS[0]], "v": [1]})
    made_again = {TIME + "output.dateformat": "yyyy-MM-dd"}
    table.insert(rows, options=options_of(made_again))
    for filter, ids in ((None, "abn"), ("d = 20240229", "a"), (f"d = {MILLIS[0]}", "n")):
        assert sorted(table.read(filter=filter).to_arrow()["id"].to_pylist()) == list(ids), filter


def options_of(more):
    return {
        WRITE + "partitionpath.field": "d:TIMESTAMP", TIME + "timestamp.type": "EPOCHMILLISECONDS",
        TIME + "timezone": "UTC", **more,
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_dropped_columns_are_told_as_such(tmp_path, kind):
    table, _ = made(tmp_path, kind=kind)
    edit_properties(tmp_path, "", f"{WRITE}drop.partition.columns=true")
    table = HudiTable.open(str(tmp_path))
    with pytest.raises(PartitionPathError, match="files do not hold the column") as e:
        table.read().to_arrow()
    assert "drop.partition.columns=false" in e.value.remedy


def test_a_file_that_lacks_the_column_is_named(tmp_path):
    made(tmp_path)
    for file in tmp_path.rglob("*.parquet"):
        before = file.stat().st_size
        pq.write_table(pq.read_table(file).drop_columns(["d"]).replace_schema_metadata(None), file)
        for commit in (tmp_path / ".hoodie").glob("*.commit"):
            text = commit.read_text()
            if file.name in text:
                commit.write_text(text.replace(str(before), str(file.stat().st_size)))
    scan = HudiTable.open(str(tmp_path)).read()
    for way in (scan.to_arrow, scan.to_pyarrow_dataset, lambda: scan.to_batches().read_all(), scan.to_duckdb):
        with pytest.raises(PartitionPathError, match="does not hold column d") as e:
            way()
        assert e.value.file
    assert HudiTable.open(str(tmp_path)).read(["id"]).to_arrow().num_rows == 2


def test_partitions_without_a_value_of_the_type_have_null(tmp_path):
    table, _ = made(tmp_path)
    found = table.inspect.partitions()
    assert found.column("d").to_pylist() == [None, None]
    assert found.column("partition").to_pylist() == ["2023-12-31", "2024-02-29"]


def timestamp_based(path, kind, source, pattern):
    """A table of TimestampBasedKeyGenerator, and the options that its writes need."""
    fields = {WRITE + "keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator"}
    table, _ = made(path, source, kind=kind, fields="d", pattern=pattern, **fields)
    times, unit = SOURCES[source][1], "MICROSECONDS" if source == "timestamps" else "DAYS"
    return table, {TIME + "timestamp.type": times, TIME + "timestamp.scalar.time.unit": unit}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("pattern", ["yyyy/MM/dd", "yyyyMMdd"])
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("source", SOURCES)
def test_rows_are_deleted_by_a_filter_whatever_type_the_column_of_the_paths_has(
    tmp_path, source, kind, pattern
):
    """The text of a path was refused: "column d has type string, which cannot become int64"."""
    table, options = timestamp_based(tmp_path, kind, source, pattern)
    table.delete("id = 'a'", options=options)
    assert table.read(["id"]).to_arrow()["id"].to_pylist() == ["b"]
    assert table.verify(deep=True) == []


@pytest.mark.parametrize("pattern", ["yyyy/MM/dd", "yyyyMMdd"])
@pytest.mark.parametrize("fields", ["TIMESTAMP", "CUSTOM"])
def test_the_way_round_an_update_keeps_the_values_of_the_files(tmp_path, fields, pattern):
    """Rows as `read()` gives them would be refused, or go to another partition with another value."""
    if fields == "TIMESTAMP":
        table, options = timestamp_based(tmp_path, "cow", "int64 milliseconds", pattern)
    else:
        table, _ = made(tmp_path, pattern=pattern)
        options = options_of({TIME + "output.dateformat": pattern})
    with pytest.raises(UnsupportedError, match="values of columns in another form") as refused:
        table.update({"c": "z"}, "id = 'a'", options=options)
    assert 'read_incremental("000", on_missing="full_scan")' in refused.value.remedy
    paths = table.inspect.partitions().column("partition").to_pylist()
    rows = table.read_incremental("000", on_missing="full_scan", filter="id = 'a'").to_arrow()
    table.upsert(rows.set_column(rows.schema.get_field_index("c"), "c", pa.array(["z"])), options=options)
    found = table.read_incremental("000").to_arrow().sort_by("id").select(["id", "c", "d"]).to_pylist()
    assert found == [
        {"id": "a", "c": "z", "d": MILLIS[0]},
        {"id": "b", "c": "y", "d": MILLIS[1]},
    ]
    assert table.inspect.partitions().column("partition").to_pylist() == paths


def same(table, rows):
    found = table.read_incremental("000", on_missing="full_scan").to_arrow().sort_by("id").select(["id", "d"])
    return found.to_pylist() == rows.sort_by("id").select(["id", "d"]).to_pylist()


@pytest.mark.sampled(12)
@pytest.mark.parametrize("pattern", ["yyyyMMdd", "yyyy-MM-dd", "yyyy/MM/dd"])
@pytest.mark.parametrize("fields", ["TIMESTAMP", "CUSTOM"])
@pytest.mark.parametrize("source", SOURCES)
def test_rows_as_they_are_read_are_written_back_with_their_values_or_refused(
    tmp_path, source, fields, pattern
):
    """Keys stood in the table twice, with another moment; or the text of a path was to be cast."""
    more = (
        {"hoodie.index.type": "GLOBAL_SIMPLE"} if pattern == "yyyyMMdd" and source == "int32 seconds" else {}
    )
    if fields == "TIMESTAMP":
        table, options = timestamp_based(tmp_path, "cow", source, pattern)
    else:
        table, _ = made(tmp_path, source, pattern)
        times, unit = SOURCES[source][1], "MICROSECONDS" if source == "timestamps" else "DAYS"
        options = options_of({TIME + "timestamp.type": times, TIME + "timestamp.scalar.time.unit": unit})
        options[TIME + "output.dateformat"] = pattern
    before = table.read_incremental("000", on_missing="full_scan").to_arrow()
    read = table.read().to_arrow()
    known = read.schema.field("d").type == before.schema.field("d").type
    numbers = known and not pa.types.is_temporal(before.schema.field("d").type)
    days = source == "dates" and pattern == "yyyy-MM-dd"
    commits = len(table.timeline.completed_writes())
    for operation in ("upsert", "insert", "insert_overwrite"):
        write = getattr(table, operation)
        if days or (known and not (numbers and pattern == "yyyyMMdd")):
            assert write(read, options=options | more).instant
        else:
            with pytest.raises((SchemaError, UnsupportedError)) as refused:
                write(read, options=options | more)
            assert 'read_incremental("000", on_missing="full_scan")' in refused.value.remedy
            assert len(HudiTable.open(str(tmp_path)).timeline.completed_writes()) == commits
            assert isinstance(refused.value, UnsupportedError if known else SchemaError)
        if operation != "insert":
            assert same(table, before)
    table.upsert(before, options=options)


def test_values_that_look_like_folders_are_written_where_no_record_has_another_one(tmp_path):
    table, _ = made(tmp_path, "int64 days", "yyyyMMdd")
    times = {TIME + "timestamp.type": "SCALAR", TIME + "timestamp.scalar.time.unit": "DAYS"}
    options = options_of(times | {TIME + "output.dateformat": "yyyyMMdd"})
    new = pa.table({"id": ["n"], "c": ["x"], "d": [20240229], "v": [1]})
    table.upsert(new, options=options)
    assert table.count() == 3
    with pytest.raises(UnsupportedError, match="1 of 2 rows have what read") as refused:
        table.upsert(pa.concat_tables([new, new.set_column(0, "id", pa.array(["a"]))]), options=options)
    assert refused.value.details["rows"] == 1
    assert "of partition 20240229 d 20240229, where the record has 19782" in refused.value.message
    table.delete("id = 'a'", options=options)  # the way to store such a value
    table.upsert(new.set_column(0, "id", pa.array(["a"])), options=options)
    assert table.count() == 3


@pytest.mark.parametrize("read_back", [True, False])
def test_texts_of_which_the_path_has_a_part_are_not_cut_to_it(tmp_path, read_back):
    """Of a key generator that takes the pattern of the paths for input too."""
    texts = {
        TIME + "timestamp.type": "DATE_STRING", TIME + "timezone": "UTC",
        TIME + "input.dateformat": "yyyy-MM-dd HH:mm,yyyy-MM-dd", TIME + "input.dateformat.list.delimiter.regex": ",",
        TIME + "output.dateformat": "yyyy-MM-dd", WRITE + "recordkey.field": "id", WRITE + "precombine.field": "v",
        WRITE + "keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        WRITE + "partitionpath.field": "d", "hoodie.table.name": "t", WRITE + "operation": "upsert",
    }  # fmt: skip
    rows = pa.table({"id": ["a", "b"], "d": ["2024-02-29 10:00", "2024-02-29"], "v": [1, 1]})
    execute(LocalEngine(), open_storage(str(tmp_path)), rows, texts)
    table = HudiTable.open(str(tmp_path), options=texts)
    if read_back:
        read = table.read().to_arrow()
        assert read["d"].to_pylist() == ["2024-02-29", "2024-02-29"]
        with pytest.raises(UnsupportedError, match="'2024-02-29 10:00'"):
            table.upsert(read)
    else:
        table.upsert(rows)
    assert same(table, rows)


def test_a_delete_that_does_not_find_the_rows_that_were_read_says_why(tmp_path):
    """Their value is that of the folder, which is another moment to the key generator; nothing was said."""
    table, _ = made(tmp_path, pattern="yyyyMMdd")
    options = options_of({TIME + "output.dateformat": "yyyyMMdd"})
    rows = table.read().to_arrow()
    (said,) = table.delete(rows, options=options).warnings
    assert said.startswith("2 of 2 rows to delete were not found.  Of d read() gives what the folders say")
    assert table.count() == 2
    of_files = table.read_incremental("000", on_missing="full_scan", filter="id = 'a'").to_arrow()
    assert table.delete(of_files, options=options).warnings == ()
    assert table.delete("id = 'b'", options=options).warnings == ()
    assert table.count() == 0


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_traces_of_keys_are_reported_without_what_paths_are_made_with(tmp_path, kind):
    """The report asked for an option of writes, which it did not take."""
    table, options = timestamp_based(tmp_path, kind, "int64 milliseconds", "yyyy/MM/dd")
    assert set(table.erasure_report(["a"]).traces.column("key").to_pylist()) == {"a"}
    if kind == "mor":  # a table that is opened with the options of its writes
        HudiTable.open(str(tmp_path), options=options).erase(["a"])
        assert table.read(["id"]).to_arrow()["id"].to_pylist() == ["b"]
