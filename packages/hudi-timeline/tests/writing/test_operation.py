"""Each write operation of `HudiTable` against what it should leave, and the commit it should report."""

import json
import random
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from properties_edits import edit_properties

from hudi_format.errors import (
    ConflictingOptionError,
    HudiError,
    MissingColumnError,
    NotAHudiTableError,
    OptionError,
    OrderingValueError,
    RecordKeyError,
    SchemaError,
    TableExistsError,
    UnknownOptionError,
    UnsupportedError,
)
from hudi_timeline import HudiTable

SCHEMA = pa.schema(
    [
        ("uuid", pa.string()),
        ("rider", pa.string()),
        ("fare", pa.float64()),
        ("ts", pa.int64()),
        ("city", pa.string()),
    ]
)


def trips(n, start=0, *, city=lambda i: f"c{i % 3}", ts=1, rider="r"):
    ids = range(start, start + n)
    return pa.table(
        {
            "uuid": [f"k{i:05d}" for i in ids],
            "rider": [f"{rider}{i}" for i in ids],
            "fare": [float(i) for i in ids],
            "ts": [ts] * n,
            "city": [city(i) for i in ids],
        },
        schema=SCHEMA,
    )


def make(path, **kwargs):
    arguments = {
        "name": "trips",
        "record_keys": ["uuid"],
        "partition_fields": ["city"],
        "ordering_fields": ["ts"],
        **kwargs,
    }
    return HudiTable.create(str(path), SCHEMA, **arguments)


def rows(table, *columns):
    names = list(columns) or SCHEMA.names
    data = table.read(columns=names, meta_columns=False).to_arrow()
    return sorted(tuple(r[c] for c in names) for r in data.to_pylist())


def expected(*tables):
    return sorted(tuple(r[c] for c in SCHEMA.names) for t in tables for r in t.to_pylist())


def files_of(path):
    return sorted(
        str(p.relative_to(path)) for p in path.rglob("*") if p.is_file() and not p.name.endswith(".crc")
    )


@pytest.mark.req("WR-01", "NEW-01")
@pytest.mark.parametrize("operation", ["insert", "upsert", "bulk_insert"])
def test_a_first_write_gives_back_its_rows(tmp_path, operation):
    table = make(tmp_path / "t")
    result = getattr(table, operation)(trips(50))
    assert rows(table) == expected(trips(50))
    assert (result.inserted, result.updated, result.deleted) == (50, 0, 0)
    assert result.files_written == 3
    assert result.partitions == ("c0", "c1", "c2")
    assert result.action == "commit"
    assert result.instant in repr(result)
    assert HudiTable.open(str(tmp_path / "t")).read().to_arrow().num_rows == 50


@pytest.mark.req("WR-01")
def test_upsert_updates_known_keys_and_inserts_new_ones(tmp_path):
    table = make(tmp_path / "t")
    table.bulk_insert(trips(60))
    changed = trips(20, start=50, rider="new", ts=2)
    result = table.upsert(changed)
    assert (result.inserted, result.updated) == (10, 10)
    assert result.files_written == 0
    assert result.files_rewritten == 3
    assert rows(table) == expected(trips(50), changed)
    stored = table.read(meta_columns=True).to_arrow().to_pylist()
    times = {r["uuid"]: r["_hoodie_commit_time"] for r in stored}
    assert times["k00055"] == result.instant
    assert times["k00005"] < result.instant
    files = {f["path"].rpartition("/")[2] for f in table.inspect.files().to_pylist()}
    assert {r["_hoodie_file_name"] for r in stored} == files
    seqnos = [r["_hoodie_commit_seqno"] for r in stored]
    assert len(set(seqnos)) == len(seqnos)


@pytest.mark.req("PM-01")
def test_the_greatest_ordering_value_wins_within_the_input_and_the_later_row_on_ties(tmp_path):
    table = make(tmp_path / "t")
    one = trips(1)
    late = one.set_column(1, "rider", pa.array(["late"])).set_column(3, "ts", pa.array([5], pa.int64()))
    tie = late.set_column(1, "rider", pa.array(["tie"]))
    table.upsert(pa.concat_tables([one, late, tie, one]))
    assert rows(table, "uuid", "rider", "ts") == [("k00000", "tie", 5)]


@pytest.mark.req("PM-02")
def test_overwrite_with_latest_ignores_the_stored_ordering_value(tmp_path):
    table = make(tmp_path / "t")
    table.upsert(trips(3, ts=9))
    table.upsert(trips(3, ts=1, rider="older"))
    assert rows(table, "rider") == [("older0",), ("older1",), ("older2",)]


@pytest.mark.req("PM-03")
def test_default_payload_keeps_a_stored_record_with_a_greater_ordering_value(tmp_path):
    payload = {
        "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
    }
    table = make(tmp_path / "t", options=payload)
    table.upsert(trips(4, ts=5))
    mixed = pa.concat_tables([trips(1, ts=4, rider="old"), trips(1, start=1, ts=5, rider="tie"),
                              trips(1, start=2, ts=6, rider="new")])  # fmt: skip
    result = table.upsert(mixed)
    assert rows(table, "rider") == [("new2",), ("r0",), ("r3",), ("tie1",)]
    assert result.updated == 2


@pytest.mark.req("PM-02", "PM-09")
def test_a_partial_update_fills_what_the_winner_lacks(tmp_path):
    payload = "org.apache.hudi.common.model.PartialUpdateAvroPayload"
    table = make(tmp_path / "t", options={"hoodie.datasource.write.payload.class": payload})
    table.upsert(pa.concat_tables([nulled(trips(1, ts=5)), trips(1, start=1, ts=5)]))
    result = table.upsert(pa.concat_tables([trips(1, ts=4, rider="late"), nulled(trips(1, start=1, ts=6))]))
    assert rows(table, "rider", "ts") == [("late0", 5), ("r1", 6)]
    assert result.updated == 2
    assert HudiTable.open(str(tmp_path / "t")).config.payload_class == payload


def nulled(table):
    return table.set_column(1, "rider", pa.nulls(table.num_rows, pa.string()))


@pytest.mark.req("PM-13")
def test_a_table_with_a_payload_of_the_users_is_refused(tmp_path):
    table = make(tmp_path / "t")
    edit_properties(tmp_path / "t", "", "hoodie.compaction.payload.class=org.example.Own")
    with pytest.raises(UnsupportedError, match="payload class"):
        HudiTable.open(table.storage.uri).upsert(trips(1))


@pytest.mark.req("PM-05")
def test_a_delete_field_that_the_payload_does_not_look_at_is_refused(tmp_path):
    table = make(tmp_path / "t")
    given = {"hoodie.payload.delete.field": "rider", "hoodie.payload.delete.marker": "x"}
    with pytest.raises(OptionError, match="OverwriteWithLatestAvroPayload"):
        table.upsert(trips(1), options=given)


@pytest.mark.req("WR-04")
def test_delete_by_rows_removes_them_and_ignores_unknown_keys(tmp_path):
    table = make(tmp_path / "t")
    table.bulk_insert(trips(30))
    result = table.delete(trips(10, start=25).select(["uuid", "city"]))
    assert result.deleted == 5
    assert rows(table) == expected(trips(25))


def test_rows_to_delete_that_have_meta_columns_alone_are_told_what_they_lack(tmp_path):
    table = make(tmp_path / "t")
    table.insert(trips(3))
    rows = table.read(meta_columns=True).to_arrow()
    with pytest.raises(MissingColumnError, match="'uuid' is not in the data, which has none"):
        table.delete(rows.select([n for n in rows.column_names if n.startswith("_hoodie_")]))


def test_delete_by_filter(tmp_path):
    table = make(tmp_path / "t")
    table.bulk_insert(trips(30))
    result = table.delete("city = 'c1' and fare < 15")
    assert result.deleted == 5
    assert all(r[4] != "c1" or r[2] >= 15 for r in rows(table))
    assert len(rows(table)) == 25


def test_deleting_every_row_of_a_file_leaves_an_empty_file_that_reads(tmp_path):
    table = make(tmp_path / "t")
    table.bulk_insert(trips(9))
    table.delete(trips(9).select(["uuid", "city"]))
    assert rows(table) == []
    table.upsert(trips(2))
    assert rows(table) == expected(trips(2))


@pytest.mark.req("WR-04")
def test_rows_flagged_as_deleted_are_deletes_in_an_upsert(tmp_path):
    schema = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    table = HudiTable.create(str(tmp_path / "t"), schema, name="t", record_keys=["uuid"],
                             partition_fields=["city"], ordering_fields=["ts"])  # fmt: skip
    flags = lambda n, values: pa.array(values, pa.bool_())  # noqa: E731
    first = trips(4).append_column("_hoodie_is_deleted", flags(4, [False, None, False, True]))
    result = table.upsert(first)
    assert result.inserted == 3
    second = trips(4).append_column("_hoodie_is_deleted", flags(4, [True, False, False, True]))
    result = table.upsert(second)
    assert (result.deleted, result.updated) == (1, 2)
    assert rows(table, "uuid") == [("k00001",), ("k00002",)]


@pytest.mark.req("WR-02")
def test_insert_keeps_duplicates_and_fills_small_files(tmp_path):
    table = make(tmp_path / "t")
    table.insert(trips(6))
    result = table.insert(trips(6))
    assert (result.files_written, result.files_rewritten, result.inserted) == (0, 3, 6)
    assert rows(table) == expected(trips(6), trips(6))


def test_upsert_of_a_key_in_two_files_updates_both(tmp_path):
    options = {"hoodie.parquet.small.file.limit": "0"}
    table = make(tmp_path / "t")
    table.insert(trips(3), options=options)
    table.insert(trips(3), options=options)
    result = table.upsert(trips(3, rider="new", ts=2))
    assert result.updated == 6
    assert rows(table) == expected(trips(3, rider="new", ts=2), trips(3, rider="new", ts=2))


@pytest.mark.req("TM-15")
def test_insert_overwrite_replaces_only_the_partitions_written(tmp_path):
    table = make(tmp_path / "t")
    table.bulk_insert(trips(30))
    result = table.insert_overwrite(trips(2, start=100, city=lambda i: "c1"))
    assert result.action == "replacecommit"
    assert list(result.replaced) == ["c1"]
    kept = trips(30).filter(pa.compute.not_equal(trips(30)["city"], "c1"))
    assert rows(table) == expected(kept, trips(2, start=100, city=lambda i: "c1"))


@pytest.mark.req("TM-15")
def test_insert_overwrite_table_replaces_all_and_time_travel_still_sees_the_old(tmp_path):
    table = make(tmp_path / "t")
    first = table.bulk_insert(trips(30))
    table.insert_overwrite_table(trips(2, start=100))
    assert rows(table) == expected(trips(2, start=100))
    assert table.read(as_of=first.instant).to_arrow().num_rows == 30


@pytest.mark.req("TM-15")
def test_delete_partitions_takes_names_and_patterns(tmp_path):
    table = make(tmp_path / "t")
    table.bulk_insert(trips(30))
    result = table.delete_partitions(["c1"])
    assert result.action == "replacecommit"
    assert {r[4] for r in rows(table)} == {"c0", "c2"}
    table.delete_partitions(["c*"])
    assert rows(table) == []


def test_a_new_partition_and_a_new_file_group_beside_full_ones(tmp_path):
    options = {"hoodie.parquet.small.file.limit": "0", "hoodie.copyonwrite.insert.auto.split": "false",
               "hoodie.copyonwrite.insert.split.size": "10"}  # fmt: skip
    table = make(tmp_path / "t")
    table.upsert(trips(5, city=lambda i: "a"), options=options)
    result = table.upsert(trips(55, start=5, city=lambda i: "a"), options=options)
    assert result.files_written == 6
    assert rows(table) == expected(trips(60, city=lambda i: "a"))


@pytest.mark.req("TL-14")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.sampled(6)
def test_random_operations_agree_with_a_dictionary(tmp_path, seed):
    rng = random.Random(seed)
    table = make(tmp_path / "t")
    model = {}
    for step in range(12):
        operation = rng.choice(["upsert", "upsert", "delete", "insert_overwrite", "upsert"])
        n = rng.randint(1, 40)
        ids = [rng.randint(0, 60) for _ in range(n)]
        batch = pa.concat_tables([trips(1, start=i, rider=f"s{step}-{j}-", ts=rng.randint(0, 3))
                                  for j, i in enumerate(ids)])  # fmt: skip
        best = {}
        for r in batch.to_pylist():
            key = (r["uuid"], r["city"])
            if key not in best or r["ts"] >= best[key]["ts"]:
                best[key] = r
        if operation == "insert_overwrite":
            table.insert_overwrite(batch, options={"hoodie.combine.before.insert": "true"})
            cities = {r["city"] for r in best.values()}
            model = {k: v for k, v in model.items() if k[1] not in cities} | best
        elif operation == "delete":
            table.delete(batch.select(["uuid", "city"]))
            model = {k: v for k, v in model.items() if k not in best}
        else:
            table.upsert(batch)
            model |= best
        assert rows(table) == sorted(tuple(r[c] for c in SCHEMA.names) for r in model.values())


# --- bad input: a typed error, and the table as it was ----------------------------------------------------


def _bad(change, error, operation="upsert", options=None):
    return pytest.param(
        change, error, operation, options or {}, id=f"{operation}-{error.__name__}-{options or ''}"
    )


def _column(name, values, type=None):
    return lambda t: t.set_column(t.schema.get_field_index(name), name, pa.array(values, type))


BAD = [
    _bad(_column("uuid", ["a", None, "c"]), RecordKeyError),
    _bad(_column("uuid", ["a", "", "c"]), RecordKeyError),
    _bad(_column("uuid", ["a", None, "c"]), RecordKeyError, "bulk_insert"),
    _bad(_column("uuid", ["a", None, "c"]), RecordKeyError, "insert_overwrite"),
    _bad(lambda t: t.drop_columns(["uuid"]), MissingColumnError),
    _bad(lambda t: t.drop_columns(["city"]), MissingColumnError),
    _bad(lambda t: t.drop_columns(["ts"]), MissingColumnError),
    _bad(lambda t: t.drop_columns(["rider"]), SchemaError),
    _bad(_column("ts", [1, None, 2], pa.int64()), OrderingValueError),
    _bad(_column("fare", [True, False, None]), SchemaError),
    _bad(lambda t: t, UnknownOptionError, options={"hoodie.parquet.max.file.sise": "1"}),
    _bad(lambda t: t, UnsupportedError, options={"hoodie.datasource.hive_sync.enable": "true"}),
    _bad(lambda t: t, ConflictingOptionError, options={"hoodie.index.type": "BUCKET"}),
    _bad(lambda t: t, ConflictingOptionError, options={"hoodie.table.name": "other"}),
    _bad(lambda t: t, ConflictingOptionError, options={"hoodie.datasource.write.recordkey.field": "rider"}),
    _bad(lambda t: t, HudiError, options={"hoodie.datasource.write.table.type": "MERGE_ON_READ"}),
    _bad(_column("city", ["a/../../x", "b", "c"]), HudiError),
]


def test_the_first_row_without_an_ordering_value_is_named(tmp_path):
    table = make(tmp_path / "t")
    with pytest.raises(OrderingValueError, match="'ts' is null in 1 of 3 rows, first in row 1"):
        table.upsert(_column("ts", [1, None, 2], pa.int64())(trips(3)))


@pytest.mark.req("NEW-15", "NEW-36")
@pytest.mark.parametrize(("change", "error", "operation", "options"), BAD)
@pytest.mark.sampled(4)
def test_bad_input_is_a_typed_error_and_changes_nothing(tmp_path, change, error, operation, options):
    path = tmp_path / "t"
    table = make(path)
    table.bulk_insert(trips(9))
    before = files_of(path)
    with pytest.raises(error) as caught:
        getattr(table, operation)(change(trips(3)), options=options)
    assert caught.value.code.startswith("HUDI-E")
    assert "\n" not in str(caught.value)
    assert rows(table) == expected(trips(9))
    after = [f for f in files_of(path) if ".rollback" not in f]
    assert after == before
    table.upsert(trips(1, rider="again"))
    assert ("k00000", "again0") in rows(table, "uuid", "rider")


def test_a_failed_first_write_leaves_no_table(tmp_path):
    from hudi_format.storage.open import open_storage
    from hudi_timeline.writing.local_engine import LocalEngine
    from hudi_timeline.writing.operation import execute

    storage = open_storage(str(tmp_path / "t"))
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "uuid",
               "hoodie.datasource.write.operation": "bulk_insert"}  # fmt: skip
    bad = _column("uuid", ["a", None, "c"])(trips(3))
    with pytest.raises(RecordKeyError):
        execute(LocalEngine(), storage, bad, options)
    with pytest.raises(NotAHudiTableError):
        HudiTable.open(str(tmp_path / "t"))


def test_a_path_with_something_else_is_refused(tmp_path):
    from hudi_format.storage.open import open_storage
    from hudi_timeline.writing.local_engine import LocalEngine
    from hudi_timeline.writing.operation import execute

    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "part-0.parquet").write_bytes(b"x")
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "uuid"}
    with pytest.raises(NotAHudiTableError, match="part-0"):
        execute(LocalEngine(), open_storage(str(tmp_path / "t")), trips(3), options)
    assert files_of(tmp_path / "t") == ["part-0.parquet"]


# --- modes -------------------------------------------------------------------------------------------------


def run(path, data, mode, **options):
    from hudi_format.storage.open import open_storage
    from hudi_timeline.writing.local_engine import LocalEngine
    from hudi_timeline.writing.operation import execute

    base = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "uuid",
            "hoodie.datasource.write.partitionpath.field": "city"}  # fmt: skip
    return execute(LocalEngine(), open_storage(str(path)), data, {**base, **options}, mode=mode)


def test_the_save_mode_decides_what_becomes_of_a_table_that_is_there(tmp_path):
    path = tmp_path / "t"
    run(path, trips(5), "errorifexists")
    with pytest.raises(TableExistsError):
        run(path, trips(5), "error")
    assert run(path, trips(9), "ignore").instant == ""
    assert len(rows(HudiTable.open(str(path)))) == 5
    run(path, trips(2, start=50), "overwrite", **{"hoodie.datasource.write.partitionpath.field": "rider"})
    table = HudiTable.open(str(path))
    assert rows(table) == expected(trips(2, start=50))
    assert table.config.partition_fields == ("rider",)
    assert len(table.timeline.completed_writes()) == 1
    assert not (path / ".hoodie/.overwrite").exists()


def test_an_overwrite_that_fails_gives_the_old_table_back(tmp_path):
    path = tmp_path / "t"
    run(path, trips(5), "append")
    before = files_of(path)
    with pytest.raises(RecordKeyError):
        run(path, _column("uuid", ["a", None, "c"])(trips(3)), "overwrite",
            **{"hoodie.datasource.write.operation": "bulk_insert"})  # fmt: skip
    assert files_of(path) == before
    assert rows(HudiTable.open(str(path))) == expected(trips(5))


def test_the_default_ordering_field_is_ts_and_the_result_says_so(tmp_path):
    result = run(tmp_path / "t", trips(5), "append")
    assert result.ordering_field == "ts"
    assert any("ts" in w for w in result.warnings)
    again = run(tmp_path / "u", trips(5).drop_columns(["ts"]), "append")
    assert again.ordering_field is None


# --- what the files hold -----------------------------------------------------------------------------------

ALL_TYPES = pa.table(
    {
        "id": pa.array(["a", "b", "c"]),
        "i": pa.array([1, None, 3], pa.int32()),
        "f": pa.array([1.5, None, 3.5], pa.float32()),
        "ok": pa.array([True, None, False]),
        "day": pa.array([date(2024, 2, 29), None, date(1969, 1, 1)]),
        "at": pa.array([datetime(2024, 1, 1, tzinfo=UTC), None, datetime(1960, 1, 1, tzinfo=UTC)],
                       pa.timestamp("us", "UTC")),
        "raw": pa.array([b"\x00\xff", None, b""]),
        "small": pa.array([Decimal("1.50"), None, Decimal("-2.25")], pa.decimal128(5, 2)),
        "big": pa.array([Decimal("12345678901234567890.123"), None, Decimal("-1.000")], pa.decimal128(30, 3)),
        "list": pa.array([[1, None, 3], None, []], pa.list_(pa.int64())),
        "map": pa.array([[("x", 1)], None, []], pa.map_(pa.string(), pa.int32())),
        "st": pa.array([{"a": "q", "n": {"b": [1]}}, None, {"a": None, "n": None}],
                       pa.struct([("a", pa.string()), ("n", pa.struct([("b", pa.list_(pa.int32()))]))])),
    }
)  # fmt: skip


@pytest.mark.req("TL-27")
def test_every_type_survives_a_write_and_a_merge(tmp_path):
    table = HudiTable.create(str(tmp_path / "t"), ALL_TYPES.schema, name="t", record_keys=["id"])
    table.insert(ALL_TYPES)
    table.upsert(ALL_TYPES.slice(1, 2))
    got = table.read(meta_columns=False).to_arrow().sort_by("id")
    assert got.schema.names == ALL_TYPES.schema.names
    assert got.to_pylist() == ALL_TYPES.to_pylist()


@pytest.mark.req("SE-01")
def test_footers_carry_filter_key_range_and_schema(tmp_path):
    from hudi_index.bloom.filter import parse_filter

    table = make(tmp_path / "t")
    table.bulk_insert(trips(30))
    table.upsert(trips(10, start=25, ts=3))
    table.delete(trips(1).select(["uuid", "city"]))
    for file in table.inspect.files().to_pylist():
        meta = pq.read_metadata(tmp_path / "t" / file["path"]).metadata
        keys = pq.read_table(tmp_path / "t" / file["path"], columns=["_hoodie_record_key"]).column(0)
        bloom = parse_filter(
            meta[b"org.apache.hudi.bloomfilter"].decode(), meta[b"hoodie_bloom_filter_type_code"].decode()
        )
        assert all(bloom.might_contain(keys.combine_chunks()).to_pylist())
        assert meta[b"hoodie_min_record_key"].decode() <= min(keys.to_pylist())
        assert meta[b"hoodie_max_record_key"].decode() >= max(keys.to_pylist())
        fields = [f["name"] for f in json.loads(meta[b"parquet.avro.schema"])["fields"]]
        assert fields[:5] == [f for f in fields if f.startswith("_hoodie_")]


@pytest.mark.req("WR-27")
def test_a_spike_costs_the_files_that_it_touches_and_the_result_says_so(tmp_path):
    """As many changed rows, in one partition or in all of them: what is written goes with the files."""
    table = HudiTable.create(
        str(tmp_path / "t"),
        SCHEMA,
        name="t",
        record_keys=["uuid"],
        partition_fields=["city"],
        ordering_fields=["ts"],
    )
    base = trips(4000, city=lambda i: f"c{i % 8}")
    table.bulk_insert(base, options={"hoodie.parquet.bloom.filter.enabled": False})
    options = {"hoodie.parquet.bloom.filter.enabled": False}
    quiet = table.upsert(base.filter(pc.equal(base["city"], "c0")).slice(0, 8), options=options)
    spike = table.upsert(base.slice(0, 8), options=options)
    assert (quiet.updated, quiet.files_rewritten, quiet.partitions) == (8, 1, ("c0",))
    assert (spike.updated, spike.files_rewritten, len(spike.partitions)) == (8, 8, 8)
    assert 7 < spike.bytes_written / quiet.bytes_written < 9
    recorded = table.inspect.commits().to_pylist()[-2:]
    assert [c["bytes_written"] for c in recorded] == [quiet.bytes_written, spike.bytes_written]


@pytest.mark.req("NEW-15")
@pytest.mark.parametrize(
    ("call", "other"),
    [
        (lambda t, o: t.insert(trips(2, 90), options=o), "upsert"),
        (lambda t, o: t.upsert(trips(2), options=o), "insert_prepped"),
        (lambda t, o: t.delete(trips(2), options=o), "upsert"),
        (lambda t, o: t.delete("fare < 2", options=o), "insert"),
        (lambda t, o: t.update({"fare": 1.0}, options=o), "delete"),
        (lambda t, o: t.merge(trips(2), options=o).when_matched_delete().execute(), "delete"),
        (lambda t, o: t.delete_partitions("c1", options=o), "insert_overwrite"),
        (lambda t, o: t.insert_overwrite(trips(2), options=o), "insert_overwrite_table"),
    ],
)
def test_a_call_whose_options_name_another_operation_is_refused(tmp_path, call, other):
    table = make(tmp_path / "t")
    table.insert(trips(6))
    with pytest.raises(ConflictingOptionError, match=f"its options say {other}") as caught:
        call(table, {"hoodie.datasource.write.operation": other})
    assert caught.value.details["option"] == "hoodie.datasource.write.operation"
    assert "leave hoodie.datasource.write.operation out" in caught.value.remedy
    assert len(table.inspect.timeline()) == 1


def test_the_operation_among_the_options_that_jobs_share_gives_way_to_the_method(tmp_path):
    make(tmp_path / "t").insert(trips(6))
    table = HudiTable.open(str(tmp_path / "t"), options={"hoodie.datasource.write.operation": "bulk_insert"})
    table.upsert(trips(3, rider="new"))
    table.upsert(trips(1, rider="newer"), options={"hoodie.datasource.write.operation": "Upsert"})
    table.delete(trips(2, 4))
    table.delete("fare = 3")
    assert rows(table, "uuid", "rider") == [("k00000", "newer0"), ("k00001", "new1"), ("k00002", "new2")]
    assert table.history().column("operation").to_pylist() == [
        "DELETE",
        "DELETE",
        "UPSERT",
        "UPSERT",
        "INSERT",
    ]
