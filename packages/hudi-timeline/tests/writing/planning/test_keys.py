"""Tables of every key generator, written and read without a JVM."""

import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_format.errors import (
    ConflictingOptionError,
    HudiError,
    InvalidOptionError,
    MissingColumnError,
    SchemaError,
)
from hudi_format.merge.payloads import payload_rule
from hudi_format.storage.open import open_storage
from hudi_index.lookup import LookupCount
from hudi_timeline import HudiTable, write_hudi
from hudi_timeline.file_system_view.file_slices import newest_slices_of
from hudi_timeline.file_system_view.snapshot import open_snapshot
from hudi_timeline.writing.local_engine import LocalEngine
from hudi_timeline.writing.operation import execute
from hudi_timeline.writing.planning import keys

WRITE = "hoodie.datasource.write."
CLASS = WRITE + "keygenerator.class"
TIME = "hoodie.keygen.timebased."
CONSISTENT = WRITE + "keygenerator.consistent.logical.timestamp.enabled"
BASE = {"hoodie.table.name": "t", WRITE + "recordkey.field": "id", WRITE + "partitionpath.field": "p"}
DATES = {
    CLASS: "TimestampBasedKeyGenerator",
    TIME + "timestamp.type": "EPOCHMILLISECONDS",
    TIME + "output.dateformat": "yyyy/MM/dd",
    TIME + "timezone": "UTC",
}
DAY = 86_400_000


def rows(p, ids="abcdefgh", **more):
    ids = list(ids)[: len(p)]
    return pa.table({"id": ids, "p": p, "v": ["x"] * len(p), **more})


def write(path, table, operation="upsert", **options):
    given = {**BASE, **{k.replace("__", "."): v for k, v in options.items()}, WRITE + "operation": operation}
    return execute(
        LocalEngine(), open_storage(str(path)), table, {k: v for k, v in given.items() if v is not None}
    )


def read(path, meta_columns=True, **asked):
    return HudiTable.open(str(path)).read(meta_columns=meta_columns, **asked).to_arrow().sort_by("id")


def properties(path):
    return HudiTable.open(str(path)).config.properties


def bytes_of(path):
    return {str(f.relative_to(path)): f.read_bytes() for f in sorted(path.rglob("*")) if f.is_file()}


# --- dates in patterns -----------------------------------------------------------------------------------


@pytest.mark.req("KG-03")
@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert"])
def test_values_of_one_path_are_one_partition_with_every_index(tmp_path, index, operation):
    given = {**DATES, TIME + "output.dateformat": "yyyy", "hoodie.index.type": index,
             "hoodie.combine.before.insert": "true"}  # fmt: skip
    write(tmp_path, rows([0, DAY, 400 * DAY], ids="abc"), operation, **given)
    write(tmp_path, rows([DAY, 2 * DAY, 401 * DAY], ids="ddc"), operation, **given)
    table = HudiTable.open(str(tmp_path))
    assert table.inspect.partitions()["partition"].to_pylist() == ["1970", "1971"]
    once = ["a", "b", "c", "d"] if operation == "upsert" else ["a", "b", "c", "c", "d"]
    assert read(tmp_path, columns=["id"])["id"].to_pylist() == once


@pytest.mark.req("KG-01", "KG-03")
def test_a_table_of_dates_is_written_again_and_keeps_what_apache_hudi_keeps(tmp_path):
    write(tmp_path, rows([0, DAY, None]), **DATES)
    changed = rows([DAY + 5, 2 * DAY], ids="bz").set_column(2, "v", pa.array(["new", "new"]))
    assert write(tmp_path, changed, **DATES).updated == 1
    kept = {k: v for k, v in properties(tmp_path).items() if "keygen" in k}
    assert kept == {
        "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        TIME + "output.dateformat": "yyyy/MM/dd",
        TIME + "timezone": "UTC",
    }
    found = read(tmp_path)
    assert found.column("p").to_pylist() == ["1970/01/01", "1970/01/02", "1970/01/01", "1970/01/03"]
    assert found.column("v").to_pylist() == ["x", "new", "x", "new"]
    # What the files hold shows in incremental queries.
    changes = (
        HudiTable.open(str(tmp_path)).read_incremental("000", meta_columns=True).to_arrow().sort_by("id")
    )
    assert changes.column("p").to_pylist() == [0, DAY + 5, None, 2 * DAY]


@pytest.mark.req("KG-01", "KG-05")
@pytest.mark.parametrize(
    ("changed", "error", "named"),
    [
        ({TIME + "timestamp.type": None}, InvalidOptionError, TIME + "timestamp.type"),
        ({TIME + "output.dateformat": "yyyyMMdd"}, ConflictingOptionError, TIME + "output.dateformat"),
        ({TIME + "timezone": "Asia/Tokyo"}, ConflictingOptionError, TIME + "timezone"),
        ({CLASS: "SimpleKeyGenerator"}, ConflictingOptionError, CLASS),
    ],
)
def test_other_settings_than_the_table_s_are_refused(tmp_path, changed, error, named):
    write(tmp_path, rows([0, DAY]), **DATES)
    before = bytes_of(tmp_path)
    with pytest.raises(error) as e:
        write(tmp_path, rows([0]), **{**DATES, **changed})
    assert named in str(e.value)
    assert e.value.remedy
    assert bytes_of(tmp_path) == before


@pytest.mark.req("KG-03")
def test_a_custom_table_wants_its_kinds_with_every_write(tmp_path):
    dates = {k: v for k, v in DATES.items() if k != CLASS} | {TIME + "output.dateformat": "yyyyMMdd"}
    custom = {CLASS: "CustomKeyGenerator", WRITE + "partitionpath.field": "city:SIMPLE,p:TIMESTAMP", **dates}
    table = rows([0, DAY], city=["oslo", None])
    write(tmp_path, table, **custom)
    assert properties(tmp_path)["hoodie.table.partition.fields"] == "city,p"
    assert not [k for k in properties(tmp_path) if k.startswith(TIME)]
    assert write(tmp_path, table, **custom).updated == 2
    found = read(tmp_path)
    assert found.column("_hoodie_partition_path").to_pylist() == [
        "oslo/19700101", "__HIVE_DEFAULT_PARTITION__/19700102",
    ]  # fmt: skip
    assert found.column("p").to_pylist() == [19700101, 19700102]
    with pytest.raises(InvalidOptionError, match="field:SIMPLE"):
        write(tmp_path, table, **{WRITE + "partitionpath.field": "city,p"}, **dates)
    HudiTable.open(str(tmp_path)).delete_partitions("oslo/*")  # needs no keys
    assert read(tmp_path).num_rows == 1


# --- made-up keys ----------------------------------------------------------------------------------------

MADE_UP = {WRITE + "recordkey.field": None}


@pytest.mark.req("KG-03")
def test_rows_without_a_key_get_one_of_instant_task_and_number(tmp_path):
    given = {**BASE, **MADE_UP}
    first = execute(
        LocalEngine(),
        open_storage(str(tmp_path)),
        rows(["1", "1", "2"]),
        {k: v for k, v in given.items() if v},
    )
    assert first.operation == "bulk_insert"  # as Apache Hudi, where no operation is given
    second = write(tmp_path, rows(["1", "2"], ids="yz"), "insert", **MADE_UP)
    third = write(tmp_path, rows(["1"], ids="a"), "upsert", **MADE_UP)  # adds
    assert third.inserted == 1
    assert "hoodie.table.recordkey.fields" not in properties(tmp_path)
    keys = read(tmp_path).column("_hoodie_record_key").to_pylist()
    assert sorted(keys) == sorted(
        [f"{first.instant}_0_{n}" for n in range(3)]
        + [f"{second.instant}_0_{n}" for n in range(2)]
        + [f"{third.instant}_0_0"]
    )


@pytest.mark.req("KG-03")
def test_rows_that_were_read_are_updated_and_deleted_by_their_stored_keys(tmp_path):
    write(tmp_path, rows(["1", "1", "2"]), "insert", **MADE_UP)
    stored = read(tmp_path)
    changed = stored.slice(0, 1).set_column(stored.schema.get_field_index("v"), "v", pa.array(["new"]))
    assert write(tmp_path, changed, "upsert", **MADE_UP).updated == 1
    assert write(tmp_path, stored.slice(2, 1), "delete", **MADE_UP).deleted == 1
    HudiTable.open(str(tmp_path)).delete("id = 'b'")
    found = read(tmp_path)
    assert found.column("v").to_pylist() == ["new"]
    assert (
        found.column("_hoodie_record_key").to_pylist() == stored.column("_hoodie_record_key").to_pylist()[:1]
    )


@pytest.mark.parametrize(
    ("operation", "options", "error"),
    [
        ("insert", {"hoodie.combine.before.insert": "true"}, ConflictingOptionError),
        ("insert", {WRITE + "recordkey.field": "id"}, ConflictingOptionError),
        ("delete", {}, MissingColumnError),
    ],
)
def test_what_needs_keys_of_the_rows_is_refused(tmp_path, operation, options, error):
    write(tmp_path, rows(["1"]), "insert", **MADE_UP)
    before = bytes_of(tmp_path)
    with pytest.raises(error) as e:
        write(tmp_path, rows(["1"]), operation, **{**MADE_UP, **options})
    assert e.value.remedy
    assert bytes_of(tmp_path) == before


# --- partition columns in the path only ------------------------------------------------------------------

DROP = {WRITE + "drop.partition.columns": "true"}


@pytest.mark.req("KG-03")
@pytest.mark.parametrize("first", ["upsert", "bulk_insert", "insert"])
@pytest.mark.parametrize("hive", ["true", "false"])
def test_partition_columns_are_left_out_of_the_files_and_read_back_as_text(tmp_path, first, hive):
    style = {WRITE + "hive_style_partitioning": hive}
    write(tmp_path, rows([1, 2, None]), first, **DROP, **style)
    changed = rows([1, 2]).set_column(2, "v", pa.array(["y", "z"]))
    assert write(tmp_path, changed).updated == 2
    assert write(tmp_path, rows([1]), "delete").deleted == 1
    table = HudiTable.open(str(tmp_path))
    assert table.schema.names == ["id", "v", "p"]
    assert read(tmp_path, meta_columns=False).to_pylist() == [
        {"id": "b", "v": "z", "p": "2"}, {"id": "c", "v": "x", "p": None},
    ]  # fmt: skip
    assert read(tmp_path, filter="p = '2'").num_rows == 1
    for file in tmp_path.rglob("*.parquet"):
        assert "p" not in pq.ParquetFile(file).schema_arrow.names
    table.delete("p = '2'")
    table.insert_overwrite(rows(pa.array([None], pa.int32()), ids="n"))
    assert read(tmp_path).column("id").to_pylist() == ["n"]


@pytest.mark.parametrize(
    "options",
    [
        {WRITE + "partitionpath.field": "id"},
        {WRITE + "precombine.field": "p"},
        DATES,
    ],
)
def test_a_column_that_is_needed_is_not_left_out(tmp_path, options):
    with pytest.raises(ConflictingOptionError, match=r"drop\.partition\.columns"):
        write(tmp_path / "t", rows([1]), **{**DROP, **options})
    assert not list(tmp_path.iterdir())


# --- virtual keys ----------------------------------------------------------------------------------------

VIRTUAL = {"hoodie.populate.meta.fields": "false"}
META = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path")


@pytest.mark.req("KG-03")
@pytest.mark.parametrize("first", ["upsert", "bulk_insert", "insert"])
@pytest.mark.parametrize(
    "options",
    [{}, {WRITE + "recordkey.field": "id,n"}, {WRITE + "partitionpath.field": None}, DROP],
    ids=["simple", "complex", "unpartitioned", "dropped"],
)
@pytest.mark.sampled(2)
def test_virtual_keys_are_made_of_the_columns_when_they_are_needed(tmp_path, first, options):
    n = pa.array([1, None, 3], pa.int64())
    assert write(tmp_path, rows(["1", "1", "2"], n=n), first, **VIRTUAL, **options).inserted == 3
    changed = rows(["1", "2"], ids="ac", n=pa.array([1, 3], pa.int64())).set_column(
        2, "v", pa.array(["new", "new"])
    )
    assert write(tmp_path, changed, **options).updated == 2
    added = rows(["1", "3"], ids="yz", n=pa.array([1, 1], pa.int64()))
    assert write(tmp_path, added, "insert", **options).inserted == 2
    assert write(tmp_path, added.slice(1), "delete", **options).deleted == 1
    table = HudiTable.open(str(tmp_path))
    found = table.read(meta_columns=True).to_arrow().sort_by("id")
    assert not set(found.column_names) & set(META)
    assert found.column("id").to_pylist() == ["a", "b", "c", "y"]
    assert found.column("v").to_pylist() == ["new", "x", "new", "x"]
    for file in tmp_path.rglob("*.parquet"):
        stored = pq.ParquetFile(file)
        assert set(stored.metadata.metadata) <= {
            b"parquet.avro.schema",
            b"writer.model.name",
            b"ARROW:schema",
        }
        meta = stored.read(columns=[*META, "_hoodie_file_name"])
        assert all(meta.column(name).null_count == meta.num_rows for name in META)
        assert set(meta.column("_hoodie_file_name").to_pylist()) <= {file.name}
    keys = table.get(rows(["1"], ids="a", n=pa.array([1], pa.int64())), meta_columns=True)
    assert keys.column("v").to_pylist() == ["new"]
    assert table.delete("id = 'b'").deleted == 1
    assert read(tmp_path).num_rows == 3


@pytest.mark.req("KG-05")
@pytest.mark.parametrize(
    "options",
    [
        DATES,
        {CLASS: "GlobalDeleteKeyGenerator"},
        {"hoodie.index.type": "BLOOM"},
        {WRITE + "recordkey.field": None},
    ],
)
def test_virtual_keys_that_apache_hudi_could_not_go_on_with_are_refused(tmp_path, options):
    with pytest.raises(HudiError) as e:
        write(tmp_path / "t", rows([1]), "insert", **VIRTUAL, **options)
    assert e.value.remedy
    assert not list(tmp_path.iterdir())


@pytest.mark.req("KG-05")
@pytest.mark.parametrize(("first", "second"), [("false", "true"), ("true", "false")])
@pytest.mark.parametrize("option", ["hoodie.populate.meta.fields", WRITE + "drop.partition.columns"])
def test_what_a_table_s_files_hold_does_not_change(tmp_path, option, first, second):
    write(tmp_path, rows(["1"]), **{option: first})
    before = bytes_of(tmp_path)
    with pytest.raises(ConflictingOptionError, match=option.replace(".", "[.]")):
        write(tmp_path, rows(["1"]), **{option: second})
    assert bytes_of(tmp_path) == before
    assert write(tmp_path, rows(["1"])).updated == 1


# --- keys and types --------------------------------------------------------------------------------------


@pytest.mark.req("KG-03")
def test_keys_to_look_up_are_made_of_the_table_s_types(tmp_path):
    exact = pa.array([Decimal("1.50"), Decimal("2.00")], pa.decimal128(10, 2))
    write(tmp_path, pa.table({"id": exact, "p": ["1", "1"], "v": ["a", "b"]}))
    narrow = pa.table({"id": pa.array([Decimal("1.5")], pa.decimal128(3, 1))})
    assert HudiTable.open(str(tmp_path)).get(narrow, meta_columns=True).column("v").to_pylist() == ["a"]


def test_a_binary_partition_column_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(SchemaError, match="binary"):
        write(tmp_path / "t", rows([b"x"]))
    assert not list(tmp_path.iterdir())


MOMENTS = pa.array(
    [datetime(2024, 2, 29, 1, 2, 3, 456789, UTC), datetime(1969, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")
)


@pytest.mark.req("KG-03")
@pytest.mark.parametrize(("first", "second"), [("true", "false"), ("false", "true")])
@pytest.mark.parametrize("where", ["id", "p", "id,k"])
def test_timestamps_in_another_form_than_the_table_s_are_refused(tmp_path, monkeypatch, first, second, where):
    monkeypatch.setenv("TZ", "UTC")
    table = {"id": ["a", "b"], "p": ["1", "2"], "k": ["x", "y"]}
    table[where.partition(",")[0]] = MOMENTS
    table = pa.table(table)
    keys = {
        WRITE + "recordkey.field": where if where != "p" else "id",
        WRITE + "partitionpath.urlencode": "true",
    }
    write(tmp_path, table, **keys, **{CONSISTENT: first})
    assert write(tmp_path, table, **keys, **{CONSISTENT: first}).updated == 2
    before = bytes_of(tmp_path)
    for operation in ("upsert", "insert", "bulk_insert", "delete"):
        with pytest.raises(ConflictingOptionError) as e:
            write(tmp_path, table, operation, **keys, **{CONSISTENT: second})
        assert e.value.details["option"] == CONSISTENT
        assert f"{CONSISTENT}={first}" in e.value.remedy
    assert bytes_of(tmp_path) == before


def test_dates_of_every_type_make_the_keys_that_text_of_them_makes(tmp_path):
    write(tmp_path, pa.table({"id": [date(2024, 2, 29)], "p": ["1"]}))
    assert read(tmp_path).column("_hoodie_record_key").to_pylist() == ["2024-02-29"]
    with pytest.raises(HudiError):
        write(tmp_path, pa.table({"id": MOMENTS, "p": ["1", "1"]}))


def test_a_file_that_another_writer_cleaned_gives_no_range_and_fails_no_write(tmp_path):
    table = HudiTable.create(
        tmp_path, pa.schema([("id", pa.string()), ("p", pa.string())]), record_keys="id", partition_fields="p"
    )
    table.insert([{"id": end, "p": str(p)} for p in range(9) for end in ("a", "z")])
    files = {s.partition: [s.base_file] for s in newest_slices_of(open_snapshot(table.storage))}
    table.storage.delete(files["0"][0].path)
    (said,) = keys.advice(table.storage, files, LookupCount("GLOBAL_BLOOM", files=9))
    assert "100% of the pairs of files overlap" in said


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize("fields", ["id", "id,k"])
def test_rows_are_found_by_times_that_keys_hold_as_text(tmp_path, monkeypatch, table_type, zone, fields):
    """Also where another row's key is the text that the time has by the clock of the reader."""
    monkeypatch.setenv("TZ", zone)
    noon = datetime(2024, 1, 1, 12, tzinfo=UTC)
    moments = [noon, noon + timedelta(hours=5), MOMENTS[0].as_py()]
    table = pa.table(
        {
            "id": pa.array(moments, pa.timestamp("us", "UTC")),
            "p": list("abc"),
            "v": [1, 2, 3],
            "k": list("xyz"),
        }
    )
    keys = {WRITE + "recordkey.field": fields, WRITE + "table.type": table_type, CONSISTENT: "true"}
    write(tmp_path, table, **keys)
    write(tmp_path, table.slice(1).set_column(2, "v", [[20, 30]]), **keys)
    monkeypatch.setenv("TZ", "UTC")
    opened = HudiTable.open(str(tmp_path))
    stored = opened.get(table.select(["id", "k"]), meta_columns=True).sort_by("v")
    assert stored["v"].to_pylist() == [1, 20, 30]
    assert "2024-01-01" in stored["_hoodie_record_key"][0].as_py()

    def values(given, **more):
        return sorted(opened.get(given, **more)["v"].to_pylist())

    if fields == "id":
        assert values([noon]) == [1]
        assert values([noon, moments[1]]) == [1, 20]
        assert values([noon.isoformat()]) == [1]
        assert values([np.datetime64("2024-01-01T17:00")]) == [20]
        # A key as it stands in the table is that row's alone.
        assert values(stored["_hoodie_record_key"].to_pylist()) == [1, 20, 30]
        assert values(stored["_hoodie_record_key"].slice(0, 1)) == [1]
    else:
        assert values([{"id": noon, "k": "x"}]) == [1]
        assert values([{"id": noon, "k": "y"}]) == []
    assert values(table.select(["id", "k"]), partitions=["c", "b"]) == [20, 30]
    assert values(pa.table({"id": [noon + timedelta(hours=1)], "k": ["x"]})) == []


def test_keys_of_dates_decimals_and_uuids_are_found_beside_times_as_text(tmp_path):
    for number, value in enumerate((date(2024, 2, 29), Decimal("1.50"), uuid.UUID(int=7))):
        rows = [{"id": value, "p": "a", "v": 1}]
        write_hudi(tmp_path / str(number), rows, key="id", partition_by="p", options={CONSISTENT: "true"})
        assert HudiTable.open(str(tmp_path / str(number))).get([value])["v"].to_pylist() == [1]


DMS, DEBEZIUM = "AWSDmsAvroPayload", "MySqlDebeziumAvroPayload"


@pytest.mark.parametrize(
    ("payload", "column", "kind", "said"),
    [
        (DMS, "op", pa.string(), "the rows have op: none of them is taken for a delete"),
        (DMS, "OP", pa.int32(), "the rows have OP"),
        (DMS, "Op", pa.int64(), "column Op has type int64: no row is taken for a delete"),
        (DMS, "Op", pa.list_(pa.string()), "has type list<"),
        (DEBEZIUM, "_Change_Operation_Type", pa.string(), "rename the column to _change_operation_type"),
        (DMS, "Op", pa.string(), ""),
        (DMS, "Op", pa.dictionary(pa.int8(), pa.string()), ""),
        (DMS, "operation", pa.string(), ""),  # a full load has no marks
        ("DefaultHoodieRecordPayload", "op", pa.string(), ""),
    ],
)
def test_a_column_that_only_looks_like_the_payloads_mark_of_a_delete_is_told(payload, column, kind, said):
    rows = pa.schema([("id", pa.string()), (column, kind)])
    found = keys.about_marks(payload_rule(payload), rows)
    assert len(found) == bool(said)
    assert said in "".join(found)


def test_a_write_warns_of_marks_that_mark_nothing(tmp_path):
    options = {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.AWSDmsAvroPayload"}
    for name, kept in (("op", ["a"]), ("Op", [])):
        schema = pa.schema([("id", pa.string()), (name, pa.string())])
        table = HudiTable.create(tmp_path / name, schema, name="t", record_keys=["id"], options=options)
        table.upsert(pa.table({"id": ["a"], name: ["I"]}, schema), options=options)
        result = table.upsert(pa.table({"id": ["a"], name: ["D"]}, schema), options=options)
        assert any("deletes rows with Op='D'" in w for w in result.warnings) == bool(kept)
        assert table.read().to_arrow().column("id").to_pylist() == kept
