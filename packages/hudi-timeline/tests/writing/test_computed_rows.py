"""Rows that are computed from stored ones: update and merge."""

import datetime as dt
import gc
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_format.errors import (
    DuplicateKeyError,
    InvalidOptionError,
    MissingColumnError,
    MissingFileError,
    OptionError,
    SchemaError,
    UnsupportedError,
)
from hudi_timeline import HudiTable, write_hudi
from hudi_timeline.options.transaction_options import CONCURRENCY_MODE, OPTIMISTIC, SINGLE_WRITER
from hudi_timeline.reading.stability import instants
from hudi_timeline.writing import computed_rows

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
ROWS = [
    {"id": 1, "city": "oslo", "fare": 1.0, "note": "a"},
    {"id": 2, "city": "oslo", "fare": 2.0, "note": None},
    {"id": 3, "city": "pune", "fare": None, "note": "c"},
    {"id": 4, "city": "rome", "fare": 4.0, "note": "d"},
]


def files_of(path):
    return {str(f): f.read_bytes() for f in Path(path).rglob("*") if f.is_file()}


def rows_of(table):
    rows = table.read(["id", "city", "fare", "note"]).to_arrow().sort_by("id")
    return [tuple(r.values()) for r in rows.to_pylist()]


@pytest.fixture(params=[COW, MOR])
def table(request, tmp_path):
    write_hudi(tmp_path / "t", ROWS, key="id", partition_by="city", table_type=request.param)
    return HudiTable.open(tmp_path / "t")


WRITES = {
    "update": lambda table: table.update({"fare": 5}, "id = 1"),
    "merge": lambda table: table.merge(ROWS[:1]).when_matched_delete().execute(),
    "delete": lambda table: table.delete("id = 1"),
}


@pytest.mark.parametrize("mode", [SINGLE_WRITER, OPTIMISTIC])
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_the_read_of_a_write_ends_with_it(table, write, mode):
    """Not when the garbage is collected: a cleaning in this process would spare the files that it read."""
    opened = HudiTable.open(table.uri, options={CONCURRENCY_MODE: mode})
    gc.collect()
    gc.disable()
    try:
        write(opened)
        assert instants(opened.storage.uri, opened.timeline.completed_writes()) == []
        assert opened.erase(["4"]).erased
    finally:
        gc.enable()


# --- update ------------------------------------------------------------------------------------------------


def test_an_update_sets_columns_of_the_rows_that_pass(table):
    values = {"fare": pc.multiply(pc.field("fare"), 10), "note": "x"}
    before = files_of(table.uri)
    said = table.update(values, "city = 'oslo' and fare > 1", dry_run=True)
    assert files_of(table.uri) == before
    done = table.update(values, "city = 'oslo' and fare > 1")
    assert (said.updated, said.inserted, said.deleted) == (done.updated, 0, 0) == (1, 0, 0)
    assert rows_of(table) == [
        (1, "oslo", 1.0, "a"), (2, "oslo", 20.0, "x"), (3, "pune", None, "c"), (4, "rome", 4.0, "d"),
    ]  # fmt: skip
    schema = table.schema
    table.update({"note": None, "fare": 7})
    assert [r[2:] for r in rows_of(table)] == [(7.0, None)] * 4
    assert table.schema.equals(schema)
    assert table.update({"fare": 0}, "id = 99").updated == 0


def test_an_update_is_made_once_where_the_compaction_after_it_misses_a_file(tmp_path):
    write_hudi(tmp_path / "t", ROWS, key="id", partition_by="city", table_type=MOR)
    table = HudiTable.open(tmp_path / "t")
    table.update({"fare": 5}, "city = 'rome'", options={"hoodie.compact.inline": "false"})
    for file in (tmp_path / "t" / "rome").glob("*.parquet"):
        file.unlink()
    before = len(table.timeline.completed_writes())
    now = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    with pytest.raises(MissingFileError) as e:
        table.update({"fare": pc.multiply(pc.field("fare"), 10)}, "city = 'oslo'", options=now)
    assert "completed and visible" in e.value.__notes__[0]
    assert len(HudiTable.open(tmp_path / "t").timeline.completed_writes()) == before + 1
    read = HudiTable.open(tmp_path / "t").read(["id", "fare"], filter="city = 'oslo'").to_arrow()
    assert read.sort_by("id").column("fare").to_pylist() == [10.0, 20.0]


@pytest.mark.parametrize(
    ("set", "where", "error"),
    [
        ({}, None, OptionError),
        ({"id": 5}, None, SchemaError),
        ({"city": "rome"}, None, SchemaError),
        ({"fares": 5}, None, MissingColumnError),
        ({"_hoodie_commit_time": "1"}, None, MissingColumnError),
        ({"fare": "x"}, None, SchemaError),
        ({"fare": pc.field("fares")}, None, SchemaError),
        ({"fare": pc.field("note")}, None, SchemaError),
        ({"fare": 1}, "fares = 1", MissingColumnError),
        ({"fare": 1}, "fare =", InvalidOptionError),
    ],
    ids=str,
)
def test_values_and_columns_that_do_not_fit_change_nothing(table, set, where, error):
    before = files_of(table.uri)
    with pytest.raises(error):
        table.update(set, where)
    assert files_of(table.uri) == before


# --- merge -------------------------------------------------------------------------------------------------

CHANGES = [
    {"id": 1, "city": "oslo", "fare": 10.0, "note": None},
    {"id": 2, "city": "oslo", "fare": -1.0, "note": "gone"},
    {"id": 5, "city": "pune", "fare": 5, "note": "e"},
    {"id": 3, "city": "oslo", "fare": 3.0, "note": "another partition"},
]


def test_each_clause_does_its_part_in_one_commit(table):
    merge = (
        table.merge(CHANGES)
        .when_matched_delete("source.fare < 0")
        .when_matched_update({"fare": pc.add(pc.field("fare"), pc.field("source", "fare")), "note": "sum"})
        .when_not_matched_insert(condition="source.note = 'e'")
        .when_not_matched_by_source_update({"note": "kept"}, "city = 'pune'")
        .when_not_matched_by_source_delete("city = 'rome'")
    )
    before = files_of(table.uri)
    said = merge.execute(dry_run=True)
    assert files_of(table.uri) == before
    assert said.dry_run
    commits = table.history().num_rows
    done = merge.execute()
    assert rows_of(table) == [(1, "oslo", 11.0, "sum"), (3, "pune", None, "kept"), (5, "pune", 5.0, "e")]
    assert table.history().num_rows == commits + 1
    assert (done.inserted, done.updated) == (1, 2) or table.table_type == MOR
    assert "_hoodie_is_deleted" not in table.schema.names
    assert table.verify(deep=True) == []
    if table.table_type == MOR:
        table.compact()
        assert [r[0] for r in rows_of(table)] == [1, 3, 5]


def test_without_values_all_columns_of_the_source_are_taken_and_new_ones_added(table):
    rows = [
        {"id": 4, "city": "rome", "fare": None, "tip": 1.0},
        {"id": 6, "city": "rome", "fare": 6.0, "tip": None},
    ]
    done = table.merge(rows).when_matched_update().when_not_matched_insert().execute()
    assert list(map(str, done.schema_changes)) == ["tip added as double"]
    assert rows_of(table)[3:] == [(4, "rome", None, "d"), (6, "rome", 6.0, None)]
    assert table.read(["tip"], "id = 4").to_arrow().to_pylist() == [{"tip": 1.0}]


def test_clauses_that_match_nothing_and_empty_sources_change_no_row(table):
    table.merge(CHANGES).when_matched_update({"fare": 0}, "id > 100").execute()
    table.merge([]).when_matched_update().when_not_matched_insert().execute()
    assert [r[2] for r in rows_of(table)] == [1.0, 2.0, None, 4.0]
    table.merge([]).when_not_matched_by_source_delete("id < 3").execute()
    assert [r[0] for r in rows_of(table)] == [3, 4]


@pytest.mark.parametrize(
    ("source", "clauses", "error"),
    [
        (CHANGES, lambda m: m, OptionError),
        (CHANGES + CHANGES[:1], lambda m: m.when_matched_update(), DuplicateKeyError),
        ([{"city": "oslo", "fare": 1.0}], lambda m: m.when_matched_update(), MissingColumnError),
        ([{"id": 1, "fare": 1.0}], lambda m: m.when_matched_delete(), MissingColumnError),
        ([{**CHANGES[0], "fare": "x"}], lambda m: m.when_matched_update(), SchemaError),
        (CHANGES, lambda m: m.when_matched_update({"id": 1}), SchemaError),
        (CHANGES, lambda m: m.when_matched_update({"fares": 1}), MissingColumnError),
        (CHANGES, lambda m: m.when_matched_delete("source.fares < 0"), MissingColumnError),
        (CHANGES, lambda m: m.when_matched_update({"fare": pc.field("source", "fares")}), SchemaError),
    ],
    ids=range(9),
)
@pytest.mark.sampled(4)
def test_sources_and_clauses_that_do_not_fit_change_nothing(table, source, clauses, error):
    before = files_of(table.uri)
    with pytest.raises(error):
        clauses(table.merge(source)).execute()
    assert files_of(table.uri) == before


# --- what the table is -------------------------------------------------------------------------------------


def test_written_rows_replace_the_stored_ones_whatever_the_payload(tmp_path):
    """A payload that keeps the first value, or fills nulls, would undo the update."""
    for payload in (
        "FirstValueAvroPayload",
        "OverwriteNonDefaultsWithLatestAvroPayload",
        "DefaultHoodieRecordPayload",
    ):
        given = {"hoodie.datasource.write.payload.class": f"org.apache.hudi.common.model.{payload}"}
        rows = [{**r, "ts": 5} for r in ROWS]
        for kind in (COW, MOR):
            path = tmp_path / f"{payload}{kind}"
            write_hudi(
                path, rows, key="id", partition_by="city", ordering="ts", options=given, table_type=kind
            )
            table = HudiTable.open(path)
            if kind == MOR:
                with pytest.raises(UnsupportedError, match=payload):
                    table.update({"note": None})
                continue
            table.update({"note": None, "ts": 1}, "id = 1")
            assert rows_of(table)[0] == (1, "oslo", 1.0, None)
            assert table.config.payload_class.endswith(payload)


@pytest.mark.parametrize("ordering", ["ts", "of.ts"])
def test_an_ordering_value_that_a_log_record_exceeds_is_refused_and_not_lost(tmp_path, ordering):
    """Of several records of a log the greatest counts: an update to a lower value would not be read."""

    def rows(ts, *ids):
        return [{**r, "ts": ts, "of": {"ts": ts}} for r in ROWS if r["id"] in ids]

    def value(ts):
        return {ordering.partition(".")[0]: ts if ordering == "ts" else {"ts": ts}, "note": f"at {ts}"}

    def held():
        found = table.read(["id", ordering.partition(".")[0], "note"]).to_arrow().sort_by("id").to_pylist()
        return [(r["id"], r["ts"] if ordering == "ts" else r["of"]["ts"], r["note"]) for r in found]

    quiet = {"hoodie.compact.inline": "false"}
    write_hudi(
        tmp_path / "t", rows(10, 1, 2, 3, 4), key="id", ordering=ordering, table_type=MOR, options=quiet
    )
    table = HudiTable.open(tmp_path / "t", options=quiet)
    table.update(value(5), "id = 1")  # the base file's record gives way to any later one
    table.upsert(rows(20, 2))
    before, state = files_of(table.uri), held()
    assert [r[:2] for r in state] == [(1, 5), (2, 20), (3, 10), (4, 10)]
    lower = table.merge(rows(19, 2, 3)).when_matched_update().when_not_matched_insert
    for change in (
        lambda: table.update(value(19), "id = 2"),
        lambda: table.update(value(4)),
        lambda: lower().execute(),
        lambda: table.merge(rows(99, 2)).when_matched_update(value(1)).execute(),
        lambda: table.update(value(19), "id = 2", dry_run=True),
    ):
        with pytest.raises(UnsupportedError, match=f"lower value of the ordering field {ordering}") as e:
            change()
        assert "compact the table first" in e.value.remedy
        assert files_of(table.uri) == before
    table.update({"note": "kept"}, "id = 2")
    table.update(value(20), "id = 2")
    table.merge(rows(21, 2, 3)).when_matched_update().execute()
    table.merge(rows(1, 2)).when_matched_delete().execute()
    assert held() == [(1, 5, "at 5"), (3, 21, "c"), (4, 10, "d")]
    table.compact()
    table.update(value(3))
    assert held() == [(1, 3, "at 3"), (3, 3, "at 3"), (4, 3, "at 3")]


def test_tables_whose_rows_would_not_be_written_as_computed_are_refused(tmp_path):
    for options, more in (
        ({"hoodie.populate.meta.fields": "false"}, {}),
        ({"hudi.merge": {"fare": "sum"}}, {}),
        ({"hoodie.index.type": "GLOBAL_SIMPLE"}, {}),
        ({}, {"key": None}),
    ):
        path = tmp_path / str(len(list(tmp_path.iterdir())))
        write_hudi(path, ROWS, **{"key": "id", "partition_by": "city", "options": options, **more})
        table = HudiTable.open(path)
        before = files_of(path)
        with pytest.raises(UnsupportedError, match="cannot be written as they are computed"):
            table.merge(CHANGES).when_matched_delete().execute()
        assert files_of(path) == before
    table.update({"note": "made up keys"}, "id = 1")
    assert rows_of(table)[0] == (1, "oslo", 1.0, "made up keys")


def test_a_key_that_the_table_holds_twice_is_not_updated_as_one(tmp_path):
    write_hudi(tmp_path / "t", ROWS, key="id", operation="bulk_insert")
    write_hudi(tmp_path / "t", [{**ROWS[0], "fare": 9.0}], operation="bulk_insert")
    with pytest.raises(DuplicateKeyError, match="more than once"):
        HudiTable.open(tmp_path / "t").update({"note": "x"})


def test_what_is_committed_meanwhile_counts(table, monkeypatch):
    """A rival's row that was read before is not written over with what was computed from the old one."""
    others = iter([{**ROWS[0], "fare": 100.0}])
    plain = computed_rows.execute

    def late(*arguments, **more):
        for row in others:
            table.upsert([row])
        return plain(*arguments, **more)

    monkeypatch.setattr(computed_rows, "execute", late)
    table.update({"fare": pc.add(pc.field("fare"), 1)}, "id = 1")
    assert rows_of(table)[0][2] == 101.0


@pytest.mark.parametrize("index", ["BLOOM", "BUCKET"])
def test_every_index_within_partitions_finds_the_rows(tmp_path, index):
    options = {"hoodie.index.type": index}
    write_hudi(tmp_path / "t", ROWS, key="id", partition_by="city", options=options)
    table = HudiTable.open(tmp_path / "t")
    table.merge(CHANGES).when_matched_delete(
        "source.fare < 0"
    ).when_matched_update().when_not_matched_insert().execute()
    assert [r[0] for r in rows_of(table)] == [1, 3, 3, 4, 5]
    table.update({"fare": pa.scalar(1.5).as_py()}, "city = 'oslo'")
    assert [r[2] for r in rows_of(table) if r[1] == "oslo"] == [1.5, 1.5]


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        (5, TypeError, "set must be a mapping of columns to values, not int"),
        ({5: 1}, TypeError, "set must name columns by text, not int: 5"),
        ({"fare": object()}, SchemaError, "column fare: <object object"),
        ({"fare": 2**70}, SchemaError, "column fare: .* does not fit into 64 bits"),
        ({"note": "\ud800"}, SchemaError, "column note: .* is half of a surrogate pair"),
        ({"seen": pd.Timestamp(1)}, SchemaError, "column seen: .* has nanoseconds"),
    ],
    ids=lambda v: str(v)[:20],
)
def test_values_that_no_row_could_have_are_refused_like_those_of_rows(tmp_path, values, error, message):
    rows = [{**r, "seen": dt.datetime(2024, 1, 1, tzinfo=dt.UTC)} for r in ROWS]
    write_hudi(tmp_path / "t", rows, key="id")
    table = HudiTable.open(tmp_path / "t")
    before = files_of(table.uri)
    with pytest.raises(error, match=message):
        table.update(values)
    with pytest.raises(error, match=message):
        table.merge(rows[:1]).when_matched_update(values).execute()
    assert files_of(table.uri) == before


@pytest.mark.parametrize("table_type", [COW, MOR])
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.list_(pa.int64()), [1]),
        (pa.map_(pa.string(), pa.int64()), [("a", 1)]),
        (pa.map_(pa.string(), pa.int64()), []),
        (pa.struct([("l", pa.list_(pa.int64()))]), {"l": [1]}),
        (pa.list_(pa.map_(pa.string(), pa.int64())), [[("a", 1)]]),
    ],
    ids=str,
)
def test_nested_values_are_set_in_as_many_rows_as_pass_and_in_none(tmp_path, table_type, kind, value):
    schema = pa.schema([("id", pa.int64()), ("v", kind)])
    table = HudiTable.create(tmp_path / "t", schema, record_keys="id", table_type=table_type)
    table.upsert(pa.table({"id": [1, 2, 3], "v": pa.nulls(3, kind)}, schema))
    for given in (value, pa.scalar(value, kind)):
        none = table.update({"v": given}, "id > 5")
        assert (none.updated, none.inserted) == (0, 0)
        merge = table.merge(pa.table({"id": [9]})).when_matched_update({"v": given})
        assert merge.execute().updated == 0
        assert table.update({"v": given}, "id > 1").updated == 2
    rows = table.read().to_arrow().sort_by("id").to_pylist()
    assert rows == [{"id": 1, "v": None}, {"id": 2, "v": value}, {"id": 3, "v": value}]


def test_partitions_to_delete_are_texts(table):
    with pytest.raises(TypeError, match="partitions must be a list of texts, not int"):
        table.delete_partitions(5)
