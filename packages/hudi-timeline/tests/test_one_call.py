"""Writing and reading in one call."""

from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from hudi_format.errors import (
    ConflictingOptionError,
    InstantNotFoundError,
    InvalidOptionError,
    NotAHudiTableError,
    SchemaError,
    TableExistsError,
)
from hudi_timeline import HudiTable, read_hudi, scan_hudi, write_hudi

ROWS = [{"id": 1, "city": "oslo", "fare": 1.5}, {"id": 2, "city": "pune", "fare": None}]


def files_of(path):
    return {str(f): f.read_bytes() for f in Path(path).rglob("*") if f.is_file()}


def rows_of(path, **how):
    return sorted(
        read_hudi(path, ["id", "city", "fare"], **how).to_arrow().to_pylist(), key=lambda r: r["id"]
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trips"


def forms():
    table = pa.Table.from_pylist(ROWS)
    return {
        "dicts": ROWS,
        "tuple": tuple(ROWS),
        "generator": (row for row in ROWS),
        "columns": table.to_pydict(),
        "table": table,
        "reader": table.to_reader(),
        "dataset": ds.dataset(table),
        "pandas": pd.DataFrame(ROWS),
        "polars": pl.DataFrame(ROWS),
        "lazy": pl.LazyFrame(ROWS),
    }


@pytest.mark.parametrize("form", forms())
def test_rows_of_any_form_make_a_table_and_a_second_call_adds_to_it(path, form):
    first = write_hudi(path, forms()[form], key="id", partition_by="city")
    assert (first.inserted, first.updated) == (2, 0)
    again = write_hudi(path, forms()[form])
    assert (again.inserted, again.updated) == (0, 2)
    assert rows_of(path) == ROWS
    made = HudiTable.open(path)
    assert (made.name, made.config.record_key_fields, made.config.partition_fields) == (
        "trips",
        ("id",),
        ("city",),
    )
    assert not [n for n in read_hudi(path).schema.names if n.startswith("_hoodie")]


def test_overwrite_replaces_the_rows_and_time_travel_has_the_old_ones(path):
    first = write_hudi(path, ROWS, key="id")
    new = [{"id": 9, "city": "rome", "fare": 2.0}]
    assert write_hudi(path, new, mode="overwrite").operation == "insert_overwrite_table"
    assert rows_of(path) == new
    assert rows_of(path, as_of=first.instant) == ROWS


def test_ignore_and_error_leave_a_table_alone(path):
    write_hudi(path, ROWS, key="id")
    before = files_of(path)
    assert write_hudi(path, ROWS, key="id", mode="ignore").instant == ""
    with pytest.raises(TableExistsError):
        write_hudi(path, ROWS, key="id", mode="error")
    assert files_of(path) == before
    assert write_hudi(path.with_name("other"), ROWS, key="id", mode="error").inserted == 2


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"key": "city"}, ConflictingOptionError),
        ({"partition_by": "city"}, ConflictingOptionError),
        ({"table_type": "MERGE_ON_READ"}, ConflictingOptionError),
        ({"name": "another"}, ConflictingOptionError),
        (
            {"key": "id", "options": {"hoodie.datasource.write.recordkey.field": "city"}},
            ConflictingOptionError,
        ),
        ({"mode": "overwrite", "operation": "upsert"}, ConflictingOptionError),
        ({"mode": "replace"}, InvalidOptionError),
        ({"operation": "merge"}, InvalidOptionError),
        ({"schema_mode": "loose"}, InvalidOptionError),
    ],
    ids=str,
)
def test_what_contradicts_the_table_is_refused_before_anything_is_written(path, more, error):
    write_hudi(path, ROWS, key="id")
    before = files_of(path)
    with pytest.raises(error):
        write_hudi(path, ROWS, **more)
    assert files_of(path) == before


def test_a_place_without_a_table_is_told(tmp_path):
    with pytest.raises(NotAHudiTableError):
        read_hudi(tmp_path / "nothing")
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "file.txt").write_text("x")
    with pytest.raises(NotAHudiTableError, match="something else"):
        write_hudi(tmp_path / "else", ROWS, key="id")


def test_no_rows_at_all_have_no_columns_but_those_of_the_table(path):
    with pytest.raises(SchemaError, match="an empty list has no columns"):
        write_hudi(path, [], key="id")
    write_hudi(path, ROWS, key="id")
    assert write_hudi(path, []).inserted == 0
    assert rows_of(path) == ROWS


def test_rows_without_a_key_get_keys_of_their_own(path):
    write_hudi(path, ROWS)
    write_hudi(path, ROWS)
    assert len(rows_of(path)) == 4


# --- create ------------------------------------------------------------------------------------------------


def test_a_table_has_the_schema_of_data_and_the_name_of_its_folder(path):
    table = HudiTable.create(path, pl.DataFrame(ROWS), record_keys="id", partition_fields="city")
    assert table.name == "trips"
    assert table.schema.equals(pa.schema([("id", pa.int64()), ("city", pa.string()), ("fare", pa.float64())]))
    assert read_hudi(path).to_arrow().num_rows == 0


def test_a_second_run_opens_what_the_first_one_made(path):
    def run(**more):
        return HudiTable.create(path, ROWS, record_keys="id", partition_fields="city", **more)

    run(name="t").upsert(ROWS)
    again = run(exist_ok=True)
    assert (again.name, again.read().count()) == ("t", 2)
    again.upsert([{**ROWS[0], "tip": 1}], options={"hoodie.write.set.null.for.missing.columns": True})
    assert "tip" in run(exist_ok=True).schema.names
    with pytest.raises(TableExistsError, match=r"HudiTable\.open.*exist_ok=True"):
        run()


@pytest.mark.parametrize(
    ("more", "error", "said"),
    [
        ({"record_keys": "city"}, ConflictingOptionError, "recordkey"),
        ({"partition_fields": ()}, ConflictingOptionError, "partitionpath"),
        ({"ordering_fields": "fare"}, None, ""),
        ({"table_type": "MERGE_ON_READ"}, ConflictingOptionError, "table.type"),
        ({"name": "another"}, ConflictingOptionError, "table.name"),
        ({"schema": [{**ROWS[0], "tip": 1}]}, SchemaError, "column tip .* has no such column"),
        ({"schema": [{**ROWS[0], "fare": "x"}]}, SchemaError, "column fare .* has it as double"),
    ],
    ids=str,
)
def test_a_table_that_is_there_is_only_taken_for_what_it_is(path, more, error, said):
    given = {"schema": ROWS, "record_keys": ["id"], "partition_fields": ["city"], **more}
    HudiTable.create(path, ROWS, record_keys=["id"], partition_fields=["city"])
    before = files_of(path)
    if error is None:  # a copy-on-write table says nothing of its ordering field
        assert HudiTable.create(path, **given, exist_ok=True).name == "trips"
    else:
        with pytest.raises(error, match=said):
            HudiTable.create(path, **given, exist_ok=True)
    assert files_of(path) == before


def test_one_text_stands_for_one_column_key_or_partition(path):
    table = HudiTable.create(path, [{"id": "a", "city": "oslo"}], record_keys="id", partition_fields="city")
    table.upsert([{"id": "a", "city": "oslo"}])
    assert table.read("id").to_arrow().to_pylist() == [{"id": "a"}]
    assert table.get("a", partitions="oslo").num_rows == 1
    assert table.get("a", partitions="pune").num_rows == 0


# --- schema mode ------------------------------------------------------------------------------


def test_strict_refuses_every_change_of_the_schema_and_merge_adds_columns(path):
    write_hudi(path, ROWS, key="id")
    schema = HudiTable.open(path).schema
    before = files_of(path)
    for row, said in (
        ({**ROWS[0], "tip": 1}, "tip added as int64"),
        ({**ROWS[0], "tip": None}, "no column tip"),
    ):
        with pytest.raises(SchemaError, match=said):
            write_hudi(path, [row], schema_mode="strict")
    grown = {"hudi.write.types": "data"}
    with pytest.raises(SchemaError, match="fare from double to string"):
        write_hudi(path, [{**ROWS[0], "fare": "x"}], schema_mode="strict", options=grown)
    dropped = {"hoodie.datasource.write.schema.allow.auto.evolution.column.drop": True}
    with pytest.raises(SchemaError, match="fare dropped"):
        HudiTable.open(path).upsert([{"id": 1, "city": "oslo"}], schema_mode="strict", options=dropped)
    assert files_of(path) == before
    # What only looks different is none: other types that fit, another order, nulls, nulls for missing columns.
    nulls = {"hoodie.write.set.null.for.missing.columns": True}
    write_hudi(path, [{"fare": 3, "city": None, "id": 1.0}], schema_mode="strict")
    write_hudi(path, [{"id": 2}], schema_mode="strict", options=nulls)
    assert HudiTable.open(path).schema.equals(schema)
    write_hudi(path, [{**ROWS[0], "tip": 1}], schema_mode="merge")
    assert HudiTable.open(path).schema.names == [*schema.names, "tip"]


@pytest.mark.parametrize(("short", "kind"), [("cow", "COPY_ON_WRITE"), ("MOR", "MERGE_ON_READ")])
def test_short_names_of_table_types_are_taken(tmp_path, short, kind):
    rows = [{"id": 1, "v": 1}]
    write_hudi(tmp_path / "a", rows, key="id", table_type=short)
    assert HudiTable.open(tmp_path / "a").table_type == kind
    write_hudi(tmp_path / "a", rows, table_type=short)
    assert HudiTable.create(tmp_path / "b", rows, record_keys="id", table_type=short).table_type == kind


def test_all_reads_have_the_columns_in_the_tables_order(tmp_path):
    rows = [{"city": "oslo", "id": 1, "fare": 1.0}, {"city": "rome", "id": 2, "fare": 2.0}]
    write_hudi(tmp_path / "t", rows, key="id", partition_by="city")
    table = HudiTable.open(tmp_path / "t")
    names = ["city", "id", "fare"]
    assert table.schema.names == names
    reads = [
        table.read(), table.read(filter="id > 0"), table.read(as_of=table.latest_offset()),
        table.read(query="read_optimized"), table.read_incremental(None),
    ]  # fmt: skip
    assert [scan.schema.names for scan in reads] == [names] * len(reads)
    assert pa.concat_tables([scan.to_arrow() for scan in reads]).num_rows == 2 * len(reads)
    assert (
        table.get([1]).column_names == names == table.head().column_names == list(table.to_pandas().columns)
    )
    assert scan_hudi(tmp_path / "t").collect_schema().names() == names
    meta = table.read(meta_columns=True).schema.names
    assert meta[5:] == ["id", "fare", "city"], "as Apache Hudi has them"


def test_every_commit_says_whether_the_table_can_be_read_as_of_it(tmp_path):
    keep = {
        "hoodie.cleaner.commits.retained": "1",
        "hoodie.keep.min.commits": "20",
        "hoodie.keep.max.commits": "30",
    }
    for n in range(4):
        write_hudi(tmp_path / "t", [{"id": 1, "v": n}], key="id", options=keep)
    table = HudiTable.open(tmp_path / "t")
    found = {}
    for row in table.inspect.commits().to_pylist():
        found[row["instant"]] = row["readable"]
        if row["readable"]:
            assert table.read(as_of=row["instant"]).count() == 1
        else:
            with pytest.raises(InstantNotFoundError):
                table.read(as_of=row["instant"]).count()
    assert set(found.values()) == {True, False}


def test_keys_are_erased_from_every_file(tmp_path):
    for n in range(3):
        write_hudi(tmp_path / "t", [{"id": 1, "v": n}, {"id": 2, "v": n}], key="id", table_type="mor")
    table = HudiTable.open(tmp_path / "t")
    assert not table.erase([1], dry_run=True).erased
    assert table.count() == 2
    assert table.erase([1]).erased
    assert table.read().to_arrow().column("id").to_pylist() == [2]
    assert table.optimize(dry_run=True) is not None


@pytest.mark.parametrize("lazy", [False, True])
def test_python_objects_in_a_frame_of_polars_are_refused(tmp_path, lazy):
    """Its Arrow stream has their addresses in memory, eight bytes each."""
    frame = pl.DataFrame({"id": [1], "q": pl.Series([object()], dtype=pl.Object)})
    with pytest.raises(SchemaError, match="column q holds Python objects"):
        write_hudi(tmp_path / "t", frame.lazy() if lazy else frame, key="id")
    assert not (tmp_path / "t").exists()
